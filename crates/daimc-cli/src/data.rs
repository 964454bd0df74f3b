//! The options for reading data, and reading the views.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use daimc::text::{list, plain, quoted};
use daimc::{Layout, Views};
use daimc_io::{Account, Assembly, Cells, Column, Location, Reading, Size, Table};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::help::{IDS, READING, RESOURCES};
use crate::ids::IdOptions;
use crate::memory;
use crate::paths::{in_folder, is_standard_input, read_once, utf8};
use crate::progress::{self, Level, Spooling};

/// Which files to read, and how.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Data {
    /// A view: its name and its file; repeat for each view
    ///
    /// CSV, TSV or GCT, optionally compressed or in a .zip, .npy, .npz, .mat, .mtx, .parquet, .feather, .xlsx, .ods, .h5ad,
    /// 10x .h5 or a 10x folder, or `-` for standard input. `::VARIABLE` selects an array in a container, as in
    /// `digits.mat::X{2}`, `data.xlsx::Sheet2` or `cells.h5ad::layers/counts`. Each modality of a .h5mu file is a view.
    #[arg(long, value_name = "NAME=PATH[::VARIABLE]", value_parser = utf8())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub view: Vec<String>,

    /// A table of IDs with a column for each view by name: 1 if the instance is present in the view, 0 to hide it [default:
    /// none]
    #[arg(long, help_heading = READING, value_name = "FILE", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,

    /// Files have features in rows and instances in columns; for some views only: `--transpose=rna,protein` [default: no]
    #[arg(long, value_name = "VIEWS", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transpose: Option<Which>,

    /// Files have no IDs in their first column: instances are identified by row number; for some views only: `--no-ids=rna`
    /// [default: no]
    #[arg(long, help_heading = READING, value_name = "VIEWS", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_ids: Option<Which>,

    /// Columns to drop from tables (text, spreadsheets, Parquet, Feather), by name, in every view that has them: `--drop
    /// Symbol,Chr` [default: none]
    #[arg(long, help_heading = READING, value_name = "COLUMNS", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,

    /// Decimal separator in text files, `.` or `,` [default: .]
    #[arg(long, help_heading = READING, value_name = "SIGN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,

    #[command(flatten)]
    #[serde(flatten)]
    pub ids: IdOptions,

    /// Allow a view to have no instance in common with another; without it, IDs that never match are an error
    #[arg(long, help_heading = IDS)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_disjoint: bool,

    /// Rows with missing values: `model` uses the values that are present, `error` rejects them, `mean` fills in the mean
    /// of the feature [default: model]
    #[arg(long, help_heading = READING, value_name = "HOW", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<Nan>,

    /// Type of the values in memory: `f32`, `f64`, or `auto` for the type in the file, f64 for text [default: auto]
    #[arg(long, help_heading = READING, value_name = "TYPE", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,

    /// Memory limit, such as `500MB` or `16GB`: larger data are read from disk in every pass, in place (.npy, uncompressed
    /// .npz) or from unnamed temporary files [default: free memory]
    #[arg(long, help_heading = RESOURCES, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

/// The decimal separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decimal {
    #[serde(rename = ".")]
    Point,
    #[serde(rename = ",")]
    Comma,
}

impl FromStr for Decimal {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err("write a point or a comma: --decimal ,"),
        }
    }
}

/// All views, or some of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Which {
    /// All or none.
    Flag(bool),
    /// The views of these names.
    Names(Vec<String>),
}

impl FromStr for Which {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = || text.split(',').map(|name| name.trim().to_owned()).collect();
        Ok(if text == "*" { Self::Flag(true) } else { Self::Names(names()) })
    }
}

impl Which {
    fn has(which: Option<&Self>, view: &str) -> bool {
        match which {
            None => false,
            Some(Self::Flag(all)) => *all,
            Some(Self::Names(names)) => names.iter().any(|name| name == view),
        }
    }

    fn check(which: Option<&Self>, option: &str, views: &[Location]) -> Result<()> {
        let Some(Self::Names(names)) = which else { return Ok(()) };
        match names.iter().find(|name| views.iter().all(|view| view.name != **name)) {
            None => Ok(()),
            Some(unknown) => {
                let known = list(views.iter().map(|view| plain(&view.name)));
                Err(Failure::Usage(format!("{option} names {}, but the views are {known}", quoted(unknown))))
            }
        }
    }
}

/// Handling of rows with missing values.
#[derive(ValueEnum, Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nan {
    Model,
    Error,
    Mean,
}

/// The type of values.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    Auto,
    F32,
    F64,
}

/// An input file, as recorded in `summary.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The view.
    pub name: String,
    /// The path as given.
    pub path: PathBuf,
    /// The selected array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Instances and features.
    pub shape: [usize; 2],
    /// Dense or sparse, and the type of the values.
    pub values: String,
    /// Number of stored values.
    pub entries: usize,
    /// Their size in memory.
    pub bytes: usize,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// Tables with the names of their views.
pub type Tables = Vec<(String, Table)>;

/// Loaded data.
pub struct Loaded {
    pub views: Views<'static>,
    /// The reason why rows are read from disk; `None` if they are in memory.
    pub from_disk: Option<String>,
    pub account: Account,
    pub inputs: Vec<Input>,
}

impl Data {
    /// Reads the files and joins them. Data that do not fit into memory stay on disk; those that cannot be read in place
    /// are copied to temporary files in `folder`.
    pub fn load(&self, folder: &Path, level: Level) -> Result<Loaded> {
        self.join(self.allow_disjoint, Some(Spooling::new(folder, level)), |_, table| Ok(table))
    }

    /// As [`Data::load`], without the SHA-256 of the files.
    pub fn look(&self, folder: &Path, level: Level) -> Result<Loaded> {
        self.join(self.allow_disjoint, Some(Spooling::new(folder, level).unhashed()), |_, table| Ok(table))
    }

    /// Reads all files into memory and joins them.
    pub fn load_whole(&self) -> Result<Loaded> {
        self.join(self.allow_disjoint, None, |_, table| Ok(table))
    }

    /// Reads the files of new instances, applies `change` to each table (with the name of its view), and joins them. Views may
    /// have no instance in common, and the SHA-256 of the files is not computed.
    pub fn load_new(
        &self,
        folder: &Path,
        level: Level,
        change: impl Fn(&str, Table) -> Result<Table>,
    ) -> Result<Loaded> {
        self.join(true, Some(Spooling::new(folder, level).unhashed()), change)
    }

    /// As [`Data::load_new`], with the SHA-256 of the files, which the updated model records.
    pub fn load_batch(
        &self,
        folder: &Path,
        level: Level,
        change: impl Fn(&str, Table) -> Result<Table>,
    ) -> Result<Loaded> {
        self.join(true, Some(Spooling::new(folder, level)), change)
    }

    fn join(
        &self,
        apart: bool,
        spooling: Option<Spooling>,
        change: impl Fn(&str, Table) -> Result<Table>,
    ) -> Result<Loaded> {
        self.memory.as_deref().map_or(Ok(()), memory::limit)?;
        let level = spooling.as_ref().map_or(Level::Normal, |spooling| spooling.level);
        let (mut from_disk, (tables, inputs)) = match spooling {
            None => (None, self.read()?),
            Some(spooling) => {
                let sizes = self.sizes()?;
                let from_disk = memory::too_large(&sizes);
                let read = match from_disk {
                    Some(_) => self.spool(&spooling),
                    None => self.read_or_spool(&spooling, &sizes),
                };
                spooling.finish();
                (from_disk, read?)
            }
        };
        if tables.iter().any(|(_, table)| matches!(table.cells, Cells::Stored(_))) {
            from_disk.get_or_insert_with(|| memory::FROM_DISK.into());
        }
        for (name, table) in &tables {
            table
                .remarks
                .iter()
                .for_each(|remark| level.info(format!("warning: view {} {remark}", plain(name))));
        }
        let change = |(name, table): (String, Table)| Ok((name.clone(), change(&name, table)?));
        let tables = tables.into_iter().map(change).collect::<Result<_>>()?;
        let nan = match self.nan {
            None | Some(Nan::Model) => daimc_io::Nan::Model,
            Some(Nan::Error) => daimc_io::Nan::Error,
            Some(Nan::Mean) => daimc_io::Nan::Mean,
        };
        let mask = self.mask.as_ref().map(PathBuf::from);
        let matching = self.ids.matching()?;
        let (views, account) = daimc_io::assemble(tables, &Assembly { nan, mask, apart, matching })?;
        Ok(Loaded { views, from_disk, account, inputs })
    }

    /// The expected sizes of the tables in memory.
    pub fn sizes(&self) -> Result<Vec<Size>> {
        let sizes = self.locations()?.into_iter().map(|location| {
            if is_standard_input(&location.path) {
                return Ok(Size::default());
            }
            let Location { name, path, variable } = &location;
            Ok(daimc_io::expected(path, variable.as_deref(), self.reading(name))?)
        });
        sizes.collect()
    }

    fn reading(&self, name: &str) -> Reading<'_> {
        Reading {
            transpose: Which::has(self.transpose.as_ref(), name),
            no_ids: Which::has(self.no_ids.as_ref(), name),
            precision: match self.precision {
                None | Some(Precision::Auto) => None,
                Some(Precision::F32) => Some(daimc_io::Precision::F32),
                Some(Precision::F64) => Some(daimc_io::Precision::F64),
            },
            decimal_comma: self.decimal == Some(Decimal::Comma),
            drop: &self.drop,
        }
    }

    /// Reads the files into memory.
    pub fn read(&self) -> Result<(Tables, Vec<Input>)> {
        self.read_with(|Location { name, path, variable }| {
            Ok(daimc_io::read_hashed(path, variable.as_deref(), self.reading(name))?)
        })
    }

    /// Reads the files; all values stay on disk.
    fn spool(&self, spooling: &Spooling) -> Result<(Tables, Vec<Input>)> {
        progress::listen();
        self.read_with(|Location { name, path, variable }| {
            let disk = spooling.disk(name);
            Ok(daimc_io::read_stored(path, variable.as_deref(), self.reading(name), &disk)?)
        })
    }

    /// Reads the files into memory as far as they fit; the values of the others stay on disk. Pipes, whose sizes are
    /// unknown, share the memory that files of these sizes leave free.
    fn read_or_spool(&self, spooling: &Spooling, sizes: &[Size]) -> Result<(Tables, Vec<Input>)> {
        let pipes = sizes.iter().filter(|size| size.bytes == 0).count().max(1);
        let left = memory::left(sizes) / pipes as u64;
        let names = self.names()?;
        let most = |view: &str| {
            let own =
                names.iter().zip(sizes).find(|(name, _)| *name == view).map_or(0, |(_, size)| size.bytes);
            own.saturating_add(left)
        };
        let read = self.read_with(|Location { name, path, variable }| {
            let (how, disk) = (self.reading(name), spooling.disk(name));
            Ok(daimc_io::read_within(path, variable.as_deref(), how, &disk, most(name))?)
        })?;
        // Readers into memory do not check for interruption.
        if progress::interrupted() {
            return Err(daimc_io::Error::Interrupted.into());
        }
        Ok(read)
    }

    fn read_with(
        &self,
        read: impl Fn(&Location) -> Result<(Table, String)> + Sync,
    ) -> Result<(Tables, Vec<Input>)> {
        let locations = self.locations()?;
        self.memory.as_deref().map_or(Ok(()), memory::limit)?;
        // Files are hashed and decoded in parallel; of several errors, the first in file order is returned.
        let read = locations.into_par_iter().map(|location| {
            let (table, sha256) = read(&location)?;
            let Location { name, path, variable } = location;
            let shape = [table.rows, table.columns];
            let (values, entries, bytes) = kind(&table);
            let input = Input { name: name.clone(), path, variable, shape, values, entries, bytes, sha256 };
            Ok(((name, table), input))
        });
        let read: Vec<Result<_>> = read.collect();
        let (tables, inputs): (Tables, Vec<Input>) =
            read.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        self.check_dropped(&tables)?;
        Ok((tables, inputs))
    }

    /// Fails if no view has a column that `--drop` names.
    fn check_dropped(&self, tables: &Tables) -> Result<()> {
        let known = |name: &String| tables.iter().any(|(_, table)| table.dropped.contains(name));
        match self.drop.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(unknown) => Err(Failure::Usage(format!(
                "--drop names {}, but no view has a column with this title (in text, a spreadsheet, Parquet or Feather)",
                quoted(unknown)
            ))),
        }
    }

    /// The names of the views.
    pub fn names(&self) -> Result<Vec<String>> {
        Ok(self.locations()?.into_iter().map(|location| location.name).collect())
    }

    /// The paths of the views, in order.
    pub fn view_paths(&self) -> Result<Vec<PathBuf>> {
        Ok(self.locations()?.into_iter().map(|location| location.path).collect())
    }

    /// The paths of all input files.
    pub fn paths(&self) -> Result<Vec<PathBuf>> {
        let views = self.view_paths()?.into_iter();
        Ok(views.chain(self.mask.as_ref().map(PathBuf::from)).chain(self.ids.path()).collect())
    }

    /// Fails if standard input is read twice, as a view and as the table of classes.
    pub fn check_truth(&self, truth: &str) -> Result<()> {
        let Column { path, .. } = truth.parse()?;
        read_once(self.paths()?.iter().map(PathBuf::as_path).chain([path.as_path()]))
    }

    /// Resolves relative paths against a folder.
    pub fn in_folder(&mut self, folder: &Path) -> Result<()> {
        self.locations()?;
        for view in &mut self.view {
            let Location { name, path, variable } = view.parse()?;
            let variable = variable.map_or_else(String::new, |variable| format!("::{variable}"));
            *view = format!("{name}={}{variable}", in_folder(folder, &path)?);
        }
        if let Some(mask) = &mut self.mask {
            *mask = in_folder(folder, Path::new(mask))?;
        }
        self.ids.in_folder(folder)
    }

    fn locations(&self) -> Result<Vec<Location>> {
        if self.view.is_empty() {
            return Err(Failure::Usage("give at least one view: --view NAME=PATH".into()));
        }
        let mut locations = Vec::new();
        for view in &self.view {
            locations.extend(each_part(view.parse()?)?);
        }
        for (i, location) in locations.iter().enumerate() {
            if locations[..i].iter().any(|other| other.name == location.name) {
                let reason = "two views have this name: write NAME=PATH with another name";
                return Err(Failure::Usage(format!("--view {}: {reason}", quoted(&location.name))));
            }
        }
        let files = locations.iter().map(|location| location.path.as_path());
        let map = self.ids.path();
        read_once(files.chain(self.mask.as_ref().map(Path::new)).chain(map.as_deref()))?;
        self.ids.check()?;
        Which::check(self.transpose.as_ref(), "--transpose", &locations)?;
        Which::check(self.no_ids.as_ref(), "--no-ids", &locations)?;
        Ok(locations)
    }
}

/// Expands a file of several views, unless one is selected, to one location per view, with the names in the file.
fn each_part(location: Location) -> Result<Vec<Location>> {
    let Location { path, variable: None, .. } = &location else { return Ok(vec![location]) };
    let parts = daimc_io::parts(path)?;
    if parts.is_empty() {
        return Ok(vec![location]);
    }
    if !location.is_unnamed() {
        let known = list(parts.iter().map(|part| quoted(part)));
        let reason =
            format!("it holds {known}: pick one with ::NAME after the path, or give all by the path alone");
        return Err(Failure::Usage(format!("--view {}: {reason}", quoted(&location.name))));
    }
    let part = |part: String| Location { name: part.clone(), path: path.clone(), variable: Some(part) };
    Ok(parts.into_iter().map(part).collect())
}

/// The layout of a table, the number of stored values, and their size in bytes.
fn kind(table: &Table) -> (String, usize, usize) {
    let (kind, entries, size) = match &table.cells {
        Cells::DenseF32(values) => ("dense f32", values.len(), 4),
        Cells::DenseF64(values) => ("dense f64", values.len(), 8),
        Cells::SparseF32(csr) => ("sparse f32", csr.values.len(), 8),
        Cells::SparseF64(csr) => ("sparse f64", csr.values.len(), 12),
        Cells::Stored(stored) => {
            let name = match stored.layout() {
                Layout::DenseF32 => "dense f32",
                Layout::DenseF64 => "dense f64",
                Layout::SparseF32 => "sparse f32",
                Layout::SparseF64 => "sparse f64",
            };
            (name, stored.entries(), stored.layout().bytes())
        }
    };
    (kind.into(), entries, entries * size)
}
