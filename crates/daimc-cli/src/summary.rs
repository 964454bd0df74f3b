//! `summary.json`: the options, inputs and results of a fit.

use std::time::Instant;

use daimc::{Fit, Outcome, Run, Significance};
use serde::Serialize;
use serde_json::{Value, json};

use crate::data::Input;
use crate::failure::{Failure, Result};

/// The options and inputs that reproduce a fit, and its results.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub version: &'static str,
    pub options: Value,
    /// The folder of relative paths.
    pub directory: Option<String>,
    pub resolved: Value,
    pub inputs: Vec<Input>,
    pub seed: u64,
    pub instances: usize,
    pub clusters: usize,
    pub scaling: Value,
    pub neighbours: Value,
    pub missingness: Value,
    /// Agreement of the clusters of parts of the data, from 0 to 1; null if unknown.
    pub reproducibility: Option<f64>,
    /// Whether the clusters are clearer than chance; null if unknown.
    pub significance: Value,
    /// For each view with missing cells inside its rows, their number and places.
    pub missing_cells: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// The device of the iterations, and why.
    pub device: Value,
    pub iterations: usize,
    /// Number of passes over the data.
    pub passes: usize,
    pub converged: bool,
    pub interrupted: bool,
    pub objective: f64,
    /// Seconds from the start of the command, by stage.
    pub timings: Value,
    #[serde(skip)]
    begun: Instant,
    pub peak_memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Value>,
    /// The clinical tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clinical: Option<Value>,
}

impl Summary {
    /// `options` are those that the user gave; the options in force come from the fit. The command has begun at this time, and
    /// the fit after `read` seconds.
    pub fn new(
        options: Value,
        inputs: &[Input],
        (begun, read): (Instant, f64),
        fitted: &Fit,
    ) -> Result<Self> {
        let scaling = fitted.model.views.iter().map(|view| {
            let scaling = &view.scaling;
            let scaling =
                json!({"scale": scaling.scale, "reason": scaling.reason, "importance": scaling.importance});
            (view.name.clone(), scaling)
        });
        let timings = &fitted.timings;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            options,
            directory: directory(),
            resolved: json(&fitted.model.options)?,
            inputs: inputs.to_vec(),
            seed: fitted.model.options.seed,
            instances: fitted.labels.len(),
            clusters: fitted.model.options.clusters,
            scaling: Value::Object(scaling.collect()),
            neighbours: json(&fitted.neighbours)?,
            missingness: json(&fitted.missingness)?,
            reproducibility: fitted.model.reproducibility,
            significance: fitted.significance.map_or(Value::Null, significance),
            missing_cells: missing_cells(fitted),
            runs: fitted.runs.clone(),
            device: json(&fitted.device)?,
            iterations: fitted.iterations(),
            passes: fitted.passes,
            converged: fitted.outcome.is_at_rest(),
            interrupted: fitted.outcome == Outcome::Interrupted,
            objective: fitted.objective.total,
            timings: json!({
                "read": read, "prepare": timings.prepare, "initialise": timings.initialise,
                "iterate": timings.iterate, "assign": timings.assign,
                "neighbours": timings.neighbours, "map": timings.map, "assess": timings.assess, "write": 0.0,
            }),
            begun,
            peak_memory_bytes: peak_memory(),
            metrics: None,
            clinical: None,
        })
    }

    /// Sets the last fields, once all other files are written.
    pub fn finish(&mut self) {
        // All that is left, so that the timings add up to the duration of the command until now.
        let known: f64 =
            self.timings.as_object().into_iter().flat_map(|own| own.values()).filter_map(Value::as_f64).sum();
        self.timings["write"] = json!(self.begun.elapsed().as_secs_f64() - known);
        self.peak_memory_bytes = peak_memory();
    }

    pub fn value(&self) -> Result<Value> {
        json(self)
    }

    pub fn text(&self) -> Result<String> {
        Ok(format!("{:#}", self.value()?))
    }
}

/// Maximum number of features with missing values to name.
const NAMED: usize = 5;

/// The missing cells inside the rows of each view: their number and share, the instances and features with missing cells, the
/// features with most of them, and the features without any value, which the fit ignores.
fn missing_cells(fitted: &Fit) -> Value {
    let views = fitted.model.views.iter().zip(&fitted.missing_cells).filter(|(_, own)| own.cells() > 0);
    let views = views.map(|(view, own)| {
        let name = |feature: usize| view.feature_name(feature);
        let most: Vec<Value> = own
            .most(NAMED)
            .into_iter()
            .map(|(feature, missing)| json!({"feature": name(feature), "instances": missing}))
            .collect();
        let without: Vec<String> = own.without_value().into_iter().map(name).collect();
        let missing = json!({
            "cells": own.cells(), "share": own.share(), "instances": own.instances, "features": own.features(),
            "most": most, "without_value": without,
        });
        (view.name.clone(), missing)
    });
    Value::Object(views.collect())
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Failure::Failed(format!("cannot be written as JSON: {error}")))
}

/// The current folder; `None` if its name is not UTF-8: relative paths are then relative to the folder in which the fit is
/// repeated.
fn directory() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

/// The peak memory of the program, if the system reports it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

fn significance(found: Significance) -> Value {
    let Significance { agreement, by_chance, deviation, .. } = found;
    json!({
        "agreement": agreement, "by_chance": by_chance, "deviation": deviation,
        "excess": found.excess(), "clear": found.is_clear(),
    })
}
