//! Fields of TSV files.

/// A text as a field of a TSV file: quoted where it would not be one field otherwise.
pub fn field(text: &str) -> String {
    if text.contains(['\t', '\n', '\r', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Appends a text as a field of a TSV file.
pub fn push_field(out: &mut Vec<u8>, text: &str) {
    if text.contains(['\t', '\n', '\r', '"']) {
        out.extend(field(text).as_bytes());
    } else {
        out.extend(text.as_bytes());
    }
}
