//! The way to people. Nothing that is told ever ends the work, and nothing from a file is obeyed by a terminal.

use std::fmt::Display;
use std::io::{self, Write};

use daimc::text::is_control;

/// A line has at most so many characters: a path may be as long.
const LONGEST_LINE: usize = 5000;

/// Tells people something on standard error. Where that is closed or full, they do not hear it, and that is all.
pub fn tell(text: impl Display) {
    let text = clean(&text.to_string()) + "\n";
    // There is nobody left to be told about it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A text of several lines without what a terminal would obey, each line cut where it is too long. Names are quoted and
/// cut where messages are made; this is for whatever comes another way, such as the messages of libraries.
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
