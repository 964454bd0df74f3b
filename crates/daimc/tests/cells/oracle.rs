//! Each step against plain loops over the observed cells.

use daimc::steps::alignment::ETA;
use daimc::{
    Bases, Cpu, Daimc, Descent, Initialisation, Matrix, Neighbours, Prepared, Scale, Shard, Solver, Stop,
    VStep,
};
use daimc_naive::{self as naive, Mat};
use proptest::prelude::*;

use crate::data::{Table, tables, views};
use crate::made::start;

const SCALES: [Scale; 7] = [
    Scale::None,
    Scale::Unit,
    Scale::MinMax,
    Scale::MinMaxUnit,
    Scale::ZScore,
    Scale::ZScoreUnit,
    Scale::TfIdf,
];

/// A view in the paper's orientation, features × instances, and its observed cells.
struct View {
    x: Mat,
    w: Mat,
    there: Vec<Vec<bool>>,
}

impl View {
    /// Missing cells hold the scaled mean of their feature, in the length of their row.
    fn new(table: &Table, scaling: &daimc::Scaling, fill: &[f64]) -> Self {
        let n = table.present.len();
        let filled = Table {
            values: (0..n * table.features)
                .map(|at| {
                    let x = table.values[at];
                    let mean = fill.get(at % table.features).copied().unwrap_or(0.0);
                    let mean = if table.single { f64::from(mean as f32) } else { mean };
                    if x.is_nan() { mean } else { x }
                })
                .collect(),
            ..table.clone()
        };
        let (scaled, by_feature) = (table.scaled(scaling), filled.scaled(&no_rows(scaling)));
        let own_factor = |i: usize| {
            // From an observed nonzero cell; a row of zeros has the weight of the view.
            let pairs = (0..table.features).map(|f| (scaled[i][f], by_feature[i][f]));
            let factor =
                pairs.filter(|(x, plain)| !x.is_nan() && *plain != 0.0).map(|(x, plain)| x / plain).next();
            factor.unwrap_or(scaling.weight)
        };
        let factors: Vec<f64> = (0..n).map(own_factor).collect();
        let taken = |f: usize| scaling.factor.get(f).is_none_or(|factor| *factor != 0.0);
        let x =
            naive::build(
                table.features,
                n,
                |f, i| {
                    if table.shows(i) { by_feature[i][f] * factors[i] } else { 0.0 }
                },
            );
        let there = (0..table.features)
            .map(|f| (0..n).map(|i| table.is_there(i, f) || !taken(f)).collect())
            .collect();
        let shown: Vec<f64> = (0..n).map(|i| f64::from(u8::from(table.shows(i)))).collect();
        Self { x, w: naive::diagonal(&shown), there }
    }

    /// Fills missing cells with the prediction of the model.
    fn fill(&mut self, u: &Mat, v: &Mat) {
        for (f, row) in self.x.iter_mut().enumerate() {
            for (i, x) in row.iter_mut().enumerate().filter(|(i, _)| !self.there[f][*i]) {
                *x = (0..u[f].len()).map(|k| u[f][k] * v[i][k]).sum();
            }
        }
    }

    /// Whether some column of V is zero for all instances of the view.
    fn has_dead_column(&self, v: &Mat) -> bool {
        let shown = || v.iter().enumerate().filter(|(i, _)| self.w[*i][*i] > 0.0);
        (0..v[0].len()).any(|k| shown().all(|(_, row)| row[k] == 0.0)) || shown().count() <= v[0].len()
    }

    /// The loss of the observed cells.
    fn loss(&self, u: &Mat, v: &Mat) -> f64 {
        let mut loss = 0.0;
        for (f, row) in self.x.iter().enumerate() {
            for (i, x) in row.iter().enumerate().filter(|(i, _)| self.there[f][*i] && self.w[*i][*i] > 0.0) {
                let made: f64 = (0..u[f].len()).map(|k| u[f][k] * v[i][k]).sum();
                loss += (x - made).powi(2);
            }
        }
        loss
    }
}

/// The same scaling without row factors.
fn no_rows(scaling: &daimc::Scaling) -> daimc::Scaling {
    let mut plain = scaling.clone();
    plain.scale = Scale::None;
    plain.weight = 1.0;
    plain
}

fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

fn close(found: &Mat, expected: &Mat, tolerance: f64, case: &str) {
    let difference = naive::relative_difference(found, expected);
    assert!(difference < tolerance, "{case}: {difference:e}");
}

#[derive(Clone, Debug)]
struct Case {
    n: usize,
    shapes: Vec<(usize, bool)>,
    latent: usize,
    gone: [f64; 2],
    scale: Scale,
    equal_weight: bool,
    solver: Solver,
    passes: usize,
    alpha: f64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let shapes = prop::collection::vec((1_usize..7, any::<bool>()), 1..4);
    let of_fit = (prop::sample::select(SCALES.to_vec()), any::<bool>(), any::<bool>(), 1_usize..4);
    let gone = [0.0..0.5_f64, 0.0..0.6_f64];
    (8_usize..40, shapes, 1_usize..4, gone, of_fit, -3.0..2.0_f64, any::<u64>()).prop_map(
        |(n, shapes, latent, gone, (scale, equal_weight, published, passes), alpha, seed)| {
            let solver = if published { Solver::Multiplicative } else { Solver::Coordinate };
            let alpha = 10_f64.powf(alpha);
            // In a row whose observed cells are all close to their minimum, the mean that fills the others is so much
            // longer than these cells that single precision has no digits left for them.
            let exact = |(features, single)| (features, single && scale != Scale::MinMaxUnit);
            let shapes = shapes.into_iter().map(exact).collect();
            Case { n, shapes, latent, gone, scale, equal_weight, solver, passes, alpha, seed }
        },
    )
}

impl Case {
    fn fit(&self) -> Daimc {
        Daimc::new(self.latent)
            .alpha(self.alpha)
            .scale(self.scale)
            .equal_weight(self.equal_weight)
            .solver(self.solver)
            .passes(self.passes)
            .neighbours(Neighbours::Off)
    }

    fn tolerance(&self) -> f64 {
        // Differences of values around zero have the rounding errors of the values.
        let around_zero = matches!(self.scale, Scale::ZScore | Scale::ZScoreUnit);
        match (self.shapes.iter().any(|(_, single)| *single), around_zero) {
            (false, _) => 1e-6,
            (true, false) => 1e-2,
            (true, true) => 5e-2,
        }
    }

    fn check(&self) {
        let Self { n, latent, solver, passes, .. } = *self;
        let (fit, tolerance) = (self.fit(), self.tolerance());
        let tables = tables(n, &self.shapes, latent, self.gone, self.seed);
        let views = views(&tables);
        let learnt = fit.clone().initialisation(Initialisation::Paper).max_iterations(1).restarts(1);
        let model = learnt.fit(&views).unwrap().model;
        let preparations: Vec<_> = model.views.iter().map(|view| view.preparation.clone()).collect();
        let scalings: Vec<_> = model.views.iter().map(|view| view.scaling.clone()).collect();
        let prepared = Prepared::new(&views, &preparations).unwrap();
        let mut shard = Cpu::new(&prepared, &scalings, latent).unwrap();
        let first = start(&(0..n).collect::<Vec<_>>(), latent, self.seed);
        let stop = Stop::new();
        let statistics = shard.start(first.clone(), &stop).unwrap();
        let mut descent = Descent::new(fit.options(), shard.squares(), Bases::Fitted, statistics).unwrap();

        let known = tables.iter().zip(&model.views);
        let mut literal = Literal {
            views: known
                .map(|(table, view)| View::new(table, &view.scaling, &view.preparation.fill))
                .collect(),
            us: Vec::new(),
            v: plain(&first),
            bs: descent.alignments().iter().map(plain).collect(),
        };
        let squares = literal.squares();
        for (found, expected) in shard.squares().iter().zip(&squares) {
            assert!((found - expected).abs() <= tolerance * expected, "Σ‖x‖²: {found}, not {expected}");
        }
        let scale = squares.iter().sum::<f64>();
        for step in 0..4 {
            let case = format!("step {step}, {self:?}");
            // Eq. 15 has no solution if a column of V is zero in a view.
            if literal.views.iter().any(|view| view.has_dead_column(&literal.v)) {
                return;
            }
            literal.bases(self.alpha, fit.options().beta);
            let factors = descent.solve().unwrap().clone();
            for view in 0..tables.len() {
                close(&plain(&factors.bases[view]), &literal.us[view], tolerance, &format!("U, {case}"));
                close(
                    &plain(&descent.alignments()[view]),
                    &literal.bs[view],
                    tolerance,
                    &format!("B, {case}"),
                );
            }
            let before = literal.loss();
            literal.latent(solver, passes);
            assert!(literal.loss() <= before * (1.0 + 1e-9), "{case}: the loss rises from {before}");
            let statistics = shard.sweep(&factors, VStep::Update { solver, passes }, &stop).unwrap();
            close(&plain(&shard.latent()), &literal.v, tolerance, &format!("V, {case}"));

            let found = descent.absorb(statistics).unwrap();
            (literal.us, literal.v) = naive::normalise(&literal.us, &literal.v);
            let loss = literal.loss();
            assert!(
                (found.loss - loss).abs() < tolerance * scale,
                "loss, {case}: {}, not {loss}",
                found.loss
            );
            let aligned = naive::alignment(&literal.us, &literal.bs);
            assert!((found.alignment - aligned).abs() < tolerance * (1.0 + aligned), "alignment, {case}");
            literal.take(&descent, &shard);
        }
        let statistics = shard.sweep(descent.factors(), VStep::Solve { after: None }, &stop).unwrap();
        let objective = descent.finish(statistics).unwrap();
        literal.take(&descent, &shard);
        let loss = literal.loss();
        assert!((objective.loss - loss).abs() < tolerance * scale, "settled: {}, not {loss}", objective.loss);
        literal.optimal(tolerance, &format!("{self:?}"));
    }
}

/// The algorithm in plain loops.
struct Literal {
    views: Vec<View>,
    us: Vec<Mat>,
    v: Mat,
    bs: Vec<Mat>,
}

impl Literal {
    /// `Σ ‖x‖²` of the observed cells of each view.
    fn squares(&self) -> Vec<f64> {
        let nothing = |rows: usize| naive::build(rows, 1, |_, _| 0.0);
        self.views.iter().map(|view| view.loss(&nothing(view.x.len()), &nothing(self.v.len()))).collect()
    }

    fn loss(&self) -> f64 {
        self.views.iter().zip(&self.us).map(|(view, u)| view.loss(u, &self.v)).sum()
    }

    /// Eq. 14 and 26.
    fn bases(&mut self, alpha: f64, beta: f64) {
        let views = self.views.iter().zip(&self.bs);
        self.us =
            views.map(|(own, b)| naive::update_u_kronecker(&own.x, &own.w, &self.v, b, alpha)).collect();
        let bs = self.us.iter().zip(&self.bs);
        self.bs = bs.map(|(u, b)| naive::update_b_dense(u, b, beta, ETA)).collect();
    }

    /// The V step of rows filled with the current prediction of the model.
    fn latent(&mut self, solver: Solver, passes: usize) {
        self.fill();
        let all = self.views.iter().map(|view| (view.x.clone(), view.w.clone()));
        let (xs, ws): (Vec<Mat>, Vec<Mat>) = all.unzip();
        for _ in 0..passes {
            self.v = match solver {
                Solver::Multiplicative => naive::update_v_multiplicative(&xs, &ws, &self.us, &self.v),
                _ => naive::update_v_coordinate(&xs, &ws, &self.us, &self.v),
            };
        }
    }

    fn fill(&mut self) {
        self.views.iter_mut().zip(&self.us).for_each(|(view, u)| view.fill(u, &self.v));
    }

    /// Takes the result of the code, so that errors do not accumulate over the steps.
    fn take(&mut self, descent: &Descent, shard: &dyn Shard) {
        let factors = descent.factors();
        self.us = factors.bases.iter().map(plain).collect();
        self.bs = descent.alignments().iter().map(plain).collect();
        let found = shard.latent();
        self.v = naive::build(found.rows(), found.columns(), |i, k| found[(i, k)] * factors.scale[k]);
        self.fill();
    }
}

/// Whether coordinate descent over the observed cells of a row converges from zero.
fn comes_to_rest(gram: &Mat, right: &[f64]) -> bool {
    let mut v = vec![0.0_f64; right.len()];
    for _ in 0..900 {
        let (mut change, mut largest) = (0.0_f64, 0.0_f64);
        for k in 0..v.len() {
            let made: f64 = gram[k].iter().zip(&v).map(|(g, v)| g * v).sum();
            let new = if gram[k][k] > 0.0 { (v[k] + (right[k] - made) / gram[k][k]).max(0.0) } else { v[k] };
            change = change.max((new - v[k]).abs());
            largest = largest.max(new);
            v[k] = new;
        }
        if change <= 1e-9 * largest {
            return true;
        }
    }
    false
}

impl Literal {
    /// The conditions of Karush, Kuhn and Tucker for each row of V: the gradient over the observed cells is zero for
    /// nonzero entries, and not negative otherwise. Returns the share of the rows that are checked: those whose
    /// coordinate descent converges.
    fn optimal(&self, tolerance: f64, case: &str) -> f64 {
        let mut at_rest = 0;
        for (i, row) in self.v.iter().enumerate() {
            let latent = row.len();
            let (mut gram, mut right) = (naive::build(latent, latent, |_, _| 0.0), vec![0.0; latent]);
            let mut size = vec![0.0; latent];
            for (view, u) in self.views.iter().zip(&self.us).filter(|(view, _)| view.w[i][i] > 0.0) {
                for (f, u) in u.iter().enumerate().filter(|(f, _)| view.there[*f][i]) {
                    for k in 0..latent {
                        right[k] += u[k] * view.x[f][i];
                        // Scaled values are about 1, and have the rounding errors of 1, even if a value is zero.
                        size[k] += u[k].abs() * (view.x[f][i].abs() + 1e-2);
                        (0..latent).for_each(|l| gram[k][l] += u[k] * u[l]);
                        (0..latent).for_each(|l| size[k] += (u[k] * u[l] * row[l]).abs());
                    }
                }
            }
            if !comes_to_rest(&gram, &right) {
                continue;
            }
            at_rest += 1;
            for k in 0..latent {
                let gradient = gram[k].iter().zip(row).map(|(g, v)| g * v).sum::<f64>() - right[k];
                let slack = tolerance * (size[k] + 1e-12);
                assert!(gradient >= -slack, "row {i}, {k}: {gradient} of {}, {case}", size[k]);
                assert!(
                    row[k] == 0.0 || gradient <= slack,
                    "row {i}, {k}: {gradient} of {}, {case}",
                    size[k]
                );
            }
        }
        f64::from(at_rest) / self.v.len() as f64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_step_is_that_of_plain_loops_over_the_cells_that_are_there(case in case()) {
        case.check();
    }
}

#[test]
fn rows_that_lack_cells_are_optimal_for_those_that_they_have() {
    for (seed, scale) in SCALES.into_iter().enumerate() {
        for single in [false, true] {
            let tables = tables(80, &[(25, single), (15, false)], 3, [0.3, 0.4], seed as u64);
            let fit = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&views(&tables)).unwrap();
            let known = tables.iter().zip(&fit.model.views);
            let literal = Literal {
                views: known
                    .map(|(table, view)| View::new(table, &view.scaling, &view.preparation.fill))
                    .collect(),
                us: fit.model.views.iter().map(|view| plain(&view.basis)).collect(),
                v: plain(&fit.model.transform(&views(&tables)).unwrap()),
                bs: Vec::new(),
            };
            // Rows are solved until they change by less than 1e-9; in complete rows, sums in single precision limit the
            // accuracy.
            let tolerance = if single { 1e-5 } else { 1e-7 };
            let checked = literal.optimal(tolerance, &format!("{scale}, single: {single}"));
            assert!(checked > 0.3, "{scale}: of {checked} of the rows");
        }
    }
}

/// Shift, factor and mean squares from the observed values, and the fill values.
#[test]
fn scalings_are_those_of_the_values_that_are_there() {
    let tables = tables(30, &[(5, false)], 3, [0.2, 0.4], 3);
    let table = &tables[0];
    let views = views(&tables);
    for scale in SCALES {
        let fitted = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&views).unwrap();
        let own = &fitted.model.views[0];
        let mut missing = 0;
        let mut squares = Vec::new();
        for f in 0..5 {
            let here: Vec<f64> = (0..30).filter(|&i| table.is_there(i, f)).map(|i| table.row(i)[f]).collect();
            let lacks = (0..30).filter(|&i| table.shows(i) && !table.is_there(i, f)).count();
            assert_eq!(fitted.missing_cells[0].by_feature[f], lacks);
            missing += lacks;
            let count = here.len() as f64;
            let mean = here.iter().sum::<f64>() / count;
            let deviation = (here.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
            let smallest = here.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = here.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (shift, factor) = match scale {
                Scale::MinMax | Scale::MinMaxUnit => (smallest, 1.0 / (largest - smallest)),
                Scale::ZScore | Scale::ZScoreUnit => (mean, 1.0 / deviation),
                _ => (0.0, 1.0),
            };
            let found = (
                own.scaling.shift.get(f).copied().unwrap_or(0.0),
                own.scaling.factor.get(f).copied().unwrap_or(1.0),
            );
            assert!(
                (found.0 - shift).abs() < 1e-12 && (found.1 / factor - 1.0).abs() < 1e-12,
                "{scale}: {found:?}"
            );
            assert!((own.preparation.fill[f] - mean).abs() < 1e-12, "{scale}");
            squares.push(here.iter().map(|x| ((x - shift) * factor).powi(2)).sum::<f64>() / count);
        }
        assert_eq!(fitted.missing_cells[0].cells(), missing);
        assert_eq!(fitted.missing_cells[0].present, (0..30).filter(|&i| table.shows(i)).count());
        if own.scaling.unit_rows() {
            let ratio = squares[0] / own.scaling.squares[0];
            for (found, expected) in own.scaling.squares.iter().zip(&squares) {
                assert!((found * ratio / expected - 1.0).abs() < 1e-9, "{scale}");
            }
        }
        // Each row counts by its observed fraction.
        let scaled = table.scaled(&own.scaling);
        let (mut sum, mut shown) = (0.0, 0.0);
        for i in (0..30).filter(|&i| table.shows(i)) {
            let square = |f: usize| own.scaling.squares.get(f).copied().unwrap_or(1.0);
            let here: f64 = (0..5).filter(|&f| table.is_there(i, f)).map(square).sum();
            shown += here / (0..5).map(square).sum::<f64>();
            sum += scaled[i].iter().filter(|x| !x.is_nan()).map(|x| x * x).sum::<f64>();
        }
        assert!((sum / shown - 1.0).abs() < 1e-9, "{scale}: {sum}, not {shown}");
    }
}
