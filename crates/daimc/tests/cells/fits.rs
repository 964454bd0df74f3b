//! Whole fits of data with missing cells.

use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Initialisation, Neighbours, Penalty, Preset, Scale, Solver, View, ViewWeights, Views, metrics,
    select::Select, simulate,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::{tables, views};
use crate::made::around;

/// Three views of well-separated clusters, with some rows and cells missing.
fn easy(n: usize, cells: f64) -> (Views<'static>, Vec<usize>) {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let present = simulate::missing(n, &[0.2, 0.3, 0.0], 5).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let view = |(v, d): (usize, usize)| {
        let mut values = around(&truth, d, 0.5, 20 + v as u64);
        values.iter_mut().filter(|_| rng.random::<f64>() < cells).for_each(|x| *x = f64::NAN);
        View::dense(format!("view {v}"), d, values).unwrap().mask(&present[v]).unwrap()
    };
    let views = [12, 20, 15].into_iter().enumerate().map(view).collect();
    (Views::new(views).unwrap(), truth)
}

#[test]
fn every_kind_of_fit_takes_missing_cells() {
    let (views, truth) = easy(300, 0.15);
    let base = || Daimc::new(4).max_iterations(30);
    let fits = [
        ("default", base()),
        ("paper", base().preset(Preset::Paper).max_iterations(30)),
        ("multiplicative", base().solver(Solver::Multiplicative)),
        ("paper start", base().initialisation(Initialisation::Paper)),
        ("runs", base().runs(3)),
        ("neighbours", base().neighbours(Neighbours::Refine)),
        ("no neighbours", base().neighbours(Neighbours::Off)),
        ("learned weights", base().view_weights(ViewWeights::Learned)),
        ("penalty", base().penalty(Penalty::Auto).neighbours(Neighbours::Off)),
        ("latent", base().latent(6)),
        ("min-max", base().scale(Scale::MinMax)),
        ("z-score", base().scale(Scale::ZScore)),
    ];
    for (name, fit) in fits {
        let fitted = fit.fit(&views).unwrap();
        let numbers = fitted.latent.values().iter().chain(&fitted.confidence);
        assert!(numbers.into_iter().all(|value| value.is_finite()), "{name}");
        let accuracy = metrics::accuracy(&truth, &fitted.labels).unwrap();
        assert!(accuracy > 0.95, "{name}: {accuracy}");
        // The errors of the observed cells are the loss.
        let of = |view: &daimc::ViewModel| fitted.misfit(&views, &view.name).unwrap().error;
        let sum: f64 = fitted.model.views.iter().flat_map(of).sum();
        let loss = fitted.objective.loss;
        assert!((sum - loss).abs() < 1e-6 * loss, "{name}: {sum}, not {loss}");
        let explained = fitted.explain(&views).unwrap();
        let error: f64 = explained.residuals.iter().flatten().map(|own| own.error).sum();
        assert!((error - loss).abs() < 1e-6 * loss, "{name}: {error}, not {loss}");
    }
    let selection = Select::new(base().neighbours(Neighbours::Off), 2..=6).resamples(4).run(&views).unwrap();
    assert_eq!(selection.recommended, 4);
}

#[test]
fn the_loss_of_the_cells_that_are_there_does_not_rise() {
    for seed in 0..6 {
        let views = views(&tables(200, &[(8, seed % 2 == 0), (5, false)], 4, [0.3, 0.3], seed));
        for solver in [Solver::Coordinate, Solver::Multiplicative] {
            // The other terms are almost zero.
            let fit = Daimc::new(4).alpha(1e-9).solver(solver).tolerance(0.0).max_iterations(60);
            let history = fit.neighbours(Neighbours::Off).fit(&views).unwrap().history;
            for (number, two) in history.windows(2).enumerate() {
                let (before, after) = (two[0].loss, two[1].loss);
                assert!(after <= before * (1.0 + 1e-6), "{solver:?}, {number}: {before} to {after}");
            }
        }
    }
}

#[test]
fn a_feature_without_a_value_takes_no_part() {
    let with = tables(120, &[(6, false), (4, true)], 3, [0.2, 0.1], 4);
    let mut wider = with.clone();
    let wider_row = |row: &[f64]| [&row[..1], &[f64::NAN], &row[1..]].concat();
    wider[0].values = with[0].values.chunks(6).flat_map(wider_row).collect();
    wider[0].features = 7;
    for scale in [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit, Scale::TfIdf] {
        for neighbours in [Neighbours::Off, Neighbours::Refine] {
            let fit = Daimc::new(3).scale(scale).neighbours(neighbours).max_iterations(20);
            let (found, expected) = (fit.fit(&views(&wider)).unwrap(), fit.fit(&views(&with)).unwrap());
            assert_eq!(found.missing_cells[0].without_value(), [1]);
            assert_eq!(expected.missing_cells[0].without_value(), [0; 0]);
            assert_eq!(found.model.views[0].scaling.factor[1], 0.0, "{scale}");
            assert_eq!(found.labels, expected.labels, "{scale}");
            let share = found.objective.loss / expected.objective.loss;
            assert!((share - 1.0).abs() < 1e-3, "{scale}: {share}");
            // For every fill value in a new row.
            let mut other = wider.clone();
            other[0].values.iter_mut().skip(1).step_by(7).for_each(|x| *x = 1e3);
            let model = &found.model;
            assert_eq!(model.predict(&views(&other)).unwrap(), model.predict(&views(&wider)).unwrap());
        }
    }
}

#[test]
fn cells_count_alike_however_much_of_a_row_is_left() {
    // Rows with one direction each, of any length: they keep their clusters when cells are missing.
    let truth = Synthetic::new(400, 3).seed(2).truth();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let whole: Vec<f64> = around(&truth, 30, 0.2, 5)
        .chunks(30)
        .flat_map(|row| {
            let length = rng.random_range(0.1..10.0);
            row.iter().map(move |x| (x + 2.0) * length).collect::<Vec<_>>()
        })
        .collect();
    let mut some = whole.clone();
    for (i, row) in some.chunks_mut(30).enumerate().filter(|(i, _)| i % 2 == 0) {
        // From a tenth to nine tenths.
        let gone = 0.1 + 0.8 * (i as f64 / 400.0);
        row.iter_mut().filter(|_| rng.random::<f64>() < gone).for_each(|x| *x = f64::NAN);
    }
    let fit = Daimc::new(3).scale(Scale::Unit).neighbours(Neighbours::Off);
    let of = |values: &[f64]| {
        let views = Views::new(vec![View::dense("a", 30, values.to_vec()).unwrap()]).unwrap();
        let fitted = fit.fit(&views).unwrap();
        metrics::accuracy(&truth, &fitted.labels).unwrap()
    };
    let (all, left) = (of(&whole), of(&some));
    assert!(all > 0.99 && left > 0.95, "{all}, {left}");
}
