//! Neighbours: all pairs of rows are compared.

use daimc::accelerator::NearestOthers;
use daimc::{Result, Stop};

use crate::card::{Argument, Card};
use crate::rows::Rows;

/// Others that are kept of each row until their true distances are known, and those that are asked for, at most: the rest is for
/// distances that come out in another order than they are.
const LIST: usize = 32;
const MOST: usize = 24;

/// Rows of a block, bytes of shared memory that it needs, and blocks between two looks at `stop`.
const BLOCK: usize = 128;
const SHARED: usize = BLOCK * 32 * 8 + 3 * 2 * BLOCK * 20 * 4 + BLOCK * 8;
const BLOCKS: usize = 264;

/// Numbers of a row are read by fours.
const TOGETHER: usize = 4;

/// The nearest others of every row; `None` if that cannot be done here.
pub fn nearest(
    card: &Card,
    rows: &Rows,
    instances: usize,
    count: usize,
    stop: &Stop,
) -> Result<Option<NearestOthers>> {
    let width = rows.features.next_multiple_of(TOGETHER);
    let bytes = rows.count * (width * 4 + LIST * 8 + count * 8 + 64);
    if count > MOST || bytes > card.free()? {
        return Ok(None);
    }
    let (x, squares) = (card.room::<f32>(rows.count * width)?, card.room::<f32>(rows.count)?);
    if !rows.centre(card, instances, width, &x, &squares)? {
        return Ok(None);
    }
    let lists = card.room::<u64>(rows.count * LIST)?;
    let kernel = card.kernel("nearest", "nearest", SHARED)?;
    for first in (0..rows.count).step_by(BLOCK * BLOCKS) {
        stop.check()?;
        let arguments = [
            x.at(),
            Argument::long(width),
            squares.at(),
            Argument::long(rows.count),
            Argument::long(first),
            lists.at(),
        ];
        let blocks = (rows.count - first).div_ceil(BLOCK).min(BLOCKS);
        card.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
        card.wait()?;
    }
    let (others, found) = (card.room::<i32>(rows.count * count)?, card.room::<f32>(rows.count * count)?);
    let kernel = card.kernel("nearest", "ranked", 0)?;
    let arguments = [
        x.at(),
        Argument::long(width),
        Argument::long(rows.count),
        lists.at(),
        Argument::int(count),
        others.at(),
        found.at(),
    ];
    card.launch(&kernel, (rows.count.div_ceil(8), 1, 1), (256, 1), &arguments)?;
    let (others, squares) = (card.read(&others)?, card.read(&found)?);
    let numbers = rows.instances.as_ref().map(|own| card.read(own)).transpose()?;
    let instance = |row: usize| numbers.as_ref().map_or(row, |numbers| numbers[row] as usize);
    let mut out = NearestOthers::none(instances, count);
    for row in 0..rows.count {
        let to = instance(row) * count;
        for i in 0..count {
            if let Ok(other) = usize::try_from(others[row * count + i]) {
                out.others[to + i] = instance(other) as u32;
                out.squares[to + i] = squares[row * count + i];
            }
        }
    }
    Ok(Some(out))
}
