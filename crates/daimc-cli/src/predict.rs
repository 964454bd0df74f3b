//! `daimc predict`: assigns new instances to the clusters of a model.

use std::path::PathBuf;

use clap::Args;

use crate::align::align;
use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::{Destination, recover, spare_inputs};
use crate::progress::Level;
use crate::results;
use crate::tables::{self, Format};

#[derive(Args)]
pub struct Arguments {
    /// The model: model.safetensors of a fit, or the folder of the fit
    model: PathBuf,

    #[command(flatten)]
    data: Data,

    /// File for the clusters: id, cluster, confidence [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// File for how strongly each view supports each instance's cluster, like contributions.tsv of a fit
    #[arg(long, value_name = "FILE")]
    contributions: Option<PathBuf>,

    /// Format of the files: `tsv`, or `parquet` (IDs as text, zstd) [default: from the extension of --output, else tsv]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, conflicts_with = "json")]
    format: Option<Format>,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Write the clusters as JSON
    #[arg(long)]
    json: bool,

    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { model, data, output, contributions, format, threads, json, quiet } = arguments;
    crate::use_threads(*threads)?;
    let level = Level::new(*quiet, false);
    let full = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).and_then(Result::ok);
    if output.is_some() && full(output) == full(contributions) {
        let reason = "--output and --contributions name the same file; give each its own";
        return Err(Failure::Usage(reason.into()));
    }
    let format_of = |file: &Option<PathBuf>| format.unwrap_or_else(|| Format::of(file.as_deref()));
    for output in output.iter().chain(contributions) {
        let paths = data.paths()?;
        spare_inputs(output, paths.iter().map(PathBuf::as_path).chain([model.as_path()]))?;
    }
    let mut contributions_file =
        contributions.as_deref().map(|path| Destination::begin(Some(path))).transpose()?;
    let mut out = Destination::begin(output.as_deref())?;
    recover(model)?;
    let path = if model.is_dir() { model.join("model.safetensors") } else { model.clone() };
    let model = results::model(&path)?;
    let loaded = data.load_new(&std::env::temp_dir(), level, |view, table| align(view, table, &model))?;
    level.info(&loaded.account);
    loaded.from_disk.iter().for_each(|why| level.info(why));
    let place = model.place(&loaded.views)?;
    let ids = loaded.views.ids();
    if let Some(contributions_file) = &mut contributions_file {
        let found = model.contributions_of(&loaded.views, &place.labels)?;
        contributions_file.write(|out| match format_of(contributions) {
            Format::Tsv => results::contributions(out, &model, ids, &place.labels, &found),
            Format::Parquet => tables::contributions(&model, ids, &place.labels, &found).write(out),
        })?;
    }
    let (labels, confidence) = (&place.labels, &place.confidence);
    out.write(|out| match format_of(output) {
        _ if *json => results::labels_as_json(out, ids, labels, confidence),
        Format::Tsv => results::labels(out, ids, labels, confidence),
        Format::Parquet => tables::labels(ids, labels, confidence).write(out),
    })?;
    contributions_file.map_or(Ok(()), Destination::finish)?;
    out.finish()
}
