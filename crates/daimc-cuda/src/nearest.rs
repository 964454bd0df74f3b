//! Neighbours: all pairs of rows are compared, in half precision first, and once more for rows where that leaves a doubt.

mod rough;

use daimc::accelerator::NearestOthers;
use daimc::{Result, Stop};

use crate::card::{Argument, Card, Memory, maybe};
use crate::rows::Rows;
use rough::Halves;

/// Others that are kept of each row until their true distances are known, and those that are asked for, at most: the rest is for
/// distances that come out in another order than they are.
const LIST: usize = 32;
const MOST: usize = 24;

/// Others of a row that wait to be merged into its list.
const WAITING: usize = 32;

/// Numbers of a row are read by fours.
const TOGETHER: usize = 4;

/// Blocks that run at a time on a multiprocessor; all of them end between two looks at `stop`.
const AT_ONCE: usize = 2;

/// The nearest others of every row; `None` if that cannot be done here.
pub fn nearest(
    card: &Card,
    rows: &Rows,
    instances: usize,
    count: usize,
    stop: &Stop,
) -> Result<Option<NearestOthers>> {
    let width = rows.features.next_multiple_of(TOGETHER);
    if count > MOST || bytes(card, rows.count, rows.features, instances, count) > card.free()? {
        return Ok(None);
    }
    let (x, lengths) = (card.room::<f32>(rows.count * width)?, card.room::<f32>(rows.count)?);
    if !rows.centre(card, instances, width, &x, &lengths)? {
        return Ok(None);
    }
    let compared = Compared { x, width, lengths, rows: rows.count };
    let lists = card.room::<u64>(rows.count * LIST)?;
    let found = Found {
        count,
        others: card.room::<i32>(rows.count * count)?,
        squares: card.room::<f32>(rows.count * count)?,
    };
    let halves = Halves::new(card, &compared)?;
    halves.search(card, &lists, stop)?;
    let sure = card.zeros::<i32>(rows.count)?;
    compared.rank(card, None, &lists, &halves, &found, Some(&sure))?;
    let doubtful: Vec<i32> =
        (0_i32..).zip(card.read(&sure)?).filter(|(_, sure)| *sure == 0).map(|(row, _)| row).collect();
    if !doubtful.is_empty() {
        let doubtful = card.copy(&doubtful)?;
        compared.search(card, &doubtful, &lists, stop)?;
        compared.rank(card, Some(&doubtful), &lists, &halves, &found, None)?;
    }
    let (others, squares) = (card.read(&found.others)?, card.read(&found.squares)?);
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

/// Bytes that it takes to find so many others of each row, about, beside the rows.
pub fn bytes(card: &Card, rows: usize, features: usize, instances: usize, count: usize) -> usize {
    let width = features.next_multiple_of(TOGETHER);
    rows * (width * 4 + LIST * 8 + count * 8 + 64) + 80 * instances + rough::bytes(card, rows, width)
}

/// Rows as they are compared, and the squares of their lengths.
struct Compared {
    x: Memory<f32>,
    width: usize,
    lengths: Memory<f32>,
    rows: usize,
}

/// The nearest of each row.
struct Found {
    count: usize,
    others: Memory<i32>,
    squares: Memory<f32>,
}

impl Compared {
    /// Rows that a block searches for, and the bytes of shared memory that it needs.
    const BLOCK: usize = 128;
    const SHARED: usize = Self::BLOCK * WAITING * 8 + 3 * 2 * Self::BLOCK * 20 * 4 + Self::BLOCK * 12;

    /// The lists of some rows, by products that leave 2⁻²² of them.
    fn search(&self, card: &Card, queries: &Memory<i32>, lists: &Memory<u64>, stop: &Stop) -> Result<()> {
        let kernel = card.kernel("nearest", "nearest", Self::SHARED)?;
        let some = card.processors * AT_ONCE;
        for first in (0..queries.len()).step_by(Self::BLOCK * some) {
            stop.check()?;
            let arguments = [
                self.x.at(),
                Argument::long(self.width),
                self.lengths.at(),
                Argument::long(self.rows),
                queries.at(),
                Argument::long(queries.len()),
                Argument::long(first),
                lists.at(),
            ];
            let blocks = (queries.len() - first).div_ceil(Self::BLOCK).min(some);
            card.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
            card.wait()?;
        }
        Ok(())
    }

    /// The nearest of lists, of some rows or all, and whether these are sure.
    fn rank(
        &self,
        card: &Card,
        queries: Option<&Memory<i32>>,
        lists: &Memory<u64>,
        halves: &Halves,
        found: &Found,
        sure: Option<&Memory<i32>>,
    ) -> Result<()> {
        let kernel = card.kernel("nearest", "ranked", 0)?;
        let count = queries.map_or(self.rows, Memory::len);
        let arguments = [
            self.x.at(),
            Argument::long(self.width),
            self.lengths.at(),
            Argument::long(self.rows),
            maybe(queries),
            Argument::long(count),
            lists.at(),
            Argument::int(found.count),
            halves.starts.at(),
            halves.losses.at(),
            halves.worst.at(),
            Argument::Double(halves.scale.into()),
            Argument::long(halves.deep),
            found.others.at(),
            found.squares.at(),
            maybe(sure),
        ];
        card.launch(&kernel, (count.div_ceil(8), 1, 1), (256, 1), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::constant;

    #[test]
    fn the_kernels_have_the_same_sizes() {
        let lists = include_str!("../kernels/lists.cuh");
        let search = include_str!("../kernels/nearest.cu");
        assert_eq!(constant(lists, "LIST"), LIST as f64);
        assert_eq!(constant(lists, "WAITING"), WAITING as f64);
        for rows in ["QUERIES", "OTHERS"] {
            assert_eq!(constant(search, rows), Compared::BLOCK as f64);
        }
        assert_eq!((constant(search, "STAGES"), constant(search, "DEPTH")), (3.0, 16.0));
        assert_eq!(constant(search, "THREADS"), 256.0);
    }
}
