//! A whole sweep in one kernel, which reads the rows once: dense rows of single precision, where the columns of all views and of V are
//! few enough.

use daimc::accelerator::Load;
use daimc::{Matrix, Result};

use crate::Precision;
use crate::card::{Argument, Card, Memory, maybe};
use crate::rows::{Latent, Rows};
use crate::sums::add_parts;

/// The kernels: tiles of 8 columns of V, groups of 16 rows that a block takes, and units of 32 columns that a warp holds.
const SHAPES: [Shape; 6] = [
    Shape { tiles: 2, groups: 2, units: 1 },
    Shape { tiles: 2, groups: 2, units: 4 },
    Shape { tiles: 2, groups: 1, units: 4 },
    Shape { tiles: 3, groups: 2, units: 1 },
    Shape { tiles: 3, groups: 2, units: 4 },
    Shape { tiles: 3, groups: 1, units: 4 },
];

#[derive(Clone, Copy, Debug)]
struct Shape {
    tiles: usize,
    groups: usize,
    units: usize,
}

/// Columns of X for which reading them twice is faster: the kernel computes with as many as it has room for.
const RATHER_TWICE: std::ops::RangeInclusive<usize> = 129..=256;

/// Columns of a descriptor, and of a unit, of which there are two.
const COLUMNS: usize = 16;
const UNIT: usize = 2 * COLUMNS;

impl Shape {
    fn width(self) -> usize {
        8 * self.tiles
    }

    /// Columns of X, at most.
    fn columns(self) -> usize {
        256 * self.units / self.groups
    }

    fn shared(self, parts: usize) -> usize {
        let (width, rows) = (self.width(), 16 * self.groups);
        let right = if self.tiles % 2 == 1 { width } else { width + 8 };
        let floats = 12_288 * self.units
            + 128 * right
            + rows * width * parts
            + width * width
            + 2 * width
            + rows * (width + 4);
        4 * floats + 8 * (width * width + rows * width)
    }

    fn name(self, precision: Precision) -> String {
        let kind = match precision {
            Precision::Single => "f32",
            Precision::Tf32 => "tf32",
        };
        format!("fused_{kind}_{}_{}_{}", self.tiles, self.groups, self.units)
    }
}

/// How the kernel finds the columns of all views.
pub struct Fused {
    shape: Shape,
    precision: Precision,
    shared: usize,
    /// The first column of each view.
    firsts: Vec<usize>,
    units: usize,
    /// Address, map of instances to rows, stride and number of columns for each 16 of them, if there are several views or one that
    /// does not show all.
    descriptors: Option<Memory<u64>>,
    _maps: Vec<Memory<i32>>,
}

/// `C` of all views, one after the other, as the kernel leaves it.
pub struct Cross {
    sums: Memory<f64>,
    width: usize,
}

impl Fused {
    /// How to sweep over these views in one kernel; `None` if that cannot be done.
    pub fn new(card: &Card, load: &Load<'_>, views: &[Rows], precision: Precision) -> Result<Option<Self>> {
        let mut columns = 0;
        let firsts: Vec<usize> = views
            .iter()
            .map(|view| {
                columns += view.features.next_multiple_of(COLUMNS);
                columns - view.features.next_multiple_of(COLUMNS)
            })
            .collect();
        let units = columns.div_ceil(UNIT);
        let parts = if precision == Precision::Single { 2 } else { 1 };
        let fits = |shape: &Shape| {
            shape.width() >= load.latent()
                && shape.columns() >= units * UNIT
                && shape.shared(parts) <= card.shared
        };
        let Some(shape) = SHAPES.into_iter().find(fits) else { return Ok(None) };
        if RATHER_TWICE.contains(&(units * UNIT)) || views.iter().any(|view| view.single().is_none()) {
            return Ok(None);
        }
        let mut maps = Vec::new();
        let simple = views.len() == 1 && views[0].instances.is_none();
        let mut descriptors = Vec::new();
        for view in views.iter().filter(|_| !simple) {
            let Some((values, stride)) = view.single() else { return Ok(None) };
            let map = match &view.instances {
                None => 0,
                Some(instances) => {
                    let mut rows = vec![-1; load.instances()];
                    for (row, instance) in card.read(instances)?.into_iter().enumerate() {
                        rows[instance as usize] = row as i32;
                    }
                    maps.push(card.copy(&rows)?);
                    maps.last().map_or(0, Memory::address)
                }
            };
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
        let descriptors = (!simple).then(|| card.copy(&descriptors)).transpose()?;
        let shared = shape.shared(parts);
        Ok(Some(Self { shape, precision, shared, firsts, units, descriptors, _maps: maps }))
    }

    /// Updates V, times a scale, in place and returns `Σ x vᵀ` of the rows as they lie on the card.
    #[allow(clippy::too_many_arguments)] // They are the arguments of a kernel.
    pub fn sweep(
        &self,
        card: &Card,
        views: &[Rows],
        (patterns, pattern_views): (Option<&Memory<i32>>, &[Vec<usize>]),
        bases: &[Matrix],
        view_grams: &[Vec<f64>],
        (scale, passes): (&[f64], usize),
        v: &Latent<'_>,
    ) -> Result<Cross> {
        let (width, k) = (self.shape.width(), v.columns);
        let mut basis = vec![0.0_f32; UNIT * self.units * width];
        let mut offsets = Vec::with_capacity(views.len());
        for ((view, own), first) in views.iter().zip(bases).zip(&self.firsts) {
            let (folded, offset) = view.folded(own);
            for (to, row) in basis[first * width..].chunks_exact_mut(width).zip(folded.iter_rows()) {
                to.iter_mut().zip(row).for_each(|(to, value)| *to = *value as f32);
            }
            offsets.push(offset);
        }
        let (mut tables, mut exact) = (Vec::new(), Vec::new());
        for views in pattern_views {
            let mut gram = vec![0.0; width * width];
            let mut last = vec![0.0_f32; 2 * width];
            for row in 0..k {
                for column in 0..k {
                    gram[row * width + column] =
                        views.iter().map(|&view| view_grams[view][row * k + column]).sum();
                }
                let diagonal = gram[row * width + row];
                if diagonal >= crate::shard::SMALLEST {
                    last[row] = (1.0 / diagonal) as f32;
                }
                last[width + row] = views.iter().map(|&view| offsets[view][row]).sum::<f64>() as f32;
            }
            let entry = |together: usize, i: usize| {
                let (a, l, c) = (i / (together * width), i / together % width, i % together);
                gram[(together * a + c) * width + l]
            };
            tables.extend((0..width * width).map(|i| entry(4, i) as f32));
            tables.extend(last);
            exact.extend((0..width * width).map(|i| entry(2, i)));
        }
        let (basis, tables, exact) = (card.copy(&basis)?, card.copy(&tables)?, card.copy(&exact)?);
        let scale = card.copy(&scale.iter().map(|&value| value as f32).collect::<Vec<_>>())?;
        let tiles = v.instances.div_ceil(16 * self.shape.groups);
        let blocks = (card.processors * if self.shape.units == 1 { 2 } else { 1 }).min(tiles).max(1);
        let (size, parts) = (UNIT * self.units * width, blocks * self.shape.groups);
        let partial = card.zeros::<f64>(parts * size)?;
        let (address, stride) = match views[0].single() {
            Some((values, stride)) => (values.at(), stride),
            None => (Argument::NULL, 0),
        };
        let kernel = card.kernel(&self.shape.name(self.precision), "fused", self.shared)?;
        let arguments = [
            address,
            Argument::long(stride),
            Argument::int(stride),
            maybe(self.descriptors.as_ref()),
            Argument::int(self.units),
            basis.at(),
            tables.at(),
            exact.at(),
            maybe(patterns),
            v.v.at(),
            scale.at(),
            v.v.at(),
            Argument::long(v.instances),
            Argument::int(k),
            Argument::int(passes),
            partial.at(),
        ];
        card.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
        let sums = card.room::<f64>(size)?;
        add_parts(card, &partial, size, parts, sums.at())?;
        Ok(Cross { sums, width })
    }

    /// The sums of each view, features × columns of V.
    pub fn cross(&self, card: &Card, cross: &Cross, views: &[Rows], k: usize) -> Result<Vec<Matrix>> {
        let sums = card.read(&cross.sums)?;
        let of = |(view, first): (&Rows, &usize)| {
            Matrix::from_fn(view.features, k, |f, column| sums[(first + f) * cross.width + column])
        };
        Ok(views.iter().zip(&self.firsts).map(of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn there_is_a_kernel_of_each_shape() {
        for shape in SHAPES {
            for precision in [Precision::Single, Precision::Tf32] {
                assert!(kernels::source(&shape.name(precision)).contains(".entry fused"), "{shape:?}");
            }
        }
    }
}
