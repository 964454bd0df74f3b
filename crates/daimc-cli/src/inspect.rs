//! `daimc inspect`: missing data, and the estimated memory and time of a fit.

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args;
use daimc::estimate::{Cost, Distributed, Estimate, Shape};
use daimc::text::{duration, list, plain};
use daimc::{Neighbours, Source, Views};
use serde_json::{Value, json};

use crate::cost::{copies, cost, estimate};
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

    /// Also estimate a fit whose rows are distributed over this many workers, with Dask or MPI
    #[arg(long, value_name = "NUMBER")]
    workers: Option<usize>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Maximum number of combinations of views to list.
const LISTED: usize = 20;

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { data, clusters, threads, workers, json } = arguments;
    crate::use_threads(*threads)?;
    if *clusters == 0 {
        return Err(Failure::Usage("-k 0: there must be at least one cluster".into()));
    }
    if *workers == Some(0) {
        return Err(Failure::Usage("--workers 0: there must be at least one worker".into()));
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
    let distributed = workers.map(|workers| distributed(&loaded, *clusters, workers));
    let mut out = io::stdout().lock();
    if *json {
        let mut result = to_json(&loaded, &combinations, fit, &estimate);
        if let Some(distributed) = distributed {
            result["estimate"]["distributed"] = distributed_json(&distributed);
        }
        writeln!(out, "{result:#}")?;
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
        writeln!(out, "\ninstances   present in")?;
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
            "Neighbourhoods take {megabytes:.1} MB and {time} of it; --neighbours off skips them."
        )?;
    } else {
        writeln!(
            out,
            "Neighbourhoods are skipped: they would take {megabytes:.1} MB and {time} more (--neighbours refine)."
        )?;
    }
    if let (Some(distributed), Some(workers)) = (distributed, *workers) {
        print_distributed(&mut out, &distributed, workers, *clusters)?;
    }
    Ok(())
}

/// Prints the cost of a fit that is distributed over workers.
fn print_distributed(out: &mut impl Write, cost: &Distributed, wanted: usize, clusters: usize) -> Result<()> {
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let kilobytes = |bytes: f64| format!("{:.1} kB", bytes / 1e3);
    writeln!(
        out,
        "\nOn {} of {} each, a fit of {clusters} clusters without neighbourhoods and map will compute for {} (rough).\n\
         A worker with {} instances will take {} of memory, the process that drives the fit {}, and {} more for the results\n\
         of all instances if it has them. In each iteration a worker receives {} and returns {} at most.",
        counted(wanted, "worker"),
        counted(cost.threads, "thread"),
        duration(cost.seconds),
        cost.instances,
        megabytes(cost.worker_bytes),
        megabytes(cost.driver_bytes),
        megabytes(cost.results_bytes),
        kilobytes(cost.request),
        kilobytes(cost.reply),
    )?;
    if cost.workers < wanted {
        writeln!(
            out,
            "Rows are distributed in large partitions: {} will have none.",
            counted(wanted - cost.workers, "worker")
        )?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The combinations of views in which instances are present, with the number of instances; the most frequent first.
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

/// Estimates the cost of a distributed fit.
fn distributed(loaded: &Loaded, clusters: usize, workers: usize) -> Distributed {
    let shapes: Vec<Shape> = loaded.views.schema().views().map(Shape::from).collect();
    Distributed::new(loaded.views.instances(), &shapes, clusters, workers, rayon::current_num_threads())
}

fn distributed_json(cost: &Distributed) -> Value {
    json!({
        "workers": cost.workers, "threads": cost.threads, "instances_per_worker": cost.instances,
        "worker_memory_bytes": cost.worker_bytes.round(), "driver_memory_bytes": cost.driver_bytes.round(),
        "results_memory_bytes": cost.results_bytes.round(),
        "request_bytes": cost.request, "reply_bytes": cost.reply, "seconds": cost.seconds,
    })
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
