//! Sparse rows: by row for the first product, and by feature for the second.

use daimc::Result;
use daimc::source::{Csr, Rows};

use super::{Basis, RowSource};
use crate::gpu::{Argument, Gpu, Memory, Value, maybe};
use crate::latent::Latent;

/// A number of sparse rows.
pub trait Entry: Value {
    const NAME: &'static str;
    fn rows<'a>(rows: &Rows<'a>) -> Option<Csr<'a, Self>>
    where
        Self: daimc::Scalar;
}

impl Entry for f32 {
    const NAME: &'static str = "f32";
    fn rows<'a>(rows: &Rows<'a>) -> Option<Csr<'a, Self>> {
        if let Rows::SparseF32(rows) = rows { Some(*rows) } else { None }
    }
}

impl Entry for f64 {
    const NAME: &'static str = "f64";
    fn rows<'a>(rows: &Rows<'a>) -> Option<Csr<'a, Self>> {
        if let Rows::SparseF64(rows) = rows { Some(*rows) } else { None }
    }
}

/// Sparse rows.
pub struct Sparse<T> {
    rows: usize,
    features: usize,
    offsets: Memory<i64>,
    columns: Memory<i32>,
    values: Memory<T>,
    /// The same entries by feature: their rows and values, the offset of each stretch, and the first stretch of each feature.
    entry_rows: Memory<i32>,
    entry_values: Memory<T>,
    stretches: Memory<i64>,
    firsts: Memory<i32>,
    /// The factor of each row, unless rows have a common one.
    pub factors: Option<Memory<f64>>,
}

/// Maximum number of entries per stretch.
const STRETCH: usize = 1024;

/// Bytes of rows read at a time.
const READ: usize = 64 << 20;

impl<T: Entry + daimc::Scalar> Sparse<T> {
    pub fn new(source: &RowSource<'_>) -> Result<Self> {
        let (gpu, features) = (source.gpu, source.scaled.features());
        let (mut offsets, mut columns, mut values, mut factors) =
            (vec![0_i64], Vec::new(), Vec::new(), Vec::new());
        let own_factors = source.scaled.common_factor().is_none();
        source.each(READ, |range, block| {
            let Some(csr) = T::rows(&block.rows) else { return Ok(()) };
            for instance in range.clone() {
                let Some(row) = block.index.row(instance - range.start) else { continue };
                let (own_columns, own_values) = csr.row(row);
                columns.extend(own_columns.iter().map(|&column| column as i32));
                values.extend_from_slice(own_values);
                offsets.push(columns.len() as i64);
                if own_factors {
                    factors.push(source.scaled.factor(instance));
                }
            }
            Ok(())
        })?;
        let by_feature = transposed(&offsets, &columns, &values, features);
        Ok(Self {
            rows: source.count,
            features,
            offsets: gpu.copy(&offsets)?,
            columns: gpu.copy(&columns)?,
            values: gpu.copy(&values)?,
            entry_rows: gpu.copy(&by_feature.rows)?,
            entry_values: gpu.copy(&by_feature.values)?,
            stretches: gpu.copy(&by_feature.stretches)?,
            firsts: gpu.copy(&by_feature.firsts)?,
            factors: own_factors.then(|| gpu.copy(&factors)).transpose()?,
        })
    }

    pub fn project(
        &self,
        gpu: &Gpu,
        basis: &Basis,
        instances: Argument,
        right: &Memory<f64>,
        add: bool,
    ) -> Result<()> {
        let kernel = gpu.kernel("sums", &format!("project_sparse_{}", Self::name(basis.latent)), 0)?;
        let arguments = [
            self.offsets.at(),
            self.columns.at(),
            self.values.at(),
            instances,
            Argument::long(self.rows),
            basis.values.at(),
            basis.offset(),
            maybe(self.factors.as_ref()),
            Argument::int(basis.latent),
            right.at(),
            Argument::int(add.into()),
        ];
        gpu.launch(&kernel, (self.rows.div_ceil(8), 1, 1), (256, 1), &arguments)
    }

    pub fn gather(&self, gpu: &Gpu, v: &Latent<'_>, instances: Argument, sums: Argument) -> Result<()> {
        let count = self.stretches.len() - 1;
        let partial = gpu.allocate::<f64>(count * v.columns)?;
        let kernel = gpu.kernel("sums", &format!("gather_sparse_{}", Self::name(v.columns)), 0)?;
        let arguments = [
            self.stretches.at(),
            Argument::long(count),
            self.entry_rows.at(),
            self.entry_values.at(),
            instances,
            v.v.at(),
            maybe(self.factors.as_ref()),
            Argument::int(v.columns),
            partial.at(),
        ];
        gpu.launch(&kernel, (count.div_ceil(8), 1, 1), (256, 1), &arguments)?;
        let kernel = gpu.kernel("sums", "add_stretches", 0)?;
        let size = self.features * v.columns;
        let arguments =
            [partial.at(), self.firsts.at(), Argument::int(self.features), Argument::int(v.columns), sums];
        gpu.launch(&kernel, (size.div_ceil(256), 1, 1), (256, 1), &arguments)
    }

    /// Variant of the kernels: for up to 32 columns of V, or up to 256.
    fn name(latent: usize) -> String {
        format!("{}_{}", T::NAME, if latent <= 32 { 1 } else { 8 })
    }
}

/// Entries by feature.
struct ByFeature<T> {
    rows: Vec<i32>,
    values: Vec<T>,
    stretches: Vec<i64>,
    firsts: Vec<i32>,
}

/// Sorts entries by feature and row, and divides those of each feature into stretches.
fn transposed<T: Value>(offsets: &[i64], columns: &[i32], values: &[T], features: usize) -> ByFeature<T> {
    let mut ends = vec![0_usize; features + 1];
    columns.iter().for_each(|&column| ends[column as usize + 1] += 1);
    for f in 0..features {
        ends[f + 1] += ends[f];
    }
    let (mut stretches, mut firsts) = (Vec::new(), Vec::with_capacity(features + 1));
    for f in 0..features {
        firsts.push(stretches.len() as i32);
        stretches.extend((ends[f]..ends[f + 1]).step_by(STRETCH).map(|at| at as i64));
    }
    firsts.push(stretches.len() as i32);
    stretches.push(columns.len() as i64);
    let mut next = ends;
    let mut out = ByFeature {
        rows: vec![0; columns.len()],
        values: vec![T::default(); columns.len()],
        stretches,
        firsts,
    };
    for (row, range) in offsets.windows(2).enumerate() {
        for i in range[0] as usize..range[1] as usize {
            let at = &mut next[columns[i] as usize];
            out.rows[*at] = row as i32;
            out.values[*at] = values[i];
            *at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_by_feature() {
        // A feature with many entries, one with none, and one with one.
        let rows = 2 * STRETCH + 1;
        let mut columns = vec![0; rows];
        columns.push(2);
        let values: Vec<f64> = (0..=rows).map(|i| i as f64).collect();
        let mut offsets: Vec<i64> = (0..=rows as i64).collect();
        *offsets.last_mut().unwrap() += 1;
        let transposed = transposed(&offsets, &columns, &values, 3);
        assert_eq!(
            transposed.stretches,
            [0, STRETCH as i64, 2 * STRETCH as i64, rows as i64, rows as i64 + 1]
        );
        assert_eq!(transposed.firsts, [0, 3, 3, 4]);
        assert_eq!(transposed.values, values);
        assert_eq!((transposed.rows[rows - 1], transposed.rows[rows]), (rows as i32 - 1, rows as i32 - 1));
    }
}
