//! Version 4 (written by `save -v4`): matrices, each with a header of 20 bytes and its name.

use std::io::{BufReader, Read, Seek, SeekFrom};

use daimc_core::text::{plain, quoted};

use crate::dense::MatrixLayout;
use crate::input::Random;
use crate::listing::{LISTED, listing};
use crate::number::{Encoding, NumberType};
use crate::real::Real;
use crate::sparse::Shape;
use crate::{Cells, Position, Precision, Reading, Result, Table};

const HEADER: u64 = 20;

const FULL: u32 = 0;
const SPARSE: u32 = 2;

/// A matrix whose numbers were not read yet.
struct Variable {
    name: String,
    rows: usize,
    columns: usize,
    encoding: Encoding,
    kind: u32,
    complex: bool,
    /// The position of the numbers.
    start: u64,
}

/// Whether a file is of version 4. Such files have no header: the first matrix starts with its type, a number below 5000 with few
/// valid digits.
pub(crate) fn is_level_4(start: &[u8]) -> bool {
    start.len() >= HEADER as usize && byte_order(start).is_some()
}

/// Reads the matrix called `variable`; without a name, the only one.
pub(super) fn read(place: &Position, bytes: &Random, variable: Option<&str>, how: Reading) -> Result<Table> {
    let variables = variables(place, bytes)?;
    let list = || {
        let shown: Vec<String> = variables.iter().take(LISTED).map(Variable::describe).collect();
        listing(&shown, variables.len(), "no variables")
    };
    let found = if let Some(name) = variable {
        let found = variables.iter().find(|variable| variable.name == name);
        found.ok_or_else(|| place.fault(format!("has no variable {}; it holds {}", quoted(name), list())))?
    } else {
        let mut numeric = variables.iter().filter(|variable| variable.is_numeric());
        match (numeric.next(), numeric.next()) {
            (Some(only), None) => only,
            _ => return Err(place.fault(format!("holds {}; pick one with ::NAME after the path", list()))),
        }
    };
    found.table(&Position::array(&place.path, &found.name), bytes, how)
}

/// Whether numbers are big-endian, by the type of the first matrix.
fn byte_order(start: &[u8]) -> Option<bool> {
    let first = *start.first_chunk()?;
    let fits =
        |kind: u32| kind < 2000 && (kind / 100).is_multiple_of(10) && kind / 10 % 10 <= 5 && kind % 10 <= 2;
    [(false, u32::from_le_bytes(first)), (true, u32::from_be_bytes(first))]
        .into_iter()
        .find_map(|(big_endian, kind)| fits(kind).then_some(big_endian))
}

fn variables(place: &Position, bytes: &Random) -> Result<Vec<Variable>> {
    let damaged =
        || place.fault("is damaged (a matrix is longer than the file); copy it again or save it anew");
    let mut found = Vec::new();
    let mut position = 0;
    let mut reader = BufReader::new(bytes.clone());
    while position < bytes.length() {
        let mut header = [0; HEADER as usize];
        reader.read_exact(&mut header).map_err(|error| place.unreadable(error))?;
        let big_endian = byte_order(&header).ok_or_else(damaged)?;
        let word = |at: usize| {
            let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        };
        let (kind, rows, columns) = (word(0), word(4) as usize, word(8) as usize);
        let number = match kind / 10 % 10 {
            0 => NumberType::F64,
            1 => NumberType::F32,
            2 => NumberType::I32,
            3 => NumberType::I16,
            4 => NumberType::U16,
            _ => NumberType::U8,
        };
        let encoding = Encoding { kind: number, big_endian };
        let complex = word(12) != 0;
        let length = rows.checked_mul(columns).and_then(|count| count.checked_mul(number.size()));
        let length =
            length.and_then(|length| length.checked_mul(if complex { 2 } else { 1 })).ok_or_else(damaged)?;
        let start = position + HEADER + u64::from(word(16));
        let end =
            start.checked_add(length as u64).filter(|end| *end <= bytes.length()).ok_or_else(damaged)?;
        let mut name = vec![0; word(16) as usize];
        reader.read_exact(&mut name).map_err(|error| place.unreadable(error))?;
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        found.push(Variable { name, rows, columns, encoding, kind: kind % 10, complex, start });
        reader.seek(SeekFrom::Start(end)).map(drop).map_err(|error| place.unreadable(error))?;
        position = end;
    }
    Ok(found)
}

impl Variable {
    fn is_numeric(&self) -> bool {
        matches!(self.kind, FULL | SPARSE) && !self.complex && !(self.kind == SPARSE && self.columns != 3)
    }

    fn describe(&self) -> String {
        let kind = match self.kind {
            FULL if self.complex => "complex",
            FULL => "matrix",
            SPARSE => "sparse, entries",
            _ => "char",
        };
        format!("{} ({kind} {} × {})", plain(&self.name), self.rows, self.columns)
    }

    fn table(&self, place: &Position, bytes: &Random, how: Reading) -> Result<Table> {
        if !self.is_numeric() {
            return Err(place.fault(format!("is {}, not a matrix of real numbers", self.describe())));
        }
        if self.rows == 0 || self.columns == 0 {
            return Err(place.fault(format!("is empty: its shape is {} × {}", self.rows, self.columns)));
        }
        let precision = how.precision.unwrap_or(self.encoding.kind.precision());
        let mut reader = BufReader::new(bytes.at(self.start));
        if self.kind == FULL {
            let layout = MatrixLayout::new(self.rows, self.columns, true, how);
            let cells = layout.read(place, self.encoding, precision, &mut reader)?;
            return Ok(Table::new(place.clone(), layout.rows(), layout.columns(), cells, how));
        }
        let (shape, cells) = match precision {
            Precision::F32 => self.sparse::<f32>(place, &mut reader, how)?,
            Precision::F64 => self.sparse::<f64>(place, &mut reader, how)?,
        };
        Ok(Table::new(place.clone(), shape.rows, shape.columns, cells, how))
    }

    /// Reads three columns: rows and columns from 1, and values. The last row is the shape.
    fn sparse<T: Real>(
        &self,
        place: &Position,
        reader: &mut impl Read,
        how: Reading,
    ) -> Result<(Shape, Cells)> {
        let mut numbers = |last: &mut f64| -> Result<Vec<u32>> {
            let mut list: Vec<f64> = place.allocate(self.rows)?;
            self.encoding.read(reader, self.rows, &mut list).map_err(|error| place.unreadable(error))?;
            *last = list.pop().unwrap_or(0.0);
            // Other numbers are outside of any shape.
            let index = |number: f64| if number >= 1.0 { (number - 1.0) as u32 } else { u32::MAX };
            Ok(list.into_iter().map(index).collect())
        };
        let (mut rows, mut columns) = (0.0, 0.0);
        let mut places = [numbers(&mut rows)?, numbers(&mut columns)?];
        let mut values: Vec<T> = place.allocate(self.rows)?;
        self.encoding.read(reader, self.rows, &mut values).map_err(|error| place.unreadable(error))?;
        values.pop();
        let mut sizes = [rows, columns].map(|size| size as usize);
        if how.transpose {
            places.reverse();
            sizes.reverse();
        }
        let shape = Shape::new(place, sizes[0], sizes[1], values.len())?;
        let csr = shape.rows_of_triplets(place, (&places[0], &places[1]), &values)?;
        Ok((shape, T::sparse(csr)))
    }
}
