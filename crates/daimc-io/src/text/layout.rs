//! Text formats with a recognisable start: GCT and featureCounts.

use super::fields::{self, Separator};
use super::format::{Format, Skip};
use super::look::Look;
use crate::{Reading, Result};

/// The columns of featureCounts before those of the samples.
const FEATURE_COUNTS: [&str; 6] = ["Geneid", "Chr", "Start", "End", "Strand", "Length"];

/// Whether a GCT text has metadata of features and samples (version 1.3) or not (1.2); `None` for other formats.
pub(super) fn is_gct(text: &[u8]) -> Option<bool> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let has_metadata = match text.first_chunk()? {
        b"#1.2" => false,
        b"#1.3" => true,
        _ => return None,
    };
    text.get(4).is_none_or(u8::is_ascii_whitespace).then_some(has_metadata)
}

impl Look<'_> {
    /// The format of a GCT file: two lines of its own, then features in rows, with columns about them before the values and possibly
    /// rows about the samples. `None` if more text is needed.
    pub(super) fn gct(&self, has_metadata: bool, how: Reading) -> Result<Option<Format>> {
        let separator = Separator::Byte(b'\t');
        let Some(second) = self.below(0) else { return self.more(0) };
        let Some(mut at) = self.below(second) else { return self.more(second) };
        let sizes = String::from_utf8_lossy(&self.text[second..at]);
        let sizes: Option<Vec<usize>> = sizes.split_whitespace().map(|size| size.parse().ok()).collect();
        let (rows, columns, about_rows, about_columns) = match (has_metadata, sizes.as_deref()) {
            (false, Some(&[rows, columns])) => (rows, columns, 1, 0),
            (true, Some(&[rows, columns, about_rows, about_columns])) => {
                (rows, columns, about_rows, about_columns)
            }
            _ => {
                let reason = if has_metadata {
                    "four numbers are expected in a GCT file: of rows, of columns, and of those that are about them"
                } else {
                    "two numbers are expected in a GCT file: of rows and of columns"
                };
                return Err(self.error(second, None, reason));
            }
        };
        let header_at = at;
        // The header and the rows about the samples.
        for _ in 0..=about_columns {
            match self.below(at) {
                Some(next) => at = next,
                None => return self.more(at),
            }
        }
        let (mut header, _) = self.record(header_at, separator)?;
        let expected = columns.saturating_add(about_rows).saturating_add(1);
        if header.len() != expected {
            let reason = format!(
                "{} titles, but line 2 says {columns} columns, before which there are {}: correct one of the two lines",
                header.len(),
                about_rows.saturating_add(1)
            );
            return Err(self.error(header_at, None, &reason));
        }
        let mut skip = vec![Skip::No; expected];
        skip[1..=about_rows].fill(Skip::Column);
        header.drain(..=about_rows);
        if let Some(empty) = header.iter().position(String::is_empty) {
            let reason = "the ID is empty: give the column an ID or delete it";
            return Err(self.error(header_at, Some(empty + about_rows + 2), reason));
        }
        Ok(Some(Format {
            header: Some(header),
            named: true,
            transposed: true,
            start: at,
            line: self.line(at),
            skip,
            records: Some(rows),
            ..Format::new(separator, expected, "the header", how, self.unit())
        }))
    }

    /// The start of the next line, if this one is complete.
    fn below(&self, at: usize) -> Option<usize> {
        memchr::memchr(b'\n', &self.text[at..]).map(|newline| at + newline + 1)
    }

    fn more(&self, at: usize) -> Result<Option<Format>> {
        if self.complete {
            return Err(self.error(at, None, "the file ends here, but a GCT file goes on: copy it again"));
        }
        Ok(None)
    }
}

/// Whether a header is that of featureCounts.
pub(super) fn is_feature_counts(header: &[String]) -> bool {
    header.len() > FEATURE_COUNTS.len()
        && header.iter().zip(FEATURE_COUNTS).all(|(title, known)| title == known)
}

/// The number of its columns about the genes, without their names.
pub(super) const ABOUT_GENES: usize = FEATURE_COUNTS.len() - 1;

/// The end of the line at `at`, if all of its fields are empty: spreadsheets write such lines below a table.
pub(super) fn empty_record(text: &[u8], at: usize, separator: Separator) -> Option<usize> {
    let Separator::Byte(byte) = separator else { return None };
    let rest = &text[at..];
    let length = rest.iter().take_while(|other| **other == byte || **other == b' ').count();
    fields::record_end(text, at + length)
}
