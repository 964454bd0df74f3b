//! The verdict on the clusters, in a sentence.

use daimc::Fit;

use super::text::{counted, percent, put, score, sigmas};
use crate::figures::Figures;

/// The grades of reproducibility with their minimum values.
const GRADES: [(f64, &str); 3] =
    [(0.9, "reproducible"), (0.75, "mostly reproducible"), (0.6, "partly reproducible")];

pub(crate) fn sentence(figures: &Figures, fit: &Fit) -> String {
    let clusters = counted(figures.summary.clusters, "cluster");
    if figures.summary.clusters == 1 {
        return "There is one cluster, as requested: nothing was separated.".into();
    }
    let mut out = format!("The {clusters} ");
    match &fit.significance {
        Some(found) if found.is_clear() => put!(
            out,
            "are clearer than chance (agreement of neighbours {:.2}, {} above permuted data)",
            found.agreement,
            sigmas(found.excess())
        ),
        Some(found) => put!(
            out,
            "are no clearer than chance (agreement of neighbours {:.2}, for permuted data {:.2})",
            found.agreement,
            found.by_chance
        ),
        None => out.push_str("were not compared with chance"),
    }
    if let Some(share) = fit.model.reproducibility {
        let grade =
            GRADES.iter().find(|(least, _)| share >= *least).map_or("hardly reproducible", |grade| grade.1);
        put!(
            out,
            " and {grade} ({} of the instances stay in their cluster when a fifth is left out)",
            percent(share)
        );
    }
    put!(out, "; their mean silhouette in V is {}", score(figures.clusters.silhouette));
    if fit.missingness.notable() {
        out.push_str(", but they are associated with which views instances have");
    } else if figures.presence.missing > 0.0 {
        out.push_str(", and they are not associated with which views instances have");
    }
    out.push('.');
    out
}
