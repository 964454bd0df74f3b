//! Locations of views, `NAME=PATH[::VARIABLE]`, and of labels, `PATH[::COLUMN]`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;
use crate::paths::{STANDARD_INPUT, stem};

/// A view's name, its file, and the array in it, if the file has several.
///
/// ```
/// use daimc_io::Location;
///
/// let location: Location = "rna=data/counts.tsv.gz".parse()?;
/// assert_eq!((location.name.as_str(), location.path.to_str()), ("rna", Some("data/counts.tsv.gz")));
/// let location: Location = "data/counts.tsv.gz".parse()?;
/// assert_eq!(location.name, "counts");
/// let location: Location = "digit.mat::X{2}".parse()?;
/// assert_eq!((location.name.as_str(), location.variable.as_deref()), ("X{2}", Some("X{2}")));
/// # Ok::<(), daimc_io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The view's name; by default the variable, or else the file's name without endings.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The array in the file.
    pub variable: Option<String>,
}

impl Location {
    /// Whether the name is the default for the path.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.variable.is_none() && self.name == stem(&self.path)
    }
}

impl FromStr for Location {
    type Err = Error;

    /// The first `=` ends the name, unless it follows a `/` or `\`: then it is part of the path, so that a file `a=b.csv` can be
    /// written as `./a=b.csv`. The last `::` starts the variable.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason| Error::Location { text: text.into(), reason };
        let (name, place) = match text.split_once('=') {
            Some((name, place)) if !name.contains(['/', '\\']) => (Some(name.trim()), place),
            _ => (None, text),
        };
        let (path, variable) = split(place);
        if name == Some("") {
            return Err(wrong("the name before '=' is empty: write NAME=PATH"));
        }
        if path.is_empty() {
            return Err(wrong("the path is empty: write NAME=PATH or NAME=PATH::VARIABLE"));
        }
        if variable == Some("") {
            return Err(wrong("the variable after '::' is empty: write PATH::VARIABLE, or PATH alone"));
        }
        if name.is_none() && path == STANDARD_INPUT {
            return Err(wrong("standard input has no name: write NAME=-"));
        }
        let name = name.or(variable).map_or_else(|| stem(Path::new(path)), String::from);
        if name.is_empty() {
            return Err(wrong("the path has no file name: write the path of a file"));
        }
        Ok(Self { name, path: path.into(), variable: variable.map(String::from) })
    }
}

/// A table and its column of labels, if it has several columns.
///
/// ```
/// use daimc_io::Column;
///
/// let truth: Column = "data/clinical.csv::stage".parse()?;
/// assert_eq!((truth.path.to_str(), truth.column.as_deref()), (Some("data/clinical.csv"), Some("stage")));
/// # Ok::<(), daimc_io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The file.
    pub path: PathBuf,
    /// The title of the column.
    pub column: Option<String>,
}

impl FromStr for Column {
    type Err = Error;

    /// The last `::` starts the column.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason| Error::Location { text: text.into(), reason };
        let (path, column) = split(text);
        if path.is_empty() {
            return Err(wrong("the path is empty: write PATH or PATH::COLUMN"));
        }
        if column == Some("") {
            return Err(wrong("the column after '::' is empty: write PATH::COLUMN, or PATH alone"));
        }
        Ok(Self { path: path.into(), column: column.map(String::from) })
    }
}

/// A path, and the part of the file after the last `::`.
fn split(text: &str) -> (&str, Option<&str>) {
    text.rsplit_once("::").map_or((text, None), |(path, part)| (path, Some(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, Option<String>) {
        let Location { name, path, variable } = text.parse().unwrap();
        (name, path.to_str().unwrap().into(), variable)
    }

    fn expected(name: &str, path: &str, variable: Option<&str>) -> (String, String, Option<String>) {
        (name.into(), path.into(), variable.map(String::from))
    }

    #[test]
    fn a_location_has_a_name_a_path_and_perhaps_a_variable() {
        assert_eq!(parsed("rna=a/b.tsv.gz"), expected("rna", "a/b.tsv.gz", None));
        assert_eq!(parsed("one=x.mat::X{1}"), expected("one", "x.mat", Some("X{1}")));
        assert_eq!(parsed("r=C:\\data\\x.npz::a"), expected("r", "C:\\data\\x.npz", Some("a")));
    }

    #[test]
    fn without_a_name_it_is_the_variable_or_the_stem_of_the_file() {
        assert_eq!(parsed("a/b.tsv.gz").0, "b");
        assert_eq!(parsed("b.csv.zst").0, "b");
        assert_eq!(parsed("b.tsv.xz").0, "b");
        assert_eq!(parsed("b.v1.csv").0, "b.v1");
        assert_eq!(parsed("C:\\data\\x.csv"), expected("x", "C:\\data\\x.csv", None));
        assert_eq!(parsed("x.mat::X{1}").0, "X{1}");
    }

    #[test]
    fn an_equals_sign_after_a_slash_belongs_to_the_path() {
        assert_eq!(parsed("run=1/a=b.csv"), expected("run", "1/a=b.csv", None));
        assert_eq!(parsed("./k=3/a.csv"), expected("a", "./k=3/a.csv", None));
        assert_eq!(parsed("C:\\k=3\\a.csv"), expected("a", "C:\\k=3\\a.csv", None));
    }

    #[test]
    fn what_is_empty_is_refused() {
        let refused = |text: &str| text.parse::<Location>().unwrap_err().to_string();
        assert_eq!(refused("=a.csv"), "'=a.csv': the name before '=' is empty: write NAME=PATH");
        assert_eq!(refused("rna="), "'rna=': the path is empty: write NAME=PATH or NAME=PATH::VARIABLE");
        assert!(refused("").contains("the path is empty"));
        assert!(refused("a.mat::").contains("the variable after '::' is empty"));
        assert!(refused("::x").contains("the path is empty"));
        assert!(refused("..").contains("no file name"));
        assert!(refused("-").contains("write NAME=-"));
        assert_eq!(parsed("a=-"), expected("a", "-", None));
    }
}
