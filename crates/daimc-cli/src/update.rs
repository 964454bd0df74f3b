//! `daimc update`: updates a model with new instances.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use daimc::text::{list, plain, quoted};
use daimc::{Fit, Ids, Online, Update};
use serde_json::{Value, json};

use crate::align::align;
use crate::data::{Data, Loaded};
use crate::failure::{Failure, Result};
use crate::folder::{Folder, recover, spare_inputs};
use crate::progress::{self, Level};
use crate::results::FILES;
use crate::{results, summary};

#[derive(Args)]
pub struct Arguments {
    /// The model: model.safetensors of a fit or of an update, or its folder
    model: PathBuf,

    #[command(flatten)]
    data: Data,

    /// Folder for the results: labels.tsv (the new instances), features.tsv, model.safetensors, summary.json. With --force it may
    /// be the folder of the model; its other result files, which describe the earlier instances, are then removed
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Weight of the earlier instances relative to the new ones, above 0 and at most 1: with 0.9, instances from ten updates ago
    /// count about a third. Below 1, the model no longer uses neighbours of the fit [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    memory_factor: Option<f64>,

    /// A view to add that the model has not seen; may be repeated
    #[arg(long, value_name = "NAME")]
    add_view: Vec<String>,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// Maximum number of instances that a message names.
const MAX_NAMED: usize = 5;

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { model, data, output, force, memory_factor, add_view, threads, json, quiet } = arguments;
    let (level, start) = (Level::new(*quiet, false), Instant::now());
    crate::use_threads(*threads)?;
    let memory_factor = memory_factor.unwrap_or(1.0);
    recover(model)?;
    let path = if model.is_dir() { model.join("model.safetensors") } else { model.clone() };
    let earlier = results::fit_or_model(&path)?;
    let mut folder = Folder::begin(output, *force)?;
    let inputs = data.paths()?;
    for file in FILES {
        spare_inputs(&output.join(file), inputs.iter().map(PathBuf::as_path))?;
    }
    let loaded = data.load_batch(output, level, |view, table| {
        let model = &earlier.model;
        if model.views.iter().any(|own| own.name == view) {
            return align(view, table, model);
        }
        if add_view.iter().any(|name| name == view) {
            return Ok(table);
        }
        let views = list(model.views.iter().map(|own| plain(&own.name)));
        Err(Failure::Data(format!(
            "{}: the model has no view {}; its views are {views}; use --add-view {} to add this one",
            table.path.display(),
            quoted(view),
            plain(view)
        )))
    })?;
    level.info(&loaded.account);
    loaded.from_disk.iter().for_each(|reason| level.info(reason));

    progress::listen();
    let online = Online::new().memory_factor(memory_factor).stop(progress::request());
    let online = add_view.iter().fold(online, Online::add_view);
    let update = online.update(&earlier, &loaded.views)?;
    let mut summary = summary_json(&update, &loaded, &path, memory_factor)?;
    let Fit { ids, labels, confidence, .. } = &update.fit;
    folder.write("labels.tsv", |out| results::labels(out, ids, labels, confidence))?;
    folder.write("features.tsv", |out| results::features(out, &update.fit.model))?;
    folder.write("model.safetensors", |out| update.fit.write(out))?;
    summary["seconds"] = json!(start.elapsed().as_secs_f64());
    folder.write("summary.json", |out| writeln!(out, "{summary:#}"))?;
    let written = ["labels.tsv", "features.tsv", "model.safetensors", "summary.json"];
    for file in FILES.iter().filter(|file| !written.contains(file)) {
        folder.leave_out(file)?;
    }
    folder.finish()?;
    let mut out = io::stdout().lock();
    if *json {
        writeln!(out, "{summary:#}")?;
    } else {
        print(&mut out, &update, output)?;
    }
    Ok(())
}

/// The number of new instances in each cluster.
fn sizes(update: &Update) -> Vec<usize> {
    let mut sizes = vec![0; update.fit.model.options.clusters];
    update.fit.labels.iter().for_each(|&label| sizes[label] += 1);
    sizes
}

fn names(ids: &Ids, instances: &[usize]) -> Vec<String> {
    instances.iter().map(|&i| ids.get(i)).collect()
}

/// `summary.json` of an update.
fn summary_json(update: &Update, loaded: &Loaded, model: &Path, memory_factor: f64) -> Result<Value> {
    let Update { fit, drift, unexplained, emerging, died, added, .. } = update;
    let drift =
        drift.iter().map(|own| (own.view.clone(), json!({"total": own.total, "clusters": own.clusters})));
    let groups: Vec<Vec<String>> = emerging.iter().map(|group| names(&fit.ids, group)).collect();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": model.display().to_string(),
        "inputs": summary::json(&loaded.inputs)?,
        "memory_factor": memory_factor,
        "instances": fit.labels.len(),
        "remembered": fit.model.retained.as_ref().map(daimc::Retained::instances),
        "clusters": fit.model.options.clusters,
        "sizes": sizes(update),
        "added_views": added,
        "drift": Value::Object(drift.collect()),
        "unexplained": names(&fit.ids, unexplained),
        "emerging": groups,
        "died": died,
    }))
}

/// Prints the drift, the number of new instances of each cluster, and what the update found about them.
fn print(out: &mut impl Write, update: &Update, output: &Path) -> Result<()> {
    let Update { fit, drift, unexplained, emerging, died, added, .. } = update;
    writeln!(out, "cluster   new instances   moved by")?;
    for (cluster, size) in sizes(update).into_iter().enumerate() {
        let largest = drift.iter().map(|view| view.clusters[cluster]).fold(0.0, f64::max);
        writeln!(out, "{cluster:>7}   {size:>13}   {:>6.1} %", 100.0 * largest)?;
    }
    writeln!(out)?;
    for view in drift {
        writeln!(out, "View {} moved by {:.1} %.", quoted(&view.view), 100.0 * view.total)?;
    }
    for view in added {
        writeln!(out, "View {} was added.", quoted(view))?;
    }
    let first_ids = |instances: &[usize]| {
        let named = names(&fit.ids, &instances[..instances.len().min(MAX_NAMED)]);
        let more = if instances.len() > MAX_NAMED { ", …" } else { "" };
        format!("{}{more}", list(named.iter().map(|name| plain(name))))
    };
    if !unexplained.is_empty() {
        let (count, all) = (unexplained.len(), fit.labels.len());
        writeln!(out, "No cluster explains {count} of {all} new instances: {}.", first_ids(unexplained))?;
    }
    for group in emerging {
        let count = group.len();
        writeln!(
            out,
            "{count} of these are close to each other and may form a new cluster: {}.",
            first_ids(group)
        )?;
    }
    for cluster in died {
        writeln!(out, "Cluster {cluster} has died: the model remembers almost none of its instances.")?;
    }
    writeln!(out, "\nResults are in {}.", output.display())?;
    Ok(())
}
