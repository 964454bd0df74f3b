//! numpy's `.npy`: one array. It knows neither IDs nor names of features.

mod header;

use std::io::Read;
use std::sync::Arc;

pub(crate) use header::Header;

use crate::dense::{Lie, nameless};
use crate::disk::{Dense, Watched};
use crate::input::Opened;
use crate::number::{Encoding, Target};
use crate::{Cells, Place, Precision, Reading, Result, Stored, Table};

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

/// A matrix whose values stay in the file: they are read once here, to be hashed and to see what is missing.
pub fn store(file: &mut Opened, how: Reading) -> Result<Table> {
    let place = file.place.clone();
    let unreadable = |error| place.unreadable(error);
    let again = file.again().ok_or_else(|| place.fault("is not on a disk"))?.map_err(unreadable)?;
    let watched = Watched::new(again, &place.path).map_err(unreadable)?;
    let (bytes, length) = file.in_order()?;
    let mut array = Array::open(place.clone(), bytes, length)?;
    let offset = length - array.length;
    let (encoding, lie) = (array.numbers()?, array.lie(how)?);
    let (rows, columns) = (lie.rows(), lie.columns());
    let mut missing: Vec<u32> = place.room(rows)?;
    missing.resize(rows, 0);
    let mut values: Vec<f64> = Vec::new();
    let mut at = 0;
    while at < rows * columns {
        values.clear();
        let count = (1 << 16).min(rows * columns - at);
        encoding.read(&mut array.reader, count, &mut values).map_err(unreadable)?;
        for (value, at) in values.iter().zip(at..) {
            if value.is_nan() {
                missing[if lie.lines_are_rows { at / columns } else { at % rows }] += 1;
            }
        }
        at += count;
    }
    array.finish()?;
    let precision = how.precision.unwrap_or(encoding.kind.precision());
    let rows_of =
        Dense { file: watched, offset, rows, columns, by_column: !lie.lines_are_rows, encoding, precision };
    let stored = Stored { rows: Arc::new(rows_of), missing: Arc::new(missing) };
    Ok(nameless(array.place, rows, columns, Cells::Stored(stored), how))
}

/// An array whose header was read and found to fit the bytes that follow it.
pub(crate) struct Array<R> {
    pub place: Place,
    pub header: Header,
    reader: R,
    /// How many bytes follow the header.
    length: u64,
}

impl<R: Read> Array<R> {
    /// Reads the header of an array that takes `length` bytes in all.
    pub(crate) fn open(place: Place, mut reader: R, length: u64) -> Result<Self> {
        let (header, taken) = Header::read(&place, &mut reader, length)?;
        Ok(Self { place, header, reader, length: length - taken })
    }

    /// The array as a table.
    pub(crate) fn table(mut self, how: Reading) -> Result<Table> {
        let (encoding, lie) = (self.numbers()?, self.lie(how)?);
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let cells = lie.read(&self.place, encoding, precision, &mut self.reader)?;
        self.finish()?;
        Ok(nameless(self.place, lie.rows(), lie.columns(), cells, how))
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
    pub(crate) fn list<T: Target>(mut self) -> Result<Vec<T>> {
        let encoding = self.numbers()?;
        let [count] = *self.header.shape else {
            return Err(self.place.fault(format!(
                "has the shape {} where a list is needed; save it anew",
                self.header.shape()
            )));
        };
        let mut list = self.place.room(count)?;
        encoding.read(&mut self.reader, count, &mut list).map_err(|error| self.place.unreadable(error))?;
        self.finish()?;
        Ok(list)
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
