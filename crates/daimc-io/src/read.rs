//! Reads one file as a table: picks the reader of its format, and where the values are kept.

use std::path::Path;

use crate::archive::Content;
use crate::disk::{Keep, store_cells};
use crate::format::Format;
use crate::input::{Input, Opened};
use crate::{Cells, Disk, Error, Reading, Result, Table};
use crate::{
    archive, arrow, cell_ranger, foreign, hdf5, input, mat, matrix_market, names, npy, npz, parquet, text,
};

/// Reads one table. `-` is standard input, and pipes and devices are read as files are. `variable` picks an array in a
/// container: an array of an `.npz`, a table in a `.zip`, a sheet of an `.xlsx` or `.ods`, a variable of a `.mat` (`X{2}` for a cell), `layers/counts`, `raw` or `obsm/X_pca` of an
/// `.h5ad`, `rna` or `rna/layers/counts` of an `.h5mu`, a type of features of a 10x file. A folder is one that Cell Ranger
/// writes: `matrix.mtx`, `barcodes.tsv` and `features.tsv`.
///
/// The format is told by the name of the file, or by its first bytes where the name does not tell, as that of a pipe.
///
/// # Errors
/// When the file cannot be read or is not what its name says; the message names the file and the place in it.
pub fn read(path: &Path, variable: Option<&str>, how: Reading) -> Result<Table> {
    parse(&mut Opened::new(path, false)?, variable, how, Keep::Memory)
}

/// Reads one table as [`read`] does, and returns with it the SHA-256 of the file in hexadecimal digits: that of the bytes
/// the table was made of, which are read once.
///
/// # Errors
/// As [`read`].
pub fn read_hashed(path: &Path, variable: Option<&str>, how: Reading) -> Result<(Table, String)> {
    let mut file = Opened::new(path, true)?;
    let table = parse(&mut file, variable, how, Keep::Memory)?;
    Ok((table, file.sha256()?))
}

/// As [`read_hashed`], but the values stay on disk: in the file itself if it is a `.npy`, or an `.npz` that is not compressed
/// and holds a dense matrix or sorted rows (CSR); else in spool files, which have no name and are gone with the table. They
/// are written as the file is read, so that its values are never in memory at once; but those of a symmetric
/// `array` of Matrix Market are.
///
/// # Errors
/// As [`read`], when a spool file cannot be written, and when the switch of the disk is set.
pub fn read_stored(
    path: &Path,
    variable: Option<&str>,
    how: Reading,
    disk: &Disk,
) -> Result<(Table, String)> {
    let mut file = Opened::new(path, disk.hashed)?;
    if !Format::of(&file.place.path, file.start()).is_text() {
        file.land(disk, 0)?;
    }
    store(file, variable, how, disk)
}

/// As [`read_hashed`], but values that take more than so many bytes, or that there is no memory for, stay on disk as
/// [`read_stored`] leaves them there. What comes through a pipe is written to disk when it has turned out to be too much.
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
        // Beside what came there is the table that is made of it.
        file.land(disk, most / 2)?;
        if !file.is_held() {
            return store(file, variable, how, disk);
        }
    }
    match parse(&mut file, variable, how, Keep::Within(disk, most)) {
        Err(Error::Memory { .. }) if on_disk => read_stored(path, variable, how, disk),
        Err(Error::Memory { .. }) if file.is_held() => {
            file.put_down(disk)?;
            store(file, variable, how, disk)
        }
        table => Ok((table?, file.sha256()?)),
    }
}

/// What picks the views of a file that holds several, in their order: the modalities of an `.h5mu` file, or the types of features of
/// a 10x file or folder. Empty for a file that is one view, and for what can be read but once.
///
/// # Errors
/// When the file is none that can be read.
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
    let remarks = [names::told_apart(&mut table), names::numbers(&table)];
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
        Format::Parquet => parquet::read(file, how, keep),
        Format::Arrow => arrow::read(file, how, keep),
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
