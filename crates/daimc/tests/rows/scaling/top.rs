//! Features with the largest variance: a fit that keeps them equals the fit to these features only.

use daimc::Neighbours;

use super::*;

/// Some of the features.
fn only(rows: &Rows, features: &[usize]) -> Rows {
    let values = rows.values.chunks(rows.features).flat_map(|row| features.iter().map(|&f| row[f]));
    Rows { features: features.len(), values: values.collect(), present: rows.present.clone() }
}

#[test]
fn a_fit_to_the_features_that_vary_most_is_one_to_these_alone() {
    let truth = truth(60);
    let present: Vec<bool> = (0..60).map(|i| i % 5 > 0).collect();
    // Every third feature has a larger variance than the others.
    let spread = |f: usize| if f % 3 == 1 { 4.0 } else { 0.1 };
    let rows = Rows::around(&truth, 12, 3, |f, x| 10.0 + spread(f) * x).missing(&present);
    let second = Rows::around(&truth, 5, 9, |_, x| x);
    let kept = [1, 4, 7, 10];
    for scale in APPLIED.into_iter().chain([Scale::Log, Scale::LogUnit]) {
        for sparse in [false, true] {
            let view = |rows: &Rows| if sparse { rows.sparse("a") } else { rows.dense("a") };
            let daimc = given(&truth, Scale::Unit, true).scale_view("a", scale).neighbours(Neighbours::Off);
            let own = fit(
                &daimc.clone().top_features(4),
                vec![view(&rows), only(&second, &[0, 1, 2, 3]).dense("b")],
            );
            let alone = fit(&daimc, vec![view(&only(&rows, &kept)), only(&second, &[0, 1, 2, 3]).dense("b")]);
            assert!(difference(&own.latent, &alone.latent) < 1e-9, "{scale} {sparse}");
            let used = (0..12).filter(|&f| own.model.views[0].scaling.factor[f] != 0.0);
            assert_eq!(used.collect::<Vec<_>>(), kept);
            // New instances are restricted to the same features.
            let strange = Rows {
                values: rows
                    .values
                    .iter()
                    .enumerate()
                    .map(|(i, x)| if i % 3 == 1 { *x } else { 7.0 })
                    .collect(),
                ..rows.clone()
            };
            let of = |rows: &Rows| {
                own.model
                    .transform(
                        &Views::new(vec![view(rows), only(&second, &[0, 1, 2, 3]).dense("b")]).unwrap(),
                    )
                    .unwrap()
            };
            assert!(difference(&of(&strange), &of(&rows)) < 1e-9, "{scale} {sparse}");
        }
    }
}

#[test]
fn more_features_than_there_are_change_nothing() {
    let truth = truth(40);
    let views = || {
        vec![Rows::around(&truth, 6, 3, |_, x| x).dense("a"), Rows::around(&truth, 5, 9, |_, x| x).dense("b")]
    };
    let daimc = Daimc::new(3);
    let (all, top) = (fit(&daimc, views()), fit(&daimc.clone().top_features(6), views()));
    assert_eq!((all.labels, all.latent), (top.labels, top.latent));
    let none = daimc.top_features(0).fit(&Views::new(views()).unwrap()).unwrap_err().to_string();
    assert!(none.contains("top_features") && none.contains("at least 1"), "{none}");
}
