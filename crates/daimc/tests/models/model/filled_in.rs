//! Reconstruction of missing rows.

use super::*;

/// Rows standardised by the mean and the deviation of each feature in other rows.
fn standard(rows: &[f64], other: &[f64], features: usize) -> Vec<f64> {
    let n = (other.len() / features) as f64;
    let column = |f: usize| other.iter().skip(f).step_by(features);
    let means: Vec<f64> = (0..features).map(|f| column(f).sum::<f64>() / n).collect();
    let deviation = |f: usize| (column(f).map(|x| (x - means[f]).powi(2)).sum::<f64>() / n).sqrt();
    let deviations: Vec<f64> = (0..features).map(deviation).collect();
    rows.iter().enumerate().map(|(i, x)| (x - means[i % features]) / deviations[i % features]).collect()
}

/// The correlation of held-out rows with their reconstructions, each feature standardised, and the ratio of their lengths.
fn filled_in(scale: Scale, unit: impl Fn(usize, f64) -> f64 + Copy) -> (f64, f64) {
    let (n, d) = (300, 10);
    let truth = Synthetic::new(n, 3).seed(8).truth();
    let (a, b) = (planted(&truth, 8, 3, unit), planted(&truth, d, 4, unit));
    let present = simulate::missing(n, &[0.0, 0.3], 6).unwrap();
    let mut shown = b.clone();
    for i in (0..n).filter(|&i| !present[1][i]) {
        shown[i * d..(i + 1) * d].fill(f64::NAN);
    }
    let views = Views::new(vec![
        View::dense("a", 8, a).unwrap(),
        View::dense("b", d, shown).unwrap().mask(&present[1]).unwrap(),
    ])
    .unwrap();
    let fitted = Daimc::new(3).scale(scale).fit(&views).unwrap();
    let rows = fitted.model.reconstruct("b", &fitted.latent).unwrap();
    assert_eq!((rows.rows(), rows.columns()), (n, d));
    let missing = || (0..n).filter(|&i| !present[1][i]);
    let (found, expected) = (rows_of(rows.values(), d, missing()), rows_of(&b, d, missing()));
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    (correlation(&standard(&found, &b, d), &standard(&expected, &b, d)), length(&found) / length(&expected))
}

#[test]
fn missing_rows_are_filled_in_in_the_units_of_the_data() {
    for scale in [Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
        let (correlation, length) = filled_in(scale, |_, x| 40.0 * x);
        assert!(correlation > 0.9, "{scale}: {correlation}");
        assert!((length - 1.0).abs() < 0.1, "{scale}: lengths differ by a factor {length}");
    }
}

#[test]
fn missing_rows_are_filled_in_where_features_differ_in_unit_and_origin() {
    for scale in [Scale::MinMax, Scale::ZScore] {
        let (correlation, length) =
            filled_in(scale, |f, x| [1.0, 10.0, 100.0, 1000.0][f % 4] * (x + f as f64));
        assert!(correlation > 0.9, "{scale}: {correlation}");
        assert!((length - 1.0).abs() < 0.1, "{scale}: lengths differ by a factor {length}");
    }
}

#[test]
fn what_is_filled_in_follows_the_present_rows_as_well() {
    let truth = Synthetic::new(200, 3).seed(8).truth();
    let values = planted(&truth, 10, 4, |_, x| x);
    let views = Views::new(vec![View::dense("b", 10, &values).unwrap()]).unwrap();
    for scale in [Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
        let fitted = Daimc::new(3).scale(scale).fit(&views).unwrap();
        let rows = fitted.model.reconstruct("b", &fitted.latent).unwrap();
        let correlation = correlation(&standard(rows.values(), &values, 10), &standard(&values, &values, 10));
        assert!(correlation > 0.9, "{scale}: {correlation}");
    }
}

#[test]
fn every_feature_has_a_relevance() {
    let data = easy(100);
    let fitted = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    for (name, features) in [("a", 12), ("b", 20), ("c", 60)] {
        let view = fitted.model.view(name).unwrap();
        let relevance = view.relevance();
        assert_eq!(relevance.len(), features);
        assert!(relevance.iter().all(|value| value.is_finite() && *value >= 0.0));
        for (relevance, row) in relevance.iter().zip(view.alignment.iter_rows()) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((relevance - norm).abs() <= 1e-5 + 1e-9 * norm);
        }
    }
}

#[test]
fn features_without_any_cluster_matter_less_than_the_others() {
    let truth = Synthetic::new(300, 3).seed(8).truth();
    // The last five features are equal for all clusters, except for noise.
    let unit = |f: usize, x: f64| if f < 5 { x } else { 0.0 };
    let noise = planted(&vec![0; 300], 10, 9, |f, x| if f < 5 { 0.0 } else { x });
    let values: Vec<f64> = planted(&truth, 10, 4, unit).iter().zip(&noise).map(|(a, b)| a + b).collect();
    let views = Views::new(vec![View::dense("a", 10, values).unwrap()]).unwrap();
    let fitted = Daimc::new(3).scale(Scale::ZScore).fit(&views).unwrap();
    let relevance = fitted.model.views[0].relevance();
    let mean = |range: &[f64]| range.iter().sum::<f64>() / range.len() as f64;
    assert!(mean(&relevance[..5]) > 2.0 * mean(&relevance[5..]), "{relevance:?}");
}
