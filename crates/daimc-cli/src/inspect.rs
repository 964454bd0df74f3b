//! `daimc inspect`: missing data, and the estimated memory and time of a fit.

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args;
use daimc::estimate::{BANDWIDTH, Cost, Distributed, Estimate, LATENCY, Shape, TASK};
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
fn print_distributed(
    out: &mut impl Write,
    distributed: &Distributed,
    wanted: usize,
    clusters: usize,
) -> Result<()> {
    let Distributed { workers, threads, instances, sweep, traffic, iteration, .. } = *distributed;
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let kilobytes = |bytes: f64| format!("{:.1} kB", bytes / 1e3);
    writeln!(
        out,
        "\nOn {} of {} each, a fit of {clusters} clusters without neighbourhoods will take {} (rough),\n\
         {} of memory on a worker and {} in the process that drives it, in addition to that of the processes themselves.",
        counted(wanted, "worker"),
        counted(threads, "thread"),
        duration(distributed.seconds),
        megabytes(distributed.worker_bytes),
        megabytes(distributed.driver_bytes),
    )?;
    if workers < wanted {
        let rest = wanted - workers;
        writeln!(
            out,
            "Rows are distributed in large partitions: {} will have none.",
            counted(rest, "worker")
        )?;
    }
    writeln!(
        out,
        "\nof one iteration ({:.0} are expected)\n\
         {:>14.3} s   time: {:.3} s sweep, {:.3} s U and B, {:.3} s network\n\
         {:>14}   instances of a worker, at most\n\
         {:>14}   read and written in its memory\n\
         {:>14}   computed by it\n\
         {:>14}   request to each worker\n\
         {:>14}   reply of a worker, at most; {} merged\n\
         {:>14}   through the network in all, at {:.0} GB/s and {:.1} ms for each hop",
        distributed.iterations,
        iteration.total(),
        iteration.sweep,
        iteration.solve,
        iteration.network,
        instances,
        megabytes(sweep.bytes),
        format!("{:.1} Mflop", sweep.flops / 1e6),
        kilobytes(traffic.request),
        kilobytes(traffic.reply),
        kilobytes(traffic.merged),
        kilobytes(traffic.network),
        BANDWIDTH / 1e9,
        1e3 * LATENCY,
    )?;
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

fn distributed_json(distributed: &Distributed) -> Value {
    let Distributed { workers, threads, instances, sweep, traffic, iteration, .. } = *distributed;
    json!({
        "workers": workers, "threads": threads, "instances_per_worker": instances,
        "worker_memory_bytes": distributed.worker_bytes.round(),
        "driver_memory_bytes": distributed.driver_bytes.round(),
        "iterations": distributed.iterations, "seconds": distributed.seconds,
        "iteration": {
            "seconds": iteration.total(), "sweep_seconds": iteration.sweep, "solve_seconds": iteration.solve,
            "network_seconds": iteration.network,
            "worker_bytes": sweep.bytes, "worker_flops": sweep.flops,
            "request_bytes": traffic.request, "reply_bytes": traffic.reply, "merged_bytes": traffic.merged,
            "network_bytes": traffic.network,
        },
        "assumed": {"bytes_per_second": BANDWIDTH, "seconds_per_hop": LATENCY, "seconds_per_task": TASK},
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
