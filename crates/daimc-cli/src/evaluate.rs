//! `daimc evaluate`: metrics of clusters against true classes.

use std::io::{self, Write};

use clap::Args;
use daimc::metrics;
use daimc::text::quoted;
use daimc_io::Column;

use crate::failure::{Failure, Result};
use crate::ids::IdOptions;
use crate::paths::{read_once, utf8};
use crate::tables::Format;
use crate::terminal::print_line;
use crate::truth;

#[derive(Args)]
pub struct Arguments {
    /// The clusters: the folder of a fit, its labels.tsv or .parquet, or any table of IDs and labels; `::COLUMN` names the column
    /// if there are several
    #[arg(value_name = "LABELS[::COLUMN]", value_parser = utf8())]
    labels: String,

    /// The true classes: a table of IDs and classes; `::COLUMN` names the column if there are several, as in `clinical.csv::stage`
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    truth: String,

    #[command(flatten)]
    ids: IdOptions,

    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { labels, truth, ids, json } = arguments;
    let (mut found, known): (Column, Column) = (labels.parse()?, truth.parse()?);
    // The folder of a fit stands for its labels.
    crate::folder::recover(&found.path)?;
    let inside = [Format::Tsv, Format::Parquet].map(|format| found.path.join(format.file("labels")));
    if let Some(inside) = inside.into_iter().find(|inside| inside.is_file()) {
        found.path = inside;
    }
    read_once([found.path.as_path(), known.path.as_path()])?;
    let (path, truth) = (found.path.display(), known.path.display());
    let matching = ids.matching()?;
    let labels = daimc_io::read_labels(&found.path, found.column.as_deref(), &matching)?;
    let classes = daimc_io::read_labels(&known.path, known.column.as_deref(), &matching)?;
    let both = labels.ids.iter().filter_map(|id| Some((labels.get(id)?, classes.get(id)?)));
    let (clusters, known): (Vec<&str>, Vec<&str>) = both.unzip();
    if known.is_empty() {
        let near = daimc_io::near(&[labels.ids.clone(), classes.ids.clone()]);
        let near =
            near.map_or_else(String::new, |near| format!("; with {near} they have {}", near.shared[0]));
        return Err(Failure::Data(format!(
            "{path} and {truth} have no ID in common: {} here, {} there{near}",
            quoted(&labels.ids[0]),
            quoted(&classes.ids[0])
        )));
    }
    let left_out = labels.len() - known.len();
    if left_out > 0 {
        print_line(format!("{left_out} of {} instances have no class in {truth}", labels.len()));
    }
    let scores = metrics::scores(&truth::numbers(&known), &truth::numbers(&clusters))?;
    let mut out = io::stdout().lock();
    if *json {
        let mut value = truth::to_json(&scores);
        value["instances"] = known.len().into();
        writeln!(out, "{value:#}")?;
    } else {
        write!(out, "{}", truth::to_text(&scores))?;
    }
    Ok(())
}
