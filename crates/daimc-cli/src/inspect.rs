//! `daimc inspect`: what is missing where, and what a fit will take.

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args;
use daimc::estimate::{Cost, Estimate, Shape};
use daimc::text::{duration, list, plain};
use daimc::{Neighbours, Source, Views};
use serde_json::{Value, json};

use crate::data::{Data, Loaded};
use crate::failure::{Failure, Result};
use crate::progress::Level;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// Number of clusters for which memory and time are estimated
    #[arg(short = 'k', long, value_name = "K", default_value_t = 10)]
    clusters: usize,

    /// Number of threads for reading, and assumed in the estimate [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Combinations of views that are listed, at most.
const LISTED: usize = 20;

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { data, clusters, threads, json } = arguments;
    crate::use_threads(*threads)?;
    if *clusters == 0 {
        return Err(Failure::Usage("-k 0: there must be at least one cluster".into()));
    }
    let loaded = data.look(&std::env::temp_dir(), Level::Normal)?;
    let combinations = combinations(&loaded.views);
    let estimate = estimate(&loaded, *clusters);
    // As in a fit by default.
    let included = estimate.used != Neighbours::Off;
    let mut fit = cost(&estimate, included);
    fit.bytes += copies(&loaded);
    if loaded.from_disk.is_some() {
        fit.bytes -= estimate.data;
    }
    let neighbours = estimate.neighbours;
    let mut out = io::stdout().lock();
    if *json {
        writeln!(out, "{:#}", to_json(&loaded, &combinations, fit, &estimate))?;
        return Ok(());
    }
    let n = loaded.views.instances();
    let name = |name: &str| plain(name).to_string();
    let longest =
        loaded.inputs.iter().map(|input| name(&input.name).chars().count()).max().unwrap_or(0).max(4);
    writeln!(out, "{:<longest$}   features   instances   missing   alone   values", "view")?;
    for (input, account) in loaded.inputs.iter().zip(&loaded.account.views) {
        let missing = 100.0 * (n - account.present) as f64 / n as f64;
        writeln!(
            out,
            "{:<longest$}   {:>8}   {:>9}   {missing:>5.1} %   {:>5}   {}",
            name(&input.name),
            input.shape[1],
            account.present,
            account.alone,
            input.values
        )?;
    }
    writeln!(out, "\n{n} instances, {} of them in every view", loaded.account.in_every_view)?;
    if loaded.views.len() > 1 {
        writeln!(out, "\ninstances   seen in")?;
        for (views, count) in combinations.iter().take(LISTED) {
            writeln!(out, "{count:>9}   {}", list(views.iter().map(|view| plain(view))))?;
        }
        if combinations.len() > LISTED {
            let rest: usize = combinations[LISTED..].iter().map(|(_, count)| count).sum();
            writeln!(out, "{rest:>9}   {} other combinations", combinations.len() - LISTED)?;
        }
    }
    for (input, account) in loaded.inputs.iter().zip(&loaded.account.views).filter(|(_, own)| own.missing > 0)
    {
        let share = 100.0 * account.missing as f64 / (account.present * input.shape[1]) as f64;
        writeln!(
            out,
            "\n{}: {} values ({share:.1} %) are missing inside {} instances",
            name(&input.name),
            account.missing,
            account.partial
        )?;
    }
    for line in loaded
        .account
        .to_string()
        .lines()
        .filter(|line| line.starts_with("dropped") || line.starts_with("warning"))
    {
        writeln!(out, "\n{}", line.trim())?;
    }
    writeln!(
        out,
        "\nA fit of {clusters} clusters will take about {:.1} MB of memory and {} (rough).",
        fit.bytes / 1e6,
        duration(fit.seconds)
    )?;
    if let Some(why) = &loaded.from_disk {
        writeln!(out, "{why}.")?;
    }
    let (megabytes, time) = (neighbours.bytes / 1e6, duration(neighbours.seconds));
    if included {
        writeln!(
            out,
            "Neighbourhoods take {megabytes:.1} MB and {time} of it; --neighbours off leaves them out."
        )?;
    } else {
        writeln!(
            out,
            "Neighbourhoods are left out: they would take {megabytes:.1} MB and {time} more (--neighbours refine)."
        )?;
    }
    Ok(())
}

/// The sets of views that instances are seen in, and how many each; the most frequent first.
fn combinations(views: &Views<'_>) -> Vec<(Vec<String>, usize)> {
    let names: Vec<&str> = views.iter().map(daimc::View::name).collect();
    let mut counts: HashMap<Vec<bool>, usize> = HashMap::new();
    for i in 0..views.instances() {
        *counts.entry((0..views.len()).map(|view| views.is_present(view, i)).collect()).or_default() += 1;
    }
    let named = |(shown, count): (Vec<bool>, usize)| {
        let shown = names.iter().zip(shown).filter(|(_, shown)| *shown);
        (shown.map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>(), count)
    };
    let mut counts: Vec<_> = counts.into_iter().map(named).collect();
    counts.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
    counts
}

/// What a fit takes, its data included.
pub fn cost(estimate: &Estimate, with_neighbours: bool) -> Cost {
    let Estimate { data, mut fit, neighbours, .. } = *estimate;
    fit.bytes += data;
    if with_neighbours {
        fit.bytes += neighbours.bytes;
        fit.seconds += neighbours.seconds;
    }
    fit
}

/// What the parts of a fit will take.
pub fn estimate(loaded: &Loaded, clusters: usize) -> Estimate {
    let shapes: Vec<Shape> = loaded.views.schema().views().map(Shape::from).collect();
    Estimate::new(loaded.views.instances(), &shapes, clusters, rayon::current_num_threads())
}

/// Bytes of the views that are copied, because cells are missing inside their rows: these are filled in the copy.
pub fn copies(loaded: &Loaded) -> f64 {
    if loaded.from_disk.is_some() {
        return 0.0;
    }
    let lacking = loaded.inputs.iter().zip(&loaded.account.views).filter(|(_, own)| own.missing > 0);
    lacking.map(|(input, _)| input.bytes as f64).sum()
}

fn to_json(
    loaded: &Loaded,
    combinations: &[(Vec<String>, usize)],
    fit: Cost,
    &Estimate { neighbours, used, .. }: &Estimate,
) -> Value {
    let included = used != Neighbours::Off;
    let views = loaded.inputs.iter().zip(&loaded.account.views).map(|(input, account)| {
        json!({
            "name": input.name, "path": input.path, "features": input.shape[1], "values": input.values,
            "instances": account.present, "missing": loaded.views.instances() - account.present,
            "alone": account.alone, "masked": account.masked, "empty": account.empty, "imputed": account.imputed,
            "missing_cells": account.missing, "instances_lacking_cells": account.partial,
        })
    });
    let combinations = combinations.iter().map(|(views, count)| json!({"views": views, "instances": count}));
    json!({
        "instances": loaded.views.instances(),
        "in_every_view": loaded.account.in_every_view,
        "dropped": loaded.account.dropped,
        "from_disk": loaded.from_disk.is_some(),
        "views": views.collect::<Vec<_>>(),
        "combinations": combinations.collect::<Vec<_>>(),
        "estimate": {
            "memory_bytes": fit.bytes.round(), "seconds": fit.seconds,
            "neighbours": {
                "included": included, "used": used, "memory_bytes": neighbours.bytes.round(), "seconds": neighbours.seconds,
            },
        },
    })
}
