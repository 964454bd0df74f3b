//! Reverses the filters of chunks.

use flate2::{Decompress, FlushDecompress, Status};

/// A filter, by its registered number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    /// The bytes of elements of this size are grouped: all first bytes, all second ones.
    Shuffle(usize),
    Fletcher32,
    Lzf,
    Zstandard,
}

impl Filter {
    /// The filter with a number; the error is its name.
    pub fn new(id: u16, size: usize) -> Result<Self, String> {
        let name = match id {
            1 => return Ok(Self::Deflate),
            2 => return Ok(Self::Shuffle(size)),
            3 => return Ok(Self::Fletcher32),
            32000 => return Ok(Self::Lzf),
            32015 => return Ok(Self::Zstandard),
            4 => "SZIP",
            5 => "N-Bit",
            6 => "Scale-Offset",
            32001 | 32026 => "Blosc",
            32004 => "LZ4",
            32008 => "Bitshuffle",
            _ => return Err(format!("filter {id}")),
        };
        Err(name.into())
    }

    /// The maximum compression ratio; zero if there is no limit.
    pub fn limit(self) -> u64 {
        match self {
            Self::Deflate => 1032,
            // Three bytes encode at most 264.
            Self::Lzf => 88,
            Self::Shuffle(_) | Self::Fletcher32 => 1,
            Self::Zstandard => 0,
        }
    }

    /// Reverses the filter: decodes `from` to at most `most` bytes of `to`. `None` if the bytes are damaged.
    pub fn undo(self, from: &[u8], to: &mut Vec<u8>, most: usize) -> Option<()> {
        to.clear();
        match self {
            Self::Deflate => {
                to.reserve_exact(most);
                let status = Decompress::new(true).decompress_vec(from, to, FlushDecompress::Finish);
                (status.ok()? == Status::StreamEnd).then_some(())
            }
            Self::Zstandard => {
                to.resize(most, 0);
                let count = zstd::bulk::decompress_to_buffer(from, to).ok()?;
                to.truncate(count);
                Some(())
            }
            Self::Lzf => lzf(from, to, most),
            Self::Shuffle(size) => {
                to.resize(from.len(), 0);
                match size {
                    2 => join::<2>(from, to),
                    4 => join::<4>(from, to),
                    8 => join::<8>(from, to),
                    16 => join::<16>(from, to),
                    _ => join_any(from, to, size),
                }
                Some(())
            }
            Self::Fletcher32 => {
                let (bytes, sum) = from.split_last_chunk::<4>()?;
                let found = fletcher32(bytes);
                // Old writers stored the sum of swapped bytes.
                let swapped = (found & 0x00ff_00ff) << 8 | (found & 0xff00_ff00) >> 8;
                let sum = u32::from_le_bytes(*sum);
                to.extend_from_slice(bytes);
                (sum == found || sum == swapped).then_some(())
            }
        }
    }
}

/// Brings the bytes of each element together.
fn join<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
    let count = from.len() / SIZE;
    let parts: [&[u8]; SIZE] = std::array::from_fn(|byte| &from[byte * count..(byte + 1) * count]);
    let (elements, rest) = to.as_chunks_mut::<SIZE>();
    for (at, element) in elements.iter_mut().enumerate() {
        for (byte, part) in element.iter_mut().zip(parts) {
            *byte = part[at];
        }
    }
    rest.copy_from_slice(&from[count * SIZE..]);
}

fn join_any(from: &[u8], to: &mut [u8], size: usize) {
    let count = from.len() / size.max(1);
    let whole = count * size;
    for (at, element) in to[..whole].chunks_exact_mut(size.max(1)).enumerate() {
        for (byte, out) in element.iter_mut().enumerate() {
            *out = from[byte * count + at];
        }
    }
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Marc Lehmann's LZF: literal bytes, and copies of earlier ones.
fn lzf(from: &[u8], to: &mut Vec<u8>, most: usize) -> Option<()> {
    let mut bytes = from.iter();
    while let Some(&control) = bytes.next() {
        let control = usize::from(control);
        if control < 32 {
            let run = bytes.as_slice().get(..=control)?;
            to.extend_from_slice(run);
            bytes.nth(control);
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(*bytes.next()?);
            }
            let back = ((control & 31) << 8 | usize::from(*bytes.next()?)) + 1;
            let start = to.len().checked_sub(back)?;
            // The source of a copy may overlap its destination.
            for at in start..start + length + 2 {
                to.push(to[at]);
            }
        }
        if to.len() > most {
            return None;
        }
    }
    Some(())
}

/// Two sums over big-endian 16-bit words.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut first, mut second) = (0_u32, 0_u32);
    let (words, rest) = bytes.as_chunks::<2>();
    for words in words.chunks(360) {
        for word in words {
            first += u32::from(u16::from_be_bytes(*word));
            second += first;
        }
        first = (first & 0xffff) + (first >> 16);
        second = (second & 0xffff) + (second >> 16);
    }
    if let [last] = rest {
        first += u32::from(*last) << 8;
        second += first;
    }
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    fold(fold(second)) << 16 | fold(fold(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(filter: Filter, from: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut to = Vec::new();
        filter.undo(from, &mut to, most).map(|()| to)
    }

    #[test]
    fn lzf_copies_earlier_bytes() {
        // "ab", then five bytes from two before.
        assert_eq!(undone(Filter::Lzf, &[1, b'a', b'b', 3 << 5, 1], 9).as_deref(), Some(&b"abababa"[..]));
        assert_eq!(undone(Filter::Lzf, &[1, b'a', b'b', 3 << 5, 1], 6), None);
        assert_eq!(undone(Filter::Lzf, &[0, b'a', 1 << 5, 1], 9), None);
        assert_eq!(undone(Filter::Lzf, &[4, b'a'], 9), None);
    }

    #[test]
    fn shuffled_bytes_come_together_and_the_rest_stays() {
        assert_eq!(undone(Filter::Shuffle(2), &[1, 2, 11, 12, 9], 5).unwrap(), [1, 11, 2, 12, 9]);
        assert_eq!(undone(Filter::Shuffle(3), &[1, 2, 11, 12, 21, 22], 6).unwrap(), [1, 11, 21, 2, 12, 22]);
    }

    #[test]
    fn a_wrong_checksum_is_detected() {
        let sum = fletcher32(b"abcde").to_le_bytes();
        let whole = [b"abcde", &sum[..]].concat();
        assert_eq!(undone(Filter::Fletcher32, &whole, 5).unwrap(), b"abcde");
        let mut damaged = whole;
        damaged[1] ^= 1;
        assert_eq!(undone(Filter::Fletcher32, &damaged, 5), None);
        assert_eq!(fletcher32(b"ab"), 0x6162_6162);
    }
}
