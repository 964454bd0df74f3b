//! What is wrong with the data or the options is said before any work is done, and where it stands; what is merely
//! odd has a defined outcome. Nothing panics, and no number that comes out is NaN or infinite.

use std::collections::HashMap;

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, Matrix, Model, Preset, Scale, Solver, View, Views};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

/// Asserts that an outcome is an error of this form whose message names each of the words.
macro_rules! refused {
    ($outcome:expr, $form:pat, $($word:expr),+ $(,)?) => {{
        let error = $outcome.err().expect("must be refused");
        let message = error.to_string();
        assert!(matches!(error, $form), "{error:?}");
        $(assert!(message.contains($word), "'{message}' does not name {:?}", $word);)+
    }};
}

fn strings<S: ToString>(names: &[S]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A view of these values whose rows have these IDs.
fn named<'a>(name: &str, ids: &[&str]) -> View<'a> {
    let values: Vec<f64> = (0..ids.len()).map(|i| i as f64).collect();
    View::dense(name, 1, values).unwrap().ids(strings(ids)).unwrap()
}

/// Two views of 30 instances in 3 clusters.
fn easy() -> Views<'static> {
    let data = Synthetic::new(30, 3).noise(0.3).seed(1);
    Views::new(vec![data.dense::<f64>("a", 4).unwrap(), data.dense::<f32>("b", 6).unwrap()]).unwrap()
}

/// The rows as compressed rows, zeros left out.
fn compressed(features: usize, values: &[f64]) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    let (mut offsets, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks(features) {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            columns.push(column);
            stored.push(value);
        }
        offsets.push(columns.len());
    }
    (offsets, columns, stored)
}

/// The same values in each of the four layouts.
fn layouts(name: &str, features: usize, values: &[f64]) -> [View<'static>; 4] {
    let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
    let (offsets, columns, stored) = compressed(features, values);
    [
        View::dense(name, features, values.to_vec()).unwrap(),
        View::dense(name, features, single(values)).unwrap(),
        View::sparse(name, features, offsets.clone(), columns.clone(), single(&stored)).unwrap(),
        View::sparse(name, features, offsets, columns, stored).unwrap(),
    ]
}

/// Both presets with both solvers.
fn fits(clusters: usize) -> [Daimc; 4] {
    let fit = |preset, solver| Daimc::new(clusters).preset(preset).solver(solver).max_iterations(20);
    [
        fit(Preset::Default, Solver::Coordinate),
        fit(Preset::Default, Solver::Multiplicative),
        fit(Preset::Paper, Solver::Coordinate),
        fit(Preset::Paper, Solver::Multiplicative),
    ]
}

/// What is not a finite number in a model, or not in its range.
fn flaw(model: &Model, views: &Views<'_>) -> Option<String> {
    let n = views.instances();
    let bad = |what: &str, values: &[f64]| {
        let bad = values.iter().find(|value| !value.is_finite())?;
        Some(format!("{what} holds {bad}"))
    };
    let shape = |what: &str, matrix: &Matrix, expected: (usize, usize)| {
        let found = (matrix.rows(), matrix.columns());
        (found != expected).then(|| format!("{what} is {found:?}, not {expected:?}"))
    };
    let latent = model.options.latent;
    let mut flaws = vec![
        bad("V", model.latent.values()),
        shape("V", &model.latent, (n, latent)),
        model.latent.values().iter().find(|value| **value < 0.0).map(|value| format!("V holds {value}")),
        bad("centres", model.centres.values()),
        shape("centres", &model.centres, (latent, model.options.clusters)),
        (model.labels.len() != n).then(|| "as many labels as instances".into()),
        model
            .labels
            .iter()
            .find(|&&label| label >= model.options.clusters)
            .map(|label| format!("label {label}")),
        (model.confidence.len() != n).then(|| "as many confidences as instances".into()),
        model.confidence.iter().find(|c| !(0.0..=1.0).contains(*c)).map(|c| format!("confidence {c}")),
        (model.views.len() != views.len()).then(|| "as many view models as views".into()),
        model.history.is_empty().then(|| "no history".into()),
    ];
    for (i, now) in model.history.iter().chain([&model.objective]).enumerate() {
        let parts = [now.total, now.loss, now.alignment, now.sparsity];
        flaws.push(bad(&format!("objective {i} {now:?}"), &parts));
        flaws.push(parts.iter().find(|part| **part < 0.0).map(|part| format!("objective {i} has {part}")));
    }
    for (own, view) in model.views.iter().zip(views.iter()) {
        let of = |what: &str| format!("{what} of view {}", own.name);
        flaws.push(bad(&of("U"), own.basis.values()));
        flaws.push(shape(&of("U"), &own.basis, (view.features(), latent)));
        flaws.push(bad(&of("B"), own.alignment.values()));
        flaws.push(shape(&of("B"), &own.alignment, (view.features(), latent)));
        flaws.push(bad(&of("relevance"), &own.relevance()));
        flaws.push(bad(&of("shift"), &own.scaling.shift));
        flaws.push(bad(&of("factor"), &own.scaling.factor));
        flaws.push(bad(&of("weight and length"), &[own.scaling.weight, own.scaling.length]));
    }
    let time = model.timings;
    flaws.push(bad("timings", &[time.prepare, time.initialise, time.iterate, time.assign]));
    flaws.into_iter().flatten().next()
}

/// What is wrong with a model, with where it places the instances it was fitted to, or with its file.
fn unsound(model: &Model, views: &Views<'_>) -> Option<String> {
    if let Some(flaw) = flaw(model, views) {
        return Some(flaw);
    }
    let place = match model.place(views) {
        Ok(place) => place,
        Err(error) => return Some(format!("the instances it was fitted to cannot be placed: {error}")),
    };
    if let Some(value) = place.latent.values().iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
        return Some(format!("an instance is placed at {value}"));
    }
    if let Some(confidence) = place.confidence.iter().find(|c| !(0.0..=1.0).contains(*c)) {
        return Some(format!("an instance is placed with confidence {confidence}"));
    }
    for view in &model.views {
        let rows = model.reconstruct(&view.name, &model.latent).unwrap();
        if let Some(value) = rows.values().iter().find(|value| !value.is_finite()) {
            return Some(format!("view {} is reconstructed as {value}", view.name));
        }
    }
    match model.to_bytes().and_then(|bytes| Model::from_bytes(&bytes)) {
        Ok(_) => None,
        Err(error) => Some(format!("its file cannot be read: {error}")),
    }
}

/// Fits the views, which must work.
#[track_caller]
fn sound(daimc: &Daimc, views: &Views<'_>) -> Model {
    let model = daimc.fit(views).unwrap_or_else(|error| panic!("{error}\n{:?}", daimc.options()));
    if let Some(reason) = unsound(&model, views) {
        let names: Vec<&str> = views.iter().map(View::name).collect();
        panic!("{reason}\n{names:?} {:?}", daimc.options());
    }
    model
}

/// Fits the views with both presets and both solvers, which must work.
#[track_caller]
fn all_sound(clusters: usize, views: &Views<'_>) {
    for daimc in fits(clusters) {
        sound(&daimc, views);
    }
}

/// Views of these names and features, each of `rows` rows of small random numbers.
fn ordinary(rows: usize, features: &[usize]) -> Vec<View<'static>> {
    let data = Synthetic::new(rows, 2).seed(5);
    features.iter().enumerate().map(|(v, &d)| data.dense::<f64>(&format!("view {v}"), d).unwrap()).collect()
}

// Views that are refused.

#[test]
fn no_view_is_refused() {
    refused!(Views::new(Vec::new()), Error::NoViews, "no view");
    refused!(Views::join(Vec::new()), Error::NoViews, "no view");
}

#[test]
fn values_that_do_not_fill_rows_are_refused() {
    refused!(View::dense("a", 3, vec![0.0; 7]), Error::Shape { expected: 3, found: 1, .. }, "view 'a'");
    refused!(View::dense("a", 3, vec![0.0_f32; 2]), Error::Shape { expected: 3, found: 2, .. }, "view 'a'");
}

#[test]
fn views_of_different_length_are_refused() {
    let views = vec![View::dense("a", 1, vec![0.0; 4]).unwrap(), View::dense("b", 1, vec![0.0; 5]).unwrap()];
    refused!(Views::new(views), Error::Shape { expected: 4, found: 5, .. }, "view 'b'", "rows", "4", "5");
}

#[test]
fn a_mask_ids_or_names_of_another_length_are_refused() {
    let view = || View::dense("a", 2, vec![0.0; 6]).unwrap();
    refused!(view().mask(&[true; 2]), Error::Shape { expected: 3, found: 2, .. }, "view 'a'", "mask");
    refused!(view().ids(strings(&["x"])), Error::Shape { expected: 3, found: 1, .. }, "view 'a'", "IDs");
    let names = view().feature_names(strings(&["x"; 3]));
    refused!(names, Error::Shape { expected: 2, found: 3, .. }, "view 'a'", "feature names");
}

#[test]
fn a_view_without_features_is_refused() {
    refused!(View::dense("a", 0, Vec::<f64>::new()), Error::NoFeatures { .. }, "view 'a'");
    refused!(View::dense("a", 0, vec![1.0]), Error::NoFeatures { .. }, "view 'a'");
    let sparse = View::sparse("a", 0, vec![0, 0, 0], Vec::new(), Vec::<f32>::new());
    refused!(sparse.and_then(|view| Views::new(vec![view])), Error::NoFeatures { .. }, "view 'a'");
}

#[test]
fn two_views_of_one_name_are_refused() {
    let views = || vec![named("a", &["x", "y"]), named("b", &["x", "y"]), named("a", &["x", "y"])];
    refused!(Views::new(views()), Error::DuplicateView { .. }, "'a'");
    refused!(Views::join(views()), Error::DuplicateView { .. }, "'a'");
}

#[test]
fn an_id_that_occurs_twice_is_refused() {
    let views = || vec![named("a", &["x", "y", "z", "y"])];
    let words = ["view 'a'", "'y'", "row 1", "row 3"];
    let [view, id, first, second] = words;
    refused!(Views::new(views()), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
    refused!(Views::join(views()), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
    let late = vec![named("first", &["x", "y"]), named("a", &["x", "y", "z", "y"])];
    refused!(Views::join(late), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
}

#[test]
fn joining_a_view_without_ids_is_refused() {
    let views = vec![named("a", &["x", "y"]), View::dense("b", 1, vec![0.0; 2]).unwrap()];
    refused!(Views::join(views), Error::NoIds { .. }, "view 'b'", "IDs");
}

#[test]
fn ids_that_disagree_are_refused() {
    let views = vec![named("a", &["x", "y", "z"]), named("b", &["x", "z", "y"])];
    refused!(Views::new(views), Error::Unsuitable { what: "ids", .. }, "view 'b'", "row 1", "'y'", "z");
}

#[test]
fn a_view_that_shows_no_instance_is_refused() {
    let empty = named("b", &["x", "y"]).mask(&[false, false]).unwrap();
    refused!(Views::new(vec![named("a", &["x", "y"]), empty.clone()]), Error::EmptyView { .. }, "view 'b'");
    refused!(Views::join(vec![named("a", &["x", "y"]), empty]), Error::EmptyView { .. }, "view 'b'");
    refused!(Views::new(vec![named("a", &[])]), Error::EmptyView { .. }, "view 'a'");
    refused!(Views::join(vec![named("a", &[])]), Error::EmptyView { .. }, "view 'a'");
    let gone = View::dense("a", 2, vec![f64::NAN; 6]).unwrap().missing_where_nan();
    refused!(Views::new(vec![gone]), Error::EmptyView { .. }, "view 'a'");
}

#[test]
fn an_instance_in_no_view_is_refused() {
    let mask = |name: &str, present: &[bool]| named(name, &["v", "w", "x", "y"]).mask(present).unwrap();
    let views = vec![mask("a", &[true, false, true, false]), mask("b", &[true, false, false, false])];
    refused!(Views::new(views), Error::SeenInNoView { row: 1, count: 2, .. }, "'w'", "row 1", "2 such");
}

#[test]
fn an_instance_that_every_joined_view_marks_as_missing_is_dropped_and_accounted_for() {
    let one = named("a", &["x", "y"]).mask(&[true, false]).unwrap();
    let (views, account) = Views::join(vec![one, named("b", &["x", "z"])]).unwrap();
    assert_eq!((views.instances(), account.dropped), (2, strings(&["y"])));
}

#[test]
fn a_value_that_is_not_finite_is_named() {
    let names = || strings(&["red", "green", "blue"]);
    for (bad, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut values = vec![1.0; 12];
        values[7] = bad;
        for view in layouts("colour", 3, &values) {
            let view = view.ids(strings(&["p", "q", "r", "s"])).unwrap().feature_names(names()).unwrap();
            let missing = view.clone().mask(&[true, true, false, true]).unwrap();
            let error = Views::new(vec![view]).unwrap_err();
            let Error::NotFinite { view, row: 2, id, column: 1, feature, value } = &error else {
                panic!("{error:?}");
            };
            assert_eq!((&view[..], &id[..], &feature[..]), ("colour", "r", "green"));
            assert!(value.is_nan() == bad.is_nan() && (bad.is_nan() || *value == bad));
            refused!(Err::<(), _>(error), _, "'colour'", "row 2", "'r'", "column 1", "'green'", shown);

            let other = View::dense("other", 1, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
            let views = Views::new(vec![missing, other]).unwrap();
            for daimc in fits(2) {
                sound(&daimc.scale(Scale::ZScoreUnit), &views);
            }
        }
    }
}

#[test]
fn a_value_that_is_not_finite_is_named_by_the_row_of_its_own_view() {
    let a = named("a", &["x", "y", "z"]);
    let b = View::dense("b", 2, vec![0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0]).unwrap();
    let b = b.ids(strings(&["z", "y", "new"])).unwrap();
    let error = Views::join(vec![a, b]).map(|_| ()).unwrap_err();
    refused!(
        Err::<(), _>(error),
        Error::NotFinite { row: 1, column: 1, .. },
        "'b'",
        "row 1",
        "'y'",
        "column 1"
    );
}

#[test]
fn rows_of_nan_can_be_taken_as_missing_but_a_single_nan_cannot() {
    let nan = f64::NAN;
    let views = |values: Vec<f64>| {
        let a = View::dense("a", 2, values).unwrap().missing_where_nan();
        Views::new(vec![a, View::dense("b", 1, vec![1.0, 2.0, 3.0]).unwrap()])
    };
    assert!(!views(vec![1.0, 2.0, nan, nan, 3.0, 4.0]).unwrap().is_present(0, 1));
    let half = views(vec![1.0, 2.0, nan, nan, 3.0, nan]);
    refused!(half, Error::NotFinite { row: 2, column: 1, .. }, "'a'", "row 2", "column 1");
}

#[test]
fn a_broken_sparse_matrix_is_refused() {
    let sparse = |offsets: &[usize], columns: &[u32]| {
        View::sparse("s", 4, offsets.to_vec(), columns.to_vec(), vec![1.0; 3])
    };
    assert_eq!(sparse(&[0, 1, 1, 3], &[0, 0, 3]).unwrap().rows(), 3);
    let view = "view 's'";
    refused!(sparse(&[0, 1, 3], &[0, 1]), Error::Shape { expected: 3, found: 2, .. }, view, "column");
    refused!(
        sparse(&[1, 2, 3], &[0, 1, 2]),
        Error::Shape { expected: 0, found: 1, .. },
        view,
        "first offset"
    );
    refused!(sparse(&[], &[0, 1, 2]), Error::Shape { .. }, view, "offset");
    refused!(sparse(&[0, 1, 2], &[0, 1, 2]), Error::Shape { expected: 3, found: 2, .. }, view, "last offset");
    refused!(sparse(&[0, 1, 4], &[0, 1, 2]), Error::Shape { expected: 3, found: 4, .. }, view, "last offset");
    refused!(sparse(&[0, 2, 1, 3], &[0, 1, 2]), Error::Sparse { row: 1, .. }, view, "row 1", "offsets");
    let huge = sparse(&[0, 1, usize::MAX, 3], &[0, 1, 2]);
    refused!(huge, Error::Sparse { row: 1, .. }, view, "row 1", "offsets");
    refused!(sparse(&[0, 1, 3], &[0, 2, 1]), Error::Sparse { row: 1, .. }, view, "row 1", "increasing");
    refused!(sparse(&[0, 1, 3], &[0, 2, 2]), Error::Sparse { row: 1, .. }, view, "row 1", "at most once");
    refused!(sparse(&[0, 2, 3], &[0, 4, 1]), Error::Sparse { row: 0, .. }, view, "row 0", "features");
}

// Options that are refused.

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
        refused!(fit, Error::Option { option: "start", .. }, shown, "zero or above");
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
        let model = sound(&daimc.scale(Scale::Unit), &views);
        let even = model.labels[0];
        assert!((0..8).all(|i| (model.labels[i] == even) == (i % 2 == 0)), "{:?}", model.labels);
    }
}

#[test]
fn rows_whose_squares_only_overflow_when_added_up_are_refused_or_fitted() {
    // Each square is below the largest number, their sum is not.
    let views = Views::new(vec![View::dense("a", 1, vec![1e154; 8]).unwrap()]).unwrap();
    for daimc in fits(2) {
        for equal in [true, false] {
            match daimc.clone().scale(Scale::None).equal_weight(equal).fit(&views) {
                Ok(model) => assert_eq!(unsound(&model, &views), None),
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
                    Ok(model) => assert_eq!(unsound(&model, &views), None, "{values:?} {scale}"),
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
    let model = Daimc::new(3).scale(Scale::None).fit(&easy()).unwrap();
    let new = View::dense("a", 4, vec![0.0, 0.0, 0.0, 0.0, 0.0, 1e200, 0.0, 0.0]).unwrap();
    let new = Views::new(vec![new.ids(strings(&["ok", "bad"])).unwrap()]).unwrap();
    refused!(model.predict(&new), Error::TooLarge { row: 1, .. }, "view 'a'", "row 1", "'bad'");
}

// Questions to a model that are refused.

#[test]
fn new_data_that_do_not_fit_the_model_are_refused() {
    let data = Synthetic::new(30, 3).seed(1);
    let names = strings(&["p", "q", "r", "s"]);
    let a = data.dense::<f64>("a", 4).unwrap().feature_names(names.clone()).unwrap();
    let views = Views::new(vec![a.clone(), data.dense::<f32>("b", 6).unwrap()]).unwrap();
    let model = Daimc::new(3).fit(&views).unwrap();
    let predict = |view: View<'static>| model.predict(&Views::new(vec![view]).unwrap());

    let unknown = predict(data.dense::<f64>("c", 4).unwrap());
    refused!(unknown, Error::UnknownView { .. }, "view 'c'", "a, b");
    let fewer = predict(data.dense::<f64>("a", 3).unwrap());
    refused!(fewer, Error::Shape { expected: 4, found: 3, .. }, "view 'a'", "features");
    let swapped = a.clone().feature_names(strings(&["p", "r", "q", "s"])).unwrap();
    refused!(
        predict(swapped),
        Error::Unsuitable { what: "features", .. },
        "view 'a'",
        "column 1",
        "'q'",
        "r"
    );
    assert_eq!(predict(a.clone()).unwrap().len(), 30);
    assert_eq!(predict(data.dense::<f64>("a", 4).unwrap()).unwrap(), predict(a).unwrap());
}

#[test]
fn reconstructing_from_rows_of_another_width_is_refused() {
    let model = Daimc::new(3).fit(&easy()).unwrap();
    let wide = model.reconstruct("a", &Matrix::zeros(5, 4));
    refused!(wide, Error::LengthMismatch { expected: 3, found: 4, .. }, "3", "4");
    refused!(model.reconstruct("c", &model.latent), Error::UnknownView { .. }, "view 'c'", "a, b");
}

// Files that are refused.

/// The bytes of a small model.
fn bytes() -> Vec<u8> {
    Daimc::new(3).max_iterations(3).fit(&easy()).unwrap().to_bytes().unwrap()
}

/// The bytes with the first `from` replaced by `to`, of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    for garbage in [&b""[..], &b"garbage"[..], &[0; 100], &[0xff; 100], &[7; 4096]] {
        refused!(Model::from_bytes(garbage), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn every_truncated_model_is_refused() {
    let bytes = bytes();
    let (header, _) = bytes.split_first_chunk::<8>().unwrap();
    let header = 8 + u64::from_le_bytes(*header) as usize;
    let lengths = (0..header).step_by(7).chain(header..bytes.len());
    for length in lengths {
        refused!(Model::from_bytes(&bytes[..length]), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn a_file_of_other_tensors_is_refused() {
    let values = [0_u8; 16];
    let tensor = || [("latent", TensorView::new(Dtype::F64, vec![2], &values).unwrap())];
    let metadata = |key: &str, text: &str| Some(HashMap::from([(key.to_string(), text.to_string())]));
    let plain = safetensors::serialize(tensor(), None).unwrap();
    refused!(Model::from_bytes(&plain), Error::ModelFile { .. }, "not one of daimc");
    let other = safetensors::serialize(tensor(), metadata("format", "pt")).unwrap();
    refused!(Model::from_bytes(&other), Error::ModelFile { .. }, "not one of daimc");
    for text in ["", "{}", "[]", "null", "{\"version\":1}", "{\"version\":2}", "{\"version\":-1}"] {
        let claimed = safetensors::serialize(tensor(), metadata("daimc", text)).unwrap();
        refused!(Model::from_bytes(&claimed), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn a_model_of_another_version_is_refused() {
    let later = replaced(&bytes(), r#"\"version\":2"#, r#"\"version\":9"#);
    refused!(Model::from_bytes(&later), Error::ModelFile { .. }, "version", "9");
}

#[test]
fn a_model_whose_parts_do_not_fit_is_refused() {
    let bytes = bytes();
    for (from, to) in [
        (r#"\"clusters\":3"#, r#"\"clusters\":2"#),
        (r#"\"latent\":3"#, r#"\"latent\":4"#),
        (r#"\"instances\":30"#, r#"\"instances\":31"#),
        (r#""view.1.basis""#, r#""view.9.basis""#),
        (r#""view.0.basis""#, r#""view.2.basis""#),
    ] {
        refused!(Model::from_bytes(&replaced(&bytes, from, to)), Error::ModelFile { .. }, "not a model");
    }
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    refused!(Model::from_bytes(&nan), Error::ModelFile { .. }, "NaN");
}

#[test]
fn a_model_with_any_byte_changed_is_refused_or_usable() {
    let (bytes, views) = (bytes(), easy());
    for at in (0..bytes.len()).step_by(3) {
        for flip in [0x01, 0x10, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            match Model::from_bytes(&changed) {
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::ModelFile { .. }, "not a model"),
                Ok(model) => {
                    // A name or a number may have become another; where it matters, it is an error, no panic.
                    if let Ok(labels) = model.predict(&views) {
                        assert!(labels.iter().all(|&label| label < 3), "byte {at} ^ {flip}: {labels:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let path = std::env::temp_dir().join("daimc-there-is-no-such-model");
    let shown = path.display().to_string();
    refused!(Model::load(&path), Error::Io { .. }, &shown);
    let folder = path.join("model");
    let model = Daimc::new(3).max_iterations(1).fit(&easy()).unwrap();
    let shown = folder.display().to_string();
    refused!(model.save(&folder), Error::Io { .. }, &shown);
}

// What is odd, but has an outcome.

const SCALES: [Scale; 8] = [
    Scale::Auto,
    Scale::None,
    Scale::Unit,
    Scale::MinMax,
    Scale::MinMaxUnit,
    Scale::ZScore,
    Scale::ZScoreUnit,
    Scale::TfIdf,
];

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
        let model = sound(&daimc, &easy());
        assert_eq!(model.labels, [0; 30]);
        assert_eq!(model.confidence, [1.0; 30]);
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
                Ok(model) => assert_eq!(unsound(&model, &views), None, "{name}, {:?}", model.options),
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
    // The last views are seen as well as the first: all have the same two clusters.
    let truth = Synthetic::new(40, 2).seed(5).truth();
    let labels = Daimc::new(2).fit(&views).unwrap().labels;
    assert_eq!(daimc::metrics::accuracy(&truth, &labels).unwrap(), 1.0);
}

#[test]
fn a_pattern_for_every_instance_has_an_outcome() {
    // Instance i is shown by the views in which i + 1 has a binary digit 1.
    let views = ordinary(63, &[3; 6]).into_iter().enumerate().map(|(v, view)| {
        let mask: Vec<bool> = (1..=63).map(|i| i >> v & 1 == 1).collect();
        view.mask(&mask).unwrap()
    });
    all_sound(3, &Views::new(views.collect()).unwrap());
}

#[test]
fn a_view_whose_only_instance_fades_from_v_has_an_outcome() {
    // The first instance's entry of V shrinks a hundredfold per pass, through numbers whose square cannot be
    // inverted, and nothing else holds up the Gram matrix of the third view.
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
                Ok(model) => assert_eq!(unsound(&model, &easy()), None, "a start of {size:e}"),
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
                Ok(model) => assert_eq!(unsound(&model, &easy()), None, "alpha {alpha:e}, beta {beta:e}"),
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::Option { .. }, "= "),
            }
        }
    }
}

// Anything at all.

/// Kinds of values, so that most views are of one kind and get past the checks.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let odd = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        5e-324,
        1e-310,
        1e-300,
        1e-160,
        1e-45,
        1e-30,
        1e-9,
        1e9,
        1e30,
        3e38,
        1e60,
        1e120,
        1e150,
        -1e150,
        1e154,
        -1e154,
        1e200,
        f64::MAX,
        f64::MIN,
    ]);
    let invalid = prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let usual = || -3.0..3.0_f64;
    let vec = |one: BoxedStrategy<f64>| prop::collection::vec(one, 60);
    prop_oneof![
        6 => vec(usual().boxed()),
        3 => vec((0_u8..4).prop_map(f64::from).boxed()),
        2 => vec(prop_oneof![Just(0.0), usual()].boxed()),
        2 => (vec(usual().boxed()), odd.clone()).prop_map(|(values, by)| values.iter().map(|x| x * by).collect()),
        2 => vec(prop_oneof![8 => usual(), 1 => odd.clone()].boxed()),
        2 => vec(odd.clone().boxed()),
        1 => odd.prop_map(|value| vec![value; 60]),
        1 => vec(prop_oneof![40 => usual(), 1 => invalid].boxed()),
    ]
}

/// The pieces of a view, which may not fit together.
#[derive(Clone, Debug)]
struct Pieces {
    name: String,
    features: usize,
    values: Vec<f64>,
    sparse: bool,
    single: bool,
    mask: Option<Vec<bool>>,
    /// Used when views are joined.
    ids: Vec<usize>,
    /// A place in the arrays of a sparse view and what to add there.
    broken: Option<(usize, usize)>,
}

fn pieces(rows: usize) -> impl Strategy<Value = Pieces> {
    let length = prop_oneof![30 => Just(rows), 1 => 0..8_usize];
    (
        prop::char::range('a', 'z'),
        prop_oneof![30 => 1..=4_usize, 1 => Just(0_usize)],
        values(),
        any::<[bool; 2]>(),
        prop::option::of(
            length.clone().prop_flat_map(|length| prop::collection::vec(prop::bool::weighted(0.85), length)),
        ),
        prop_oneof![
            20 => Just((0..rows).collect::<Vec<_>>()).prop_shuffle(),
            1 => length.prop_flat_map(|length| prop::collection::vec(0..40_usize, length)),
        ],
        prop::option::weighted(0.05, (0..100_usize, 1..4_usize)),
        prop_oneof![20 => Just(0_usize), 1 => 1..5_usize],
    )
        .prop_map(move |(name, features, mut values, [sparse, single], mask, ids, broken, extra)| {
            values.truncate(rows * features + extra);
            let name = name.to_string();
            Pieces { name, features, values, sparse, single, mask, ids, broken }
        })
}

impl Pieces {
    fn view(&self, with_ids: bool) -> daimc::Result<View<'static>> {
        let Self { features, sparse, single, .. } = *self;
        let name = &self.name;
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
        let mut view = if sparse {
            let (mut offsets, mut columns, stored) = compressed(features.max(1), &self.values);
            if let Some((at, more)) = self.broken {
                let (from, count) = (offsets.len(), offsets.len() + columns.len());
                match at % count {
                    at if at < from => offsets[at] += more,
                    at => columns[at - from] += more as u32,
                }
            }
            if single {
                View::sparse(name, features, offsets, columns, narrow(&stored))?
            } else {
                View::sparse(name, features, offsets, columns, stored)?
            }
        } else if single {
            View::dense(name, features, narrow(&self.values))?
        } else {
            View::dense(name, features, self.values.clone())?
        };
        if let Some(mask) = &self.mask {
            view = view.mask(mask)?;
        }
        if with_ids { view.ids(strings(&self.ids)) } else { Ok(view) }
    }
}

#[derive(Clone, Debug)]
struct Asked {
    clusters: usize,
    latent: Option<usize>,
    preset: Preset,
    solver: Option<Solver>,
    scale: Option<Scale>,
    equal_weight: Option<bool>,
    alpha: f64,
    beta: f64,
    tolerance: f64,
    counts: [usize; 3],
    start: Option<f64>,
    seed: u64,
}

fn asked() -> impl Strategy<Value = Asked> {
    let weight = || {
        prop_oneof![
            20 => prop::sample::select(vec![0.0, 1e-9, 0.1, 1.0, 10.0, 1e6]),
            1 => prop::sample::select(vec![1e-300, -1.0, f64::NAN, f64::INFINITY]),
        ]
    };
    let count = |most: usize| prop_oneof![40 => 1..=most, 1 => Just(0_usize)];
    (
        (
            prop_oneof![30 => 1..4_usize, 1 => 0..20_usize],
            prop::option::weighted(0.3, prop_oneof![1 => 0..9_usize, 3 => 1..4_usize]),
        ),
        prop::sample::select(vec![Preset::Default, Preset::Paper]),
        prop::option::of(prop::sample::select(vec![Solver::Coordinate, Solver::Multiplicative])),
        prop::option::weighted(0.8, prop::sample::select(SCALES.to_vec())),
        prop::option::of(any::<bool>()),
        (weight(), weight(), prop_oneof![30 => Just(1e-4), 1 => Just(0.0), 1 => Just(-1.0)]),
        (count(10), count(15), count(5)),
        prop::option::weighted(0.2, prop::sample::select(vec![0.0, 1.0, 1e-9, 1e9, -1.0, f64::NAN])),
        any::<u64>(),
    )
        .prop_map(|(sizes, preset, solver, scale, equal_weight, weights, counts, start, seed)| Asked {
            clusters: sizes.0,
            latent: sizes.1,
            preset,
            solver,
            scale,
            equal_weight,
            alpha: weights.0,
            beta: weights.1,
            tolerance: weights.2,
            counts: counts.into(),
            start,
            seed,
        })
}

impl Asked {
    fn daimc(&self, rows: usize) -> Daimc {
        let mut daimc = Daimc::new(self.clusters).preset(self.preset).seed(self.seed);
        if let Some(latent) = self.latent {
            daimc = daimc.latent(latent);
        }
        if let Some(solver) = self.solver {
            daimc = daimc.solver(solver);
        }
        if let Some(scale) = self.scale {
            daimc = daimc.scale(scale);
        }
        if let Some(equal) = self.equal_weight {
            daimc = daimc.equal_weight(equal);
        }
        if let Some(start) = self.start {
            let latent = self.latent.unwrap_or(self.clusters);
            daimc = daimc.start(Matrix::from_fn(rows, latent, |i, k| start * ((i + k) % 3) as f64));
        }
        let [passes, iterations, restarts] = self.counts;
        daimc
            .alpha(self.alpha)
            .beta(self.beta)
            .tolerance(self.tolerance)
            .passes(passes)
            .max_iterations(iterations)
            .restarts(restarts)
    }
}

/// The view that an error names.
fn culprit(error: &Error) -> Option<&str> {
    match error {
        Error::NoFeatures { view }
        | Error::EmptyView { view }
        | Error::Shape { view, .. }
        | Error::Sparse { view, .. }
        | Error::NotFinite { view, .. }
        | Error::TooLarge { view, .. }
        | Error::Scaling { view, .. } => Some(view),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0),
        ..ProptestConfig::default()
    })]

    #[test]
    fn anything_is_refused_or_gives_a_model_of_finite_numbers(
        pieces in (1..15_usize).prop_flat_map(|rows| prop::collection::vec(pieces(rows), 1..4)),
        asked in asked(),
    ) {
        for join in [false, true] {
            let views = pieces.iter().map(|view| view.view(join)).collect::<daimc::Result<Vec<_>>>();
            let views = views.and_then(|views| {
                if join { Views::join(views).map(|(views, _)| views) } else { Views::new(views) }
            });
            match views.and_then(|views| Ok((asked.daimc(views.instances()).fit(&views)?, views))) {
                Ok((model, views)) => prop_assert_eq!(unsound(&model, &views), None),
                Err(error) => {
                    let known = culprit(&error).is_none_or(|name| pieces.iter().any(|view| view.name == name));
                    prop_assert!(known, "{error}");
                }
            }
        }
    }
}

#[test]
fn of_many_values_that_are_not_finite_the_first_is_named() {
    let (n, d) = (50_000, 3);
    let mut values = vec![1.0_f32; n * d];
    for i in [7 * 4096 + 5, 7 * 4096 + 6, 40_000, n * d - 1] {
        values[i] = f32::INFINITY;
    }
    let view = |values: Vec<f32>| View::dense("a", d, values).unwrap();
    let (row, column) = ((7 * 4096 + 5) / d, (7 * 4096 + 5) % d);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let error = pool.install(|| Views::new(vec![view(values.clone())])).unwrap_err();
        assert!(
            matches!(&error, Error::NotFinite { row: r, column: c, .. } if (*r, *c) == (row, column)),
            "{error}"
        );
    }
}
