//! The arrays of an archive, and the sparse matrix that they may form.

use std::io::BufReader;
use std::ops::AddAssign;

use daimc_core::text::quoted;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::input::Random;
use crate::listing::{LISTED, listing};
use crate::npy::Array;
use crate::number::Target;
use crate::sparse::Shape;
use crate::{Cells, Csr, Error, Position, Precision, Reading, Result, Table};

/// The maximum compression ratio of Deflate; a header with a larger one is wrong.
const DEFLATE_LIMIT: u64 = 1032;

/// The matrix to read.
pub(super) enum Wanted {
    Array(String),
    /// The sparse matrix that fills the file.
    Sparse,
}

pub(super) type Entry<'a> = ZipFile<'a, BufReader<Random>>;

pub(super) struct Archive {
    pub place: Position,
    pub bytes: Random,
    pub zip: ZipArchive<BufReader<Random>>,
}

impl Archive {
    pub(super) fn open(place: Position, bytes: Random) -> Result<Self> {
        let zip = ZipArchive::new(BufReader::new(bytes.clone())).map_err(|error| damaged(&place, error))?;
        Ok(Self { place, bytes, zip })
    }

    /// The array called `variable`; without a name, a sparse matrix that fills the file, or the only matrix.
    pub(super) fn wanted(&mut self, variable: Option<&str>) -> Result<Wanted> {
        match variable {
            Some(name) if self.has(name) => Ok(Wanted::Array(name.into())),
            Some(name) => {
                let list = self.list()?;
                Err(self.place.fault(format!("has no array {}; it holds {list}", quoted(name))))
            }
            None if self.has("format") && self.has("shape") => Ok(Wanted::Sparse),
            None => self.only_matrix().map(Wanted::Array),
        }
    }

    /// The names of the arrays, without `.npy`.
    fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().flatten();
        names.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    pub(super) fn array(&mut self, name: &str) -> Result<Array<Entry<'_>>> {
        let place = Position::array(&self.place.path, name);
        let entry = self.zip.by_name(&format!("{name}.npy")).map_err(|error| damaged(&place, error))?;
        let size = entry.size();
        if size > self.bytes.length().min(entry.compressed_size()).saturating_mul(DEFLATE_LIMIT) {
            return Err(place.fault("should be longer than the file can hold; copy it again or save it anew"));
        }
        Array::open(place, entry, size)
    }

    /// Names, types and shapes, for a message.
    fn list(&mut self) -> Result<String> {
        let names = self.names();
        let mut parts = Vec::new();
        for name in names.iter().take(LISTED) {
            let header = self.array(name)?.header;
            parts.push(format!("{} ({} {})", quoted(name), header.type_name(), header.shape()));
        }
        Ok(listing(&parts, names.len(), "no arrays"))
    }

    /// The name of the only matrix. In files with an array of objects, which holds the views, a single matrix holds labels.
    fn only_matrix(&mut self) -> Result<String> {
        let names = self.names();
        let mut matrices = Vec::new();
        let mut objects = false;
        for name in &names {
            let header = self.array(name)?.header;
            objects |= header.type_name() == "object";
            if header.shape.len() == 2 {
                matrices.push(name);
            }
        }
        match (&*matrices, &*names) {
            ([name], _) if !objects => Ok((*name).clone()),
            ([], [name]) => Ok(name.clone()),
            _ => {
                let list = self.list()?;
                Err(self.place.fault(format!("holds {list}; pick one with ::NAME after the path")))
            }
        }
    }

    pub(super) fn sparse(&mut self, how: Reading) -> Result<Table> {
        let encoding = self.array("data")?.header.encoding();
        let own = encoding.map_or(Precision::F64, |encoding| encoding.kind.precision());
        let (shape, cells) = match how.precision.unwrap_or(own) {
            Precision::F32 => self.sparse_of(how).map(|(shape, csr)| (shape, Cells::SparseF32(csr)))?,
            Precision::F64 => self.sparse_of(how).map(|(shape, csr)| (shape, Cells::SparseF64(csr)))?,
        };
        Ok(Table::new(self.place.clone(), shape[0], shape[1], cells, how))
    }

    /// The format and the shape of a sparse matrix.
    pub(super) fn description(&mut self) -> Result<(String, [usize; 2])> {
        let place = self.place.clone();
        let format = self.array("format")?.text()?;
        let shape = self.array("shape")?.list()?;
        let &[rows, columns] = &*shape else {
            return Err(place.fault(format!("has {} dimensions, but a view is a matrix", shape.len())));
        };
        if !matches!(&*format, "csr" | "csc" | "coo") {
            return Err(place.fault(format!(
                "is a sparse matrix in the format {}; save it as CSR, with \
                 scipy.sparse.save_npz(path, matrix.tocsr())",
                quoted(&format)
            )));
        }
        Ok((format, [rows, columns]))
    }

    fn sparse_of<T: Target + AddAssign>(&mut self, how: Reading) -> Result<([usize; 2], Csr<T>)> {
        let place = self.place.clone();
        let (format, [rows, columns]) = self.description()?;
        let values = self.array("data")?.list::<T>()?;
        let (rows, columns) = if how.transpose { (columns, rows) } else { (rows, columns) };
        let shape = Shape::new(&place, rows, columns, values.len())?;
        let csr = if format == "coo" {
            let names = if how.transpose { ["col", "row"] } else { ["row", "col"] };
            let row = self.array(names[0])?.list()?;
            let column = self.array(names[1])?.list()?;
            shape.rows_of_triplets(&place, (&row, &column), &values)?
        } else {
            let offsets = self.array("indptr")?.list()?;
            let columns = self.array("indices")?.list()?;
            let compressed = Csr { offsets, columns, values };
            // The rows of a matrix are the columns of its transpose.
            if (format == "csr") == how.transpose {
                shape.rows_of_columns(&place, compressed)?
            } else {
                shape.rows_in_order(&place, compressed)?
            }
        };
        Ok(([rows, columns], csr))
    }
}

pub(super) fn damaged(place: &Position, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => place.unreadable(error),
        ZipError::FileNotFound => place.fault("is not in the archive; save it anew"),
        error => place.fault(format!("is not an .npz archive that can be read ({error}); save it anew")),
    }
}
