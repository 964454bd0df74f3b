//! Weights and the choice of a scaling.

use super::*;

/// The mean squared length of the present rows of a view, after a scaling.
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

/// The chosen scale of a view, and the reason.
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
    // The values of missing rows are neither small nor counts.
    let rows = Rows::counts(&truth, 40, 3).missing(&present[0]);
    for view in [rows.sparse("a"), rows.sparse_f32("a"), rows.dense("a"), rows.dense_f32("a")] {
        let (scale, reason) = chosen(view);
        assert_eq!(scale, Scale::TfIdf, "{reason}");
        assert!(reason.contains("sparse counts") && reason.contains('%'), "{reason}");
    }
}

/// Two views in which the features that distinguish the clusters are multiplied by one number, and the others by another.
fn planted(telling: usize, of_signal: f64, of_noise: f64) -> (Views<'static>, Vec<usize>) {
    const FEATURES: usize = 60;
    let truth: Vec<usize> = (0..240).map(|i| i % 4).collect();
    let view = |name: &str, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let centres: Vec<f64> = (0..4 * FEATURES).map(|_| rng.random_range(-3.0..3.0)).collect();
        let mut value = |label: usize, f: usize| {
            let noise = rng.random_range(-1.0..1.0);
            if f < telling { (centres[label * FEATURES + f] + noise) * of_signal } else { noise * of_noise }
        };
        let values: Vec<f64> = truth
            .iter()
            .flat_map(|&label| (0..FEATURES).map(|f| value(label, f)).collect::<Vec<_>>())
            .collect();
        View::dense(name, FEATURES, values).unwrap()
    };
    (Views::new(vec![view("a", 1), view("b", 2)]).unwrap(), truth)
}

#[test]
fn scalings_are_compared_by_what_neighbours_say_of_their_clusters() {
    // The scaling that hides the clusters is never chosen.
    for (telling, of_signal, of_noise, hiding) in
        [(20, 1.0, 30.0, Scale::Unit), (3, 30.0, 1.0, Scale::MinMaxUnit)]
    {
        let (views, truth) = planted(telling, of_signal, of_noise);
        let fitted = Daimc::new(4).fit(&views).unwrap();
        for view in &fitted.model.views {
            assert_ne!(view.scaling.scale, hiding, "{}", view.scaling.reason);
            assert!(
                view.scaling.reason.starts_with("neighbours predict the clusters with NMI ")
                    && view.scaling.reason.contains(&format!(" with {hiding}")),
                "{}",
                view.scaling.reason
            );
        }
        let hidden = Daimc::new(4).scale(hiding).fit(&views).unwrap();
        let of = |fitted: &Fit| metrics::ari(&truth, &fitted.labels).unwrap();
        assert!(of(&fitted) > 0.95 && of(&fitted) >= of(&hidden), "{} {}", of(&fitted), of(&hidden));
    }
}

#[test]
fn sparse_numbers_on_both_sides_of_zero_keep_their_zeros() {
    let truth = truth(120);
    let rows = Rows::around(&truth, 10, 3, |_, x| if x.abs() < 0.5 { 0.0 } else { x });
    assert_eq!(chosen(rows.sparse("a")).0, Scale::Unit);
}

#[test]
fn the_choice_is_that_of_each_view_and_can_be_overruled() {
    let truth = truth(120);
    let a = Rows::around(&truth, 10, 3, |f, x| if f == 4 { 1000.0 * x } else { x });
    let b = Rows::counts(&truth, 40, 3);
    let fitted = fit(&Daimc::new(3), vec![a.dense("a"), b.sparse("b")]);
    let scales = |fitted: &Fit| fitted.model.views.iter().map(|view| view.scaling.scale).collect::<Vec<_>>();
    assert_eq!(scales(&fitted)[1], Scale::TfIdf);
    assert!(matches!(scales(&fitted)[0], Scale::Unit | Scale::MinMaxUnit));
    let fitted = fit(&Daimc::new(3).scale_view("b", Scale::Unit), vec![a.dense("a"), b.sparse("b")]);
    assert_eq!(scales(&fitted)[1], Scale::Unit);
    assert_eq!(fitted.model.views[1].scaling.reason, "requested");
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
