//! True classes of instances, and metrics that compare clusters with them.

use std::collections::HashMap;

use daimc::Views;
use daimc::metrics::{self, Scores};
use daimc_io::Column;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::failure::Result;
use crate::ids::{self, IdOptions};

/// The true classes of the instances.
#[derive(Default)]
pub struct Truth {
    /// The class of each instance; `None` if it is unknown.
    pub classes: Vec<Option<String>>,
    /// The SHA-256 of the file with the classes; empty if they are not from a file.
    pub sha256: String,
}

impl Truth {
    /// Reads the column `FILE[::COLUMN]` of a table and assigns its classes to the instances by ID.
    pub fn read(location: &str, views: &Views<'_>, options: &IdOptions) -> Result<Self> {
        let Column { path, column } = location.parse()?;
        let table = daimc_io::read_labels(&path, column.as_deref(), &options.matching()?)?;
        let id = |i| views.ids().get(i);
        let classes: Vec<Option<String>> =
            (0..views.instances()).into_par_iter().map(|i| table.get(&id(i)).map(str::to_owned)).collect();
        if classes.iter().all(Option::is_none) {
            return Err(ids::none_known(&path, &table.ids, views));
        }
        Ok(Self { classes, sha256: table.sha256 })
    }

    /// The metrics of clusters against the classes, over the instances whose class is known.
    pub fn scores(&self, clusters: &[usize]) -> Result<Scores> {
        let known =
            self.classes.iter().zip(clusters).filter_map(|(class, label)| Some((class.as_deref()?, *label)));
        let (classes, labels): (Vec<&str>, Vec<usize>) = known.unzip();
        Ok(metrics::scores(&encode(&classes), &labels)?)
    }
}

/// Encodes names as integers from 0, in order of first appearance.
pub fn encode(names: &[&str]) -> Vec<usize> {
    let mut codes = HashMap::new();
    let code = |name| {
        let next = codes.len();
        *codes.entry(name).or_insert(next)
    };
    names.iter().map(code).collect()
}

/// The scores as JSON.
pub fn to_json(scores: &Scores) -> Value {
    json!({
        "ac": scores.ac, "nmi": scores.nmi, "nmi_max": scores.nmi_max, "nmi_sqrt": scores.nmi_sqrt,
        "ari": scores.ari, "purity": scores.purity, "f": scores.f,
    })
}

/// The scores as text, each on a line with its explanation.
pub fn to_text(scores: &Scores) -> String {
    let rows = [
        ("AC", scores.ac, "share of instances in the cluster that is matched to their class"),
        ("NMI", scores.nmi, "mutual information over the arithmetic mean of the entropies"),
        ("NMI max", scores.nmi_max, "mutual information over the larger entropy"),
        ("NMI sqrt", scores.nmi_sqrt, "mutual information over the geometric mean of the entropies"),
        ("ARI", scores.ari, "agreement on pairs of instances, corrected for chance"),
        ("purity", scores.purity, "share of instances in the commonest class of their cluster"),
        ("F", scores.f, "harmonic mean of precision and recall over pairs"),
    ];
    rows.map(|(name, value, meaning)| format!("  {name:<8} {value:.4}   {meaning}\n")).concat()
}
