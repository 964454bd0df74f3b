//! `daimc compare`: every method on the same data and masks.

mod ledger;
mod methods;
mod page;
mod table;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use clap::Args;
use daimc::{Scale, Views, metrics, simulate};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde_json::json;

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::write_file;
use crate::progress::{self, Level};
use crate::truth::{Truth, numbers};
use ledger::{Cell, Ledger, Row};
use methods::Contender;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// A table of IDs and true classes; no method sees it
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,

    /// Number of clusters [default: the number of classes]
    #[arg(short = 'k', long, value_name = "K")]
    clusters: Option<usize>,

    /// Methods, separated by commas [default: all]: daimc, daimc-paper, wsnmf, multinmf, pvc,
    /// img, mic, omvc, opimc, single, concatenation. Two-view methods run on every pair; where a method has several
    /// settings, the table shows the best by the classes and says so
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Shares of instances that are removed from every view, one experiment each, separated by commas; 0 leaves the data as
    /// they are
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0")]
    missing: Vec<f64>,

    /// Seeds, from 0; each is a mask and a start
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    seeds: u64,

    /// Scaling of all views for all methods: none, unit, min-max, min-max-unit, z-score, z-score-unit or tf-idf
    /// [default: unit; daimc chooses for itself]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    /// Folder for results.tsv (a row per run), table.md and compare.html; what is finished there is not run again
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Threads to use; the results do not depend on them [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,

    /// Tell nothing on standard error but errors
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    crate::use_threads(arguments.threads)?;
    let level = Level::new(arguments.quiet, false);
    let scale = arguments.scale.as_deref().map(str::parse::<Scale>).transpose()?;
    if arguments.seeds == 0 {
        return Err(Failure::Usage("--seeds must be at least 1".into()));
    }
    methods::check(&arguments.methods)?;
    let loaded = arguments.data.load()?;
    level.tell(&loaded.account);
    let views = &loaded.views;
    let truth = Truth::read(&arguments.truth, views)?;
    let classes: Vec<&str> = truth.classes.iter().flatten().map(String::as_str).collect();
    let classes = numbers(&classes).into_iter().max().map_or(0, |most| most + 1);
    let clusters = arguments.clusters.unwrap_or(classes);

    // What is finished counts only for the same data and options.
    let inputs: Vec<_> = loaded.inputs.iter().map(|input| json!([input.name, input.sha256])).collect();
    let key = json!({
        "version": env!("CARGO_PKG_VERSION"), "inputs": inputs, "data": arguments.data, "clusters": clusters,
        "truth": crate::data::sha256(&arguments.truth)?, "scale": scale,
    });
    let ledger = Ledger::open(&arguments.output, &key)?;
    let contenders = methods::contenders(&arguments.methods, views, scale);
    let mut cells = Vec::new();
    for &rate in &arguments.missing {
        for contender in &contenders {
            for seed in 0..arguments.seeds {
                let cell =
                    Cell { rate, method: contender.method.into(), setting: contender.setting.clone(), seed };
                if !ledger.has(&cell) {
                    cells.push((cell, contender));
                }
            }
        }
    }
    let refused = work(cells, views, &truth, clusters, &ledger, level)?;
    let rows = ledger.rows();
    let summary = table::summarise(&rows, &contenders, &arguments.missing, arguments.seeds);
    let markdown = table::markdown(&summary);
    write_file(Some(&arguments.output.join("table.md")), |out| out.write_all(markdown.as_bytes()))?;
    let page = page::page(&summary, &key);
    write_file(Some(&arguments.output.join("compare.html")), |out| out.write_all(page.as_bytes()))?;
    for (method, reason) in refused {
        level.tell(format!("{method} was left out: {reason}"));
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{:#}", json!(summary))?;
    } else {
        write!(out, "{markdown}")?;
        writeln!(out, "\nEvery run is in {}", arguments.output.join("results.tsv").display())?;
    }
    if progress::interrupted() {
        return Err(Failure::Failed("interrupted; the same command goes on where it stopped".into()));
    }
    Ok(())
}

/// Runs what is not finished. Returns the methods that cannot take the data, and why.
fn work(
    cells: Vec<(Cell, &Contender)>,
    views: &Views<'_>,
    truth: &Truth,
    clusters: usize,
    ledger: &Ledger,
    level: Level,
) -> Result<Vec<(String, String)>> {
    progress::listen();
    let bar = ProgressBar::new(cells.len() as u64);
    if level == Level::Quiet || cells.is_empty() {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let style = "{elapsed_precise} [{bar:30}] {pos} of {len} runs  about {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("=> "));
    }
    let refused: Mutex<Vec<(String, String)>> = Mutex::default();
    let known: Vec<usize> = (0..views.instances()).filter(|&i| truth.classes[i].is_some()).collect();
    let classes: Vec<&str> = truth.classes.iter().flatten().map(String::as_str).collect();
    let classes = numbers(&classes);
    let one = |(cell, contender): (Cell, &Contender)| -> Result<()> {
        if progress::interrupted() {
            return Ok(());
        }
        let start = Instant::now();
        let mut iterations = 0;
        let mut each = |number: usize, _: f64| {
            iterations = iterations.max(number);
            if progress::interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = if cell.rate == 0.0 {
            contender.fit.fit(views, clusters, cell.seed, &mut each)
        } else {
            let present = simulate::missing(views.instances(), &vec![cell.rate; views.len()], cell.seed)?;
            views
                .masked(&present)
                .and_then(|masked| contender.fit.fit(&masked, clusters, cell.seed, &mut each))
        };
        bar.inc(1);
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let mut refused = refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if !refused.iter().any(|(method, _)| *method == cell.method) {
                    refused.push((cell.method, error.to_string()));
                }
                return Ok(());
            }
        };
        if progress::interrupted() {
            return Ok(());
        }
        let labels: Vec<usize> = known.iter().map(|&i| found.labels[i]).collect();
        let scores = metrics::scores(&classes, &labels)?;
        let seconds = start.elapsed().as_secs_f64();
        ledger.add(Row { cell, ac: scores.ac, nmi: scores.nmi, ari: scores.ari, seconds, iterations })
    };
    let outcome = cells.into_par_iter().map(one).collect::<Result<()>>();
    bar.finish_and_clear();
    outcome?;
    let mut refused = refused.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    refused.sort();
    Ok(refused)
}
