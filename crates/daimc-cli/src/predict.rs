//! `daimc predict`: places new instances with a model.

use std::path::PathBuf;

use clap::Args;

use crate::align::align;
use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::{Destination, settle, spare_inputs};
use crate::progress::Level;
use crate::results;

#[derive(Args)]
pub struct Arguments {
    /// The model: model.safetensors of a fit, or the folder of the fit
    model: PathBuf,

    #[command(flatten)]
    data: Data,

    /// File for the clusters: id, cluster, confidence [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// File for what each view says for each instance's cluster, as contributions.tsv of a fit
    #[arg(long, value_name = "FILE")]
    contributions: Option<PathBuf>,

    /// Threads to use; the result does not depend on them [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Write the clusters as JSON
    #[arg(long)]
    json: bool,

    /// Tell nothing on standard error but errors
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { model, data, output, contributions, threads, json, quiet } = arguments;
    crate::use_threads(*threads)?;
    let level = Level::new(*quiet, false);
    let full = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).and_then(Result::ok);
    if output.is_some() && full(output) == full(contributions) {
        let told = "--output and --contributions name the same file; give each its own";
        return Err(Failure::Usage(told.into()));
    }
    for output in output.iter().chain(contributions) {
        let paths = data.paths()?;
        spare_inputs(output, paths.iter().map(PathBuf::as_path).chain([model.as_path()]))?;
    }
    let mut told = contributions.as_deref().map(|path| Destination::begin(Some(path))).transpose()?;
    let mut out = Destination::begin(output.as_deref())?;
    settle(model)?;
    let path = if model.is_dir() { model.join("model.safetensors") } else { model.clone() };
    let model = results::model(&path)?;
    let loaded = data.load_new(&std::env::temp_dir(), level, |view, table| align(view, table, &model))?;
    level.tell(&loaded.account);
    loaded.from_disk.iter().for_each(|why| level.tell(why));
    let place = model.place(&loaded.views)?;
    let ids = loaded.views.ids();
    if let Some(told) = &mut told {
        let found = model.contributions_of(&loaded.views, &place.labels)?;
        told.write(|out| results::contributions(out, &model, ids, &place.labels, &found))?;
    }
    out.write(|out| {
        if !json {
            return results::labels(out, ids, &place.labels, &place.confidence);
        }
        results::labels_as_json(out, ids, &place.labels, &place.confidence)
    })?;
    told.map_or(Ok(()), Destination::finish)?;
    out.finish()
}
