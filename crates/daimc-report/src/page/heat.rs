//! Tables whose cells are coloured by their value: errors per view and cluster, and clusters beside classes.

use super::text::{count, counted, escape, middle, name, percent, put};
use crate::figures::{Agreement, Figures};

/// Clusters and views that are drawn, at most.
const CLUSTERS: usize = 100;
const VIEWS: usize = 60;
const LETTERS: usize = 16;

pub(crate) fn reconstruction(figures: &Figures) -> String {
    let views = &figures.reconstruction.views;
    let shown = &views[..views.len().min(VIEWS)];
    let mut clusters: Vec<usize> = (0..figures.clusters.clusters.len()).collect();
    clusters.sort_by_key(|&cluster| std::cmp::Reverse(figures.clusters.clusters[cluster].size));
    clusters.truncate(CLUSTERS);
    clusters.sort_unstable();
    let errors = shown.iter().flat_map(|view| view.by_cluster.iter().chain([&view.overall])).flatten();
    let largest = errors.fold(f64::MIN_POSITIVE, |largest, error| largest.max(*error));

    let mut out = String::new();
    head(
        &mut out,
        "reconstruction",
        "Unexplained share by cluster and view",
        &shown.iter().map(|view| view.name.as_str()).collect::<Vec<_>>(),
    );
    out.push_str("</tr></thead><tbody><tr class=all><th scope=row>all</th>");
    let cell = |out: &mut String, error: Option<f64>| match error {
        Some(error) => heat(out, error / largest, &percent(error), false),
        None => out.push_str("<td>–</td>"),
    };
    shown.iter().for_each(|view| cell(&mut out, view.overall));
    out.push_str("</tr>");
    for &cluster in &clusters {
        put!(out, "<tr><th scope=row>{cluster}</th>");
        shown.iter().for_each(|view| cell(&mut out, view.by_cluster[cluster]));
        out.push_str("</tr>");
    }
    out.push_str(
        "</tbody></table></div><p class=note>Share of the squared length of the instances that Uv leaves unexplained, \
         Σ‖x − Uv‖² / Σ‖x‖², where they are present and scaled as in the fit. The stronger the colour, the worse.",
    );
    if clusters.len() < figures.clusters.clusters.len() {
        put!(out, " The {CLUSTERS} largest of {} clusters are shown.", figures.clusters.clusters.len());
    }
    if shown.len() < views.len() {
        put!(out, " The first {VIEWS} of {} views are shown.", views.len());
    }
    out.push_str("</p>");
    out
}

pub(crate) fn confusion(agreement: &Agreement, instances: usize) -> String {
    let mut out = String::new();
    head(
        &mut out,
        "confusion",
        "Instances by cluster and class",
        &agreement.classes.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    out.push_str("<th scope=col class=sum>in all</th></tr></thead><tbody>");
    let rows =
        agreement.clusters.iter().zip(&agreement.counts).zip(agreement.matched.iter().zip(&agreement.sizes));
    for ((cluster, counts), (matched, &size)) in rows {
        put!(out, "<tr><th scope=row>{cluster}</th>");
        for (column, &instances) in counts.iter().enumerate() {
            let text = if instances == 0 { "·".into() } else { count(instances) };
            heat(&mut out, instances as f64 / size.max(1) as f64, &text, *matched == Some(column));
        }
        put!(out, "<td class=sum>{}</td></tr>", count(size));
    }
    out.push_str(
        "</tbody></table></div><p class=note>Instances of each cluster (rows) and class (columns), coloured by the share of the cluster. \
         Framed: the one-to-one matching that the accuracy counts.",
    );
    if agreement.known < instances {
        put!(out, " The class of {} is known.", counted(agreement.known, "instance"));
    }
    let (classes, clusters) = agreement.total;
    if classes > agreement.classes.len() || clusters > agreement.clusters.len() {
        put!(
            out,
            " Shown are {} of {} and {} of {}, the largest.",
            count(agreement.classes.len()),
            format_args!("{} classes", count(classes)),
            count(agreement.clusters.len()),
            counted(clusters, "cluster")
        );
    }
    out.push_str("</p>");
    out
}

/// The head of a heat table. Names that would make it wider than the page stand upright.
fn head(out: &mut String, id: &str, label: &str, names: &[&str]) {
    const PAGE: usize = 1050;
    let width = |name: &&str| (8 * name.chars().count().min(LETTERS) + 22).max(58);
    let upright = if names.iter().map(width).sum::<usize>() > PAGE { " upright" } else { "" };
    put!(out, "<div class=\"scroll wide\" tabindex=0 role=region aria-label=\"{label}\">");
    put!(out, "<table class=\"heat{upright}\" id={id}-table><thead><tr><th scope=col>cluster</th>");
    for full in names {
        put!(
            out,
            "<th scope=col title=\"{}\"><span>{}</span></th>",
            name(full),
            escape(&middle(full, LETTERS))
        );
    }
}

/// A cell whose colour says how large its share is. Strong colours get letters of the page's ground.
fn heat(out: &mut String, share: f64, text: &str, matched: bool) {
    let share = share.clamp(0.0, 1.0);
    let class = match (matched, share > 0.55) {
        (true, true) => " class=\"matched hot\"",
        (true, false) => " class=matched",
        (false, true) => " class=hot",
        (false, false) => "",
    };
    put!(out, "<td{class} style=\"--share:{:.0}%\">{text}</td>", 100.0 * share);
}
