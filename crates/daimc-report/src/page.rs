//! The page: sections of charts and tables, with the style sheet, the script and its data embedded.

mod clinical;
mod clusters;
mod course;
mod features;
mod heat;
mod instances;
mod map;
mod methods;
mod presence;
mod provenance;
mod silhouettes;
mod survival;
mod table;
mod values;
mod verdict;

use daimc::{Fit, Outcome};
use serde_json::{Value, json};

use crate::Clinical;
use crate::chart::{self, axis, marks, text};
use crate::figures::Figures;
use text::{count, counted, duration, escape, number, percent, put, score, script_json};

const SCRIPT: &str = include_str!("../assets/report.js");

/// A section of the page: the ID of its element, its heading, and its HTML.
struct Section {
    id: &'static str,
    heading: &'static str,
    body: String,
}

impl Section {
    fn new(id: &'static str, heading: &'static str, body: String) -> Self {
        Self { id, heading, body }
    }
}

/// The sections in order, without empty ones.
fn sections(
    figures: &Figures,
    fit: &Fit,
    provenance: Option<&Value>,
    clinical: Option<Clinical<'_>>,
) -> Vec<Section> {
    let truth =
        figures.agreement.as_ref().map(|agreement| heat::confusion(agreement, figures.summary.instances));
    let tables = [clusters::table(figures), features::table(figures), presence::table(figures)].concat();
    let mut sections = vec![
        Section::new("map-section", "Map of the instances", map::section(figures)),
        Section::new("instances", "Single instances", instances::section(figures)),
        Section::new("clusters", "Clusters", clusters::section(figures) + &silhouettes::figure(figures)),
        Section::new("features", "Features that distinguish the clusters", features::section(figures)),
        Section::new("contributions", "Contribution of each view", heat::contributions(figures)),
        Section::new("truth", "Clusters and true classes", truth.unwrap_or_default()),
        Section::new("clinical", "Clinical data", clinical.map(clinical::section).unwrap_or_default()),
        Section::new("missing", "Missing data", presence::section(figures)),
        Section::new("reconstruction", "What the model explains", heat::reconstruction(figures)),
        Section::new("course", "Course of the fit", course::section(figures)),
        Section::new("methods", "Methods", methods::section(figures, fit) + &provenance::choices(fit)),
        Section::new("tables", "Tables", tables),
        Section::new("provenance", "Provenance", provenance::section(fit, provenance)),
    ];
    sections.retain(|section| !section.body.is_empty());
    sections
}

/// The data of the script.
fn data(figures: &Figures) -> Value {
    json!({
        "instances": instances::data(figures),
        "map": map::data(figures),
        "features": features::data(&figures.features),
        "values": values::data(figures),
    })
}

pub(crate) fn page(
    title: &str,
    figures: &Figures,
    fit: &Fit,
    provenance: Option<&Value>,
    clinical: Option<Clinical<'_>>,
) -> String {
    let sections = sections(figures, fit, provenance, clinical);
    let mut body = format!(
        "<header><h1>{}</h1><p class=subtitle>{}</p><p class=verdict>{}</p>{}{}<nav aria-label=Sections><ul>",
        escape(title),
        subtitle(figures),
        escape(&verdict::sentence(figures, fit)),
        headline(figures),
        warning(fit)
    );
    for Section { id, heading, .. } in &sections {
        put!(body, "<li><a href=\"#{id}\">{heading}</a></li>");
    }
    body.push_str("</ul></nav></header>\n<main>\n");
    for Section { id, heading, body: own } in &sections {
        put!(
            body,
            "<section id={id} aria-labelledby={id}-heading><h2 id={id}-heading>{heading}</h2>\n{own}</section>\n"
        );
    }
    body.push_str("</main>\n<div id=tip role=status hidden></div>\n");
    let scripts = format!(
        "<script type=\"application/json\" id=data>{}</script>\n<script>\n{}{SCRIPT}</script>\n",
        script_json(&data(figures)),
        chart::SCRIPT
    );
    chart::shell(title, &body, &scripts)
}

fn subtitle(figures: &Figures) -> String {
    let summary = &figures.summary;
    format!(
        "{} in {}, described by {} with {}",
        counted(summary.instances, "instance"),
        counted(summary.clusters, "cluster"),
        counted(summary.views, "view"),
        counted(summary.features, "feature")
    )
}

/// The warnings about the result.
fn warning(fit: &Fit) -> String {
    let note = |warning: &str, see: &str| {
        format!("<p class=warning role=note><strong>Warning:</strong> {}.{see}</p>", escape(warning))
    };
    let missingness = fit
        .missingness
        .warning()
        .map(|warning| note(&warning, " See the section <a href=\"#missing\">Missing data</a>."));
    let significance = fit.significance.and_then(|found| found.warning()).map(|warning| note(&warning, ""));
    missingness.into_iter().chain(significance).collect()
}

/// The key figures at the top of the page.
fn headline(figures: &Figures) -> String {
    let summary = &figures.summary;
    let outcome = match summary.outcome {
        Outcome::Converged => "converged",
        Outcome::Settled => "limit reached, clusters stable",
        Outcome::IterationLimit => "limit reached before convergence",
        Outcome::Interrupted => "interrupted",
        _ => "ended",
    };
    let mut cards = vec![
        (
            "Instances",
            count(summary.instances),
            format!("{} present in every view", count(figures.presence.complete)),
        ),
        ("Views", count(summary.views), counted(summary.features, "feature")),
        (
            "Clusters",
            count(summary.clusters),
            format!("mean silhouette {}", score(figures.clusters.silhouette)),
        ),
        ("Missing", percent(figures.presence.missing), "of pairs of instance and view".into()),
        ("Iterations", count(summary.iterations), outcome.into()),
        ("Objective", number(summary.objective), format!("mean confidence {}", score(summary.confidence))),
        ("Time", duration(summary.seconds), "from memory to clusters".into()),
    ];
    if let Some(found) = &summary.significance {
        let remark = format!("neighbours agree by {:.2}, by chance {:.2}", found.agreement, found.by_chance);
        cards.insert(3, ("Beyond chance", text::sigmas(found.excess()), remark));
    }
    if let Some(agreement) = &figures.agreement {
        let scores = &agreement.scores;
        cards.extend([
            ("AC", score(scores.ac), "share in the right cluster".into()),
            ("NMI", score(scores.nmi), "information shared with the classes".into()),
            ("ARI", score(scores.ari), "pairs judged alike, beyond chance".into()),
        ]);
    }
    // Two rows of equal length if one would be too long.
    let across = if cards.len() > 7 { cards.len().div_ceil(2) } else { cards.len() };
    let mut out = format!("<dl class=headline style=\"--cards:{across}\">");
    for (label, value, remark) in cards {
        put!(out, "<div><dt>{label}</dt><dd>{}<small>{}</small></dd></div>", escape(&value), escape(&remark));
    }
    out.push_str("</dl>");
    out
}
