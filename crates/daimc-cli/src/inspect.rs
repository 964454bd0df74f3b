//! `daimc inspect`: what is missing where, and what a fit will take.

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args;
use daimc::{Neighbours, Views};
use serde_json::{Value, json};

use crate::data::{Data, Input, Loaded};
use crate::failure::{Failure, Result};

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// Number of clusters for which memory and time are estimated
    #[arg(short = 'k', long, value_name = "K", default_value_t = 10)]
    clusters: usize,

    /// Threads to use for reading, and in the estimate [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Combinations of views that are listed, at most.
const LISTED: usize = 20;

/// Iterations that a fit takes, its start included, by experience.
const ITERATIONS: f64 = 90.0;

/// Floating-point operations of a sweep per second and thread, and bytes of memory per second, on ordinary machines.
const FLOPS: f64 = 2e10;
const BANDWIDTH: f64 = 1e10;

/// Links of an instance in the graph of a view, and the products with the graph until its eigenvectors are found, by
/// experience; the floating-point operations per second and thread of such a product.
const LINKS: f64 = 16.0;
const PRODUCTS: f64 = 100.0;
const SCATTERED: f64 = 4e9;

/// Passes over the data in which views are asked about clusters, and the dimensions in which they are.
const ASKED: f64 = 7.0;
const DIMENSIONS: f64 = 64.0;

/// Memory and time of some work, roughly.
#[derive(Clone, Copy)]
pub struct Cost {
    pub bytes: f64,
    seconds: f64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { data, clusters, threads, json } = arguments;
    crate::use_threads(*threads)?;
    if *clusters == 0 {
        return Err(Failure::Usage("-k 0: there must be at least one cluster".into()));
    }
    let loaded = data.load()?;
    let combinations = combinations(&loaded.views);
    // As in a fit by default.
    let included = loaded.views.instances() <= Neighbours::AUTO_MOST;
    let (fit, neighbours) = (cost(&loaded, *clusters, included), neighbourhoods(&loaded, *clusters));
    let mut out = io::stdout().lock();
    if *json {
        writeln!(out, "{:#}", to_json(&loaded, &combinations, fit, (included, neighbours)))?;
        return Ok(());
    }
    let n = loaded.views.instances();
    let longest = loaded.inputs.iter().map(|input| input.name.chars().count()).max().unwrap_or(0).max(4);
    writeln!(out, "{:<longest$}   features   instances   missing   alone   values", "view")?;
    for (input, account) in loaded.inputs.iter().zip(&loaded.account.views) {
        let missing = 100.0 * (n - account.present) as f64 / n as f64;
        writeln!(
            out,
            "{:<longest$}   {:>8}   {:>9}   {missing:>5.1} %   {:>5}   {}",
            input.name, input.shape[1], account.present, account.alone, input.values
        )?;
    }
    writeln!(out, "\n{n} instances, {} of them in every view", loaded.account.in_every_view)?;
    if loaded.views.len() > 1 {
        writeln!(out, "\ninstances   seen in")?;
        for (views, count) in combinations.iter().take(LISTED) {
            writeln!(out, "{count:>9}   {}", views.join(", "))?;
        }
        if combinations.len() > LISTED {
            let rest: usize = combinations[LISTED..].iter().map(|(_, count)| count).sum();
            writeln!(out, "{rest:>9}   {} other combinations", combinations.len() - LISTED)?;
        }
    }
    for line in loaded.account.to_string().lines().filter(|line| line.contains("dropped")) {
        writeln!(out, "\n{}", line.trim())?;
    }
    writeln!(
        out,
        "\nA fit of {clusters} clusters will take about {:.1} MB of memory and {} (rough).",
        fit.bytes / 1e6,
        duration(fit.seconds)
    )?;
    if !included {
        writeln!(
            out,
            "With neighbourhoods (--neighbours refine), {:.1} MB and {} more.",
            neighbours.bytes / 1e6,
            duration(neighbours.seconds)
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

/// What a fit costs, its data included.
pub fn cost(loaded: &Loaded, clusters: usize, with_neighbours: bool) -> Cost {
    let fit = estimate(loaded, clusters);
    if !with_neighbours {
        return fit;
    }
    let neighbours = neighbourhoods(loaded, clusters);
    Cost { bytes: fit.bytes + neighbours.bytes, seconds: fit.seconds + neighbours.seconds }
}

/// What a fit costs without its neighbourhoods.
fn estimate(loaded: &Loaded, clusters: usize) -> Cost {
    let data: f64 = loaded.inputs.iter().map(|input| input.bytes as f64).sum();
    let features: f64 = loaded.inputs.iter().map(|input| input.shape[1] as f64).sum();
    let (n, k) = (loaded.views.instances() as f64, clusters as f64);
    let threads = rayon::current_num_threads() as f64;
    // V and what its clustering needs; bases, alignments and sums of each thread; the program itself.
    let bytes = 1.05 * data + 16.0 * n * k + 8.0 * features * k * (4.0 + 2.0 * threads) + 3e7;
    let flops = 4.0 * loaded.inputs.iter().map(|input| input.entries as f64).sum::<f64>() * k;
    let seconds = ITERATIONS * (flops / (FLOPS * threads)).max(data / BANDWIDTH);
    Cost { bytes, seconds }
}

/// What neighbourhoods cost: the search in every view, the eigenvectors of the fused graph, and what the views are asked.
fn neighbourhoods(loaded: &Loaded, clusters: usize) -> Cost {
    let (n, k) = (loaded.views.instances() as f64, clusters as f64);
    let (views, threads) = (loaded.views.len() as f64, rayon::current_num_threads() as f64);
    let shown = loaded.inputs.iter().zip(&loaded.account.views);
    let search: f64 = shown
        .map(|(input, account)| {
            let per_row = input.entries as f64 / (input.shape[0] as f64).max(1.0);
            2.0 * Neighbours::pairs(account.present) * per_row
        })
        .sum();
    let vectors = 1.25 * k + 4.0;
    let products = 2.0 * PRODUCTS * n * LINKS * views * vectors;
    let asked = |input: &Input| ASKED * 2.0 * input.entries as f64 * DIMENSIONS.min(input.shape[1] as f64);
    let asked: f64 = loaded.inputs.iter().map(asked).sum();
    let seconds = (search + asked) / (FLOPS * threads) + products / (SCATTERED * threads);
    // Links with their weights, before and after V weighted them, and two blocks of eigenvectors.
    let single = loaded.views.instances() > Neighbours::AUTO_MOST;
    let vector_bytes = if single { 8.0 } else { 16.0 };
    Cost { bytes: n * (12.0 * LINKS * views + vector_bytes * vectors), seconds }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "less than a second".into(),
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

fn to_json(
    loaded: &Loaded,
    combinations: &[(Vec<String>, usize)],
    fit: Cost,
    (included, neighbours): (bool, Cost),
) -> Value {
    let views = loaded.inputs.iter().zip(&loaded.account.views).map(|(input, account)| {
        json!({
            "name": input.name, "path": input.path, "features": input.shape[1], "values": input.values,
            "instances": account.present, "missing": loaded.views.instances() - account.present,
            "alone": account.alone, "masked": account.masked, "empty": account.empty, "imputed": account.imputed,
        })
    });
    let combinations = combinations.iter().map(|(views, count)| json!({"views": views, "instances": count}));
    json!({
        "instances": loaded.views.instances(),
        "in_every_view": loaded.account.in_every_view,
        "dropped": loaded.account.dropped,
        "views": views.collect::<Vec<_>>(),
        "combinations": combinations.collect::<Vec<_>>(),
        "estimate": {
            "memory_bytes": fit.bytes.round(), "seconds": fit.seconds,
            "neighbours": {
                "included": included, "memory_bytes": neighbours.bytes.round(), "seconds": neighbours.seconds,
            },
        },
    })
}
