//! The page: sections around charts, with the style sheet, the script and its data inside.

mod axis;
mod clinical;
mod clusters;
mod course;
mod features;
mod heat;
mod map;
mod marks;
mod presence;
mod provenance;
mod survival;
mod table;
mod text;

use daimc::{Fit, Outcome};
use serde_json::{Value, json};

use crate::Clinical;
use crate::figures::Figures;
use text::{count, counted, duration, escape, number, percent, put, score, script_json};

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// Nothing may be loaded from anywhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

pub(crate) fn page(
    title: &str,
    figures: &Figures,
    fit: &Fit,
    provenance: Option<&Value>,
    clinical: Option<Clinical<'_>>,
) -> String {
    let title = escape(title);
    let mut sections = vec![
        ("map-section", "Map of the instances", map::section(figures)),
        ("clusters", "Clusters", clusters::section(figures)),
        ("contributions", "What each view says for the clusters", heat::contributions(figures)),
    ];
    if let Some(agreement) = &figures.agreement {
        let table = heat::confusion(agreement, figures.summary.instances);
        sections.push(("truth", "Clusters and true classes", table));
    }
    if let Some(clinical) = clinical {
        sections.push(("clinical", "Clinical data", clinical::section(clinical)));
    }
    sections.extend([
        ("missing", "What is missing where", presence::section(figures)),
        ("features", "Features that tell clusters apart", features::section(figures)),
        ("reconstruction", "What the model leaves unexplained", heat::reconstruction(figures)),
        ("course", "Course of the fit", course::section(figures)),
        (
            "tables",
            "Tables",
            [clusters::table(figures), features::table(figures), presence::table(figures)].concat(),
        ),
        ("provenance", "Provenance", provenance::section(fit, provenance)),
    ]);

    let mut out = format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=generator content=\"daimc {}\">\n\
         <link rel=icon href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body>\n",
        env!("CARGO_PKG_VERSION")
    );
    put!(
        out,
        "{}<header><h1>{title}</h1><p class=subtitle>{}</p>{}{}<nav aria-label=Sections><ul>",
        marks::definitions(),
        subtitle(figures),
        headline(figures),
        warning(fit)
    );
    for (id, heading, _) in &sections {
        put!(out, "<li><a href=\"#{id}\">{heading}</a></li>");
    }
    out.push_str("</ul></nav></header>\n<main>\n");
    for (id, heading, body) in &sections {
        put!(
            out,
            "<section id={id} aria-labelledby={id}-heading><h2 id={id}-heading>{heading}</h2>\n{body}</section>\n"
        );
    }
    let data = json!({ "map": map::data(figures), "features": features::data(&figures.features) });
    put!(
        out,
        "</main>\n<footer>Made by daimc {}. This page is complete: it loads nothing and sends nothing.</footer>\n\
         <div id=tip role=status hidden></div>\n\
         <script type=\"application/json\" id=data>{}</script>\n<script>\n{SCRIPT}</script>\n</body></html>\n",
        env!("CARGO_PKG_VERSION"),
        script_json(&data)
    );
    out
}

fn subtitle(figures: &Figures) -> String {
    let summary = &figures.summary;
    format!(
        "{} in {}, seen through {} with {}",
        counted(summary.instances, "instance"),
        counted(summary.clusters, "cluster"),
        counted(summary.views, "view"),
        counted(summary.features, "feature")
    )
}

/// What a reader should know before anything else is believed.
fn warning(fit: &Fit) -> String {
    let note = |told: &str, see: &str| {
        format!("<p class=warning role=note><strong>Warning:</strong> {}.{see}</p>", escape(told))
    };
    let follows = fit
        .missingness
        .warning()
        .map(|told| note(&told, " See <a href=\"#missing\">what is missing where</a>."));
    let unclear = fit.significance.and_then(|found| found.warning()).map(|told| note(&told, ""));
    follows.into_iter().chain(unclear).collect()
}

/// The numbers that a reader looks for first.
fn headline(figures: &Figures) -> String {
    let summary = &figures.summary;
    let outcome = match summary.outcome {
        Outcome::Converged => "converged",
        Outcome::Settled => "limit reached, clusters settled",
        Outcome::IterationLimit => "limit reached before convergence",
        Outcome::Cancelled => "interrupted",
        _ => "ended",
    };
    let mut cards = vec![
        (
            "Instances",
            count(summary.instances),
            format!("{} seen in every view", count(figures.presence.complete)),
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
        cards.insert(3, ("Beyond chance", format!("{:.1} σ", found.excess()), remark));
    }
    if let Some(agreement) = &figures.agreement {
        let scores = &agreement.scores;
        cards.extend([
            ("AC", score(scores.ac), "share in the right cluster".into()),
            ("NMI", score(scores.nmi), "information shared with the classes".into()),
            ("ARI", score(scores.ari), "pairs judged alike, beyond chance".into()),
        ]);
    }
    // Rows of equal length, where there is room.
    let across = if cards.len() > 7 { cards.len().div_ceil(2) } else { cards.len() };
    let mut out = format!("<dl class=headline style=\"--cards:{across}\">");
    for (label, value, remark) in cards {
        put!(out, "<div><dt>{label}</dt><dd>{}<small>{}</small></dd></div>", escape(&value), escape(&remark));
    }
    out.push_str("</dl>");
    out
}
