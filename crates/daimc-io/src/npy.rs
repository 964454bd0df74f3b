//! numpy's `.npy`: one array. It knows neither IDs nor names of features.

mod header;

use std::io::Read;
use std::sync::Arc;

pub(crate) use header::Header;

use crate::dense::{Lie, nameless};
use crate::disk::{Dense, Disk, Progress, Spool, Watched};
use crate::input::Opened;
use crate::number::{Encoding, Target};
use crate::real::Real;
use crate::{Cells, Place, Precision, Reading, Result, Stored, Table};

/// Numbers that are in memory at a time, of an array that is not.
const PIECE: usize = 1 << 16;

/// Reads a matrix; an array of one dimension is one feature of as many instances.
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
    let (encoding, lie) = (array.numbers()?, array.lie(Reading::default())?);
    Ok((lie.rows(), lie.columns(), encoding.kind.precision()))
}

/// A matrix whose values stay in the file.
pub fn store(file: &mut Opened, how: Reading, disk: &Disk) -> Result<Table> {
    let watched = file.watched()?;
    let place = file.place.clone();
    let (bytes, length) = file.in_order()?;
    Array::open(place, bytes, length)?.store(how, disk, watched.map(|watched| (watched, 0)))
}

/// An array whose header was read and found to fit the bytes that follow it.
pub(crate) struct Array<R> {
    pub place: Place,
    pub header: Header,
    reader: R,
    /// How many bytes the header takes.
    taken: u64,
    /// How many bytes follow the header.
    length: u64,
}

/// The numbers of an array of one dimension, piece by piece.
pub(crate) struct List<R> {
    array: Array<R>,
    pub encoding: Encoding,
    /// How many there are.
    pub count: usize,
    /// Where in the bytes of the array they start.
    pub start: u64,
}

impl<R: Read> Array<R> {
    /// Reads the header of an array that takes `length` bytes in all.
    pub(crate) fn open(place: Place, mut reader: R, length: u64) -> Result<Self> {
        let (header, taken) = Header::read(&place, &mut reader, length)?;
        Ok(Self { place, header, reader, taken, length: length - taken })
    }

    /// The number of instances, and the bytes that the values take in memory.
    pub(crate) fn size(&self, how: Reading) -> Result<(usize, u64)> {
        let (encoding, lie) = (self.numbers()?, self.lie(how)?);
        let value = if how.precision.unwrap_or(encoding.kind.precision()) == Precision::F32 { 4 } else { 8 };
        Ok((lie.rows(), (lie.lines as u64).saturating_mul(lie.length as u64).saturating_mul(value)))
    }

    /// The array as a table.
    pub(crate) fn table(mut self, how: Reading) -> Result<Table> {
        let (encoding, lie) = (self.numbers()?, self.lie(how)?);
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let cells = lie.read(&self.place, encoding, precision, &mut self.reader)?;
        self.finish()?;
        Ok(nameless(self.place, lie.rows(), lie.columns(), cells, how))
    }

    /// The array as a table whose values are on disk: where they lie, if there is a file in which the array starts at a
    /// position, else in a spool file. What is in the file is read once here, to see what is missing.
    pub(crate) fn store(mut self, how: Reading, disk: &Disk, lies: Option<(Watched, u64)>) -> Result<Table> {
        let (encoding, lie) = (self.numbers()?, self.lie(how)?);
        let (rows, columns) = (lie.rows(), lie.columns());
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let stored = match (lies, precision) {
            (Some((file, position)), _) => {
                let missing = Arc::new(self.missing(encoding, lie, disk)?);
                let (offset, by_column) = (position + self.taken, !lie.lines_are_rows);
                let rows = Dense { file, offset, rows, columns, by_column, encoding, precision };
                Stored { rows: Arc::new(rows), missing }
            }
            (None, Precision::F32) => self.spool::<f32>(encoding, lie, disk)?,
            (None, Precision::F64) => self.spool::<f64>(encoding, lie, disk)?,
        };
        Ok(nameless(self.place, rows, columns, Cells::Stored(stored), how))
    }

    /// How many values of each row are missing.
    fn missing(&mut self, encoding: Encoding, lie: Lie, disk: &Disk) -> Result<Vec<u32>> {
        let (rows, columns) = (lie.rows(), lie.columns());
        let mut missing: Vec<u32> = self.place.room(rows)?;
        missing.resize(rows, 0);
        let mut at = 0;
        self.pieces(encoding, rows * columns, |values: &[f64]| {
            for (value, at) in values.iter().zip(at..) {
                if value.is_nan() {
                    missing[if lie.lines_are_rows { at / columns } else { at % rows }] += 1;
                }
            }
            at += values.len();
            disk.tell(Progress::Read((values.len() * encoding.kind.size()) as u64))
        })?;
        Ok(missing)
    }

    /// Writes the values to a spool file.
    fn spool<T: Real>(&mut self, encoding: Encoding, lie: Lie, disk: &Disk) -> Result<Stored> {
        let mut spool = Spool::new(disk)?;
        self.pieces(encoding, lie.lines * lie.length, |values: &[T]| spool.write(values))?;
        spool.dense::<T>(lie.rows(), lie.columns(), !lie.lines_are_rows)
    }

    /// Shows all numbers to `visit`, some at a time.
    fn pieces<T: Target>(
        &mut self,
        encoding: Encoding,
        count: usize,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        let mut values = Vec::new();
        for at in (0..count).step_by(PIECE) {
            values.clear();
            let read = encoding.read(&mut self.reader, PIECE.min(count - at), &mut values);
            read.map_err(|error| self.place.unreadable(error))?;
            visit(&values)?;
        }
        self.finish()
    }

    /// How the array lies in the file.
    fn lie(&self, how: Reading) -> Result<Lie> {
        let lie = match *self.header.shape {
            // A list has no direction that could be transposed.
            [rows] => Lie { lines: rows, length: 1, lines_are_rows: true },
            [rows, columns] => Lie::new(rows, columns, self.header.fortran_order, how),
            _ => {
                return Err(self.place.fault(format!(
                    "has the shape {}, but a view is a matrix; reshape it to two dimensions",
                    self.header.shape()
                )));
            }
        };
        if lie.lines == 0 || lie.length == 0 {
            return Err(self.place.fault(format!("is empty: its shape is {}", self.header.shape())));
        }
        Ok(lie)
    }

    /// The numbers of an array of one dimension.
    pub(crate) fn list<T: Target>(self) -> Result<Vec<T>> {
        let mut list = self.pieces_of_list()?;
        let mut numbers = list.array.place.room(list.count)?;
        list.take(list.count, &mut numbers)?;
        list.finish()?;
        Ok(numbers)
    }

    /// The numbers of an array of one dimension, to be read piece by piece.
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
        // `U` takes four bytes a letter, of which the formats' names use one.
        Ok(bytes.into_iter().filter(|&byte| byte != 0).map(char::from).collect())
    }

    /// How the numbers are written; an error where they are no numbers or the file has not as many.
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

    /// Reads to the end, where a compressed archive checks its sum.
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

    /// All were read.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.array.finish()
    }
}
