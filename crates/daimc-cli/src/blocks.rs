//! Files of many records: formatted in blocks on all threads, written in order.

use std::io::{self, Write};
use std::ops::Range;

use rayon::prelude::*;

/// Fields of a block: large enough for parallel formatting to pay off, small enough for little memory.
const FIELDS: usize = 1 << 16;

/// Blocks per thread to format while earlier blocks are written.
const AHEAD: usize = 2;

/// Writes `records` records of about `fields` fields each. `format` appends the records of a range to a buffer; it is called
/// on all threads, while the calling thread writes what is done. The bytes depend on neither the threads nor the blocks.
///
/// # Errors
/// When `out` fails.
pub fn write(
    out: &mut (impl Write + ?Sized),
    records: usize,
    fields: usize,
    format: impl Fn(Range<usize>, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let size = (FIELDS / fields.max(1)).max(1);
    let threads = rayon::current_num_threads();
    if threads == 1 {
        let mut buffer = Vec::new();
        return (0..records).step_by(size).try_for_each(|start| {
            buffer.clear();
            format(start..(start + size).min(records), &mut buffer);
            out.write_all(&buffer)
        });
    }
    let mut done: Vec<Vec<u8>> = Vec::new();
    let mut next = vec![Vec::new(); AHEAD * threads];
    for first in (0..records.div_ceil(size)).step_by(next.len()) {
        let fill = |(block, buffer): (usize, &mut Vec<u8>)| {
            buffer.clear();
            let start = ((first + block) * size).min(records);
            format(start..(start + size).min(records), buffer);
        };
        // `out` need not be `Send`: only this thread uses it.
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| next.par_iter_mut().enumerate().for_each(fill));
            done.iter().try_for_each(|buffer| out.write_all(buffer))
        })?;
        done.resize_with(next.len(), Vec::new);
        std::mem::swap(&mut done, &mut next);
    }
    done.iter().try_for_each(|buffer| out.write_all(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_order_on_any_number_of_threads() {
        for records in [0, 1, FIELDS, 10 * FIELDS + 3] {
            let expected: Vec<u8> = (0..records).flat_map(usize::to_le_bytes).collect();
            for threads in [1, 2, 7] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut out = Vec::new();
                let format = |range: Range<usize>, out: &mut Vec<u8>| {
                    range.for_each(|i| out.extend(i.to_le_bytes()));
                };
                pool.install(|| write(&mut out, records, 2, format)).unwrap();
                assert!(out == expected, "{records} records on {threads} threads");
            }
        }
    }

    #[test]
    fn an_error_of_the_output_ends_it() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let format = |range: Range<usize>, out: &mut Vec<u8>| out.resize(range.len(), 0);
        let error = write(&mut Full(3 * FIELDS), usize::MAX / 2, 1, format).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
