//! Comparison with the definition, also with limited precision.

use super::*;

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
                        for (folded, plain) in folded.model.views.iter().zip(&plain.model.views) {
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
            let fitted = fit(&given(&truth, scale, false), views.into());
            for (view, rows) in fitted.model.views.iter().zip([&a, &b]) {
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
    // Half of the features have negative values, so that a stored zero is not the minimum.
    let value = |f: usize, x: f64| if x.abs() < 0.4 { 0.0 } else { x * 3.0 + if f < 7 { 0.0 } else { 2.0 } };
    let rows = Rows::around(&truth, 15, 4, value).missing(&present[0]);
    let other = Rows::around(&truth, 5, 5, |_, x| x);
    for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
        let daimc = given(&truth, scale, true);
        let sparse = fit(&daimc, vec![rows.sparse("a"), other.dense("b")]);
        let dense = fit(&daimc, vec![rows.dense("a"), other.dense("b")]);
        assert!(sparse.model.views[0].scaling.shift.iter().any(|&shift| shift != 0.0));
        let found = difference(&sparse.latent, &dense.latent);
        assert!(found < 1e-8, "{scale}: {found:e}");
        let single = fit(&daimc, vec![rows.sparse_f32("a"), other.dense_f32("b")]);
        let found = difference(&single.latent, &dense.latent);
        assert!(found < 1e-3, "{scale}: {found:e}");
    }
}

// Limited precision.

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

#[test]
fn the_scaling_of_a_view_is_that_of_a_fit() {
    let truth = truth(200);
    let [a, b] = data(&truth);
    for scale in APPLIED {
        let views = || vec![a.dense("a"), b.sparse("b")];
        let fitted = fit(&given(&truth, scale, false), views()).model;
        let views = Views::new(views()).unwrap();
        for (number, view) in fitted.views.iter().enumerate() {
            let (scaling, preparation) = Scaling::of_view(&views, number, scale).unwrap();
            let Scaling { shift, factor, squares, .. } = &view.scaling;
            assert_eq!(
                (&scaling.shift, &scaling.factor, &scaling.squares),
                (shift, factor, squares),
                "{scale}"
            );
            assert_eq!((scaling.scale, preparation), (scale, view.preparation.clone()));
            assert_eq!((scaling.weight, scaling.length), (1.0, 1.0));
        }
    }
}
