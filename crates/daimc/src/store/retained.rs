//! Sums over the instances that a model has learnt from.

use safetensors::tensor::Dtype;

use super::tensor::{Content, Tensor, vector, whole};
use super::{Opened, apart};
use crate::retained::{Cells, Learnt, Members, Retained, Spread};
use daimc_core::Result;
use daimc_core::statistics::Totals;

impl Retained {
    pub(super) fn tensors<'a>(&'a self) -> Vec<Tensor<'a>> {
        let Self { totals, squares, shown, members, spread, rows, cells } = self;
        let mut tensors = Vec::new();
        for (view, (gram, cross)) in totals.gram.iter().zip(&totals.cross).enumerate() {
            tensors.push(Tensor::matrix(format!("retained.{view}.gram"), gram));
            tensors.push(Tensor::matrix(format!("retained.{view}.cross"), cross));
        }
        let vectors = [
            ("sums", &totals.column_sums),
            ("holes", &totals.holes),
            ("squares", squares),
            ("shown", shown),
            ("members", members),
            ("errors", &spread.errors),
            ("misfit", &spread.counts),
        ];
        let vector = |(name, values): (&str, &'a Vec<f64>)| {
            Tensor::vector(format!("retained.{name}"), Content::Numbers(values))
        };
        tensors.extend(vectors.map(vector));
        if let Some(Members { columns, scale }) = rows {
            tensors.push(Tensor::vector("retained.columns", Content::Labels(columns)));
            tensors.push(Tensor::vector("retained.scale", Content::Numbers(scale)));
        }
        if let Some(Cells { sums, shown, members }) = cells {
            tensors.push(Tensor::matrix("cells.shown", shown));
            tensors.push(Tensor::vector("cells.members", Content::Numbers(members)));
            for (view, sums) in sums.iter().enumerate() {
                tensors.push(Tensor::matrix(format!("cells.{view}.sums"), sums));
            }
        }
        tensors
    }
}

impl Opened<'_> {
    /// The sums over the instances that the model has learnt from; `None` for files of earlier versions.
    pub(super) fn retained(&self, views: usize) -> Result<Option<Retained>> {
        if !self.tensors.names().contains(&"retained.members") {
            return Ok(None);
        }
        let vector = |name: &str| Ok(self.numbers(&format!("retained.{name}"))?.1);
        let each = |name: &str| {
            (0..views).map(|view| self.matrix(&format!("retained.{view}.{name}"))).collect::<Result<_>>()
        };
        let mut totals = Totals::new(each("gram")?, each("cross")?, vector("sums")?);
        totals.holes = vector("holes")?;
        let spread = Spread { errors: vector("errors")?, counts: vector("misfit")? };
        let (squares, shown, members) = (vector("squares")?, vector("shown")?, vector("members")?);
        let cells = if self.tensors.names().contains(&"cells.members") {
            let sums = |view: usize| self.matrix(&format!("cells.{view}.sums"));
            let sums = (0..views).map(sums).collect::<Result<_>>()?;
            Some(Cells {
                sums,
                shown: self.matrix("cells.shown")?,
                members: self.numbers("cells.members")?.1,
            })
        } else {
            None
        };
        let rows = if self.tensors.names().contains(&"retained.columns") {
            let columns = vector("columns")?.into_iter().map(whole).collect::<Result<_>>()?;
            Some(Members { columns, scale: vector("scale")? })
        } else {
            None
        };
        Ok(Some(Retained { totals, squares, shown, members, spread, rows, cells }))
    }

    /// The hashes of the instances that an updated model had learnt from before those of the file.
    pub(super) fn learnt_before(&self) -> Result<Learnt> {
        if !self.tensors.names().contains(&"learnt") {
            return Ok(Learnt::default());
        }
        let (hashes, _) = vector(&self.tensors, "learnt", Dtype::U64)?.as_chunks::<8>();
        let hashes: Vec<u64> = hashes.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        if hashes.is_sorted() { Ok(Learnt { hashes }) } else { Err(apart()) }
    }
}
