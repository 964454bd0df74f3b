//! The silhouette of each instance.

use super::axis::{Axis, tick};
use super::marks::mark;
use super::text::{count, put, score};
use crate::figures::Figures;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 30.0;

pub(crate) fn figure(figures: &Figures) -> String {
    let clusters = &figures.clusters;
    if figures.summary.clusters == 1 {
        return String::new();
    }
    let below = clusters.clusters.iter().flat_map(|cluster| &cluster.silhouettes);
    let negative = below.filter(|value| **value < 0.0).count();
    let mut out = format!(
        "<figure data-name=silhouettes><h3>Silhouette of each instance</h3><div class=chart>{}</div><figcaption>Instances from left to right, cluster \
         after cluster, in descending order. Above zero an instance is closer to its own cluster than to any other, on the scaled rows of \
         V; {} of the {} shown are below zero. The dashed line is the mean, {}.",
        draw(figures),
        count(negative),
        count(clusters.silhouettes_from),
        score(clusters.silhouette)
    );
    if clusters.silhouettes_from < figures.summary.instances {
        out.push_str(" Small clusters are drawn wider than to scale, so that they are visible.");
    }
    out.push_str("</figcaption></figure>");
    out
}

fn draw(figures: &Figures) -> String {
    let clusters = &figures.clusters;
    let all = clusters.clusters.iter().flat_map(|cluster| cluster.silhouettes.iter().copied());
    let lowest = all.clone().fold(0.0, f64::min);
    let y = Axis::linear(((4.0 * lowest).floor() / 4.0, 1.0), (HEIGHT - BOTTOM, TOP));
    let mut out = format!(
        "<svg id=silhouettes-chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Silhouette of {} instances, by cluster\"><g class=grid>",
        clusters.silhouettes_from
    );
    for value in y.ticks(5) {
        let at = y.at(value);
        put!(out, "<path d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        put!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=end>{}</text>", LEFT - 8.0, at + 4.0, tick(value));
    }
    out.push_str("</g>");
    let filled = clusters.clusters.iter().filter(|cluster| !cluster.silhouettes.is_empty());
    let gap = if filled.clone().count() > 30 { 1.0 } else { 4.0 };
    let gaps = gap * filled.clone().count().saturating_sub(1) as f64;
    let step = (WIDTH - LEFT - RIGHT - gaps) / clusters.silhouettes_from.max(1) as f64;
    let (mut x, mut end, zero) = (LEFT, f64::NEG_INFINITY, y.at(0.0));
    for cluster in filled {
        let (start, values) = (x, &cluster.silhouettes);
        let mut path = format!("M{x:.2} {zero:.1}");
        // Adjacent bars of the same height in pixels are merged.
        for run in values.chunk_by(|a, b| y.at(*a).round() == y.at(*b).round()) {
            x += step * run.len() as f64;
            put!(path, "V{:.1}H{x:.2}", y.at(run[0]));
        }
        put!(
            out,
            "<path class=k{} d=\"{path}V{zero:.1}Z\"><title>cluster {}: mean {}</title></path>",
            mark(cluster.number).0,
            cluster.number,
            score(cluster.silhouette.map_or(0.0, |spread| spread.mean))
        );
        let (middle, half) = (f64::midpoint(start, x), 4.0 * cluster.number.to_string().len() as f64);
        if middle - half > end {
            put!(
                out,
                "<text x=\"{middle:.1}\" y={} text-anchor=middle>{}</text>",
                HEIGHT - 10.0,
                cluster.number
            );
            end = middle + half + 2.0;
        }
        x += gap;
    }
    let mean = y.at(clusters.silhouette);
    put!(out, "<path class=rule d=\"M{LEFT} {mean:.1}H{:.1}\"/>", WIDTH - RIGHT);
    put!(out, "<text class=quiet x={LEFT} y=14>silhouette</text></svg>");
    out
}
