//! Sums over the rows of V.

use daimc::Result;

use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::latent::Latent;

/// Minimum number of rows per part, and maximum number of parts.
const MIN_ROWS: usize = 512;
const MAX_PARTS: usize = 528;

/// Rows per part, and number of parts, of sums over `rows` rows.
pub fn parts(rows: usize) -> (usize, usize) {
    let part = rows.div_ceil(rows.div_ceil(MIN_ROWS).clamp(1, MAX_PARTS)).max(1);
    (part, rows.div_ceil(part))
}

/// Adds `count` parts of `size` numbers, in order.
pub fn add_parts(gpu: &Gpu, parts: &Memory<f64>, size: usize, count: usize, out: Argument) -> Result<()> {
    let kernel = gpu.kernel("sums", "add_parts", 0)?;
    let arguments = [parts.at(), Argument::long(size), Argument::int(count), out];
    gpu.launch(&kernel, (size.div_ceil(32), 1, 1), (32, 8), &arguments)
}

/// Sums `v vᵀ`, then `v`, over some rows of V or all.
pub fn gram(gpu: &Gpu, v: &Latent<'_>, instances: Option<&Memory<i32>>, out: Argument) -> Result<()> {
    let (rows, k) = (instances.map_or(v.instances, Memory::len), v.columns);
    let (part, count) = parts(rows);
    let size = k * k + k;
    let partial = gpu.allocate::<f64>(count * size)?;
    let kernel = gpu.kernel("sums", "gram_sums", 0)?;
    let squares = k.div_ceil(32) * (k.div_ceil(32) + 1) / 2;
    let arguments = [
        v.v.at(),
        maybe(instances),
        Argument::long(rows),
        Argument::int(k),
        Argument::long(part),
        partial.at(),
    ];
    gpu.launch(&kernel, (squares, count, 1), (256, 1), &arguments)?;
    add_parts(gpu, &partial, size, count, out)
}

/// Sums `f v` over some rows of V or all; factors `f` are 1 if there are none.
pub fn columns(
    gpu: &Gpu,
    v: &Latent<'_>,
    instances: Option<&Memory<i32>>,
    factors: Option<&Memory<f64>>,
    out: Argument,
) -> Result<()> {
    let (rows, k) = (instances.map_or(v.instances, Memory::len), v.columns);
    let (part, count) = parts(rows);
    let partial = gpu.allocate::<f64>(count * k)?;
    let kernel = gpu.kernel("sums", "column_sums", 0)?;
    let arguments = [
        v.v.at(),
        maybe(instances),
        Argument::long(rows),
        maybe(factors),
        Argument::int(k),
        Argument::long(part),
        partial.at(),
    ];
    gpu.launch(&kernel, (count, 1, 1), (256, 1), &arguments)?;
    add_parts(gpu, &partial, k, count, out)
}
