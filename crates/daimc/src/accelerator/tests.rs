use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::neighbours::nearest_in;
use crate::shard::{Cpu, VStep};
use crate::simulate;
use crate::statistics::Statistics;
use crate::sweep::Sweep;
use crate::synthetic::Synthetic;
use crate::{Daimc, Factors, Fit, Neighbours, Outcome, Solver, Views};

/// How often it was asked for what.
#[derive(Debug, Default)]
struct Calls {
    holds: AtomicUsize,
    shards: AtomicUsize,
    sweeps: AtomicUsize,
    searches: AtomicUsize,
}

fn count(calls: &AtomicUsize) {
    calls.fetch_add(1, Ordering::Relaxed);
}

/// The processor behind the seam.
#[derive(Debug, Default)]
struct Mirror {
    calls: Arc<Calls>,
    /// Whether it finds neighbours, and the wrong ones.
    searches: bool,
    lies: bool,
    /// Whether it has no room for V.
    roomless: bool,
}

struct Mirrored<'a> {
    calls: Arc<Calls>,
    searches: bool,
    lies: bool,
    roomless: bool,
    sweep: Arc<Sweep<'a>>,
}

struct Reflection<'a>(Arc<Calls>, Cpu<'a>);

impl Mirror {
    fn asked(&self) -> [usize; 4] {
        let Calls { holds, shards, sweeps, searches } = &*self.calls;
        [holds, shards, sweeps, searches].map(|calls| calls.load(Ordering::Relaxed))
    }
}

impl Accelerator for Mirror {
    fn name(&self) -> String {
        "mirror".into()
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        count(&self.calls.holds);
        let Self { searches, lies, roomless, .. } = *self;
        let calls = self.calls.clone();
        Ok(Arc::new(Mirrored { calls, searches, lies, roomless, sweep: Arc::new(Sweep::over(load)) }))
    }
}

impl<'a> Resident<'a> for Mirrored<'a> {
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        count(&self.calls.shards);
        if self.roomless {
            return Err(refused("mirror", "there is no room for V"));
        }
        Ok(Box::new(Reflection(self.calls.clone(), Cpu::of(self.sweep.clone()))))
    }

    fn nearest(&self, view: usize, count: usize, _: &Stop) -> Result<Option<NearestOthers>> {
        self::count(&self.calls.searches);
        if !self.searches {
            return Ok(None);
        }
        let lens = &self.sweep.lenses[view];
        let found = nearest_in(&self.sweep.scan, view, lens, count, 0)?;
        let mut near = NearestOthers::none(found.instances(), count);
        for i in 0..found.instances() {
            for (at, (other, square)) in found.of(i).enumerate() {
                let other = if self.lies { (i + at + 1) % found.instances() } else { other };
                near.others[i * count + at] = crate::views::index(other);
                near.squares[i * count + at] =
                    (square * lens.sum_squares * if self.lies { 9.0 } else { 1.0 }) as f32;
            }
        }
        Ok(Some(near))
    }
}

impl Shard for Reflection<'_> {
    fn instances(&self) -> usize {
        self.1.instances()
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        self.1.start(v, stop)
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        count(&self.0.sweeps);
        self.1.sweep(factors, step, stop)
    }

    fn latent(&self) -> Matrix {
        self.1.latent()
    }
}

/// Takes nothing.
#[derive(Debug)]
struct Full;

impl Accelerator for Full {
    fn name(&self) -> String {
        "full".into()
    }

    fn hold<'a>(&self, _: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        Err(refused("full", "there is no room for the rows"))
    }
}

fn views(n: usize) -> Views<'static> {
    let data = Synthetic::new(n, 4).noise(1.0).seed(3);
    let present = simulate::missing(n, &[0.3, 0.4], 5).unwrap();
    Views::new(vec![
        data.dense::<f32>("dense", 20).unwrap().mask(&present[0]).unwrap(),
        data.sparse::<f64>("sparse", 60, 0.2).unwrap().mask(&present[1]).unwrap(),
    ])
    .unwrap()
}

/// All but what may differ from one machine to another.
fn told(mut fit: Fit) -> Fit {
    fit.device = DeviceUsed::default();
    fit.passes = 0;
    fit.timings = crate::Timings::default();
    fit
}

#[test]
fn a_fit_on_another_machine_is_the_same_if_its_sums_are() {
    let views = views(900);
    let plain = Daimc::new(4).assess(false);
    let fits = [
        plain.clone().neighbours(Neighbours::Off),
        plain.clone().neighbours(Neighbours::Off).latent(6),
        plain.clone().neighbours(Neighbours::Off).runs(3),
        plain.clone().neighbours(Neighbours::Off).start(Matrix::from_fn(900, 4, |i, k| ((i + k) % 5) as f64)),
        plain,
    ];
    for fit in fits {
        let mirror = Arc::new(Mirror::default());
        let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
        let here = fit.fit(&views).unwrap();
        assert_eq!((there.device.name.as_str(), &there.device.reason), ("mirror", &None));
        assert_eq!(here.device, DeviceUsed::default());
        // Rows that are held are not read for iterations.
        assert!(there.passes < here.passes, "{} {}", there.passes, here.passes);
        assert_eq!(told(there), told(here.clone()));
        let [holds, shards, sweeps, searches] = mirror.asked();
        assert!(holds == 1 && shards >= 2 && sweeps > here.iterations(), "{:?}", mirror.asked());
        assert_eq!(searches, if here.model.options.neighbours == Neighbours::Off { 0 } else { 2 });
    }
}

#[test]
fn only_the_fit_to_all_rows_leaves_the_processor() {
    let views = views(900);
    let fit = Daimc::new(4).penalty(crate::Penalty::Auto).view_weights(crate::ViewWeights::Learned);
    let mirror = Arc::new(Mirror::default());
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    assert_eq!(mirror.asked()[0], 1);
    assert_eq!(told(there), told(fit.fit(&views).unwrap()));
}

#[test]
fn neighbours_are_those_that_an_accelerator_finds() {
    let views = views(900);
    let mirror = Arc::new(Mirror { searches: true, ..Mirror::default() });
    let fit = Daimc::new(4).assess(false);
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    let here = fit.fit(&views).unwrap();
    assert_eq!(mirror.asked()[3], 2);
    assert_eq!(there.neighbours.used, Neighbours::Auto);
    assert!(there.neighbours.recall.is_empty());
    assert_eq!(there.labels, here.labels);
}

#[test]
fn neighbours_that_are_not_the_nearest_are_looked_for_here() {
    let views = views(900);
    let mirror = Arc::new(Mirror { searches: true, lies: true, ..Mirror::default() });
    let fit = Daimc::new(4).assess(false);
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    assert_eq!(mirror.asked()[3], 2);
    assert_eq!(told(there), told(fit.fit(&views).unwrap()));
}

#[test]
fn where_there_is_no_room_for_v_the_processor_takes_over_if_it_may() {
    let views = views(900);
    let model = Daimc::new(4).neighbours(Neighbours::Off).assess(false).fit(&views).unwrap().model;
    let scalings: Vec<Scaling> = model.views.into_iter().map(|view| view.scaling).collect();
    let mirror = Mirror { roomless: true, ..Mirror::default() };
    for (when, works) in [(Use::Always, false), (Use::WhereItPays, true)] {
        let mut sweep = Sweep::over(Load::new(&views, &scalings, 4).unwrap());
        sweep.hand_to(&mirror, when).unwrap();
        assert_eq!(Arc::new(sweep).shard().is_ok(), works);
    }
}

#[test]
fn what_an_accelerator_refuses_is_the_error_or_stays_here() {
    let views = views(900);
    let fit = Daimc::new(4).neighbours(Neighbours::Off).assess(false);
    let error = fit.clone().accelerator(Arc::new(Full), Use::Always).fit(&views).unwrap_err();
    assert_eq!(error.to_string(), "full: there is no room for the rows");
    // Quick fits are not even tried.
    let mirror = Arc::new(Mirror::default());
    let quick = fit.clone().accelerator(mirror.clone(), Use::WhereItPays).fit(&views).unwrap();
    assert_eq!((mirror.asked()[0], quick.device.name.as_str()), (0, "cpu"));
    assert!(quick.device.reason.as_ref().unwrap().contains("less than 2 seconds"), "{:?}", quick.device);
    let here = fit.fit(&views).unwrap();
    assert_eq!(told(quick), told(here.clone()));

    let multiplicative = fit.solver(Solver::Multiplicative).accelerator(mirror, Use::Always);
    let error = multiplicative.fit(&views).unwrap_err().to_string();
    assert!(error.starts_with("mirror: solver = multiplicative"), "{error}");
}

#[test]
fn long_fits_are_handed_over_unless_that_is_refused() {
    let data = Synthetic::new(6000, 40).noise(1.0).seed(3);
    let views = Views::new(vec![data.dense::<f32>("dense", 40).unwrap()]).unwrap();
    let fit =
        Daimc::new(40).neighbours(Neighbours::Off).assess(false).max_iterations(2).restarts(1).threads(1);
    let with = |machine: Arc<dyn Accelerator>| fit.clone().accelerator(machine, Use::WhereItPays).fit(&views);
    let refused = with(Arc::new(Full)).unwrap();
    assert_eq!(refused.device.name, "cpu");
    assert_eq!(refused.device.reason.as_deref(), Some("full: there is no room for the rows"));
    let mirror = Arc::new(Mirror::default());
    let again = mirror.clone();
    let there = with(Arc::new(Deferred::new("glass", move || Ok(again.clone())))).unwrap();
    assert_eq!((mirror.asked()[0], there.device.name.as_str()), (1, "mirror"));
    let closed = with(Arc::new(Deferred::new("glass", || Err("there is none".into())))).unwrap();
    assert_eq!(closed.device.reason.as_deref(), Some("glass: there is none"));
    let here = told(fit.fit(&views).unwrap());
    assert!([refused, there, closed].into_iter().all(|fit| told(fit) == here));
}

#[test]
fn the_machine_is_told_in_the_file_of_a_fit() {
    let fit = Daimc::new(4).assess(false).neighbours(Neighbours::Off);
    let there = fit.accelerator(Arc::new(Mirror::default()), Use::Always).fit(&views(300)).unwrap();
    let mut bytes = Vec::new();
    there.write(&mut bytes).unwrap();
    assert_eq!(Fit::from_bytes(&bytes).unwrap().device.name, "mirror");
}

#[test]
fn a_fit_on_another_machine_can_be_stopped() {
    let stop = Stop::new();
    let fit = Daimc::new(4).tolerance(0.0).stop(&stop).accelerator(Arc::new(Mirror::default()), Use::Always);
    let each = |iteration: &crate::Iteration| {
        if iteration.number == 3 {
            stop.set();
        }
        std::ops::ControlFlow::Continue(())
    };
    let fitted = fit.fit_with(&views(900), each).unwrap();
    assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::Cancelled, 3));
}

#[test]
fn machines_are_known_by_name() {
    for (name, device) in [
        ("cpu", Device::Cpu),
        ("cuda", Device::Cuda(vec![0])),
        ("cuda:1", Device::Cuda(vec![1])),
        ("cuda:0,2", Device::Cuda(vec![0, 2])),
        ("auto", Device::Auto),
    ] {
        assert_eq!((name.parse::<Device>().unwrap(), device.to_string().as_str()), (device, name));
    }
    for wrong in ["", "gpu", "cuda:", "cuda:-1", "cuda:one", "cuda1", "cuda:0,", "cuda:1,1"] {
        assert!(wrong.parse::<Device>().unwrap_err().to_string().contains("device"), "{wrong}");
    }
    let fit = Daimc::new(4).neighbours(Neighbours::Off).assess(false);
    let none = |cards: &[usize]| Err(format!("there is no card {}", cards[0]));
    let error = Device::Cuda(vec![3]).bring(fit.clone(), none).unwrap_err();
    assert_eq!(error.to_string(), "cuda:3: there is no card 3");
    // A quick fit does not open it.
    let auto = Device::Auto.bring(fit.clone(), |_| panic!("it is not worth it")).unwrap();
    assert_eq!(auto.fit(&views(300)).unwrap().device.name, "cpu");
    let mirror = Device::Cuda(vec![0]).bring(fit, |_| Ok(Arc::new(Mirror::default()))).unwrap();
    assert_eq!(mirror.fit(&views(300)).unwrap().device.name, "mirror");
}
