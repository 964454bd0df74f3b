//! Files of fits and bare models: safetensors, with small data that are not matrices as JSON in the metadata. The file of a fit
//! extends that of its model, so that either can be read from it.
//!
//! The metadata are part of the header, which is limited to 100 MB. IDs and names of features are therefore tensors: their
//! concatenated bytes, and the offset of each. In version 1 they were part of the metadata.

mod references;
mod retained;
mod tensor;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::Path;

use safetensors::tensor::{Metadata as Header, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};

use crate::cluster_sums::mean_rows;
use crate::fit::{Fit, Run};
use crate::model::{Model, ViewModel};
use crate::options::Options;
use crate::significance::Significance;
use crate::{Decision, Missingness, Outcome, Timings};
use daimc_core::accelerator::DeviceUsed;
use daimc_core::prepared::{MissingCells, Preparation};
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::steps::objective::Objective;
use daimc_core::{Error, Ids, Matrix, Result};
use tensor::{Content, Tensor, names, whole};

/// Increased whenever a file of an older version cannot be read unchanged.
const VERSION: u32 = 3;

/// The version of a file with a fit, so that readers without support for bare models can read it.
const WITH_INSTANCES: u32 = 2;

/// The oldest supported version.
const OLDEST: u32 = 1;

/// The key of the metadata.
const KEY: &str = "daimc";

/// The maximum size of a header in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// The metadata of a model.
#[derive(Serialize, Deserialize)]
struct Metadata {
    version: u32,
    options: Options,
    views: Vec<ViewMetadata>,
    latent_scaling: ScalingMetadata,
    /// Missing in files from before models were separate from fits, where the instances determine it.
    sizes: Option<Vec<usize>>,
    #[serde(default)]
    reproducibility: Option<f64>,
    /// ε of each view, if there are tensors of references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doubts: Option<Vec<f64>>,
}

/// The metadata of the instances, if the file has any.
#[derive(Serialize, Deserialize)]
struct FitMetadata {
    instances: usize,
    /// Whether there are tensors of IDs.
    #[serde(default)]
    named: bool,
    /// In version 1.
    #[serde(default, skip_serializing)]
    ids: Option<Vec<String>>,
    #[serde(default)]
    neighbours: Decision,
    #[serde(default)]
    missingness: Missingness,
    #[serde(default)]
    significance: Option<Significance>,
    /// For each view, the number of its instances, and the number of those with missing cells. Missing in files from before cells
    /// could be missing.
    #[serde(default)]
    missing_cells: Vec<[usize; 2]>,
    #[serde(default)]
    runs: Vec<Run>,
    objective: Objective,
    history: Vec<Objective>,
    outcome: Outcome,
    #[serde(default)]
    passes: usize,
    timings: Timings,
    #[serde(default, skip_serializing_if = "DeviceUsed::is_default")]
    device: DeviceUsed,
}

/// Both.
#[derive(Serialize)]
struct Written {
    #[serde(flatten)]
    model: Metadata,
    #[serde(flatten)]
    fit: Option<FitMetadata>,
}

#[derive(Serialize, Deserialize)]
struct ViewMetadata {
    name: String,
    /// Whether there are tensors of feature names.
    #[serde(default)]
    named: bool,
    /// In version 1.
    #[serde(default, skip_serializing)]
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

/// Writes a file piece by piece: tensors in the order of the file, those with the widest alignment first.
fn write(metadata: &Written, mut tensors: Vec<Tensor<'_>>, mut out: impl Write) -> io::Result<()> {
    tensors.sort_by(|a, b| b.dtype().cmp(&a.dtype()).then_with(|| a.name.cmp(&b.name)));
    let mut end = 0;
    let about = tensors.iter().map(|tensor| {
        let start = end;
        end += tensor.bytes();
        let info =
            TensorInfo { dtype: tensor.dtype(), shape: tensor.shape.clone(), data_offsets: (start, end) };
        (tensor.name.clone(), info)
    });
    let about = about.collect();
    let metadata = serde_json::to_string(metadata)?;
    let header =
        Header::new(Some(HashMap::from([(KEY.into(), metadata)])), about).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    // The tensors begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > LONGEST_HEADER {
        return Err(io::Error::other("the names of the views are too long for a model file"));
    }
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| tensor.write(&mut out))?;
    out.flush()
}

/// Writes a file atomically.
fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::Io { path: path.display().to_string(), source };
    daimc_files::write(path, |out| write(out)).map_err(failed)
}

/// The bytes of a file.
fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.display().to_string(), source };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(8).read_to_end(&mut bytes).map_err(failed)?;
    // A file that does not begin like a model is not read completely, because it may be endless.
    let length = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length));
    if length.is_some_and(|length| (2..=LONGEST_HEADER).contains(&length)) {
        file.read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}

/// An open file with metadata of a supported version.
struct Opened<'a> {
    outline: Outline,
    metadata: String,
    tensors: SafeTensors<'a>,
}

impl<'a> Opened<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let metadata = metadata.ok_or_else(|| broken("a safetensors file, but not one of daimc"))?.clone();
        let outline: Outline = serde_json::from_str(&metadata).map_err(broken)?;
        let version = outline.version;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(broken(format!("its version is {version}, supported are {OLDEST} to {VERSION}")));
        }
        Ok(Self { outline, metadata, tensors: SafeTensors::deserialize(bytes).map_err(broken)? })
    }

    /// The model; `None` if the file describes it only through the instances.
    fn model(&self) -> Result<Option<Model>> {
        let metadata: Metadata = serde_json::from_str(&self.metadata).map_err(broken)?;
        let Some(sizes) = metadata.sizes.clone() else { return Ok(None) };
        let means = self.matrix("means")?;
        self.learnt(metadata, means, sizes).map(Some)
    }

    fn fit(&self) -> Result<Fit> {
        if self.outline.instances.is_none() {
            return Err(broken("it contains a model alone, without the instances of the fit"));
        }
        let about: FitMetadata = serde_json::from_str(&self.metadata).map_err(broken)?;
        let named = about.named.then(|| names(&self.tensors, "ids")).transpose()?;
        let ids = named.or(about.ids).map_or(Ids::Numbers(about.instances), Ids::Names);
        let latent = self.matrix("latent")?;
        let map = self.matrix_if_any("map")?;
        let labels = self.numbers("labels")?.1.into_iter().map(whole).collect::<Result<Vec<_>>>()?;
        let confidence = self.numbers("confidence")?.1;
        let metadata: Metadata = serde_json::from_str(&self.metadata).map_err(broken)?;
        let (columns, clusters) = (metadata.options.latent, metadata.options.clusters);
        let fits = (latent.rows(), latent.columns()) == (ids.len(), columns)
            && map.as_ref().is_none_or(|map| (map.rows(), map.columns()) == (ids.len(), 2))
            && labels.len() == ids.len()
            && confidence.len() == ids.len()
            && labels.iter().all(|&label| label < clusters);
        if !fits {
            return Err(apart());
        }
        let (means, sizes) = match &metadata.sizes {
            Some(sizes) => (self.matrix("means")?, sizes.clone()),
            None => mean_rows(&latent, &labels, clusters),
        };
        let model = self.learnt(metadata, means, sizes)?;
        let missing_cells = self.missing_cells(&about.missing_cells, &model)?;
        Ok(Fit {
            model,
            missing_cells,
            ids,
            learnt: self.learnt_before()?,
            latent,
            map,
            map_source: None,
            labels,
            confidence,
            neighbours: about.neighbours,
            missingness: about.missingness,
            significance: about.significance,
            runs: about.runs,
            objective: about.objective,
            history: about.history,
            outcome: about.outcome,
            passes: about.passes,
            timings: about.timings,
            device: about.device,
        })
    }

    /// The number of missing cells in each view, from the number of its instances and of those with missing cells.
    fn missing_cells(&self, counts: &[[usize; 2]], model: &Model) -> Result<Vec<MissingCells>> {
        let views = model.views.iter().enumerate().map(|(i, view)| {
            let [present, instances] = counts.get(i).copied().unwrap_or_default();
            let by_feature = self.counts_if_any(&format!("view.{i}.missing"))?;
            let fits = [0, view.basis.rows()].contains(&by_feature.len())
                && instances <= present
                && by_feature.iter().all(|missing| *missing <= present);
            if fits { Ok(MissingCells { present, instances, by_feature }) } else { Err(apart()) }
        });
        views.collect()
    }

    fn learnt(&self, metadata: Metadata, means: Matrix, sizes: Vec<usize>) -> Result<Model> {
        let views = metadata.views.into_iter().enumerate().map(|(i, view)| {
            let named =
                view.named.then(|| names(&self.tensors, &format!("view.{i}.features"))).transpose()?;
            Ok(ViewModel {
                name: view.name,
                feature_names: named.or(view.feature_names),
                basis: self.matrix(&format!("view.{i}.basis"))?,
                alignment: self.matrix(&format!("view.{i}.alignment"))?,
                preparation: Preparation {
                    log: view.scaling.scale.is_log(),
                    ..Preparation::new(self.numbers_if_any(&format!("view.{i}.fill"))?)
                },
                scaling: self.scaling(&format!("view.{i}"), view.scaling)?,
                stability: self.matrix_if_any(&format!("view.{i}.stability"))?,
            })
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        let references = metadata.doubts.map(|doubts| self.references(&doubts)).transpose()?;
        let retained = self.retained(views.len())?;
        let model = Model {
            references,
            views,
            latent_scaling: self.scaling("latent", metadata.latent_scaling)?,
            centres: self.matrix("centres")?,
            means,
            sizes,
            reproducibility: metadata.reproducibility,
            retained,
            options: metadata.options,
        };
        if model.fits_together() { Ok(model) } else { Err(apart()) }
    }

    fn scaling(&self, owner: &str, known: ScalingMetadata) -> Result<Scaling> {
        let ScalingMetadata { scale, reason, weight, importance, length } = known;
        let (_, shift) = self.numbers(&format!("{owner}.shift"))?;
        let (_, factor) = self.numbers(&format!("{owner}.factor"))?;
        let squares = self.numbers_if_any(&format!("{owner}.squares"))?;
        Ok(Scaling { scale, reason, shift, factor, weight, importance, length, squares })
    }
}

/// The error of an inconsistent file.
fn apart() -> Error {
    broken("its parts are inconsistent")
}

impl Fit {
    /// Writes the fit as a safetensors file, piece by piece: `out` should be buffered.
    ///
    /// # Errors
    /// When `out` fails; for a result of a fit or a file there is no other error.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut tensors = self.model.tensors();
        tensors.push(Tensor::matrix("latent", &self.latent));
        tensors.extend(self.map.as_ref().map(|map| Tensor::matrix("map", map)));
        tensors.push(Tensor::vector("labels", Content::Labels(&self.labels)));
        tensors.push(Tensor::vector("confidence", Content::Numbers(&self.confidence)));
        for (i, own) in self.missing_cells.iter().enumerate().filter(|(_, own)| !own.by_feature.is_empty()) {
            tensors.push(Tensor::vector(format!("view.{i}.missing"), Content::Labels(&own.by_feature)));
        }
        if !self.learnt.is_empty() {
            tensors.push(Tensor::vector("learnt", Content::Hashes(&self.learnt.hashes)));
        }
        if let Ids::Names(names) = &self.ids {
            tensors.extend(Tensor::names("ids", names));
        }
        let fit = FitMetadata {
            instances: self.ids.len(),
            named: matches!(self.ids, Ids::Names(_)),
            ids: None,
            neighbours: self.neighbours.clone(),
            missingness: self.missingness.clone(),
            significance: self.significance,
            missing_cells: self.missing_cells.iter().map(|own| [own.present, own.instances]).collect(),
            runs: self.runs.clone(),
            objective: self.objective,
            history: self.history.clone(),
            outcome: self.outcome,
            passes: self.passes,
            timings: self.timings,
            device: self.device.clone(),
        };
        let metadata = Written { model: self.model.metadata(WITH_INSTANCES), fit: Some(fit) };
        write(&metadata, tensors, out)
    }

    /// The fit as the bytes of a safetensors file.
    ///
    /// # Errors
    /// Never for a result of a fit or a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).map_err(broken)?;
        Ok(bytes)
    }

    /// A fit from the bytes of a file.
    ///
    /// # Errors
    /// When they are not a fit, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Opened::new(bytes)?.fit()
    }

    /// Writes the fit to a file atomically.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), |out| self.write(out))
    }

    /// Reads a fit from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is not one of a fit, or holds a [`Model`] alone.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_bytes(&read(path.as_ref())?)
    }

    /// Reads a fit from a file, or a bare [`Model`] as a fit without instances, whose objective, history and other figures are
    /// zero or empty.
    ///
    /// # Errors
    /// When the file cannot be read, or contains neither.
    pub fn load_or_model(path: impl AsRef<Path>) -> Result<Self> {
        let bytes = read(path.as_ref())?;
        let opened = Opened::new(&bytes)?;
        if opened.outline.instances.is_some() {
            return opened.fit();
        }
        let model = opened.model()?.ok_or_else(|| broken("it contains neither a fit nor a model"))?;
        Ok(Self::of_model(model))
    }
}

impl Model {
    /// Writes the model alone, without the instances of the fit, as a safetensors file, piece by piece: `out` should be buffered.
    ///
    /// # Errors
    /// When `out` fails; for a model from a fit or a file there is no other error.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        write(&Written { model: self.metadata(VERSION), fit: None }, self.tensors(), out)
    }

    /// The model alone as the bytes of a safetensors file.
    ///
    /// # Errors
    /// Never for a model from a fit or a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).map_err(broken)?;
        Ok(bytes)
    }

    /// A model from the bytes of a file of a model or a fit.
    ///
    /// # Errors
    /// When they are not a model, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let opened = Opened::new(bytes)?;
        match opened.model()? {
            Some(model) => Ok(model),
            None => Ok(opened.fit()?.model),
        }
    }

    /// Writes the model alone to a file atomically: the file can be shared without the IDs of the instances of the fit.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), |out| self.write(out))
    }

    /// Reads a model from a file of a model or a fit.
    ///
    /// # Errors
    /// When the file cannot be read or is not a model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_bytes(&read(path.as_ref())?)
    }

    /// All tensors.
    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors =
            vec![Tensor::matrix("centres", &self.centres), Tensor::matrix("means", &self.means)];
        tensors.extend(Tensor::scaling("latent", &self.latent_scaling));
        for (i, view) in self.views.iter().enumerate() {
            tensors.extend(Tensor::scaling(&format!("view.{i}"), &view.scaling));
            if !view.preparation.fill.is_empty() {
                let fill = Content::Numbers(&view.preparation.fill);
                tensors.push(Tensor::vector(format!("view.{i}.fill"), fill));
            }
            tensors.push(Tensor::matrix(format!("view.{i}.basis"), &view.basis));
            tensors.push(Tensor::matrix(format!("view.{i}.alignment"), &view.alignment));
            if let Some(stability) = &view.stability {
                tensors.push(Tensor::matrix(format!("view.{i}.stability"), stability));
            }
            if let Some(names) = &view.feature_names {
                tensors.extend(Tensor::names(&format!("view.{i}.features"), names));
            }
        }
        if let Some(references) = &self.references {
            tensors.extend(references::tensors(references));
        }
        if let Some(retained) = &self.retained {
            tensors.extend(retained.tensors());
        }
        tensors
    }

    fn metadata(&self, version: u32) -> Metadata {
        let views = self.views.iter().map(|view| ViewMetadata {
            name: view.name.clone(),
            named: view.feature_names.is_some(),
            feature_names: None,
            scaling: (&view.scaling).into(),
        });
        Metadata {
            version,
            options: self.options.clone(),
            views: views.collect(),
            latent_scaling: (&self.latent_scaling).into(),
            sizes: Some(self.sizes.clone()),
            reproducibility: self.reproducibility,
            doubts: self.references.as_ref().map(|own| own.views.iter().map(|view| view.doubt).collect()),
        }
    }

    fn fits_together(&self) -> bool {
        let (latent, clusters) = (self.options.latent, self.options.clusters);
        let shape = |matrix: &Matrix| (matrix.rows(), matrix.columns());
        let scales = |Scaling { shift, factor, squares, .. }: &Scaling, d: usize| {
            [0, d].contains(&shift.len())
                && [0, d].contains(&factor.len())
                && [0, d].contains(&squares.len())
                && squares.iter().all(|square| *square >= 0.0)
                && (shift.is_empty() || !factor.is_empty())
        };
        let features: Vec<usize> = self.views.iter().map(|view| view.basis.rows()).collect();
        self.references.as_ref().is_none_or(|references| references.fits(&features, clusters))
            && shape(&self.centres) == (latent, clusters)
            && shape(&self.means) == (latent, clusters)
            && self.sizes.len() == clusters
            && scales(&self.latent_scaling, latent)
            && self.retained.as_ref().is_none_or(|retained| retained.fits(&features, &self.options))
            && self.views.iter().all(|view| {
                let d = view.basis.rows();
                view.basis.columns() == latent
                    && shape(&view.alignment) == (d, latent)
                    && scales(&view.scaling, d)
                    && [0, d].contains(&view.preparation.fill.len())
                    && view.stability.as_ref().is_none_or(|stability| {
                        shape(stability) == (d, clusters)
                            && stability.values().iter().all(|share| (0.0..=1.0).contains(share))
                    })
                    && view.feature_names.as_ref().is_none_or(|names| names.len() == d)
            })
    }
}

/// The part of the metadata that is read first.
#[derive(Deserialize)]
struct Outline {
    version: u32,
    /// The number of instances in the file, if any.
    instances: Option<usize>,
}
