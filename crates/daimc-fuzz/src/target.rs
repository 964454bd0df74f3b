//! The fuzz targets: all file readers.

use std::path::{Path, PathBuf};

use daimc::source::Buffer;
use daimc::{Daimc, Fit, Layout, Model, Neighbours, View, Views};
use daimc_io::{
    Assembly, Cells, Csr, Disk, Error, Matching, Nan, Precision, Reading, Table, assemble, read, read_labels,
    read_stored,
};
use include_dir::{Dir, include_dir};

use daimc_fuzz::Random;

/// The seeds, with a folder for each target.
static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpus");

/// A reader and its seeds.
pub struct Target {
    pub name: &'static str,
    pub seeds: Vec<Vec<u8>>,
    reader: Reader,
    /// The file to which mutants are written.
    path: PathBuf,
}

enum Reader {
    /// A reader of tables, with the names of variables to select.
    Table(&'static [&'static str]),
    /// A reader of labels, with the name of the column.
    Labels(Option<&'static str>),
    /// The reader of masks, with the table of a view that the mask refers to.
    Mask(Box<Table>),
    /// The reader of row names, with the matrix whose rows they name.
    Names(PathBuf),
    /// The reader of models, with data to which a model is applied.
    Model(Views<'static>),
}

/// The options with which a case is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    pub reading: Reading<'static>,
    pub variable: Option<&'static str>,
    nan: Nan,
}

/// The outcome of a case.
pub enum Outcome {
    /// The reader returned an error, as it should for a damaged file.
    Refused,
    /// The file was read; the table, if it is one.
    Read(Option<Box<Table>>),
    /// Reading to disk and into memory gave different values, or only one of them failed.
    Differs,
}

const TABLES: [(&str, &str, &[&str]); 17] = [
    ("csv", "case.csv", &[]),
    ("gz", "case.csv.gz", &[]),
    ("zst", "case.csv.zst", &[]),
    ("npy", "case.npy", &[]),
    ("npz", "case.npz", &["a", "arr_0"]),
    ("mat", "case.mat", &["a", "s", "X{1}", "X{2}", "X{3}{2}", "X{1,3}{1,2}"]),
    ("mtx", "case.mtx", &[]),
    (
        "hdf5",
        "case.h5",
        &["layers/counts", "raw", "obsm/X_pca", "rna", "prot/layers/counts", "Gene Expression", "a"],
    ),
    ("mat73", "case73.mat", &["a", "s", "X{1}", "X{2}"]),
    ("parquet", "case.parquet", &[]),
    ("arrow", "case.arrow", &[]),
    ("xlsx", "case.xlsx", &["b"]),
    ("ods", "case.ods", &["b"]),
    ("gct", "case.gct", &[]),
    ("bz2", "case.csv.bz2", &[]),
    ("xz", "case.csv.xz", &[]),
    ("zip", "case.zip", &["a.csv", "b.tsv"]),
];

impl Target {
    /// Creates all targets, each with its own folder for mutants.
    pub fn all(scratch: &Path) -> Result<Vec<Self>, String> {
        let folder = |name: &str| {
            let folder = scratch.join(name);
            std::fs::create_dir_all(&folder).map(|()| folder).map_err(|error| error.to_string())
        };
        let write = |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| error.to_string());
        let mut targets = Vec::new();
        for (name, file, variables) in TABLES {
            targets.push(Self::new(name, Reader::Table(variables), folder(name)?.join(file)));
        }
        targets.push(Self::new("labels", Reader::Labels(None), folder("labels")?.join("case.csv")));
        let obs = Reader::Labels(Some("obs/kind"));
        targets.push(Self::new("obs", obs, folder("obs")?.join("case.h5ad")));

        let table = folder("mask")?.join("table.csv");
        write(&table, "id,x\ns0,1\ns1,2\ns2,3\n")?;
        let table = read(&table, None, Reading::default()).map_err(|error| error.to_string())?;
        targets.push(Self::new("mask", Reader::Mask(Box::new(table)), folder("mask")?.join("case.csv")));

        let matrix = folder("names")?.join("case.mtx");
        write(&matrix, "%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 1\n2 2 1\n")?;
        targets.push(Self::new("names", Reader::Names(matrix), folder("names")?.join("case.ids")));

        let (views, models) = models().map_err(|error| error.to_string())?;
        let mut model = Self::new("model", Reader::Model(views), folder("model")?.join("case.safetensors"));
        model.seeds.extend(models);
        targets.push(model);
        Ok(targets)
    }

    fn new(name: &'static str, reader: Reader, path: PathBuf) -> Self {
        let files = CORPUS.get_dir(name).into_iter().flat_map(Dir::files);
        let seeds = files.map(|file| file.contents().to_vec()).collect();
        Self { name, seeds, reader, path }
    }

    /// The file of the last mutant.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Draws the options of a case, mostly the defaults.
    pub fn how(&self, random: &mut Random) -> How {
        let variable = match self.reader {
            Reader::Table(variables) if !variables.is_empty() && random.once_in(2) => {
                Some(*random.pick(variables))
            }
            _ => None,
        };
        let reading = Reading {
            transpose: random.once_in(4),
            no_ids: random.once_in(4),
            precision: [None, None, Some(Precision::F32), Some(Precision::F64)][random.below(4)],
            decimal_comma: random.once_in(8),
            drop: &[],
        };
        How { reading, variable, nan: [Nan::Model, Nan::Mean, Nan::Error][random.below(3)] }
    }

    /// Reads a file and assembles the views as for a fit.
    pub fn read(&self, bytes: &[u8], how: How) -> Outcome {
        match &self.reader {
            Reader::Table(_) => Self::table(&self.path, how),
            Reader::Labels(column) => read_labels(&self.path, *column, &Matching::default())
                .map_or(Outcome::Refused, |_| Outcome::Read(None)),
            Reader::Mask(table) => {
                let assembly = Assembly { mask: Some(self.path.clone()), ..Assembly::default() };
                let joined = assemble(vec![("v".into(), Table::clone(table))], &assembly);
                joined.map_or(Outcome::Refused, |_| Outcome::Read(None))
            }
            Reader::Names(matrix) => Self::table(matrix, how),
            Reader::Model(views) => {
                // A model that was read must not panic in use.
                let model = Model::from_bytes(bytes).map(|model| {
                    let _ = model.place(views);
                    let _ = model.to_bytes();
                });
                let fit = Fit::from_bytes(bytes).map(|fit| {
                    let _ = fit.contributions(views);
                    let _ = fit.to_bytes();
                });
                if model.is_ok() || fit.is_ok() { Outcome::Read(None) } else { Outcome::Refused }
            }
        }
    }

    /// Reads a table into memory and, a second time, to disk.
    fn table(path: &Path, how: How) -> Outcome {
        let disk = Disk::new(path.parent().unwrap_or(Path::new(".")));
        let stored = read_stored(path, how.variable, how.reading, &disk);
        let table = match (read(path, how.variable, how.reading), stored) {
            // A table that does not fit into memory may fit on disk.
            (Err(Error::Memory { .. }), _) | (Err(_), Err(_)) => return Outcome::Refused,
            (Ok(table), Ok((stored, _))) if is_same(&table, &stored) => table,
            _ => return Outcome::Differs,
        };
        let assembly = Assembly { nan: how.nan, ..Assembly::default() };
        let _ = assemble(vec![("v".into(), table.clone())], &assembly);
        Outcome::Read(Some(Box::new(table)))
    }
}

/// Whether a table on disk equals one in memory.
fn is_same(table: &Table, on_disk: &Table) -> bool {
    fn values<T: Copy + Into<f64>>(ours: &[T], others: &[T]) -> bool {
        let bits = |value: T| {
            let value: f64 = value.into();
            // NaN has several representations.
            if value.is_nan() { None } else { Some(value.to_bits()) }
        };
        ours.len() == others.len() && ours.iter().zip(others).all(|(a, b)| bits(*a) == bits(*b))
    }
    fn rows<T: Copy + Into<f64>>(csr: &Csr<T>, buffer: &Buffer, others: &[T]) -> bool {
        (&csr.offsets, &csr.columns) == (&buffer.offsets, &buffer.columns) && values(&csr.values, others)
    }
    let about = |table: &Table| (table.rows, table.columns, table.variable.clone(), table.transposed);
    let names = |table: &Table| (table.ids.clone(), table.features.clone(), table.lines.clone());
    let Cells::Stored(stored) = &on_disk.cells else { return false };
    let mut buffer = Buffer::default();
    if about(table) != about(on_disk)
        || names(table) != names(on_disk)
        || stored.rows().read(0..table.rows, &mut buffer).is_err()
    {
        return false;
    }
    match (&table.cells, stored.layout()) {
        (Cells::DenseF32(ours), Layout::DenseF32) => values(ours, &buffer.f32),
        (Cells::DenseF64(ours), Layout::DenseF64) => values(ours, &buffer.f64),
        (Cells::SparseF32(ours), Layout::SparseF32) => rows(ours, &buffer, &buffer.f32),
        (Cells::SparseF64(ours), Layout::SparseF64) => rows(ours, &buffer, &buffer.f64),
        _ => false,
    }
}

/// Seeds for models in the current format: fits with and without optional parts, and a bare model.
fn models() -> daimc::Result<(Views<'static>, Vec<Vec<u8>>)> {
    let value =
        |i: usize, j: usize| ((i * 7 + j * 3) % 5) as f64 + if i.is_multiple_of(2) { 9.0 } else { 0.0 };
    let matrix = |d: usize| (0..8).flat_map(|i| (0..d).map(move |j| value(i, j))).collect::<Vec<_>>();
    let ids = || (0..8).map(|i| format!("i{i}")).collect::<Vec<_>>();
    let names = |d: usize| (0..d).map(|j| format!("f{j}")).collect::<Vec<_>>();
    let a = View::dense("a", 3, matrix(3))?.ids(ids())?.feature_names(names(3))?;
    let b = View::dense("b", 2, matrix(2))?.ids(ids())?;
    let views = Views::join(vec![a, b])?.0;
    let plain = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(3);
    let fits = [plain.clone().fit(&views)?, plain.runs(2).fit(&views)?];
    let models = [fits[0].to_bytes()?, fits[1].to_bytes()?, fits[1].model.to_bytes()?];
    Ok((views, models.into()))
}

/// All values of a table by row, for a comparison with other libraries.
pub fn values(table: &Table) -> Vec<f64> {
    fn fill<T: Copy + Into<f64>>(table: &Table, csr: &daimc_io::Csr<T>) -> Vec<f64> {
        let mut values = vec![0.0; table.rows * table.columns];
        for row in 0..table.rows {
            for k in csr.offsets[row]..csr.offsets[row + 1] {
                values[row * table.columns + csr.columns[k] as usize] = csr.values[k].into();
            }
        }
        values
    }
    match &table.cells {
        Cells::DenseF32(values) => values.iter().map(|&value| value.into()).collect(),
        Cells::DenseF64(values) => values.clone(),
        Cells::SparseF32(csr) => fill(table, csr),
        Cells::SparseF64(csr) => fill(table, csr),
        Cells::Stored(_) => Vec::new(),
    }
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { reading: Reading { transpose, no_ids, precision, decimal_comma, .. }, variable, nan } =
            self;
        let transpose = if *transpose { "-transpose" } else { "" };
        let no_ids = if *no_ids { "-no_ids" } else { "" };
        let comma = if *decimal_comma { "-comma" } else { "" };
        write!(f, "{nan:?}{transpose}{no_ids}{comma}")?;
        if let Some(precision) = precision {
            write!(f, "-{precision:?}")?;
        }
        variable.map_or(Ok(()), |variable| write!(f, "-{variable}"))
    }
}
