//! `daimc fit`: files in, clusters and a report out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use daimc::metrics::Scores;
use daimc::text::{list, plain, quoted};
use daimc::{Daimc, Fit, Outcome, Penalty, Scale, ViewWeights, Views};
use daimc_io::Column;
use rayon::prelude::*;

use crate::annotate::Annotated;
use crate::clinical::Findings;
use crate::cost;
use crate::device;
use crate::embedding::Embedding;
use crate::failure::{Failure, Result};
use crate::folder::{self, Folder};
use crate::help::{OUTPUT, READING};
use crate::memory;
use crate::online;
use crate::options::{self, Options};
use crate::progress::{Level, Line, Progress};
use crate::results::{self, Extras, FILES};
use crate::summary::{self, Summary};
use crate::tables::{self, Format};
use crate::truth::{self, Truth};

#[derive(Args)]
#[allow(clippy::struct_excessive_bools)] // They are flags of the command line.
pub struct Arguments {
    #[command(flatten)]
    pub options: Options,

    /// Folder for the results
    ///
    /// labels.tsv, map.tsv (coordinates of each instance on the report's map), embedding.tsv or .npy (V), contributions.tsv
    /// (how strongly each view supports each instance's cluster), features.tsv (the weight of each feature for each
    /// cluster, and the share of runs in which it leads the cluster), model.safetensors, summary.json, report.html; with
    /// --clinical, clinical.tsv and survival.tsv. The first five are .parquet files with --format parquet.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Read options from a TOML file with the names of these options as keys, or from the summary.json of another fit; the
    /// command line takes precedence
    #[arg(long, help_heading = READING, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// Print only errors on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Print more: the scaling of each view, the use of neighbourhoods and every iteration
    #[arg(short, long)]
    verbose: bool,
}

/// Maximum number of features without values to name.
const LISTED: usize = 5;

pub fn run(arguments: Arguments) -> Result<()> {
    let begun = Instant::now();
    let Arguments { options, output, force, config, json, quiet, verbose } = arguments;
    let level = Level::new(quiet, verbose);
    config.as_deref().map_or(Ok(()), folder::recover)?;
    let earlier = config.as_deref().map(options::inputs_of).unwrap_or_default();
    let options = config.as_deref().map_or_else(|| Ok(options.clone()), |path| options.over(path))?;
    crate::use_threads(options.threads)?;
    let fit = options.fit()?.map(true);
    options.check_names()?;
    options.device.check()?;
    online::check(&options)?;
    if let Some(truth) = &options.truth {
        options.data.check_truth(truth)?;
    }
    options.clinical.check(&options.data.paths()?)?;
    let annotated = options.annotate.then(|| Annotated::of(&options.data)).transpose()?;
    let given = summary::json(&options)?;
    let folder = Folder::begin(&output, force)?;
    let truth_file = options.truth.as_ref().map(|truth| truth.parse::<Column>()).transpose()?;
    let other_inputs = truth_file.map(|truth| truth.path).into_iter().chain(options.clinical.path());
    let read: Vec<PathBuf> = options.data.paths()?.into_iter().chain(other_inputs).chain(config).collect();
    for file in FILES {
        folder::spare_inputs(&output.join(file), read.iter().map(PathBuf::as_path))?;
    }

    let fit = options.device.set_device(fit)?;
    options.data.memory.as_deref().map_or(Ok(()), memory::limit)?;
    if !options.online {
        memory::check_latent(&options.data.sizes()?, fit.options().latent)?;
    }
    let loaded = options.data.load(&output, level)?;
    level.info(&loaded.account);
    loaded.from_disk.iter().for_each(|why| level.info(why));
    for input in &loaded.inputs {
        let known = earlier.iter().find(|known| known.name == input.name);
        if known.is_some_and(|known| known.sha256 != input.sha256) {
            level.info(format!("{} has changed since the fit that is repeated", input.path.display()));
        }
    }
    if options.online {
        return online::run(&options, &fit.map(false), &loaded, folder, level, json);
    }
    let fit = cost::check(&loaded, fit)?;
    let truth =
        options.truth.as_ref().map(|path| Truth::read(path, &loaded.views, &options.data.ids)).transpose()?;
    let clinical = options.clinical.read(&loaded.views, &options.data.ids)?;
    if let Some(clinical) = &clinical
        && clinical.matched < loaded.views.instances()
    {
        let (without, all) = (loaded.views.instances() - clinical.matched, loaded.views.instances());
        level.info(format!("{without} of {all} instances are not in the clinical table"));
    }
    let read = begun.elapsed().as_secs_f64();
    let (fitted, scores) = cluster(&fit, &loaded.views, truth.as_ref(), level)?;
    let findings = clinical.map(|clinical| clinical.test(&fitted.labels)).transpose()?;
    let mut summary = Summary::new(given, &loaded.inputs, (begun, read), &fitted)?;
    summary.metrics = scores.as_ref().map(truth::to_json);
    summary.clinical = findings.as_ref().map(Findings::to_json).transpose()?;
    let formats = (options.format.unwrap_or_default(), options.embedding.unwrap_or_default());
    let extras = Extras {
        truth: truth.as_ref(),
        clinical: findings.as_ref(),
        title: options.title.as_deref(),
        annotated: annotated.as_ref().map(|own| (own, output.as_path())),
    };
    let line = Line::new(level, "writing the results and the report");
    write(folder, &loaded.views, &fitted, extras, formats, &mut summary)?;
    drop(line);
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", summary.text()?)?;
    } else {
        print(&mut out, &fitted, scores.as_ref(), findings.as_ref(), &output)?;
    }
    done(&fitted, &output)
}

/// Fails if the fit was interrupted; its results so far have been written.
pub fn done(fitted: &Fit, output: &Path) -> Result<()> {
    if fitted.outcome != Outcome::Interrupted {
        return Ok(());
    }
    let output = output.display();
    // If the iterations had converged, the interruption came later.
    let last = fitted.history.iter().rev().map(|objective| objective.total);
    let rested = last.clone().zip(last.skip(1)).next().is_some_and(|(now, before)| {
        (before - now).abs() <= fitted.model.options.tolerance * before.max(f64::MIN_POSITIVE)
    });
    let when = match fitted.iterations() {
        _ if rested => "during the neighbour search; the clusters do not use it".into(),
        1 => "after 1 iteration".into(),
        iterations => format!("after {iterations} iterations"),
    };
    Err(Failure::Failed(format!("interrupted {when}; the results so far are in {output}")))
}

/// Runs the fit with progress, reports its choices and warnings, and scores the clusters against the true classes.
pub fn cluster(
    fit: &Daimc,
    views: &Views<'_>,
    truth: Option<&Truth>,
    level: Level,
) -> Result<(Fit, Option<Scores>)> {
    let progress = Progress::new(fit.options(), level);
    let fitted = progress.watch(fit).fit_with(views, |iteration| progress.each(iteration));
    progress.finish();
    let fitted = fitted?;
    let weighed = fitted.model.options.view_weights == ViewWeights::Learned;
    if weighed && fitted.model.views.iter().all(|view| view.scaling.importance == 1.0) {
        level.info(
            "all views have equal weight: each is predicted by the others, or no rows could be hidden to test this",
        );
    }
    for view in &fitted.model.views {
        let name = plain(&view.name);
        let line = format!("{name}: scaled by {} ({})", view.scaling.scale, view.scaling.reason);
        let asked = fitted.model.options.view_scales.get(&view.name).unwrap_or(&fitted.model.options.scale);
        if *asked == Scale::Auto {
            level.info(line);
        } else {
            level.detail(format!("  {line}"));
        }
        if view.scaling.importance < 1.0 {
            level.info(format!(
                "{name}: weight {:.1e} relative to a view that the others predict well",
                view.scaling.importance
            ));
        }
    }
    for (view, missing) in fitted.model.views.iter().zip(&fitted.missing_cells) {
        let without = missing.without_value();
        if !without.is_empty() {
            let names: Vec<String> = without.iter().take(LISTED).map(|&f| view.feature_name(f)).collect();
            let named = list(names.iter().map(|name| quoted(name)));
            let more = if without.len() > LISTED { ", …" } else { "" };
            let (name, count) = (plain(&view.name), without.len());
            let noun = if count == 1 { "feature has" } else { "features have" };
            level.info(format!(
                "{name}: {count} {noun} no value in any instance and are ignored: {named}{more}"
            ));
        }
    }
    if fitted.model.options.penalty == Penalty::Relative {
        let (alpha, beta) = (fitted.model.options.alpha, fitted.model.options.beta);
        level.info(format!("relative alpha = {alpha}, beta = {beta}; selected features:"));
        for view in &fitted.model.views {
            let (name, kept, all) = (plain(&view.name), view.selected().len(), view.basis.rows());
            level.info(format!("  {name}: {kept} of {all}"));
        }
    }
    level.detail(format!(
        "  {} passes over the data, including {} iterations",
        fitted.passes,
        fitted.iterations()
    ));
    device::describe(&fitted).into_iter().for_each(|line| level.info(line));
    level.info(format!("neighbourhoods: {} ({})", fitted.neighbours.used, fitted.neighbours.reason));
    for (view, recall) in fitted.model.views.iter().zip(&fitted.neighbours.recall) {
        level.detail(format!("  neighbour recall {:.1} % in view {}", 100.0 * recall, quoted(&view.name)));
    }
    if let Some(warning) = fitted.missingness.warning() {
        level.info(format!("warning: {warning}"));
    }
    if let Some(significance) = fitted.significance {
        match significance.warning() {
            Some(warning) => level.info(format!("warning: {warning}")),
            None => level.info(format!("clearer than chance: {}", significance.text())),
        }
    }
    let agreement = || fitted.runs.iter().map(|run| 100.0 * run.agreement);
    if let (Some(least), Some(most)) = (agreement().reduce(f64::min), agreement().reduce(f64::max)) {
        let (runs, asked) = (fitted.runs.len(), fitted.model.options.runs);
        let mean = agreement().sum::<f64>() / runs as f64;
        level.info(format!(
            "{runs} of {asked} runs agree individually with the result on {least:.1} to {most:.1} % of the instances \
             (mean {mean:.1} %)"
        ));
    }
    if fitted.outcome == Outcome::IterationLimit {
        let most = fitted.model.options.max_iterations;
        level.info(format!(
            "not converged after {most} iterations, clusters may still change; --max-iter allows more"
        ));
    }
    let clusters = fitted.model.options.clusters;
    let empty = sizes(&fitted).iter().filter(|(size, _)| *size == 0).count();
    if empty > 0 {
        level.info(format!("{empty} of {clusters} clusters are empty: the views do not separate that many"));
    }
    let scores = truth.map(|truth| truth.scores(&fitted.labels)).transpose()?;
    if let Some(truth) = truth {
        let unknown = truth.classes.iter().filter(|class| class.is_none()).count();
        if unknown > 0 {
            let all = truth.classes.len();
            level.info(format!("{unknown} of {all} instances have no class; the metrics leave them out"));
        }
    }
    Ok((fitted, scores))
}

/// Writes all results. If the disk is too full for the model, the other files are written without it.
pub fn write(
    mut folder: Folder,
    views: &Views<'_>,
    fitted: &Fit,
    extras: Extras<'_>,
    (format, embedding): (Format, Embedding),
    summary: &mut Summary,
) -> Result<()> {
    let explanation = fitted.explain(views)?;
    let Fit { ids, labels, confidence, model, map, .. } = fitted;
    let contributions = &explanation.contributions;
    format.write(
        &mut folder,
        "labels",
        |out| results::labels(out, ids, labels, confidence),
        || tables::labels(ids, labels, confidence),
    )?;
    match map {
        Some(map) => {
            format.write(&mut folder, "map", |out| results::map(out, ids, map), || tables::map(ids, map))?;
        }
        // The fit was interrupted before it laid out the map.
        None => ["map.tsv", "map.parquet"].into_iter().try_for_each(|file| folder.leave_out(file))?,
    }
    embedding.write(&mut folder, fitted, format)?;
    format.write(
        &mut folder,
        "contributions",
        |out| results::contributions(out, model, ids, labels, contributions),
        || tables::contributions(model, ids, labels, contributions),
    )?;
    format.write(&mut folder, "features", |out| results::features(out, model), || tables::features(model))?;
    if let Some(findings) = extras.clinical {
        folder.write("clinical.tsv", |out| findings.write(out))?;
        if let Some(survival) = &findings.survival {
            folder.write("survival.tsv", |out| Findings::write_survival(survival, out))?;
        }
    }
    if let Some((annotated, scratch)) = extras.annotated {
        annotated.write(&mut folder, fitted, scratch)?;
    }
    let page = results::report(views, fitted, Some(&explanation), extras, &summary.value()?)?;
    folder.write("report.html", |out| out.write_all(page.as_bytes()))?;
    // After all others but the small summary, so that a full disk does not prevent them.
    let stored = folder.write("model.safetensors", |out| fitted.write(out));
    if stored.is_err() {
        folder.leave_out("model.safetensors")?;
    }
    summary.finish();
    let text = summary.text()?;
    folder.write("summary.json", |out| writeln!(out, "{text}"))?;
    let output = folder.target().display().to_string();
    folder.finish()?;
    stored.map_err(|error| Failure::Failed(format!("{error}; all other results are in {output}")))
}

/// Number of instances that a task counts.
const BLOCK: usize = 1 << 14;

/// For each cluster the number of its instances and the sum of their confidence.
fn sizes(fitted: &Fit) -> Vec<(usize, f64)> {
    let of_block = |(labels, confidence): (&[usize], &[f64])| {
        let mut sizes = vec![(0, 0.0); fitted.model.options.clusters];
        for (&label, own) in labels.iter().zip(confidence) {
            sizes[label].0 += 1;
            sizes[label].1 += own;
        }
        sizes
    };
    let blocks = fitted.labels.par_chunks(BLOCK).zip(fitted.confidence.par_chunks(BLOCK)).map(of_block);
    let mut sizes = vec![(0, 0.0); fitted.model.options.clusters];
    // In the order of the blocks: sums do not depend on the threads.
    for block in blocks.collect::<Vec<_>>() {
        sizes.iter_mut().zip(block).for_each(|(sum, own)| *sum = (sum.0 + own.0, sum.1 + own.1));
    }
    sizes
}

/// Prints the sizes of the clusters, the scores and the clinical tests.
fn print(
    out: &mut impl Write,
    fitted: &Fit,
    scores: Option<&Scores>,
    findings: Option<&Findings>,
    output: &Path,
) -> Result<()> {
    writeln!(out, "cluster   instances   mean confidence")?;
    for (cluster, (size, confidence)) in sizes(fitted).into_iter().enumerate() {
        let mean = confidence / size.max(1) as f64;
        writeln!(out, "{cluster:>7}   {size:>9}   {mean:>15.3}")?;
    }
    if let Some(scores) = scores {
        write!(out, "\n{}", truth::to_text(scores))?;
    }
    findings.map_or(Ok(()), |findings| findings.print(out))?;
    writeln!(
        out,
        "\nResults are in {}; open {} first.",
        output.display(),
        output.join("report.html").display()
    )?;
    Ok(())
}
