//! Weights and the choice.

use super::*;

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
            for (view, rows) in equal.model.views.iter().zip([&a, &b]) {
                let square = mean_square(&view.scaling, rows);
                assert!((square - 1.0).abs() < 1e-9, "{scale}, view {}: {square}", view.name);
            }
            let own = fit(&daimc.equal_weight(false), vec![a.dense("a"), b.sparse("b")]);
            assert!(own.model.views.iter().all(|view| view.scaling.weight == 1.0));
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
    let fitted = fit(&Daimc::new(3).max_iterations(1).restarts(1), vec![view, other]);
    let Scaling { scale, reason, .. } = fitted.model.views[0].scaling.clone();
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
    let fitted = fit(&Daimc::new(3), vec![a.dense("a"), b.sparse("b")]);
    let scales = |fitted: &Fit| fitted.model.views.iter().map(|view| view.scaling.scale).collect::<Vec<_>>();
    assert_eq!(scales(&fitted), [Scale::MinMaxUnit, Scale::TfIdf]);
    let fitted = fit(&Daimc::new(3).scale_view("b", Scale::Unit), vec![a.dense("a"), b.sparse("b")]);
    assert_eq!(scales(&fitted), [Scale::MinMaxUnit, Scale::Unit]);
    assert_eq!(fitted.model.views[1].scaling.reason, "asked for");
    let fitted = fit(
        &Daimc::new(3).scale(Scale::ZScore).scale_view("b", Scale::Auto),
        vec![a.dense("a"), b.sparse("b")],
    );
    assert_eq!(scales(&fitted), [Scale::ZScore, Scale::TfIdf]);
}

#[test]
fn a_view_that_does_not_vary_has_a_choice() {
    let constant = Rows { features: 3, values: vec![0.5; 360], present: vec![true; 120] };
    let (scale, reason) = chosen(constant.dense("a"));
    assert_eq!(scale, Scale::Unit);
    assert!(reason.contains("varies"), "{reason}");
}
