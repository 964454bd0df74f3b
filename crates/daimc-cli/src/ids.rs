//! The options for matching IDs across files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use daimc::text::quoted;
use daimc::{Ids, Views};
use daimc_io::{IdMap, Matching, Pattern};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::help::IDS;
use crate::paths::{in_folder, utf8};

/// How IDs of different files are matched.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct IdOptions {
    /// Compare only this number of characters at the start of IDs, such as 12 for the patient in a TCGA barcode [default: all]
    #[arg(long, help_heading = IDS, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<usize>,

    /// Compare only the part of IDs that a regular expression matches, or its first group: `'^[^_]+'` for the part before a `_`
    /// [default: all]
    #[arg(long, help_heading = IDS, value_name = "REGEX")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_regex: Option<String>,

    /// Ignore case when comparing IDs
    #[arg(long, help_heading = IDS)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,

    /// Treat `-`, `.`, `_`, `:`, `/` and spaces in IDs as the same character
    #[arg(long, help_heading = IDS)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_separators: bool,

    /// A table with the columns `view`, `id` and `instance` that maps each ID of a view to its instance
    #[arg(long, help_heading = IDS, value_name = "FILE", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<String>,

    /// Several rows of a view with the same ID: `error` rejects them, `first` takes the first, `mean` their mean [default:
    /// error]
    #[arg(long, help_heading = IDS, value_name = "HOW", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
}

/// Handling of several rows with the same ID.
#[derive(ValueEnum, Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    Error,
    First,
    Mean,
}

impl IdOptions {
    /// The matching that the options describe; reads the map, if there is one.
    pub fn matching(&self) -> Result<Matching> {
        self.check()?;
        Ok(Matching {
            prefix: self.id_prefix,
            pattern: self.pattern()?,
            ignore_case: self.ignore_case,
            ignore_separators: self.ignore_separators,
            map: self.ids.as_ref().map(|path| IdMap::read(Path::new(path))).transpose()?,
            duplicates: match self.duplicates {
                None | Some(Duplicates::Error) => daimc_io::Duplicates::Error,
                Some(Duplicates::First) => daimc_io::Duplicates::First,
                Some(Duplicates::Mean) => daimc_io::Duplicates::Mean,
            },
        })
    }

    /// Fails if an option is invalid; reads no file.
    pub fn check(&self) -> Result<()> {
        if self.id_prefix == Some(0) {
            return Err(Failure::Usage("--id-prefix must be at least 1".into()));
        }
        self.pattern().map(drop)
    }

    fn pattern(&self) -> Result<Option<Pattern>> {
        let wrong =
            |reason: String| Failure::Usage(format!("--id-regex is not a regular expression: {reason}"));
        self.id_regex.as_ref().map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// The path of the map of IDs.
    pub fn path(&self) -> Option<PathBuf> {
        self.ids.as_ref().map(PathBuf::from)
    }

    /// Resolves relative paths against a folder.
    pub fn in_folder(&mut self, folder: &Path) -> Result<()> {
        if let Some(path) = &mut self.ids {
            *path = in_folder(folder, Path::new(path))?;
        }
        Ok(())
    }
}

/// The error for a table that has no instance of the views, with the closest match of IDs.
pub fn none_known(path: &Path, listed: &[String], views: &Views<'_>) -> Failure {
    let id = |i| views.ids().get(i);
    let numbered = matches!(views.ids(), Ids::Numbers(_));
    let hint = if numbered { " (the views have no IDs, so their rows are numbered from 0)" } else { "" };
    let near = daimc_io::near(&[(0..views.instances()).map(id).collect(), listed.to_vec()]);
    let near = near.map_or_else(String::new, |near| format!("; with {near}, {} are", near.shared[1]));
    Failure::Data(format!(
        "{}: none of its IDs is among those of the views{hint}: {} here, {} there{near}",
        path.display(),
        quoted(listed.first().map_or("", String::as_str)),
        quoted(&id(0))
    ))
}
