//! Missing cells of present rows, and their part in r, V and C.

use daimc::accelerator::Load;
use daimc::source::Buffer;
use daimc::{Matrix, Result};

use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::latent::Latent;

/// The missing cells of all views. The features of views with missing cells are numbered consecutively.
pub struct Holes {
    /// The number of the first feature of each view; `None` for a view without missing cells.
    first_features: Vec<Option<usize>>,
    /// For each view the number of its first feature and of the one after its last; -1 and -1 without missing cells.
    feature_ranges: Memory<i32>,
    /// The number of features of the views with missing cells.
    features: usize,
    /// For each presence pattern and view, 1 if the view is present, else 0.
    shown: Memory<i32>,
    /// The instances with missing cells.
    instances: Memory<i32>,
    /// The first cell of each of these instances, and the number of cells.
    offsets: Memory<i64>,
    /// The feature of each cell.
    cell_features: Memory<i32>,
    /// The value stored in each cell.
    stored: Memory<f64>,
    by_feature: ByFeature,
    /// For each view the sum of the squares of the values stored in its missing cells.
    stored_squares: Vec<f64>,
}

/// The missing cells, sorted by feature. The cells of a feature are divided into stretches of at most [`STRETCH`] cells, one per
/// warp.
struct ByFeature {
    /// The first cell of each stretch, and the number of cells.
    stretches: Memory<i64>,
    /// The feature of each stretch.
    stretch_features: Memory<i32>,
    /// The first stretch of each feature, and the number of stretches.
    first_stretches: Memory<i32>,
    /// The row of each cell, as an index into the instances with missing cells.
    rows: Memory<i32>,
    /// The value stored in each cell.
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
/// Threads of a block, and warps of 32 threads in it. A warp works on a row or on a stretch.
const THREADS: u32 = 128;
const WARPS_PER_BLOCK: usize = 4;
/// Maximum size of the scratch memory in which each warp builds the Gram matrix of its row.
const GRAM_BYTES: usize = 256 << 20;
/// Maximum number of warps that solve rows: 64 on each of 132 multiprocessors.
const MAX_WARPS: usize = 132 * 64;

impl Holes {
    /// Collects the missing cells; `None` if there are none.
    pub fn new(gpu: &Gpu, load: &Load<'_>) -> Result<Option<Self>> {
        let schema = load.schema();
        let (mut features, mut first_features, mut feature_ranges) = (0, Vec::new(), Vec::new());
        let (mut cells, mut stored_squares) = (Vec::new(), vec![0.0; schema.len()]);
        for (view, square) in stored_squares.iter_mut().enumerate() {
            let scaled = load.view(view);
            if !scaled.lacks_cells() {
                first_features.push(None);
                feature_ranges.extend([-1, -1]);
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
            first_features.push(Some(features));
            feature_ranges.extend([features as i32, (features + scaled.features()) as i32]);
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
            first_features,
            feature_ranges: gpu.copy(&feature_ranges)?,
            features,
            shown: gpu.copy(&shown)?,
            instances: gpu.copy(&instances)?,
            offsets: gpu.copy(&offsets)?,
            cell_features: gpu.copy(&cells.iter().map(|cell| cell.feature).collect::<Vec<_>>())?,
            stored: gpu.copy(&cells.iter().map(|cell| cell.stored).collect::<Vec<_>>())?,
            by_feature: ByFeature::new(gpu, &cells, &rows, features)?,
            stored_squares,
        }))
    }

    /// Copies the bases of the views with missing cells to the GPU.
    pub fn bases(&self, gpu: &Gpu, bases: &[Matrix]) -> Result<Memory<f64>> {
        let with_holes = bases.iter().zip(&self.first_features).filter(|(_, first)| first.is_some());
        let all: Vec<f64> = with_holes.flat_map(|(basis, _)| basis.values()).copied().collect();
        gpu.copy(&all)
    }

    /// Adds the missing cells `f` of each row to r, `r_j += Σ_f (prediction_weight · u_f v_j − stored_weight · x_f) u_f`, where
    /// `x_f` is the stored value and the columns of `v` are multiplied by `scale`.
    pub fn pull(
        &self,
        gpu: &Gpu,
        bases: &Memory<f64>,
        (v, scale): (&Latent<'_>, &[f64]),
        (prediction_weight, stored_weight): (f64, f64),
        right: &Memory<f64>,
    ) -> Result<()> {
        let scale = gpu.copy(scale)?;
        let kernel = gpu.kernel("holes", &format!("pull_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cell_features.at(),
            self.stored.at(),
            bases.at(),
            v.v.at(),
            scale.at(),
            Argument::int(v.columns),
            Argument::Double(prediction_weight),
            Argument::Double(stored_weight),
            right.at(),
        ];
        let blocks = self.instances.len().div_ceil(WARPS_PER_BLOCK);
        gpu.launch(&kernel, (blocks, 1, 1), (THREADS, 1), &arguments)
    }

    /// Solves the rows of V of the instances with missing cells, so that they are optimal for the observed cells alone.
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
        // Warps that have solved a row continue with another one.
        let warps = (GRAM_BYTES / (8 * size)).clamp(WARPS_PER_BLOCK, MAX_WARPS);
        let blocks = (warps / WARPS_PER_BLOCK).min(self.instances.len().div_ceil(WARPS_PER_BLOCK));
        let scratch = gpu.allocate::<f64>(blocks * WARPS_PER_BLOCK * size)?;
        let view_grams = gpu.copy(view_grams)?;
        let kernel = gpu.kernel("holes", &format!("settle_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cell_features.at(),
            bases.at(),
            view_grams.at(),
            self.feature_ranges.at(),
            Argument::int(self.first_features.len()),
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
        gpu.launch(&kernel, (blocks, 1, 1), (THREADS, 1), &arguments)
    }

    /// Adds the missing cells to C of each view, `C_f += (u_f v_j − x_f) v_j`. Returns for each view the sum of squares of the
    /// predictions `u_f v_j`. Without bases the stored values `x_f` are the predictions, so that C does not change.
    pub fn push(
        &self,
        gpu: &Gpu,
        bases: Option<&Memory<f64>>,
        v: &Latent<'_>,
        cross: &mut [Matrix],
    ) -> Result<Vec<f64>> {
        let Some(bases) = bases else { return Ok(self.stored_squares.clone()) };
        // A row of sums has an entry for each column of V, and the sum of squares.
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
        gpu.launch(&kernel, (count.div_ceil(WARPS_PER_BLOCK), 1, 1), (THREADS, 1), &arguments)?;
        let out = gpu.allocate::<f64>(self.features * width)?;
        let kernel = gpu.kernel("sums", "add_stretches", 0)?;
        let arguments = [
            partial.at(),
            own.first_stretches.at(),
            Argument::int(self.features),
            Argument::int(width),
            out.at(),
        ];
        gpu.launch(&kernel, ((self.features * width).div_ceil(256), 1, 1), (256, 1), &arguments)?;
        let sums = gpu.read(&out)?;
        let squares = self.first_features.iter().zip(cross).map(|(first, cross)| {
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
        let (mut stretches, mut stretch_features, mut first_stretches) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        for feature in 0..features as i32 {
            first_stretches.push(stretches.len() as i32);
            let end = at + order[at..].iter().take_while(|&&i| cells[i].feature == feature).count();
            for start in (at..end).step_by(STRETCH) {
                stretches.push(start as i64);
                stretch_features.push(feature);
            }
            at = end;
        }
        first_stretches.push(stretches.len() as i32);
        stretches.push(cells.len() as i64);
        Ok(Self {
            stretches: gpu.copy(&stretches)?,
            stretch_features: gpu.copy(&stretch_features)?,
            first_stretches: gpu.copy(&first_stretches)?,
            rows: gpu.copy(&order.iter().map(|&i| rows[i]).collect::<Vec<_>>())?,
            stored: gpu.copy(&order.iter().map(|&i| cells[i].stored).collect::<Vec<_>>())?,
        })
    }
}

/// The number of chunks of 32 columns of V for which the kernels are compiled: 1 for up to 32 columns, 8 for up to 256.
fn chunks(latent: usize) -> usize {
    if latent <= 32 { 1 } else { 8 }
}
