//! A model as a file: safetensors, with what is small and not a matrix as JSON in its metadata.
//!
//! The metadata are part of the header, which may have 100 MB; so IDs and names of features are tensors: their bytes one after
//! the other, and the offsets at which each begins. In version 1 they were part of the metadata.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata as Header, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};

use super::{Model, Run, ViewModel};
use crate::options::Options;
use crate::scale::{Scale, Scaling};
use crate::steps::objective::Objective;
use crate::{Decision, Error, Ids, Matrix, Missingness, Outcome, Result, Timings};

/// Raised whenever a file of an older version cannot be read as it is.
const VERSION: u32 = 2;

/// The oldest version that can be read.
const OLDEST: u32 = 1;

/// The key under which the metadata stand.
const KEY: &str = "daimc";

/// The most bytes that a header may have.
const LONGEST_HEADER: u64 = 100_000_000;

#[derive(Serialize, Deserialize)]
struct Metadata {
    version: u32,
    options: Options,
    views: Vec<ViewMetadata>,
    latent_scaling: ScalingMetadata,
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
    runs: Vec<Run>,
    objective: Objective,
    history: Vec<Objective>,
    outcome: Outcome,
    #[serde(default)]
    passes: usize,
    timings: Timings,
}

#[derive(Serialize, Deserialize)]
struct ViewMetadata {
    name: String,
    /// Whether there are tensors of names of features.
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

/// Numbers that are written at a time.
const PIECE: usize = 1 << 10;

/// What a tensor is made of.
enum Content<'a> {
    Numbers(&'a [f64]),
    Labels(&'a [usize]),
    Offsets(&'a [String]),
    Bytes(&'a [String]),
}

struct Tensor<'a> {
    name: String,
    shape: Vec<usize>,
    content: Content<'a>,
}

impl<'a> Tensor<'a> {
    fn vector(name: impl Into<String>, content: Content<'a>) -> Self {
        let length = match content {
            Content::Numbers(values) => values.len(),
            Content::Labels(labels) => labels.len(),
            Content::Offsets(names) => names.len() + 1,
            Content::Bytes(names) => names.iter().map(String::len).sum(),
        };
        Self { name: name.into(), shape: vec![length], content }
    }

    fn matrix(name: impl Into<String>, matrix: &'a Matrix) -> Self {
        let shape = vec![matrix.rows(), matrix.columns()];
        Self { name: name.into(), shape, content: Content::Numbers(matrix.values()) }
    }

    fn names(owner: &str, names: &'a [String]) -> [Self; 2] {
        [
            Self::vector(format!("{owner}.offsets"), Content::Offsets(names)),
            Self::vector(format!("{owner}.bytes"), Content::Bytes(names)),
        ]
    }

    fn scaling(owner: &str, Scaling { shift, factor, .. }: &'a Scaling) -> [Self; 2] {
        [
            Self::vector(format!("{owner}.shift"), Content::Numbers(shift)),
            Self::vector(format!("{owner}.factor"), Content::Numbers(factor)),
        ]
    }

    fn dtype(&self) -> Dtype {
        match self.content {
            Content::Numbers(_) | Content::Labels(_) => Dtype::F64,
            Content::Offsets(_) => Dtype::U64,
            Content::Bytes(_) => Dtype::U8,
        }
    }

    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype().bitsize() / 8
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self.content {
            // As they lie in memory, without a copy of them.
            Content::Numbers(values) if cfg!(target_endian = "little") => {
                values.chunks(PIECE).try_for_each(|piece| out.write_all(bytemuck::cast_slice(piece)))
            }
            Content::Numbers(values) => {
                values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
            }
            Content::Labels(labels) => {
                labels.iter().try_for_each(|&label| out.write_all(&(label as f64).to_le_bytes()))
            }
            Content::Offsets(names) => {
                let mut offset = 0_u64;
                out.write_all(&offset.to_le_bytes())?;
                names.iter().try_for_each(|name| {
                    offset += name.len() as u64;
                    out.write_all(&offset.to_le_bytes())
                })
            }
            Content::Bytes(names) => names.iter().try_for_each(|name| out.write_all(name.as_bytes())),
        }
    }
}

impl Model {
    /// Writes the model as a safetensors file, piece by piece: `out` should be buffered.
    ///
    /// # Errors
    /// When `out` fails; never otherwise for a model that came from a fit or a file.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let tensors = self.tensors();
        let mut end = 0;
        let about = tensors.iter().map(|tensor| {
            let start = end;
            end += tensor.bytes();
            let info =
                TensorInfo { dtype: tensor.dtype(), shape: tensor.shape.clone(), data_offsets: (start, end) };
            (tensor.name.clone(), info)
        });
        let about = about.collect();
        let metadata = serde_json::to_string(&self.metadata())?;
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

    /// The model as the bytes of a safetensors file.
    ///
    /// # Errors
    /// Never for a model that came from a fit or a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).map_err(broken)?;
        Ok(bytes)
    }

    /// Everything large, in the order of the file: what needs the widest alignment first.
    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = vec![
            Tensor::matrix("latent", &self.latent),
            Tensor::matrix("centres", &self.centres),
            Tensor::vector("labels", Content::Labels(&self.labels)),
            Tensor::vector("confidence", Content::Numbers(&self.confidence)),
        ];
        tensors.extend(Tensor::scaling("latent", &self.latent_scaling));
        if let Ids::Names(names) = &self.ids {
            tensors.extend(Tensor::names("ids", names));
        }
        for (i, view) in self.views.iter().enumerate() {
            tensors.extend(Tensor::scaling(&format!("view.{i}"), &view.scaling));
            tensors.push(Tensor::matrix(format!("view.{i}.basis"), &view.basis));
            tensors.push(Tensor::matrix(format!("view.{i}.alignment"), &view.alignment));
            if let Some(stability) = &view.stability {
                tensors.push(Tensor::matrix(format!("view.{i}.stability"), stability));
            }
            if let Some(names) = &view.feature_names {
                tensors.extend(Tensor::names(&format!("view.{i}.features"), names));
            }
        }
        tensors.sort_by(|a, b| b.dtype().cmp(&a.dtype()).then_with(|| a.name.cmp(&b.name)));
        tensors
    }

    fn metadata(&self) -> Metadata {
        let views = self.views.iter().map(|view| ViewMetadata {
            name: view.name.clone(),
            named: view.feature_names.is_some(),
            feature_names: None,
            scaling: (&view.scaling).into(),
        });
        Metadata {
            version: VERSION,
            options: self.options.clone(),
            views: views.collect(),
            latent_scaling: (&self.latent_scaling).into(),
            instances: self.ids.len(),
            named: matches!(self.ids, Ids::Names(_)),
            ids: None,
            neighbours: self.neighbours.clone(),
            missingness: self.missingness.clone(),
            runs: self.runs.clone(),
            objective: self.objective,
            history: self.history.clone(),
            outcome: self.outcome,
            passes: self.passes,
            timings: self.timings,
        }
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
        if !(OLDEST..=VERSION).contains(&version.version) {
            let version = version.version;
            return Err(broken(format!("its version is {version}, known are {OLDEST} to {VERSION}")));
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
        daimc_files::write(path, |out| self.write(out)).map_err(failed)
    }

    /// Reads a model from a file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::Io { path: path.display().to_string(), source };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(8).read_to_end(&mut bytes).map_err(failed)?;
        // What does not begin like a model is not read to its end, if it has one.
        let length = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length));
        if length.is_some_and(|length| (2..=LONGEST_HEADER).contains(&length)) {
            file.read_to_end(&mut bytes).map_err(failed)?;
        }
        Self::from_bytes(&bytes)
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

/// The bytes of a vector.
fn vector<'a>(tensors: &SafeTensors<'a>, name: &str, dtype: Dtype) -> Result<&'a [u8]> {
    let tensor = tensors.tensor(name).map_err(broken)?;
    if tensor.dtype() != dtype || tensor.shape().len() != 1 {
        return Err(broken(format!("{name} is not a vector of type {dtype}")));
    }
    Ok(tensor.data())
}

/// The names that two tensors hold.
fn names(tensors: &SafeTensors<'_>, owner: &str) -> Result<Vec<String>> {
    let (offsets, _) = vector(tensors, &format!("{owner}.offsets"), Dtype::U64)?.as_chunks::<8>();
    let bytes = vector(tensors, &format!("{owner}.bytes"), Dtype::U8)?;
    let wrong = || broken(format!("{owner} are not names"));
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let offset = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| wrong());
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Err(wrong()) };
    if offset(first)? != 0 || offset(last)? != text.len() {
        return Err(wrong());
    }
    // An offset before the last one, beyond the end or within a letter is none of a name.
    let name =
        |pair: &[[u8; 8]]| Ok(text.get(offset(&pair[0])?..offset(&pair[1])?).ok_or_else(wrong)?.to_owned());
    offsets.windows(2).map(name).collect()
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
        let named = view.named.then(|| names(tensors, &format!("view.{i}.features"))).transpose()?;
        Ok(ViewModel {
            name: view.name,
            feature_names: named.or(view.feature_names),
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
    let named = metadata.named.then(|| names(tensors, "ids")).transpose()?;
    Ok(Model {
        views: views.collect::<Result<_>>()?,
        latent: matrix("latent")?,
        labels: get("labels")?.1.iter().map(label).collect::<Result<_>>()?,
        confidence: get("confidence")?.1,
        latent_scaling: scaling("latent", metadata.latent_scaling)?,
        centres: matrix("centres")?,
        ids: named.or(metadata.ids).map_or(Ids::Numbers(metadata.instances), Ids::Names),
        options: metadata.options,
        neighbours: metadata.neighbours,
        missingness: metadata.missingness,
        runs: metadata.runs,
        objective: metadata.objective,
        history: metadata.history,
        outcome: metadata.outcome,
        passes: metadata.passes,
        timings: metadata.timings,
    })
}
