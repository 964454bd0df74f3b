//! The tensors of a file: their contents, and how they are read.

use std::io::{self, Write};

use safetensors::tensor::{Dtype, SafeTensors};

use super::{Opened, broken};
use daimc_core::scaling::Scaling;
use daimc_core::{Matrix, Result};

/// The number of values that are written at a time.
const PIECE: usize = 1 << 10;

/// The content of a tensor.
pub(super) enum Content<'a> {
    Numbers(&'a [f64]),
    Singles(&'a [f32]),
    Labels(&'a [usize]),
    Offsets(&'a [String]),
    Bytes(&'a [String]),
    Hashes(&'a [u64]),
}

pub(super) struct Tensor<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    content: Content<'a>,
}

impl<'a> Tensor<'a> {
    pub(super) fn vector(name: impl Into<String>, content: Content<'a>) -> Self {
        let length = match content {
            Content::Numbers(values) => values.len(),
            Content::Singles(values) => values.len(),
            Content::Labels(labels) => labels.len(),
            Content::Offsets(names) => names.len() + 1,
            Content::Bytes(names) => names.iter().map(String::len).sum(),
            Content::Hashes(hashes) => hashes.len(),
        };
        Self { name: name.into(), shape: vec![length], content }
    }

    pub(super) fn matrix(name: impl Into<String>, matrix: &'a Matrix) -> Self {
        let shape = vec![matrix.rows(), matrix.columns()];
        Self { name: name.into(), shape, content: Content::Numbers(matrix.values()) }
    }

    pub(super) fn names(owner: &str, names: &'a [String]) -> [Self; 2] {
        [
            Self::vector(format!("{owner}.offsets"), Content::Offsets(names)),
            Self::vector(format!("{owner}.bytes"), Content::Bytes(names)),
        ]
    }

    pub(super) fn scaling(owner: &str, Scaling { shift, factor, squares, .. }: &'a Scaling) -> Vec<Self> {
        let mut tensors = vec![
            Self::vector(format!("{owner}.shift"), Content::Numbers(shift)),
            Self::vector(format!("{owner}.factor"), Content::Numbers(factor)),
        ];
        if !squares.is_empty() {
            tensors.push(Self::vector(format!("{owner}.squares"), Content::Numbers(squares)));
        }
        tensors
    }

    pub(super) fn dtype(&self) -> Dtype {
        match self.content {
            Content::Numbers(_) | Content::Labels(_) => Dtype::F64,
            Content::Singles(_) => Dtype::F32,
            Content::Offsets(_) | Content::Hashes(_) => Dtype::U64,
            Content::Bytes(_) => Dtype::U8,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype().bitsize() / 8
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self.content {
            // Without a copy, in the byte order of the memory.
            Content::Numbers(values) if cfg!(target_endian = "little") => {
                values.chunks(PIECE).try_for_each(|piece| out.write_all(bytemuck::cast_slice(piece)))
            }
            Content::Numbers(values) => {
                values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
            }
            Content::Singles(values) => {
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
            Content::Hashes(hashes) => hashes.iter().try_for_each(|hash| out.write_all(&hash.to_le_bytes())),
        }
    }
}

impl Opened<'_> {
    pub(super) fn numbers(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        let tensor = self.tensors.tensor(name).map_err(broken)?;
        if tensor.dtype() != Dtype::F64 {
            return Err(broken(format!("{name} is not of type F64")));
        }
        let (values, _) = tensor.data().as_chunks::<8>();
        let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(broken(format!("{name} holds {value}")));
        }
        Ok((tensor.shape().to_vec(), values))
    }

    pub(super) fn matrix(&self, name: &str) -> Result<Matrix> {
        match self.numbers(name)? {
            (shape, values) if shape.len() == 2 => Matrix::new(shape[0], shape[1], values),
            _ => Err(broken(format!("{name} is not a matrix"))),
        }
    }

    /// A matrix that some files lack.
    pub(super) fn matrix_if_any(&self, name: &str) -> Result<Option<Matrix>> {
        self.tensors.names().contains(&name).then(|| self.matrix(name)).transpose()
    }

    /// Numbers that some files lack.
    pub(super) fn numbers_if_any(&self, name: &str) -> Result<Vec<f64>> {
        if self.tensors.names().contains(&name) { Ok(self.numbers(name)?.1) } else { Ok(Vec::new()) }
    }

    /// Integers that some files lack.
    pub(super) fn counts_if_any(&self, name: &str) -> Result<Vec<usize>> {
        self.numbers_if_any(name)?.into_iter().map(whole).collect()
    }

    pub(super) fn singles(&self, name: &str) -> Result<Vec<f32>> {
        let (values, _) = vector(&self.tensors, name, Dtype::F32)?.as_chunks::<4>();
        let value = |bytes: &[u8; 4]| {
            let value = f32::from_le_bytes(*bytes);
            if value.is_finite() { Ok(value) } else { Err(broken(format!("{name} holds {value}"))) }
        };
        values.iter().map(value).collect()
    }
}

/// A label, or a number of instances.
pub(super) fn whole(value: f64) -> Result<usize> {
    let whole = value >= 0.0 && value.trunc() == value && value < 2.0_f64.powi(32);
    if whole { Ok(value as usize) } else { Err(broken("a label or count is not a whole number")) }
}

/// The bytes of a vector.
pub(super) fn vector<'a>(tensors: &SafeTensors<'a>, name: &str, dtype: Dtype) -> Result<&'a [u8]> {
    let tensor = tensors.tensor(name).map_err(broken)?;
    if tensor.dtype() != dtype || tensor.shape().len() != 1 {
        return Err(broken(format!("{name} is not a vector of type {dtype}")));
    }
    Ok(tensor.data())
}

/// The names in two tensors.
pub(super) fn names(tensors: &SafeTensors<'_>, owner: &str) -> Result<Vec<String>> {
    let (offsets, _) = vector(tensors, &format!("{owner}.offsets"), Dtype::U64)?.as_chunks::<8>();
    let bytes = vector(tensors, &format!("{owner}.bytes"), Dtype::U8)?;
    let wrong = || broken(format!("{owner} are not names"));
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let offset = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| wrong());
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Err(wrong()) };
    if offset(first)? != 0 || offset(last)? != text.len() {
        return Err(wrong());
    }
    // An offset that decreases, exceeds the end or splits a character is invalid.
    let name =
        |pair: &[[u8; 8]]| Ok(text.get(offset(&pair[0])?..offset(&pair[1])?).ok_or_else(wrong)?.to_owned());
    offsets.windows(2).map(name).collect()
}
