//! The default and the other routes of DAIMC compared with other methods on many data sets, to judge the default by its mean and by
//! its worst case.

mod fashion;
mod planted;
mod sets;
mod show;

use std::ops::Range;
use std::path::Path;

use daimc::Scale;
use serde_json::json;

use super::Request;
use crate::harness::contender::{self, Contender, Scales};
use crate::harness::ledger::Ledger;
use crate::harness::page::{self, Section};
use crate::harness::runs::{self, Run};
use crate::harness::sample::Sample;
use crate::harness::setting::Setting;
use crate::harness::{Monitor, Result};
use sets::Set;

pub use sets::check;

/// The default, and its alternatives.
const DEFAULT: &str = "daimc";
const ROUTES: [&str; 4] = ["daimc-plain", "daimc-refine", "daimc-embed", "daimc-paper"];
/// Other methods that are fast enough for every data set.
const OTHERS: [&str; 5] = ["wsnmf", "opimc", "concatenation", "pca-spectral", "nemo"];

/// A data set for some of the seeds.
struct Trial<'a> {
    set: &'a Set,
    sample: Sample<'a>,
    seeds: Range<u64>,
    contenders: Vec<Contender>,
}

/// Runs the panel, writes the results to its folder and returns them.
pub fn reproduce(request: &Request<'_>, folder: &Path, monitor: &dyn Monitor) -> Result<Vec<Section>> {
    let &Request { data, seeds, scale, .. } = request;
    let sets = sets::load(request.sets, data, seeds, monitor)?;
    // Rows are valid only for the same data and scaling; seeds, methods and shares are in the rows.
    let inputs: Vec<_> = sets.iter().map(|set| json!([set.name, set.inputs])).collect();
    let key = json!({
        "version": env!("CARGO_PKG_VERSION"), "experiment": "panel", "inputs": inputs, "scale": scale,
    });
    let ledger = Ledger::open(folder, "reproduce.json", &key)?;
    let methods = chosen(request.methods);
    let trials: Vec<Trial<'_>> = sets.iter().flat_map(|set| trials(set, &methods, scale, seeds)).collect();
    let mut cells = Vec::new();
    for Trial { set, sample, seeds, contenders } in &trials {
        for &rate in set.rates {
            for contender in contenders {
                let run = |seed| Run::new("panel", sample, rate, contender, seed);
                cells.extend(seeds.clone().map(run));
            }
        }
    }
    for refusal in runs::work(cells, &ledger, monitor)? {
        monitor.note(&refusal.to_string());
    }
    let sections = show::sections(&trials, &methods, &ledger.rows(seeds));
    page::write(&ledger, "reproduce.html", "DAIMC and other methods on many data sets", &sections, &key)?;
    Ok(sections)
}

/// The selected methods, by default those of the panel; DAIMC first.
fn chosen(names: &[String]) -> Vec<&'static str> {
    let own = || [DEFAULT].into_iter().chain(ROUTES);
    if names.is_empty() {
        return own().chain(OTHERS).collect();
    }
    let others = contender::names().filter(|name| !own().any(|own| own == *name));
    own().chain(others).filter(|method| contender::wanted(names, method)).collect()
}

/// The trials of a data set: one for all seeds, or one for each seed that generates data.
fn trials<'a>(set: &'a Set, methods: &[&'static str], scale: Option<Scale>, seeds: u64) -> Vec<Trial<'a>> {
    let scales = Scales::new(scale, set.scale);
    // The usual scaling for concatenated views.
    let side_by_side = Scales { others: scales.standard, ..scales };
    // Counts are not standardised before rows are compared: rare words would dominate the distances.
    let counts = set.scale == Scale::Unit;
    let compared = if counts { Scales { standard: scales.others, ..scales } } else { scales };
    let trial = |(seed, data)| {
        let sample = Sample { name: set.name.into(), data, views: None };
        let names = sample.view_names();
        let contenders = methods
            .iter()
            .flat_map(|&method| {
                let scales = match method {
                    "concatenation" => side_by_side,
                    "nemo" => compared,
                    _ => scales,
                };
                contender::contenders(method, &Setting::default(), &names, scales)
            })
            .collect();
        let seeds = if set.data.len() == 1 { 0..seeds } else { seed..seed + 1 };
        Trial { set, sample, seeds, contenders }
    };
    (0..).zip(&set.data).map(trial).collect()
}
