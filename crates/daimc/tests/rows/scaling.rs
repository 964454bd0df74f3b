//! Scaling is never written down, only folded into the products: here it is written down, and compared.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, Matrix, Model, Preset, Scale, Scaling, Solver, View, Views, simulate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const APPLIED: [Scale; 7] = [
    Scale::None,
    Scale::Unit,
    Scale::MinMax,
    Scale::MinMaxUnit,
    Scale::ZScore,
    Scale::ZScoreUnit,
    Scale::TfIdf,
];

/// Some rows with features in columns, of which some are missing.
#[derive(Clone)]
struct Rows {
    features: usize,
    values: Vec<f64>,
    present: Vec<bool>,
}

impl Rows {
    /// Rows around the centres of clusters; `value` makes a feature of a number around zero.
    fn around(truth: &[usize], features: usize, seed: u64, value: impl Fn(usize, f64) -> f64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let clusters = truth.iter().max().unwrap() + 1;
        let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(-1.0..1.0)).collect();
        let at = |i: usize| centres[truth[i / features] * features + i % features];
        let values = (0..truth.len() * features).map(|i| at(i) + rng.random_range(-0.4..0.4));
        let values = values.enumerate().map(|(i, x)| value(i % features, x)).collect();
        Self { features, values, present: vec![true; truth.len()] }
    }

    /// Word counts, mostly zero; each cluster has words of its own.
    fn counts(truth: &[usize], features: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let clusters = truth.iter().max().unwrap() + 1;
        let value = |i: usize| {
            let own = i % features % clusters == truth[i / features];
            let here = rng.random::<f64>() < if own { 0.35 } else { 0.04 };
            if here { f64::from(rng.random_range(1..5_u8)) } else { 0.0 }
        };
        let values = (0..truth.len() * features).map(value).collect();
        Self { features, values, present: vec![true; truth.len()] }
    }

    /// The same rows, some of them missing, with values that must not be looked at.
    fn missing(mut self, present: &[bool]) -> Self {
        self.present = present.to_vec();
        for (row, &present) in self.values.chunks_mut(self.features).zip(present) {
            if !present {
                row.fill(1e12);
            }
        }
        self
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.features..(i + 1) * self.features]
    }

    fn seen(&self) -> impl Iterator<Item = &[f64]> {
        let rows = self.values.chunks(self.features).zip(&self.present);
        rows.filter(|(_, present)| **present).map(|(row, _)| row)
    }

    fn column(&self, f: usize) -> Vec<f64> {
        self.seen().map(|row| row[f]).collect()
    }

    fn dense(&self, name: &str) -> View<'static> {
        View::dense(name, self.features, self.values.clone()).unwrap().mask(&self.present).unwrap()
    }

    fn dense_f32(&self, name: &str) -> View<'static> {
        let values: Vec<f32> = self.values.iter().map(|&value| value as f32).collect();
        View::dense(name, self.features, values).unwrap().mask(&self.present).unwrap()
    }

    fn compressed(&self) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
        let (mut offsets, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
        for row in self.values.chunks(self.features) {
            for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
                columns.push(column);
                stored.push(value);
            }
            offsets.push(columns.len());
        }
        (offsets, columns, stored)
    }

    fn sparse(&self, name: &str) -> View<'static> {
        let (offsets, columns, values) = self.compressed();
        View::sparse(name, self.features, offsets, columns, values).unwrap().mask(&self.present).unwrap()
    }

    fn sparse_f32(&self, name: &str) -> View<'static> {
        let (offsets, columns, values) = self.compressed();
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        View::sparse(name, self.features, offsets, columns, values).unwrap().mask(&self.present).unwrap()
    }

    /// The rows rounded to single precision.
    fn rounded(mut self) -> Self {
        self.values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        self
    }

    /// Some of the rows.
    fn some(&self, instances: impl Iterator<Item = usize>) -> Self {
        let mut some = Self { features: self.features, values: Vec::new(), present: Vec::new() };
        for i in instances {
            some.values.extend_from_slice(self.row(i));
            some.present.push(self.present[i]);
        }
        some
    }
}

/// The definition of each scale, taken from the rows that are seen.
struct Naive {
    shift: Vec<f64>,
    factor: Vec<f64>,
    unit: bool,
}

impl Naive {
    fn fit(scale: Scale, rows: &Rows) -> Self {
        let d = rows.features;
        let n = rows.seen().count() as f64;
        let mut naive = Self { shift: vec![0.0; d], factor: vec![1.0; d], unit: false };
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        for f in 0..d {
            let column = rows.column(f);
            let low = column.iter().copied().fold(f64::INFINITY, f64::min);
            let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = low + column.iter().map(|x| x - low).sum::<f64>() / n;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let with = column.iter().filter(|x| **x != 0.0).count() as f64;
            match scale {
                Scale::MinMax | Scale::MinMaxUnit => {
                    (naive.shift[f], naive.factor[f]) = (low, inverse(high - low));
                }
                Scale::ZScore | Scale::ZScoreUnit => {
                    (naive.shift[f], naive.factor[f]) = (mean, inverse(variance.sqrt()));
                }
                Scale::TfIdf => naive.factor[f] = ((1.0 + n) / (1.0 + with)).ln() + 1.0,
                _ => {}
            }
        }
        naive.unit = matches!(scale, Scale::Unit | Scale::MinMaxUnit | Scale::ZScoreUnit | Scale::TfIdf);
        naive
    }

    fn apply(&self, rows: &Rows) -> Rows {
        let mut scaled = rows.clone();
        for row in scaled.values.chunks_mut(rows.features) {
            for (f, x) in row.iter_mut().enumerate() {
                *x = (*x - self.shift[f]) * self.factor[f];
            }
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            if self.unit && length > 0.0 {
                row.iter_mut().for_each(|x| *x /= length);
            }
        }
        scaled
    }
}

fn start(truth: &[usize], latent: usize) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    Matrix::from_fn(truth.len(), latent, |i, k| {
        rng.random_range(0.1..0.3) + f64::from(u8::from(truth[i] == k))
    })
}

/// By how much two matrices differ, as a share of the largest entry.
fn difference(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    let largest = b.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let pairs = a.values().iter().zip(b.values());
    pairs.map(|(x, y)| (x - y).abs() / largest).fold(0.0, f64::max)
}

fn truth(n: usize) -> Vec<usize> {
    Synthetic::new(n, 3).seed(5).truth()
}

/// A published fit from a start that is given, so that nothing depends on k-means.
fn given(truth: &[usize], scale: Scale, equal: bool) -> Daimc {
    let daimc = Daimc::new(3).preset(Preset::Paper).start(start(truth, 3)).max_iterations(10).tolerance(0.0);
    daimc.scale(scale).equal_weight(equal)
}

fn fit(daimc: &Daimc, views: Vec<View<'static>>) -> Model {
    daimc.fit(&Views::new(views).unwrap()).unwrap()
}

/// Two views of the same clusters with a third of the instances missing: features in different units, and word counts.
fn data(truth: &[usize]) -> [Rows; 2] {
    let present = simulate::missing(truth.len(), &[0.3, 0.3], 2).unwrap();
    let units = |f: usize, x: f64| [0.01, 0.1, 1.0, 10.0][f % 4] * (x + 0.5 * f as f64);
    let first = Rows::around(truth, 8, 1, units).missing(&present[0]);
    [first, Rows::counts(truth, 20, 2).missing(&present[1])]
}

// Against the definition.

#[test]
fn scaling_that_is_folded_in_equals_scaling_that_is_written_down() {
    for n in [90, 1500] {
        let truth = truth(n);
        let [a, b] = data(&truth);
        for scale in APPLIED {
            let written = [&a, &b].map(|rows| Naive::fit(scale, rows).apply(rows));
            for equal in [false, true] {
                for solver in [Solver::Multiplicative, Solver::Coordinate] {
                    let plain = given(&truth, Scale::None, equal).solver(solver);
                    let plain = fit(&plain, vec![written[0].dense("a"), written[1].dense("b")]);
                    let daimc = given(&truth, scale, equal).solver(solver);
                    for views in [vec![a.dense("a"), b.dense("b")], vec![a.dense("a"), b.sparse("b")]] {
                        let folded = fit(&daimc, views);
                        let difference = difference(&folded.latent, &plain.latent);
                        assert!(
                            difference < 1e-8,
                            "{scale}, equal weight {equal}, {solver:?}: {difference:e}"
                        );
                        for (folded, plain) in folded.views.iter().zip(&plain.views) {
                            let difference = self::difference(&folded.basis, &plain.basis);
                            assert!(
                                difference < 1e-7,
                                "{scale}, equal weight {equal}, {solver:?}: {difference:e}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_default_fit_folds_scaling_in_as_well() {
    let truth = truth(200);
    let [a, b] = data(&truth);
    for scale in APPLIED {
        let written = [&a, &b].map(|rows| Naive::fit(scale, rows).apply(rows));
        let daimc = Daimc::new(3).start(start(&truth, 3)).max_iterations(10).tolerance(0.0);
        let plain =
            fit(&daimc.clone().scale(Scale::None), vec![written[0].dense("a"), written[1].dense("b")]);
        let folded = fit(&daimc.scale(scale), vec![a.dense("a"), b.sparse("b")]);
        for (folded, plain) in folded.history.iter().zip(&plain.history) {
            assert!((folded.total - plain.total).abs() < 1e-8 * plain.total, "{scale}: {folded:?} {plain:?}");
        }
    }
}

#[test]
fn statistics_are_those_of_the_present_rows() {
    let truth = truth(200);
    let [a, b] = data(&truth);
    let close = |found: &[f64], expected: &[f64], what: &str| {
        let expected: Vec<f64> = if found.is_empty() {
            let neutral = if what == "shift" { 0.0 } else { 1.0 };
            assert!(expected.iter().all(|x| *x == neutral), "{what}: nothing instead of {expected:?}");
            return;
        } else {
            expected.to_vec()
        };
        for (x, y) in found.iter().zip(&expected) {
            assert!((x - y).abs() <= 1e-9 * y.abs().max(1e-9), "{what}: {found:?} instead of {expected:?}");
        }
    };
    for scale in APPLIED {
        for views in [[a.dense("a"), b.dense("b")], [a.dense("a"), b.sparse("b")]] {
            let model = fit(&given(&truth, scale, false), views.into());
            for (view, rows) in model.views.iter().zip([&a, &b]) {
                let Naive { shift, factor, .. } = Naive::fit(scale, rows);
                close(&view.scaling.shift, &shift, "shift");
                close(&view.scaling.factor, &factor, "factor");
                assert_eq!((view.scaling.scale, view.scaling.weight), (scale, 1.0));
            }
        }
    }
}

#[test]
fn sparse_rows_are_shifted_without_being_made_dense() {
    let truth = truth(300);
    let present = simulate::missing(300, &[0.3, 0.0], 2).unwrap();
    // Half of the features reach below zero, so that a stored zero is not the smallest value.
    let value = |f: usize, x: f64| if x.abs() < 0.4 { 0.0 } else { x * 3.0 + if f < 7 { 0.0 } else { 2.0 } };
    let rows = Rows::around(&truth, 15, 4, value).missing(&present[0]);
    let other = Rows::around(&truth, 5, 5, |_, x| x);
    for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
        let daimc = given(&truth, scale, true);
        let sparse = fit(&daimc, vec![rows.sparse("a"), other.dense("b")]);
        let dense = fit(&daimc, vec![rows.dense("a"), other.dense("b")]);
        assert!(sparse.views[0].scaling.shift.iter().any(|&shift| shift != 0.0));
        let found = difference(&sparse.latent, &dense.latent);
        assert!(found < 1e-8, "{scale}: {found:e}");
        let single = fit(&daimc, vec![rows.sparse_f32("a"), other.dense_f32("b")]);
        let found = difference(&single.latent, &dense.latent);
        assert!(found < 1e-3, "{scale}: {found:e}");
    }
}

// Where digits are short.

#[test]
fn features_far_from_zero_keep_their_digits() {
    let truth = truth(300);
    let present = simulate::missing(300, &[0.3, 0.0], 2).unwrap();
    let far =
        |origin: f64| Rows::around(&truth, 8, 4, |f, x| x + origin * (1.0 + f as f64)).missing(&present[0]);
    let (single, double) = (far(1e6).rounded(), far(1e12));
    for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
        for (rows, view) in [(&single, single.dense_f32("a")), (&double, double.dense("a"))] {
            let written = Naive::fit(scale, rows).apply(rows);
            let other = Rows::around(&truth, 5, 5, |_, x| x).dense("b");
            let plain = given(&truth, Scale::None, true).scale_view("b", Scale::Unit);
            let plain = fit(&plain, vec![written.dense("a"), other.clone()]);
            let folded = fit(&given(&truth, scale, true).scale_view("b", Scale::Unit), vec![view, other]);
            let found = difference(&folded.latent, &plain.latent);
            assert!(found < 1e-2, "{scale}: {found:e}");
        }
    }
}

#[test]
fn features_far_from_zero_are_clustered_from_their_own_k_means() {
    let truth = truth(300);
    let rows = Rows::around(&truth, 12, 4, |_, x| x + 1e6).rounded();
    for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
        for preset in [Preset::Default, Preset::Paper] {
            let daimc = Daimc::new(3).preset(preset);
            let folded = fit(&daimc.clone().scale(scale), vec![rows.dense_f32("a")]);
            let written = Naive::fit(scale, &rows).apply(&rows);
            let plain = fit(&daimc.scale(Scale::None), vec![written.dense("a")]);
            let ari = daimc::metrics::ari(&plain.labels, &folded.labels).unwrap();
            assert!(ari > 0.95, "{scale} {preset:?}: {ari}");
        }
    }
}

#[test]
fn sparse_features_far_from_zero_are_refused() {
    let truth = truth(90);
    let rows = Rows::around(&truth, 8, 4, |_, x| x + 1e6);
    for scale in [Scale::ZScore, Scale::ZScoreUnit, Scale::MinMax, Scale::MinMaxUnit] {
        let views = Views::new(vec![rows.sparse_f32("far")]).unwrap();
        for preset in [Preset::Default, Preset::Paper] {
            let error = Daimc::new(3).preset(preset).scale(scale).fit(&views).unwrap_err();
            let Error::Scaling { view, scale: named, .. } = &error else { panic!("{error:?}") };
            assert_eq!((&view[..], &named[..]), ("far", &scale.to_string()[..]));
            assert!(error.to_string().contains("dense"), "{error}");
        }
    }
    for scale in [Scale::None, Scale::Unit, Scale::TfIdf] {
        assert!(Daimc::new(3).scale(scale).fit(&Views::new(vec![rows.sparse_f32("far")]).unwrap()).is_ok());
    }
}

// Weights.

/// The mean squared length of the rows of a view that are seen, after a scaling.
fn mean_square(scaling: &Scaling, rows: &Rows) -> f64 {
    let neutral =
        |values: &[f64], x: f64| if values.is_empty() { vec![x; rows.features] } else { values.to_vec() };
    let (shift, factor) = (neutral(&scaling.shift, 0.0), neutral(&scaling.factor, 1.0));
    let scaled = Naive { shift, factor, unit: scaling.unit_rows() }.apply(rows);
    let squares: Vec<f64> = scaled.seen().map(|row| row.iter().map(|x| x * x).sum::<f64>()).collect();
    squares.iter().sum::<f64>() / squares.len() as f64 * scaling.weight.powi(2)
}

#[test]
fn views_of_equal_weight_have_a_mean_squared_row_length_of_one() {
    let truth = truth(200);
    let [a, b] = data(&truth);
    for scale in APPLIED {
        for preset in [Preset::Default, Preset::Paper] {
            let daimc = Daimc::new(3).preset(preset).scale(scale).max_iterations(2);
            let equal = fit(&daimc.clone().equal_weight(true), vec![a.dense("a"), b.sparse("b")]);
            for (view, rows) in equal.views.iter().zip([&a, &b]) {
                let square = mean_square(&view.scaling, rows);
                assert!((square - 1.0).abs() < 1e-9, "{scale}, view {}: {square}", view.name);
            }
            let own = fit(&daimc.equal_weight(false), vec![a.dense("a"), b.sparse("b")]);
            assert!(own.views.iter().all(|view| view.scaling.weight == 1.0));
        }
    }
    assert!(Daimc::new(3).options().equal_weight);
    assert!(!Daimc::new(3).preset(Preset::Paper).options().equal_weight);
}

#[test]
fn equal_weight_makes_the_unit_of_a_view_irrelevant() {
    let truth = truth(200);
    let [a, b] = data(&truth);
    let mut large = a.clone();
    large.values.iter_mut().for_each(|value| *value *= 1000.0);
    let daimc = given(&truth, Scale::None, true);
    let (one, other) =
        (fit(&daimc, vec![a.dense("a"), b.dense("b")]), fit(&daimc, vec![large.dense("a"), b.dense("b")]));
    assert!(difference(&one.latent, &other.latent) < 1e-8);
}

// The choice.

/// The scale that is chosen for a view, and why.
fn chosen(view: View<'static>) -> (Scale, String) {
    let rows = view.rows();
    let other = View::dense("other", 1, (0..rows).map(|i| (i % 3) as f64).collect::<Vec<_>>()).unwrap();
    let model = fit(&Daimc::new(3).max_iterations(1).restarts(1), vec![view, other]);
    let Scaling { scale, reason, .. } = model.views[0].scaling.clone();
    (scale, reason)
}

#[test]
fn sparse_counts_are_scaled_by_tf_idf_however_they_are_stored() {
    let truth = truth(120);
    let present = simulate::missing(120, &[0.3, 0.0], 2).unwrap();
    // What stands in missing rows is neither small nor a count.
    let rows = Rows::counts(&truth, 40, 3).missing(&present[0]);
    for view in [rows.sparse("a"), rows.sparse_f32("a"), rows.dense("a"), rows.dense_f32("a")] {
        let (scale, reason) = chosen(view);
        assert_eq!(scale, Scale::TfIdf, "{reason}");
        assert!(reason.contains("sparse counts") && reason.contains('%'), "{reason}");
    }
}

#[test]
fn features_that_share_a_unit_are_scaled_by_row() {
    let truth = truth(120);
    let rows = Rows::around(&truth, 10, 3, |_, x| 1000.0 * x);
    for view in [rows.dense("a"), rows.dense_f32("a"), rows.sparse("a")] {
        let (scale, reason) = chosen(view);
        assert_eq!(scale, Scale::Unit, "{reason}");
        assert!(reason.contains("standard deviation"), "{reason}");
    }
    // Counts that are not sparse, and sparse numbers that are no counts, share a unit as well.
    let full = Rows::around(&truth, 10, 3, |_, x| (5.0 + 2.0 * x).round());
    assert_eq!(chosen(full.dense("a")).0, Scale::Unit);
    let fractions = Rows {
        values: Rows::counts(&truth, 40, 3).values.iter().map(|x| 0.5 * x).collect(),
        ..Rows::counts(&truth, 40, 3)
    };
    assert_eq!(chosen(fractions.sparse("a")).0, Scale::Unit);
}

#[test]
fn features_in_different_units_are_scaled_to_a_range() {
    let truth = truth(120);
    let rows = Rows::around(&truth, 10, 3, |f, x| if f == 4 { 1000.0 * x } else { x });
    for view in [rows.dense("a"), rows.dense_f32("a"), rows.sparse("a")] {
        let (scale, reason) = chosen(view);
        assert_eq!(scale, Scale::MinMaxUnit, "{reason}");
        assert!(reason.contains("standard deviation") && reason.contains("median"), "{reason}");
    }
}

#[test]
fn the_choice_is_that_of_each_view_and_can_be_overruled() {
    let truth = truth(120);
    let a = Rows::around(&truth, 10, 3, |f, x| if f == 4 { 1000.0 * x } else { x });
    let b = Rows::counts(&truth, 40, 3);
    let model = fit(&Daimc::new(3), vec![a.dense("a"), b.sparse("b")]);
    let scales = |model: &Model| model.views.iter().map(|view| view.scaling.scale).collect::<Vec<_>>();
    assert_eq!(scales(&model), [Scale::MinMaxUnit, Scale::TfIdf]);
    let model = fit(&Daimc::new(3).scale_view("b", Scale::Unit), vec![a.dense("a"), b.sparse("b")]);
    assert_eq!(scales(&model), [Scale::MinMaxUnit, Scale::Unit]);
    assert_eq!(model.views[1].scaling.reason, "asked for");
    let model = fit(
        &Daimc::new(3).scale(Scale::ZScore).scale_view("b", Scale::Auto),
        vec![a.dense("a"), b.sparse("b")],
    );
    assert_eq!(scales(&model), [Scale::ZScore, Scale::TfIdf]);
}

#[test]
fn a_view_that_does_not_vary_has_a_choice() {
    let constant = Rows { features: 3, values: vec![0.5; 360], present: vec![true; 120] };
    let (scale, reason) = chosen(constant.dense("a"));
    assert_eq!(scale, Scale::Unit);
    assert!(reason.contains("varies"), "{reason}");
}

// New data.

#[test]
fn new_data_are_scaled_as_the_old_were() {
    let truth = truth(300);
    let [a, b] = data(&truth);
    // All of one cluster, and few: their own statistics are others.
    let new: Vec<usize> =
        (0..300).filter(|&i| truth[i] == 0 && a.present[i] && b.present[i]).take(7).collect();
    for scale in APPLIED {
        let [first, second] = [&a, &b].map(|rows| Naive::fit(scale, rows));
        for equal in [false, true] {
            let folded = fit(&given(&truth, scale, equal), vec![a.dense("a"), b.sparse("b")]);
            let plain = given(&truth, Scale::None, equal);
            let plain = fit(&plain, vec![first.apply(&a).dense("a"), second.apply(&b).dense("b")]);
            for some in [&new[..], &new[..1]] {
                let [a, b] = [&a, &b].map(|rows| rows.some(some.iter().copied()));
                let views = |a: View<'static>, b: View<'static>| Views::new(vec![a, b]).unwrap();
                let found = folded.transform(&views(a.dense("a"), b.sparse("b"))).unwrap();
                let written = views(first.apply(&a).dense("a"), second.apply(&b).dense("b"));
                let expected = plain.transform(&written).unwrap();
                assert!(expected.values().iter().any(|value| *value > 0.0));
                let difference = difference(&found, &expected);
                assert!(difference < 1e-6, "{scale}, equal weight {equal}: {difference:e}");
            }
        }
    }
}

#[test]
fn a_feature_that_was_constant_does_not_matter_to_new_data() {
    let truth = truth(120);
    for constant in [0.0, 0.1, 3.0, -1e6] {
        let of = |value: f64| Rows::around(&truth, 6, 3, move |f, x| if f == 2 { value } else { x });
        for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
            type Layout = fn(&Rows, &str) -> View<'static>;
            for layout in [Rows::dense as Layout, Rows::dense_f32, Rows::sparse] {
                let model = fit(&Daimc::new(3).scale(scale), vec![layout(&of(constant), "a")]);
                let place = |value| model.place(&Views::new(vec![layout(&of(value), "a")]).unwrap()).unwrap();
                let expected = place(constant);
                for value in [constant + 1.0, 1e6, -1e9] {
                    let found = place(value);
                    assert_eq!(found.labels, expected.labels, "{scale}: {constant} became {value}");
                    let difference = difference(&found.latent, &expected.latent);
                    assert!(difference < 1e-6, "{scale}: {constant} became {value}: {difference:e}");
                }
            }
        }
    }
}

#[test]
fn a_word_that_was_never_met_does_not_blow_up() {
    let truth = truth(120);
    let mut rows = Rows::counts(&truth, 20, 3);
    rows.values.iter_mut().skip(7).step_by(20).for_each(|value| *value = 0.0);
    let model = fit(&Daimc::new(3).scale(Scale::TfIdf), vec![rows.sparse("a")]);
    let mut new = rows.clone();
    new.values.iter_mut().skip(7).step_by(20).for_each(|value| *value = 1.0);
    let place = model.place(&Views::new(vec![new.sparse("a")]).unwrap()).unwrap();
    assert!(place.latent.values().iter().all(|value| value.is_finite()));
    let accuracy = daimc::metrics::accuracy(&truth, &place.labels).unwrap();
    let before = daimc::metrics::accuracy(&truth, &model.labels).unwrap();
    assert!(accuracy > before - 0.1, "{accuracy} after {before}");
}
