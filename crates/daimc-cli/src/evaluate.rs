//! `daimc evaluate`: metrics that compare clusters with true classes.

use std::io::{self, Write};

use clap::Args;
use daimc::metrics;
use daimc::text::quoted;
use daimc_io::Column;

use crate::failure::{Failure, Result};
use crate::folder::recover;
use crate::ids::IdOptions;
use crate::paths::{read_once, utf8};
use crate::tables::Format;
use crate::terminal::print_line;
use crate::truth;

#[derive(Args)]
pub struct Arguments {
    /// The clusters: the folder of a fit, its labels.tsv or labels.parquet, or any table of IDs and labels; `::COLUMN` names the
    /// column of the labels if there are several
    #[arg(value_name = "LABELS[::COLUMN]", value_parser = utf8())]
    labels: String,

    /// The true classes: a table of IDs and classes; `::COLUMN` names the column of the classes if there are several, as in
    /// `clinical.csv::stage`
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
    let (mut clusters, truth): (Column, Column) = (labels.parse()?, truth.parse()?);
    recover(&clusters.path)?;
    // If the path is the folder of a fit, the labels are one of its files.
    let candidates = [Format::Tsv, Format::Parquet].map(|format| clusters.path.join(format.file("labels")));
    if let Some(file) = candidates.into_iter().find(|file| file.is_file()) {
        clusters.path = file;
    }
    read_once([clusters.path.as_path(), truth.path.as_path()])?;
    let matching = ids.matching()?;
    let labels = daimc_io::read_labels(&clusters.path, clusters.column.as_deref(), &matching)?;
    let classes = daimc_io::read_labels(&truth.path, truth.column.as_deref(), &matching)?;
    let matched = labels.ids.iter().filter_map(|id| Some((labels.get(id)?, classes.get(id)?)));
    let (matched_labels, matched_classes): (Vec<&str>, Vec<&str>) = matched.unzip();
    if matched_classes.is_empty() {
        let near = daimc_io::near(&[labels.ids.clone(), classes.ids.clone()]);
        let hint = near
            .map_or_else(String::new, |near| format!("; {near} would match about {} IDs", near.shared[0]));
        return Err(Failure::Data(format!(
            "{} and {} have no ID in common: their first IDs are {} and {}{hint}",
            clusters.path.display(),
            truth.path.display(),
            quoted(&labels.ids[0]),
            quoted(&classes.ids[0])
        )));
    }
    let (all, unmatched) = (labels.len(), labels.len() - matched_classes.len());
    if unmatched > 0 {
        print_line(format!("{unmatched} of {all} instances have no class in {}", truth.path.display()));
    }
    let scores = metrics::scores(&truth::encode(&matched_classes), &truth::encode(&matched_labels))?;
    let mut out = io::stdout().lock();
    if *json {
        let mut value = truth::to_json(&scores);
        value["instances"] = matched_classes.len().into();
        writeln!(out, "{value:#}")?;
    } else {
        write!(out, "{}", truth::to_text(&scores))?;
    }
    Ok(())
}
