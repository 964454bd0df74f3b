//! Sorts the entries of a sparse matrix by row, with little memory.
//!
//! All entries are written to a spool file and counted by row. Consecutive rows form buckets that fit into memory. The entries are
//! scattered to the buckets in a second file, whose positions follow from the counts; then each bucket is read and sorted. Every
//! step keeps the order of duplicate entries, so that their sums equal those of a sort in memory.

use std::fs::File;
use std::io;
use std::marker::PhantomData;

use super::options::{Disk, Progress};
use super::spool::Spool;
use super::watched::Watched;
use super::writer::Writer;
use crate::positioned::write_at;
use crate::real::Real;
use crate::sparse::{Shape, out_of_range};
use crate::{Csr, Position, Result, Stored};

/// Entries, and rows, of a bucket, and the most buckets, beyond which buckets are larger.
const BUCKET: usize = 1 << 20;
const BUCKETS: usize = 1 << 10;

/// Bytes that are buffered for the file, and for each bucket.
const WAITING: usize = 1 << 16;
const WAITING_IN_BUCKET: usize = 1 << 14;

/// Entries in any order, to be sorted by row.
pub(crate) struct Sorter<T> {
    disk: Disk,
    place: Position,
    shape: Shape,
    out: Spool,
    waiting: Vec<u8>,
    /// The number of entries of row i, at i + 1.
    counts: Vec<usize>,
    last: u32,
    in_order: bool,
    of: PhantomData<T>,
}

impl<T: Real> Sorter<T> {
    /// Bytes of an entry.
    const ENTRY: usize = 8 + size_of::<T>();

    pub fn new(disk: &Disk, place: &Position, shape: Shape) -> Result<Self> {
        let mut counts = place.allocate(shape.rows + 1)?;
        counts.resize(shape.rows + 1, 0);
        Ok(Self {
            disk: disk.clone(),
            place: place.clone(),
            shape,
            out: Spool::new(disk)?,
            waiting: Vec::with_capacity(WAITING + Self::ENTRY),
            counts,
            last: 0,
            in_order: true,
            of: PhantomData,
        })
    }

    /// Adds an entry.
    pub fn push(&mut self, row: u32, column: u32, value: T) -> Result<()> {
        if row as usize >= self.shape.rows || column as usize >= self.shape.columns {
            return Err(out_of_range(&self.place));
        }
        self.counts[row as usize + 1] += 1;
        self.in_order &= self.last <= row;
        self.last = row;
        self.waiting.extend_from_slice(&row.to_le_bytes());
        self.waiting.extend_from_slice(&column.to_le_bytes());
        value.append_le(&mut self.waiting);
        if self.waiting.len() >= WAITING {
            self.out.write_bytes(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Returns the matrix. Duplicate entries are summed.
    pub fn finish(self) -> Result<Stored> {
        let Self { disk, place, shape, mut out, waiting, counts: mut offsets, in_order, .. } = self;
        out.write_bytes(&waiting)?;
        let mut file = out.finish()?;
        for row in 0..shape.rows {
            offsets[row + 1] += offsets[row];
        }
        let buckets = buckets(&offsets);
        if !in_order {
            file = Self::scatter(&disk, &file, &offsets, &buckets)?;
        }
        let mut writer = Writer::new(&place, Spool::ordered(&disk)?, Spool::ordered(&disk)?, shape.rows)?;
        let mut bytes = Vec::new();
        for bounds in buckets.windows(2) {
            let offsets = &offsets[bounds[0]..=bounds[1]];
            let start = offsets[0];
            let count = offsets[offsets.len() - 1] - start;
            place.check_memory((count as u64).saturating_mul(2 * Self::ENTRY as u64))?;
            bytes.resize(count * Self::ENTRY, 0);
            read(&disk, &file, &mut bytes, (start * Self::ENTRY) as u64)?;
            let mut rows = Csr {
                offsets: offsets.iter().map(|offset| offset - start).collect(),
                columns: vec![0; count],
                values: vec![T::default(); count],
            };
            let mut next = rows.offsets.clone();
            for entry in bytes.chunks_exact(Self::ENTRY) {
                let at = &mut next[word(entry) as usize - bounds[0]];
                (rows.columns[*at], rows.values[*at]) = (word(&entry[4..]), T::from_le(&entry[8..]));
                *at += 1;
            }
            rows.put_in_order();
            writer.append(&rows)?;
        }
        writer.finish::<T>(shape.columns)
    }

    /// Writes the entries of each bucket together.
    fn scatter(disk: &Disk, file: &Watched, offsets: &[usize], buckets: &[usize]) -> Result<Watched> {
        let total = offsets[offsets.len() - 1] * Self::ENTRY;
        let scattered = Spool::of_length(disk, total as u64)?;
        let mut ends: Vec<u64> = buckets.iter().map(|row| (offsets[*row] * Self::ENTRY) as u64).collect();
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new(); buckets.len() - 1];
        let mut flush = |bucket: usize, bytes: &mut Vec<u8>| -> Result<()> {
            put(disk, &scattered, bytes, ends[bucket])?;
            ends[bucket] += bytes.len() as u64;
            bytes.clear();
            Ok(())
        };
        let piece = BUCKET / 16 * Self::ENTRY;
        let mut bytes = Vec::new();
        for start in (0..total).step_by(piece) {
            bytes.resize(piece.min(total - start), 0);
            read(disk, file, &mut bytes, start as u64)?;
            for entry in bytes.chunks_exact(Self::ENTRY) {
                let row = word(entry) as usize;
                let bucket = buckets.partition_point(|first| *first <= row) - 1;
                waiting[bucket].extend_from_slice(entry);
                if waiting[bucket].len() >= WAITING_IN_BUCKET {
                    flush(bucket, &mut waiting[bucket])?;
                }
            }
            disk.report(Progress::Ordered(bytes.len() as u64))?;
        }
        for (bucket, bytes) in waiting.iter_mut().enumerate() {
            flush(bucket, bytes)?;
        }
        Ok(Watched::own(scattered, &disk.folder))
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The first row of each bucket, and the number of rows.
fn buckets(offsets: &[usize]) -> Vec<usize> {
    let rows = offsets.len() - 1;
    let most = BUCKET.max(offsets[rows] / BUCKETS);
    let mut buckets = vec![0];
    let mut first = 0;
    while first < rows {
        // A larger row is a bucket of its own.
        let fit = offsets[first + 1..=(first + BUCKET).min(rows)]
            .partition_point(|end| end - offsets[first] <= most);
        first += fit.max(1);
        buckets.push(first);
    }
    buckets
}

fn read(disk: &Disk, file: &Watched, bytes: &mut [u8], position: u64) -> Result<()> {
    file.read_at(bytes, position).map_err(|error| disk.failed(io::Error::other(error)))
}

fn put(disk: &Disk, file: &File, bytes: &[u8], position: u64) -> Result<()> {
    write_at(file, bytes, position).map_err(|source| disk.failed(source))
}

#[cfg(test)]
mod tests {
    use daimc_core::source::Buffer;

    use super::*;

    fn sorted(shape: Shape, entries: &[(u32, u32, f64)]) -> Buffer {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        let mut sorter = Sorter::new(&disk, &Position::default(), shape).unwrap();
        entries.iter().for_each(|&(row, column, value)| sorter.push(row, column, value).unwrap());
        let stored = sorter.finish().unwrap();
        let mut buffer = Buffer::default();
        stored.rows.read(0..shape.rows, &mut buffer).unwrap();
        buffer
    }

    #[test]
    fn buckets_give_the_same_matrix_as_a_sort_in_memory() {
        let shape = Shape { rows: 5000, columns: 700 };
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        // Some entries are duplicates, whose sums depend on the order.
        let entries: Vec<(u32, u32, f64)> = (0..3_000_000)
            .map(|_| (draw(5000) as u32, draw(700) as u32, 1.0 / (1.0 + draw(1000) as f64)))
            .collect();
        let buffer = sorted(shape, &entries);
        let csr = shape.rows_of_entries(&Position::default(), entries).unwrap();
        assert_eq!((&csr.offsets, &csr.columns), (&buffer.offsets, &buffer.columns));
        assert!(csr.values.iter().zip(&buffer.f64).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn a_large_row_is_a_bucket_of_its_own() {
        assert_eq!(buckets(&[0, 3 * BUCKET, 3 * BUCKET, 3 * BUCKET + 5]), [0, 1, 3]);
        assert_eq!(buckets(&[0, 0, 0, 0]), [0, 3]);
    }
}
