//! The pages of a column, whose headers are checked before memory is allocated.

use std::io::{BufRead, BufReader, Read};

use ::parquet::basic::Compression;
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use crate::input::Random;
use crate::memory;

/// Larger pages are compared with the available memory.
const LARGE: u64 = 1 << 24;

/// A file that is read page by page, each from its header on.
pub(super) struct Pages {
    file: Random,
    growth: u64,
}

impl Pages {
    pub(super) fn new(file: &Random, codec: Compression) -> Self {
        // These decoders allocate the size in the header at once, the others as they fill it.
        let growth = match codec {
            Compression::SNAPPY => 22,
            Compression::LZ4 | Compression::LZ4_RAW => 255,
            _ => u64::MAX,
        };
        Self { file: file.clone(), growth }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.length()
    }
}

impl ChunkReader for Pages {
    type T = BufReader<Random>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = self.file.get_read(start)?;
        let (claimed, stored) =
            sizes(reader.fill_buf()?).ok_or_else(|| ParquetError::General("a page has no header".into()))?;
        // An almost empty page has some bytes in addition to its values.
        if claimed > stored.saturating_add(64).saturating_mul(self.growth) {
            return Err(ParquetError::General("a page claims more than it can hold".into()));
        }
        if claimed >= LARGE && memory::available().is_some_and(|available| claimed > available) {
            let size = claimed as f64 / 1e6;
            return Err(ParquetError::General(format!(
                "a page needs {size:.0} MB of memory, more than is available"
            )));
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.file.get_bytes(start, length)
    }
}

impl Length for Random {
    fn len(&self) -> u64 {
        self.length()
    }
}

impl ChunkReader for Random {
    type T = BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(self.at(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = Vec::new();
        // Memory grows with the bytes that were read: the length may be beyond the end of the file.
        self.at(start).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are not there")));
        }
        Ok(bytes.into())
    }
}

/// Uncompressed and compressed size of a page: the second and the third number of its header.
fn sizes(mut header: &[u8]) -> Option<(u64, u64)> {
    let mut number = || {
        // The next field, and it is an i32.
        let (0x15, rest) = header.split_first().map(|(first, rest)| (*first, rest))? else { return None };
        let end = rest.iter().take(5).position(|byte| byte & 0x80 == 0)?;
        let bits = rest[..=end].iter().rev().fold(0, |bits, byte| bits << 7 | u64::from(byte & 0x7f));
        header = &rest[end + 1..];
        // Even numbers are not negative.
        (bits & 1 == 0).then_some(bits >> 1)
    };
    let _kind = number()?;
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn sizes_of_headers_are_parsed() {
        assert_eq!(sizes(&[0x15, 0x04, 0x15, 0x80, 0x01, 0x15, 0x06, 0x4c]), Some((64, 3)));
        assert_eq!(sizes(&[0x15, 0x04, 0x15, 0x81, 0x01, 0x15, 0x06]), None);
        assert_eq!(sizes(&[0x15, 0x04, 0x15, 0x80]), None);
        assert_eq!(sizes(&[]), None);
    }
}
