//! True classes of instances, and how well clusters agree with them.

use std::collections::HashMap;

use daimc::Views;
use daimc::metrics::{self, Scores};
use daimc_io::Column;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::failure::Result;
use crate::ids::{self, IdOptions};

/// The class of each instance; `None` if it is unknown.
#[derive(Default)]
pub struct Truth {
    pub classes: Vec<Option<String>>,
    /// The SHA-256 of the file.
    pub sha256: String,
}

impl Truth {
    /// Reads classes from a column of a table, `FILE[::COLUMN]`, and joins them to the instances by ID.
    pub fn read(place: &str, views: &Views<'_>, options: &IdOptions) -> Result<Self> {
        let Column { path, column } = place.parse()?;
        let labels = daimc_io::read_labels(&path, column.as_deref(), &options.matching()?)?;
        let id = |i| views.ids().get(i);
        let classes: Vec<Option<String>> =
            (0..views.instances()).into_par_iter().map(|i| labels.get(&id(i)).map(str::to_owned)).collect();
        if classes.iter().any(Option::is_some) {
            return Ok(Self { classes, sha256: labels.sha256 });
        }
        Err(ids::none_known(&path, &labels.ids, views))
    }

    /// How well clusters agree with the classes, over the instances whose class is known.
    pub fn scores(&self, clusters: &[usize]) -> Result<Scores> {
        let known = self.classes.iter().zip(clusters).filter_map(|(class, c)| Some((class.as_deref()?, *c)));
        let (truth, labels): (Vec<&str>, Vec<usize>) = known.unzip();
        Ok(metrics::scores(&numbers(&truth), &labels)?)
    }
}

/// Numbers the names in order of first appearance.
pub fn numbers(names: &[&str]) -> Vec<usize> {
    let mut known = HashMap::new();
    let number = |name: &&str| {
        let next = known.len();
        *known.entry((*name).to_owned()).or_insert(next)
    };
    names.iter().map(number).collect()
}

/// Scores as JSON.
pub fn to_json(scores: &Scores) -> Value {
    json!({
        "ac": scores.ac, "nmi": scores.nmi, "nmi_max": scores.nmi_max, "nmi_sqrt": scores.nmi_sqrt,
        "ari": scores.ari, "purity": scores.purity, "f": scores.f,
    })
}

/// Scores as lines with explanations.
pub fn to_text(scores: &Scores) -> String {
    let rows = [
        ("AC", scores.ac, "share of instances whose cluster is matched to their class"),
        ("NMI", scores.nmi, "information that clusters and classes share (arithmetic mean)"),
        ("NMI max", scores.nmi_max, "the same over the larger entropy"),
        ("NMI sqrt", scores.nmi_sqrt, "the same over the geometric mean"),
        ("ARI", scores.ari, "pairs judged alike, corrected for chance"),
        ("purity", scores.purity, "share of instances in the commonest class of their cluster"),
        ("F", scores.f, "harmonic mean of precision and recall over pairs"),
    ];
    rows.map(|(name, value, what)| format!("  {name:<8} {value:.4}   {what}\n")).concat()
}
