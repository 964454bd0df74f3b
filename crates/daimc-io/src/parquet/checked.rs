//! Checks counts and lengths of pages before a decoder allocates memory for them.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};

use crate::memory;

/// Smaller texts of a page are decoded without a check of the available memory.
const SMALL: u64 = 1 << 24;

/// The pages of a column.
pub(super) struct Checked<P> {
    pages: P,
    /// The column may have nulls, so that levels precede the values.
    optional: bool,
    /// The rows of the group, the maximum of a page.
    rows: usize,
}

impl<P: PageReader> Checked<P> {
    pub(super) fn new(pages: P, optional: bool, rows: usize) -> Self {
        Self { pages, optional, rows }
    }

    /// Whether the sizes of a page are possible; `None` if it ends too early.
    fn possible(&self, page: &Page) -> Option<bool> {
        let (buf, count, encoding, start) = match page {
            // Every entry takes at least a byte.
            Page::DictionaryPage { buf, num_values, .. } => return Some(*num_values as usize <= buf.len()),
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let levels = match def_level_encoding {
                    _ if !self.optional => 0,
                    Encoding::RLE => 4 + u32::from_le_bytes(*buf.first_chunk()?) as usize,
                    _ => num_values.div_ceil(8) as usize,
                };
                (buf, *num_values as usize, encoding, levels)
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf, *num_values as usize, encoding, levels)
            }
        };
        if count > self.rows {
            return Some(false);
        }
        let mut values = Deltas { rest: buf.get(start..)? };
        match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let lengths = values.read(count)?;
                Some(fit(&vec![0; lengths.len()], &lengths, values.rest.len()))
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = values.read(count)?;
                let suffixes = values.read(count)?;
                Some(fit(&prefixes, &suffixes, values.rest.len()))
            }
            _ => Some(true),
        }
    }
}

impl<P: PageReader> PageReader for Checked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match page.as_ref().map_or(Some(true), |page| self.possible(page)) {
            Some(true) => Ok(page),
            Some(false) | None => Err(ParquetError::General("a page claims more than it holds".into())),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl<P: PageReader> Iterator for Checked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Whether texts can consist of a prefix of the previous text and a suffix out of `letters` bytes, and whether there is memory for
/// them.
fn fit(prefixes: &[i32], suffixes: &[i32], letters: usize) -> bool {
    let (mut before, mut used, mut whole) = (0_u64, 0_u64, 0_u64);
    for (&prefix, &suffix) in prefixes.iter().zip(suffixes) {
        let (Ok(prefix), Ok(suffix)) = (u64::try_from(prefix), u64::try_from(suffix)) else { return false };
        used += suffix;
        if prefix > before || used > letters as u64 {
            return false;
        }
        before = prefix + suffix;
        whole += before;
    }
    let fits = whole < SMALL || memory::available().is_none_or(|available| whole < available);
    prefixes.len() == suffixes.len() && fits
}

/// Integers, stored as differences (`DELTA_BINARY_PACKED`).
struct Deltas<'a> {
    rest: &'a [u8],
}

impl<'a> Deltas<'a> {
    /// The next list of at most `most` numbers; `None` if it is longer or ends too early.
    fn read(&mut self, most: usize) -> Option<Vec<i32>> {
        let size = usize::try_from(self.varint()?).ok()?;
        let parts = usize::try_from(self.varint()?).ok()?;
        let count = usize::try_from(self.varint()?).ok()?;
        let mut last = self.zigzag()?;
        if count > most || parts == 0 || !size.is_multiple_of(parts) || !(size / parts).is_multiple_of(8) {
            return None;
        }
        let per_part = size / parts;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(count).ok()?;
        numbers.extend((count > 0).then_some(last as i32));
        while numbers.len() < count {
            let least = self.zigzag()?;
            let widths = self.take(parts)?;
            for &width in widths {
                let wanted = per_part.min(count - numbers.len());
                if wanted == 0 {
                    break;
                }
                if width > 64 || per_part == 0 {
                    return None;
                }
                let width = usize::from(width);
                let length = (per_part / 8 * width).min(self.rest.len());
                let packed = self.take(length)?;
                for k in 0..wanted {
                    last =
                        last.wrapping_add(least).wrapping_add(bits(packed, k * width, width)?.cast_signed());
                    numbers.push(last as i32);
                }
            }
        }
        Some(numbers)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }
}

/// The `width` bits from bit `start` on, least significant first.
fn bits(bytes: &[u8], start: usize, width: usize) -> Option<u64> {
    let mut value = 0;
    for (k, bit) in (start..start + width).enumerate() {
        value |= u64::from(bytes.get(bit / 8)? >> (bit % 8) & 1) << k;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_added_up() {
        // 7 5 3 1 2 3 4 5, the example of the format's specification: a block of 128 in 4 parts.
        let bytes = [0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 9];
        let mut deltas = Deltas { rest: &bytes };
        assert_eq!(deltas.read(8).unwrap(), [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(deltas.rest, [9]);
        assert_eq!(Deltas { rest: &bytes }.read(7), None);
        assert_eq!(Deltas { rest: &bytes[..11] }.read(8), None);
    }

    #[test]
    fn texts_need_as_many_letters_as_the_page_has() {
        assert!(fit(&[0, 2], &[3, 1], 4));
        assert!(!fit(&[0, 4], &[3, 1], 4));
        assert!(!fit(&[0, 2], &[3, 2], 4));
        assert!(!fit(&[0, -1], &[3, 1], 4));
        assert!(!fit(&[0], &[3, 1], 4));
    }
}
