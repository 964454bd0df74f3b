//! Rows of cells, and their conversion to text.

use std::io::{self, Read};

use daimc_core::text::{list, quoted};

use crate::listing::LISTED;
use crate::{Error, Position, Result};

/// The maximum numbers of rows and columns of a sheet.
pub(super) const MOST_ROWS: usize = 1 << 20;
pub(super) const MOST_COLUMNS: usize = 1 << 14;

/// The maximum length of the texts of a row.
pub(super) const LONGEST_ROW: usize = 1 << 24;

/// The rows of a sheet, from the top.
pub(super) trait RowSource: Send {
    /// Reads the next row with cells; `None` after the last.
    fn next(&mut self) -> io::Result<Option<SheetRow<'_>>>;
}

/// A row of a sheet.
pub(super) struct SheetRow<'a> {
    /// From 1.
    pub number: usize,
    /// The number of consecutive rows like this.
    pub times: usize,
    /// The cells as text, from the first column on.
    pub cells: &'a [String],
}

/// A sheet as text.
pub(super) struct SheetText<R> {
    rows: R,
    ended: bool,
    /// The number of cells of the first row.
    width: Option<usize>,
    /// The number of rows that were written.
    written: usize,
    /// The current row, and the number of times that it will still be returned.
    line: Vec<u8>,
    times: usize,
    /// The position in the line.
    at: usize,
}

impl<R: RowSource> SheetText<R> {
    pub fn new(rows: R) -> Self {
        Self { rows, ended: false, width: None, written: 0, line: Vec::new(), times: 0, at: 0 }
    }

    /// Produces the next line; `false` after the last.
    fn advance(&mut self) -> io::Result<bool> {
        self.at = 0;
        self.line.clear();
        while !self.ended {
            let Some(SheetRow { number, times, cells }) = self.rows.next()? else {
                self.ended = true;
                break;
            };
            let filled = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            if filled == 0 {
                continue;
            }
            if number <= self.written || number + times - 1 > MOST_ROWS {
                return Err(damaged("its rows are not in order"));
            }
            // Line numbers equal row numbers.
            self.line.resize(number - 1 - self.written, b'\n');
            self.written = number + times - 1;
            let width = *self.width.get_or_insert(filled);
            for column in 0..width.max(filled) {
                if column > 0 {
                    self.line.push(b'\t');
                }
                write_field(cells.get(column).map_or("", String::as_str), &mut self.line);
            }
            self.line.push(b'\n');
            self.times = times;
            return Ok(true);
        }
        Ok(false)
    }
}

impl<R: RowSource> Read for SheetText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.line.len() {
            if self.times > 1 {
                // Empty rows above it are not repeated.
                let start = self.line.iter().position(|byte| *byte != b'\n').unwrap_or(0);
                self.line.drain(..start);
                self.times -= 1;
                self.at = 0;
            } else if !self.advance()? {
                return Ok(0);
            }
        }
        let count = (&self.line[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}

/// Writes a cell as one field on one line.
fn write_field(cell: &str, line: &mut Vec<u8>) {
    let quoted = cell.starts_with('"');
    line.extend(quoted.then_some(b'"'));
    for byte in cell.bytes() {
        match byte {
            b'\t' | b'\n' | b'\r' => line.push(b' '),
            b'"' if quoted => line.extend(b"\"\""),
            byte => line.push(byte),
        }
    }
    line.extend(quoted.then_some(b'"'));
}

/// The index of the sheet `wanted`, of the only one, or of the only one with cells.
pub(super) fn pick(
    place: &Position,
    names: &[String],
    wanted: Option<&str>,
    mut is_filled: impl FnMut(usize) -> io::Result<bool>,
) -> Result<usize> {
    let known = || match names.len() {
        0 => "no sheet".into(),
        count if count > LISTED => format!("{count} sheets, such as {}", quoted(&names[0])),
        _ => format!("the sheets {}", list(names.iter().map(|name| quoted(name)))),
    };
    if let Some(wanted) = wanted {
        let exact = names.iter().position(|name| name == wanted);
        let found =
            exact.or_else(|| names.iter().position(|name| name.to_lowercase() == wanted.to_lowercase()));
        let missing = || place.fault(format!("has no sheet {}; it has {}", quoted(wanted), known()));
        return found.ok_or_else(missing);
    }
    let mut filled = Vec::new();
    for index in 0..names.len() {
        if names.len() == 1 || is_filled(index).map_err(|error| place.unreadable(error))? {
            filled.push(index);
        }
    }
    match *filled {
        [only] => Ok(only),
        [] if names.len() > 1 => Err(place.fault("has only empty sheets")),
        _ => Err(place.fault(format!("has {}; pick one with ::NAME after the path", known()))),
    }
}

/// Changes the place of an error from a field of a line to a cell of a sheet.
pub(crate) fn in_cell(mut error: Error, sheet: &str) -> Error {
    if let Error::Data { place, .. } = &mut error {
        place.variable = Some(match (place.line.take(), place.column.take()) {
            (Some(row), Some(column)) => format!("{sheet}, cell {}{row}", letters(column)),
            (Some(row), None) => format!("{sheet}, row {row}"),
            (None, _) => sheet.into(),
        });
    }
    error.in_part(sheet)
}

/// The name of a column, from 1: A to Z, AA and so on.
fn letters(mut column: usize) -> String {
    let mut name = Vec::new();
    while column > 0 {
        name.push(b'A' + ((column - 1) % 26) as u8);
        column = (column - 1) / 26;
    }
    name.reverse();
    String::from_utf8(name).unwrap_or_default()
}

pub(super) fn damaged(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ListedRows(Vec<(usize, usize, Vec<String>)>, usize);

    impl RowSource for ListedRows {
        fn next(&mut self) -> io::Result<Option<SheetRow<'_>>> {
            self.1 += 1;
            let row = self.0.get(self.1 - 1);
            Ok(row.map(|(number, times, cells)| SheetRow { number: *number, times: *times, cells }))
        }
    }

    fn text(rows: &[(usize, usize, &[&str])]) -> io::Result<String> {
        let row = |(number, times, cells): &(usize, usize, &[&str])| {
            (*number, *times, cells.iter().map(ToString::to_string).collect())
        };
        let mut text = String::new();
        SheetText::new(ListedRows(rows.iter().map(row).collect(), 0)).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn rows_become_lines_of_the_same_number() {
        let rows: [(usize, usize, &[&str]); 4] = [
            (2, 1, &["", "a\tb", "\"c\"", ""]),
            (3, 2, &["x", "1"]),
            (6, 1, &["y", "", "", "9"]),
            (7, 9, &["", ""]),
        ];
        assert_eq!(text(&rows).unwrap(), "\n\ta b\t\"\"\"c\"\"\"\nx\t1\t\nx\t1\t\n\ny\t\t\t9\n");
        assert!(text(&[(2, 1, &["a"]), (2, 1, &["b"])]).is_err());
        assert!(text(&[(1, usize::MAX / 2, &["a"])]).is_err());
    }

    #[test]
    fn columns_have_the_names_that_spreadsheets_show() {
        let names = [(1, "A"), (26, "Z"), (27, "AA"), (703, "AAA"), (16384, "XFD")];
        names.into_iter().for_each(|(column, name)| assert_eq!(letters(column), name));
    }
}
