//! New data.

use super::*;

#[test]
fn new_data_are_scaled_as_the_old_were() {
    let truth = truth(300);
    let [a, b] = data(&truth);
    // All from one cluster, and few: their own statistics differ.
    let new: Vec<usize> =
        (0..300).filter(|&i| truth[i] == 0 && a.present[i] && b.present[i]).take(7).collect();
    for scale in APPLIED {
        let [first, second] = [&a, &b].map(|rows| Naive::fit(scale, rows));
        for equal in [false, true] {
            let folded = fit(&given(&truth, scale, equal), vec![a.dense("a"), b.sparse("b")]);
            let plain = given(&truth, Scale::None, equal);
            let plain = fit(&plain, vec![first.apply(&a).dense("a"), second.apply(&b).dense("b")]);
            for some in [&new[..], &new[..1]] {
                let [a, b] = [&a, &b].map(|rows| rows.some(some.iter().copied()));
                let views = |a: View<'static>, b: View<'static>| Views::new(vec![a, b]).unwrap();
                let found = folded.model.transform(&views(a.dense("a"), b.sparse("b"))).unwrap();
                let written = views(first.apply(&a).dense("a"), second.apply(&b).dense("b"));
                let expected = plain.model.transform(&written).unwrap();
                assert!(expected.values().iter().any(|value| *value > 0.0));
                let difference = difference(&found, &expected);
                assert!(difference < 1e-6, "{scale}, equal weight {equal}: {difference:e}");
            }
        }
    }
}

#[test]
fn a_feature_that_was_constant_does_not_matter_to_new_data() {
    let truth = truth(120);
    for constant in [0.0, 0.1, 3.0, -1e6] {
        let of = |value: f64| Rows::around(&truth, 6, 3, move |f, x| if f == 2 { value } else { x });
        for scale in [Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore, Scale::ZScoreUnit] {
            type Layout = fn(&Rows, &str) -> View<'static>;
            for layout in [Rows::dense as Layout, Rows::dense_f32, Rows::sparse] {
                let fitted = fit(&Daimc::new(3).scale(scale), vec![layout(&of(constant), "a")]);
                let place =
                    |value| fitted.model.place(&Views::new(vec![layout(&of(value), "a")]).unwrap()).unwrap();
                let expected = place(constant);
                for value in [constant + 1.0, 1e6, -1e9] {
                    let found = place(value);
                    assert_eq!(found.labels, expected.labels, "{scale}: {constant} became {value}");
                    let difference = difference(&found.latent, &expected.latent);
                    assert!(difference < 1e-6, "{scale}: {constant} became {value}: {difference:e}");
                }
            }
        }
    }
}

#[test]
fn a_word_that_was_never_met_does_not_blow_up() {
    let truth = truth(120);
    let mut rows = Rows::counts(&truth, 20, 3);
    rows.values.iter_mut().skip(7).step_by(20).for_each(|value| *value = 0.0);
    let fitted = fit(&Daimc::new(3).scale(Scale::TfIdf), vec![rows.sparse("a")]);
    let mut new = rows.clone();
    new.values.iter_mut().skip(7).step_by(20).for_each(|value| *value = 1.0);
    let place = fitted.model.place(&Views::new(vec![new.sparse("a")]).unwrap()).unwrap();
    assert!(place.latent.values().iter().all(|value| value.is_finite()));
    let accuracy = daimc::metrics::accuracy(&truth, &place.labels).unwrap();
    let before = daimc::metrics::accuracy(&truth, &fitted.labels).unwrap();
    assert!(accuracy > before - 0.1, "{accuracy} after {before}");
}
