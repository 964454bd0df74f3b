//! `daimc fit`: files in, clusters and a report out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory};
use daimc::metrics::Scores;
use daimc::text::{list, plain, quoted};
use daimc::{
    Daimc, Fit, Initialisation, Neighbours, Outcome, Penalty, Preset, Scale, Solver, ViewWeights, Views,
};
use daimc_io::Column;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::annotate::Annotated;
use crate::clinical::{ClinicalOptions, Findings};
use crate::data::{Data, Input, in_folder, utf8};
use crate::device::{self, DeviceOptions};
use crate::embedding::Embedding;
use crate::failure::{Failure, Result};
use crate::folder::{self, Folder};
use crate::memory;
use crate::online;
use crate::progress::{Level, Line, Progress};
use crate::results::{self, Beside};
use crate::summary::{self, Summary};
use crate::tables::{self, Format};
use crate::truth::{self, Truth};

#[derive(Args)]
#[allow(clippy::struct_excessive_bools)] // They are flags of the command line.
pub struct Arguments {
    #[command(flatten)]
    pub options: Options,

    /// Folder for the results: labels.tsv, map.tsv (coordinates of each instance on the report's map), embedding.tsv or .npy (V),
    /// contributions.tsv (how strongly each view supports each instance's cluster), features.tsv (the weight of each feature for
    /// each cluster, and the share of runs in which it leads the cluster; these five as .parquet with --format parquet),
    /// model.safetensors, summary.json, report.html; with --clinical, clinical.tsv and survival.tsv
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Read options from a TOML file with the names of these options as keys, or from the summary.json of another fit; the command
    /// line takes precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Print nothing but errors on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Print more: the scaling of each view, the use of neighbourhoods and every iteration
    #[arg(short, long)]
    verbose: bool,
}

/// Features without a value that are named.
const LISTED: usize = 5;

/// The files of a result, and those that it takes the place of.
pub const FILES: [&str; 18] = [
    "labels.tsv",
    "labels.parquet",
    "map.tsv",
    "map.parquet",
    "annotated.h5ad",
    "annotated.h5mu",
    "clinical.tsv",
    "survival.tsv",
    "embedding.tsv",
    "embedding.npy",
    "embedding.parquet",
    "contributions.tsv",
    "contributions.parquet",
    "features.tsv",
    "features.parquet",
    "report.html",
    "summary.json",
    "model.safetensors",
];

/// Everything that determines a fit; the keys of a configuration file.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Options {
    #[command(flatten)]
    #[serde(flatten)]
    pub data: Data,

    /// Number of clusters
    #[arg(short = 'k', long, value_name = "K")]
    #[serde(alias = "k", skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,

    /// Defaults of the other options: `default`, or `paper` for the published algorithm [default: default]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = by_name(Preset::ALL, Preset::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,

    /// Scaling: auto, none, unit, min-max, min-max-unit, z-score, z-score-unit, tf-idf, log or log-unit; for one view only:
    /// `--scale rna=log`. `auto` tries min-max-unit and unit on a sample (log and log-unit where values are heavy-tailed); sparse
    /// counts are scaled by tf-idf. May be repeated [default: auto]
    #[arg(long, value_name = "[VIEW=]SCALE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scale: Vec<String>,

    /// Use only this number of features of each view, those with the largest variance (of the logarithms, where these are taken)
    /// [default: all]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_features: Option<usize>,

    /// Scale of alpha and beta: `published`, `relative` to the data (beta, from 0 to 1, then actually drops features), or `auto`:
    /// relative, and chosen by the prediction of hidden rows [default: published]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Penalty::ALL, Penalty::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<Penalty>,

    /// Weights of the views: `equal`, or `learned` from how well the other views predict hidden rows of a view, so that a noisy
    /// view has little weight [default: equal]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(ViewWeights::ALL, ViewWeights::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view_weights: Option<ViewWeights>,

    /// Weight of the alignment of the views' bases [default: 10; relative 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,

    /// Weight of the sparsity of the feature selection [default: 0.1; relative 0.15]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,

    /// Number of columns of the shared representation [default: the number of clusters]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latent: Option<usize>,

    /// Maximum number of iterations [default: 100; paper 30]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iter: Option<usize>,

    /// Stop when the relative change of the objective is below this threshold [default: 1e-4]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tol: Option<f64>,

    /// How the representation is initialised: `aligned` or `paper` [default: aligned; paper paper]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Initialisation::ALL, Initialisation::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<Initialisation>,

    /// How the representation is updated: `coordinate` or `multiplicative` [default: coordinate; paper multiplicative]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Solver::ALL, Solver::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<Solver>,

    /// Number of runs, from different starts, that are combined into one clustering; confidence is higher where they agree, and
    /// features.tsv and the report show the stability of the features [default: 1]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,

    /// Use of nearest neighbours within each view: `off`, `refine` (clusters are cut from the kNN graph), `embed` (each view is
    /// replaced by the eigenvectors of its kNN graph) or `auto` (a vote, weighted by how well neighbours in single views predict
    /// the clusters, within --neighbours-budget) [default: auto; paper off]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Neighbours::ALL, Neighbours::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,

    /// Processor time that neighbourhoods may take with `--neighbours auto`, in seconds of one core; methods that would take longer
    /// are skipped [default: ten times that of the fit without them, at least 60]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours_budget: Option<f64>,

    /// Skip the comparison of the clusters with those of permuted and of resampled data. Clusters stay the same; confidence is then
    /// the plain margin
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_assess: bool,

    /// Learn in a single pass from data that are too large to be read repeatedly: the first batch is fitted, every later one
    /// updates the model; finally the data are read once more and all instances are assigned to clusters. Only labels.tsv,
    /// features.tsv, model.safetensors and summary.json are written
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub online: bool,

    /// Number of instances in a batch with --online; data that stay on disk are loaded batch by batch [default: 100000]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,

    /// Random seed [default: 0]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,

    #[command(flatten)]
    #[serde(flatten)]
    pub device: DeviceOptions,

    /// Format of the tables of labels, V, contributions and features: `tsv`, or `parquet` (IDs as text, zstd), which pandas, polars
    /// and R read in a fraction of the time [default: tsv]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,

    /// Format of the shared representation, if different from that of the other tables: `tsv` with IDs and six significant digits,
    /// `npy` (float32, a row for each line of labels.tsv), `parquet` (float32, with IDs), `none`, or `auto`: as --format, but npy
    /// instead of tsv beyond 100 000 instances [default: auto]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Embedding>,

    /// Also write annotated.h5ad or annotated.h5mu: a copy of the single file that all views come from, with clusters as `daimc`
    /// and their confidence as `daimc_confidence` in obs, V as `X_daimc` and the map as `X_daimc_map` in obsm, for further work in
    /// scanpy or muon
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub annotate: bool,

    /// A table of IDs and true classes: adds metrics, and a comparison to the report; `::COLUMN` names the column if there are
    /// several, as in `clinical.csv::stage`. Not used by the fit
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,

    /// Title of the report [default: Clusters of incomplete views]
    #[arg(long, value_name = "TEXT", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub clinical: ClinicalOptions,
}

/// A parser of the names of some values.
fn by_name<T, const N: usize>(all: [T; N], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = daimc::Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(|name| name.parse::<T>())
}

impl Options {
    /// The fit that the options describe.
    pub fn fit(&self) -> Result<Daimc> {
        let Some(clusters) = self.clusters.filter(|clusters| *clusters > 0) else {
            return Err(Failure::Usage("give the number of clusters, at least 1: -k NUMBER".into()));
        };
        for (option, number) in [("--latent", self.latent), ("--top-features", self.top_features)] {
            if number == Some(0) {
                return Err(Failure::Usage(format!("{option} must be at least 1")));
            }
        }
        let mut fit = with(Daimc::new(clusters), self.preset, Daimc::preset);
        for text in &self.scale {
            fit = match text.split_once('=') {
                Some((view, scale)) => fit.scale_view(view, scale.parse::<Scale>()?),
                None => fit.scale(text.parse::<Scale>()?),
            };
        }
        if self.penalty == Some(Penalty::Auto) && (self.alpha.is_some() || self.beta.is_some()) {
            let reason =
                "--penalty auto chooses alpha and beta: leave --alpha and --beta out, or take relative";
            return Err(Failure::Usage(reason.into()));
        }
        if self.penalty == Some(Penalty::Relative) {
            fit = fit.alpha(1.0).beta(0.15);
        }
        fit = with(fit, self.penalty, Daimc::penalty);
        fit = with(fit, self.view_weights, Daimc::view_weights);
        fit = with(fit, self.alpha, Daimc::alpha);
        fit = with(fit, self.beta, Daimc::beta);
        fit = with(fit.latent(clusters), self.latent, Daimc::latent);
        fit = with(fit, self.top_features, Daimc::top_features);
        fit = with(fit, self.max_iter, Daimc::max_iterations);
        fit = with(fit, self.tol, Daimc::tolerance);
        fit = with(fit, self.runs, Daimc::runs);
        fit = with(fit, self.seed, Daimc::seed);
        fit = with(fit, self.init, Daimc::initialisation);
        fit = with(fit, self.neighbours, Daimc::neighbours);
        fit = with(fit, self.neighbours_budget, Daimc::neighbours_budget);
        if self.no_assess {
            fit = fit.assess(false);
        }
        Ok(with(fit, self.solver, Daimc::solver))
    }

    /// Takes relative paths as relative to a folder.
    pub fn in_folder(&mut self, folder: &Path) -> Result<()> {
        if std::env::current_dir().is_ok_and(|here| here == folder) {
            return Ok(());
        }
        if let Some(truth) = &mut self.truth {
            let Column { path, column } = truth.parse()?;
            let column = column.map_or_else(String::new, |column| format!("::{column}"));
            *truth = in_folder(folder, &path)? + &column;
        }
        self.clinical.in_folder(folder)?;
        self.data.in_folder(folder)
    }

    /// Fails if an option names a view that there is not.
    pub fn check_names(&self) -> Result<()> {
        let names = self.data.names()?;
        for text in &self.scale {
            if let Some((view, _)) = text.split_once('=')
                && !names.iter().any(|name| name == view)
            {
                let known = list(names.iter().map(|name| plain(name)));
                return Err(Failure::Usage(format!("--scale {}: the views are {known}", quoted(text))));
            }
        }
        Ok(())
    }

    /// These options where they say something, else those of a file.
    fn over(&self, path: &Path) -> Result<Self> {
        let wrong = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
        let text =
            std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let mut table: toml::Table = if path.extension().is_some_and(|end| end == "json") {
            let summary: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            let Some(options) = summary.get("options") else {
                return Err(wrong("not the summary of a fit: it has no 'options'".into()));
            };
            let mut options: Self =
                serde_json::from_value(options.clone()).map_err(|error| wrong(error.to_string()))?;
            if let Some(folder) = summary.get("directory").and_then(serde_json::Value::as_str) {
                options.in_folder(Path::new(folder))?;
            }
            toml::Table::try_from(&options).map_err(|error| wrong(error.to_string()))?
        } else {
            text.parse().map_err(|error: toml::de::Error| wrong(error.to_string().trim().to_owned()))?
        };
        let command = crate::Arguments::command();
        let known = command.find_subcommand("fit").into_iter().flat_map(clap::Command::get_arguments);
        let known: Vec<&str> = known.filter_map(clap::Arg::get_long).chain(["k"]).collect();
        if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(format!("there is no option {}; see daimc fit --help", quoted(unknown))));
        }
        for other in ["config", "output", "force", "json", "quiet", "verbose"] {
            if table.contains_key(other) {
                return Err(wrong(format!("'{other}' belongs on the command line, not into a file")));
            }
        }
        if let Some(clusters) = table.remove("k") {
            table.insert("clusters".into(), clusters);
        }
        // What may be repeated may also be given once.
        for key in ["view", "scale"] {
            if let Some(one @ toml::Value::String(_)) = table.get(key).cloned() {
                table.insert(key.into(), vec![one].into());
            }
        }
        let own = toml::Table::try_from(self).map_err(|error| wrong(error.to_string()))?;
        table.extend(own);
        table.try_into().map_err(|error: toml::de::Error| wrong(error.to_string().trim().to_owned()))
    }
}

/// The files of an earlier fit, where its summary is the configuration.
fn inputs_of(config: &Path) -> Vec<Input> {
    let summary = std::fs::read_to_string(config).ok().and_then(|text| serde_json::from_str(&text).ok());
    let summary: serde_json::Value = summary.unwrap_or_default();
    serde_json::from_value(summary["inputs"].clone()).unwrap_or_default()
}

/// Sets an option that was given.
fn with<T>(fit: Daimc, value: Option<T>, set: impl FnOnce(Daimc, T) -> Daimc) -> Daimc {
    match value {
        Some(value) => set(fit, value),
        None => fit,
    }
}

pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { options, output, force, config, json, quiet, verbose } = arguments;
    let level = Level::new(quiet, verbose);
    config.as_deref().map_or(Ok(()), folder::settle)?;
    let earlier = config.as_deref().map(inputs_of).unwrap_or_default();
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
    let told = summary::json(&options)?;
    let folder = Folder::begin(&output, force)?;
    let truth_file = options.truth.as_ref().map(|truth| truth.parse::<Column>()).transpose()?;
    let beside = truth_file.map(|truth| truth.path).into_iter().chain(options.clinical.path());
    let read: Vec<PathBuf> = options.data.paths()?.into_iter().chain(beside).chain(config).collect();
    for file in FILES {
        folder::spare_inputs(&output.join(file), read.iter().map(PathBuf::as_path))?;
    }

    let fit = options.device.bring(fit)?;
    options.data.memory.as_deref().map_or(Ok(()), memory::limit)?;
    if !options.online {
        memory::check_latent(&options.data.sizes()?, fit.options().latent)?;
    }
    let loaded = options.data.load(&output, level)?;
    level.tell(&loaded.account);
    loaded.from_disk.iter().for_each(|why| level.tell(why));
    for input in &loaded.inputs {
        let known = earlier.iter().find(|known| known.name == input.name);
        if known.is_some_and(|known| known.sha256 != input.sha256) {
            level.tell(format!("{} has changed since the fit that is repeated", input.path.display()));
        }
    }
    if options.online {
        return online::run(&options, &fit.map(false), &loaded, folder, level, json);
    }
    let fit = memory::check(&loaded, fit)?;
    let truth =
        options.truth.as_ref().map(|path| Truth::read(path, &loaded.views, &options.data.ids)).transpose()?;
    let clinical = options.clinical.read(&loaded.views, &options.data.ids)?;
    if let Some(clinical) = &clinical
        && clinical.matched < loaded.views.instances()
    {
        let (without, all) = (loaded.views.instances() - clinical.matched, loaded.views.instances());
        level.tell(format!("{without} of {all} instances are not in the clinical table"));
    }
    let (fitted, scores) = cluster(&fit, &loaded.views, truth.as_ref(), level)?;
    let findings = clinical.map(|clinical| clinical.test(&fitted.labels)).transpose()?;
    let mut summary = Summary::new(told, &loaded.inputs, loaded.seconds, &fitted)?;
    summary.metrics = scores.as_ref().map(truth::to_json);
    summary.clinical = findings.as_ref().map(Findings::to_json).transpose()?;
    let formats = (options.format.unwrap_or_default(), options.embedding.unwrap_or_default());
    let beside = Beside {
        truth: truth.as_ref(),
        clinical: findings.as_ref(),
        title: options.title.as_deref(),
        annotated: annotated.as_ref().map(|own| (own, output.as_path())),
    };
    let line = Line::new(level, "writing the results and the report");
    write(folder, &loaded.views, &fitted, beside, formats, &mut summary)?;
    drop(line);
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", summary.text()?)?;
    } else {
        print(&mut out, &fitted, scores.as_ref(), findings.as_ref(), &output)?;
    }
    done(&fitted, &output)
}

/// A fit that was interrupted has left something, but it is not done.
pub fn done(fitted: &Fit, output: &Path) -> Result<()> {
    if fitted.outcome != Outcome::Cancelled {
        return Ok(());
    }
    let output = output.display();
    // Iterations that came to rest were not what was interrupted.
    let last = fitted.history.iter().rev().map(|objective| objective.total);
    let rested = last.clone().zip(last.skip(1)).next().is_some_and(|(now, before)| {
        (before - now).abs() <= fitted.model.options.tolerance * before.max(f64::MIN_POSITIVE)
    });
    let when = match fitted.iterations() {
        _ if rested => "among neighbourhoods, without which the clusters were made".into(),
        1 => "after 1 iteration".into(),
        iterations => format!("after {iterations} iterations"),
    };
    Err(Failure::Failed(format!("interrupted {when}; what there is so far is in {output}")))
}

/// Fits, with progress; and says how well the clusters agree with the truth.
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
        level.tell(
            "views count alike: each is predicted by the others, or nothing could be hidden to find out",
        );
    }
    for view in &fitted.model.views {
        let name = plain(&view.name);
        let told = format!("{name}: scaled by {} ({})", view.scaling.scale, view.scaling.reason);
        let asked = fitted.model.options.view_scales.get(&view.name).unwrap_or(&fitted.model.options.scale);
        if *asked == Scale::Auto {
            level.tell(told);
        } else {
            level.detail(format!("  {told}"));
        }
        if view.scaling.importance < 1.0 {
            level.tell(format!(
                "{name}: counts {:.1e} of a view that the others predict well",
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
            level.tell(format!(
                "{name}: {count} {noun} no value in any instance, and take no part: {named}{more}"
            ));
        }
    }
    if fitted.model.options.penalty == Penalty::Relative {
        let (alpha, beta) = (fitted.model.options.alpha, fitted.model.options.beta);
        level.tell(format!("relative alpha = {alpha}, beta = {beta}; features that are not left out:"));
        for view in &fitted.model.views {
            let (name, kept, all) = (plain(&view.name), view.selected().len(), view.basis.rows());
            level.tell(format!("  {name}: {kept} of {all}"));
        }
    }
    level.detail(format!(
        "  {} passes over the data, {} iterations among them",
        fitted.passes,
        fitted.iterations()
    ));
    device::told(&fitted).into_iter().for_each(|told| level.tell(told));
    level.tell(format!("neighbourhoods: {} ({})", fitted.neighbours.used, fitted.neighbours.reason));
    for (view, recall) in fitted.model.views.iter().zip(&fitted.neighbours.recall) {
        level.detail(format!(
            "  {:.1} % of the neighbours in view {} were found",
            100.0 * recall,
            quoted(&view.name)
        ));
    }
    if let Some(warning) = fitted.missingness.warning() {
        level.tell(format!("warning: {warning}"));
    }
    if let Some(significance) = fitted.significance {
        match significance.warning() {
            Some(warning) => level.tell(format!("warning: {warning}")),
            None => level.tell(format!("clearer than chance: {}", significance.text())),
        }
    }
    let agreement = || fitted.runs.iter().map(|run| 100.0 * run.agreement);
    if let (Some(least), Some(most)) = (agreement().reduce(f64::min), agreement().reduce(f64::max)) {
        let (runs, asked) = (fitted.runs.len(), fitted.model.options.runs);
        let mean = agreement().sum::<f64>() / runs as f64;
        level.tell(format!(
            "{runs} of {asked} runs, taken by themselves, agree with the result on {least:.1} to {most:.1} % of the instances \
             (mean {mean:.1} %)"
        ));
    }
    if fitted.outcome == Outcome::IterationLimit {
        let most = fitted.model.options.max_iterations;
        level.tell(format!(
            "not converged after {most} iterations, clusters may still change; --max-iter allows more"
        ));
    }
    let clusters = fitted.model.options.clusters;
    let empty = sizes(&fitted).iter().filter(|(size, _)| *size == 0).count();
    if empty > 0 {
        level.tell(format!("{empty} of {clusters} clusters are empty: the views do not tell so many apart"));
    }
    let scores = truth.map(|truth| truth.scores(&fitted.labels)).transpose()?;
    if let Some(truth) = truth {
        let unknown = truth.classes.iter().filter(|class| class.is_none()).count();
        if unknown > 0 {
            let all = truth.classes.len();
            level.tell(format!("{unknown} of {all} instances have no class; the metrics leave them out"));
        }
    }
    Ok((fitted, scores))
}

/// Writes all results. Where there is no room for the model, the others appear without it.
pub fn write(
    mut folder: Folder,
    views: &Views<'_>,
    fitted: &Fit,
    beside: Beside<'_>,
    (format, embedding): (Format, Embedding),
    summary: &mut Summary,
) -> Result<()> {
    let start = Instant::now();
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
        // The fit was interrupted before.
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
    if let Some(findings) = beside.clinical {
        folder.write("clinical.tsv", |out| findings.write(out))?;
        if let Some(survival) = &findings.survival {
            folder.write("survival.tsv", |out| Findings::write_survival(survival, out))?;
        }
    }
    if let Some((annotated, scratch)) = beside.annotated {
        annotated.write(&mut folder, fitted, scratch)?;
    }
    let page = results::report(views, fitted, Some(&explanation), beside, &summary.value()?)?;
    folder.write("report.html", |out| out.write_all(page.as_bytes()))?;
    summary.finish(start.elapsed().as_secs_f64());
    let text = summary.text()?;
    folder.write("summary.json", |out| writeln!(out, "{text}"))?;
    // The largest comes last: what there is room for is there by then.
    let stored = folder.write("model.safetensors", |out| fitted.write(out));
    if stored.is_err() {
        folder.leave_out("model.safetensors")?;
    }
    let output = folder.target().display().to_string();
    folder.finish()?;
    stored.map_err(|error| Failure::Failed(format!("{error}; all other results are in {output}")))
}

/// Instances that are counted by one thread at a time.
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
    // In the order of the blocks, whichever thread was first.
    for block in blocks.collect::<Vec<_>>() {
        sizes.iter_mut().zip(block).for_each(|(sum, own)| *sum = (sum.0 + own.0, sum.1 + own.1));
    }
    sizes
}

/// The result for people.
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use daimc_fuzz::{Random, mutate};

    use super::*;

    const SEEDS: [(&str, &str); 3] = [
        ("config.toml", include_str!("../../daimc-fuzz/corpus/toml/fit.toml")),
        ("config.toml", include_str!("../../daimc-fuzz/corpus/toml/small.toml")),
        ("summary.json", include_str!("../../daimc-fuzz/corpus/json/summary.json")),
    ];

    /// The seconds of `DAIMC_FUZZ_SECONDS`, one by default.
    #[test]
    fn configurations_that_are_damaged_give_options_or_a_sentence() {
        let seconds = std::env::var("DAIMC_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
        let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
        let folder = tempfile::tempdir().unwrap();
        let (mut cases, mut read) = (0, 0);
        while Instant::now() < end {
            let mut random = Random::of_case(0, 0, cases);
            let (name, seed) = random.pick(&SEEDS);
            let other = random.pick(&SEEDS).1;
            let mut bytes = seed.as_bytes().to_vec();
            mutate(&mut bytes, other.as_bytes(), &mut random);
            let path = folder.path().join(name);
            std::fs::write(&path, &bytes).unwrap();
            let _ = inputs_of(&path);
            match Options::default().over(&path) {
                Ok(options) => {
                    read += 1;
                    let _ = (options.fit(), options.check_names());
                }
                Err(failure) => assert!(matches!(failure, Failure::Usage(_) | Failure::Data(_)), "{failure}"),
            }
            cases += 1;
        }
        println!("{cases} configurations, {read} of them still read");
        assert!(read > 0 && read < cases);
    }
}
