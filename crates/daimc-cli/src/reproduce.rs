//! `daimc reproduce`: the tables and figures of the paper, and a panel of many data sets, every method on the same masks.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use daimc::Scale;
use daimc_experiments::reproduce::{Experiment, Request};
use daimc_experiments::{Section, markdown};
use serde_json::json;

use crate::experiments::{Console, ExperimentOptions};
use crate::failure::Result;

#[derive(Args)]
#[command(
    after_help = "Example: daimc reproduce 3sources --data DIR --seeds 10 -o out",
    mut_arg("output", |own| own.value_name("OUT").help(
        "Folder for results.tsv (a row per run), table.md, plots and reproduce.html; runs recorded there are not repeated"
    )),
    mut_arg("threads", |own| own.help(
        "Number of threads, one fit on each; the results do not depend on it [default: all]"
    )),
    mut_arg("json", |own| own.help("Print the tables as JSON"))
)]
pub struct Arguments {
    /// The table or figure
    #[arg(value_parser = experiment())]
    experiment: Experiment,

    /// Folder with the data sets in the folders 3sources, digit, wikipedia and flowers17, for panel also newsgroups, reuters,
    /// omics/brca, omics/nci60, omics/nutrimouse, omics/acc, more/scene15, more/landuse and fashion; Digit is part of the program and
    /// need not be there, nor fashion where Debian's package dataset-fashion-mnist is installed
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Number of seeds, from 0; each determines a mask, the same for all methods, and a start
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    seeds: u64,

    /// Methods, separated by commas [default: all of the experiment but the last four; for panel daimc, its routes and the fast
    /// ones]: daimc-plain (the default without neighbourhoods), daimc-paper, and where methods are compared daimc, wsnmf, multinmf,
    /// pvc, img, mic, omvc, opimc, single, concatenation, daimc-refine, daimc-embed, pca-spectral, nemo. Two-view methods run on
    /// every pair; the best according to the true classes is shown
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Data sets of panel, separated by commas [default: all that are available]: digit, 3sources, wikipedia, flowers17,
    /// newsgroups, reuters, brca, nci60, nutrimouse, acc, scene15, landuse, fashion, planted, or one of planted, such as planted-junk
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sets: Vec<String>,

    /// In addition to the fixed settings, try the whole grid and show the best according to the true classes in separate columns,
    /// as in the paper
    #[arg(long)]
    search: bool,

    /// A TOML file with lists of hyper-parameters in a section for each method, for --search and for alpha, beta and grid
    /// [default: crates/daimc-experiments/grid.toml, which is part of the program]
    #[arg(long, value_name = "FILE")]
    grid: Option<PathBuf>,

    /// Scaling of all views for all methods: none, unit, min-max, min-max-unit, z-score, z-score-unit, tf-idf, log or log-unit
    /// [default: rows scaled to length 1, after features are scaled to 0 … 1 for Digit and, in panel, for data other than counts;
    /// exceptions: the default preset of daimc chooses for itself, and pca-spectral, concatenation in panel, and nemo except for
    /// the counts of panel standardise features]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    #[command(flatten)]
    options: ExperimentOptions,
}

/// A parser of the names of experiments.
fn experiment() -> impl TypedValueParser<Value = Experiment> {
    let names = Experiment::ALL.map(|own| PossibleValue::new(own.name()).help(own.summary()));
    let known = |name: String| Experiment::ALL.into_iter().find(|own| own.name() == name).ok_or("unknown");
    PossibleValuesParser::new(names).try_map(known)
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { experiment, data, seeds, methods, sets, search, grid, options, .. } = arguments;
    let level = options.begin()?;
    let scale = arguments.scale.as_deref().map(str::parse::<Scale>).transpose()?;
    let request = Request {
        experiment: *experiment,
        data: data.as_deref(),
        seeds: *seeds,
        methods,
        sets,
        search: *search,
        grid: grid.as_deref(),
        scale,
        folder: &options.output,
    };
    let sections = request.run(&Console::new(level))?;
    let mut out = io::stdout().lock();
    if options.json {
        let table = |section: &Section| {
            let Section { title, notes, table, .. } = section;
            json!({"title": title, "notes": notes, "header": table.header, "rows": table.rows})
        };
        writeln!(out, "{:#}", json!(sections.iter().map(table).collect::<Vec<_>>()))?;
    } else {
        write!(out, "{}", markdown(&sections))?;
        writeln!(out, "\nEvery run, the tables and the plots are in {}", options.output.display())?;
    }
    ExperimentOptions::end()
}
