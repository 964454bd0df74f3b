//! Dense rows.

use daimc::Result;
use daimc::source::{Block, Rows};

use super::{Basis, RowSource, threads};
use crate::Precision;
use crate::gpu::{Argument, Gpu, Memory, Value};
use crate::kernels;
use crate::latent::Latent;
use crate::stored::{self, StoredView};

/// A number of dense rows.
pub trait Real: Value {
    /// Numbers in 16 bytes: rows begin at multiples of these.
    const TOGETHER: usize = 16 / size_of::<Self>();
    /// Features per stage of the first product; a stage of the second has half as many rows.
    const DEPTH: usize = 128 / size_of::<Self>();

    fn rows<'a>(rows: &Rows<'a>) -> &'a [Self];
    fn module(precision: Precision) -> (&'static str, usize);
}

impl Real for f32 {
    fn rows<'a>(rows: &Rows<'a>) -> &'a [Self] {
        if let Rows::DenseF32(values) = rows { values } else { &[] }
    }

    fn module(precision: Precision) -> (&'static str, usize) {
        match precision {
            Precision::Single => ("products_f32", 2),
            Precision::Tf32 => ("products_tf32", 1),
        }
    }
}

impl Real for f64 {
    fn rows<'a>(rows: &Rows<'a>) -> &'a [Self] {
        if let Rows::DenseF64(values) = rows { values } else { &[] }
    }

    fn module(_: Precision) -> (&'static str, usize) {
        ("products_f64", 1)
    }
}

/// Dense rows.
pub struct Dense<T> {
    pub values: Values<T>,
    rows: usize,
    features: usize,
    /// Numbers from one row to the next.
    pub stride: usize,
    precision: Precision,
}

/// Numbers in GPU memory, either owned or of another library, which the load keeps alive.
pub struct Values<T> {
    address: u64,
    _own: Option<Memory<T>>,
}

impl<T> Values<T> {
    fn own(memory: Memory<T>) -> Self {
        Self { address: memory.address(), _own: Some(memory) }
    }

    /// The address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The address as an argument of kernels.
    pub fn at(&self) -> Argument {
        Argument::Pointer(self.address)
    }
}

/// V packed for the second product.
pub struct Packed<T>(pub Memory<T>);

/// Bytes of a pinned buffer.
const BUFFER: usize = 64 << 20;

/// Rows per block of the first product, and features per block of the second.
const ROWS: usize = 128;
const FEATURES: usize = 256;
/// Stages of the first product and of the second.
const STAGES: usize = 3;
const DEEP: usize = 4;

/// Maximum number of rows per part of the second product, and the number of parts with fewer rows.
const PART: usize = 8192;
const PARTS: usize = 1056;
/// Maximum number of parts: the limit of a dimension of the grid.
const MAX_PARTS: usize = 65_535;

impl<T: Real> Dense<T> {
    pub fn new(source: &RowSource<'_>, precision: Precision) -> Result<Self> {
        let features = source.scaled.features();
        let stride = features.next_multiple_of(T::TOGETHER);
        let values = match StoredView::new(source.gpu, source.load, source.view) {
            Some(stored) if stored.len() == source.count => Self::stored(source, &stored, stride)?,
            _ => Values::own(Self::transferred(source, stride)?),
        };
        Ok(Self { values, rows: source.count, features, stride, precision })
    }

    /// Rows in the memory of this GPU: in place, or a copy if they must be scaled or aligned.
    fn stored(source: &RowSource<'_>, stored: &StoredView, stride: usize) -> Result<Values<T>> {
        let (gpu, scaled) = (source.gpu, source.scaled);
        let features = scaled.features();
        let place = stored.in_place(source.count, features, size_of::<T>());
        if let Some(address) = place.filter(|_| !source.scale) {
            return Ok(Values { address, _own: None });
        }
        let scale = source.scale.then(|| (scaled.store_terms(), |instance| scaled.store_factor(instance)));
        stored.copy(gpu, features, stride, scale).map(Values::own)
    }

    /// Rows that are read from the source and copied to the GPU.
    fn transferred(source: &RowSource<'_>, stride: usize) -> Result<Memory<T>> {
        let gpu = source.gpu;
        let mut values = gpu.allocate::<T>(source.count * stride)?;
        let length = (BUFFER / size_of::<T>()).max(stride);
        let mut buffers = gpu.pinned_pair::<T>(length)?;
        // Rows before they are scaled.
        let mut unscaled = gpu.allocate::<T>(if source.scale { length } else { 0 })?;
        let terms = source.scaled.store_terms();
        let mut done = 0;
        let mut current = 0;
        source.each(BUFFER - BUFFER / 8, |range, block| {
            let present: Vec<(usize, usize)> = range
                .clone()
                .filter_map(|instance| Some((instance, block.index.row(instance - range.start)?)))
                .collect();
            for chunk in present.chunks((BUFFER / size_of::<T>() / stride).max(1)) {
                let buffer = &mut buffers[current];
                fill(source.scaled.features(), block, chunk, stride, buffer.values(gpu)?);
                if source.scale {
                    gpu.send(buffer, chunk.len() * stride, &mut unscaled, 0)?;
                    let factors = chunk.iter().map(|at| source.scaled.store_factor(at.0)).collect();
                    let (shape, to) = ((source.scaled.features(), stride), values.from(done * stride));
                    stored::scale(gpu, &unscaled, shape, (terms.clone(), factors), to)?;
                } else {
                    gpu.send(buffer, chunk.len() * stride, &mut values, done * stride)?;
                }
                done += chunk.len();
                current = 1 - current;
            }
            Ok(())
        })?;
        gpu.wait()?;
        gpu.recycle(buffers);
        Ok(values)
    }

    /// Number of parts into which products split a factor.
    pub fn parts(&self) -> usize {
        T::module(self.precision).1
    }

    pub fn project(
        &self,
        gpu: &Gpu,
        basis: &Basis,
        instances: Argument,
        right: &Memory<f64>,
        add: bool,
    ) -> Result<()> {
        let (tiles, groups) = kernels::tiles(basis.latent);
        let (module, parts) = T::module(self.precision);
        let module = format!("{module}_{tiles}");
        let size = self.features.next_multiple_of(T::DEPTH) * tiles * kernels::TILE;
        let laid_out = gpu.allocate::<T>(groups * size * parts)?;
        let arguments = [
            basis.values.at(),
            Argument::int(self.features),
            Argument::int(basis.latent),
            Argument::int(size),
            laid_out.at(),
        ];
        gpu.launch(
            &gpu.kernel(&module, "lay_out", 0)?,
            (size.div_ceil(256), groups, 1),
            (256, 1),
            &arguments,
        )?;
        let kernel = gpu.kernel(&module, "project", project_bytes::<T>(tiles, parts))?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            instances,
            Argument::long(self.rows),
            Argument::int(self.features),
            laid_out.at(),
            basis.offset(),
            Argument::int(basis.latent),
            right.at(),
            Argument::int(add.into()),
        ];
        gpu.launch(&kernel, (self.rows.div_ceil(ROWS), groups, 1), (256, 1), &arguments)
    }

    pub fn gather(
        &self,
        gpu: &Gpu,
        v: &Latent<'_>,
        packed: &mut Option<Packed<T>>,
        instances: Argument,
        sums: Argument,
    ) -> Result<()> {
        let latent = v.columns;
        let (tiles, groups) = kernels::tiles(latent);
        let (module, parts) = T::module(self.precision);
        let module = format!("{module}_{tiles}");
        let width = tiles * kernels::TILE;
        if packed.is_none() {
            let own = gpu.allocate::<T>(v.instances * groups * width * parts)?;
            let kernel = gpu.kernel(&module, "pack", 0)?;
            let arguments = [v.v.at(), Argument::long(v.instances), Argument::int(latent), own.at()];
            gpu.launch(&kernel, ((v.instances * width).div_ceil(256), groups, 1), (256, 1), &arguments)?;
            *packed = Some(Packed(own));
        }
        let packed = packed.as_ref().map_or(Argument::NULL, |packed| packed.0.at());
        let rows = T::DEPTH / 2;
        let kernel = gpu.kernel(&module, "gather", gather_bytes::<T>(tiles, parts))?;
        let across = self.features.div_ceil(FEATURES);
        let count = self
            .rows
            .div_ceil(PART)
            .max((PARTS / (across * groups)).max(1))
            .min(self.rows.div_ceil(PART / 8))
            .clamp(1, MAX_PARTS);
        // A partition may have no rows in this view.
        let part = self.rows.div_ceil(count).next_multiple_of(rows).max(rows);
        let count = self.rows.div_ceil(part);
        let size = self.features * latent;
        let partial = gpu.allocate::<f64>(count * size)?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            instances,
            Argument::long(self.rows),
            Argument::int(self.features),
            packed,
            Argument::int(latent),
            Argument::long(part),
            partial.at(),
        ];
        gpu.launch(&kernel, (across, count, groups), (256, 1), &arguments)?;
        crate::sums::add_parts(gpu, &partial, size, count, sums)
    }
}

impl<T: Real> Dense<T> {
    /// Writes scaled rows minus their mean, and the squares of their lengths.
    #[allow(clippy::too_many_arguments)] // The arguments of a kernel.
    pub fn centre(
        &self,
        gpu: &Gpu,
        kernel: &str,
        mean: &Memory<f64>,
        factor: &Memory<f64>,
        width: usize,
        out: &Memory<f32>,
        squares: &Memory<f32>,
    ) -> Result<()> {
        let kernel = gpu.kernel("nearest", kernel, 0)?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            Argument::long(self.rows),
            Argument::int(self.features),
            mean.at(),
            factor.at(),
            Argument::long(width),
            out.at(),
            squares.at(),
        ];
        gpu.launch(&kernel, (self.rows.div_ceil(8), 1, 1), (256, 1), &arguments)
    }
}

/// Bytes of shared memory of the first product.
fn project_bytes<T: Real>(tiles: usize, parts: usize) -> usize {
    STAGES * (ROWS * (T::DEPTH + 4) + T::DEPTH / 8 * tiles * 64 * parts) * size_of::<T>()
}

/// Bytes of shared memory of the second product.
fn gather_bytes<T: Real>(tiles: usize, parts: usize) -> usize {
    let (width, wide) = (tiles * kernels::TILE, size_of::<T>() == 8);
    let weights = if parts == 2 || wide { width + 4 } else { width + if tiles % 2 == 1 { 0 } else { 8 } };
    DEEP * T::DEPTH / 2 * (FEATURES + if wide { 4 } else { 8 } + weights * parts) * size_of::<T>()
}

/// Copies rows to a buffer, padded with zeros to the stride.
fn fill<T: Real>(features: usize, block: &Block<'_>, rows: &[(usize, usize)], stride: usize, to: &mut [T]) {
    let values = T::rows(&block.rows);
    let per_thread = rows.len().div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        for (rows, to) in rows.chunks(per_thread).zip(to.chunks_mut(per_thread * stride)) {
            scope.spawn(move || {
                for (&(_, row), to) in rows.iter().zip(to.chunks_exact_mut(stride)) {
                    let (own, rest) = to.split_at_mut(features);
                    rest.fill(T::default());
                    own.copy_from_slice(&values[row * features..(row + 1) * features]);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_have_the_same_sizes() {
        let source = include_str!("../../kernels/products.cu");
        let constant = |name| kernels::constant::<usize>(source, name);
        assert_eq!(constant("STAGES"), STAGES);
        assert_eq!(constant("DEEP"), DEEP);
        assert_eq!(16 * constant("WARPS"), ROWS);
        assert_eq!(16 * constant("ACROSS") * constant("WARPS"), FEATURES);
    }

    #[test]
    fn shared_memory_suffices_on_every_gpu() {
        for latent in 1..=kernels::MAX_COLUMNS {
            let (tiles, _) = kernels::tiles(latent);
            for precision in [Precision::Single, Precision::Tf32] {
                let (_, parts) = f32::module(precision);
                assert!(
                    project_bytes::<f32>(tiles, parts).max(gather_bytes::<f32>(tiles, parts))
                        <= kernels::MIN_SHARED
                );
            }
            assert!(project_bytes::<f64>(tiles, 1).max(gather_bytes::<f64>(tiles, 1)) <= kernels::MIN_SHARED);
        }
    }
}
