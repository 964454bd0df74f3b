//! Paths as arguments: in UTF-8, relative to a folder, `-` for standard input.

use std::path::Path;

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::failure::{Failure, Result};

/// Parses paths that `summary.json` records and that therefore must be UTF-8.
pub fn utf8() -> impl TypedValueParser<Value = String> {
    let refused =
        |_| "the path is not UTF-8 and cannot be recorded in summary.json: rename the file, or link to it";
    OsStringValueParser::new().try_map(move |path| path.into_string().map(at_home).map_err(refused))
}

/// Expands `~` to the home folder in `PATH` or `NAME=PATH`: shells do so only at the start of an argument.
fn at_home(text: String) -> String {
    let Some(home) = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok()) else {
        return text;
    };
    match text.split_once("~/") {
        Some((before, path)) if before.is_empty() || (before.ends_with('=') && !before.contains('/')) => {
            format!("{before}{home}/{path}")
        }
        _ => text,
    }
}

/// Fails if standard input is read twice.
pub fn read_once<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    if files.into_iter().filter(|file| is_standard_input(file)).count() < 2 {
        return Ok(());
    }
    let reason = "standard input can be read once: write '-' for one file, and name the others";
    Err(Failure::Usage(reason.into()))
}

/// Whether a path is `-`, standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Resolves a path of a configuration against its folder, except for standard input.
pub fn in_folder(folder: &Path, path: &Path) -> Result<String> {
    let path = if is_standard_input(path) { path.to_owned() } else { folder.join(path) };
    path.into_os_string().into_string().map_err(|path| {
        let reason = "the path is not UTF-8, as options must be: rename the folder, or change to it";
        Failure::Usage(format!("{}: {reason}", path.display()))
    })
}
