//! Rows with missing cells.

use daimc::accelerator::Load;
use daimc::source::Buffer;
use daimc::{Matrix, Result};

use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::latent::Latent;

/// The missing cells of all views. The features of views with missing cells are numbered consecutively.
pub struct Holes {
    /// The first feature of each view, if it has missing cells.
    firsts: Vec<Option<usize>>,
    /// The first feature of each view and the one after its last, on the GPU; twice -1 if it has no missing cells.
    views: Memory<i32>,
    features: usize,
    /// For each presence pattern and view, whether the view is present.
    shown: Memory<i32>,
    /// The instances with missing cells, the offsets of their cells, and the feature and the stored value of each cell.
    instances: Memory<i32>,
    offsets: Memory<i64>,
    cells: Memory<i32>,
    stored: Memory<f64>,
    by_feature: ByFeature,
    /// For each view the sum of the squares of the values stored in its missing cells.
    squares: Vec<f64>,
}

/// The missing cells by feature: the offset and the feature of each stretch, the first stretch of each feature, and the row (among those
/// with missing cells) and the stored value of each cell.
struct ByFeature {
    stretches: Memory<i64>,
    stretch_features: Memory<i32>,
    firsts: Memory<i32>,
    rows: Memory<i32>,
    stored: Memory<f64>,
}

/// A missing cell.
#[derive(Clone, Copy)]
struct Cell {
    instance: i32,
    feature: i32,
    stored: f64,
}

/// Maximum number of cells per stretch.
const STRETCH: usize = 512;
/// Instances read at a time.
const READ: usize = 16_384;
/// Maximum bytes of the Gram matrices of single rows, one per warp, and of warps.
const GRAM_BYTES: usize = 256 << 20;
const MAX_WARPS: usize = 8448;

impl Holes {
    /// Collects the missing cells; `None` if there are none.
    pub fn new(gpu: &Gpu, load: &Load<'_>) -> Result<Option<Self>> {
        let schema = load.schema();
        let (mut features, mut firsts, mut ends) = (0, Vec::new(), Vec::new());
        let (mut cells, mut squares) = (Vec::new(), vec![0.0; schema.len()]);
        for (view, square) in squares.iter_mut().enumerate() {
            let scaled = load.view(view);
            if !scaled.lacks_cells() {
                firsts.push(None);
                ends.extend([-1, -1]);
                continue;
            }
            let mut buffer = Buffer::default();
            for start in (0..load.instances()).step_by(READ) {
                load.stop().check()?;
                let range = start..(start + READ).min(load.instances());
                let block = load.read(view, range.clone(), &mut buffer)?;
                for instance in range.clone() {
                    let Some(row) = block.index.row(instance - range.start) else { continue };
                    for (feature, stored) in scaled.missing_cells(&block, (instance, row)) {
                        let (instance, feature) = (instance as i32, features as i32 + feature as i32);
                        cells.push(Cell { instance, feature, stored });
                        *square += stored * stored;
                    }
                }
            }
            firsts.push(Some(features));
            ends.extend([features as i32, (features + scaled.features()) as i32]);
            features += scaled.features();
        }
        if cells.is_empty() {
            return Ok(None);
        }
        cells.sort_by_key(|cell| (cell.instance, cell.feature));
        let shown = load.patterns().flat_map(|views| {
            let mut shown = vec![0; schema.len()];
            views.iter().for_each(|&view| shown[view] = 1);
            shown
        });
        let shown: Vec<i32> = shown.collect();
        let (mut instances, mut offsets, mut rows) =
            (Vec::new(), Vec::new(), Vec::with_capacity(cells.len()));
        for (at, cell) in cells.iter().enumerate() {
            if instances.last() != Some(&cell.instance) {
                instances.push(cell.instance);
                offsets.push(at as i64);
            }
            rows.push(instances.len() as i32 - 1);
        }
        offsets.push(cells.len() as i64);
        Ok(Some(Self {
            firsts,
            views: gpu.copy(&ends)?,
            features,
            shown: gpu.copy(&shown)?,
            instances: gpu.copy(&instances)?,
            offsets: gpu.copy(&offsets)?,
            cells: gpu.copy(&cells.iter().map(|cell| cell.feature).collect::<Vec<_>>())?,
            stored: gpu.copy(&cells.iter().map(|cell| cell.stored).collect::<Vec<_>>())?,
            by_feature: ByFeature::new(gpu, &cells, &rows, features)?,
            squares,
        }))
    }

    /// Copies the bases of the views with missing cells to the GPU.
    pub fn bases(&self, gpu: &Gpu, bases: &[Matrix]) -> Result<Memory<f64>> {
        let with_holes = bases.iter().zip(&self.firsts).filter(|(_, first)| first.is_some());
        let all: Vec<f64> = with_holes.flat_map(|(basis, _)| basis.values()).copied().collect();
        gpu.copy(&all)
    }

    /// Adds `made` times the predictions of missing cells to r, and subtracts `stood` times their stored values.
    pub fn pull(
        &self,
        gpu: &Gpu,
        bases: &Memory<f64>,
        (v, scale): (&Latent<'_>, &[f64]),
        (made, stood): (f64, f64),
        right: &Memory<f64>,
    ) -> Result<()> {
        let scale = gpu.copy(scale)?;
        let kernel = gpu.kernel("holes", &format!("pull_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cells.at(),
            self.stored.at(),
            bases.at(),
            v.v.at(),
            scale.at(),
            Argument::int(v.columns),
            Argument::Double(made),
            Argument::Double(stood),
            right.at(),
        ];
        gpu.launch(&kernel, (self.instances.len().div_ceil(4), 1, 1), (128, 1), &arguments)
    }

    /// Solves the rows with missing cells to optimality for their observed cells.
    #[allow(clippy::too_many_arguments)] // The arguments of a kernel.
    pub fn solve(
        &self,
        gpu: &Gpu,
        bases: &Memory<f64>,
        view_grams: &[f64],
        patterns: Option<&Memory<i32>>,
        (passes, tolerance, relaxation): (usize, f64, f64),
        right: &Memory<f64>,
        v: &Latent<'_>,
    ) -> Result<()> {
        let size = v.columns * v.columns;
        let warps =
            (GRAM_BYTES / (8 * size)).clamp(4, MAX_WARPS).min(self.instances.len().next_multiple_of(4));
        let blocks = warps / 4;
        let scratch = gpu.allocate::<f64>(blocks * 4 * size)?;
        let view_grams = gpu.copy(view_grams)?;
        let kernel = gpu.kernel("holes", &format!("settle_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cells.at(),
            bases.at(),
            view_grams.at(),
            self.views.at(),
            Argument::int(self.firsts.len()),
            self.shown.at(),
            maybe(patterns),
            right.at(),
            Argument::int(v.columns),
            Argument::int(passes),
            Argument::Double(tolerance),
            Argument::Double(relaxation),
            scratch.at(),
            v.v.at(),
        ];
        gpu.launch(&kernel, (blocks, 1, 1), (128, 1), &arguments)
    }

    /// Adds the contribution of missing cells to C of each view. Returns for each view the sum of the squares of their predictions, or
    /// of their stored values without bases.
    pub fn push(
        &self,
        gpu: &Gpu,
        bases: Option<&Memory<f64>>,
        v: &Latent<'_>,
        cross: &mut [Matrix],
    ) -> Result<Vec<f64>> {
        let Some(bases) = bases else { return Ok(self.squares.clone()) };
        let (own, width) = (&self.by_feature, v.columns + 1);
        let count = own.stretches.len() - 1;
        let partial = gpu.allocate::<f64>(count * width)?;
        let kernel = gpu.kernel("holes", &format!("push_{}", chunks(v.columns)), 0)?;
        let arguments = [
            own.stretches.at(),
            Argument::long(count),
            own.stretch_features.at(),
            self.instances.at(),
            own.rows.at(),
            own.stored.at(),
            bases.at(),
            v.v.at(),
            Argument::int(v.columns),
            partial.at(),
        ];
        gpu.launch(&kernel, (count.div_ceil(4), 1, 1), (128, 1), &arguments)?;
        let out = gpu.allocate::<f64>(self.features * width)?;
        let kernel = gpu.kernel("sums", "add_stretches", 0)?;
        let arguments =
            [partial.at(), own.firsts.at(), Argument::int(self.features), Argument::int(width), out.at()];
        gpu.launch(&kernel, ((self.features * width).div_ceil(256), 1, 1), (256, 1), &arguments)?;
        let sums = gpu.read(&out)?;
        let squares = self.firsts.iter().zip(cross).map(|(first, cross)| {
            let Some(first) = *first else { return 0.0 };
            let mut square = 0.0;
            for (f, sums) in sums.chunks_exact(width).skip(first).take(cross.rows()).enumerate() {
                cross.row_mut(f).iter_mut().zip(sums).for_each(|(cross, sum)| *cross += sum);
                square += sums[width - 1];
            }
            square
        });
        Ok(squares.collect())
    }
}

impl ByFeature {
    fn new(gpu: &Gpu, cells: &[Cell], rows: &[i32], features: usize) -> Result<Self> {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&i| (cells[i].feature, i));
        let (mut stretches, mut stretch_features, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        for feature in 0..features as i32 {
            firsts.push(stretches.len() as i32);
            let end = at + order[at..].iter().take_while(|&&i| cells[i].feature == feature).count();
            for start in (at..end).step_by(STRETCH) {
                stretches.push(start as i64);
                stretch_features.push(feature);
            }
            at = end;
        }
        firsts.push(stretches.len() as i32);
        stretches.push(cells.len() as i64);
        Ok(Self {
            stretches: gpu.copy(&stretches)?,
            stretch_features: gpu.copy(&stretch_features)?,
            firsts: gpu.copy(&firsts)?,
            rows: gpu.copy(&order.iter().map(|&i| rows[i]).collect::<Vec<_>>())?,
            stored: gpu.copy(&order.iter().map(|&i| cells[i].stored).collect::<Vec<_>>())?,
        })
    }
}

/// Variant of the kernels: for up to 32 columns of V, or up to 256.
fn chunks(latent: usize) -> usize {
    if latent <= 32 { 1 } else { 8 }
}
