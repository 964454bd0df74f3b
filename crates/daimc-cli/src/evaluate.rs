//! `daimc evaluate`: how well clusters agree with classes.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use daimc::metrics;

use crate::failure::{Failure, Result};
use crate::truth;

#[derive(Args)]
pub struct Arguments {
    /// The clusters: labels.tsv of a fit, or any table of IDs and labels
    labels: PathBuf,

    /// The classes: a table of IDs and labels
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,

    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { labels: path, truth, json } = arguments;
    crate::folder::settle(path)?;
    let labels = daimc_io::read_labels(path)?;
    let classes = daimc_io::read_labels(truth)?;
    let both = labels.ids.iter().filter_map(|id| Some((labels.get(id)?, classes.get(id)?)));
    let (clusters, known): (Vec<&str>, Vec<&str>) = both.unzip();
    if known.is_empty() {
        return Err(Failure::Data(format!(
            "{} and {} have no ID in common: '{}' here, '{}' there",
            path.display(),
            truth.display(),
            labels.ids[0],
            classes.ids[0]
        )));
    }
    let left_out = labels.len() - known.len();
    if left_out > 0 {
        eprintln!("{left_out} of {} instances have no class in {}", labels.len(), truth.display());
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
