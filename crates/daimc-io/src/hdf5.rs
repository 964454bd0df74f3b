//! HDF5: annotated data (`.h5ad`, `.h5mu`), the matrices of 10x Genomics, MATLAB's `.mat` from
//! level 7.3 on, and plain datasets.

mod anndata;
mod array;
mod chunks;
mod column;
mod entries;
mod filters;
mod matlab;
mod matrix;
mod node;
mod plain;
mod source;
mod strings;
mod tenx;

pub use anndata::Obs;
use hdf5_pure::Group;
use matrix::Named;
use node::Container;

use crate::disk::Keep;
use crate::input::{Opened, Random};
use crate::{Position, Reading, Result, Table};

/// The start of an HDF5 file, possibly after a user block of 512 bytes.
pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The convention that a file follows.
enum Flavour {
    AnnData,
    /// The group of modalities.
    MuData(Group),
    /// Groups of matrices by name: one, or one for each genome in old versions of Cell Ranger.
    TenX(Vec<(String, Group)>),
    Matlab,
    Plain,
}

/// Whether a file is HDF5, by its first bytes.
pub(crate) fn is_hdf5(start: &[u8]) -> bool {
    let user = start.get(512..).is_some_and(|rest| rest.starts_with(SIGNATURE));
    user || start.starts_with(SIGNATURE) || start.starts_with(b"MATLAB 7.3 MAT-file")
}

/// Reads the matrix `variable`, or the main one of the file.
pub fn read(file: &mut Opened, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    with(file, variable, |container, flavour| find(container, flavour, variable)?.table(how, keep))
}

/// The number of instances, and the bytes of their values in memory.
pub fn size(file: &mut Opened, variable: Option<&str>, how: Reading) -> Result<(usize, u64)> {
    with(file, variable, |container, flavour| find(container, flavour, variable)?.matrix.size(how))
}

/// The names that pick the views of a file; none if it has one view.
pub fn parts(file: &mut Opened) -> Result<Vec<String>> {
    with(file, None, |container, flavour| match flavour {
        Flavour::MuData(modalities) => anndata::modalities(container, modalities),
        Flavour::TenX(matrices) => tenx::parts(container, matrices),
        _ => Ok(Vec::new()),
    })
}

/// The IDs of instances, and their labels in a column of `obs`.
pub fn labels(file: &mut Opened, column: Option<&str>) -> Result<(Vec<String>, Vec<Option<String>>)> {
    with(file, column, |container, flavour| match flavour {
        Flavour::AnnData => anndata::labels(container, &container.root(), column),
        Flavour::MuData(modalities) => anndata::labels_of_any(container, modalities, column),
        _ => Err(container
            .place
            .fault("has no table obs of which a column could be labels; name an .h5ad or .h5mu file")),
    })
}

/// All of `obs`.
pub fn attributes(file: &mut Opened) -> Result<Obs> {
    with(file, None, |container, flavour| match flavour {
        Flavour::AnnData | Flavour::MuData(_) => anndata::attributes(container),
        _ => Err(container.place.fault("has no table obs; name an .h5ad or .h5mu file, or a table of text")),
    })
}

fn with<T: Send>(
    file: &mut Opened,
    variable: Option<&str>,
    read: impl FnOnce(&Container, &Flavour) -> Result<T> + Send,
) -> Result<T> {
    let place = Position { variable: variable.map(String::from), ..file.place.clone() };
    let matlab = file.start().starts_with(b"MATLAB");
    file.at_random(|bytes: Random| {
        let container = Container::open(place, bytes)?;
        let flavour = flavour(&container, matlab)?;
        read(&container, &flavour)
    })
}

fn find(container: &Container, flavour: &Flavour, variable: Option<&str>) -> Result<Named> {
    match flavour {
        Flavour::AnnData => anndata::matrix(container, &container.root(), variable.unwrap_or("X")),
        Flavour::MuData(modalities) => anndata::modality(container, modalities, variable),
        Flavour::TenX(matrices) => tenx::matrix(container, matrices, variable),
        Flavour::Matlab => matlab::matrix(container, variable),
        Flavour::Plain => plain::matrix(container, variable),
    }
}

fn flavour(container: &Container, matlab: bool) -> Result<Flavour> {
    let root = container.root();
    let ending = container.place.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mat"));
    if matlab || ending {
        return Ok(Flavour::Matlab);
    }
    if let Some(modalities) = container.group(&root, "mod")? {
        return Ok(Flavour::MuData(modalities));
    }
    if container.find(&root, "obs")?.is_some() && container.find(&root, "var")?.is_some() {
        return Ok(Flavour::AnnData);
    }
    let matrices = tenx::matrices(container, &root)?;
    Ok(if matrices.is_empty() { Flavour::Plain } else { Flavour::TenX(matrices) })
}
