//! J after each iteration.

use std::fmt::Write;
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::plan::{Case, ITERATIONS};
use crate::harness::Result;

/// J after each iteration of a fit.
pub struct Trace {
    pub method: &'static str,
    pub seed: u64,
    pub objective: Vec<f64>,
}

/// The traces of the longest fits, for each seed.
pub fn traces(case: &Case<'_>, seeds: u64) -> Result<Vec<Trace>> {
    let longest = format!("iteration {ITERATIONS}");
    let fits = case.contenders.iter().filter(|contender| contender.setting == longest);
    let runs: Vec<_> = fits.flat_map(|contender| (0..seeds).map(move |seed| (contender, seed))).collect();
    let trace = |(contender, seed): (&crate::harness::contender::Contender, u64)| {
        case.sample.with(case.rates[0], seed, |views, _| {
            let mut each = |_: usize, _: f64| ControlFlow::Continue(());
            let found = contender.fit.fit(views, case.sample.data.clusters, seed, &mut each)?;
            Ok(Trace { method: contender.method, seed, objective: found.history })
        })
    };
    runs.into_par_iter().map(trace).collect()
}

/// The traces as a table, a row for each iteration of each fit.
pub fn tsv(traces: &[Trace]) -> String {
    let mut out = String::from("method\tseed\titeration\tobjective\n");
    for Trace { method, seed, objective } in traces {
        for (i, value) in objective.iter().enumerate() {
            let _ = writeln!(out, "{method}\t{seed}\t{}\t{value}", i + 1);
        }
    }
    out
}
