//! numpy's `.npy`: one array. It knows neither IDs nor names of features.

mod header;

use std::io::Read;

pub(crate) use header::Header;

use crate::dense::{Lie, nameless};
use crate::input::Opened;
use crate::number::{Encoding, Target};
use crate::{Place, Reading, Result, Table};

/// Reads a matrix; an array of one dimension is one feature of as many instances.
pub fn read(file: &mut Opened, how: Reading) -> Result<Table> {
    let place = file.place.clone();
    let (bytes, length) = file.in_order()?;
    Array::open(place, bytes, length)?.table(how)
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
        let encoding = self.numbers()?;
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
        let precision = how.precision.unwrap_or(encoding.kind.precision());
        let cells = lie.read(&self.place, encoding, precision, &mut self.reader)?;
        self.finish()?;
        Ok(nameless(self.place, lie.rows(), lie.columns(), cells, how))
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
