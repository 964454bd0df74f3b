//! Numbers and words for missing values.

use crate::real::Real;

/// Words for a missing value in any case, of R, pandas, Excel, SAS and the UCI repository.
const MISSING: [&str; 10] = ["NA", "NaN", "N/A", "#N/A", "<NA>", "null", "none", "-", ".", "?"];

/// The value of a field, NaN if missing; `None` for text.
pub(super) fn number<T: Real>(field: &[u8]) -> Option<T> {
    let field = field.trim_ascii();
    let missing =
        || field.is_empty() || MISSING.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
    fast_float2::parse(field).ok().or_else(|| missing().then_some(T::MISSING))
}

/// The value of a field with a decimal comma; `None` with a point, which might separate thousands or decimals.
pub(super) fn number_with_comma<T: Real>(field: &[u8]) -> Option<T> {
    if !field.contains(&b',') && !field.contains(&b'.') {
        return number(field);
    }
    if field.trim_ascii() == b"." {
        return Some(T::MISSING);
    }
    let point = |byte: &u8| if *byte == b',' { b'.' } else { *byte };
    (!field.contains(&b'.'))
        .then(|| field.iter().map(point).collect::<Vec<u8>>())
        .and_then(|field| number(&field))
}

/// Whether a field holds a number or a word for a missing one.
pub(super) fn is_number(field: &[u8]) -> bool {
    number::<f64>(field).is_some()
}

/// Whether a field is a number, possibly with a decimal comma: such files are refused, and the comma must not be detected as their
/// separator.
pub(super) fn is_number_or_comma(field: &[u8]) -> bool {
    let with_point = || field.iter().map(|&byte| if byte == b',' { b'.' } else { byte }).collect::<Vec<u8>>();
    is_number(field) || (field.contains(&b',') && is_number(&with_point()))
}
