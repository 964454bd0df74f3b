//! The clusters: sizes, confidence and silhouettes.

use super::axis::{Axis, tick};
use super::table::{Cell, Table};
use super::text::{count, number, percent, put, score};
use crate::figures::{Cluster, Figures, Spread};

const WIDTH: f64 = 920.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 44.0;
/// The maximum number of clusters drawn.
const DRAWN: usize = 60;

pub(crate) fn section(figures: &Figures) -> String {
    let clusters = &figures.clusters;
    let all = clusters.clusters.len();
    let drawn = clusters.largest(DRAWN);
    let mut out = format!(
        "<p class=lead>Mean confidence {}, mean silhouette {}.</p><figure data-name=clusters><div class=chart>{}</div><figcaption>",
        score(figures.summary.confidence),
        score(clusters.silhouette),
        draw(&drawn)
    );
    if all > DRAWN {
        put!(out, "The {DRAWN} largest of {all} clusters are drawn; the table lists all. ");
    }
    out.push_str(
        "Boxes span the middle half of a cluster's instances, whiskers 90% of them; the line is the median, the dot the mean. ",
    );
    let agreement = &figures.summary.agreement;
    let runs = agreement.len();
    out.push_str(
        "Confidence estimates the share of fits to resampled data in which an instance stays with its cluster",
    );
    if let Some(found) = figures.summary.reproducibility {
        put!(out, "; in quick fits to parts of a sample {:.0}% of the instances do", 100.0 * found);
    }
    out.push_str(". ");
    if runs > 0 {
        let (least, most) =
            agreement.iter().fold((1.0_f64, 0.0_f64), |(least, most), own| (least.min(*own), most.max(*own)));
        put!(
            out,
            "Each of the {runs} runs, taken by itself, agrees on {:.1} to {:.1}% of the instances. ",
            100.0 * least,
            100.0 * most
        );
    }
    if clusters.silhouettes_from < figures.summary.instances {
        put!(
            out,
            "Silhouettes are exact between {} instances, a fixed sample of the {} in which every cluster has its share.",
            count(clusters.silhouettes_from),
            count(figures.summary.instances)
        );
    } else {
        out.push_str("Silhouettes are exact, between all instances, on the scaled rows of V.");
    }
    out.push_str("</figcaption></figure>");
    out
}

fn draw(clusters: &[&Cluster]) -> String {
    let height = HEAD + ROW * clusters.len() as f64 + 6.0;
    let largest = clusters.iter().map(|cluster| cluster.size).max().unwrap_or(1).max(1);
    let sizes = Axis::linear((0.0, largest as f64), (64.0, 250.0));
    let confidence = Axis::linear((0.0, 1.0), (350.0, 600.0));
    let lowest = clusters.iter().filter_map(|cluster| cluster.silhouette).map(|s| s.quantiles[0]);
    // The axis extends below zero only as far as the data do.
    let least = (2.0 * lowest.fold(0.0, f64::min)).floor() / 2.0;
    let silhouette = Axis::linear((least, 1.0), (650.0, 900.0));
    let mut out = format!(
        "<svg id=clusters-chart viewBox=\"0 0 {WIDTH} {height}\" role=img aria-label=\"Size, confidence and silhouette of each cluster\">\
         <text class=head x=54 y=16 text-anchor=end>cluster</text><text class=head x=64 y=16>instances</text>\
         <text class=head x=350 y=16>confidence</text><text class=head x=650 y=16>silhouette</text><g class=grid>"
    );
    for (axis, ticks) in [(&confidence, vec![0.0, 0.25, 0.5, 0.75, 1.0]), (&silhouette, silhouette.ticks(4))]
    {
        for value in ticks {
            let x = axis.at(value);
            put!(out, "<path d=\"M{x:.1} {}V{:.1}\"/>", HEAD - 4.0, height - 4.0);
            put!(out, "<text x=\"{x:.1}\" y={} text-anchor=middle>{}</text>", HEAD - 9.0, tick(value));
        }
    }
    out.push_str("</g>");
    for (row, cluster) in clusters.iter().enumerate() {
        let y = HEAD + ROW * row as f64;
        let colour = super::marks::mark(cluster.number).0;
        put!(out, "<text x=54 y=\"{:.1}\" text-anchor=end>{}</text>", y + 14.0, cluster.number);
        put!(
            out,
            "<rect class=k{colour} x=64 y=\"{:.1}\" width=\"{:.1}\" height=12 rx=1.5 />",
            y + 4.0,
            (sizes.at(cluster.size as f64) - 64.0).max(0.5)
        );
        put!(
            out,
            "<text class=quiet x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            sizes.at(cluster.size as f64) + 6.0,
            y + 14.0,
            count(cluster.size)
        );
        for (axis, spread) in [(&confidence, cluster.confidence), (&silhouette, cluster.silhouette)] {
            if let Some(spread) = spread {
                whiskers(&mut out, axis, &spread, y + ROW / 2.0, colour);
            }
        }
    }
    out.push_str("</svg>");
    out
}

fn whiskers(out: &mut String, axis: &Axis, spread: &Spread, y: f64, colour: usize) {
    let [low, first, median, third, high] = spread.quantiles.map(|value| axis.at(value));
    put!(
        out,
        "<g class=box><title>mean {}, median {}, 90% from {} to {}</title>",
        score(spread.mean),
        score(spread.quantiles[2]),
        score(spread.quantiles[0]),
        score(spread.quantiles[4])
    );
    put!(out, "<path class=whisker d=\"M{low:.1} {y:.1}H{high:.1}\"/>");
    put!(
        out,
        "<rect class=k{colour} x=\"{first:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=10 />",
        y - 5.0,
        (third - first).max(0.5)
    );
    put!(out, "<path class=median d=\"M{median:.1} {:.1}v12\"/>", y - 6.0);
    put!(out, "<circle class=mean cx=\"{:.1}\" cy=\"{y:.1}\" r=2 /></g>", axis.at(spread.mean));
}

pub(crate) fn table(figures: &Figures) -> String {
    let columns = [
        ("cluster", true),
        ("instances", true),
        ("share", true),
        ("views seen, mean", true),
        ("confidence, mean", true),
        ("confidence, median", true),
        ("silhouette, mean", true),
    ];
    let instances = figures.summary.instances as f64;
    let mut table = Table::new("clusters-table", "Clusters", &columns);
    for cluster in &figures.clusters.clusters {
        let of = |spread: Option<Spread>, value: fn(&Spread) -> f64| match spread {
            Some(spread) => Cell::Number(value(&spread), score(value(&spread))),
            None => Cell::Empty,
        };
        let share = cluster.size as f64 / instances;
        table.push(&[
            Cell::Number(cluster.number as f64, cluster.number.to_string()),
            Cell::Number(cluster.size as f64, count(cluster.size)),
            Cell::Number(share, percent(share)),
            Cell::Number(cluster.views_seen, number(cluster.views_seen)),
            of(cluster.confidence, |spread| spread.mean),
            of(cluster.confidence, |spread| spread.quantiles[2]),
            of(cluster.silhouette, |spread| spread.mean),
        ]);
    }
    table.finish("")
}
