//! New instances with missing cells, and the data that a model keeps to place them.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Model, Neighbours, Scale, View, Views, metrics};

use crate::data::{Table, tables, views};
use crate::made::around;

#[test]
fn a_model_that_is_saved_places_a_single_row_with_a_missing_cell() {
    let truth = Synthetic::new(200, 3).seed(3).truth();
    let values = around(&truth, 8, 0.3, 1);
    let view = |values: Vec<f64>| Views::new(vec![View::dense("a", 8, values).unwrap()]).unwrap();
    for scale in [Scale::Auto, Scale::None, Scale::MinMax, Scale::ZScoreUnit] {
        // The fit has complete rows only.
        let fit = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&view(values.clone())).unwrap();
        let model = Model::from_bytes(&fit.model.to_bytes().unwrap()).unwrap();
        assert_eq!(model, fit.model);
        assert_eq!(Fit::from_bytes(&fit.to_bytes().unwrap()).unwrap(), fit);
        let mut same = 0;
        for i in 0..20 {
            for f in 0..8 {
                let mut row = values[i * 8..(i + 1) * 8].to_vec();
                row[f] = f64::NAN;
                let found = model.place(&view(row)).unwrap();
                assert!(found.latent.values().iter().all(|value| value.is_finite()));
                same += usize::from(found.labels == [fit.labels[i]]);
            }
        }
        // The missing cell may be the one that distinguished two clusters.
        assert!(same >= 152, "{scale}: {same} of 160");
    }
}

#[test]
fn what_is_known_of_missing_cells_is_saved() {
    let tables = tables(150, &[(6, false), (4, true)], 3, [0.2, 0.2], 8);
    let views = views(&tables);
    let fit = Daimc::new(3).neighbours(Neighbours::Off).fit(&views).unwrap();
    let read = Fit::from_bytes(&fit.to_bytes().unwrap()).unwrap();
    assert_eq!(read, fit);
    assert!(read.missing_cells.iter().all(|own| own.cells() > 0 && own.instances > 0));
    assert_eq!(read.model.transform(&views).unwrap(), fit.model.transform(&views).unwrap());
}

/// V of new rows does not depend on the values in missing cells.
#[test]
fn what_stands_in_a_missing_cell_does_not_matter() {
    let all = tables(100, &[(6, false), (4, false)], 3, [0.2, 0.25], 8);
    for scale in [Scale::Auto, Scale::MinMax, Scale::ZScore] {
        let fit = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&views(&all)).unwrap();
        let expected = fit.model.transform(&views(&all)).unwrap();
        let mut other = fit.model.clone();
        for view in &mut other.views {
            view.preparation.fill.iter_mut().for_each(|fill| *fill = 7.0 - 2.0 * *fill);
        }
        let found = other.transform(&views(&all)).unwrap();
        let difference = crate::made::difference(&found, &expected);
        assert!(difference < 1e-7, "{scale}: {difference:e}");
        for view in ["view 0", "view 1"] {
            let of = |model: &Model| model.misfit_of(&views(&all), view, &expected).unwrap();
            let (found, expected) = (of(&other), of(&fit.model));
            for (found, expected) in found.error.iter().zip(&expected.error) {
                assert!((found - expected).abs() < 1e-9, "{scale}: {found}, not {expected}");
            }
            assert_eq!(found.square, expected.square);
        }
        let of = |model: &Model| model.contributions_of(&views(&all), &fit.labels).unwrap();
        let (found, expected) = (of(&other), of(&fit.model));
        for i in 0..100 {
            for (found, expected) in found.evidence(i).iter().zip(expected.evidence(i)) {
                let (found, expected) = (found.unwrap_or(0.0), expected.unwrap_or(0.0));
                assert!((found - expected).abs() < 1e-9, "{scale}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn missing_cells_are_filled_in_by_the_model() {
    let truth = Synthetic::new(300, 3).seed(5).truth();
    let whole = tables(300, &[(10, false)], 3, [0.0, 0.0], 5);
    let mut some: Vec<Table> = whole.clone();
    some[0].values = around(&truth, 10, 0.2, 5).iter().map(|x| x + 2.0).collect();
    let known = some[0].values.clone();
    some[0].values.iter_mut().enumerate().filter(|(at, _)| at % 7 == 0).for_each(|(_, x)| *x = f64::NAN);
    let views = views(&some);
    for scale in [Scale::Auto, Scale::None, Scale::MinMax] {
        let fit = Daimc::new(3).scale(scale).neighbours(Neighbours::Off).fit(&views).unwrap();
        assert!(metrics::accuracy(&truth, &fit.labels).unwrap() > 0.99);
        let made = fit.model.impute(&views, "view 0", &fit.latent).unwrap().values;
        let (mut error, mut spread) = (0.0, 0.0);
        for (at, x) in known.iter().enumerate() {
            let (i, f) = (at / 10, at % 10);
            if at % 7 == 0 {
                error += (made[(i, f)] - x).powi(2);
                spread += (fit.model.views[0].preparation.fill[f] - x).powi(2);
            } else {
                assert_eq!(made[(i, f)].to_bits(), x.to_bits(), "what is there stays as it is");
            }
        }
        assert!(error < 0.2 * spread, "{scale}: {error} of {spread}");
    }
}
