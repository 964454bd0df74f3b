//! numpy's `.npy`: one array, without IDs and feature names.

mod header;

use std::io::Read;
use std::sync::Arc;

pub(crate) use header::Header;

use crate::dense::MatrixLayout;
use crate::disk::{Dense, Disk, Progress, Spool, Watched};
use crate::input::Opened;
use crate::number::{Encoding, Target};
use crate::real::Real;
use crate::{Cells, Position, Precision, Reading, Result, Stored, Table};

/// Reads a matrix; an array of one dimension is one feature.
pub fn read(file: &mut Opened, how: Reading) -> Result<Table> {
    let place = file.place.clone();
    let (bytes, length) = file.in_order()?;
    Array::open(place, bytes, length)?.table(how)
}

/// Rows, columns and type of a matrix, from its header.
pub fn shape(file: &mut Opened) -> Result<(usize, usize, Precision)> {
    let place = file.place.clone();
    let (bytes, length) = file.in_order()?;
    let array = Array::open(place, bytes, length)?;
    let (encoding, layout) = (array.numbers()?, array.layout(Reading::default())?);
    Ok((layout.rows(), layout.columns(), encoding.kind.precision()))
}

/// A matrix whose values stay in the file.
pub fn store(file: &mut Opened, how: Reading, disk: &Disk) -> Result<Table> {
    let watched = file.watched()?;
    let place = file.place.clone();
    let (bytes, length) = file.in_order()?;
    Array::open(place, bytes, length)?.store(how, disk, watched.map(|watched| (watched, 0)))
}

/// An array whose header was read, and not its values.
pub(crate) struct Array<R> {
    pub place: Position,
    pub header: Header,
    reader: R,
    /// The length of the header in bytes.
    taken: u64,
    /// The number of bytes after the header.
    length: u64,
}

/// The numbers of an array of one dimension, read in pieces.
pub(crate) struct List<R> {
    array: Array<R>,
    pub encoding: Encoding,
    /// The number of elements.
    pub count: usize,
    /// Their position in the bytes of the array.
    pub start: u64,
}

impl<R: Read> Array<R> {
    /// Reads the header of an array of `length` bytes in total.
    pub(crate) fn open(place: Position, mut reader: R, length: u64) -> Result<Self> {
        let (header, taken) = Header::read(&place, &mut reader, length)?;
        Ok(Self { place, header, reader, taken, length: length - taken })
    }

    /// The number of instances, and the bytes that the values take in memory.
    pub(crate) fn size(&self, how: Reading) -> Result<(usize, u64)> {
        let (encoding, layout) = (self.numbers()?, self.layout(how)?);
        let value = if how.precision.unwrap_or(encoding.kind.precision()) == Precision::F32 { 4 } else { 8 };
        Ok((layout.rows(), (layout.lines as u64).saturating_mul(layout.length as u64).saturating_mul(value)))
    }

    /// The array as a table.
    pub(crate) fn table(mut self, how: Reading) -> Result<Table> {
        let (encoding, layout) = (self.numbers()?, self.layout(how)?);
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let cells = layout.read(&self.place, encoding, precision, &mut self.reader)?;
        self.finish()?;
        Ok(Table::new(self.place, layout.rows(), layout.columns(), cells, how))
    }

    /// The array as a table whose values are on disk: in place if `in_file` is the file and the position of the array, otherwise in
    /// a spool file. Values in place are read once to count the missing ones.
    pub(crate) fn store(
        mut self,
        how: Reading,
        disk: &Disk,
        in_file: Option<(Watched, u64)>,
    ) -> Result<Table> {
        let (encoding, layout) = (self.numbers()?, self.layout(how)?);
        let (rows, columns) = (layout.rows(), layout.columns());
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let stored = match (in_file, precision) {
            (Some((file, position)), _) => {
                let missing = Arc::new(self.missing(encoding, layout, disk)?);
                let (offset, by_column) = (position + self.taken, !layout.lines_are_rows);
                let rows = Dense { file, offset, rows, columns, by_column, encoding, precision };
                Stored { rows: Arc::new(rows), missing }
            }
            (None, Precision::F32) => self.spool::<f32>(encoding, layout, disk)?,
            (None, Precision::F64) => self.spool::<f64>(encoding, layout, disk)?,
        };
        Ok(Table::new(self.place, rows, columns, Cells::Stored(stored), how))
    }

    /// The number of missing values of each row.
    fn missing(&mut self, encoding: Encoding, layout: MatrixLayout, disk: &Disk) -> Result<Vec<u32>> {
        let (rows, columns) = (layout.rows(), layout.columns());
        let mut missing: Vec<u32> = self.place.allocate(rows)?;
        missing.resize(rows, 0);
        let mut at = 0;
        self.pieces(encoding, rows * columns, |values: &[f64]| {
            for (value, at) in values.iter().zip(at..) {
                if value.is_nan() {
                    missing[if layout.lines_are_rows { at / columns } else { at % rows }] += 1;
                }
            }
            at += values.len();
            disk.report(Progress::Read((values.len() * encoding.kind.size()) as u64))
        })?;
        Ok(missing)
    }

    /// Writes the values to a spool file.
    fn spool<T: Real>(&mut self, encoding: Encoding, layout: MatrixLayout, disk: &Disk) -> Result<Stored> {
        let mut spool = Spool::new(disk)?;
        self.pieces(encoding, layout.lines * layout.length, |values: &[T]| spool.write(values))?;
        spool.dense::<T>(layout.rows(), layout.columns(), !layout.lines_are_rows)
    }

    /// Calls `visit` with all numbers in pieces.
    fn pieces<T: Target>(
        &mut self,
        encoding: Encoding,
        count: usize,
        visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        encoding.pieces(&self.place, &mut self.reader, count, visit)?;
        self.finish()
    }

    /// The order of the array in the file.
    fn layout(&self, how: Reading) -> Result<MatrixLayout> {
        let layout = match *self.header.shape {
            // An array of one dimension is never transposed.
            [rows] => MatrixLayout { lines: rows, length: 1, lines_are_rows: true },
            [rows, columns] => MatrixLayout::new(rows, columns, self.header.fortran_order, how),
            _ => {
                return Err(self.place.fault(format!(
                    "has the shape {}, but a view is a matrix; reshape it to two dimensions",
                    self.header.shape()
                )));
            }
        };
        if layout.lines == 0 || layout.length == 0 {
            return Err(self.place.fault(format!("is empty: its shape is {}", self.header.shape())));
        }
        Ok(layout)
    }

    /// The numbers of an array of one dimension.
    pub(crate) fn list<T: Target>(self) -> Result<Vec<T>> {
        let mut list = self.pieces_of_list()?;
        let mut numbers = list.array.place.allocate(list.count)?;
        list.take(list.count, &mut numbers)?;
        list.finish()?;
        Ok(numbers)
    }

    /// The numbers of an array of one dimension, for reading in pieces.
    pub(crate) fn pieces_of_list(self) -> Result<List<R>> {
        let encoding = self.numbers()?;
        let [count] = *self.header.shape else {
            return Err(self.place.fault(format!(
                "has the shape {} where a list is needed; save it anew",
                self.header.shape()
            )));
        };
        Ok(List { encoding, count, start: self.taken, array: self })
    }

    /// The text of an array that is one short string, such as the name of a format.
    pub(crate) fn text(mut self) -> Result<String> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(1 << 10).read_to_end(&mut bytes);
        read.map_err(|error| self.place.unreadable(error))?;
        // `U` has four bytes per letter; the names of formats are ASCII.
        Ok(bytes.into_iter().filter(|&byte| byte != 0).map(char::from).collect())
    }

    /// The encoding of the numbers; an error for other types and if the file is not as long as the array.
    fn numbers(&self) -> Result<Encoding> {
        let encoding = self.header.encoding().ok_or_else(|| {
            self.place.fault(format!(
                "has elements of type {}, not numbers; save it as float64 or float32, with \
                 array.astype('float64')",
                self.header.type_name()
            ))
        })?;
        let size = self.header.shape.iter().try_fold(encoding.kind.size(), |a, &b| a.checked_mul(b));
        if size.is_none_or(|size| size as u64 != self.length) {
            return Err(self.place.fault(format!(
                "should hold {} numbers of type {} by its header, but {} bytes follow; copy it again or save \
                 it anew",
                self.header.shape(),
                self.header.type_name(),
                self.length
            )));
        }
        Ok(encoding)
    }

    /// Reads to the end, where a compressed archive verifies its checksum.
    fn finish(&mut self) -> Result<()> {
        std::io::copy(&mut self.reader.by_ref().take(1), &mut std::io::sink())
            .map(|_| ())
            .map_err(|error| self.place.unreadable(error))
    }
}

impl<R: Read> List<R> {
    /// Appends the next numbers.
    pub(crate) fn take<T: Target>(&mut self, count: usize, out: &mut Vec<T>) -> Result<()> {
        let Array { place, reader, .. } = &mut self.array;
        self.encoding.read(reader, count, out).map_err(|error| place.unreadable(error))
    }

    /// Reads to the end, which verifies the checksum.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.array.finish()
    }
}
