//! `daimc select`: recommends a number of clusters.

mod page;

use std::io::{self, Write};
use std::ops::{ControlFlow, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use daimc::select::{Candidate, Estimate, Select, Selection};
use serde_json::json;

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::{Folder, spare_inputs};
use crate::options::Options;
use crate::progress::{self, Done, Level, Line, Pace};

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// Numbers of clusters to choose from, including the last: `2..12`
    #[arg(short = 'k', long, value_name = "FROM..TO")]
    clusters: Numbers,

    /// Number of resamples, each fitted with every number of clusters
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    resamples: usize,

    /// Share of an instance's views that a resample hides, not counting the one view that is always kept [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    hidden: Option<f64>,

    /// Scaling, as for `daimc fit`; for one view only: `--scale rna=z-score`. May be repeated [default: auto]
    #[arg(long, value_name = "[VIEW=]SCALE")]
    scale: Vec<String>,

    /// Number of runs, from different starts, that are combined for each resample [default: 1]
    #[arg(long, value_name = "NUMBER")]
    runs: Option<usize>,

    /// Random seed [default: 0]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Folder for selection.tsv (a row for each number of clusters) and select.html (the same results as plots)
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Replace files in a folder that is not empty
    #[arg(long, requires = "output")]
    force: bool,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// Numbers of clusters.
#[derive(Clone, Debug)]
struct Numbers(RangeInclusive<usize>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").ok_or("write the first and the last number as in 2..12")?;
        let number = |text: &str| {
            text.trim().parse::<usize>().map_err(|_| format!("'{text}' is not a number of clusters"))
        };
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first < 2 || last <= first {
            return Err("the first number must be at least 2, and the last one larger".into());
        }
        Ok(Self(first..=last))
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    crate::use_threads(arguments.threads)?;
    let level = Level::new(arguments.quiet, false);
    let options = Options {
        data: arguments.data.clone(),
        clusters: Some(*arguments.clusters.0.start()),
        scale: arguments.scale.clone(),
        runs: arguments.runs,
        seed: arguments.seed,
        ..Options::default()
    };
    options.check_names()?;
    let fit = options.fit()?.stop(progress::request());
    let mut select = Select::new(fit, arguments.clusters.0.clone()).resamples(arguments.resamples);
    if let Some(share) = arguments.hidden {
        select = select.hidden(share);
    }
    let folder = arguments.output.as_deref().map(|output| Folder::begin(output, arguments.force));
    let folder = folder.transpose()?;
    if let Some(output) = &arguments.output {
        for file in ["selection.tsv", "select.html"] {
            spare_inputs(&output.join(file), arguments.data.paths()?.iter().map(PathBuf::as_path))?;
        }
    }
    let loaded = arguments.data.load_whole()?;
    level.info(&loaded.account);

    progress::listen();
    let (line, pace) = (Line::new(level, "starting"), Pace::begin());
    let each_number = arguments.clusters.0.clone().count();
    let selection = select.run_with(&loaded.views, |step| {
        let done = pace.at(step.done as f64 / step.of as f64);
        // More clusters take longer: the time left is estimated from one resample with every number of clusters.
        let left = done.left.filter(|_| step.done >= each_number);
        line.show(format!("{} of {} fits", step.done, step.of), Done { left, ..done });
        ControlFlow::Continue(())
    });
    drop(line);
    let selection = selection?;

    if let Some(mut folder) = folder {
        folder.write("selection.tsv", |out| table(out, &selection))?;
        let inputs: Vec<_> =
            loaded.inputs.iter().map(|input| json!([input.name, input.path, input.sha256])).collect();
        let key = json!({"version": env!("CARGO_PKG_VERSION"), "inputs": inputs, "seed": arguments.seed.unwrap_or(0)});
        let page = page::page(&selection, &key);
        folder.write("select.html", |out| out.write_all(page.as_bytes()))?;
        folder.finish()?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{:#}", json!(selection))?;
    } else {
        print(&mut out, &selection)?;
        if let Some(output) = &arguments.output {
            writeln!(out, "Plots are in {}.", output.join("select.html").display())?;
        }
    }
    if selection.interrupted {
        let (made, asked) = (selection.resamples, arguments.resamples);
        return Err(Failure::Failed(format!(
            "interrupted; the recommendation is based on {made} of {asked} resamples"
        )));
    }
    Ok(())
}

/// The selection as JSON.
fn table(out: &mut dyn Write, selection: &Selection) -> io::Result<()> {
    let head = "clusters\tstability\tstability_error\texplained\texplained_error\tscore\tscore_error\tvotes";
    writeln!(out, "{head}")?;
    for Candidate { clusters, stability, explained, score, votes, .. } in &selection.candidates {
        let explained =
            explained.map_or("\t".to_owned(), |share| format!("{}\t{}", share.value, share.error));
        writeln!(
            out,
            "{clusters}\t{}\t{}\t{explained}\t{}\t{}\t{votes}",
            stability.value, stability.error, score.value, score.error
        )?;
    }
    Ok(())
}

/// Prints the selection.
fn print(out: &mut impl Write, selection: &Selection) -> io::Result<()> {
    let with_error = |own: Estimate| format!("{:.3} ± {:.3}", own.value, own.error);
    writeln!(out, "clusters       stability       explained           score   votes")?;
    for own in &selection.candidates {
        let explained = own.explained.map_or("-".to_owned(), with_error);
        let mark = if own.clusters == selection.recommended { "  <" } else { "" };
        writeln!(
            out,
            "{:>8}   {:>13}   {:>13}   {:>13}   {:>3.0} %{mark}",
            own.clusters,
            with_error(own.stability),
            explained,
            with_error(own.score),
            100.0 * own.votes
        )?;
    }
    if selection.recommended == 1 {
        return writeln!(out, "\nRecommended: one cluster: {}.", selection.reason);
    }
    writeln!(
        out,
        "\nRecommended: {} clusters, by {:.0} % of the bootstrap samples of {} resamples: {}.",
        selection.recommended,
        100.0 * selection.confidence,
        selection.resamples,
        selection.reason
    )
}
