//! Mutations of bytes, such as those by faulty disks, networks, editors, or attackers.

use std::ops::Range;

use crate::random::Random;

/// Integers at the limits of types.
const WHOLE: [u64; 16] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    1_000_000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Numbers at the limits of types as text, and other texts in place of a number.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "9",
    "10",
    "255",
    "65536",
    "1000000",
    "1001000",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "1e999",
    "nan",
    "-inf",
    "NA",
    "",
    "0x10",
    "1_0",
];

/// Tokens with a meaning in some format.
const TOKENS: [&[u8]; 28] = [
    b"\"",
    b"\"\"",
    b",",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b"#",
    b"\0",
    b";",
    b"|",
    b" ",
    b"'",
    b"%",
    b"{",
    b"}",
    b"(",
    b")",
    b"[",
    b"]",
    b"=",
    b":",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3",
    b"::",
    b"null",
    b"True",
];

/// Maximum length of a stretch that is copied or removed.
const STRETCH: usize = 64;

/// Maximum growth of a mutant in bytes.
const GROWTH: usize = 1 << 12;

/// Mutates `bytes` one or more times; pieces of `other`, a second file, may be inserted.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let limit = bytes.len() + GROWTH;
    let single = random.once_in(2);
    loop {
        once(bytes, other, random);
        bytes.truncate(limit);
        if single || random.once_in(3) {
            return;
        }
    }
}

fn once(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        bytes.extend_from_slice(random.pick::<&[u8]>(&TOKENS));
        return;
    }
    let at = position(bytes.len(), random);
    match random.below(16) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 | 3 => bytes[at] = random.next() as u8,
        4 => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-', b'.', b'\n']),
        5 => bytes[at] = bytes[at].wrapping_add(random.below(8) as u8).wrapping_sub(4),
        6 | 7 => set_number(bytes, at, random),
        8 | 9 => replace_digits(bytes, at, random),
        10 => {
            let token = *random.pick(&TOKENS);
            bytes.splice(at..at, token.iter().copied());
        }
        11 => drop(bytes.drain(stretch(bytes.len(), at, random))),
        12 => {
            let piece = bytes[stretch(bytes.len(), at, random)].to_vec();
            let times = if random.once_in(8) { random.below(64) } else { 1 };
            let to = position(bytes.len(), random);
            bytes.splice(to..to, piece.repeat(times));
        }
        13 => {
            let range = stretch(bytes.len(), at, random);
            let to = random.below(bytes.len() - range.len() + 1);
            bytes.copy_within(range, to);
        }
        14 if !other.is_empty() => {
            let from = random.below(other.len());
            let piece = &other[stretch(other.len(), from, random)];
            let replaced = if random.once_in(2) { at..(at + piece.len()).min(bytes.len()) } else { at..at };
            bytes.splice(replaced, piece.iter().copied());
        }
        _ => bytes.truncate(at + usize::from(random.once_in(2))),
    }
}

/// A random position, with a preference for both ends, where headers and footers are.
fn position(length: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(length.min(64)),
        1 => length - 1 - random.below(length.min(64)),
        _ => random.below(length),
    }
}

fn stretch(length: usize, at: usize, random: &mut Random) -> Range<usize> {
    at..(at + 1 + random.below(STRETCH)).min(length)
}

/// Overwrites 1, 2, 4 or 8 bytes with a number, in either byte order.
fn set_number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let whole = *random.pick(&WHOLE);
    let whole =
        if random.once_in(3) { whole.wrapping_add(random.next() % 17).wrapping_sub(8) } else { whole };
    let size = (1 << random.below(4)).min(bytes.len() - at);
    let little = whole.to_le_bytes();
    for (i, byte) in bytes[at..at + size].iter_mut().enumerate() {
        *byte = little[i];
    }
    if random.once_in(2) {
        bytes[at..at + size].reverse();
    }
}

/// Replaces the next run of digits.
fn replace_digits(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|start| at + start) else { return };
    let end =
        bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |end| start + end);
    bytes.splice(start..end, random.pick(&WORDS).bytes());
}
