//! `OpenDocument` spreadsheets: one document with all sheets.

use std::io::{self, Read, Seek};

use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::rows::{LONGEST_ROW, MOST_COLUMNS, MOST_ROWS, RowSource, SheetRow, SheetText, damaged, pick};
use super::xml::{Xml, append, attribute, ended};
use crate::{Position, Result};

const CONTENT: &str = "content.xml";

/// A document and its sheet that is read.
pub(crate) struct OpenDocument<'a, R> {
    archive: &'a mut ZipArchive<R>,
    /// The sheet.
    pub name: String,
    /// Its number.
    sheet: usize,
}

impl<'a, R: Read + Seek + Send> OpenDocument<'a, R> {
    /// Opens the sheet `wanted`, or the only one.
    pub(crate) fn open(
        place: &Position,
        archive: &'a mut ZipArchive<R>,
        wanted: Option<&str>,
    ) -> Result<Self> {
        let (names, filled) = sheets(archive).map_err(|error| place.unreadable(error))?;
        let sheet = pick(place, &names, wanted, |index| Ok(filled[index]))?;
        Ok(Self { archive, name: names[sheet].clone(), sheet })
    }

    /// The text of the sheet.
    pub(crate) fn text(&mut self) -> io::Result<impl Read + Send + '_> {
        let mut cells = SheetRows::new(content(self.archive)?);
        for _ in 0..=self.sheet {
            cells.table()?.ok_or_else(ended)?;
        }
        Ok(SheetText::new(cells))
    }

    /// The uncompressed length of the document.
    pub(crate) fn length(&mut self) -> u64 {
        self.archive.by_name(CONTENT).map_or(0, |part| part.size())
    }
}

fn content<R: Read + Seek>(archive: &mut ZipArchive<R>) -> io::Result<Xml<ZipFile<'_, R>>> {
    archive.by_name(CONTENT).map(Xml::new).map_err(|error| match error {
        ZipError::Io(error) => error,
        error => damaged(error.to_string()),
    })
}

/// The names of the sheets, and which of them have cells.
fn sheets<R: Read + Seek + Send>(archive: &mut ZipArchive<R>) -> io::Result<(Vec<String>, Vec<bool>)> {
    let mut cells = SheetRows::new(content(archive)?);
    let (mut names, mut filled) = (Vec::new(), Vec::new());
    while let Some(name) = cells.table()? {
        names.push(name);
        let mut some = false;
        while let Some(row) = cells.next()? {
            some |= row.cells.iter().any(|cell| !cell.is_empty());
        }
        filled.push(some);
    }
    Ok((names, filled))
}

/// The rows of one sheet after another.
struct SheetRows<R> {
    xml: Xml<R>,
    /// The number of rows before.
    rows: usize,
    cells: Vec<String>,
}

impl<R: Read> SheetRows<R> {
    fn new(xml: Xml<R>) -> Self {
        Self { xml, rows: 0, cells: Vec::new() }
    }

    /// Goes to the next sheet and returns its name; `None` after the last.
    fn table(&mut self) -> io::Result<Option<String>> {
        self.rows = 0;
        loop {
            match self.xml.next()? {
                Event::Start(element) if element.name().as_ref() == "table:table" => {
                    return Ok(Some(attribute(&element, "table:name")?.unwrap_or_default().into_owned()));
                }
                Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }

    /// The cells of a row that was opened.
    fn row(&mut self) -> io::Result<()> {
        self.cells.clear();
        // Empty cells count only before others.
        let (mut empty, mut taken) = (0_usize, 0_usize);
        loop {
            let (value, times) = match self.xml.next()? {
                Event::Start(element) if element.local_name().as_ref().ends_with("table-cell") => {
                    (Value::of(&element)?, repeated(&element, "table:number-columns-repeated")?)
                }
                Event::Start(_) => {
                    self.xml.skip()?;
                    continue;
                }
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(ended()),
                _ => continue,
            };
            let mut text = String::new();
            self.paragraphs(&mut text)?;
            let text = match value {
                Value::Attribute(value) => value,
                Value::Text => text,
                Value::Error => "NA".into(),
            };
            if text.is_empty() {
                empty = empty.saturating_add(times);
                continue;
            }
            let width = self.cells.len().saturating_add(empty).saturating_add(times);
            if width > MOST_COLUMNS {
                return Err(damaged("a row has more than 16384 cells"));
            }
            taken += times * text.len();
            if taken > LONGEST_ROW {
                return Err(damaged("a row of it is longer than 16 MB"));
            }
            self.cells.resize(self.cells.len() + empty, String::new());
            self.cells.resize(width, text);
            empty = 0;
        }
    }

    /// The paragraphs of an opened cell, without notes and pictures.
    fn paragraphs(&mut self, text: &mut String) -> io::Result<()> {
        loop {
            match self.xml.next()? {
                Event::Start(element) if element.name().as_ref() == "text:p" => {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    self.paragraph(text)?;
                }
                Event::Start(_) => self.xml.skip()?,
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(ended()),
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, text: &mut String) -> io::Result<()> {
        let mut depth = 0_usize;
        loop {
            match self.xml.next()? {
                Event::Start(element) => {
                    depth += 1;
                    if matches!(element.name().as_ref(), "text:s" | "text:tab" | "text:line-break") {
                        text.push(' ');
                    }
                }
                Event::End(_) if depth == 0 => return Ok(()),
                Event::End(_) => depth -= 1,
                Event::Eof => return Err(ended()),
                event => append(&event, text)?,
            }
        }
    }
}

impl<R: Read + Send> RowSource for SheetRows<R> {
    fn next(&mut self) -> io::Result<Option<SheetRow<'_>>> {
        let times = loop {
            match self.xml.next()? {
                Event::Start(element) if element.name().as_ref() == "table:table-row" => {
                    break repeated(&element, "table:number-rows-repeated")?;
                }
                // Pictures on the sheet may have tables of their own.
                Event::Start(element) if element.name().as_ref() == "table:shapes" => self.xml.skip()?,
                Event::End(element) if element.name().as_ref() == "table:table" => return Ok(None),
                Event::Eof => return Err(ended()),
                _ => {}
            }
        };
        self.row()?;
        let number = self.rows + 1;
        self.rows = self.rows.saturating_add(times);
        if self.rows > MOST_ROWS && !self.cells.is_empty() {
            return Err(damaged("a sheet has more than 1048576 rows"));
        }
        self.rows = self.rows.min(MOST_ROWS);
        Ok(Some(SheetRow { number, times, cells: &self.cells }))
    }
}

/// The number of times that a row or a cell is repeated.
fn repeated(element: &BytesStart<'_>, name: &str) -> io::Result<usize> {
    let times = attribute(element, name)?;
    let times = times.map_or(Ok(1), |times| times.trim().parse());
    times.ok().filter(|times| *times > 0).ok_or_else(|| damaged("a row or a cell is repeated so often"))
}

/// The contents of a cell.
enum Value {
    /// The value of an attribute.
    Attribute(String),
    /// Its paragraphs.
    Text,
    Error,
}

impl Value {
    fn of(element: &BytesStart<'_>) -> io::Result<Self> {
        let kind = attribute(element, "office:value-type")?;
        let name = match kind.as_deref() {
            Some("float" | "percentage" | "currency") => "office:value",
            Some("date") => "office:date-value",
            Some("time") => "office:time-value",
            Some("boolean") => "office:boolean-value",
            _ => "",
        };
        if attribute(element, "calcext:value-type")?.is_some_and(|kind| kind == "error") {
            return Ok(Self::Error);
        }
        let given = if name.is_empty() { None } else { attribute(element, name)? };
        Ok(given.map_or(Self::Text, |value| Self::Attribute(value.into_owned())))
    }
}
