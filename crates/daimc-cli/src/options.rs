//! Everything that determines a fit, as options of the command line and as keys of a configuration file.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use daimc::text::{list, plain, quoted};
use daimc::{Daimc, Initialisation, Neighbours, Penalty, Preset, Scale, Solver, ViewWeights};
use daimc_io::Column;
use serde::{Deserialize, Serialize};

use crate::clinical::ClinicalOptions;
use crate::data::{Data, Input};
use crate::device::DeviceOptions;
use crate::embedding::Embedding;
use crate::failure::{Failure, Result};
use crate::help::{MODEL, OUTPUT, RESOURCES};
use crate::paths::{in_folder, utf8};
use crate::tables::Format;

/// Everything that determines a fit; the keys of a configuration file.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[allow(clippy::struct_excessive_bools)] // They are flags of the command line.
pub struct Options {
    #[command(flatten)]
    #[serde(flatten)]
    pub data: Data,

    /// Number of clusters
    #[arg(short = 'k', long, value_name = "K")]
    #[serde(alias = "k", skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,

    /// Defaults of the other options: `default`, or `paper` for the published algorithm [default: default]
    #[arg(long, help_heading = MODEL, value_name = "NAME", hide_possible_values = true, value_parser = by_name(Preset::ALL, Preset::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,

    /// Scaling of the views, or of one view: `--scale rna=log`; may be repeated [default: auto]
    ///
    /// auto, none, unit, min-max, min-max-unit, z-score, z-score-unit, tf-idf, log or log-unit. `auto` takes the
    /// likeliest of unit, min-max-unit and z-score-unit (log-unit and log for heavy-tailed values, tf-idf for sparse counts),
    /// unless neighbours predict the clusters of another one clearly better, on a sample.
    #[arg(long, value_name = "[VIEW=]SCALE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scale: Vec<String>,

    /// Use only this number of features of each view, those with the largest variance (of the logarithms, if these are
    /// taken) [default: all]
    #[arg(long, help_heading = MODEL, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_features: Option<usize>,

    /// Scale of alpha and beta: `published`, `relative` to the data (beta, from 0 to 1, then drops features), or `auto`:
    /// relative, and chosen by the prediction of hidden rows [default: published]
    #[arg(long, help_heading = MODEL, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Penalty::ALL, Penalty::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<Penalty>,

    /// Weights of the views: `equal`, or `learned` from how well the other views predict hidden rows of a view, so that a
    /// noisy view has little weight [default: equal]
    #[arg(long, help_heading = MODEL, value_name = "HOW", hide_possible_values = true, value_parser = by_name(ViewWeights::ALL, ViewWeights::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view_weights: Option<ViewWeights>,

    /// Weight of the alignment of the views' bases [default: 10; relative 1]
    #[arg(long, help_heading = MODEL, value_name = "NUMBER", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,

    /// Weight of the sparsity of the feature selection [default: 0.1; relative 0.15]
    #[arg(long, help_heading = MODEL, value_name = "NUMBER", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,

    /// Number of columns of the shared representation [default: the number of clusters]
    #[arg(long, help_heading = MODEL, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latent: Option<usize>,

    /// Maximum number of iterations [default: 100; paper 30]
    #[arg(long, help_heading = MODEL, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iter: Option<usize>,

    /// Stop when the relative change of the objective is below this threshold [default: 1e-4]
    #[arg(long, help_heading = MODEL, value_name = "SHARE", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tol: Option<f64>,

    /// How the representation is initialised: `aligned` or `paper` [default: aligned; paper paper]
    #[arg(long, help_heading = MODEL, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Initialisation::ALL, Initialisation::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<Initialisation>,

    /// How the representation is updated: `coordinate` or `multiplicative` [default: coordinate; paper multiplicative]
    #[arg(long, help_heading = MODEL, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Solver::ALL, Solver::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<Solver>,

    /// Number of runs, from different starts, to combine into one clustering [default: 1]
    ///
    /// Confidence is higher where the runs agree; features.tsv and the report show the stability of the features.
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,

    /// Use of nearest neighbours within each view: off, refine, embed or auto [default: auto; paper off]
    ///
    /// `refine` cuts the clusters from the kNN graph. `embed` replaces each view by the eigenvectors of its kNN graph.
    /// `auto` combines the clusterings, weighted by how well neighbours in single views predict the clusters, within
    /// --neighbours-budget.
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = by_name(Neighbours::ALL, Neighbours::name))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,

    /// CPU time for nearest neighbours with `--neighbours auto`, in seconds of one core; slower methods are skipped
    /// [default: ten times that of the fit without them, at least 60]
    #[arg(long, help_heading = MODEL, value_name = "SECONDS", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours_budget: Option<f64>,

    /// Skip the comparison of the clusters with those of permuted and of resampled data, as `--preset paper` does; clusters
    /// stay the same, confidence is then the plain margin
    #[arg(long, help_heading = MODEL)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_assess: bool,

    /// Do not skip it with `--preset paper`
    #[arg(long, help_heading = MODEL, conflicts_with = "no_assess")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assess: bool,

    /// Learn in a single pass, for data that are too large to be read repeatedly: fit the first batch, update the model
    /// with every later one, then read the data once more and assign all instances to clusters. Writes only labels.tsv,
    /// features.tsv, model.safetensors and summary.json
    #[arg(long, help_heading = RESOURCES)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub online: bool,

    /// Number of instances in a batch with --online; data on disk are loaded batch by batch [default: 100000]
    #[arg(long, help_heading = RESOURCES, value_name = "NUMBER")]
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

    /// Format of the tables of labels, V, contributions and features: `tsv`, or `parquet` (IDs as text, zstd), which
    /// pandas, polars and R load much faster [default: tsv]
    #[arg(long, help_heading = OUTPUT, value_name = "FORMAT", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,

    /// Format of V, if different from that of the other tables: `tsv` with IDs and six significant digits, `npy` (float32,
    /// a row for each line of labels.tsv), `parquet` (float32, with IDs), `none`, or `auto`: as --format, but npy instead
    /// of tsv beyond 100 000 instances [default: auto]
    #[arg(long, help_heading = OUTPUT, value_name = "FORMAT", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Embedding>,

    /// Also write annotated.h5ad or annotated.h5mu: a copy of the single file that all views come from, with clusters as
    /// `daimc` and their confidence as `daimc_confidence` in obs, V as `X_daimc` and the map as `X_daimc_map` in obsm, for
    /// scanpy or muon
    #[arg(long, help_heading = OUTPUT)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub annotate: bool,

    /// A table of IDs and true classes, to score the clusters; not used by the fit
    ///
    /// Adds metrics to the summary and a comparison to the report. `::COLUMN` names the column if there are several, as in
    /// `clinical.csv::stage`.
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,

    /// Title of the report [default: Clusters of incomplete views]
    #[arg(long, help_heading = OUTPUT, value_name = "TEXT", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub clinical: ClinicalOptions,
}

/// Parses the name of a value.
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
        if self.assess || self.no_assess {
            fit = fit.assess(self.assess);
        }
        Ok(with(fit, self.solver, Daimc::solver))
    }

    /// Resolves relative paths against a folder.
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

    /// Fails if an option names an unknown view.
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

    /// Returns these options, with those of a file for the ones that are not set.
    pub fn over(&self, path: &Path) -> Result<Self> {
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
        for other in ["config", "output", "force", "json", "quiet", "verbose"] {
            if table.contains_key(other) {
                return Err(wrong(format!("'{other}' belongs on the command line, not in a file")));
            }
        }
        let command = Self::augment_args(clap::Command::new("fit"));
        let known: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).chain(["k"]).collect();
        if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(format!("there is no option {}; see daimc fit --help-all", quoted(unknown))));
        }
        if let Some(clusters) = table.remove("k") {
            table.insert("clusters".into(), clusters);
        }
        // Options that may be repeated may be a single string in the file.
        for key in ["view", "scale"] {
            if let Some(one @ toml::Value::String(_)) = table.get(key).cloned() {
                table.insert(key.into(), vec![one].into());
            }
        }
        let own = toml::Table::try_from(self).map_err(|error| wrong(error.to_string()))?;
        for (flag, opposite) in [("assess", "no-assess"), ("no-assess", "assess")] {
            if own.contains_key(flag) {
                table.remove(opposite);
            }
        }
        table.extend(own);
        table.try_into().map_err(|error: toml::de::Error| wrong(error.to_string().trim().to_owned()))
    }
}

/// The input files of an earlier fit, if the configuration is its `summary.json`.
pub fn inputs_of(config: &Path) -> Vec<Input> {
    let summary = std::fs::read_to_string(config).ok().and_then(|text| serde_json::from_str(&text).ok());
    let summary: serde_json::Value = summary.unwrap_or_default();
    serde_json::from_value(summary["inputs"].clone()).unwrap_or_default()
}

/// Sets an option if a value was given.
fn with<T>(fit: Daimc, value: Option<T>, set: impl FnOnce(Daimc, T) -> Daimc) -> Daimc {
    match value {
        Some(value) => set(fit, value),
        None => fit,
    }
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

    /// Runs for `DAIMC_FUZZ_SECONDS` seconds, by default one.
    #[test]
    fn damaged_configurations_give_options_or_an_error() {
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
