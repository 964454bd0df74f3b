//! Options that are refused, and values too large to be squared.

use super::*;

#[test]
fn clusters_must_be_at_least_one_and_at_most_the_instances() {
    let views = easy();
    refused!(Daimc::new(0).fit(&views), Error::Option { option: "clusters", .. }, "clusters = 0", "30");
    refused!(Daimc::new(31).fit(&views), Error::Unsuitable { what: "clusters", .. }, "clusters = 31", "30");
}

#[test]
fn latent_must_be_at_least_one_and_at_most_the_instances() {
    let views = easy();
    let fit = |latent| Daimc::new(3).latent(latent).fit(&views);
    refused!(fit(0), Error::Option { option: "latent", .. }, "latent = 0", "30");
    refused!(fit(31), Error::Unsuitable { what: "latent", .. }, "latent = 31", "30");
}

#[test]
fn alpha_beta_and_tolerance_must_be_finite_and_not_negative() {
    let views = easy();
    for (bad, shown) in [(-1e-9, "-"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")]
    {
        let daimc = Daimc::new(3);
        let alpha = daimc.clone().alpha(bad).fit(&views);
        refused!(alpha, Error::Option { option: "alpha", .. }, "alpha = ", shown, "finite");
        let beta = daimc.clone().beta(bad).fit(&views);
        refused!(beta, Error::Option { option: "beta", .. }, "beta = ", shown, "finite");
        let tolerance = daimc.tolerance(bad).fit(&views);
        refused!(tolerance, Error::Option { option: "tolerance", .. }, "tolerance = ", shown, "finite");
    }
}

#[test]
fn passes_iterations_and_restarts_must_be_at_least_one() {
    let (views, daimc) = (easy(), Daimc::new(3));
    let passes = daimc.clone().passes(0).fit(&views);
    refused!(passes, Error::Option { option: "passes", .. }, "passes = 0", "at least 1");
    let iterations = daimc.clone().max_iterations(0).fit(&views);
    refused!(iterations, Error::Option { option: "max_iterations", .. }, "max_iterations = 0", "at least 1");
    let restarts = daimc.restarts(0).fit(&views);
    refused!(restarts, Error::Option { option: "restarts", .. }, "restarts = 0", "at least 1");
}

#[test]
fn a_scale_for_an_unknown_view_is_refused() {
    let fit = Daimc::new(3).scale_view("a", Scale::None).scale_view("c", Scale::Unit).fit(&easy());
    refused!(fit, Error::UnknownView { .. }, "view 'c'", "a, b");
}

#[test]
fn an_unknown_scale_is_refused_with_the_known_ones() {
    refused!("minmax".parse::<Scale>(), Error::Option { option: "scale", .. }, "minmax", "min-max", "tf-idf");
}

#[test]
fn a_start_of_another_shape_is_refused() {
    let views = easy();
    for (rows, columns) in [(29, 3), (31, 3), (30, 2), (3, 30), (0, 0)] {
        let start = Matrix::from_fn(rows, columns, |_, _| 1.0);
        let shown = format!("{rows} × {columns}");
        let fit = Daimc::new(3).start(start).fit(&views);
        refused!(fit, Error::Option { option: "start", .. }, &shown, "30 × 3");
    }
}

#[test]
fn a_start_that_is_negative_or_not_finite_is_refused() {
    let views = easy();
    for (bad, shown) in [(-0.5, "-0.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let start = Matrix::from_fn(30, 3, |i, k| if (i, k) == (29, 2) { bad } else { 1.0 });
        let fit = Daimc::new(3).start(start).fit(&views);
        refused!(fit, Error::Option { option: "start", .. }, shown, "0 or from 1e-100");
    }
}

// Values too large to be squared.

/// Two clusters of four instances; instance `p5` and later have values around 1e200.
fn huge() -> View<'static> {
    let value = |i: usize, f: usize| {
        let small = if i % 2 == f { 1.0 + 0.01 * i as f64 } else { 0.1 };
        if i >= 5 { small * 1e200 } else { small }
    };
    let values: Vec<f64> = (0..8).flat_map(|i| (0..2).map(move |f| value(i, f))).collect();
    let ids: Vec<String> = (0..8).map(|i| format!("p{i}")).collect();
    View::dense("huge", 2, values).unwrap().ids(ids).unwrap()
}

#[test]
fn values_too_large_to_be_squared_are_refused_without_scaling() {
    let views = Views::new(vec![huge()]).unwrap();
    for daimc in fits(2) {
        for equal in [true, false] {
            let fit = daimc.clone().scale(Scale::None).equal_weight(equal).fit(&views);
            refused!(fit, Error::TooLarge { row: 5, .. }, "view 'huge'", "row 5", "'p5'");
        }
    }
}

#[test]
fn values_too_large_to_be_squared_can_be_brought_to_unit_length() {
    let views = Views::new(vec![huge()]).unwrap();
    for daimc in fits(2) {
        let fitted = sound(&daimc.scale(Scale::Unit), &views);
        let even = fitted.labels[0];
        assert!((0..8).all(|i| (fitted.labels[i] == even) == (i % 2 == 0)), "{:?}", fitted.labels);
    }
}

#[test]
fn rows_whose_squares_only_overflow_when_added_up_are_refused_or_fitted() {
    // Each square is below the largest number, their sum is not.
    let views = Views::new(vec![View::dense("a", 1, vec![1e154; 8]).unwrap()]).unwrap();
    for daimc in fits(2) {
        for equal in [true, false] {
            match daimc.clone().scale(Scale::None).equal_weight(equal).fit(&views) {
                Ok(fitted) => assert_eq!(unsound(&fitted, &views), None),
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::TooLarge { .. }, "view 'a'"),
            }
        }
    }
}

#[test]
fn values_near_the_largest_number_are_refused_or_fitted() {
    let most = f64::MAX;
    for values in [[most; 4], [most, -most, 0.0, 1.0], [1e308, 2.0, 1e308, 1.0], [1e200, 0.0, 1.0, 2e200]] {
        let views = Views::new(vec![View::dense("a", 1, values.to_vec()).unwrap()]).unwrap();
        for daimc in fits(2) {
            for scale in SCALES {
                match daimc.clone().scale(scale).fit(&views) {
                    Ok(fitted) => assert_eq!(unsound(&fitted, &views), None, "{values:?} {scale}"),
                    Err(Error::OutOfRange) => {}
                    Err(error @ Error::Scaling { .. }) => {
                        refused!(Err::<(), _>(error), Error::Scaling { .. }, "view 'a'", "largest number");
                    }
                    Err(error) => refused!(Err::<(), _>(error), Error::TooLarge { .. }, "view 'a'"),
                }
            }
        }
    }
}

#[test]
fn new_values_too_large_to_be_squared_are_refused() {
    let fitted = Daimc::new(3).scale(Scale::None).fit(&easy()).unwrap();
    let new = View::dense("a", 4, vec![0.0, 0.0, 0.0, 0.0, 0.0, 1e200, 0.0, 0.0]).unwrap();
    let new = Views::new(vec![new.ids(strings(&["ok", "bad"])).unwrap()]).unwrap();
    refused!(fitted.model.predict(&new), Error::TooLarge { row: 1, .. }, "view 'a'", "row 1", "'bad'");
}
