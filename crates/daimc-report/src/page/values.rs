//! The heat map of the leading features of the clusters, and the data from which the script draws distributions.

use serde_json::{Value, json};

use super::marks::mark;
use super::text::{base64, count, escape, middle, name, put};
use crate::figures::{Figures, Values, ViewFeatures, ViewValues};

const WIDTH: f64 = 920.0;
/// Height of a row of 12-pixel text.
const ROW: f64 = 15.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 12.0;
const LETTERS: usize = 22;
const KEYS: f64 = 48.0;
/// The z-score at which the colour scale ends.
pub(crate) const END: f64 = 2.5;

/// The heat maps of all views; the script shows that of the selected view.
pub(crate) fn heat_maps(figures: &Figures) -> String {
    let values = &figures.values;
    let mut out =
        String::from("<figure data-name=heat-map id=heat-map><h3>Leading features and instances</h3>");
    for (number, (view, known)) in values.views.iter().zip(&figures.features.views).enumerate() {
        let hidden = if number > 0 { " hidden" } else { "" };
        put!(out, "<div class=chart data-view={number}{hidden}>");
        if view.rows.is_empty() {
            out.push_str("<p class=empty>No feature of this view is evidence for a cluster.</p>");
        } else {
            out.push_str(&draw(values, view, known, number));
        }
        out.push_str("</div>");
    }
    out.push_str(
        "<figcaption>Rows are the features with the largest weights for each cluster (shown by the mark next to the name), columns are instances, \
         cluster after cluster; within a cluster, instances are ordered by confidence, highest first; those missing from the view come \
         last. Colours are z-scores over the instances drawn",
    );
    if values.views.iter().any(|view| view.log) {
        out.push_str(", of logarithms where the fit uses them");
    }
    out.push('.');
    if values.instances.len() < figures.summary.instances {
        put!(
            out,
            " The heat map shows {} of {} instances, a fixed sample in which every cluster is represented.",
            count(values.instances.len()),
            count(figures.summary.instances)
        );
    }
    out.push_str(" Click a row to see the distribution of the feature.</figcaption></figure>");
    out
}

/// The order of the columns of a view: by cluster and, within a cluster, present instances before missing ones.
fn order(values: &Values, view: &ViewValues) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.instances.len()).collect();
    order.sort_by_key(|&column| (values.clusters[column], !view.shown[column]));
    order
}

fn draw(values: &Values, view: &ViewValues, known: &ViewFeatures, number: usize) -> String {
    let letters =
        view.rows.iter().map(|row| known.names[row.0].chars().count().min(LETTERS)).max().unwrap_or(0);
    let left = 30.0 + 7.6 * letters as f64;
    let (wide, tall) = (WIDTH - left - RIGHT, ROW * view.rows.len() as f64);
    let order = order(values, view);
    let step = wide / order.len().max(1) as f64;
    let mut out = format!(
        "<svg class=heat-map viewBox=\"0 0 {WIDTH} {:.0}\" role=img aria-label=\"Values of {} leading features of {} for {} instances, \
         sorted by cluster\"><g class=grid>",
        TOP + tall + KEYS,
        view.rows.len(),
        name(&known.name),
        order.len()
    );
    let mut end = f64::NEG_INFINITY;
    let mut start = 0;
    let (mut bands, mut hatched) = (String::new(), String::new());
    for run in order.chunk_by(|&a, &b| values.clusters[a] == values.clusters[b]) {
        let cluster = values.clusters[run[0]];
        let (x, width) = (left + step * start as f64, step * run.len() as f64);
        put!(
            bands,
            "<rect class=k{} x=\"{x:.2}\" y={} width=\"{:.2}\" height=10><title>cluster {cluster}</title></rect>",
            mark(cluster).0,
            TOP - 14.0,
            (width - 0.6).max(0.3)
        );
        // A number that would overlap the previous one is omitted.
        let (middle, half) = (x + width / 2.0, 4.0 * cluster.to_string().len() as f64);
        if middle - half > end {
            put!(out, "<text x=\"{middle:.1}\" y=18 text-anchor=middle>{cluster}</text>");
            end = middle + half + 2.0;
        }
        let unseen = run.iter().filter(|&&column| !view.shown[column]).count();
        if unseen > 0 {
            let width = step * unseen as f64;
            put!(
                hatched,
                "M{:.2} {TOP}h{width:.2}v{tall}h-{width:.2}z",
                x + step * (run.len() - unseen) as f64
            );
        }
        start += run.len();
    }
    put!(out, "</g><text class=quiet x=\"{:.1}\" y=18 text-anchor=end>cluster</text>", left - 8.0);
    put!(
        out,
        "<image data-heat={number} x=\"{left:.1}\" y={TOP} width=\"{wide:.1}\" height={tall} preserveAspectRatio=none />{bands}<path class=unseen d=\"{hatched}\"/>"
    );
    for (row, &(feature, cluster)) in view.rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let full = &known.names[feature];
        put!(
            out,
            "<g class=feature data-feature={feature}><rect class=k{} x=\"{:.1}\" y=\"{:.1}\" width=7 height={} />\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=end>{}<title>{}, leads cluster {cluster}</title></text></g>",
            mark(cluster).0,
            left - 12.0,
            y + 1.0,
            ROW - 2.0,
            left - 18.0,
            y + 11.5,
            escape(&middle(full, LETTERS)),
            name(full)
        );
    }
    keys(&mut out, left, TOP + tall + 22.0, number);
    out.push_str("</svg>");
    out
}

/// The legend of the colours.
fn keys(out: &mut String, left: f64, y: f64, number: usize) {
    put!(
        out,
        "<image data-ramp={number} x=\"{:.1}\" y=\"{:.1}\" width=140 height=12 preserveAspectRatio=none />",
        left + 30.0,
        y - 10.0
    );
    put!(out, "<text class=quiet x=\"{:.1}\" y={y} text-anchor=end>−{END}</text>", left + 26.0);
    put!(out, "<text class=quiet x=\"{:.1}\" y={y}>+{END} standard deviations</text>", left + 175.0);
    let next = left + 345.0;
    put!(out, "<rect class=absent x=\"{next:.1}\" y=\"{:.1}\" width=18 height=12 />", y - 10.0);
    put!(out, "<text class=quiet x=\"{:.1}\" y={y}>cell missing</text>", next + 24.0);
    put!(out, "<rect class=unseen x=\"{:.1}\" y=\"{:.1}\" width=18 height=12 />", next + 120.0, y - 10.0);
    put!(out, "<text class=quiet x=\"{:.1}\" y={y}>missing from this view</text>", next + 144.0);
}

/// The data of the script.
pub(crate) fn data(figures: &Figures) -> Value {
    let values = &figures.values;
    let view = |view: &ViewValues| {
        let codes = view.features.iter().flat_map(|own| own.codes.iter().flat_map(|code| code.to_le_bytes()));
        let digits = |value: f64| -> f64 { format!("{value:.5e}").parse().unwrap_or(value) };
        json!({
            "log": view.log,
            "order": order(values, view),
            "shown": view.shown.iter().map(|shown| if *shown { '1' } else { '0' }).collect::<String>(),
            "rows": view.rows.iter().map(|row| row.0).collect::<Vec<_>>(),
            "features": view.features.iter().map(|own| own.place).collect::<Vec<_>>(),
            "ranges": view.features.iter().map(|own| [digits(own.range.0), digits(own.range.1)]).collect::<Vec<_>>(),
            "codes": base64(codes),
        })
    };
    // IDs are available only if the page contains all of these instances.
    let known = figures.instances.indices(&values.instances);
    let known = (known.len() == values.instances.len()).then_some(known);
    json!({ "instance": known, "cluster": values.clusters, "views": values.views.iter().map(view).collect::<Vec<_>>() })
}
