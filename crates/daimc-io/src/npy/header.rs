//! The header of a `.npy` file: a Python dictionary as text.

use std::io::Read;

use daimc_core::text::quoted;

use crate::number::{Encoding, NumberType};
use crate::{Position, Result};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The maximum length; arrays of numbers have shorter headers.
const LONGEST: u32 = 1 << 20;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type as numpy writes it, such as `<f8`; the list of fields, if it is structured.
    pub descr: String,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads a header of a file of `length` bytes, and returns its length as well.
    pub(super) fn read(place: &Position, reader: &mut impl Read, length: u64) -> Result<(Self, u64)> {
        let io = |error| place.unreadable(error);
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(io)?;
        if !start.starts_with(MAGIC) {
            return Err(place.fault("is not a numpy array; write it with numpy.save"));
        }
        let mut size = [0; 4];
        let wide = if start[6] == 1 { 2 } else { 4 };
        reader.read_exact(&mut size[..wide]).map_err(io)?;
        let size = u32::from_le_bytes(size);
        let taken = 8 + wide as u64 + u64::from(size);
        if size > LONGEST || taken > length {
            return Err(place.fault("has a header that is longer than the file; save it anew"));
        }
        let mut text = vec![0; size as usize];
        reader.read_exact(&mut text).map_err(io)?;
        let header = std::str::from_utf8(&text).ok().and_then(parse);
        header.map(|header| (header, taken)).ok_or_else(|| {
            place.fault("has a header that is not one of a numpy array; write it with numpy.save")
        })
    }

    /// The encoding of numbers; `None` for other types.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        let kind = match self.descr.get(1..)? {
            "b1" => NumberType::Bool,
            "f2" => NumberType::F16,
            "f4" => NumberType::F32,
            "f8" => NumberType::F64,
            integer => {
                let size = integer.strip_prefix(['i', 'u'])?;
                NumberType::integer(size.parse().ok()?, integer.starts_with('i'))?
            }
        };
        Some(Encoding { kind, big_endian: self.descr.starts_with('>') })
    }

    /// The name of the type in numpy.
    pub(crate) fn type_name(&self) -> String {
        if self.descr.starts_with('[') {
            return "structured".into();
        }
        let mut letters = self.descr.trim_start_matches(['<', '>', '|', '=']).chars();
        let letter = letters.next();
        let bits = letters.as_str().parse().ok().and_then(|bytes: u32| bytes.checked_mul(8));
        match (letter, bits) {
            (Some('b'), _) => "bool".into(),
            (Some('i'), Some(bits)) => format!("int{bits}"),
            (Some('u'), Some(bits)) => format!("uint{bits}"),
            (Some('f'), Some(bits)) => format!("float{bits}"),
            (Some('c'), Some(bits)) => format!("complex{bits}"),
            (Some('O'), _) => "object".into(),
            (Some('S' | 'U'), _) => "str".into(),
            (Some('M' | 'm'), _) => "datetime".into(),
            _ => quoted(&self.descr).to_string(),
        }
    }

    /// The shape, as `2 × 3`.
    pub(crate) fn shape(&self) -> String {
        match &*self.shape {
            [] => "()".into(),
            shape => shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × "),
        }
    }
}

fn parse(text: &str) -> Option<Header> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = value(rest)?;
        let (value, after) = value(after.trim_start().strip_prefix(':')?.trim_start())?;
        match key {
            "'descr'" => descr = Some(value.trim_matches(['\'', '"']).to_owned()),
            "'fortran_order'" => fortran_order = Some(truth(value)?),
            "'shape'" => shape = Some(tuple(value)?),
            _ => return None,
        }
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? })
}

/// Splits after the first value: a string, a word, or a bracket with its contents.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let mut quote = None;
    for (i, letter) in text.char_indices() {
        let next = i + letter.len_utf8();
        match (quote, letter) {
            (Some(open), _) if letter == open => {
                quote = None;
                if depth == 0 {
                    return Some(text.split_at(next));
                }
            }
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(text.split_at(next));
                }
            }
            (None, ',' | ':') if depth == 0 => return Some(text.split_at(i)),
            _ => {}
        }
    }
    (depth == 0 && quote.is_none() && !text.is_empty()).then_some((text, ""))
}

/// `(2, 3)`, `(2,)` or `()`; old versions write `2L`.
fn tuple(text: &str) -> Option<Vec<usize>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.trim_end_matches('L').parse().ok()).collect()
}

fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed() {
        let plain = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }   \n").unwrap();
        assert_eq!(plain, Header { descr: "<f8".into(), fortran_order: false, shape: vec![3, 2] });
        let odd =
            parse("{'shape': (7L,), 'descr': [('shape', '<f4'), ('y', '<i2', (2,))], 'fortran_order': True}");
        let odd = odd.unwrap();
        assert_eq!(
            (odd.type_name().as_str(), odd.fortran_order, &*odd.shape),
            ("structured", true, &[7][..])
        );
        assert_eq!(odd.encoding(), None);
    }

    #[test]
    fn nonsense_is_no_header() {
        for text in
            ["", "{", "{}", "{'descr': '<f8'}", "{'descr' '<f8'}", "{'shape': (-1,)}", "{)}", "{'a': '}"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
