//! Names and values from files in messages: whatever they contain, a terminal shows them as one short line.

use std::fmt;

/// Maximum characters of a name.
const LONGEST: usize = 60;

/// The maximum length of a path on Linux.
const LONGEST_PATH: usize = 4096;

/// Maximum names of a list.
const LISTED: usize = 10;

/// A text for a message: control characters are escaped, and long text is cut.
///
/// ```
/// use daimc_core::text::{plain, quoted};
///
/// assert_eq!(quoted("\u{1b}[2J").to_string(), r"'\u{1b}[2J'");
/// assert_eq!(plain(&"a".repeat(100)).to_string(), "a".repeat(59) + "…");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    text: &'a str,
    quotes: bool,
    longest: usize,
}

/// The text in quotes.
pub fn quoted(text: &str) -> Shown<'_> {
    Shown { text, quotes: true, longest: LONGEST }
}

/// The text without quotes.
pub fn plain(text: &str) -> Shown<'_> {
    Shown { text, quotes: false, longest: LONGEST }
}

/// A path: without quotes, and as long as paths may be.
pub fn path(text: &str) -> Shown<'_> {
    Shown { text, quotes: false, longest: LONGEST_PATH }
}

/// A duration, with the precision of an estimate.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "less than a second".into(),
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

/// An amount of memory, with the precision of an estimate.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    if bytes < 1e9 { format!("{:.0} MB", bytes / 1e6) } else { format!("{:.1} GB", bytes / 1e9) }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let quote = if self.quotes { "'" } else { "" };
        f.write_str(quote)?;
        let cut = self.text.chars().nth(self.longest).is_some();
        let kept = self.longest - usize::from(cut);
        for character in self.text.chars().take(kept) {
            if is_control(character) {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        f.write_str(if cut { "…" } else { "" })?;
        f.write_str(quote)
    }
}

/// Joins names with commas; of many, only the first and the number of the others.
pub fn list<T: fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names.by_ref().take(LISTED).map(|name| name.to_string()).collect();
    let more = names.count();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// Whether a character moves the cursor, changes the terminal, or hides or reorders its neighbours.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(quoted("a\nb\t\u{7}\u{9b}\u{202e}").to_string(), r"'a\nb\t\u{7}\u{9b}\u{202e}'");
        assert_eq!(quoted("Größe e\u{301} 5\" \\ 漢").to_string(), "'Größe e\u{301} 5\" \\ 漢'");
    }

    #[test]
    fn long_names_and_long_lists_are_cut() {
        let exact = "x".repeat(60);
        assert_eq!(plain(&exact).to_string(), exact);
        assert_eq!(plain(&"ü".repeat(3_000_000)).to_string().chars().count(), 60);
        assert_eq!(list(["a", "b"].map(quoted)), "'a', 'b'");
        assert_eq!(list(0..12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
