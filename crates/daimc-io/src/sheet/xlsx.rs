//! Excel workbooks: parts in an archive, some of which list the others.

use std::io::{self, Read, Seek};

use quick_xml::events::Event;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::rows::{LONGEST_ROW, MOST_COLUMNS, RowSource, SheetRow, SheetText, damaged, pick};
use super::xml::{Xml, append, attribute, ended};
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::{Position, Result};

/// The default path of the workbook in the archive.
const WORKBOOK: &str = "xl/workbook.xml";

/// A workbook and its sheet that is read.
pub(crate) struct Workbook<'a, R> {
    archive: &'a mut ZipArchive<R>,
    /// The sheet.
    pub name: String,
    part: String,
    strings: Vec<String>,
    dates: Dates,
}

/// The styles of cells that show numbers as dates.
#[derive(Default)]
struct Dates {
    styles: Vec<bool>,
    /// Days are counted from 1904 on.
    from_1904: bool,
}

/// A sheet and its part of the archive.
struct Sheet {
    name: String,
    part: String,
}

impl<'a, R: Read + Seek + Send> Workbook<'a, R> {
    /// Opens the sheet `wanted`, or the only one.
    pub(crate) fn open(
        place: &Position,
        archive: &'a mut ZipArchive<R>,
        wanted: Option<&str>,
    ) -> Result<Self> {
        let unreadable = |error| place.unreadable(error);
        let root = relations(archive, "_rels/.rels").map_err(unreadable)?;
        let workbook = root.into_iter().find(|relation| relation.kind.ends_with("/officeDocument"));
        let workbook = workbook.map_or_else(|| WORKBOOK.into(), |relation| resolved("", &relation.target));
        let mut dates = Dates::default();
        let sheets = sheets(archive, &workbook, &mut dates).map_err(unreadable)?;
        let names: Vec<String> = sheets.iter().map(|sheet| sheet.name.clone()).collect();
        let chosen = pick(place, &names, wanted, |index| is_filled(archive, &sheets[index].part))?;
        let folder = workbook.rsplit_once('/').map_or("", |(folder, _)| folder);
        dates.styles = styles(archive, &resolved(folder, "styles.xml")).map_err(unreadable)?;
        let strings = strings(place, archive, &resolved(folder, "sharedStrings.xml"))?;
        let Some(Sheet { name, part }) = sheets.into_iter().nth(chosen) else {
            return Err(place.fault("has no such sheet"));
        };
        Ok(Self { archive, name, part, strings, dates })
    }

    /// The text of the sheet.
    pub(crate) fn text(&mut self) -> io::Result<impl Read + Send + '_> {
        let part = part(self.archive, &self.part)?.ok_or_else(|| damaged("a sheet is not in the archive"))?;
        Ok(SheetText::new(SheetRows::new(Xml::new(part), &self.strings, &self.dates)))
    }

    /// The uncompressed length of the sheet.
    pub(crate) fn length(&mut self) -> u64 {
        self.archive.by_name(&self.part).map_or(0, |part| part.size())
    }
}

/// A part of the archive, if it is there.
fn part<'a, R: Read + Seek>(
    archive: &'a mut ZipArchive<R>,
    name: &str,
) -> io::Result<Option<ZipFile<'a, R>>> {
    match archive.by_name(name) {
        Ok(part) => Ok(Some(part)),
        Err(ZipError::FileNotFound) => Ok(None),
        Err(ZipError::Io(error)) => Err(error),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// The path of a part that another one in `folder` refers to.
fn resolved(folder: &str, target: &str) -> String {
    match target.strip_prefix('/') {
        Some(whole) => whole.into(),
        None if folder.is_empty() => target.into(),
        None => format!("{folder}/{target}"),
    }
}

/// A reference from one part to another.
struct Relation {
    id: String,
    kind: String,
    target: String,
}

fn relations<R: Read + Seek>(archive: &mut ZipArchive<R>, name: &str) -> io::Result<Vec<Relation>> {
    let mut found = Vec::new();
    let Some(part) = part(archive, name)? else { return Ok(found) };
    let mut xml = Xml::new(part);
    loop {
        match xml.next()? {
            Event::Start(element) if element.local_name().as_ref() == "Relationship" => {
                let text = |name| attribute(&element, name).map(|text| text.unwrap_or_default().into_owned());
                found.push(Relation { id: text("Id")?, kind: text("Type")?, target: text("Target")? });
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn sheets<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    workbook: &str,
    dates: &mut Dates,
) -> io::Result<Vec<Sheet>> {
    let (folder, name) = workbook.rsplit_once('/').unwrap_or(("", workbook));
    let relations = relations(archive, &resolved(folder, &format!("_rels/{name}.rels")))?;
    let mut found = Vec::new();
    let part = part(archive, workbook)?.ok_or_else(|| damaged("the workbook is not in the archive"))?;
    let mut xml = Xml::new(part);
    loop {
        match xml.next()? {
            Event::Start(element) if element.local_name().as_ref() == "sheet" => {
                let text = |name| attribute(&element, name).map(|text| text.unwrap_or_default().into_owned());
                let (name, id) = (text("name")?, text("id")?);
                // Charts and macros are sheets without cells.
                let relation = relations.iter().find(|relation| relation.id == id);
                if let Some(relation) = relation.filter(|relation| relation.kind.ends_with("/worksheet")) {
                    found.push(Sheet { name, part: resolved(folder, &relation.target) });
                }
            }
            Event::Start(element) if element.local_name().as_ref() == "workbookPr" => {
                let from_1904 = attribute(&element, "date1904")?;
                dates.from_1904 = from_1904.is_some_and(|value| value == "1" || value == "true");
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn is_filled<R: Read + Seek + Send>(archive: &mut ZipArchive<R>, name: &str) -> io::Result<bool> {
    let Some(part) = part(archive, name)? else { return Ok(false) };
    let dates = Dates::default();
    // The texts themselves do not matter.
    let mut cells = SheetRows::new(Xml::new(part), &[], &dates);
    cells.known = false;
    while let Some(row) = cells.next()? {
        if row.cells.iter().any(|cell| !cell.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The texts of the workbook, to which cells refer by index.
fn strings<R: Read + Seek>(place: &Position, archive: &mut ZipArchive<R>, name: &str) -> Result<Vec<String>> {
    let unreadable = |error| place.unreadable(error);
    let mut found = Vec::new();
    let Some(part) = part(archive, name).map_err(unreadable)? else { return Ok(found) };
    let (mut xml, mut pieces) = (Xml::new(part), MemoryMeter::default());
    loop {
        match xml.next().map_err(unreadable)? {
            Event::Start(element) if element.local_name().as_ref() == "si" => {
                let mut text = String::new();
                rich_text(&mut xml, &mut text).map_err(unreadable)?;
                pieces.take(place, STRING_OVERHEAD + text.len())?;
                found.push(text);
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

/// The text of an element that may be in pieces, without phonetic hints.
fn rich_text<R: Read>(xml: &mut Xml<R>, text: &mut String) -> io::Result<()> {
    let (mut depth, mut within) = (0_usize, false);
    loop {
        match xml.next()? {
            Event::Start(element) if element.local_name().as_ref() == "rPh" => xml.skip()?,
            Event::Start(element) => {
                depth += 1;
                within = element.local_name().as_ref() == "t";
            }
            Event::End(_) if depth == 0 => return Ok(()),
            Event::End(_) => {
                depth -= 1;
                within = false;
            }
            Event::Eof => return Err(ended()),
            event if within => append(&event, text)?,
            _ => {}
        }
    }
}

/// For each style of cells, whether it shows numbers as dates.
fn styles<R: Read + Seek>(archive: &mut ZipArchive<R>, name: &str) -> io::Result<Vec<bool>> {
    let (mut formats, mut styles, mut of_cells) = (Vec::new(), Vec::new(), false);
    let Some(part) = part(archive, name)? else { return Ok(styles) };
    let mut xml = Xml::new(part);
    loop {
        match xml.next()? {
            Event::Start(element) => match element.local_name().as_ref() {
                "numFmt" => {
                    let id = attribute(&element, "numFmtId")?.unwrap_or_default().into_owned();
                    let code = attribute(&element, "formatCode")?.unwrap_or_default();
                    if shows_date(&code) {
                        formats.push(id);
                    }
                }
                "cellXfs" => of_cells = true,
                "xf" if of_cells => {
                    let id = attribute(&element, "numFmtId")?.unwrap_or_default();
                    let own = matches!(id.parse(), Ok(14..=22 | 27..=36 | 45..=47 | 50..=58));
                    styles.push(own || formats.iter().any(|format| *format == id));
                }
                _ => {}
            },
            Event::End(element) if element.local_name().as_ref() == "cellXfs" => return Ok(styles),
            Event::Eof => return Ok(styles),
            _ => {}
        }
    }
}

/// Whether a format shows days or hours: it has their letters, but not in quotes, brackets or behind a backslash.
fn shows_date(code: &str) -> bool {
    let mut letters = code.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => drop(letters.by_ref().find(|letter| *letter == '"')),
            '[' => drop(letters.by_ref().find(|letter| *letter == ']')),
            '\\' | '_' | '*' => drop(letters.next()),
            // The day of "Red" or the second of "standard" would be in brackets or quotes.
            'y' | 'Y' | 'm' | 'M' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' => return true,
            'G' | 'g' => return false,
            _ => {}
        }
    }
    false
}

/// The rows of a sheet.
struct SheetRows<'a, R> {
    xml: Xml<R>,
    strings: &'a [String],
    dates: &'a Dates,
    /// The texts of the workbook are known.
    known: bool,
    row: usize,
    cells: Vec<String>,
    /// The number of cells of the row; the others are kept to reuse their memory.
    filled: usize,
}

impl<'a, R: Read> SheetRows<'a, R> {
    fn new(xml: Xml<R>, strings: &'a [String], dates: &'a Dates) -> Self {
        Self { xml, strings, dates, known: true, row: 0, cells: Vec::new(), filled: 0 }
    }

    /// The cells of a row that was opened.
    fn row(&mut self) -> io::Result<()> {
        self.filled = 0;
        let mut taken = 0;
        loop {
            let (column, style, kind) = match self.xml.next()? {
                Event::Start(element) if element.local_name().as_ref() == "c" => {
                    let (mut column, mut style, mut kind) = (self.filled, 0, Kind::Number);
                    for attribute in element.attributes().with_checks(false) {
                        let attribute = attribute.map_err(|error| damaged(error.to_string()))?;
                        match attribute.key.as_ref() {
                            "r" => column = column_of(&attribute.value).ok_or_else(unplaced)?,
                            "s" => style = attribute.value.parse().unwrap_or(0),
                            "t" => kind = Kind::of(&attribute.value),
                            _ => {}
                        }
                    }
                    (column, style, kind)
                }
                Event::End(element) if element.local_name().as_ref() == "row" => return Ok(()),
                Event::Eof => return Err(ended()),
                _ => continue,
            };
            if column < self.filled || column >= MOST_COLUMNS {
                return Err(unplaced());
            }
            if self.cells.len() <= column {
                self.cells.resize(column + 1, String::new());
            }
            self.cells[self.filled..=column].iter_mut().for_each(String::clear);
            self.filled = column + 1;
            let mut value = std::mem::take(&mut self.cells[column]);
            self.cell(&mut value)?;
            self.convert(&mut value, style, kind)?;
            taken += value.len();
            if taken > LONGEST_ROW {
                return Err(damaged("a row of it is longer than 16 MB"));
            }
            self.cells[column] = value;
        }
    }

    /// Reads the contents of an opened cell.
    fn cell(&mut self, value: &mut String) -> io::Result<()> {
        let mut within = false;
        loop {
            match self.xml.next()? {
                Event::Start(element) => match element.local_name().as_ref() {
                    "v" => within = true,
                    "is" => rich_text(&mut self.xml, value)?,
                    _ => self.xml.skip()?,
                },
                // The value ends, or the cell.
                Event::End(_) if within => within = false,
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(ended()),
                event if within => append(&event, value)?,
                _ => {}
            }
        }
    }

    /// Converts the contents of a cell to its text.
    fn convert(&self, value: &mut String, style: usize, kind: Kind) -> io::Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        match kind {
            Kind::Shared if self.known => {
                let text = value.trim().parse().ok().and_then(|index: usize| self.strings.get(index));
                value.clone_from(text.ok_or_else(|| damaged("a cell has a text that is not there"))?);
            }
            Kind::Truth => *value = if value.trim() == "0" { "FALSE".into() } else { "TRUE".into() },
            Kind::Error => *value = "NA".into(),
            Kind::Number if self.dates.styles.get(style) == Some(&true) => {
                if let Ok(day) = value.trim().parse() {
                    *value = date(day, self.dates.from_1904);
                }
            }
            Kind::Shared | Kind::Number | Kind::Text => {}
        }
        Ok(())
    }
}

impl<R: Read + Send> RowSource for SheetRows<'_, R> {
    fn next(&mut self) -> io::Result<Option<SheetRow<'_>>> {
        loop {
            match self.xml.next()? {
                Event::Start(element) if element.local_name().as_ref() == "row" => {
                    let number = attribute(&element, "r")?;
                    let number = number.map_or(Ok(self.row + 1), |number| number.trim().parse());
                    self.row = number.map_err(|_| damaged("a row has no number"))?;
                    break;
                }
                Event::End(element) if element.local_name().as_ref() == "sheetData" => return Ok(None),
                Event::Eof => return Err(ended()),
                _ => {}
            }
        }
        self.row()?;
        Ok(Some(SheetRow { number: self.row, times: 1, cells: &self.cells[..self.filled] }))
    }
}

/// The type of a cell.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    /// The index of a text of the workbook.
    Shared,
    Text,
    Truth,
    Error,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "s" => Self::Shared,
            "b" => Self::Truth,
            "e" => Self::Error,
            "n" => Self::Number,
            _ => Self::Text,
        }
    }
}

/// The column of a cell, from 0, by its name, as `C7`.
fn column_of(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0_usize, |number, letter| {
        number.saturating_mul(26).saturating_add(usize::from(letter.to_ascii_uppercase() - b'A') + 1)
    });
    number.checked_sub(1)
}

fn unplaced() -> io::Error {
    damaged("a cell is not where it says")
}

/// The Gregorian date of a number of days in ISO 8601, with the time unless it is midnight.
fn date(days: f64, from_1904: bool) -> String {
    // Excel counts from the end of 1899 and treats 1900 as a leap year, so that dates are right from March 1900 on.
    let since_1970 = if from_1904 { 24_107.0 } else { 25_569.0 };
    let seconds = ((days - since_1970) * 86_400.0).round();
    if !(-3e10..3e11).contains(&seconds) {
        return days.to_string();
    }
    let (day, time) = ((seconds as i64).div_euclid(86_400), (seconds as i64).rem_euclid(86_400));
    // Years that start in March end with the leap day; 400 of them have 146 097 days.
    let from_march = day + 719_468;
    let (era, of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let clock = if time == 0 {
        String::new()
    } else {
        format!(" {:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)
    };
    format!("{year:04}-{month:02}-{day:02}{clock}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_dates_are_recognised() {
        for code in ["yyyy-mm-dd", "d/m/yy", "[h]:mm", "\"day\" d", "[$-409]h:mm AM/PM;@"] {
            assert!(shows_date(code), "{code}");
        }
        for code in ["General", "0.00", "#,##0 \"days\"", "[Red]0.0", "0\\d", "0.00E+00", "@", ""] {
            assert!(!shows_date(code), "{code}");
        }
    }

    #[test]
    fn days_have_the_dates_that_excel_shows() {
        let days = [
            (61.0, "1900-03-01"),
            (45_351.0, "2024-02-29"),
            (45_351.5, "2024-02-29 12:00:00"),
            (36_526.0, "2000-01-01"),
        ];
        days.into_iter().for_each(|(day, shown)| assert_eq!(date(day, false), shown));
        assert_eq!(date(0.0, true), "1904-01-01");
        assert_eq!(date(1e300, false), 1e300.to_string());
    }

    #[test]
    fn cells_are_where_their_names_say() {
        assert_eq!((column_of("A1"), column_of("XFD9"), column_of("aa3")), (Some(0), Some(16_383), Some(26)));
        assert_eq!((column_of("7"), column_of("")), (None, None));
    }
}
