//! Detects the format of a text from its first records.

use std::io::Read;
use std::path::Path;

use daimc_core::text::list;

use super::fields::{self, Field, Separator};
use super::format::{Format, Skip};
use super::layout::{ABOUT_GENES, empty_record, is_feature_counts, is_gct};
use super::look::{HEAD, Look, SEPARATORS};
use super::number::{is_number, is_number_or_comma};
use crate::input::{self, Input};
use crate::{Error, Reading, Result};

/// The maximum length of a record; a longer text is no table, or has an unclosed quote.
const LONGEST_HEAD: usize = 1 << 28;

/// Records from which the separator is detected.
const SAMPLE: usize = 50;

/// Usual titles of a column of IDs, in lower case.
const ID_TITLES: [&str; 14] = [
    "", "id", "ids", "index", "name", "names", "sample", "samples", "instance", "gene", "feature", "barcode",
    "cell", "rownames",
];

/// Reads the start of a text and detects its format. Also returns the text that was read.
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

/// The records at the start of a text, split by some separator.
struct Sample {
    separator: Separator,
    counts: Vec<usize>,
    /// The share of numbers among the fields below the first record and after the first column.
    numeric: f64,
    /// Every record except the first ends with an empty field.
    trailing: bool,
    /// The index after the last field that is filled in a record other than the first.
    filled: usize,
}

impl Look<'_> {
    /// The format, or `None` if more text is needed.
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

    /// Leaves out columns that [`Reading::drop`] names, and looks for columns of text.
    fn finished(&self, mut format: Format, how: Reading) -> Result<Format> {
        let asked = |title: &str| how.drop.iter().any(|name| name == title);
        format.dropped = format.leave_out(Skip::Column, |_, title| asked(title));
        if format.values() == 0 && !format.dropped.is_empty() {
            return Err(Error::in_file(self.path, "--drop removes every column"));
        }
        format.texts = self.text_columns(&format);
        Ok(format)
    }

    /// The titles of the columns in which most of the first records have text.
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

    /// The first records, split by the separator that fits best; `None` if all separators give one column.
    fn sample(&self, start: usize, comma: bool) -> Option<Sample> {
        let separators = if self.tabs { &SEPARATORS[..1] } else { &SEPARATORS };
        let separators = separators.iter().filter(|separator| !comma || **separator != Separator::Byte(b','));
        let samples = separators.map(|&separator| self.split(start, separator));
        let mut scored: Vec<(f64, Sample)> =
            samples.map(|sample| (sample.score(), sample)).filter(|(score, _)| *score > 0.0).collect();
        // Names may contain blanks; prefer a separator that all records have equally often.
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
                // Invalid, which counts against the separator, or not read to its end.
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
}

impl Sample {
    /// The records below the first, or the first if there is no other.
    fn below(&self) -> &[usize] {
        if self.counts.len() > 1 { &self.counts[1..] } else { &self.counts }
    }

    fn times(&self, count: usize) -> usize {
        self.below().iter().filter(|&&other| other == count).count()
    }

    /// The most frequent number of fields; ties are resolved by the first record.
    fn usual(&self) -> usize {
        let weight = |&count: &usize| (self.times(count), count == self.counts[0], count);
        self.below().iter().copied().max_by_key(weight).unwrap_or(0)
    }

    /// How well the records fit a table: by equal numbers of fields, and by the share of numbers.
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

/// Whether a first record is a header: a field other than the ID is not a number, or the first one is a usual title of IDs.
fn is_header(first: &[String], how: Reading) -> bool {
    let values = if how.no_ids { first } else { &first[1..] };
    let is_number = if how.decimal_comma { is_number_or_comma } else { is_number };
    values.iter().any(|field| !is_number(field.as_bytes()))
        || (!how.no_ids && ID_TITLES.contains(&first[0].to_lowercase().as_str()))
}
