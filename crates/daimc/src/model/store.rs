//! A model as a file: safetensors, with everything that is not a matrix as JSON in its metadata.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::{Model, Run, ViewModel};
use crate::options::Options;
use crate::scale::{Scale, Scaling};
use crate::steps::objective::Objective;
use crate::{Decision, Error, Ids, Matrix, Missingness, Outcome, Result, Timings};

/// Raised whenever a file of an older version cannot be read as it is.
const VERSION: u32 = 1;

/// The key under which the metadata stand.
const KEY: &str = "daimc";

#[derive(Serialize, Deserialize)]
struct Metadata {
    version: u32,
    options: Options,
    views: Vec<ViewMetadata>,
    latent_scaling: ScalingMetadata,
    instances: usize,
    ids: Option<Vec<String>>,
    #[serde(default)]
    neighbours: Decision,
    #[serde(default)]
    missingness: Missingness,
    #[serde(default)]
    runs: Vec<Run>,
    objective: Objective,
    history: Vec<Objective>,
    outcome: Outcome,
    timings: Timings,
}

#[derive(Serialize, Deserialize)]
struct ViewMetadata {
    name: String,
    feature_names: Option<Vec<String>>,
    scaling: ScalingMetadata,
}

/// A [`Scaling`] without its vectors.
#[derive(Serialize, Deserialize)]
struct ScalingMetadata {
    scale: Scale,
    reason: String,
    weight: f64,
    #[serde(default = "one")]
    importance: f64,
    length: f64,
}

fn one() -> f64 {
    1.0
}

impl From<&Scaling> for ScalingMetadata {
    fn from(scaling: &Scaling) -> Self {
        let Scaling { scale, weight, importance, length, .. } = *scaling;
        Self { scale, reason: scaling.reason.clone(), weight, importance, length }
    }
}

fn broken(reason: impl std::fmt::Display) -> Error {
    Error::ModelFile { reason: reason.to_string() }
}

impl Model {
    /// The model as the bytes of a safetensors file.
    ///
    /// # Errors
    /// Never for a model that came from a fit or a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut put = |name: String, shape: Vec<usize>, values: &[f64]| {
            tensors.push((name, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect()));
        };
        let shape = |matrix: &Matrix| vec![matrix.rows(), matrix.columns()];
        put("latent".into(), shape(&self.latent), self.latent.values());
        put("centres".into(), shape(&self.centres), self.centres.values());
        let labels: Vec<f64> = self.labels.iter().map(|&label| label as f64).collect();
        put("labels".into(), vec![labels.len()], &labels);
        put("confidence".into(), vec![self.confidence.len()], &self.confidence);
        let mut put_scaling = |owner: &str, Scaling { shift, factor, .. }: &Scaling| {
            put(format!("{owner}.shift"), vec![shift.len()], shift);
            put(format!("{owner}.factor"), vec![factor.len()], factor);
        };
        put_scaling("latent", &self.latent_scaling);
        for (i, view) in self.views.iter().enumerate() {
            put_scaling(&format!("view.{i}"), &view.scaling);
        }
        for (i, view) in self.views.iter().enumerate() {
            put(format!("view.{i}.basis"), shape(&view.basis), view.basis.values());
            put(format!("view.{i}.alignment"), shape(&view.alignment), view.alignment.values());
            if let Some(stability) = &view.stability {
                put(format!("view.{i}.stability"), shape(stability), stability.values());
            }
        }
        let views = self.views.iter().map(|view| ViewMetadata {
            name: view.name.clone(),
            feature_names: view.feature_names.clone(),
            scaling: (&view.scaling).into(),
        });
        let metadata = Metadata {
            version: VERSION,
            options: self.options.clone(),
            views: views.collect(),
            latent_scaling: (&self.latent_scaling).into(),
            instances: self.ids.len(),
            ids: match &self.ids {
                Ids::Numbers(_) => None,
                Ids::Names(names) => Some(names.clone()),
            },
            neighbours: self.neighbours.clone(),
            missingness: self.missingness.clone(),
            runs: self.runs.clone(),
            objective: self.objective,
            history: self.history.clone(),
            outcome: self.outcome,
            timings: self.timings,
        };
        let metadata = serde_json::to_string(&metadata).map_err(broken)?;
        let views = tensors
            .iter()
            .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F64, shape.clone(), bytes)?)))
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(broken)?;
        safetensors::serialize(views, Some(HashMap::from([(KEY.into(), metadata)]))).map_err(broken)
    }

    /// A model from the bytes of a file.
    ///
    /// # Errors
    /// When they are not a model, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let metadata = metadata.ok_or_else(|| broken("a safetensors file, but not one of daimc"))?;
        let version: Version = serde_json::from_str(metadata).map_err(broken)?;
        if version.version != VERSION {
            return Err(broken(format!("its version is {}, known is {VERSION}", version.version)));
        }
        let metadata: Metadata = serde_json::from_str(metadata).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let model = assemble(metadata, &tensors)?;
        model.check()?;
        Ok(model)
    }

    /// Writes the model to a file, which appears whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |source| Error::Io { path: path.display().to_string(), source };
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        std::fs::write(&partial, self.to_bytes()?).map_err(failed)?;
        std::fs::rename(&partial, path).map_err(failed)
    }

    /// Reads a model from a file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::Io { path: path.display().to_string(), source };
        Self::from_bytes(&std::fs::read(path).map_err(failed)?)
    }

    /// Fails if the parts of a model do not fit together, as in a file that was tampered with.
    fn check(&self) -> Result<()> {
        let (n, latent, clusters) = (self.ids.len(), self.options.latent, self.options.clusters);
        let shape = |matrix: &Matrix| (matrix.rows(), matrix.columns());
        let scales = |Scaling { shift, factor, .. }: &Scaling, d: usize| {
            [0, d].contains(&shift.len())
                && [0, d].contains(&factor.len())
                && (shift.is_empty() || !factor.is_empty())
        };
        let fits = shape(&self.latent) == (n, latent)
            && shape(&self.centres) == (latent, clusters)
            && scales(&self.latent_scaling, latent)
            && self.labels.len() == n
            && self.confidence.len() == n
            && self.labels.iter().all(|&label| label < clusters)
            && self.views.iter().all(|view| {
                let d = view.basis.rows();
                view.basis.columns() == latent
                    && shape(&view.alignment) == (d, latent)
                    && scales(&view.scaling, d)
                    && view.stability.as_ref().is_none_or(|stability| {
                        shape(stability) == (d, clusters)
                            && stability.values().iter().all(|share| (0.0..=1.0).contains(share))
                    })
                    && view.feature_names.as_ref().is_none_or(|names| names.len() == d)
            });
        if fits { Ok(()) } else { Err(broken("its parts do not fit together")) }
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn assemble(metadata: Metadata, tensors: &SafeTensors<'_>) -> Result<Model> {
    let get = |name: &str| -> Result<(Vec<usize>, Vec<f64>)> {
        let tensor = tensors.tensor(name).map_err(broken)?;
        if tensor.dtype() != Dtype::F64 {
            return Err(broken(format!("{name} is not of type F64")));
        }
        let (values, _) = tensor.data().as_chunks::<8>();
        let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(broken(format!("{name} holds {value}")));
        }
        Ok((tensor.shape().to_vec(), values))
    };
    let matrix = |name: &str| match get(name)? {
        (shape, values) if shape.len() == 2 => Matrix::new(shape[0], shape[1], values),
        _ => Err(broken(format!("{name} is not a matrix"))),
    };
    let scaling = |owner: &str, known: ScalingMetadata| {
        let ScalingMetadata { scale, reason, weight, importance, length } = known;
        let (_, shift) = get(&format!("{owner}.shift"))?;
        let (_, factor) = get(&format!("{owner}.factor"))?;
        Ok(Scaling { scale, reason, shift, factor, weight, importance, length })
    };
    let views = metadata.views.into_iter().enumerate().map(|(i, view)| {
        Ok(ViewModel {
            name: view.name,
            feature_names: view.feature_names,
            basis: matrix(&format!("view.{i}.basis"))?,
            alignment: matrix(&format!("view.{i}.alignment"))?,
            scaling: scaling(&format!("view.{i}"), view.scaling)?,
            stability: tensors
                .names()
                .contains(&format!("view.{i}.stability").as_str())
                .then(|| matrix(&format!("view.{i}.stability")))
                .transpose()?,
        })
    });
    let label = |value: &f64| {
        let whole = *value >= 0.0 && value.trunc() == *value && *value < 2.0_f64.powi(32);
        if whole { Ok(*value as usize) } else { Err(broken("a label is not a whole number")) }
    };
    Ok(Model {
        views: views.collect::<Result<_>>()?,
        latent: matrix("latent")?,
        labels: get("labels")?.1.iter().map(label).collect::<Result<_>>()?,
        confidence: get("confidence")?.1,
        latent_scaling: scaling("latent", metadata.latent_scaling)?,
        centres: matrix("centres")?,
        ids: metadata.ids.map_or(Ids::Numbers(metadata.instances), Ids::Names),
        options: metadata.options,
        neighbours: metadata.neighbours,
        missingness: metadata.missingness,
        runs: metadata.runs,
        objective: metadata.objective,
        history: metadata.history,
        outcome: metadata.outcome,
        timings: metadata.timings,
    })
}
