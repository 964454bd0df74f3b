//! α and β that are measured by the data, and views that are noise.

use daimc::steps::alignment;
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Matrix, Penalty, Preset, Scale, ViewWeights, Views, simulate};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Two views of 1000 features, 50 of which distinguish the clusters, with 30 % of each view missing.
fn planted(clusters: usize, seed: u64) -> (Views<'static>, [Vec<usize>; 2]) {
    let data = Synthetic::new(600, clusters).informative(50).seed(seed);
    let present = simulate::missing(600, &[0.3; 2], seed).unwrap();
    let view =
        |(name, present): (&str, &Vec<bool>)| data.dense::<f64>(name, 1000).unwrap().mask(present).unwrap();
    let views = Views::new(["a", "b"].into_iter().zip(&present).map(view).collect()).unwrap();
    (views, ["a", "b"].map(|name| data.informative_features(name, 1000)))
}

/// Precision and recall of the features that a model selects.
fn found(fitted: &Fit, informative: &[Vec<usize>; 2]) -> (f64, f64) {
    let (mut hits, mut selected, mut all) = (0, 0, 0);
    for (view, informative) in fitted.model.views.iter().zip(informative) {
        let own = view.selected();
        hits += own.iter().filter(|feature| informative.contains(feature)).count();
        selected += own.len();
        all += informative.len();
    }
    (hits as f64 / selected.max(1) as f64, hits as f64 / all as f64)
}

#[test]
fn planted_features_are_found_with_the_beta_that_predicts_best() {
    for (clusters, seed) in [(3, 0), (4, 3), (5, 1), (8, 2)] {
        let (views, informative) = planted(clusters, seed);
        let fitted = Daimc::new(clusters).penalty(Penalty::Auto).seed(seed).fit(&views).unwrap();
        assert_eq!(fitted.model.options.penalty, Penalty::Relative);
        let (precision, recall) = found(&fitted, &informative);
        let (alpha, beta) = (fitted.model.options.alpha, fitted.model.options.beta);
        println!("K = {clusters}, α = {alpha}, β = {beta}: precision {precision:.3}, recall {recall:.3}");
        assert!(precision >= 0.9 && recall >= 0.9, "K = {clusters}: {precision}, {recall}");
        // As published, every feature stays.
        let (precision, _) = found(&Daimc::new(clusters).seed(seed).fit(&views).unwrap(), &informative);
        assert!(precision < 0.1, "{precision}");
    }
}

#[test]
fn a_given_beta_finds_the_planted_features() {
    for (clusters, beta, seed) in [(3, 0.15, 0), (5, 0.15, 1)] {
        let (views, informative) = planted(clusters, seed);
        // What a share of the largest row leaves out depends on how features are scaled.
        let fit = Daimc::new(clusters).scale(Scale::Unit).penalty(Penalty::Relative);
        let fit = fit.alpha(1.0).beta(beta).seed(seed);
        let (precision, recall) = found(&fit.fit(&views).unwrap(), &informative);
        assert!(precision >= 0.9 && recall >= 0.9, "K = {clusters}: {precision}, {recall}");
    }
}

#[test]
fn there_is_a_choice_where_nothing_can_be_hidden() {
    let one = Views::new(vec![Synthetic::new(60, 3).dense::<f64>("a", 10).unwrap()]).unwrap();
    let fitted = Daimc::new(3).penalty(Penalty::Auto).fit(&one).unwrap();
    assert_eq!((fitted.model.options.alpha, fitted.model.options.beta), (1.0, 0.15));
}

/// Where hardly any feature is left, the basis cannot be aligned: the larger α, the more it is bent towards them.
#[test]
fn a_relative_alpha_is_weighed_against_the_reconstruction() {
    let data = Synthetic::new(200, 3).noise(1.5).seed(5);
    let views =
        Views::new(vec![data.dense::<f64>("a", 20).unwrap(), data.dense::<f64>("b", 20).unwrap()]).unwrap();
    let loss = |alpha| {
        let fit = Daimc::new(3).penalty(Penalty::Relative).alpha(alpha).beta(0.9);
        fit.fit(&views).unwrap().history.last().unwrap().loss
    };
    let bent = [0.0, 1.0, 10.0].map(loss);
    assert!(bent[1] > bent[0] * 1.001 && bent[2] > bent[1] * 1.001, "{bent:?}");
}

#[test]
fn the_paper_preset_has_the_published_penalty_and_equal_weights() {
    let options = Daimc::new(4).preset(Preset::Paper).options().clone();
    assert_eq!((options.penalty, options.view_weights), (Penalty::Published, ViewWeights::Equal));
}

#[test]
fn a_relative_beta_beyond_one_is_refused() {
    let views = Views::new(vec![Synthetic::new(60, 3).dense::<f64>("a", 10).unwrap()]).unwrap();
    let error = Daimc::new(3).penalty(Penalty::Relative).beta(1.5).fit(&views).unwrap_err().to_string();
    assert!(error.contains("beta = 1.5") && error.contains("from 0"), "{error}");
    let none = Daimc::new(3).penalty(Penalty::Relative).alpha(1.0).beta(1.0).fit(&views).unwrap();
    assert!(none.model.views[0].selected().is_empty());
}

proptest! {
    #[test]
    fn the_relative_b_step_keeps_large_rows_and_aligns_by_them(
        d in 4_usize..20, k in 1_usize..4, seed in any::<u64>(), beta in 0.0..1.2_f64,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let basis = Matrix::from_fn(d, k, |_, _| rng.random_range(-1.0..1.0));
        let square = |row: &[f64]| row.iter().map(|b| b * b).sum::<f64>();
        let exact = alignment::select(&basis, 0.0).unwrap();
        let largest = exact.iter_rows().map(square).fold(0.0, f64::max);
        let found = alignment::select(&basis, beta).unwrap();
        let mut kept = 0;
        for (own, exact) in found.iter_rows().zip(exact.iter_rows()) {
            let large = square(exact) > beta * beta * largest;
            prop_assert_eq!(own.iter().any(|b| *b != 0.0), large);
            kept += usize::from(large);
        }
        prop_assert!(beta < 1.0 || kept == 0);
        // Random rows are independent: K of them align the basis, though not always to many digits.
        if kept > k + 1 {
            for (i, j) in (0..k).flat_map(|i| (0..k).map(move |j| (i, j))) {
                let product: f64 = (0..d).map(|f| found[(f, i)] * basis[(f, j)]).sum();
                prop_assert!((product - f64::from(u8::from(i == j))).abs() < 1e-6, "{product}");
            }
        }
    }
}

/// Digit without `mor`, with 30 % of every view missing; and the same with a view of noise.
#[cfg(feature = "digit")]
fn digit(seed: u64) -> (Views<'static>, Views<'static>, Vec<usize>) {
    use daimc::View;

    let (views, truth) = daimc::datasets::digit();
    let instances = truth.len();
    let present = simulate::missing(instances, &[0.3; 5], seed).unwrap();
    let views = views.into_iter().filter(|view| view.name() != "mor").zip(&present);
    let mut views: Vec<View> = views.map(|(view, present)| view.mask(present).unwrap()).collect();
    let clean = Views::new(views.clone()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 1000);
    let noise: Vec<f32> =
        (0..instances * 1000).map(|_| (0..4).map(|_| rng.random::<f32>()).sum::<f32>() - 2.0).collect();
    let seen = &simulate::missing(instances, &[0.3; 6], seed).unwrap()[5];
    views.push(View::dense("noise", 1000, noise).unwrap().mask(seen).unwrap());
    (clean, Views::new(views).unwrap(), truth)
}

/// The accuracy that a view of noise costs where weights are learned, and where they are equal.
#[cfg(feature = "digit")]
fn lost_to_noise(seed: u64) -> (f64, f64) {
    let (clean, junk, truth) = digit(seed);
    let fit = Daimc::new(10).seed(seed);
    let accuracy = |fitted: &Fit| daimc::metrics::accuracy(&truth, &fitted.labels).unwrap();
    let fitted = fit.clone().view_weights(ViewWeights::Learned).fit(&junk).unwrap();
    let importance: Vec<f64> = fitted.model.views.iter().map(|view| view.scaling.importance).collect();
    assert!(importance[..5].iter().all(|own| *own == 1.0) && importance[5] < 1e-3, "{importance:?}");
    let without = accuracy(&fit.fit(&clean).unwrap());
    (without - accuracy(&fitted), without - accuracy(&fit.fit(&junk).unwrap()))
}

#[cfg(feature = "digit")]
#[test]
fn learned_weights_identify_a_view_of_noise() {
    lost_to_noise(0);
}

#[cfg(feature = "digit")]
mod studies {
    use super::*;

    #[test]
    #[ignore = "a study: make test-all"]
    fn a_view_of_noise_does_no_harm_where_weights_are_learned() {
        let (lost, equal): (Vec<f64>, Vec<f64>) = (0..5).map(lost_to_noise).unzip();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        println!("AC lost to the noise: {:.4} {lost:.4?}; weights equal {:.4}", mean(&lost), mean(&equal));
        assert!(mean(&lost) <= 0.01, "{lost:?}");
    }
}

#[test]
fn views_that_share_the_clusters_keep_their_weight() {
    let data = Synthetic::new(300, 4).seed(3);
    let present = simulate::missing(300, &[0.3; 3], 3).unwrap();
    let views = ["a", "b", "c"].into_iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f64>(name, 20).unwrap().mask(present).unwrap());
    let views = Views::new(views.collect()).unwrap();
    let equal = Daimc::new(4).fit(&views).unwrap();
    let mut learned = Daimc::new(4).view_weights(ViewWeights::Learned).fit(&views).unwrap();
    assert!(learned.model.views.iter().all(|view| view.scaling.importance == 1.0));
    learned.model.options.view_weights = ViewWeights::Equal;
    learned.timings = equal.timings;
    assert_eq!(equal, learned);
    // One view: there is nothing to learn from.
    let one = Views::new(vec![data.dense::<f64>("a", 20).unwrap()]).unwrap();
    let fitted = Daimc::new(4).view_weights(ViewWeights::Learned).fit(&one).unwrap();
    assert_eq!(fitted.model.views[0].scaling.importance, 1.0);
}
