//! Errors in the data or options are reported before any work, with their position; unusual input has a defined
//! outcome. Nothing panics, and no result is NaN or infinite.

use std::collections::HashMap;

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, ErrorKind, Fit, Matrix, Preset, Scale, Solver, View, Views};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use crate::made::compressed;

/// Asserts that a result is an error of this form whose message contains each of the words.
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

/// Both presets with both solvers, assessed.
fn fits(clusters: usize) -> [Daimc; 4] {
    let fit =
        |preset, solver| Daimc::new(clusters).preset(preset).assess(true).solver(solver).max_iterations(20);
    [
        fit(Preset::Default, Solver::Coordinate),
        fit(Preset::Default, Solver::Multiplicative),
        fit(Preset::Paper, Solver::Coordinate),
        fit(Preset::Paper, Solver::Multiplicative),
    ]
}

/// Values of a model that are not finite or not in their range.
fn flaw(fitted: &Fit, views: &Views<'_>) -> Option<String> {
    let n = views.instances();
    let bad = |what: &str, values: &[f64]| {
        let bad = values.iter().find(|value| !value.is_finite())?;
        Some(format!("{what} holds {bad}"))
    };
    let shape = |what: &str, matrix: &Matrix, expected: (usize, usize)| {
        let found = (matrix.rows(), matrix.columns());
        (found != expected).then(|| format!("{what} is {found:?}, not {expected:?}"))
    };
    let latent = fitted.model.options.latent;
    let mut flaws = vec![
        bad("V", fitted.latent.values()),
        shape("V", &fitted.latent, (n, latent)),
        fitted.latent.values().iter().find(|value| **value < 0.0).map(|value| format!("V holds {value}")),
        bad("centres", fitted.model.centres.values()),
        shape("centres", &fitted.model.centres, (latent, fitted.model.options.clusters)),
        (fitted.labels.len() != n).then(|| "as many labels as instances".into()),
        fitted
            .labels
            .iter()
            .find(|&&label| label >= fitted.model.options.clusters)
            .map(|label| format!("label {label}")),
        (fitted.confidence.len() != n).then(|| "as many confidences as instances".into()),
        fitted.confidence.iter().find(|c| !(0.0..=1.0).contains(*c)).map(|c| format!("confidence {c}")),
        (fitted.model.views.len() != views.len()).then(|| "as many view models as views".into()),
        fitted.history.is_empty().then(|| "no history".into()),
    ];
    for (i, now) in fitted.history.iter().chain([&fitted.objective]).enumerate() {
        let parts = [now.total, now.loss, now.alignment, now.sparsity];
        flaws.push(bad(&format!("objective {i} {now:?}"), &parts));
        flaws.push(parts.iter().find(|part| **part < 0.0).map(|part| format!("objective {i} has {part}")));
    }
    for (own, view) in fitted.model.views.iter().zip(views.iter()) {
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
    let time = fitted.timings;
    flaws.push(bad("timings", &[time.prepare, time.initialise, time.iterate, time.assign]));
    flaws.into_iter().flatten().next()
}

/// The first error in a model, in its placement of the instances it was fitted to, or in its file.
fn unsound(fitted: &Fit, views: &Views<'_>) -> Option<String> {
    if let Some(flaw) = flaw(fitted, views) {
        return Some(flaw);
    }
    let place = match fitted.model.place(views) {
        Ok(place) => place,
        Err(error) => return Some(format!("the instances it was fitted to cannot be placed: {error}")),
    };
    if let Some(value) = place.latent.values().iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
        return Some(format!("an instance is placed at {value}"));
    }
    if let Some(confidence) = place.confidence.iter().find(|c| !(0.0..=1.0).contains(*c)) {
        return Some(format!("an instance is placed with confidence {confidence}"));
    }
    for view in &fitted.model.views {
        let rows = fitted.model.reconstruct(&view.name, &fitted.latent).unwrap();
        if let Some(value) = rows.values().iter().find(|value| !value.is_finite()) {
            return Some(format!("view {} is reconstructed as {value}", view.name));
        }
    }
    match fitted.to_bytes().and_then(|bytes| Fit::from_bytes(&bytes)) {
        Ok(_) => None,
        Err(error) => Some(format!("its file cannot be read: {error}")),
    }
}

/// Fits the views, which must succeed.
#[track_caller]
fn sound(daimc: &Daimc, views: &Views<'_>) -> Fit {
    let fitted = daimc.fit(views).unwrap_or_else(|error| panic!("{error}\n{:?}", daimc.options()));
    if let Some(reason) = unsound(&fitted, views) {
        let names: Vec<&str> = views.iter().map(View::name).collect();
        panic!("{reason}\n{names:?} {:?}", daimc.options());
    }
    fitted
}

/// Fits the views with both presets and both solvers, which must succeed.
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

mod anything;
mod models;
mod odd;
mod options;
mod views;

#[test]
fn the_kind_says_whether_the_data_are_at_fault() {
    let views = Views::new(vec![View::dense("a", 2, vec![1.0; 8]).unwrap()]).unwrap();
    let kind = |fit: Daimc| fit.fit(&views).unwrap_err().kind();
    assert_eq!(kind(Daimc::new(5)), ErrorKind::Data);
    assert_eq!(kind(Daimc::new(0)), ErrorKind::Usage);
    assert_eq!(kind(Daimc::new(2).alpha(-1.0)), ErrorKind::Usage);
    let fitted = Daimc::new(2).fit(&views).unwrap();
    assert_eq!(fitted.model.contributions_of(&views, &[0, 1, 2, 0]).unwrap_err().kind(), ErrorKind::Data);
    assert_eq!(Error::Interrupted.kind(), ErrorKind::Interrupted);
    assert_eq!(Error::Threads { threads: 9, reason: "no".into() }.kind(), ErrorKind::Failed);
}
