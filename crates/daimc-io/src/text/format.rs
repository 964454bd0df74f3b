//! What a text looks like: separator, header, names. Told from its first records.

use std::io::Read;
use std::path::Path;

use daimc::text::list;
use memchr::{memchr, memchr_iter};

use super::fault::FaultKind;
use super::fields::{self, Field, Separator};
use super::layout::{ABOUT_GENES, empty_record, is_feature_counts, is_gct};
use super::number::{is_number, is_number_or_comma};
use crate::input::{self, Input};
use crate::{Error, Place, Reading, Result};

/// Bytes from which the format is told, if they hold two records.
const HEAD: usize = 1 << 16;

/// Where more bytes than this hold no whole record, this is no table, or a quote is open that nobody will close.
const LONGEST_HEAD: usize = 1 << 28;

/// Records from which the separator is told.
const SAMPLE: usize = 50;

/// What parts of a record of a sheet are called.
const CELL: &str = "cell";

/// Separators, the likeliest first.
const SEPARATORS: [Separator; 5] = [
    Separator::Byte(b'\t'),
    Separator::Byte(b','),
    Separator::Byte(b';'),
    Separator::Byte(b'|'),
    Separator::Blanks,
];

/// What people write above a column of IDs, in lower case.
const ID_TITLES: [&str; 14] = [
    "", "id", "ids", "index", "name", "names", "sample", "samples", "instance", "gene", "feature", "barcode",
    "cell", "rownames",
];

/// What a text looks like.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub separator: Separator,
    /// The names of the columns of values.
    pub header: Option<Vec<String>>,
    /// Whether the first field of a record is its name.
    pub named: bool,
    /// How many fields a record has.
    pub fields: usize,
    /// Whether records are features.
    pub transposed: bool,
    /// Where the records start, in bytes.
    pub start: usize,
    /// Where the records start, in lines from 1.
    pub line: usize,
    /// What tells how many fields there should be.
    pub model: &'static str,
    /// What parts of a record are called.
    pub unit: &'static str,
    /// Which fields of a record are no values; empty where all are.
    pub skip: Vec<Skip>,
    /// Whether decimals are written with a comma.
    pub comma: bool,
    /// How many records there are, where the file says.
    pub records: Option<usize>,
    /// The titles of columns in which the first records have text.
    pub texts: Vec<String>,
    /// The titles of columns that were left out because that was asked for.
    pub dropped: Vec<String>,
    /// What people should know.
    pub remarks: Vec<String>,
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// It is a value, or the name of the record.
    No,
    /// Its column is left out.
    Column,
    /// Nothing is expected in it: its column has no title.
    Untitled,
}

impl Format {
    /// Records of so many fields, as `model` tells; nothing else is known of them.
    pub fn new(
        separator: Separator,
        fields: usize,
        model: &'static str,
        how: Reading,
        unit: &'static str,
    ) -> Self {
        Self {
            separator,
            header: None,
            named: !how.no_ids,
            fields,
            transposed: how.transpose,
            start: 0,
            line: 0,
            model,
            unit,
            skip: Vec::new(),
            comma: how.decimal_comma,
            records: None,
            texts: Vec::new(),
            dropped: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// How many values a record has.
    pub fn values(&self) -> usize {
        let skipped = self.skip.iter().filter(|skip| **skip != Skip::No).count();
        self.fields - usize::from(self.named) - skipped
    }

    /// The title of the value in a field of a record, from 0.
    pub fn title(&self, field: usize) -> Option<&String> {
        let before = (0..field).filter(|field| self.skip.get(*field).is_none_or(|skip| *skip == Skip::No));
        self.header.as_ref()?.get(before.count().checked_sub(usize::from(self.named))?)
    }

    /// Leaves out the fields for which this holds of their number, from 0, and their title.
    fn leave_out(&mut self, how: Skip, mut which: impl FnMut(usize, &str) -> bool) -> Vec<String> {
        let Some(header) = self.header.take() else { return Vec::new() };
        if self.skip.is_empty() {
            self.skip = vec![Skip::No; self.fields];
        }
        let (mut kept, mut out) = (Vec::new(), Vec::new());
        let mut titles = header.into_iter();
        for field in usize::from(self.named)..self.fields {
            if self.skip[field] != Skip::No {
                continue;
            }
            let Some(title) = titles.next() else { break };
            if which(field, &title) {
                self.skip[field] = how;
                out.push(title);
            } else {
                kept.push(title);
            }
        }
        self.header = Some(kept);
        if self.skip.iter().all(|skip| *skip == Skip::No) {
            self.skip.clear();
        }
        out
    }

    /// What the first fields of the records are.
    pub fn names_are(&self) -> &'static str {
        if self.transposed { "feature" } else { "ID" }
    }

    /// Says that a record has another number of fields.
    pub fn ragged(&self, found: usize) -> String {
        let (plural, expected, model) = (if found == 1 { "" } else { "s" }, self.fields, self.model);
        if self.unit == CELL {
            return format!(
                "{found} cell{plural} where {model} has {expected}: give every column a title, and delete what is above \
                 the header or beside the table"
            );
        }
        format!(
            "{found} field{plural} where {model} has {expected}: look for a missing separator, or for one within a \
             value that should be in quotes"
        )
    }
}

/// Reads the start of a text and tells its format. Also returns what was read.
pub(super) fn detect(path: &Path, input: &mut Input<'_>, how: Reading) -> Result<(Format, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let wanted = head.len().max(HEAD);
        let read = input.by_ref().take(wanted as u64).read_to_end(&mut head);
        let complete = read.map_err(|error| input::failed(path, error))? < wanted;
        let look = Look { path, text: &head, complete, tabs: input.tabs };
        if let Some(format) = look.format(how)? {
            return Ok((format, head));
        }
    }
}

/// A look at the start of a text.
pub(super) struct Look<'a> {
    pub path: &'a Path,
    pub text: &'a [u8],
    /// Whether that is all there is.
    pub complete: bool,
    /// Whether it is known that tabs separate fields.
    pub tabs: bool,
}

/// The records at the start of a text, split by some separator.
struct Sample {
    separator: Separator,
    counts: Vec<usize>,
    /// Of the fields below the first record and after the first column, the share of numbers.
    numeric: f64,
    /// Whether every record but the first ends with an empty field.
    trailing: bool,
    /// Behind the last field that is filled in a record but the first.
    filled: usize,
}

impl Look<'_> {
    /// The format, or `None` if more text is needed to tell.
    fn format(&self, how: Reading) -> Result<Option<Format>> {
        if let Some(has_metadata) = is_gct(self.text) {
            return self.gct(has_metadata, how)?.map(|format| self.finished(format, how)).transpose();
        }
        let (start, comment) = self.skip_comments()?;
        if start == self.text.len() {
            return if self.complete { Err(self.empty()) } else { Ok(None) };
        }
        let sample = self.sample(start, how.decimal_comma);
        if !self.complete && sample.as_ref().is_none_or(|sample| sample.counts.len() < 2) {
            return if self.text.len() > LONGEST_HEAD && sample.is_none() {
                Err(self.error(start, None, self.why_no_record(start)))
            } else {
                Ok(None)
            };
        }
        let Some(sample) = sample.or_else(|| how.no_ids.then(|| self.one_column(start))) else {
            return Err(self.only_one_column(start));
        };
        let (first, next) = self.record(start, sample.separator)?;
        let first_width = first.len();
        let comment = comment.and_then(|at| self.comment_header(at, &sample, first.len()));
        let mut format =
            Format { start, ..Format::new(sample.separator, first.len(), "the first row", how, self.unit()) };
        let row_names_only = sample.usual() == first.len() + 1 && !how.no_ids && !sample.trailing;
        if let Some(header) = comment.filter(|_| !is_header(&first, how)) {
            format.header = Some(header);
        } else if row_names_only {
            // R writes no title above row names.
            format.fields += 1;
            format.header = Some(first);
            format.start = next;
        } else if (how.transpose && !how.no_ids) || is_header(&first, how) {
            format.model = "the header";
            format.header = Some(first);
            format.start = next;
        }
        format.line = self.line(format.start);
        let counts = format.header.as_ref().is_some_and(|header| is_feature_counts(header)) && !how.no_ids;
        if let Some(header) = &mut format.header
            && header.len() == format.fields
            && format.named
        {
            header.remove(0);
        }
        if counts {
            format.transposed = true;
            let out = format.leave_out(Skip::Column, |field, _| field <= ABOUT_GENES);
            format.remarks.push(format!(
                "is a table of featureCounts: genes are taken for features, and {} are left out",
                list(out)
            ));
        }
        let filled = sample.filled;
        format.leave_out(Skip::Untitled, |field, title| title.is_empty() && field >= filled);
        let header_at = start;
        let format = self.finished(format, how)?;
        if format.transposed
            && !how.no_ids
            && let Some(empty) =
                format.header.as_ref().and_then(|header| header.iter().position(String::is_empty))
        {
            let kept = (0..format.fields)
                .filter(|field| format.skip.get(*field).is_none_or(|skip| *skip == Skip::No));
            let field = kept.skip(1).nth(empty).unwrap_or(0);
            let reason = "the ID is empty: give the column an ID or delete it";
            return Err(self.error(header_at, Some(field + 1 - (format.fields - first_width)), reason));
        }
        if format.fields < 2 && !how.no_ids {
            return Err(self.only_one_column(start));
        }
        Ok(Some(format))
    }

    /// What parts of a record are called.
    pub fn unit(&self) -> &'static str {
        if self.tabs { CELL } else { "field" }
    }

    /// Leaves out what was asked to be, and looks for columns of text.
    fn finished(&self, mut format: Format, how: Reading) -> Result<Format> {
        let asked = |title: &str| how.drop.iter().any(|name| name == title);
        format.dropped = format.leave_out(Skip::Column, |_, title| asked(title));
        if format.values() == 0 && !format.dropped.is_empty() {
            return Err(Error::in_file(self.path, "no column is left of those that were not dropped"));
        }
        format.texts = self.text_columns(&format);
        Ok(format)
    }

    /// The titles of the columns in which most of the first records have neither a number nor nothing.
    fn text_columns(&self, format: &Format) -> Vec<String> {
        let (mut counts, mut records, mut at) = (vec![0_usize; format.fields], 0, format.start);
        while records < SAMPLE && at < self.text.len() {
            let Ok((found, next)) = fields::fields(self.text, at, format.separator) else { break };
            if next == self.text.len() && !self.complete {
                break;
            }
            for (count, field) in counts.iter_mut().zip(&found) {
                *count += usize::from(!is_number_or_comma(&field.content(self.text)));
            }
            (records, at) = (records + 1, next);
        }
        let skipped = |field: &usize| format.skip.get(*field).is_some_and(|skip| *skip != Skip::No);
        let texts = (usize::from(format.named)..format.fields).filter(|field| !skipped(field));
        texts
            .filter(|field| 2 * counts[*field] > records)
            .filter_map(|field| format.title(field).cloned())
            .collect()
    }

    /// Why no separator makes a whole record of so much text.
    fn why_no_record(&self, start: usize) -> &'static str {
        let open = |&separator: &Separator| {
            fields::fields(self.text, start, separator).is_err_and(|kind| kind == FaultKind::OpenQuote)
        };
        if SEPARATORS.iter().any(open) {
            return FaultKind::OpenQuote.reason("");
        }
        "the line is longer than 256 MB: put each instance on a line of its own, or use a binary format"
    }

    /// Where the records start, and the last of the lines before them that start with `#`.
    pub fn skip_comments(&self) -> Result<(usize, Option<usize>)> {
        let text = self.text;
        let utf16 = text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]);
        if utf16 || memchr(0, &text[..text.len().min(HEAD)]).is_some() {
            let reason = if utf16 {
                "the text is UTF-16: save the file in UTF-8"
            } else {
                "this is not text: the name of the file should end with the format it has (.npy, .mat, …)"
            };
            return Err(Error::in_file(self.path, reason));
        }
        let mut at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut comment = None;
        loop {
            let rest = &text[at..];
            let blank = fields::blank_line(text, at, Separator::Blanks);
            if rest.first() == Some(&b'#') {
                comment = Some(at);
            } else if blank.is_none() || rest.is_empty() {
                return Ok((at, comment));
            }
            at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        }
    }

    /// The first records, split by the separator under which they look most like a table; `None` if they are one
    /// column under each.
    fn sample(&self, start: usize, comma: bool) -> Option<Sample> {
        let separators = if self.tabs { &SEPARATORS[..1] } else { &SEPARATORS };
        let separators = separators.iter().filter(|separator| !comma || **separator != Separator::Byte(b','));
        let samples = separators.map(|&separator| self.split(start, separator));
        let mut scored: Vec<(f64, Sample)> =
            samples.map(|sample| (sample.score(), sample)).filter(|(score, _)| *score > 0.0).collect();
        // Blanks also stand within names; a separator that every record has as often does not.
        let even =
            |sample: &Sample| sample.counts.len() > 1 && sample.counts.iter().all(|c| *c == sample.counts[0]);
        if scored.iter().any(|(_, sample)| sample.separator != Separator::Blanks && even(sample)) {
            scored.retain(|(_, sample)| sample.separator != Separator::Blanks);
        }
        scored
            .into_iter()
            .reduce(|best, other| if other.0 > best.0 { other } else { best })
            .map(|(_, sample)| sample)
    }

    /// The separator, if there is more than one column.
    pub fn separator(&self, start: usize) -> Option<Separator> {
        self.sample(start, false).map(|sample| sample.separator)
    }

    fn split(&self, start: usize, separator: Separator) -> Sample {
        let (mut counts, mut at) = (Vec::new(), start);
        let (mut numbers, mut cells, mut trailing, mut filled) = (0_usize, 0_usize, true, 0);
        while counts.len() < SAMPLE && at < self.text.len() {
            let blank = fields::blank_line(self.text, at, separator).is_some();
            if blank || (!counts.is_empty() && empty_record(self.text, at, separator).is_some()) {
                break;
            }
            let Ok((found, next)) = fields::fields(self.text, at, separator) else {
                // Broken, or its end is not read yet; the former speaks against the separator.
                if self.complete {
                    counts.push(0);
                }
                break;
            };
            if next == self.text.len() && !self.complete {
                break;
            }
            let empty = |field: &Field| field.content(self.text).is_empty();
            if !counts.is_empty() {
                cells += found.len() - 1;
                numbers +=
                    found[1..].iter().filter(|field| is_number_or_comma(&field.content(self.text))).count();
                trailing &= found.last().is_some_and(empty);
                filled = filled.max(found.iter().rposition(|field| !empty(field)).map_or(0, |last| last + 1));
            }
            counts.push(found.len());
            at = next;
        }
        Sample { separator, counts, numeric: numbers as f64 / cells.max(1) as f64, trailing, filled }
    }

    fn one_column(&self, start: usize) -> Sample {
        self.split(start, SEPARATORS[0])
    }

    /// A comment just above the records that names their columns, as in tables of QIIME (`#OTU ID`).
    fn comment_header(&self, at: usize, sample: &Sample, expected: usize) -> Option<Vec<String>> {
        if sample.separator == Separator::Blanks {
            return None;
        }
        let (mut header, _) = self.record(at, sample.separator).ok()?;
        header[0] = header[0].trim_start_matches('#').trim().into();
        (header.len() == expected).then_some(header)
    }

    pub fn record(&self, at: usize, separator: Separator) -> Result<(Vec<String>, usize)> {
        let (found, next) =
            fields::fields(self.text, at, separator).map_err(|kind| self.error(at, None, kind.reason("")))?;
        let text = |(column, field): (usize, Field)| {
            field.text(self.text).map_err(|kind| self.error(at, Some(column + 1), kind.reason("")))
        };
        Ok((found.into_iter().enumerate().map(text).collect::<Result<_>>()?, next))
    }

    /// The line of a byte.
    pub fn line(&self, at: usize) -> usize {
        memchr_iter(b'\n', &self.text[..at]).count() + 1
    }

    pub fn error(&self, at: usize, column: Option<usize>, reason: &str) -> Error {
        let place = Place { line: Some(self.line(at)), column, ..Place::file(self.path) };
        Error::Data { place, reason: reason.into() }
    }

    pub fn empty(&self) -> Error {
        Error::in_file(self.path, "the file is empty: a row per instance is expected, below a header")
    }

    fn only_one_column(&self, start: usize) -> Error {
        let reason = "only one column is found: separate columns by tab, comma, semicolon, | or blanks (where the \
                      one column holds values, say that there are no IDs: --no-ids)";
        self.error(start, None, reason)
    }
}

impl Sample {
    /// The records below the first, or the first if there is no other.
    fn below(&self) -> &[usize] {
        if self.counts.len() > 1 { &self.counts[1..] } else { &self.counts }
    }

    fn times(&self, count: usize) -> usize {
        self.below().iter().filter(|&&other| other == count).count()
    }

    /// How many fields most records have; of two numbers that are as frequent, that of the first record.
    fn usual(&self) -> usize {
        let weight = |&count: &usize| (self.times(count), count == self.counts[0], count);
        self.below().iter().copied().max_by_key(weight).unwrap_or(0)
    }

    /// How much the records look like a table: by equal numbers of fields, and by numbers in them.
    fn score(&self) -> f64 {
        let usual = self.usual();
        if usual < 2 {
            return 0.0;
        }
        let first = self.counts.len() > 1 && (usual - 1..=usual).contains(&self.counts[0]);
        let fitting = self.times(usual) + usize::from(first);
        fitting as f64 / self.counts.len() as f64 * (1.0 + 3.0 * self.numeric)
    }
}

/// Whether a first record is a header: one of its fields (but for the first, where that is an ID) is no number,
/// or a word such as `id` stands above the IDs.
fn is_header(first: &[String], how: Reading) -> bool {
    let values = if how.no_ids { first } else { &first[1..] };
    let is_number = if how.decimal_comma { is_number_or_comma } else { is_number };
    values.iter().any(|field| !is_number(field.as_bytes()))
        || (!how.no_ids && ID_TITLES.contains(&first[0].to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_not_an_open_quote() {
        let why = |text: &str| {
            let look = Look { path: Path::new("a.csv"), text: text.as_bytes(), complete: false, tabs: false };
            look.why_no_record(0)
        };
        assert!(why("id,a,b,\"c\",it's 5\" wide").contains("longer than 256 MB"));
        for text in ["\"id,a,b", "id,a,\"b", "\"id\"\t\"a"] {
            assert!(why(text).contains("never closed"), "{text}");
        }
    }
}
