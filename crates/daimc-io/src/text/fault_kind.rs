//! Kinds of errors in a text.

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// A record with this wrong number of fields.
    Ragged(usize),
    /// This text instead of a number.
    NotNumber(String),
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A NUL, which ends a text for many programs.
    Nul,
    /// A carriage return before the end of the line.
    Return,
    /// A record without a name.
    NoName,
    /// A quote that is never closed.
    OpenQuote,
    /// Text between a closing quote and the next separator.
    AfterQuote,
    /// An empty line above others.
    EmptyLine,
    /// A value in a column that has no title and was empty above.
    Untitled,
}

impl FaultKind {
    /// The message of a kind that does not depend on the format.
    pub fn reason(&self, name: &str) -> &'static str {
        match (self, name) {
            (Self::NotUtf8, _) => "the text is not UTF-8: save the file in this encoding",
            (Self::Nul, _) => "there is a NUL in the text: remove it",
            (Self::Return, _) => {
                "a carriage return stands within the line: remove it, or save the file with line ends of Unix or Windows"
            }
            (Self::NoName, "ID") => "the ID is empty: give the row an ID or delete it",
            (Self::NoName, _) => "the name of the feature is empty: name it or delete the row",
            (Self::OpenQuote, _) => "a quote is opened and never closed: close it or remove it",
            (Self::AfterQuote, _) => {
                "text follows a closing quote: put the whole field in quotes and double those within"
            }
            (Self::EmptyLine, _) => {
                "the line is empty, but rows follow: delete it, or write NA for what is missing"
            }
            (Self::Untitled, _) => {
                "there is a value in a column without a title, which is empty above: give the column a title, or empty it"
            }
            (Self::Ragged(_), _) => "the row has another number of fields than those before",
            (Self::NotNumber(_), _) => "a number is expected",
        }
    }
}
