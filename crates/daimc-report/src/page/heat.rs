//! Heat tables: contributions and errors by view and cluster, and the confusion matrix of clusters and classes.

use super::text::{count, counted, escape, middle, name, percent, put, signed};
use crate::figures::{Agreement, Contribution, Figures, ViewError};

/// The maximum numbers of clusters and views drawn.
const CLUSTERS: usize = 100;
const VIEWS: usize = 60;
const LETTERS: usize = 16;

pub(crate) fn contributions(figures: &Figures) -> String {
    if figures.summary.views == 1 || figures.summary.clusters == 1 {
        let what = if figures.summary.views == 1 {
            "view, so all evidence comes from it"
        } else {
            "cluster, so there is no other to compare it with"
        };
        return format!("<p class=empty>There is one {what}.</p>");
    }
    let views = &figures.evidence.views;
    let shown = &views[..views.len().min(VIEWS)];
    let means = shown.iter().flat_map(|view| view.by_cluster.iter().chain([&view.overall])).flatten();
    let largest = means.fold(f64::MIN_POSITIVE, |largest, of| largest.max(of.mean.abs()));
    let cell = |out: &mut String, of: Option<Contribution>| match of {
        Some(Contribution { mean, against }) => {
            let tone = if mean < 0.0 { Tone::Against } else { Tone::Plain };
            let title = format!(" title=\"against the cluster of {} of the instances\"", percent(against));
            heat(out, mean.abs() / largest, &signed(mean), tone, &title);
        }
        None => out.push_str("<td>–</td>"),
    };
    let names: Vec<&str> = shown.iter().map(|view| view.name.as_str()).collect();
    let of = |view: usize, cluster: Option<usize>| match cluster {
        Some(cluster) => shown[view].by_cluster[cluster],
        None => shown[view].overall,
    };
    let mut out = by_view(
        figures,
        ("contributions", "Mean contribution by cluster and view"),
        &names,
        |out, view, cluster| cell(out, of(view, cluster)),
    );
    out.push_str(
        "</tbody></table></div><figcaption>What each view contributes to the cluster of the instances present in it, on average, from −1 to 1: its share of \
         the evidence, that is, of how much closer an instance is to its own cluster than to the strongest other one (in squared \
         distance from the row that the model expects, scaled as in the fit). Near zero the view is uninformative; below zero, in the other \
         colour, it is evidence against the cluster. For an instance present in one view only, all evidence comes from that view. Point at a cell for the share of \
         instances for which the view is evidence against the cluster.",
    );
    left_out(&mut out, figures, views.len());
    out
}

pub(crate) fn reconstruction(figures: &Figures) -> String {
    let views = &figures.reconstruction.views;
    let shown = &views[..views.len().min(VIEWS)];
    let errors = shown.iter().flat_map(|view| view.by_cluster.iter().chain([&view.overall])).flatten();
    let largest = errors.fold(f64::MIN_POSITIVE, |largest, error| largest.max(*error));
    let names: Vec<&str> = shown.iter().map(|view| view.name.as_str()).collect();
    let mut out = explained(shown);
    out += &by_view(
        figures,
        ("reconstruction", "Unexplained share by cluster and view"),
        &names,
        |out, view, cluster| match cluster
            .map_or(shown[view].overall, |cluster| shown[view].by_cluster[cluster])
        {
            Some(error) => heat(out, error / largest, &percent(error), Tone::Plain, ""),
            None => out.push_str("<td>–</td>"),
        },
    );
    out.push_str(
        "</tbody></table></div><figcaption>Share of the squared length of the instances that Uv leaves unexplained, \
         Σ‖x − Uv‖² / Σ‖x‖², where they are present and scaled as in the fit; the stronger the colour, the worse. The variance \
         explained is 1 − Σ‖x − Uv‖² / Σ‖x − x̄‖², where x̄ is the mean row: the share explained beyond the mean.",
    );
    left_out(&mut out, figures, views.len());
    out
}

/// The variance explained in each view, for the first views.
fn explained(views: &[ViewError]) -> String {
    const NAMED: usize = 20;
    let of = |view: &ViewError| {
        Some(format!("{} {}", name(&super::text::shorten(&view.name, 40)), percent(view.explained?.max(0.0))))
    };
    let explained: Vec<String> = views.iter().take(NAMED).filter_map(of).collect();
    if explained.is_empty() {
        return String::new();
    }
    format!(
        "<p class=lead>Variance explained, about the mean of each feature: {}{}.</p>",
        explained.join(", "),
        if views.len() > NAMED { ", …" } else { "" }
    )
}

/// A table with a row for all instances, a row for each of the largest clusters, and a column for each view. `cell` receives the
/// view and the cluster, or `None` for all instances.
fn by_view(
    figures: &Figures,
    (id, label): (&str, &str),
    names: &[&str],
    cell: impl Fn(&mut String, usize, Option<usize>),
) -> String {
    let mut out = format!("<figure data-name={id}>");
    head(&mut out, id, label, names);
    out.push_str("</tr></thead><tbody><tr class=all><th scope=row>all</th>");
    (0..names.len()).for_each(|view| cell(&mut out, view, None));
    out.push_str("</tr>");
    for cluster in figures.clusters.largest(CLUSTERS).into_iter().map(|cluster| cluster.number) {
        put!(out, "<tr><th scope=row>{cluster}</th>");
        (0..names.len()).for_each(|view| cell(&mut out, view, Some(cluster)));
        out.push_str("</tr>");
    }
    out
}

/// States the clusters and views that [`by_view`] omits, and closes the caption.
fn left_out(out: &mut String, figures: &Figures, views: usize) {
    if figures.clusters.clusters.len() > CLUSTERS {
        put!(out, " The {CLUSTERS} largest of {} clusters are shown.", figures.clusters.clusters.len());
    }
    if views > VIEWS {
        put!(out, " The first {VIEWS} of {views} views are shown.");
    }
    out.push_str("</figcaption></figure>");
}

pub(crate) fn confusion(agreement: &Agreement, instances: usize) -> String {
    let mut out = String::from("<figure data-name=confusion>");
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
            let tone = if *matched == Some(column) { Tone::Matched } else { Tone::Plain };
            heat(&mut out, instances as f64 / size.max(1) as f64, &text, tone, "");
        }
        put!(out, "<td class=sum>{}</td></tr>", count(size));
    }
    out.push_str(
        "</tbody></table></div><figcaption>Instances of each cluster (rows) and class (columns), coloured by the share of the cluster. \
         Framed: the one-to-one matching that the accuracy counts.",
    );
    if agreement.known < instances {
        put!(out, " The class of {} is known.", counted(agreement.known, "instance"));
    }
    let (classes, clusters) = agreement.total;
    if classes > agreement.classes.len() || clusters > agreement.clusters.len() {
        put!(
            out,
            " The largest {} of {} and {} of {} are shown.",
            count(agreement.classes.len()),
            format_args!("{} classes", count(classes)),
            count(agreement.clusters.len()),
            counted(clusters, "cluster")
        );
    }
    out.push_str("</figcaption></figure>");
    out
}

/// The head of a heat table. Names are rotated if the table would be wider than the page.
fn head(out: &mut String, id: &str, label: &str, names: &[&str]) {
    const PAGE: usize = 1050;
    const MANY: usize = 25;
    let width = |name: &&str| (8 * name.chars().count().min(LETTERS) + 22).max(58);
    let upright = match names.iter().map(width).sum::<usize>() {
        0..=PAGE => "",
        _ if names.len() <= MANY => " upright",
        _ => " upright dense",
    };
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

/// The style of a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    /// Framed.
    Matched,
    /// In the colour of negative values.
    Against,
}

/// A cell coloured by its share. On strong colours, text has the colour of the page's background.
fn heat(out: &mut String, share: f64, text: &str, tone: Tone, attributes: &str) {
    let share = share.clamp(0.0, 1.0);
    let class = match (tone, share > 0.55) {
        (Tone::Matched, true) => " class=\"matched hot\"",
        (Tone::Matched, false) => " class=matched",
        (Tone::Against, true) => " class=\"against hot\"",
        (Tone::Against, false) => " class=against",
        (Tone::Plain, true) => " class=hot",
        (Tone::Plain, false) => "",
    };
    put!(out, "<td{class}{attributes} style=\"--share:{:.0}%\">{text}</td>", 100.0 * share);
}
