//! A whole sweep in one kernel, which reads the rows once: for dense rows in single precision, if all views and V have few enough
//! columns.

use std::sync::{Mutex, PoisonError};

use daimc::accelerator::Load;
use daimc::{Matrix, Result};

use crate::Precision;
use crate::descent::{fill_table, gram_of, table_size};
use crate::gpu::{Argument, Gpu, Memory, PinnedBuffer, maybe};
use crate::latent::Latent;
use crate::rows::ViewRows;
use crate::sums::add_parts;

/// The compiled kernels, ordered by the number of columns, then by decreasing use of shared memory.
const SHAPES: [Shape; 10] = [
    Shape { tiles: 2, groups: 8, units: 4 },
    Shape { tiles: 2, groups: 2, units: 1 },
    Shape { tiles: 2, groups: 4, units: 4 },
    Shape { tiles: 2, groups: 2, units: 4 },
    Shape { tiles: 2, groups: 1, units: 4 },
    Shape { tiles: 3, groups: 8, units: 4 },
    Shape { tiles: 3, groups: 2, units: 1 },
    Shape { tiles: 3, groups: 4, units: 4 },
    Shape { tiles: 3, groups: 2, units: 4 },
    Shape { tiles: 3, groups: 1, units: 4 },
];

#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Tiles of 8 columns of V.
    tiles: usize,
    /// Groups of 16 rows per block.
    groups: usize,
    /// Units of 32 columns of X per warp.
    units: usize,
}

/// Columns of a descriptor, and of a unit, which has two descriptors.
const COLUMNS: usize = 16;
const UNIT: usize = 2 * COLUMNS;

impl Shape {
    fn width(self) -> usize {
        8 * self.tiles
    }

    /// Maximum number of columns of X.
    fn columns(self) -> usize {
        256 * self.units / self.groups
    }

    /// Bytes of shared memory, see `kernels/fused.cu`.
    fn shared(self) -> usize {
        let (buffers, rows) = (if self.groups == 1 { 2 } else { 1 }, 16 * self.groups);
        4 * (12_288 * self.units + 24 * buffers * (128 + rows) + table_size(self.width()) + self.width())
    }

    fn name(self, precision: Precision) -> String {
        let kind = match precision {
            Precision::Single => "f32",
            Precision::Tf32 => "tf32",
        };
        format!("fused_{kind}_{}_{}_{}", self.tiles, self.groups, self.units)
    }
}

/// The layout of the columns of all views for the kernel.
pub struct Fused {
    shape: Shape,
    precision: Precision,
    shared: usize,
    /// The first column of each view.
    firsts: Vec<usize>,
    units: usize,
    /// For each 16 columns their address, the map from instances to rows, the stride and the number of columns; `None` for a single
    /// complete view.
    descriptors: Option<Memory<u64>>,
    _maps: Vec<Memory<i32>>,
    /// The inputs of a sweep, on the host and on the GPU: the basis, the tables and the scale.
    inputs: Mutex<(PinnedBuffer<f32>, Memory<f32>)>,
}

/// Partial sums of `C` of all views, concatenated.
pub struct Cross {
    parts: Memory<f64>,
    count: usize,
}

impl Fused {
    /// Prepares sweeps over these views; `None` if no kernel supports them.
    pub fn new(gpu: &Gpu, load: &Load<'_>, views: &[ViewRows], precision: Precision) -> Result<Option<Self>> {
        let mut columns = 0;
        let firsts: Vec<usize> = views
            .iter()
            .map(|view| {
                columns += view.features.next_multiple_of(COLUMNS);
                columns - view.features.next_multiple_of(COLUMNS)
            })
            .collect();
        let units = columns.div_ceil(UNIT);
        let fits = |shape: &Shape| {
            shape.width() >= load.latent() && shape.columns() >= units * UNIT && shape.shared() <= gpu.shared
        };
        let Some(shape) = SHAPES.into_iter().find(fits) else { return Ok(None) };
        if views.iter().any(|view| view.single().is_none()) {
            return Ok(None);
        }
        let mut maps = Vec::new();
        let simple = views.len() == 1 && views[0].instances.is_none();
        let mut descriptors = Vec::new();
        for (number, view) in views.iter().enumerate().filter(|_| !simple) {
            let Some((values, stride)) = view.single() else { return Ok(None) };
            let mut map = 0;
            if view.instances.is_some() {
                let mut rows = 0..;
                let row = |i: usize| load.shows(number, i).then(|| rows.next()).flatten().unwrap_or(-1);
                let own = gpu.copy(&(0..load.instances()).map(row).collect::<Vec<i32>>())?;
                map = own.address();
                maps.push(own);
            }
            for first in (0..view.features).step_by(COLUMNS) {
                let count = (stride - first).min(COLUMNS);
                descriptors.extend([
                    values.address() + 4 * first as u64,
                    map,
                    stride as u64 | (count as u64) << 32,
                ]);
            }
        }
        if !simple && descriptors.len() / 3 % 2 == 1 {
            descriptors.extend([views[0].single().map_or(0, |(values, _)| values.address()), 0, 0]);
        }
        let descriptors = (!simple).then(|| gpu.copy(&descriptors)).transpose()?;
        let shared = shape.shared();
        let length =
            UNIT * units * shape.width() + load.patterns().len() * table_size(shape.width()) + load.latent();
        let inputs = Mutex::new((gpu.pinned(length)?, gpu.allocate(length)?));
        Ok(Some(Self { shape, precision, shared, firsts, units, descriptors, _maps: maps, inputs }))
    }

    /// Length of `C` of all views in the layout of the kernel.
    pub fn size(&self) -> usize {
        UNIT * self.units * self.shape.width()
    }

    /// Multiplies V by a scale, updates it in place, and sums `x vᵀ` over the rows as they are stored on the GPU.
    #[allow(clippy::too_many_arguments)] // The arguments of a kernel.
    pub fn sweep(
        &self,
        gpu: &Gpu,
        views: &[ViewRows],
        (patterns, pattern_views): (Option<&Memory<i32>>, &[Vec<usize>]),
        bases: &[Matrix],
        view_grams: &[Vec<f64>],
        (scale, passes): (&[f64], usize),
        v: &Latent<'_>,
    ) -> Result<Cross> {
        let (width, k, size) = (self.shape.width(), v.columns, self.size());
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let (pinned, on_gpu) = &mut *inputs;
        let values = pinned.values(gpu)?;
        let length = values.len();
        values.fill(0.0);
        let (basis, rest) = values.split_at_mut(size);
        let (tables, scales) = rest.split_at_mut(pattern_views.len() * table_size(width));
        scales.iter_mut().zip(scale).for_each(|(to, value)| *to = *value as f32);
        let mut offsets = Vec::with_capacity(views.len());
        for ((view, own), first) in views.iter().zip(bases).zip(&self.firsts) {
            let (folded, offset) = view.folded(own);
            for (to, row) in basis[first * width..].chunks_exact_mut(width).zip(folded.iter_rows()) {
                to.iter_mut().zip(row).for_each(|(to, value)| *to = *value as f32);
            }
            offsets.push(offset);
        }
        for (views, table) in pattern_views.iter().zip(tables.chunks_exact_mut(table_size(width))) {
            fill_table(table, width, k, gram_of(views, view_grams, k));
            for (row, offset) in table[table_size(width) - width..].iter_mut().take(k).enumerate() {
                *offset = views.iter().map(|&view| offsets[view][row]).sum::<f64>() as f32;
            }
        }
        gpu.send(pinned, length, on_gpu, 0)?;
        let (basis, tables) = (on_gpu.at(), on_gpu.from(size));
        let scale = on_gpu.from(length - k);
        let tiles = v.instances.div_ceil(16 * self.shape.groups);
        let blocks = (gpu.processors * if self.shape.units == 1 { 2 } else { 1 }).min(tiles);
        let count = blocks * self.shape.groups;
        let parts = gpu.allocate::<f64>(count * size)?;
        let (address, stride) = match views[0].single() {
            Some((values, stride)) => (values.at(), stride),
            None => (Argument::NULL, 0),
        };
        let kernel = gpu.kernel(&self.shape.name(self.precision), "fused", self.shared)?;
        let arguments = [
            address,
            Argument::long(stride),
            Argument::int(stride),
            maybe(self.descriptors.as_ref()),
            Argument::int(self.units),
            basis,
            tables,
            maybe(patterns),
            v.v.at(),
            scale,
            v.v.at(),
            Argument::long(v.instances),
            Argument::int(k),
            Argument::int(passes),
            parts.at(),
        ];
        gpu.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
        Ok(Cross { parts, count })
    }

    /// Adds the partial sums.
    pub fn add(&self, gpu: &Gpu, cross: &Cross, out: Argument) -> Result<()> {
        add_parts(gpu, &cross.parts, self.size(), cross.count, out)
    }

    /// The sums of one view, features × columns of V.
    pub fn of_view(&self, sums: &[f64], view: usize, features: usize, k: usize) -> Result<Matrix> {
        let width = self.shape.width();
        let rows = sums[self.firsts[view] * width..].chunks_exact(width).take(features);
        Matrix::new(features, k, rows.flat_map(|row| &row[..k]).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn the_kernel_has_the_same_sizes() {
        let source = include_str!("../kernels/fused.cu");
        let constant = |name| kernels::constant::<usize>(source, name);
        assert_eq!(constant("STAGES") * constant("WARPS") * 16 * UNIT, 12_288);
        assert_eq!((constant("STRIDE"), constant("WARPS")), (24, 8));
    }

    #[test]
    fn every_shape_is_compiled() {
        for shape in SHAPES {
            for precision in [Precision::Single, Precision::Tf32] {
                let ptx = kernels::source(&shape.name(precision)).unwrap();
                assert!(ptx.contains(".entry fused"), "{shape:?}");
            }
        }
    }
}
