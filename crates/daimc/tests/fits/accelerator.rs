//! The interface of accelerators, tested by one that computes on the CPU.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use daimc::simulate;
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Neighbours, Outcome};
use daimc_core::accelerator::{
    Accelerator, Deferred, Device, DeviceUsed, Load, NearestOthers, Resident, Use, refused,
};
use daimc_core::scan::Scan;
use daimc_core::shard::{Shard, VStep};
use daimc_core::source::{Buffer, DeviceRows, ReadError, RowStore, Rows, Source};
use daimc_core::statistics::Statistics;
use daimc_core::sweep::{Cpu, Sweep};
use daimc_core::{Factors, Layout, Matrix, Result, Scale, Scaling, Solver, Stop, View, Views};
use daimc_graph::neighbours::nearest_in;

/// The number of calls of each kind.
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

/// An accelerator that computes on the CPU.
#[derive(Debug, Default)]
struct Mirror {
    calls: Arc<Calls>,
    /// Whether it finds neighbours ...
    searches: bool,
    /// ... that are not the nearest.
    wrong: bool,
    /// Whether it lacks the memory for V.
    full: bool,
}

struct Mirrored<'a> {
    calls: Arc<Calls>,
    searches: bool,
    wrong: bool,
    full: bool,
    sweep: Arc<Sweep<'a>>,
}

struct Reflection<'a>(Arc<Calls>, Cpu<'a>);

impl Mirror {
    fn counted(&self) -> [usize; 4] {
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
        let Self { searches, wrong, full, .. } = *self;
        let calls = self.calls.clone();
        Ok(Arc::new(Mirrored { calls, searches, wrong, full, sweep: Arc::new(Sweep::over(load)) }))
    }
}

impl<'a> Resident<'a> for Mirrored<'a> {
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        count(&self.calls.shards);
        if self.full {
            return Err(refused("mirror", "not enough memory for V"));
        }
        Ok(Box::new(Reflection(self.calls.clone(), Cpu::of(self.sweep.clone()))))
    }

    fn nearest(&self, view: usize, count: usize, _: &Stop) -> Result<Option<NearestOthers>> {
        self::count(&self.calls.searches);
        if !self.searches {
            return Ok(None);
        }
        let scaled_view = &self.sweep.scaled_views[view];
        let found = nearest_in(&self.sweep.scan, view, scaled_view, count, 0)?;
        let mut near = NearestOthers::none(found.instances(), count);
        for i in 0..found.instances() {
            for (at, (other, square)) in found.of(i).enumerate() {
                let other = if self.wrong { (i + at + 1) % found.instances() } else { other };
                near.others[i * count + at] = daimc_core::index::index(other);
                near.squares[i * count + at] =
                    (square * scaled_view.sum_squares * if self.wrong { 9.0 } else { 1.0 }) as f32;
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

/// An accelerator without free memory.
#[derive(Debug)]
struct Full;

impl Accelerator for Full {
    fn name(&self) -> String {
        "full".into()
    }

    fn hold<'a>(&self, _: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        Err(refused("full", "not enough memory for the rows"))
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

/// A fit without its device, passes and times.
fn results(mut fit: Fit) -> Fit {
    fit.device = DeviceUsed::default();
    fit.passes = 0;
    fit.timings = daimc::Timings::default();
    fit
}

#[test]
fn a_fit_on_an_accelerator_with_the_same_sums_has_the_same_bits() {
    let views = views(900);
    let plain = Daimc::new(4).assess(false);
    let fits = [
        plain.clone().neighbours(Neighbours::Off),
        plain.clone().neighbours(Neighbours::Off).latent(6),
        plain.clone().map(true),
        plain.clone().top_features(15),
        plain.clone().equal_weight(true),
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
        // Iterations do not read rows that are in device memory.
        assert!(there.passes < here.passes, "{} {}", there.passes, here.passes);
        assert_eq!(results(there), results(here.clone()));
        let [holds, shards, sweeps, searches] = mirror.counted();
        assert!(holds == 1 && shards >= 2 && sweeps > here.iterations(), "{:?}", mirror.counted());
        assert_eq!(searches, if here.model.options.neighbours == Neighbours::Off { 0 } else { 2 });
    }
}

#[test]
fn only_the_fit_to_all_rows_uses_the_accelerator() {
    let views = views(900);
    let fit = Daimc::new(4).penalty(daimc::Penalty::Auto).view_weights(daimc::ViewWeights::Learned);
    let mirror = Arc::new(Mirror::default());
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    assert_eq!(mirror.counted()[0], 1);
    assert_eq!(results(there), results(fit.fit(&views).unwrap()));
}

#[test]
fn neighbours_are_those_that_an_accelerator_finds() {
    let views = views(900);
    let mirror = Arc::new(Mirror { searches: true, ..Mirror::default() });
    let fit = Daimc::new(4).assess(false);
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    let here = fit.fit(&views).unwrap();
    assert_eq!(mirror.counted()[3], 2);
    assert_eq!(there.neighbours.used, Neighbours::Auto);
    assert!(there.neighbours.recall.is_empty());
    assert_eq!(there.labels, here.labels);
}

#[test]
fn neighbours_that_are_not_the_nearest_are_searched_again_on_the_cpu() {
    let views = views(900);
    let mirror = Arc::new(Mirror { searches: true, wrong: true, ..Mirror::default() });
    let fit = Daimc::new(4).assess(false);
    let there = fit.clone().accelerator(mirror.clone(), Use::Always).fit(&views).unwrap();
    assert_eq!(mirror.counted()[3], 2);
    assert_eq!(results(there), results(fit.fit(&views).unwrap()));
}

#[test]
fn without_memory_for_v_the_cpu_takes_over_unless_the_device_is_required() {
    let views = views(900);
    let model = Daimc::new(4).neighbours(Neighbours::Off).assess(false).fit(&views).unwrap().model;
    let scalings: Vec<Scaling> = model.views.into_iter().map(|view| view.scaling).collect();
    let mirror = Mirror { full: true, ..Mirror::default() };
    for (when, works) in [(Use::Always, false), (Use::WhereItPays, true)] {
        let mut sweep = Sweep::over(Load::new(&views, &scalings, 4).unwrap());
        sweep.hand_to(&mirror, when).unwrap();
        assert_eq!(Arc::new(sweep).shard().is_ok(), works);
    }
}

#[test]
fn a_refusal_is_an_error_unless_the_device_is_optional() {
    let views = views(900);
    let fit = Daimc::new(4).neighbours(Neighbours::Off).assess(false);
    let error = fit.clone().accelerator(Arc::new(Full), Use::Always).fit(&views).unwrap_err();
    assert_eq!(error.to_string(), "full: not enough memory for the rows");
    // A quick fit does not use the accelerator.
    let mirror = Arc::new(Mirror::default());
    let quick = fit.clone().accelerator(mirror.clone(), Use::WhereItPays).fit(&views).unwrap();
    assert_eq!((mirror.counted()[0], quick.device.name.as_str()), (0, "cpu"));
    assert!(quick.device.reason.as_ref().unwrap().contains("less than 2 seconds"), "{:?}", quick.device);
    let here = fit.fit(&views).unwrap();
    assert_eq!(results(quick), results(here.clone()));

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
    assert_eq!(refused.device.reason.as_deref(), Some("full: not enough memory for the rows"));
    let mirror = Arc::new(Mirror::default());
    let again = mirror.clone();
    let there = with(Arc::new(Deferred::new("glass", move || Ok(again.clone())))).unwrap();
    assert_eq!((mirror.counted()[0], there.device.name.as_str()), (1, "mirror"));
    let closed = with(Arc::new(Deferred::new("glass", || Err("there is none".into())))).unwrap();
    assert_eq!(closed.device.reason.as_deref(), Some("glass: there is none"));
    let here = results(fit.fit(&views).unwrap());
    assert!([refused, there, closed].into_iter().all(|fit| results(fit) == here));
}

#[test]
fn the_file_of_a_fit_names_the_device() {
    let fit = Daimc::new(4).assess(false).neighbours(Neighbours::Off);
    let there = fit.accelerator(Arc::new(Mirror::default()), Use::Always).fit(&views(300)).unwrap();
    let mut bytes = Vec::new();
    there.write(&mut bytes).unwrap();
    assert_eq!(Fit::from_bytes(&bytes).unwrap().device.name, "mirror");
}

#[test]
fn a_fit_on_an_accelerator_can_be_stopped() {
    let stop = Stop::new();
    let fit = Daimc::new(4).tolerance(0.0).stop(&stop).accelerator(Arc::new(Mirror::default()), Use::Always);
    let each = |iteration: &daimc::Iteration| {
        if iteration.number == 3 {
            stop.set();
        }
        std::ops::ControlFlow::Continue(())
    };
    let fitted = fit.fit_with(&views(900), each).unwrap();
    assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::Interrupted, 3));
}

#[test]
fn devices_have_names() {
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
    let none = |gpus: &[usize]| Err(format!("there is no GPU {}", gpus[0]));
    let error = fit.clone().device(&Device::Cuda(vec![3]), none).unwrap_err();
    assert_eq!(error.to_string(), "cuda:3: there is no GPU 3");
    // A quick fit does not open the GPU.
    let auto = fit.clone().device(&Device::Auto, |_| panic!("a quick fit does not use it")).unwrap();
    assert_eq!(auto.fit(&views(300)).unwrap().device.name, "cpu");
    let mirror = fit.device(&Device::Cuda(vec![0]), |_| Ok(Arc::new(Mirror::default()))).unwrap();
    assert_eq!(mirror.fit(&views(300)).unwrap().device.name, "mirror");
}

/// Rows in single precision in device memory, simulated in main memory: address 0 is the first value.
struct Stored {
    values: Vec<f32>,
    features: usize,
    stride: usize,
}

impl RowStore for Stored {
    fn shape(&self) -> (usize, usize) {
        (self.values.len() / self.stride, self.features)
    }

    fn layout(&self) -> Layout {
        Layout::DenseF32
    }

    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> std::result::Result<(), ReadError> {
        let rows: Vec<u32> = rows.map(daimc_core::index::index).collect();
        self.pick(&rows, buffer)
    }

    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> std::result::Result<(), ReadError> {
        buffer.f32.clear();
        rows.iter().for_each(|&row| buffer.f32.extend(self.row(row as usize)));
        Ok(())
    }

    fn device_rows(&self) -> Option<DeviceRows> {
        let (device, rows) = (Device::Cuda(vec![7]), self.shape().0);
        Some(DeviceRows { device, address: 0, rows, stride: self.stride })
    }
}

impl Stored {
    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride..][..self.features]
    }
}

/// Some rows, with two unused values after each.
fn stored(n: usize, cell: impl Fn(usize, usize) -> f32) -> Arc<Stored> {
    let (features, stride) = (5, 7);
    let value = |(i, f)| if f < features { cell(i, f) } else { f32::NAN };
    let values = (0..n).flat_map(|i| (0..stride).map(move |f| (i, f))).map(value).collect();
    Arc::new(Stored { values, features, stride })
}

fn cell(i: usize, f: usize) -> f32 {
    (if i % 3 == f % 3 { 3.0 } else { 0.5 }) + ((i * 31 + f * 17) % 11) as f32 / 20.0
}

/// Records which views are in device memory, compares these rows with those that are read, and passes the load to a mirror.
#[derive(Debug)]
struct Witness {
    stored: Vec<Arc<Stored>>,
    on_device: std::sync::Mutex<Vec<bool>>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shape().fmt(out)
    }
}

impl Accelerator for Witness {
    fn name(&self) -> String {
        "witness".into()
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        let (n, mut buffer) = (load.instances(), Buffer::default());
        let mut on_device = self.on_device.lock().unwrap();
        for (view, stored) in self.stored.iter().enumerate() {
            on_device.push(load.device_rows(view).is_some());
            // All instances, and some.
            for load in [load.some(0..n), load.some(n / 3..n - 5).some(2..n / 2)] {
                let Some((found, index)) = load.device_rows(view) else { continue };
                assert_eq!(Some(found), stored.device_rows());
                let block = load.read(view, 0..load.instances(), &mut buffer)?;
                let Rows::DenseF32(values) = block.rows else { panic!("they are dense") };
                for i in 0..load.instances() {
                    let read =
                        block.index.row(i).map(|row| &values[row * stored.features..][..stored.features]);
                    assert_eq!(index.row(i).map(|row| stored.row(row)), read, "instance {i}");
                    assert_eq!(read.is_some(), load.shows(view, i));
                }
            }
        }
        Mirror::default().hold(load)
    }
}

/// The views of a fit whose rows an accelerator finds in device memory.
fn on_device(views: &Views<'_>, stored: &[Arc<Stored>], fit: Daimc) -> Vec<bool> {
    let witness = Arc::new(Witness { stored: stored.to_vec(), on_device: std::sync::Mutex::default() });
    let fit = fit.neighbours(Neighbours::Off).assess(false).accelerator(witness.clone(), Use::Always);
    assert_eq!(fit.fit(views).unwrap().device.name, "witness");
    witness.on_device.lock().unwrap().clone()
}

#[test]
fn rows_in_device_memory_are_used_in_place_unless_they_are_prepared() {
    let n = 300;
    let whole = stored(n, cell);
    let holed = stored(n, |i, f| if i % 7 == 0 && f == 2 { f32::NAN } else { cell(i, f) });
    let emptied = stored(n, |i, f| if i % 7 == 0 { f32::NAN } else { cell(i, f) });
    let given = [whole, holed, emptied];
    let views = |known: bool| {
        let view = |(number, rows): (usize, &Arc<Stored>)| {
            let view = View::stored(format!("view {number}"), rows.clone() as Arc<dyn RowStore>).unwrap();
            match number {
                0 if known => view.holes(0),
                1 if known => view.holes(n.div_ceil(7)),
                2 if known => view.mask(&(0..n).map(|i| i % 7 != 0).collect::<Vec<_>>()).unwrap().holes(0),
                _ => view,
            }
        };
        Views::new(given.iter().enumerate().map(view).collect()).unwrap()
    };
    let plain = Daimc::new(3).scale(Scale::MinMax);
    // Missing cells are filled. Rows without cells are found when the rows are read.
    assert_eq!(on_device(&views(false), &given, plain.clone()), [true, false, false]);
    // Rows that are declared missing need no preparation.
    assert_eq!(on_device(&views(true), &given, plain.clone()), [true, false, true]);
    // The accelerator scales the rows; logarithms are taken before.
    assert_eq!(on_device(&views(true), &given, Daimc::new(3).scale(Scale::Unit)), [true, false, true]);
    let logs = plain.clone().scale_view("view 0", Scale::Log);
    assert_eq!(on_device(&views(true), &given, logs), [false, false, true]);
    // With more missing instances.
    let hidden: Vec<Vec<bool>> = (0..3).map(|v| (0..n).map(|i| (i + v) % 4 != 0).collect()).collect();
    let all = views(true);
    assert_eq!(on_device(&all.masked(&hidden).unwrap(), &given, plain), [true, false, true]);
    // A sample is a copy.
    let scan = Scan::new(&all, &Stop::default());
    let mut buffers = vec![Buffer::default(); 3];
    let some: Vec<u32> = (0..150).map(|i| 2 * i).collect();
    let subset = daimc_core::subset::Subset::pick(&scan, &some, &mut buffers).unwrap();
    assert!((0..3).all(|view| subset.device_rows(view).is_none()));
}

#[test]
fn rows_in_device_memory_are_joined_by_id() {
    let n = 300;
    let (one, other) = (stored(n, cell), stored(n - 20, |i, f| cell(2 * i, f)));
    let id = |i: usize| format!("instance {i}");
    // The second view has other instances, in another order.
    let ids = (0..n - 20).rev().map(|i| id(i + 10)).collect();
    let views = vec![
        View::stored("one", one.clone() as Arc<dyn RowStore>).unwrap().ids((0..n).map(id).collect()).unwrap(),
        View::stored("other", other.clone() as Arc<dyn RowStore>).unwrap().ids(ids).unwrap(),
    ];
    let (views, _) = Views::join(views).unwrap();
    assert_eq!(on_device(&views, &[one, other], Daimc::new(3).scale(Scale::ZScore)), [true, true]);
}

#[test]
fn rows_in_memory_are_not_in_device_memory() {
    let views = views(300);
    let prepared = daimc_core::Prepared::new(
        &views,
        &[daimc_core::Preparation::default(), daimc_core::Preparation::default()],
    );
    let prepared = prepared.unwrap();
    assert!((0..2).all(|view| views.device_rows(view).is_none() && prepared.device_rows(view).is_none()));
}

#[test]
fn rows_are_stored_as_their_terms_say() {
    let n = 200;
    // Far from the origin and close together: such rows are stored relative to a centre.
    for (offset, scale) in
        [(0.0, Scale::Unit), (0.0, Scale::MinMaxUnit), (1e6, Scale::None), (1e6, Scale::ZScore)]
    {
        let value = |at: usize| offset + f64::from(cell(at / 5, at % 5));
        let views = Views::new(vec![View::dense("x", 5, (0..5 * n).map(value).collect::<Vec<_>>()).unwrap()])
            .unwrap();
        let fit = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).assess(false).fit(&views).unwrap();
        let load = Load::new(&views, &[fit.model.views[0].scaling.clone()], 3).unwrap();
        let (scaled, mut buffer, mut row) = (load.view(0), Buffer::default(), Vec::new());
        let terms = scaled.store_terms();
        let block = load.read(0, 0..n, &mut buffer).unwrap();
        for i in 0..n {
            scaled.store(&block, (i, i), &mut row);
            for (f, [m, c, centre]) in terms.iter().enumerate() {
                let own = if *c == 0.0 { 0.0 } else { (value(5 * i + f) - m) * c };
                assert_eq!(
                    (own * scaled.store_factor(i) - centre).to_bits(),
                    row[f].to_bits(),
                    "{scale} {i} {f}"
                );
            }
        }
    }
}
