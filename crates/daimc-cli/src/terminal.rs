//! Messages on standard error: printing never fails, and control characters from files do not reach the terminal.

use std::fmt::Display;
use std::io::{self, Write};

use daimc::text::is_control;

/// Maximum number of characters in a line; a path may be this long.
const LONGEST_LINE: usize = 5000;

/// Prints a line on standard error. Errors are ignored, e.g. if standard error is closed.
pub fn print_line(text: impl Display) {
    let text = clean(&text.to_string()) + "\n";
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Escapes control characters other than line ends, and truncates long lines. Messages quote and truncate names themselves; this
/// covers the other text, such as messages of libraries.
pub fn clean(text: &str) -> String {
    text.split('\n').map(clean_line).collect::<Vec<_>>().join("\n")
}

fn clean_line(line: &str) -> String {
    let mut clean = String::with_capacity(line.len().min(LONGEST_LINE));
    let cut = line.chars().nth(LONGEST_LINE).is_some();
    for character in line.chars().take(LONGEST_LINE - usize::from(cut)) {
        if is_control(character) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean + if cut { "…" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_all_other_controls_are_escaped() {
        assert_eq!(clean("a\n  b\u{1b}[31m\r\u{7f}"), "a\n  b\\u{1b}[31m\\r\\u{7f}");
        assert_eq!(clean(&"x".repeat(3_000_000)).chars().count(), LONGEST_LINE);
    }
}
