//! Reads one file as a table: picks the reader of its format, and where the values are kept.

use std::path::Path;

use crate::archive::Content;
use crate::arrow::Arrow;
use crate::disk::{Keep, store_cells};
use crate::format::Format;
use crate::input::{Input, Opened};
use crate::parquet::Parquet;
use crate::{Cells, Disk, Error, Reading, Result, Table};
use crate::{archive, cell_ranger, foreign, frame, hdf5, input, mat, matrix_market, names, npy, npz, text};

/// Reads one table. `-` is standard input; pipes can be read as well. `variable` picks an array in a container: an array of an
/// `.npz`, a table in a `.zip`, a sheet of an `.xlsx` or `.ods`, a variable of a `.mat` (`X{2}` for a cell), `layers/counts`, `raw`
/// or `obsm/X_pca` of an `.h5ad`, `rna` or `rna/layers/counts` of an `.h5mu`, or a type of features of a 10x file. A folder must be
/// one of Cell Ranger: `matrix.mtx`, `barcodes.tsv` and `features.tsv`.
///
/// The format follows from the name of the file or, e.g. for a pipe, from its first bytes.
///
/// # Errors
/// When the file cannot be read or does not have the format of its name; the message names the file and the place in it.
pub fn read(path: &Path, variable: Option<&str>, how: Reading) -> Result<Table> {
    parse(&mut Opened::new(path, false)?, variable, how, Keep::Memory)
}

/// As [`read`], and also returns the SHA-256 of the file in hexadecimal digits. The file is read once: the hash is that of the
/// bytes that were parsed.
///
/// # Errors
/// As [`read`].
pub fn read_hashed(path: &Path, variable: Option<&str>, how: Reading) -> Result<(Table, String)> {
    let mut file = Opened::new(path, true)?;
    let table = parse(&mut file, variable, how, Keep::Memory)?;
    Ok((table, file.sha256()?))
}

/// As [`read_hashed`], but the values stay on disk: in the file itself if it is a `.npy`, or an uncompressed `.npz` with a dense
/// matrix or sorted rows (CSR); otherwise in unnamed spool files, which are removed with the table. Spool files are written while
/// the file is read, so that its values are never all in memory, except for a symmetric `array` of Matrix Market.
///
/// # Errors
/// As [`read`], and when a spool file cannot be written or the stop flag of the disk is set.
pub fn read_stored(
    path: &Path,
    variable: Option<&str>,
    how: Reading,
    disk: &Disk,
) -> Result<(Table, String)> {
    let mut file = Opened::new(path, disk.hashed)?;
    if !Format::of(&file.place.path, file.start()).is_text() {
        file.spool_stream(disk, 0)?;
    }
    store(file, variable, how, disk)
}

/// As [`read_hashed`], but values that take more than `most` bytes, or more memory than is available, stay on disk as with
/// [`read_stored`]. The bytes of a pipe are written to disk once they exceed the limit.
///
/// # Errors
/// As [`read_stored`].
pub fn read_within(
    path: &Path,
    variable: Option<&str>,
    how: Reading,
    disk: &Disk,
    most: u64,
) -> Result<(Table, String)> {
    let mut file = Opened::new(path, disk.hashed)?;
    let on_disk = file.length().is_some();
    if !on_disk && !Format::of(&file.place.path, file.start()).is_text() {
        // The bytes and the table that is parsed from them are in memory together.
        file.spool_stream(disk, most / 2)?;
        if !file.is_in_memory() {
            return store(file, variable, how, disk);
        }
    }
    match parse(&mut file, variable, how, Keep::Within(disk, most)) {
        Err(Error::Memory { .. }) if on_disk => read_stored(path, variable, how, disk),
        Err(Error::Memory { .. }) if file.is_in_memory() => {
            file.move_to_disk(disk)?;
            store(file, variable, how, disk)
        }
        table => Ok((table?, file.sha256()?)),
    }
}

/// The names that pick the views of a file with several, in their order: the modalities of an `.h5mu` file, or the types of features
/// of a 10x file or folder. Empty for a file with one view, and for pipes.
///
/// # Errors
/// When the file cannot be read.
pub fn parts(path: &Path) -> Result<Vec<String>> {
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file() || about.is_dir()) {
        return Ok(Vec::new());
    }
    let mut file = Opened::new(path, false)?;
    match Format::of(&file.place.path, file.start()) {
        Format::Hdf5 => hdf5::parts(&mut file),
        Format::MatrixMarket if file.of_folder => cell_ranger::parts(&file),
        _ => Ok(Vec::new()),
    }
}

fn store(mut file: Opened, variable: Option<&str>, how: Reading, disk: &Disk) -> Result<(Table, String)> {
    let mut table = parse(&mut file, variable, how, Keep::Disk(disk))?;
    let cells = std::mem::replace(&mut table.cells, Cells::DenseF32(Vec::new()));
    let stored = store_cells(disk, &table.place(), table.rows, table.columns, cells)?;
    table.cells = Cells::Stored(stored);
    Ok((table, file.sha256()?))
}

fn parse(file: &mut Opened, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let mut table = parse_format(file, variable, how, keep)?;
    let remarks = [names::make_unique(&mut table), names::numbers(&table)];
    table.remarks.extend(remarks.into_iter().flatten());
    Ok(table)
}

fn parse_format(file: &mut Opened, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let path = file.place.path.clone();
    match Format::of(&path, file.start()) {
        Format::Npy => match keep.disk() {
            Some(disk) => npy::store(file, how, disk),
            None => npy::read(file, how),
        },
        Format::Hdf5 => hdf5::read(file, variable, how, keep),
        Format::Zip => match Content::of(file)? {
            Content::Arrays => npz::read(file, variable, how, keep),
            content => archive::with_text(file, content, variable, |name, input| {
                let table = text_or_matrix(&path, input, how, keep)?;
                Ok(Table { variable: variable.or(Some(name)).map(String::from), ..table })
            }),
        },
        Format::Mat => mat::read(file, variable, how, keep),
        Format::Parquet => frame::read::<Parquet>(file, how, keep),
        Format::Arrow => frame::read::<Arrow>(file, how, keep),
        Format::MatrixMarket if file.of_folder => cell_ranger::read(file, variable, how, keep),
        Format::MatrixMarket => matrix_market::read(&path, file.text()?, how, keep, None),
        Format::Text => text_or_matrix(&path, file.text()?, how, keep),
    }
}

fn text_or_matrix(path: &Path, mut input: Input<'_>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let start = input.start(foreign::START).map_err(|error| input::failed(path, error))?;
    if let Some(reason) = foreign::text(path, &start) {
        return Err(Error::in_file(path, reason));
    }
    if start.starts_with(b"%%MatrixMarket") {
        matrix_market::read(path, input, how, keep, None)
    } else {
        text::read(path, input, how, keep)
    }
}
