//! Sums over the rows of V.

use daimc::Result;

use crate::card::{Argument, Card, Memory, maybe};
use crate::latent::Latent;

/// Rows of a part, at least, and parts, at most.
const LEAST: usize = 512;
const MOST: usize = 528;

/// Rows of a part of the sums over so many rows, and the number of parts.
pub fn parts(rows: usize) -> (usize, usize) {
    let part = rows.div_ceil(rows.div_ceil(LEAST).clamp(1, MOST)).max(1);
    (part, rows.div_ceil(part))
}

/// The sum of `count` parts of `size` numbers, in their order.
pub fn add_parts(card: &Card, parts: &Memory<f64>, size: usize, count: usize, out: Argument) -> Result<()> {
    let kernel = card.kernel("sums", "add_parts", 0)?;
    let arguments = [parts.at(), Argument::long(size), Argument::int(count), out];
    card.launch(&kernel, (size.div_ceil(32), 1, 1), (32, 8), &arguments)
}

/// `Σ v vᵀ` and `Σ v` over some rows of V, one after the other.
pub fn gram(card: &Card, v: &Latent<'_>, instances: Option<&Memory<i32>>, out: Argument) -> Result<()> {
    let (rows, k) = (instances.map_or(v.instances, Memory::len), v.columns);
    let (part, count) = parts(rows);
    let size = k * k + k;
    let partial = card.room::<f64>(count * size)?;
    let kernel = card.kernel("sums", "gram_sums", 0)?;
    let squares = k.div_ceil(32) * (k.div_ceil(32) + 1) / 2;
    let arguments = [
        v.v.at(),
        maybe(instances),
        Argument::long(rows),
        Argument::int(k),
        Argument::long(part),
        partial.at(),
    ];
    card.launch(&kernel, (squares, count, 1), (256, 1), &arguments)?;
    add_parts(card, &partial, size, count, out)
}

/// `Σ f v` over some rows of V, where each has a factor or none.
pub fn columns(
    card: &Card,
    v: &Latent<'_>,
    instances: Option<&Memory<i32>>,
    factors: Option<&Memory<f64>>,
    out: Argument,
) -> Result<()> {
    let (rows, k) = (instances.map_or(v.instances, Memory::len), v.columns);
    let (part, count) = parts(rows);
    let partial = card.room::<f64>(count * k)?;
    let kernel = card.kernel("sums", "column_sums", 0)?;
    let arguments = [
        v.v.at(),
        maybe(instances),
        Argument::long(rows),
        maybe(factors),
        Argument::int(k),
        Argument::long(part),
        partial.at(),
    ];
    card.launch(&kernel, (count, 1, 1), (256, 1), &arguments)?;
    add_parts(card, &partial, k, count, out)
}
