//! How IDs are compared.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::map::IdMap;

/// Characters that separate the parts of an ID, and that files write differently: R makes a `.` of a `-`.
pub(super) const SEPARATORS: [char; 6] = ['-', '.', '_', ' ', ':', '/'];

/// How the IDs of files are matched. The default is that they are compared as they are.
///
/// An ID is looked up in the map, or else cut: by the pattern first, then to its prefix.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// Only so many characters at the start of an ID count.
    pub prefix: Option<usize>,
    /// What it matches in an ID counts; where it has a group, what the first group matches.
    pub pattern: Option<Pattern>,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// `-`, `.`, `_`, `:`, `/` and blanks are the same.
    pub ignore_separators: bool,
    /// The instance of each ID, by view.
    pub map: Option<IdMap>,
    /// What becomes of two rows of a view that belong to the same instance.
    pub duplicates: Duplicates,
}

/// What becomes of two rows of a view that belong to the same instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// It is an error that names both.
    #[default]
    Error,
    /// The first row counts.
    First,
    /// The mean of the rows counts, feature by feature, over the values that are not missing.
    Mean,
}

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(regex_lite::Regex);

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        regex_lite::Regex::new(text).map(Self).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Pattern {
    /// What counts of an ID; nothing where it does not match, or matches nothing of it.
    fn of<'a>(&self, id: &'a str) -> Option<&'a str> {
        let found = self.0.captures(id)?;
        let part = found.get(1).or_else(|| found.get(0))?.as_str();
        (!part.is_empty()).then_some(part)
    }
}

impl Matching {
    /// Whether IDs are compared as they are, and none may occur twice.
    pub(crate) fn is_exact(&self) -> bool {
        self.map.is_none() && !self.trims() && !self.folds() && self.duplicates == Duplicates::Error
    }

    pub(super) fn trims(&self) -> bool {
        self.prefix.is_some() || self.pattern.is_some()
    }

    pub(super) fn folds(&self) -> bool {
        self.ignore_case || self.ignore_separators
    }

    /// The part of an ID that counts; nothing where the pattern does not match it.
    pub(super) fn trim<'a>(&self, id: &'a str) -> Option<&'a str> {
        if !self.trims() {
            return Some(id);
        }
        let part = match &self.pattern {
            Some(pattern) => pattern.of(id)?,
            None => id,
        };
        let end =
            self.prefix.and_then(|count| part.char_indices().nth(count)).map_or(part.len(), |(at, _)| at);
        Some(part[..end].trim_end_matches(SEPARATORS))
    }

    /// What two IDs have in common that differ by what is ignored only.
    pub(super) fn fold<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if !self.folds() {
            return id.into();
        }
        let mut key = if self.ignore_case { id.to_lowercase() } else { id.to_owned() };
        if self.ignore_separators {
            key = key.replace(SEPARATORS, "-");
        }
        key.into()
    }

    /// What names an instance in a table that is not a view: where the pattern does not match, all of the ID.
    pub(super) fn key<'a>(&self, id: &'a str) -> Cow<'a, str> {
        self.fold(self.trim(id).unwrap_or(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(matching: &Matching, id: &str) -> String {
        matching.key(id).into_owned()
    }

    #[test]
    fn an_id_is_cut_by_the_pattern_and_then_to_its_prefix() {
        let prefix = Matching { prefix: Some(12), ..Matching::default() };
        assert_eq!(keyed(&prefix, "TCGA-OR-A5J1-01A-11D"), "TCGA-OR-A5J1");
        assert_eq!(keyed(&prefix, "TCGA"), "TCGA");
        assert_eq!(keyed(&Matching { prefix: Some(5), ..Matching::default() }, "P17-_x"), "P17");
        assert_eq!(keyed(&Matching { prefix: Some(2), ..Matching::default() }, "äöü"), "äö");
        let group = Matching { pattern: Some("_(S[0-9]+)".parse().unwrap()), ..Matching::default() };
        assert_eq!(keyed(&group, "run1_S12_L001"), "S12");
        assert_eq!(keyed(&group, "other"), "other");
        let whole =
            Matching { pattern: Some("^[^_]+".parse().unwrap()), prefix: Some(2), ..Matching::default() };
        assert_eq!(keyed(&whole, "S12_L001"), "S1");
    }

    #[test]
    fn case_and_separators_can_be_ignored() {
        let both = Matching { ignore_case: true, ignore_separators: true, ..Matching::default() };
        assert_eq!(keyed(&both, "TCGA.A1_A0SH"), keyed(&both, "tcga-a1-a0sh"));
        let case = Matching { ignore_case: true, ..Matching::default() };
        assert_ne!(keyed(&case, "a.b"), keyed(&case, "A-B"));
    }
}
