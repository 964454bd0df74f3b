//! How IDs are compared.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::map::IdMap;

/// Characters that separate the parts of an ID, which files write differently: R replaces `-` by `.`.
pub(super) const SEPARATORS: [char; 6] = ['-', '.', '_', ' ', ':', '/'];

/// How the IDs of files are matched. By default they are compared unchanged.
///
/// An ID is looked up in the map, or else reduced: to the match of the pattern first, then to its prefix.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// The number of characters that are compared.
    pub prefix: Option<usize>,
    /// The match in an ID is compared; if the pattern has a group, that of the first group.
    pub pattern: Option<Pattern>,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// `-`, `.`, `_`, `:`, `/` and blanks are the same.
    pub ignore_separators: bool,
    /// The instance of each ID, by view.
    pub map: Option<IdMap>,
    /// Treatment of several rows of a view that belong to the same instance.
    pub duplicates: Duplicates,
}

/// Treatment of several rows of a view that belong to the same instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// An error that names both.
    #[default]
    Error,
    /// The first row is kept.
    First,
    /// The mean of the observed values of each feature.
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
    /// The part of an ID that is compared; `None` without a match or with an empty one.
    fn of<'a>(&self, id: &'a str) -> Option<&'a str> {
        let found = self.0.captures(id)?;
        let part = found.get(1).or_else(|| found.get(0))?.as_str();
        (!part.is_empty()).then_some(part)
    }
}

impl Matching {
    /// Whether IDs are compared unchanged, and duplicates are errors.
    pub(crate) fn is_exact(&self) -> bool {
        self.map.is_none() && !self.trims() && !self.folds() && self.duplicates == Duplicates::Error
    }

    pub(super) fn trims(&self) -> bool {
        self.prefix.is_some() || self.pattern.is_some()
    }

    pub(super) fn folds(&self) -> bool {
        self.ignore_case || self.ignore_separators
    }

    /// The part of an ID that is compared; `None` if the pattern does not match.
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

    /// The normal form of IDs that differ only in ignored characters.
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

    /// The key of an instance in a table that is not a view: the whole ID if the pattern does not match.
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
    fn an_id_is_reduced_by_the_pattern_and_then_to_its_prefix() {
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
