//! Names of files: endings, stems, and companions of a matrix.

use std::path::{Path, PathBuf};

/// The path of standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// The endings of plain and compressed files.
pub(crate) const ENDINGS: [&str; 5] = ["", ".gz", ".bz2", ".xz", ".zst"];

/// The name of a file without its ending and without that of a compression.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Paths of Windows work on every system.
    let name = name.rsplit('\\').next().unwrap_or_default();
    let plain = |name: &str| Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = Path::new(name).extension().unwrap_or_default().to_ascii_lowercase();
    if ["gz", "bz2", "xz", "zst", "zip"].iter().any(|packed| ending == *packed) {
        plain(&plain(name))
    } else {
        plain(name)
    }
}

/// The first of these files in a folder that exists, plain or compressed.
pub(crate) fn first_existing(
    folder: &Path,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> Option<PathBuf> {
    let names = names.into_iter().flat_map(|name| ENDINGS.map(|ending| format!("{}{ending}", name.as_ref())));
    names.map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The matrix of a folder of Cell Ranger; `None` for everything else.
pub(crate) fn cell_ranger_matrix(path: &Path) -> Option<PathBuf> {
    if path.is_dir() { first_existing(path, ["matrix.mtx"]) } else { None }
}
