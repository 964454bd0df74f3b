//! The V step in single precision, of rows whose r is known.

use daimc::Result;

use crate::card::{Argument, Card, Memory, maybe};
use crate::descent::{fill_table, gram_of, table_size};
use crate::kernels::{self, TILE};
use crate::latent::Latent;
use crate::rows::Packed;

/// Columns of V for which a table lies in shared memory.
const NEAR: usize = 128;

/// Bytes of shared memory.
fn shared((lanes, tiles): (usize, usize)) -> usize {
    let width = tiles * TILE;
    4 * (256 / lanes * (width + 4) + if width > NEAR { 0 } else { table_size(width) })
}

/// Takes V, times a scale, into `to`, nearer to its minimum, given r and the Gram matrices of the patterns. Returns it as the second product takes it, in so
/// many parts.
pub fn update(
    card: &Card,
    (v, to): (&Latent<'_>, &Memory<f64>),
    right: &Memory<f64>,
    (patterns, pattern_views): (Option<&Memory<i32>>, &[Vec<usize>]),
    view_grams: &[Vec<f64>],
    (scale, passes): (&[f64], usize),
    parts: Option<usize>,
) -> Result<Option<Packed<f32>>> {
    let (k, shape) = (v.columns, kernels::update_shape(v.columns));
    let width = shape.1 * TILE;
    let mut given = vec![0.0_f32; pattern_views.len() * table_size(width)];
    for (views, table) in pattern_views.iter().zip(given.chunks_exact_mut(table_size(width))) {
        fill_table(table, width, k, gram_of(views, view_grams, k));
    }
    let scales = given.len();
    given.extend(scale.iter().map(|&value| value as f32));
    let given = card.copy(&given)?;
    let (tiles, groups) = kernels::tiles(k);
    let packed_width = groups * tiles * TILE;
    let packed = parts.map(|parts| card.room::<f32>(v.instances * packed_width * parts)).transpose()?;
    let kernel = card.kernel(&format!("update_{}_{}", shape.0, shape.1), "update", shared(shape))?;
    let arguments = [
        v.v.at(),
        given.from(scales),
        right.at(),
        given.at(),
        maybe(patterns),
        Argument::long(v.instances),
        Argument::int(k),
        Argument::int(passes),
        to.at(),
        maybe(packed.as_ref()),
        Argument::int(packed_width),
        Argument::int(parts.unwrap_or(0)),
    ];
    let blocks = v.instances.div_ceil(256 / shape.0).min(BLOCKS * card.processors);
    card.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
    Ok(packed.map(Packed))
}

/// Blocks of a multiprocessor.
const BLOCKS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_find_room_on_every_card() {
        for latent in 1..=kernels::MOST_COLUMNS {
            assert!(shared(kernels::update_shape(latent)) <= kernels::LEAST_SHARED, "{latent}");
        }
    }
}
