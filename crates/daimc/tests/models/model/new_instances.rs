//! New instances.

use super::*;

/// The number of instances that are assigned to another cluster than in the fit, without those half way between two; and the
/// largest difference of rows of V, as a share of the row's largest entry.
fn disagreement(daimc: &Daimc, views: &Views<'_>) -> (usize, f64) {
    let fitted = daimc.fit(views).unwrap();
    let place = fitted.model.place(views).unwrap();
    assert_eq!(fitted.model.predict(views).unwrap(), place.labels);
    let differ = (0..views.instances()).filter(|&i| place.labels[i] != fitted.labels[i]);
    let difference = place.latent.iter_rows().zip(fitted.latent.iter_rows()).map(|(a, b)| {
        let largest = b.iter().fold(f64::MIN_POSITIVE, |largest, value| largest.max(*value));
        a.iter().zip(b).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f64::max)
    });
    (differ.filter(|&i| fitted.confidence[i] > 1e-6).count(), difference.fold(0.0, f64::max))
}

/// A fit whose labels depend on each instance's row of V alone, as for new instances.
fn alone(scale: Scale) -> Daimc {
    Daimc::new(4).scale(scale).neighbours(Neighbours::Off)
}

#[test]
fn the_instances_it_was_fitted_to_are_predicted_as_they_were_labelled() {
    for n in [50, 300, 6000] {
        for noise in [0.5, 2.0] {
            let views = incomplete(&easy(n).noise(noise), 5);
            for scale in [Scale::Auto, Scale::None, Scale::Unit] {
                let (differ, difference) = disagreement(&alone(scale), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
                // One of the views is in single precision.
                assert!(
                    difference < 1e-4,
                    "{scale}, {n} instances, noise {noise}: V differs by {difference:e}"
                );
            }
        }
    }
}

#[test]
fn instances_scaled_to_a_range_are_predicted_as_they_were_labelled() {
    for n in [50, 300, 2000] {
        for noise in [0.5, 2.0] {
            let views = incomplete(&easy(n).noise(noise), 5);
            for scale in [Scale::MinMax, Scale::MinMaxUnit] {
                let (differ, difference) = disagreement(&alone(scale), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
                assert!(
                    difference < 1e-2,
                    "{scale}, {n} instances, noise {noise}: V differs by {difference:e}"
                );
            }
        }
    }
}

#[test]
fn centred_instances_are_predicted_as_they_were_labelled() {
    // The means of the clusters of centred data are dependent: Σ n_k c_k = 0.
    for n in [50, 300, 2000] {
        for (noise, seed) in [(0.5, 0), (2.0, 1), (2.0, 2), (4.0, 3)] {
            let views = incomplete(&Synthetic::new(n, 4).noise(noise).seed(11 + seed), 5);
            for scale in [Scale::ZScore, Scale::ZScoreUnit] {
                let (differ, _) = disagreement(&alone(scale).seed(seed), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
            }
        }
    }
}

#[test]
fn the_order_of_the_views_does_not_matter_to_a_model() {
    let data = easy(150);
    let fitted = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let a = || data.dense::<f64>("a", 12).unwrap();
    let b = || data.dense::<f32>("b", 20).unwrap();
    let c = || data.sparse::<f64>("c", 60, 0.1).unwrap();
    let place = |views: Vec<View<'static>>| fitted.model.place(&Views::new(views).unwrap()).unwrap();
    let expected = place(vec![a(), b(), c()]);
    for views in [vec![c(), b(), a()], vec![b(), a(), c()], vec![c(), a(), b()]] {
        let place = place(views);
        assert_eq!(place.labels, expected.labels);
        assert_close(&place.latent, &expected.latent, 1e-8);
    }
}

#[test]
fn new_instances_are_placed_from_some_of_the_views() {
    let data = easy(300);
    let truth = data.truth();
    let fitted = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let a = || data.dense::<f64>("a", 12).unwrap();
    let b = || data.dense::<f32>("b", 20).unwrap();
    let c = || data.sparse::<f64>("c", 60, 0.1).unwrap();
    for views in [vec![a()], vec![b()], vec![c(), a()], vec![b(), c()], vec![c(), b()]] {
        let place = fitted.model.place(&Views::new(views).unwrap()).unwrap();
        assert!(metrics::accuracy(&truth, &place.labels).unwrap() > 0.95);
        assert_eq!((place.latent.rows(), place.latent.columns()), (300, 4));
        assert!(place.confidence.iter().all(|c| (0.0..=1.0).contains(c)));
    }
}

#[test]
fn each_new_instance_is_placed_by_itself() {
    let data = easy(300);
    let fitted = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let all = incomplete(&easy(60), 9);
    let together = fitted.model.place(&all).unwrap();
    let ids = || (0..60).map(|i| i.to_string()).collect::<Vec<_>>();
    for i in [0, 17, 59] {
        let only: Vec<bool> = (0..60).map(|j| j == i).collect();
        let views = all.iter().enumerate().filter(|(view, _)| all.is_present(*view, i));
        let alone = views.map(|(_, view)| view.clone().mask(&only).unwrap().ids(ids()).unwrap());
        let (alone, account) = Views::join(alone.collect()).unwrap();
        assert_eq!(account.instances, 1);
        let alone = fitted.model.place(&alone).unwrap();
        assert_eq!(alone.labels[0], together.labels[i]);
        let row = Matrix::new(1, 4, together.latent.row(i).to_vec()).unwrap();
        // One view is in single precision, and products of a single row are rounded differently.
        assert_close(&alone.latent, &row, 1e-6);
    }
}

#[test]
fn instances_held_out_and_seen_in_one_view_are_mostly_placed_right() {
    let n = 400;
    let truth = Synthetic::new(n, 4).seed(21).truth();
    let unit = |_: usize, x: f64| x;
    let values = [planted(&truth, 10, 1, unit), planted(&truth, 15, 2, unit)];
    let half = n / 2;
    let views = |range: std::ops::Range<usize>| {
        let of = |name, d, v: usize| View::dense(name, d, rows_of(&values[v], d, range.clone())).unwrap();
        [of("a", 10, 0), of("b", 15, 1)]
    };
    let [a, b] = views(0..half);
    let present = simulate::missing(half, &[0.3, 0.3], 4).unwrap();
    let fitted = Views::new(vec![a.mask(&present[0]).unwrap(), b.mask(&present[1]).unwrap()]).unwrap();
    let fitted = Daimc::new(4).fit(&fitted).unwrap();
    // Clusters have no names: the instances of the fit identify them.
    let both: Vec<usize> = truth[..half].to_vec();
    assert!(metrics::accuracy(&both, &fitted.labels).unwrap() > 0.95);
    for view in views(half..n) {
        let labels = fitted.model.predict(&Views::new(vec![view]).unwrap()).unwrap();
        let joined: Vec<usize> = fitted.labels.iter().chain(&labels).copied().collect();
        assert!(metrics::accuracy(&truth, &joined).unwrap() > 0.95);
    }
}
