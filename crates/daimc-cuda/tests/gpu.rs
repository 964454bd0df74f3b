//! Comparisons of a GPU with the CPU. Without a GPU these tests print the reason and pass.

use std::sync::Arc;

use daimc::accelerator::{Accelerator, Load, Use};
use daimc::datasets::digit;
use daimc::source::{Buffer, MISSING};
use daimc::{
    Bases, Cpu, Daimc, Descent, Matrix, Neighbours, Preparation, Prepared, Scale, Scaling, Shard, Solver,
    Stop, Totals, VStep, View, Views, metrics, simulate,
};
use daimc_cuda::{Precision, open};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Opens the first GPU, or prints why it cannot.
fn gpu(precision: Precision) -> Option<Arc<dyn Accelerator>> {
    match open(0, precision) {
        Ok(gpu) => Some(gpu),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Views of every kind, with missing rows.
struct Case {
    instances: usize,
    latent: usize,
    /// For each view the number of features, whether it is sparse, and the share of missing rows.
    views: Vec<(usize, bool, f64)>,
    scale: Scale,
    offset: f64,
    /// The share of missing cells in dense views.
    holes: f64,
    single: bool,
    seed: u64,
}

impl Case {
    fn views(&self, single: bool) -> Views<'static> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let cluster: Vec<usize> = (0..self.instances).map(|_| rng.random_range(0..self.latent)).collect();
        let rates: Vec<f64> = self.views.iter().map(|view| view.2).collect();
        let mut present: Vec<Vec<bool>> = rates
            .iter()
            .map(|rate| (0..self.instances).map(|_| rng.random::<f64>() >= *rate).collect())
            .collect();
        // Every instance is present in at least one view.
        for i in 0..self.instances {
            if !present.iter().any(|view| view[i]) {
                present[i % rates.len()][i] = true;
            }
        }
        let views =
            self.views.iter().zip(&present).enumerate().map(|(number, (&(features, sparse, _), present))| {
                let centres = Matrix::from_fn(self.latent, features, |_, _| rng.random::<f64>() * 2.0);
                let mut value = |i: usize, f: usize| {
                    let kept = !sparse || rng.random::<f64>() < 0.2;
                    let noise = rng.random::<f64>() - 0.5;
                    if !sparse && f > 0 && rng.random::<f64>() < self.holes {
                        f64::NAN
                    } else if kept {
                        centres[(cluster[i], f)] + noise + self.offset
                    } else {
                        0.0
                    }
                };
                // The same numbers in both precisions.
                let values = Matrix::from_fn(self.instances, features, |i, f| match value(i, f) {
                    value if self.single => f64::from(value as f32),
                    value => value,
                });
                view(&format!("view {number}"), &values, sparse, single).mask(present).unwrap()
            });
        Views::new(views.collect()).unwrap()
    }
}

fn view(name: &str, values: &Matrix, sparse: bool, single: bool) -> View<'static> {
    let features = values.columns();
    if !sparse {
        return if single {
            View::dense(name, features, values.values().iter().map(|&x| x as f32).collect::<Vec<_>>())
                .unwrap()
        } else {
            View::dense(name, features, values.values().to_vec()).unwrap()
        };
    }
    let (mut offsets, mut columns, mut entries) = (vec![0], Vec::new(), Vec::new());
    for row in values.iter_rows() {
        for (f, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(f as u32);
            entries.push(*value);
        }
        offsets.push(columns.len());
    }
    if single {
        let entries: Vec<f32> = entries.iter().map(|&x| x as f32).collect();
        View::sparse(name, features, offsets, columns, entries).unwrap()
    } else {
        View::sparse(name, features, offsets, columns, entries).unwrap()
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let apart = square(&mut a.iter().zip(b).map(|(a, b)| a - b));
    apart / square(&mut b.iter().copied()).max(f64::MIN_POSITIVE)
}

fn apart(one: &Totals, other: &Totals) -> f64 {
    let pairs = one.gram.iter().zip(&other.gram).chain(one.cross.iter().zip(&other.cross));
    let matrices = pairs.map(|(a, b)| distance(a.values(), b.values()));
    let sums = distance(&one.column_sums, &other.column_sums).max(distance(&one.holes, &other.holes));
    matrices.fold(sums, f64::max)
}

/// The preparations and scalings of the views in a fit.
fn prepared(views: &Views<'_>, case: &Case) -> (Vec<Preparation>, Vec<Scaling>) {
    let fit =
        Daimc::new(case.latent).scale(case.scale).neighbours(Neighbours::Off).assess(false).max_iterations(1);
    fit.fit(views).unwrap().model.views.into_iter().map(|view| (view.preparation, view.scaling)).unzip()
}

/// Relative differences between results.
struct Differences {
    /// Between GPU and CPU after updates of V from the same start.
    updated: f64,
    /// Between the GPU and the CPU in double precision after solving V to optimality.
    optimal: f64,
    /// Between the CPU in the precision of the data and in double precision, likewise.
    cpu: f64,
}

fn differences(gpu: &dyn Accelerator, case: &Case) -> Differences {
    let (views, exact, stop) = (case.views(case.single), case.views(false), Stop::new());
    let (preparations, scalings) = prepared(&views, case);
    let views = Prepared::new(&views, &preparations).unwrap();
    let exact = Prepared::new(&exact, &preparations).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(case.seed + 1);
    let first = Matrix::from_fn(case.instances, case.latent, |_, _| rng.random::<f64>() + 0.01);
    let mut cpu = Cpu::new(&views, &scalings, case.latent).unwrap();
    let mut precise = Cpu::new(&exact, &scalings, case.latent).unwrap();
    let mut on_gpu = gpu.hold(Load::new(&views, &scalings, case.latent).unwrap()).unwrap().shard().unwrap();
    let statistics = cpu.start(first.clone(), &stop).unwrap();
    let begun = on_gpu.start(first.clone(), &stop).unwrap().whole().unwrap();
    let mut found =
        Differences { updated: apart(&begun, &statistics.clone().whole().unwrap()), optimal: 0.0, cpu: 0.0 };
    let daimc = Daimc::new(case.latent);
    let mut descent = Descent::new(daimc.options(), cpu.squares(), Bases::Fitted, statistics).unwrap();
    let coordinate = |passes| VStep::Update { solver: Solver::Coordinate, passes };
    for step in [coordinate(2), coordinate(5), VStep::Solve { after: Some(2) }, VStep::Solve { after: None }]
    {
        // All start from the same V.
        on_gpu.hold(cpu.latent(), &stop).unwrap();
        precise.start(cpu.latent(), &stop).unwrap();
        let factors = descent.solve().unwrap().clone();
        let own = cpu.sweep(&factors, step, &stop).unwrap();
        let other = on_gpu.sweep(&factors, step, &stop).unwrap().whole().unwrap();
        let true_one = precise.sweep(&factors, step, &stop).unwrap().whole().unwrap();
        let between = |(totals, v): (&Totals, &Matrix), (others, w): (&Totals, &Matrix)| {
            apart(totals, others).max(distance(v.values(), w.values()))
        };
        let whole = own.clone().whole().unwrap();
        if matches!(step, VStep::Update { .. }) {
            found.updated = found.updated.max(between((&other, &on_gpu.latent()), (&whole, &cpu.latent())));
        } else {
            let truth = (&true_one, &precise.latent());
            found.optimal = found.optimal.max(between((&other, &on_gpu.latent()), truth));
            found.cpu = found.cpu.max(between((&whole, &cpu.latent()), truth));
        }
        descent.absorb(own).unwrap();
    }
    found
}

fn cases(single: bool) -> Vec<Case> {
    let case = |instances, latent, views: &[(usize, bool, f64)], scale, offset| Case {
        instances,
        latent,
        views: views.to_vec(),
        scale,
        offset,
        holes: 0.0,
        single,
        seed: instances as u64 + latent as u64,
    };
    vec![
        case(300, 3, &[(5, false, 0.0)], Scale::None, 0.0),
        case(1000, 20, &[(37, false, 0.0), (64, false, 0.0)], Scale::None, 0.0),
        case(1500, 7, &[(130, false, 0.3), (33, false, 0.5), (1, false, 0.2)], Scale::ZScore, 0.0),
        case(900, 24, &[(300, false, 0.4), (21, true, 0.0)], Scale::Unit, 0.0),
        case(2000, 12, &[(400, true, 0.2), (50, true, 0.6)], Scale::Unit, 0.0),
        case(700, 50, &[(65, false, 0.0), (80, true, 0.3)], Scale::None, 0.0),
        case(600, 100, &[(129, false, 0.1), (257, false, 0.0)], Scale::None, 0.0),
        case(800, 200, &[(220, false, 0.0)], Scale::None, 0.0),
        case(1100, 10, &[(40, false, 0.2)], Scale::None, 1e4),
        case(4097, 33, &[(1030, false, 0.0)], Scale::ZScore, 3.0),
        Case { holes: 0.1, ..case(700, 6, &[(30, false, 0.2), (25, false, 0.1)], Scale::ZScore, 0.0) },
        Case { holes: 0.6, ..case(500, 40, &[(50, false, 0.0), (21, true, 0.0)], Scale::Unit, 0.0) },
    ]
}

fn described(case: &Case, Differences { updated, optimal, cpu }: &Differences) -> String {
    let Case { instances, views, latent, .. } = case;
    format!(
        "{instances} × {views:?}, K = {latent}: updated {updated:.1e}, optimal {optimal:.1e} (CPU {cpu:.1e})"
    )
}

#[test]
fn gpu_matches_cpu_in_double_precision() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    for case in cases(false) {
        let found = differences(&*gpu, &case);
        eprintln!("{}", described(&case, &found));
        assert!(found.updated < 1e-10 && found.optimal < 1e-10, "{}", described(&case, &found));
    }
}

#[test]
fn gpu_matches_cpu_in_single_precision() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    for case in cases(true) {
        let found = differences(&*gpu, &case);
        eprintln!("{}", described(&case, &found));
        // The effect of rounding on the optimum depends on the bases. Split products have two bits less than those of the CPU, so
        // it may be four times as large.
        let optimal = found.optimal < 1e-4_f64.max(4.0 * found.cpu);
        assert!(found.updated < 1e-4 && optimal, "{}", described(&case, &found));
    }
}

#[test]
fn gpu_finds_the_true_neighbours() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    for (single, offset, missing) in [(true, 0.0, 0.0), (true, 1e3, 0.3), (false, 0.0, 0.2)] {
        let case = Case {
            instances: 1500,
            latent: 5,
            views: vec![(37, false, missing), (3, false, 0.0)],
            scale: Scale::ZScore,
            offset,
            holes: 0.0,
            single,
            seed: 9,
        };
        let views = case.views(single);
        let (_, scalings) = prepared(&views, &case);
        assert_nearest(&*gpu, &views, &scalings);
    }
}

#[test]
fn gpu_finds_the_true_neighbours_where_half_precision_does_not_suffice() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    for (instances, features) in [(700, 16), (1500, 150)] {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let centres = Matrix::from_fn(7, features, |_, _| rng.random::<f64>() - 0.5);
        let values = (0..instances * features).map(|i| {
            (centres[(i / features % 7, i % features)] + 0.004 * (rng.random::<f64>() - 0.5)) as f32
        });
        let views = vec![View::dense("tight", features, values.collect::<Vec<_>>()).unwrap()];
        let views = Views::new(views).unwrap();
        assert_nearest(&*gpu, &views, &unscaled(&views));
    }
}

/// Compares the nearest 10 of a view with those by distances in double precision.
fn assert_nearest(gpu: &dyn Accelerator, views: &Views<'_>, scalings: &[Scaling]) {
    let instances = views.instances();
    let resident = gpu.hold(Load::new(views, scalings, 5).unwrap()).unwrap();
    let found = resident.nearest(0, 10, &Stop::new()).unwrap().unwrap();
    let load = Load::new(views, scalings, 5).unwrap();
    let (scaled, mut buffer, mut row) = (load.view(0), Buffer::default(), Vec::new());
    let block = load.read(0, 0..instances, &mut buffer).unwrap();
    let rows: Vec<Option<Vec<f64>>> = (0..instances)
        .map(|i| {
            let at = block.index.row(i)?;
            scaled.store(&block, (i, at), &mut row);
            Some(row.clone())
        })
        .collect();
    for i in 0..instances {
        let own = &found.others[10 * i..10 * i + 10];
        let Some(x) = &rows[i] else {
            assert!(own.iter().all(|&other| other == MISSING));
            continue;
        };
        let square =
            |j: usize| rows[j].as_ref().map(|y| x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum::<f64>());
        let mut all: Vec<f64> = (0..instances).filter(|&j| j != i).filter_map(square).collect();
        all.sort_by(f64::total_cmp);
        for (rank, &other) in own.iter().enumerate() {
            let reported = f64::from(found.squares[10 * i + rank]);
            assert!(
                (reported - all[rank]).abs() < 1e-4 * all[rank],
                "{i}, {rank}: {reported} and {}",
                all[rank]
            );
            assert!((square(other as usize).unwrap() - reported).abs() < 1e-4 * reported);
        }
    }
}

/// The scalings of views that are not scaled.
fn unscaled(views: &Views<'_>) -> Vec<Scaling> {
    let fit = Daimc::new(2).scale(Scale::None).neighbours(Neighbours::Off).assess(false).max_iterations(1);
    fit.fit(views).unwrap().model.views.into_iter().map(|view| view.scaling).collect()
}

#[test]
fn equal_rows_have_the_first_rows_as_neighbours() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    let mut values = vec![1.0_f32; 3000 * 8];
    values[8 * 1234] = 2.0;
    let views = Views::new(vec![View::dense("same", 8, values).unwrap()]).unwrap();
    let resident = gpu.hold(Load::new(&views, &unscaled(&views), 2).unwrap()).unwrap();
    let found = resident.nearest(0, 3, &Stop::new()).unwrap().unwrap();
    assert_eq!(found.others[..9], [1, 2, 3, 0, 2, 3, 0, 1, 3]);
    assert_eq!(found.others[3 * 1234..3 * 1235], [0, 1, 2]);
    assert_eq!(found.others[3 * 2999..], [0, 1, 2]);
}

#[test]
fn a_fit_on_a_gpu_finds_the_clusters_of_the_cpu() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    let (views, truth) = digit();
    let views = Views::new(views).unwrap();
    for rate in [0.0, 0.3] {
        let present = simulate::missing(views.instances(), &vec![rate; views.len()], 1).unwrap();
        let masked = views.masked(&present).unwrap();
        let fit = Daimc::new(10).seed(3).assess(false);
        let cpu = fit.clone().fit(&masked).unwrap();
        let on_gpu = fit.accelerator(gpu.clone(), Use::Always).fit(&masked).unwrap();
        assert_eq!(on_gpu.device.name, gpu.name());
        let same = metrics::accuracy(&cpu.labels, &on_gpu.labels).unwrap();
        let accuracy = |labels: &[usize]| metrics::accuracy(&truth, labels).unwrap();
        eprintln!(
            "{rate}: {same:.4} equal, {:.4} and {:.4}",
            accuracy(&cpu.labels),
            accuracy(&on_gpu.labels)
        );
        assert!(same > 0.99, "{same}");
    }
}

#[test]
fn runs_are_reproducible_and_leak_nothing() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    let case = &cases(true)[2];
    let views = case.views(case.single);
    let fit = Daimc::new(case.latent).neighbours(Neighbours::Off).assess(false).max_iterations(5);
    let fit = fit.accelerator(gpu, Use::Always);
    let first = fit.fit(&views).unwrap();
    for _ in 0..100 {
        let again = fit.fit(&views).unwrap();
        assert_eq!(again.latent, first.latent);
        assert_eq!(again.labels, first.labels);
    }
}

#[test]
fn unsupported_options_are_refused() {
    let Some(gpu) = gpu(Precision::Single) else { return };
    let case = &cases(true)[0];
    let views = case.views(case.single);
    let wide = Daimc::new(3).latent(300).accelerator(gpu, Use::Always).fit(&views).unwrap_err().to_string();
    assert!(wide.contains("300 columns"), "{wide}");
}

#[test]
fn a_missing_gpu_is_an_error_with_a_reason() {
    if let Err(reason) = open(0, Precision::Single) {
        assert!(reason.contains("driver") || reason.contains("GPU"), "{reason}");
    }
    if let Err(reason) = open(1000, Precision::Single) {
        assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    }
}
