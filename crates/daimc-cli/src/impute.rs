//! `daimc impute`: fills in missing rows and values.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use daimc::text::{plain, quoted};
use daimc::{Accuracy, Layout, Model, Source};
use serde_json::{Map, Value, json};

use crate::align::align;
use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::{Folder, recover, spare_inputs};
use crate::progress::Level;
use crate::results;
use crate::simulate::file_name;
use crate::tables::{self, Format};

#[derive(Args)]
#[command(after_help = "Example: the missing rows and values of two tables, by the model of their fit\n\n  \
                        daimc fit --view rna=rna.tsv --view prot=prot.csv -k 10 -o out\n  \
                        daimc impute out --view rna=rna.tsv --view prot=prot.csv -o complete\n\n\
                        Values are learnt from the instances that are given: give new ones together with those of the fit.")]
#[allow(clippy::struct_excessive_bools)] // They are flags of the command line.
pub struct Arguments {
    /// The model: model.safetensors of a fit, or the folder of the fit
    model: PathBuf,

    #[command(flatten)]
    data: Data,

    /// Folder for the tables: NAME.tsv (or .parquet) for each view of the model, with a row for every instance
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Write only what was missing: each table is then in long format, with the columns id, feature, value
    #[arg(long)]
    only_gaps: bool,

    /// Format of the tables: `tsv`, or `parquet` (IDs as text, values in the precision of the view, zstd)
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, default_value = "tsv")]
    format: Format,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print a summary of what was imputed as JSON
    #[arg(long)]
    json: bool,

    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { model, data, output, only_gaps, format, force, threads, json, quiet } = arguments;
    crate::use_threads(*threads)?;
    let level = Level::new(*quiet, false);
    let paths = data.paths()?;
    let mut folder = Folder::begin(output, *force)?;
    recover(model)?;
    let path = if model.is_dir() { model.join("model.safetensors") } else { model.clone() };
    let model = results::model(&path)?;
    let files = files(&model, output)?;
    for file in &files {
        spare_inputs(
            &output.join(format.file(file)),
            paths.iter().map(PathBuf::as_path).chain([path.as_path()]),
        )?;
    }
    let loaded = data.load_new(&std::env::temp_dir(), level, |view, table| align(view, table, &model))?;
    level.info(&loaded.account);
    loaded.from_disk.iter().for_each(|why| level.info(why));
    let (views, ids) = (&loaded.views, loaded.views.ids());
    let latent = model.transform(views)?;
    let mut summaries = Vec::new();
    for (own, file) in model.views.iter().zip(&files) {
        let imputed = model.impute(views, &own.name, &latent)?;
        let given = views.schema().views().find(|view| view.name() == own.name);
        let single = given.is_some_and(|view| matches!(view.layout(), Layout::DenseF32 | Layout::SparseF32));
        let values = &imputed.values;
        folder.write(&format.file(file), |out| match (format, only_gaps) {
            (Format::Tsv, true) => results::gaps(out, ids, own, &imputed, single),
            (Format::Tsv, false) => results::table(out, ids, own, values, single),
            (Format::Parquet, true) => tables::gaps(ids, own, &imputed, single).write(out),
            (Format::Parquet, false) => tables::table(ids, own, values, single).write(out),
        })?;
        folder.leave_out(&format.other().file(file))?;
        summaries.push(ViewSummary {
            view: own.name.clone(),
            given: given.is_some(),
            rows: imputed.rows(),
            cells: imputed.cells(),
            held_out: [imputed.rows_accuracy, imputed.cells_accuracy],
        });
    }
    folder.finish()?;
    print(&summaries, output, *json)
}

/// The summary of a view.
struct ViewSummary {
    view: String,
    given: bool,
    rows: usize,
    cells: usize,
    /// The estimated errors of imputed rows and of imputed cells.
    held_out: [Option<Accuracy>; 2],
}

/// Writes the table of each view.
fn files(model: &Model, output: &Path) -> Result<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for view in &model.views {
        let file = file_name(&view.name);
        if files.contains(&file) {
            let reason = "would be written twice: fit with views of other names";
            return Err(Failure::Usage(format!("{}: {reason}", output.join(file).display())));
        }
        files.push(file);
    }
    Ok(files)
}

fn print(summaries: &[ViewSummary], output: &Path, json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if json {
        let views: Map<String, Value> =
            summaries.iter().map(|own| (own.view.clone(), own.as_json())).collect();
        writeln!(out, "{:#}", json!({ "views": views }))?;
        return Ok(());
    }
    for own in summaries {
        writeln!(out, "  {}: {own}", plain(&own.view))?;
    }
    writeln!(out, "The tables are in {}", quoted(&output.display().to_string()))?;
    Ok(())
}

impl ViewSummary {
    fn as_json(&self) -> Value {
        let accuracy = |own: Option<Accuracy>| {
            own.map(|own| {
                json!({
                    "error": own.error,
                    "error_of_mean": own.of_mean,
                    "values": own.values,
                    "neighbours": own.neighbours,
                    "shares": {
                        "neighbours": own.shares.neighbours,
                        "cluster": own.shares.cluster,
                        "basis": own.shares.basis,
                    },
                })
            })
        };
        json!({
            "rows": self.rows,
            "cells": self.cells,
            "held_out_rows": accuracy(self.held_out[0]),
            "held_out_cells": accuracy(self.held_out[1]),
        })
    }
}

impl std::fmt::Display for ViewSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        if !self.given {
            return write!(f, "not given: {} made by the model alone", count(self.rows, "row"));
        }
        let mut text = match (self.rows, self.cells) {
            (0, 0) => return f.write_str("nothing is missing"),
            (rows, 0) => format!("{} filled in", count(rows, "row")),
            (0, cells) => format!("{} filled in", count(cells, "cell")),
            (rows, cells) => format!("{} and {} filled in", count(rows, "row"), count(cells, "cell")),
        };
        let mut unit = " standard deviations";
        let mut before = "; error ";
        for (what, accuracy) in ["rows", "cells"].into_iter().zip(self.held_out) {
            if let Some(accuracy) = accuracy {
                let _ = write!(
                    text,
                    "{before}{:.2}{unit} ({:.2} with means) on held-out {what}",
                    accuracy.error, accuracy.of_mean
                );
                (before, unit) = (", ", "");
            }
        }
        f.write_str(&text)
    }
}
