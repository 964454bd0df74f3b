//! Brute-force neighbour search, which compares all pairs of rows: in half precision, then in single precision for the rows
//! whose neighbours rounding may have changed.

mod rough;

use daimc::accelerator::NearestOthers;
use daimc::{Result, Stop};

use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::rows::ViewRows;
use rough::HalfRows;

/// Candidates kept per row until their true distances are computed.
const LIST: usize = 32;
/// Maximum number of neighbours per row. The other candidates allow for approximate distances that are out of order.
const MAX_COUNT: usize = 24;

/// Candidates per row that are not yet merged into its list.
const WAITING: usize = 32;

/// Numbers of a row that are read together.
const TOGETHER: usize = 4;

/// Concurrent blocks per multiprocessor. One such batch of blocks runs between two checks of `stop`.
const CONCURRENT: usize = 2;

/// Finds the nearest neighbours of every row; `None` if the rows are not supported or memory does not suffice.
pub fn nearest(
    gpu: &Gpu,
    rows: &ViewRows,
    instances: usize,
    count: usize,
    stop: &Stop,
) -> Result<Option<NearestOthers>> {
    let width = rows.features.next_multiple_of(TOGETHER);
    if count > MAX_COUNT || bytes(gpu, rows.count, rows.features, instances, count) > gpu.free()? {
        return Ok(None);
    }
    let (x, lengths) = (gpu.allocate::<f32>(rows.count * width)?, gpu.allocate::<f32>(rows.count)?);
    if !rows.centre(gpu, instances, width, &x, &lengths)? {
        return Ok(None);
    }
    let centred = CentredRows { x, width, lengths, rows: rows.count };
    let lists = gpu.allocate::<u64>(rows.count * LIST)?;
    let found = Neighbours {
        count,
        others: gpu.allocate::<i32>(rows.count * count)?,
        squares: gpu.allocate::<f32>(rows.count * count)?,
    };
    let halves = HalfRows::new(gpu, &centred)?;
    halves.search(gpu, &lists, stop)?;
    let certain = gpu.zeros::<i32>(rows.count)?;
    centred.rank(gpu, None, &lists, &halves, &found, Some(&certain))?;
    let uncertain: Vec<i32> =
        (0_i32..).zip(gpu.read(&certain)?).filter(|(_, certain)| *certain == 0).map(|(row, _)| row).collect();
    if !uncertain.is_empty() {
        let uncertain = gpu.copy(&uncertain)?;
        centred.search(gpu, &uncertain, &lists, stop)?;
        centred.rank(gpu, Some(&uncertain), &lists, &halves, &found, None)?;
    }
    let (others, squares) = (gpu.read(&found.others)?, gpu.read(&found.squares)?);
    let numbers = rows.instances.as_ref().map(|own| gpu.read(own)).transpose()?;
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

/// Approximate bytes of GPU memory that a search for `count` neighbours takes in addition to the rows.
pub fn bytes(gpu: &Gpu, rows: usize, features: usize, instances: usize, count: usize) -> usize {
    let width = features.next_multiple_of(TOGETHER);
    rows * (width * 4 + LIST * 8 + count * 8 + 64) + 80 * instances + rough::bytes(gpu, rows, width)
}

/// Scaled rows minus their mean, and the squares of their lengths.
struct CentredRows {
    x: Memory<f32>,
    width: usize,
    lengths: Memory<f32>,
    rows: usize,
}

/// The nearest neighbours of each row.
struct Neighbours {
    count: usize,
    others: Memory<i32>,
    squares: Memory<f32>,
}

impl CentredRows {
    /// Rows per block, and the bytes of shared memory of a block.
    const BLOCK: usize = 128;
    const SHARED: usize = Self::BLOCK * WAITING * 8 + 3 * 2 * Self::BLOCK * 20 * 4 + Self::BLOCK * 12;

    /// Searches for the lists of some rows, by products with an error of 2⁻²².
    fn search(&self, gpu: &Gpu, queries: &Memory<i32>, lists: &Memory<u64>, stop: &Stop) -> Result<()> {
        let kernel = gpu.kernel("nearest", "nearest", Self::SHARED)?;
        let batch = gpu.processors * CONCURRENT;
        for first in (0..queries.len()).step_by(Self::BLOCK * batch) {
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
            let blocks = (queries.len() - first).div_ceil(Self::BLOCK).min(batch);
            gpu.launch(&kernel, (blocks, 1, 1), (256, 1), &arguments)?;
            gpu.wait()?;
        }
        Ok(())
    }

    /// Selects the nearest of each list, of some rows or all, and tests whether they are certainly the nearest of all.
    fn rank(
        &self,
        gpu: &Gpu,
        queries: Option<&Memory<i32>>,
        lists: &Memory<u64>,
        halves: &HalfRows,
        found: &Neighbours,
        certain: Option<&Memory<i32>>,
    ) -> Result<()> {
        let kernel = gpu.kernel("nearest", "ranked", 0)?;
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
            maybe(certain),
        ];
        gpu.launch(&kernel, (count.div_ceil(8), 1, 1), (256, 1), &arguments)
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
        assert_eq!(constant::<usize>(lists, "LIST"), LIST);
        assert_eq!(constant::<usize>(lists, "WAITING"), WAITING);
        for rows in ["QUERIES", "OTHERS"] {
            assert_eq!(constant::<usize>(search, rows), CentredRows::BLOCK);
        }
        assert_eq!((constant(search, "STAGES"), constant(search, "DEPTH")), (3, 16));
        assert_eq!(constant::<u32>(search, "THREADS"), 256);
    }
}
