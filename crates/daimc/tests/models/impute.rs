//! Imputation: comparison with a literal transcription, and properties for any data.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Imputed, Matrix, Neighbours, Scale, View, Views, simulate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Instances with two latent traits in all views, with missing rows and cells.
struct Data {
    n: usize,
    widths: Vec<usize>,
    /// The complete rows, and with NaN for missing values.
    whole: Vec<Vec<f64>>,
    shown: Vec<Vec<f64>>,
    present: Vec<Vec<bool>>,
}

impl Data {
    fn new(n: usize, widths: &[usize], rows: f64, cells: f64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let truth = Synthetic::new(n, 3).seed(seed).truth();
        let traits: Vec<[f64; 2]> =
            (0..n).map(|_| [rng.random_range(0.0..1.0), rng.random_range(0.0..1.0)]).collect();
        let present = simulate::missing(n, &vec![rows; widths.len()], seed).unwrap();
        let mut data = Self { n, widths: widths.to_vec(), whole: Vec::new(), shown: Vec::new(), present };
        for (view, &d) in widths.iter().enumerate() {
            let load: Vec<[f64; 5]> =
                (0..d).map(|_| std::array::from_fn(|_| rng.random_range(0.0..1.0))).collect();
            let value = |i: usize, f: usize, noise: f64| {
                1.0 + load[f][truth[i]] + load[f][3] * traits[i][0] + load[f][4] * traits[i][1] + noise
            };
            let whole: Vec<f64> =
                (0..n * d).map(|at| value(at / d, at % d, rng.random_range(-0.1..0.1))).collect();
            let mut shown = whole.clone();
            for (at, x) in shown.iter_mut().enumerate() {
                // The first cell of a row stays.
                if !data.present[view][at / d] || at % d > 0 && rng.random_bool(cells) {
                    *x = f64::NAN;
                }
            }
            data.whole.push(whole);
            data.shown.push(shown);
        }
        data
    }

    fn views(&self) -> Views<'_> {
        let view = |v: usize| {
            let view = View::dense(format!("view {v}"), self.widths[v], &self.shown[v]).unwrap();
            view.mask(&self.present[v]).unwrap()
        };
        Views::new((0..self.widths.len()).map(view).collect()).unwrap()
    }

    fn fit(&self, scale: Scale) -> Fit {
        Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&self.views()).unwrap()
    }

    fn imputed(&self, fit: &Fit, view: usize) -> Imputed {
        fit.model.impute(&self.views(), &format!("view {view}"), &fit.latent).unwrap()
    }

    fn row(&self, view: usize, i: usize) -> &[f64] {
        &self.shown[view][i * self.widths[view]..(i + 1) * self.widths[view]]
    }

    /// The values of a feature in the instances that have it.
    fn column(&self, view: usize, f: usize) -> Vec<f64> {
        (0..self.n).map(|i| self.row(view, i)[f]).filter(|x| !x.is_nan()).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The rows of each view with the mean of the feature where a cell is missing.
fn filled(data: &Data) -> Vec<Vec<Vec<f64>>> {
    let of_view = |view: usize| {
        let means: Vec<f64> = (0..data.widths[view]).map(|f| mean(&data.column(view, f))).collect();
        let fill = |(x, mean): (&f64, &f64)| if x.is_nan() { *mean } else { *x };
        (0..data.n).map(|i| data.row(view, i).iter().zip(&means).map(fill).collect()).collect()
    };
    (0..data.widths.len()).map(of_view).collect()
}

/// A missing row, as documented; the view itself has the weight `own` if it has a row of the instance.
fn literal(data: &Data, fit: &Fit, view: usize, i: usize, own: f64, found: &Imputed) -> Vec<f64> {
    let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let accuracy = if own > 0.0 { found.cells_accuracy.unwrap() } else { found.rows_accuracy.unwrap() };
    let donors: Vec<usize> = (0..data.n).filter(|&j| data.present[view][j]).collect();
    let rows = filled(data);
    let weight = |u: usize| if u == view { own } else { 1.0 };
    let views: Vec<usize> =
        (0..data.widths.len()).filter(|&u| data.present[u][i] && weight(u) > 0.0).collect();
    let mut sums = vec![0.0; data.n];
    let mut shares = vec![false; data.n];
    for &u in &views {
        let there: Vec<usize> = donors.iter().copied().filter(|&j| data.present[u][j]).collect();
        let mut total = 0.0;
        for &a in &there {
            total += there.iter().map(|&b| square(&rows[u][a], &rows[u][b])).sum::<f64>();
        }
        let average = total / (there.len() * there.len()) as f64;
        for j in 0..data.n {
            let here = data.present[u][j];
            let distance = if here { square(&rows[u][i], &rows[u][j]) / average } else { 1.0 };
            sums[j] += weight(u) * distance / views.iter().map(|&u| weight(u)).sum::<f64>();
            shares[j] |= here;
        }
    }
    let mut near: Vec<(f64, usize)> =
        donors.iter().filter(|&&j| j != i && shares[j]).map(|&j| (sums[j], j)).collect();
    near.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let k = accuracy.neighbours.min(near.len());
    let end = near.get(k).unwrap_or(&near[k - 1]).0;
    let labels = &fit.labels;
    let basis = fit.model.reconstruct(&found.view, &fit.latent).unwrap();
    let value = |f: usize| {
        let column = data.column(view, f);
        let (low, high) = column
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        let has = |j: usize| !data.row(view, j)[f].is_nan();
        let group: Vec<f64> = donors
            .iter()
            .filter(|&&j| labels[j] == labels[i] && has(j))
            .map(|&j| data.row(view, j)[f])
            .collect();
        let (mut sum, mut weights) = (0.0, 0.0);
        for &(distance, j) in near[..k].iter().filter(|(_, j)| has(*j)) {
            sum += (1.001 - distance / end) * data.row(view, j)[f];
            weights += 1.001 - distance / end;
        }
        let near = if weights > 0.0 { sum / weights } else { mean(&group) };
        let shares = accuracy.shares;
        let rest = 1.0 - shares.neighbours - shares.cluster - shares.basis;
        let blend = shares.neighbours * near
            + shares.cluster * mean(&group)
            + shares.basis * basis[(i, f)].clamp(low, high)
            + rest * mean(&column);
        blend.clamp(low, high)
    };
    (0..data.widths[view]).map(value).collect()
}

#[test]
fn missing_rows_and_cells_are_what_a_literal_transcription_makes() {
    let data = Data::new(90, &[5, 7, 6], 0.25, 0.08, 3);
    // One metric, and rows and cells of the same length.
    let fit = Daimc::new(3).scale(Scale::None).equal_weight(false).neighbours(Neighbours::Off);
    let fit = fit.fit(&data.views()).unwrap();
    for view in 0..3 {
        let found = data.imputed(&fit, view);
        assert_eq!(found.rows(), data.present[view].iter().filter(|here| !**here).count());
        for i in 0..data.n {
            let close = |a: &[f64], b: &[f64]| {
                let cells = a.iter().zip(b).zip(data.row(view, i));
                cells.filter(|(_, shown)| shown.is_nan()).all(|((a, b), _)| (a - b).abs() < 1e-6)
            };
            let own: &[f64] = if data.present[view][i] { &[1.0, 10.0] } else { &[0.0] };
            let expected = own.iter().map(|&own| literal(&data, &fit, view, i, own, &found));
            let expected: Vec<Vec<f64>> = expected.collect();
            assert!(expected.iter().any(|own| close(found.values.row(i), own)), "view {view}, instance {i}");
        }
    }
}

#[test]
fn what_is_there_stays_and_what_is_filled_in_is_in_range() {
    let data = Data::new(200, &[5, 9], 0.2, 0.1, 5);
    for scale in [Scale::Auto, Scale::None, Scale::ZScoreUnit, Scale::Log] {
        let fit = data.fit(scale);
        for view in 0..2 {
            let found = data.imputed(&fit, view).values;
            for f in 0..data.widths[view] {
                let column = data.column(view, f);
                for i in 0..data.n {
                    let (x, made) = (data.row(view, i)[f], found[(i, f)]);
                    if !x.is_nan() {
                        assert_eq!(made.to_bits(), x.to_bits());
                    }
                    assert!(column.iter().any(|x| *x <= made) && column.iter().any(|x| *x >= made));
                }
            }
        }
    }
}

#[test]
fn a_row_without_cells_is_a_missing_row() {
    let mut data = Data::new(150, &[5, 9], 0.2, 0.1, 6);
    let fit = data.fit(Scale::Auto);
    let expected = data.imputed(&fit, 1);
    data.present[1].fill(true); // their cells are NaN
    assert_eq!(data.imputed(&fit, 1), expected);
}

#[test]
fn threads_make_no_difference() {
    let data = Data::new(400, &[5, 9, 3], 0.3, 0.05, 7);
    let fit = data.fit(Scale::Auto);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (0..3).map(|view| data.imputed(&fit, view)).collect::<Vec<_>>())
    };
    let (one, three) = (on(1), on(3));
    assert_eq!(one, three);
    let bits = |all: &[Imputed]| {
        all.iter().flat_map(|own| own.values.values().to_vec()).map(f64::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(bits(&one), bits(&three));
}

/// The error of the imputation, in standard deviations of the observed values: of missing rows, or of cells.
fn error(data: &Data, view: usize, values: &Matrix, rows: bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for f in 0..data.widths[view] {
        let column = data.column(view, f);
        let center = mean(&column);
        let deviation = mean(&column.iter().map(|x| (x - center).powi(2)).collect::<Vec<_>>()).sqrt();
        for i in (0..data.n).filter(|&i| data.row(view, i)[f].is_nan() && data.present[view][i] != rows) {
            sum += ((values[(i, f)] - data.whole[view][i * data.widths[view] + f]) / deviation).powi(2);
            count += 1;
        }
    }
    (sum / f64::from(count)).sqrt()
}

#[test]
fn the_error_is_small_and_estimated_in_advance() {
    let data = Data::new(600, &[8, 10, 6], 0.3, 0.08, 9);
    let fit = data.fit(Scale::Auto);
    for view in 0..3 {
        let found = data.imputed(&fit, view);
        let basis = fit.model.reconstruct(&found.view, &fit.latent).unwrap();
        for (rows, accuracy) in [(true, found.rows_accuracy), (false, found.cells_accuracy)] {
            let (own, reported) = (error(&data, view, &found.values, rows), accuracy.unwrap().error);
            assert!((own / reported - 1.0).abs() < 0.15, "{own}, reported as {reported}");
            assert!(own < 0.75 && own < error(&data, view, &basis, rows), "{own}");
        }
    }
}

#[test]
fn without_others_the_model_alone_fills_in() {
    let data = Data::new(100, &[5, 9], 0.2, 0.0, 8);
    let fit = data.fit(Scale::Auto);
    let one = Views::new(vec![View::dense("view 0", 5, data.whole[0][..15].to_vec()).unwrap()]).unwrap();
    let latent = fit.model.transform(&one).unwrap();
    let found = fit.model.impute(&one, "view 1", &latent).unwrap();
    assert_eq!(found.values, fit.model.reconstruct("view 1", &latent).unwrap());
    assert_eq!((found.rows(), found.cells(), found.rows_accuracy), (3, 0, None));
    assert!(fit.model.impute(&one, "view 2", &latent).is_err());
    assert!(fit.model.impute(&one, "view 1", &Matrix::zeros(3, 1)).is_err());
    // The given view has no missing values.
    assert_eq!(fit.model.impute(&one, "view 0", &latent).unwrap().values.values(), &data.whole[0][..15]);
}

#[test]
fn instances_that_share_no_view_with_a_donor_are_filled_in() {
    // No instance has both views.
    let data = Data::new(100, &[5, 9], 0.0, 0.0, 8);
    let fit = data.fit(Scale::Auto);
    let (a, b) =
        ((0..100).map(|i| i < 50).collect::<Vec<_>>(), (0..100).map(|i| i >= 50).collect::<Vec<_>>());
    let apart = Data { present: vec![a, b], ..data };
    let latent = fit.model.transform(&apart.views()).unwrap();
    let found = fit.model.impute(&apart.views(), "view 1", &latent).unwrap();
    assert!(found.values.values().iter().all(|x| x.is_finite()) && found.rows_accuracy.is_none());
}
