//! The V step in single precision for given r.

use daimc::Result;

use crate::descent::{fill_table, gram_of, table_size};
use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::kernels::{self, TILE};
use crate::latent::Latent;
use crate::rows::Packed;

/// Maximum number of columns of V for which a table is in shared memory.
const NEAR: usize = 128;

/// Bytes of shared memory.
fn shared((lanes, tiles): (usize, usize)) -> usize {
    let width = tiles * TILE;
    4 * (256 / lanes * (width + 4) + if width > NEAR { 0 } else { table_size(width) })
}

/// Runs passes of coordinate descent from V times a scale, given r and the Gram matrices of the views, and writes the result to `to`.
/// Returns it also packed for the second product, if `parts` is the number of parts that this takes.
pub fn update(
    gpu: &Gpu,
    (v, to): (&Latent<'_>, &Memory<f64>),
    right: &Memory<f64>,
    (patterns, pattern_views): (Option<&Memory<i32>>, &[Vec<usize>]),
    view_grams: &[Vec<f64>],
    (scale, passes): (&[f64], usize),
    parts: Option<usize>,
) -> Result<Option<Packed<f32>>> {
    let (k, shape) = (v.columns, kernels::update_shape(v.columns));
    let width = shape.1 * TILE;
    let mut inputs = vec![0.0_f32; pattern_views.len() * table_size(width)];
    for (views, table) in pattern_views.iter().zip(inputs.chunks_exact_mut(table_size(width))) {
        fill_table(table, width, k, gram_of(views, view_grams, k));
    }
    let scales = inputs.len();
    inputs.extend(scale.iter().map(|&value| value as f32));
    let inputs = gpu.copy(&inputs)?;
    let (tiles, groups) = kernels::tiles(k);
    let packed_width = groups * tiles * TILE;
    let packed = parts.map(|parts| gpu.allocate::<f32>(v.instances * packed_width * parts)).transpose()?;
    let kernel = gpu.kernel(&format!("update_{}_{}", shape.0, shape.1), "update", shared(shape))?;
    let arguments = [
        v.v.at(),
        inputs.from(scales),
        right.at(),
        inputs.at(),
        maybe(patterns),
        Argument::long(v.instances),
        Argument::int(k),
        Argument::int(passes),
        to.at(),
        maybe(packed.as_ref()),
        Argument::int(packed_width),
        Argument::int(parts.unwrap_or(0)),
    ];
    let blocks = v.instances.div_ceil(256 / shape.0).min(BLOCKS * gpu.processors);
    gpu.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
    Ok(packed.map(Packed))
}

/// Blocks per multiprocessor.
const BLOCKS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_suffices_on_every_gpu() {
        for latent in 1..=kernels::MAX_COLUMNS {
            assert!(shared(kernels::update_shape(latent)) <= kernels::MIN_SHARED, "{latent}");
        }
    }
}
