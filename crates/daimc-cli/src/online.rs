//! `daimc fit --online`: one pass over the data, batch by batch.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use daimc::accelerator::Device;
use daimc::{Daimc, Online, StreamProgress, Streamed};
use serde_json::json;

use crate::data::Loaded;
use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::options::Options;
use crate::progress::{self, Level};
use crate::results::FILES;
use crate::tables::Format;
use crate::truth::{self, Truth};
use crate::{results, summary};

/// The default number of instances in a batch.
const BATCH: usize = 100_000;

/// Fails if an option needs more than one pass.
pub fn check(options: &Options) -> Result<()> {
    if !options.online {
        return match options.batch {
            None => Ok(()),
            Some(_) => Err(Failure::Usage("--batch belongs to --online: add that, or leave it out".into())),
        };
    }
    if options.device.device.as_ref().is_some_and(|device| *device != Device::Cpu) {
        return Err(Failure::Usage("--device: --online runs on the CPU only; leave it out".into()));
    }
    let asked = [
        ("--annotate", options.annotate),
        ("--clinical", options.clinical.path().is_some()),
        ("--embedding", options.embedding.is_some()),
        ("--format", options.format.is_some_and(|format| format != Format::Tsv)),
        ("--title", options.title.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((option, _)) => {
            let reason = "--online writes only labels.tsv, features.tsv, model.safetensors and summary.json";
            Err(Failure::Usage(format!("{option}: {reason}; leave it out")))
        }
    }
}

/// Fits the batches one by one and writes the results.
pub fn run(
    options: &Options,
    fit: &Daimc,
    loaded: &Loaded,
    mut folder: Folder,
    level: Level,
    as_json: bool,
) -> Result<()> {
    let (views, batch, start) = (&loaded.views, options.batch.unwrap_or(BATCH), Instant::now());
    let truth = options.truth.as_ref().map(|path| Truth::read(path, views, &options.data.ids)).transpose()?;
    progress::listen();
    let fit = fit.clone().stop(progress::request());
    let online = Online::new().stop(progress::request());
    let found = online.fit(&fit, views, batch, |progress| {
        match progress {
            StreamProgress::Fitted(fitted) => {
                level.info(format!("batch 1: {} instances, fitted", fitted.labels.len()));
            }
            StreamProgress::Updated(number, update) => {
                let moved = update.drift.iter().map(|view| view.total).fold(0.0, f64::max);
                let (count, unexplained) = (update.fit.labels.len(), update.unexplained.len());
                level.info(format!(
                    "batch {number}: {count} instances, the model moved by {:.2} %, {unexplained} unexplained",
                    100.0 * moved
                ));
            }
            StreamProgress::Refused(number, error) => level.info(format!("batch {number}: {error}")),
            StreamProgress::Placed(count) => level.detail(format!("{count} instances assigned by the final model")),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let ids = views.ids();
    let scores = truth.map(|truth| truth.scores(&found.labels)).transpose()?;
    let Streamed { model, labels, confidence, batches, unexplained, refused, .. } = &found;
    let mut summary = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "options": summary::json(options)?,
        "inputs": summary::json(&loaded.inputs)?,
        "instances": labels.len(),
        "clusters": model.options.clusters,
        "batches": batches,
        "passes": 2,
        "unexplained": unexplained,
        "refused": refused,
        "reproducibility": model.reproducibility,
        "seconds": start.elapsed().as_secs_f64(),
        "peak_memory_bytes": summary::peak_memory(),
    });
    if let Some(scores) = &scores {
        summary["metrics"] = truth::to_json(scores);
    }
    folder.write("labels.tsv", |out| results::labels(out, ids, labels, confidence))?;
    folder.write("features.tsv", |out| results::features(out, model))?;
    folder.write("model.safetensors", |out| model.write(out))?;
    folder.write("summary.json", |out| writeln!(out, "{summary:#}"))?;
    let written = ["labels.tsv", "features.tsv", "model.safetensors", "summary.json"];
    for file in FILES.iter().filter(|file| !written.contains(file)) {
        folder.leave_out(file)?;
    }
    let output = folder.target().to_owned();
    folder.finish()?;
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{summary:#}")?;
        return Ok(());
    }
    print(&mut out, &found, &output)?;
    if let Some(scores) = &scores {
        write!(out, "\n{}", truth::to_text(scores))?;
    }
    Ok(())
}

/// Prints the sizes of the clusters.
fn print(out: &mut impl Write, found: &Streamed, output: &Path) -> Result<()> {
    let Streamed { model, labels, batches, refused, .. } = found;
    let mut sizes = vec![0_usize; model.options.clusters];
    labels.iter().for_each(|&label| sizes[label] += 1);
    writeln!(out, "cluster   instances")?;
    for (cluster, size) in sizes.into_iter().enumerate() {
        writeln!(out, "{cluster:>7}   {size:>9}")?;
    }
    let (count, output) = (labels.len(), output.display());
    let batches = if *batches == 1 { "1 batch".into() } else { format!("{batches} batches") };
    writeln!(out, "\nLearnt from {count} instances in {batches}, and assigned all by the final model.")?;
    if *refused > 0 {
        writeln!(
            out,
            "Not learnt, because the model would have lost a cluster: {refused} of these batches."
        )?;
    }
    writeln!(out, "Results are in {output}.")?;
    Ok(())
}
