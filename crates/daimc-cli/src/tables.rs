//! Formats of result tables, and the columns of each table for Parquet. `results` writes the same tables as text.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use clap::ValueEnum;
use daimc::{Contributions, Ids, Imputed, Matrix, Model, ViewModel};
use daimc_files::Sink;
use daimc_io::{Values, write_parquet};
use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::folder::Folder;

/// The format of tables.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    #[default]
    Tsv,
    Parquet,
}

impl Format {
    /// The format that the extension of a file asks for; TSV by default.
    pub fn of(file: Option<&Path>) -> Self {
        let extension = file.and_then(Path::extension);
        if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")) {
            Self::Parquet
        } else {
            Self::Tsv
        }
    }

    /// The other format, in which an earlier result may have written its tables.
    pub fn other(self) -> Self {
        match self {
            Self::Tsv => Self::Parquet,
            Self::Parquet => Self::Tsv,
        }
    }

    /// The file name of a table.
    pub fn file(self, table: &str) -> String {
        match self {
            Self::Tsv => format!("{table}.tsv"),
            Self::Parquet => format!("{table}.parquet"),
        }
    }

    /// Writes a table in this format and removes the table in the other format from an earlier result.
    pub fn write<'a>(
        self,
        folder: &mut Folder,
        table: &str,
        text: impl FnOnce(&mut BufWriter<Sink>) -> io::Result<()>,
        columns: impl FnOnce() -> Columns<'a>,
    ) -> Result<()> {
        folder.write(&self.file(table), |out| match self {
            Self::Tsv => text(out),
            Self::Parquet => columns().write(out),
        })?;
        Ok(folder.leave_out(&self.other().file(table))?)
    }
}

/// The columns of a table.
pub struct Columns<'a> {
    rows: usize,
    columns: Vec<(String, Values<'a>)>,
}

impl<'a> Columns<'a> {
    fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    fn text(mut self, title: &str, of: impl Fn(usize) -> Cow<'a, str> + 'a) -> Self {
        self.columns.push((title.into(), Values::Text(Box::new(of))));
        self
    }

    /// Numbers above the 32-bit range are missing.
    fn integer(mut self, title: &str, of: impl Fn(usize) -> Option<usize> + 'a) -> Self {
        let of = move |row: usize| of(row).and_then(|number| i32::try_from(number).ok());
        self.columns.push((title.into(), Values::Integer(Box::new(of))));
        self
    }

    fn single(mut self, title: &str, of: impl Fn(usize) -> Option<f64> + 'a) -> Self {
        let of = move |row: usize| of(row).map(|number| number as f32);
        self.columns.push((title.into(), Values::Single(Box::new(of))));
        self
    }

    fn double(mut self, title: &str, of: impl Fn(usize) -> Option<f64> + 'a) -> Self {
        self.columns.push((title.into(), Values::Double(Box::new(of))));
        self
    }

    /// Values of a view in its precision: 32 bits if `single`, else 64.
    fn values(self, title: &str, single: bool, of: impl Fn(usize) -> Option<f64> + 'a) -> Self {
        if single { self.single(title, of) } else { self.double(title, of) }
    }

    /// The IDs as text, also if they are row numbers. `instance` maps a row of the table to its instance.
    fn ids(self, ids: &'a Ids, instance: impl Fn(usize) -> usize + 'a) -> Self {
        self.text("id", move |row| match ids {
            Ids::Numbers(_) => Cow::Owned(instance(row).to_string()),
            Ids::Names(names) => Cow::Borrowed(&names[instance(row)]),
        })
    }

    pub fn write(&self, out: impl Write + Send) -> io::Result<()> {
        write_parquet(out, self.rows, &self.columns)
    }
}

/// The map: id, x, y.
pub fn map<'a>(ids: &'a Ids, map: &'a Matrix) -> Columns<'a> {
    let columns = Columns::new(map.rows()).ids(ids, |row| row);
    columns.double("x", |row| Some(map[(row, 0)])).double("y", |row| Some(map[(row, 1)]))
}

/// Clusters: id, cluster, confidence.
pub fn labels<'a>(ids: &'a Ids, labels: &'a [usize], confidence: &'a [f64]) -> Columns<'a> {
    Columns::new(labels.len())
        .ids(ids, |row| row)
        .integer("cluster", |row| Some(labels[row]))
        .double("confidence", |row| Some(confidence[row]))
}

/// V: id, then the columns of V in 32 bits, as in `embedding.npy`.
pub fn embedding<'a>(ids: &'a Ids, latent: &'a Matrix) -> Columns<'a> {
    let table = Columns::new(latent.rows()).ids(ids, |row| row);
    (0..latent.columns())
        .fold(table, |table, k| table.single(&format!("v{}", k + 1), move |row| Some(latent[(row, k)])))
}

/// Contributions of the views: id, cluster, rival, then one column per view.
pub fn contributions<'a>(
    model: &Model,
    ids: &'a Ids,
    labels: &'a [usize],
    contributions: &'a Contributions,
) -> Columns<'a> {
    let table = Columns::new(labels.len())
        .ids(ids, |row| row)
        .integer("cluster", |row| Some(labels[row]))
        .integer("rival", |row| contributions.rival(row));
    model.views.iter().enumerate().fold(table, |table, (view, own)| {
        table.single(&own.name, move |row| contributions.shares(row).nth(view).flatten())
    })
}

/// Features: view, feature, cluster, weight, stability. Rows are ordered by view, then cluster, then feature.
pub fn features(model: &Model) -> Columns<'_> {
    let clusters = model.options.clusters;
    // The first row of each view.
    let first_rows: Vec<usize> = model
        .views
        .iter()
        .scan(0, |next, view| {
            let first = *next;
            *next += clusters * view.basis.rows();
            Some(first)
        })
        .collect();
    let weights: Vec<f64> = model
        .views
        .iter()
        .flat_map(|view| (0..clusters).flat_map(|cluster| model.weights(view, cluster)))
        .collect();
    let locate = move |row: usize| {
        let index = first_rows.partition_point(|&first| first <= row) - 1;
        let (view, offset) = (&model.views[index], row - first_rows[index]);
        (view, offset / view.basis.rows(), offset % view.basis.rows())
    };
    // Each column owns a copy.
    let [of_view, of_feature, of_cluster, of_stability] = std::array::from_fn(|_| locate.clone());
    Columns::new(weights.len())
        .text("view", move |row| Cow::Borrowed(&of_view(row).0.name))
        .text("feature", move |row| {
            let (view, _, f) = of_feature(row);
            match &view.feature_names {
                Some(names) => Cow::Borrowed(names[f].as_str()),
                None => Cow::Owned(f.to_string()),
            }
        })
        .integer("cluster", move |row| Some(of_cluster(row).1))
        .double("weight", move |row| Some(weights[row]))
        .double("stability", move |row| {
            let (view, cluster, f) = of_stability(row);
            view.stability.as_ref().map(|stability| stability[(f, cluster)])
        })
}

/// A view that `impute` has filled in: id, then its features.
pub fn table<'a>(ids: &'a Ids, view: &ViewModel, values: &'a Matrix, single: bool) -> Columns<'a> {
    let table = Columns::new(values.rows()).ids(ids, |row| row);
    (0..values.columns())
        .fold(table, |table, f| table.values(&feature(view, f), single, move |row| Some(values[(row, f)])))
}

/// The imputed values only: id, feature, value.
pub fn gaps<'a>(ids: &'a Ids, view: &'a ViewModel, imputed: &'a Imputed, single: bool) -> Columns<'a> {
    let mut cells: Vec<(usize, usize)> = Vec::new();
    for gap in &imputed.gaps {
        match &gap.features {
            Some(features) => cells.extend(features.iter().map(|&f| (gap.instance, f as usize))),
            None => cells.extend((0..imputed.values.columns()).map(|f| (gap.instance, f))),
        }
    }
    let cells = Rc::new(cells);
    let [of_id, of_feature, of_value] = std::array::from_fn(|_| Rc::clone(&cells));
    Columns::new(cells.len())
        .ids(ids, move |row| of_id[row].0)
        .text("feature", move |row| Cow::Owned(feature(view, of_feature[row].1)))
        .values("value", single, move |row| Some(imputed.values[of_value[row]]))
}

/// The name of a feature; without names, `f` and its number, as in the tables that `results` writes.
fn feature(view: &ViewModel, f: usize) -> String {
    view.feature_names.as_ref().map_or_else(|| format!("f{f}"), |names| names[f].clone())
}
