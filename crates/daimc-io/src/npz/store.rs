//! Arrays and sparse matrices whose values are on disk.

use std::sync::Arc;

use zip::CompressionMethod;

use super::archive::{Archive, Entry, damaged};
use crate::disk::{Disk, Numbers, Progress, Sorter, Sparse, Watched, missing, store};
use crate::npy::List;
use crate::real::Real;
use crate::sparse::{Entries, Shape, blocks, check_columns, check_offsets};
use crate::{Cells, Position, Precision, Reading, Result, Stored, Table};

/// Entries of coordinates that are in memory at a time.
const PIECE: usize = 1 << 16;

impl Archive {
    /// An array, which is read in place if it is not compressed.
    pub(super) fn store(
        &mut self,
        name: &str,
        how: Reading,
        disk: &Disk,
        file: Option<Watched>,
    ) -> Result<Table> {
        let in_file = self.position(name)?;
        self.array(name)?.store(how, disk, file.zip(in_file))
    }

    /// The sparse matrix that fills the file. Sorted, uncompressed rows are read in place.
    pub(super) fn store_sparse(&mut self, how: Reading, disk: &Disk, file: Option<Watched>) -> Result<Table> {
        let encoding = self.array("data")?.header.encoding();
        let own = encoding.map_or(Precision::F64, |encoding| encoding.kind.precision());
        let (shape, stored) = match how.precision.unwrap_or(own) {
            Precision::F32 => self.store_sparse_of::<f32>(how, disk, file)?,
            Precision::F64 => self.store_sparse_of::<f64>(how, disk, file)?,
        };
        Ok(Table::new(self.place.clone(), shape.rows, shape.columns, Cells::Stored(stored), how))
    }

    fn store_sparse_of<T: Real>(
        &mut self,
        how: Reading,
        disk: &Disk,
        file: Option<Watched>,
    ) -> Result<(Shape, Stored)> {
        let place = self.place.clone();
        let (format, [rows, columns]) = self.description()?;
        let (rows, columns) = if how.transpose { (columns, rows) } else { (rows, columns) };
        let entries = self.array("data")?.pieces_of_list()?.count;
        let shape = Shape::new(&place, rows, columns, entries)?;
        if format == "coo" {
            return Ok((shape, self.store_coordinates::<T>(shape, how, disk)?));
        }
        // The rows of a matrix are the columns of its transpose.
        let by_row = (format == "csr") != how.transpose;
        let offsets: Vec<usize> = self.array("indptr")?.list()?;
        let indices = self.array("indices")?.pieces_of_list()?.count;
        check_offsets(&place, if by_row { rows } else { columns }, &offsets, [indices, entries])?;
        if let Some(file) = file.filter(|_| by_row)
            && let (Some(first_index), Some(first_value)) =
                (self.position("indices")?, self.position("data")?)
        {
            let mut values = self.again()?;
            let mut pieces = ArrayEntries::open(self, &mut values)?;
            let (mut sorted, mut gaps) = (true, place.allocate(rows)?);
            blocks(&place, &offsets, &mut pieces, |_, block| {
                check_columns(&place, columns, &block.columns)?;
                sorted &= block.is_sorted();
                gaps.extend(missing::<T>(block));
                let bytes = size_of_val(&*block.columns) + size_of_val(&*block.values);
                disk.report(Progress::Read(bytes as u64))
            })?;
            pieces.finish()?;
            if sorted {
                let numbers = |list: &List<Entry<'_>>, position| Numbers {
                    file: file.clone(),
                    offset: position + list.start,
                    encoding: list.encoding,
                };
                let columns_at = numbers(&pieces.columns, first_index);
                let values = numbers(&pieces.values, first_value);
                let precision = T::PRECISION;
                let rows = Sparse { width: columns, offsets, columns: columns_at, values, precision };
                return Ok((shape, Stored { rows: Arc::new(rows), missing: Arc::new(gaps) }));
            }
        }
        let mut values = self.again()?;
        let mut pieces = ArrayEntries::open(self, &mut values)?;
        let stored = store::<T>(disk, &place, shape, by_row, &offsets, &mut pieces)?;
        pieces.finish()?;
        Ok((shape, stored))
    }

    fn store_coordinates<T: Real>(&mut self, shape: Shape, how: Reading, disk: &Disk) -> Result<Stored> {
        let place = self.place.clone();
        let (mut second, mut third) = (self.again()?, self.again()?);
        let names = if how.transpose { ["col", "row"] } else { ["row", "col"] };
        let mut rows = self.array(names[0])?.pieces_of_list()?;
        let mut columns = second.array(names[1])?.pieces_of_list()?;
        let mut values = third.array("data")?.pieces_of_list()?;
        if rows.count != values.count || columns.count != values.count {
            return Err(place.fault("has not as many indices as values; save it anew"));
        }
        let mut sorter = Sorter::<T>::new(disk, &place, shape)?;
        let (mut row, mut column, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for at in (0..values.count).step_by(PIECE) {
            let count = PIECE.min(values.count - at);
            row.clear();
            rows.take(count, &mut row)?;
            column.clear();
            columns.take(count, &mut column)?;
            value.clear();
            values.take(count, &mut value)?;
            for ((row, column), value) in row.iter().zip(&column).zip(&value) {
                sorter.push(*row, *column, *value)?;
            }
        }
        rows.finish()?;
        columns.finish()?;
        values.finish()?;
        sorter.finish()
    }

    /// A second handle, since an archive reads one array at a time.
    fn again(&self) -> Result<Self> {
        Self::open(self.place.clone(), self.bytes.clone())
    }

    /// The position of an uncompressed array in the file.
    fn position(&mut self, name: &str) -> Result<Option<u64>> {
        let place = Position::array(&self.place.path, name);
        let entry = self.zip.by_name(&format!("{name}.npy")).map_err(|error| damaged(&place, error))?;
        let plain = entry.compression() == CompressionMethod::Stored
            && entry.compressed_size() == entry.size()
            && !entry.encrypted();
        Ok(entry.data_start().filter(|_| plain))
    }
}

/// Indices and values of compressed rows or columns.
struct ArrayEntries<'a> {
    columns: List<Entry<'a>>,
    values: List<Entry<'a>>,
}

impl<'a> ArrayEntries<'a> {
    fn open(indices: &'a mut Archive, data: &'a mut Archive) -> Result<Self> {
        let columns = indices.array("indices")?.pieces_of_list()?;
        Ok(Self { columns, values: data.array("data")?.pieces_of_list()? })
    }

    /// Reads to the end, which verifies the checksums.
    fn finish(&mut self) -> Result<()> {
        self.columns.finish()?;
        self.values.finish()
    }
}

impl<T: Real> Entries<T> for ArrayEntries<'_> {
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()> {
        self.columns.take(count, out)
    }

    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()> {
        self.values.take(count, out)
    }
}
