//! `daimc demo`: a fit to the built-in Digit data.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use daimc::source::{Buffer, Rows};
use daimc::{Daimc, Preset, View, Views, datasets, simulate};
use serde_json::json;

use crate::embedding::Embedding;
use crate::failure::{Failure, Result};
use crate::fit;
use crate::folder::{self, Folder};
use crate::progress::Level;
use crate::results::Extras;
use crate::summary::Summary;
use crate::tables::Format;
use crate::truth::{self, Truth};

#[derive(Args)]
pub struct Arguments {
    /// Share of instances to remove from every view, at random [0 to 0.8]
    #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
    missing: f64,

    /// Random seed of the mask and of the fit
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    seed: u64,

    /// Preset of the fit: `default`, or `paper` for the published algorithm
    #[arg(long, default_value = "default", value_parser = ["default", "paper"], hide_possible_values = true)]
    preset: String,

    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Title of the report
    #[arg(long, default_value = "Handwritten digits", value_name = "TEXT", hide_default_value = true)]
    title: String,

    /// Folder for the results and the report; those of an earlier demo are replaced
    #[arg(short, long, default_value = "daimc-demo", value_name = "DIR")]
    output: PathBuf,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Write the complete data to a folder instead, to try the other commands on: a table for each view, and truth.tsv;
    /// `daimc simulate` removes instances
    #[arg(long, value_name = "DIR", conflicts_with_all = ["missing", "seed", "preset", "title", "output", "json"])]
    files: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { missing, seed, preset, threads, title, output, force, files, json } = arguments;
    let begun = Instant::now();
    crate::use_threads(*threads)?;
    let mut out = io::stdout().lock();
    let (views, classes) = datasets::digit();
    // The five views of the paper; the sixth, `mor`, has only six features.
    let views: Vec<_> = views.into_iter().filter(|view| view.name() != "mor").collect();
    if let Some(files) = files {
        return export(files, *force, views, &classes);
    }
    folder::recover(output)?;
    let folder = Folder::begin(output, *force || is_demo(output))?;
    let present = simulate::missing(classes.len(), &vec![*missing; views.len()], *seed)?;
    let views = views.into_iter().zip(&present).map(|(view, present)| view.mask(present));
    let views = Views::new(views.collect::<Result<_, _>>()?)?;
    if !json {
        // The results are written even if standard output is closed.
        let _ = describe(&mut out, &views);
    }

    let mut fit = Daimc::new(10).seed(*seed);
    if preset == "paper" {
        fit = fit.preset(Preset::Paper);
    }
    let fit = fit.map(true);
    let truth =
        Truth { classes: classes.iter().map(|class| Some(class.to_string())).collect(), ..Truth::default() };
    let read = begun.elapsed().as_secs_f64();
    let level = if *json { Level::Quiet } else { Level::Normal };
    let (model, scores) = fit::cluster(&fit, &views, Some(&truth), level)?;
    let seconds = begun.elapsed().as_secs_f64() - read;

    let options = json!({"demo": {"missing": missing, "seed": seed, "preset": preset}});
    let mut summary = Summary::new(options, &[], (begun, read), &model)?;
    summary.metrics = scores.as_ref().map(truth::to_json);
    let extras = Extras { truth: Some(&truth), clinical: None, title: Some(title), annotated: None };
    fit::write(folder, &views, &model, extras, (Format::Tsv, Embedding::Auto), &mut summary)?;
    if *json {
        writeln!(out, "{}", summary.text()?)?;
        return fit::done(&model, output);
    }
    let scores = scores.ok_or_else(|| Failure::Failed("the demo has lost its classes".into()))?;
    writeln!(
        out,
        "{:?} after {} iterations, {:.0} ms from memory to labels\n",
        model.outcome,
        model.iterations(),
        1000.0 * seconds
    )?;
    writeln!(out, "  AC  {:.3}   share of digits in the right cluster", scores.ac)?;
    writeln!(out, "  NMI {:.3}   information that clusters and digits share", scores.nmi)?;
    writeln!(out, "  ARI {:.3}   pairs judged alike, corrected for chance", scores.ari)?;
    writeln!(
        out,
        "\nThe digits themselves were used for these three figures and the report, never for the fit."
    )?;
    writeln!(out, "The report is {}", output.join("report.html").display())?;
    fit::done(&model, output)
}

/// Whether a folder holds the results of an earlier demo.
fn is_demo(folder: &Path) -> bool {
    let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap_or_default();
    summary["options"].get("demo").is_some()
}

fn describe(out: &mut impl Write, views: &Views<'_>) -> Result<()> {
    let n = views.instances();
    writeln!(
        out,
        "Digit: {n} handwritten digits in {} views (UCI Multiple Features, CC BY 4.0)\n",
        views.len()
    )?;
    writeln!(out, "  view   features   present   missing")?;
    for (number, view) in views.iter().enumerate() {
        let present = views.present(number);
        let missing = 100.0 * (n - present) as f64 / n as f64;
        writeln!(out, "  {:<6} {:>8}   {present:>7}   {missing:>5.1} %", view.name(), view.features())?;
    }
    let everywhere = (0..n).filter(|&i| (0..views.len()).all(|view| views.is_present(view, i))).count();
    writeln!(out, "\n  present in every view: {everywhere} of {n}\n")?;
    Ok(out.flush()?)
}

/// Writes the complete data as tables.
fn export(output: &Path, force: bool, views: Vec<View<'_>>, classes: &[usize]) -> Result<()> {
    let views = Views::new(views)?;
    let mut folder = Folder::begin(output, force)?;
    for (number, view) in views.iter().enumerate() {
        let mut buffer = Buffer::default();
        let block = views.block(number, 0..views.instances(), &mut buffer)?;
        let Rows::DenseF32(values) = block.rows else {
            return Err(Failure::Failed("the embedded data are not dense f32".into()));
        };
        folder.write(&format!("{}.tsv", view.name()), |out| {
            write!(out, "id")?;
            (0..view.features()).try_for_each(|f| write!(out, "\t{}{f}", view.name()))?;
            writeln!(out)?;
            for (i, row) in values.chunks_exact(view.features()).enumerate() {
                write!(out, "{i}")?;
                row.iter().try_for_each(|value| write!(out, "\t{value}"))?;
                writeln!(out)?;
            }
            Ok(())
        })?;
    }
    folder.write("truth.tsv", |out| {
        writeln!(out, "id\tdigit")?;
        classes.iter().enumerate().try_for_each(|(i, class)| writeln!(out, "{i}\t{class}"))
    })?;
    folder.finish()?;
    writeln!(io::stdout(), "The five views and truth.tsv are in {}", output.display())?;
    Ok(())
}
