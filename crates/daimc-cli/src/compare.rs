//! `daimc compare`: every method on the same data and masks.

use std::io::{self, Write};

use clap::Args;
use daimc::Scale;
use daimc_experiments::Dataset;
use daimc_experiments::compare::{self, Comparison};
use serde_json::json;

use crate::data::Data;
use crate::experiments::{Console, ExperimentOptions};
use crate::failure::Result;
use crate::paths::utf8;
use crate::terminal::clean;
use crate::truth::{Truth, encode};

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// A table of IDs and true classes; `::COLUMN` names the column if there are several, as in `clinical.csv::stage`. Not used by
    /// any method
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    truth: String,

    /// Number of clusters [default: the number of classes]
    #[arg(short = 'k', long, value_name = "K")]
    clusters: Option<usize>,

    /// Methods, separated by commas [default: all but the last four]: daimc, daimc-plain (without neighbourhoods), daimc-paper,
    /// wsnmf, multinmf, pvc, img, mic, omvc, opimc, single, concatenation, daimc-refine, daimc-embed (a single neighbourhood method
    /// each), pca-spectral, nemo. Two-view methods run on every pair; where a method has several settings, the table shows the best
    /// according to the true classes and says so
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Shares of instances to remove from each view, one experiment each, separated by commas; 0 leaves the data as they are, and
    /// every instance keeps at least one view
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0")]
    missing: Vec<f64>,

    /// Number of seeds, from 0; each determines a mask and a start
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    seeds: u64,

    /// Scaling of all views for all methods: none, unit, min-max, min-max-unit, z-score, z-score-unit,
    /// tf-idf, log or log-unit
    /// [default: unit; daimc chooses for itself]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    #[command(flatten)]
    options: ExperimentOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { methods, missing, seeds, options, .. } = arguments;
    let level = options.begin()?;
    let scale = arguments.scale.as_deref().map(str::parse::<Scale>).transpose()?;
    compare::check(methods, *seeds)?;
    arguments.data.check_truth(&arguments.truth)?;
    let loaded = arguments.data.load_whole()?;
    level.info(&loaded.account);
    let truth = Truth::read(&arguments.truth, &loaded.views, &arguments.data.ids)?;
    let data = dataset(arguments, loaded.views, &truth);

    let inputs: Vec<_> = loaded.inputs.iter().map(|input| json!([input.name, input.sha256])).collect();
    let key = json!({
        "version": env!("CARGO_PKG_VERSION"), "inputs": inputs, "data": arguments.data,
        "clusters": data.clusters, "truth": truth.sha256, "scale": scale,
    });
    let comparison = Comparison {
        data: &data,
        methods,
        rates: missing,
        seeds: *seeds,
        scale,
        folder: &options.output,
        key: &key,
    };
    let compared = comparison.run(&Console::new(level))?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{:#}", json!(compared.lines))?;
    } else {
        write!(out, "{}", clean(&compared.section.table.markdown()))?;
        writeln!(out, "\nEvery run is in {}", options.output.join("results.tsv").display())?;
    }
    ExperimentOptions::end()
}

fn dataset(arguments: &Arguments, views: daimc::Views<'static>, truth: &Truth) -> Dataset {
    let known: Vec<&str> = truth.classes.iter().flatten().map(String::as_str).collect();
    let mut codes = encode(&known).into_iter();
    let classes: Vec<Option<usize>> =
        truth.classes.iter().map(|class| class.as_ref().and_then(|_| codes.next())).collect();
    let count = classes.iter().flatten().max().map_or(0, |most| most + 1);
    Dataset { views, classes, clusters: arguments.clusters.unwrap_or(count) }
}
