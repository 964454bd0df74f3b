//! Every method on one data set and the same masks: `daimc compare`.

use std::path::Path;

use daimc::{Scale, View};
use serde_json::Value;

use crate::harness::chart::{Chart, Drawing, Lines};
use crate::harness::contender::{self, Contender, Scales};
use crate::harness::ledger::Ledger;
use crate::harness::page::{self, Section};
use crate::harness::runs::{self, Run};
use crate::harness::sample::{Dataset, Sample};
use crate::harness::setting::Setting;
use crate::harness::table::{self, Line, Mean};
use crate::harness::{Error, Monitor, Result};

/// A comparison of methods on one data set.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The data with their true classes, which only score the methods.
    pub data: &'a Dataset,
    /// The methods; none: every one that does not have to be named.
    pub methods: &'a [String],
    /// The shares of instances to remove from each view, one experiment each.
    pub rates: &'a [f64],
    /// The number of seeds, from 0; each determines a mask and a start.
    pub seeds: u64,
    /// The scaling of all views for all methods; `None`: unit, and DAIMC chooses for itself.
    pub scale: Option<Scale>,
    /// The folder for `results.tsv`, `table.md`, the plots and `compare.html`.
    pub folder: &'a Path,
    /// The provenance. The folder must be empty or have runs of the same provenance.
    pub key: &'a Value,
}

/// The scores of the methods.
#[derive(Clone, Debug)]
pub struct Compared {
    /// For each share of missing instances a line for each method: that of its best setting.
    pub lines: Vec<Line>,
    /// The same as a table and plots.
    pub section: Section,
}

/// Fails if a method does not exist or there are no seeds, before any data are read.
///
/// # Errors
/// [`Error::Usage`] names the method.
pub fn check(methods: &[String], seeds: u64) -> Result<()> {
    if seeds == 0 {
        return Err(Error::Usage("--seeds must be at least 1".into()));
    }
    contender::check(methods, contender::names())
}

impl Comparison<'_> {
    /// Executes the runs that the folder does not have, and writes the results to it. If the monitor interrupts the runs, the
    /// results of the finished ones are written and returned.
    ///
    /// # Errors
    /// When too many instances are to be removed, or the folder holds other results or cannot be written. A method that
    /// cannot handle the data is reported to the monitor and skipped.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Compared> {
        let &Self { data, methods, rates, seeds, scale, folder, key } = self;
        for &rate in rates {
            // Whether a share can be removed does not depend on the seed.
            data.present(rate, 0)?;
        }
        let ledger = Ledger::open(folder, "compare.json", key)?;
        let names: Vec<&str> = data.views.iter().map(View::name).collect();
        let sample = Sample { name: names.join("+"), data, views: None };
        let scales = Scales::new(scale, Scale::Unit);
        let contenders: Vec<Contender> = contender::names()
            .filter(|method| contender::wanted(methods, method))
            .flat_map(|method| contender::contenders(method, &Setting::default(), &names, scales))
            .collect();
        let mut runs = Vec::new();
        for &rate in rates {
            for contender in &contenders {
                runs.extend((0..seeds).map(|seed| Run::new("compare", &sample, rate, contender, seed)));
            }
        }
        let refused = runs::work(runs, &ledger, monitor)?;

        let rows = ledger.rows(seeds);
        let mut lines = Vec::new();
        for &rate in rates {
            for method in contender::names() {
                let own = contenders.iter().filter(|contender| contender.method == method);
                lines.extend(table::best(&rows, &sample.name, rate, own));
            }
        }
        let section = section(&lines);
        page::write(&ledger, "compare.html", "Methods compared", std::slice::from_ref(&section), key)?;
        for refusal in refused {
            monitor.note(&format!("{} was left out: {}", refusal.method, refusal.reason));
        }
        Ok(Compared { lines, section })
    }
}

/// The table, and a plot of each score: a line for each method, or a bar if there is only one share of missing instances.
fn section(lines: &[Line]) -> Section {
    let scores =
        [("AC", (|line| line.ac) as fn(&Line) -> Mean), ("NMI", |line| line.nmi), ("ARI", |line| line.ari)];
    let mut rates: Vec<f64> = lines.iter().map(|line| line.missing).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let chart = |(name, score): (&str, fn(&Line) -> Mean)| Chart {
        name: name.to_lowercase(),
        title: name.into(),
        kind: if rates.len() > 1 {
            Drawing::Lines(Lines::by_rate(lines, score))
        } else {
            Drawing::Bars(lines.iter().map(|line| (line.method.clone(), score(line))).collect())
        },
    };
    Section {
        title: "Methods".into(),
        notes: vec![
            "Means over the seeds with standard deviations. No method has seen the classes; where a method has \
             several settings, the classes chose the best."
                .into(),
        ],
        table: table::comparison(lines),
        charts: scores.map(chart).into(),
    }
}
