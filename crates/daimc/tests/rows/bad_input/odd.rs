//! Unusual input with a defined outcome.

use super::*;

/// Both presets and both solvers with every scale.
#[track_caller]
fn every_scale(clusters: usize, views: Vec<View<'static>>) {
    let views = Views::new(views).unwrap();
    for daimc in fits(clusters) {
        for scale in SCALES {
            sound(&daimc.clone().scale(scale), &views);
        }
    }
}

/// Both presets and both solvers with every scale, in every layout of the first view.
#[track_caller]
fn every_way(clusters: usize, features: usize, values: &[f64], others: &[View<'static>]) {
    for view in layouts("odd", features, values) {
        let mut views = vec![view];
        views.extend_from_slice(others);
        every_scale(clusters, views);
    }
}

#[test]
fn rows_of_zeros_have_an_outcome() {
    let values: Vec<f64> = (0..36).map(|i| if i / 3 % 2 == 0 { 0.0 } else { f64::from(i % 7) }).collect();
    every_way(3, 3, &values, &ordinary(12, &[4]));
    every_way(3, 3, &values, &[]);
}

#[test]
fn constant_columns_have_an_outcome() {
    let values: Vec<f64> = (0..36).map(|i| if i % 3 == 1 { 5.1 } else { f64::from(i * i % 11) }).collect();
    every_way(3, 3, &values, &ordinary(12, &[4]));
    every_way(3, 3, &[0.1; 36], &[]);
}

#[test]
fn a_view_of_zeros_has_an_outcome() {
    every_way(3, 3, &[0.0; 36], &ordinary(12, &[4]));
    every_way(3, 3, &[0.0; 36], &[]);
}

#[test]
fn one_cluster_has_an_outcome() {
    for daimc in fits(1) {
        let fitted = sound(&daimc, &easy());
        assert_eq!(fitted.labels, [0; 30]);
        assert_eq!(fitted.confidence, [1.0; 30]);
    }
}

#[test]
fn as_many_clusters_as_instances_have_an_outcome() {
    for n in 2..=9 {
        all_sound(n, &Views::new(ordinary(n, &[3, 5])).unwrap());
    }
}

#[test]
fn a_view_with_one_instance_has_an_outcome() {
    for instances in [12, 300, 6000] {
        let mut views = ordinary(instances, &[4, 3]);
        let present: Vec<bool> = (0..instances).map(|i| i == instances / 2).collect();
        let last = views.pop().unwrap().mask(&present).unwrap();
        views.push(last);
        all_sound(3, &Views::new(views).unwrap());
    }
}

#[test]
fn fewer_distinct_rows_than_clusters_have_an_outcome() {
    let values: Vec<f64> = (0..36).map(|i| if i / 3 % 2 == 0 { 1.0 } else { f64::from(i % 3) }).collect();
    every_way(5, 3, &values, &[]);
    every_way(5, 1, &[2.5; 12], &[]);
}

#[test]
fn one_instance_has_an_outcome() {
    every_way(1, 3, &[1.0, 0.0, -2.0], &[]);
    every_way(1, 1, &[0.0], &[]);
}

#[test]
fn one_feature_has_an_outcome() {
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    every_way(3, 1, &values, &[]);
    every_way(3, 1, &values, &ordinary(12, &[1]));
}

#[test]
fn no_alignment_and_no_sparsity_have_an_outcome() {
    let values: Vec<f64> = (0..48).map(|i| f64::from(i * i % 13) - 3.0).collect();
    for (alpha, beta) in [(0.0, 0.1), (10.0, 0.0), (0.0, 0.0)] {
        for daimc in fits(3) {
            let daimc = daimc.alpha(alpha).beta(beta);
            sound(&daimc, &easy());
            // More clusters than features: without β the bases leave B undetermined.
            sound(&daimc.latent(7), &Views::new(vec![View::dense("a", 4, &values).unwrap()]).unwrap());
        }
    }
}

/// Multiples of a number.
fn multiples(size: f64) -> Vec<f64> {
    (0..36).map(|i| size * f64::from(i * i % 7)).collect()
}

const TINY: [f64; 5] = [1e-30, 1e-150, 1e-300, f64::MIN_POSITIVE, 5e-324];

#[test]
fn tiny_values_have_an_outcome() {
    for size in TINY {
        for view in &layouts("odd", 3, &multiples(size))[..2] {
            every_scale(3, vec![view.clone()]);
            every_scale(3, vec![view.clone(), ordinary(12, &[4]).remove(0)]);
        }
    }
}

#[test]
fn tiny_values_in_a_sparse_view_have_an_outcome() {
    for size in TINY {
        for view in &layouts("odd", 3, &multiples(size))[2..] {
            every_scale(3, vec![view.clone()]);
            every_scale(3, vec![view.clone(), ordinary(12, &[4]).remove(0)]);
        }
    }
}

/// Dense views of large numbers that can still be squared.
fn large() -> Vec<View<'static>> {
    let double = [1e15, 1e30, 1e60, 1e100, 1e140].into_iter().flat_map(|size| [size, -size]);
    let double = double.map(|size| View::dense(format!("{size:e}"), 3, multiples(size)).unwrap());
    let single = [1e6, 1e10, 1e15, 1e19, 1e30, 1e37].into_iter().map(|size| {
        let values: Vec<f32> = multiples(size).iter().map(|&value| value as f32).collect();
        View::dense(format!("{size:e} f32"), 3, values).unwrap()
    });
    double.chain(single).collect()
}

#[test]
fn large_values_have_an_outcome_when_scaled() {
    for view in large() {
        for others in [Vec::new(), ordinary(12, &[4])] {
            let views = Views::new([vec![view.clone()], others].concat()).unwrap();
            for daimc in fits(3) {
                for scale in SCALES {
                    // Equal weight is a scaling too.
                    let equal = scale == Scale::None || daimc.options().equal_weight;
                    sound(&daimc.clone().scale(scale).equal_weight(equal), &views);
                }
            }
        }
    }
}

#[test]
fn large_values_left_as_they_are_are_refused_or_fitted() {
    for view in large() {
        let name = view.name().to_string();
        let views = Views::new(vec![view]).unwrap();
        for daimc in fits(3) {
            match daimc.scale(Scale::None).equal_weight(false).fit(&views) {
                Ok(fitted) => {
                    assert_eq!(unsound(&fitted, &views), None, "{name}, {:?}", fitted.model.options);
                }
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::TooLarge { .. }, &name),
            }
        }
    }
}

#[test]
fn large_and_tiny_features_together_have_an_outcome() {
    let sizes = [1e30, 1e-30, 1.0, 1e-38];
    let values: Vec<f32> = (0..48).map(|i| sizes[i % 4] * (i * i % 11) as f32).collect();
    let view = View::dense("odd", 4, values).unwrap();
    for views in [vec![view.clone()], vec![view, ordinary(12, &[4]).remove(0)]] {
        let views = Views::new(views).unwrap();
        for daimc in fits(3) {
            for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
                sound(&daimc.clone().scale(scale), &views);
            }
        }
    }
}

#[test]
fn more_latent_columns_than_features_have_an_outcome() {
    let views = Views::new(ordinary(20, &[2, 3, 1])).unwrap();
    for daimc in fits(3) {
        for latent in [4, 9, 20] {
            sound(&daimc.clone().latent(latent), &views);
        }
    }
    all_sound(12, &views);
}

#[test]
fn more_than_64_views_have_an_outcome() {
    let present = |v: usize, i: usize| !(i + v).is_multiple_of(3) || v == 69 || i == v % 40;
    let views = ordinary(40, &[2; 70]).into_iter().enumerate().map(|(v, view)| {
        let mask: Vec<bool> = (0..40).map(|i| present(v, i)).collect();
        view.mask(&mask).unwrap()
    });
    let views = Views::new(views.collect()).unwrap();
    all_sound(2, &views);
    // The last views count like the first: all have the same two clusters.
    let truth = Synthetic::new(40, 2).seed(5).truth();
    let labels = Daimc::new(2).fit(&views).unwrap().labels;
    assert_eq!(daimc::metrics::accuracy(&truth, &labels).unwrap(), 1.0);
}

#[test]
fn a_pattern_for_every_instance_has_an_outcome() {
    // Instance i is present in the views that correspond to the binary digits 1 of i + 1.
    let views = ordinary(63, &[3; 6]).into_iter().enumerate().map(|(v, view)| {
        let mask: Vec<bool> = (1..=63).map(|i| i >> v & 1 == 1).collect();
        view.mask(&mask).unwrap()
    });
    all_sound(3, &Views::new(views.collect()).unwrap());
}

#[test]
fn a_view_whose_only_instance_fades_from_v_has_an_outcome() {
    // The entry of the first instance in V shrinks by a factor of a hundred per pass, through numbers whose square has
    // no reciprocal, and no other instance keeps the Gram matrix of the third view from becoming singular.
    let view = |name: &str, values: [f64; 3]| View::dense(name, 1, values.to_vec()).unwrap();
    let third = view("c", [0.0; 3]).mask(&[true, false, false]).unwrap();
    let views = Views::new(vec![view("a", [-1.0, 1.0, 1.0]), view("b", [1e-4, 1.0, 1.0]), third]).unwrap();
    for daimc in fits(1) {
        sound(&daimc.scale(Scale::None).passes(1).tolerance(0.0).max_iterations(200), &views);
    }
}

#[test]
fn a_start_of_zeros_has_an_outcome() {
    for daimc in fits(3) {
        sound(&daimc.clone().start(Matrix::zeros(30, 3)), &easy());
        sound(&daimc.start(Matrix::from_fn(30, 3, |i, k| f64::from(u8::from(i == 0 && k == 1)))), &easy());
    }
}

#[test]
fn a_start_of_huge_or_tiny_numbers_is_refused_or_fitted() {
    for size in [1e-200, 1e-160, 1e-50, 1e-9, 1e9, 1e50, 1e100, 1e200] {
        for daimc in fits(3) {
            match daimc.start(Matrix::from_fn(30, 3, |i, k| size * ((i + k) % 3) as f64)).fit(&easy()) {
                Ok(fitted) => assert_eq!(unsound(&fitted, &easy()), None, "a start of {size:e}"),
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::Option { option: "start", .. }, "start"),
            }
        }
    }
}

#[test]
fn huge_and_tiny_alpha_and_beta_are_refused_or_fitted() {
    let sizes = [1e-300, 1e-30, 1e30, 1e100];
    for (alpha, beta) in sizes.into_iter().flat_map(|alpha| sizes.map(|beta| (alpha, beta))) {
        for daimc in fits(3) {
            match daimc.alpha(alpha).beta(beta).fit(&easy()) {
                Ok(fitted) => assert_eq!(unsound(&fitted, &easy()), None, "alpha {alpha:e}, beta {beta:e}"),
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::Option { .. }, "= "),
            }
        }
    }
}
