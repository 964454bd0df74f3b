//! The selection as a page: a plot for each criterion, over the numbers of clusters.

use std::fmt::Write;

use daimc::select::{Candidate, Estimate, Selection};
use daimc_report::chart::{self, Line, LineChart, Point, Scale, escape};
use serde_json::Value;

/// A plot: its heading, what it shows in a sentence, and the value of a candidate.
type Plot = (&'static str, &'static str, fn(&Candidate) -> Option<Estimate>);

const PLOTS: [Plot; 3] = [
    (
        "Score",
        "The reproducible share of the variance of hidden rows: what is explained × stability; stability alone where no instance \
         is present in two views.",
        |own| Some(own.score),
    ),
    (
        "Stability",
        "Adjusted Rand index of the clusters that two resamples find: 1 if they are the same, 0 for chance.",
        |own| Some(own.stability),
    ),
    (
        "Explained",
        "The share of the variance of hidden rows that the mean of the instance's cluster predicts, when the cluster was found \
         from the instance's other views.",
        |own| own.explained,
    ),
];

pub fn page(selection: &Selection, key: &Value) -> String {
    let (title, votes) = match selection.recommended {
        1 => ("One cluster".to_string(), String::new()),
        several => {
            let votes = 100.0 * selection.confidence;
            (format!("{several} clusters"), format!("Recommended by {votes:.0} % of the bootstrap samples: "))
        }
    };
    let mut body = format!(
        "<p class=verdict>{votes}{}.</p>\n<p class=lead>Medians of {} resamples with standard errors.</p>\n",
        escape(&sentence(&selection.reason, votes.is_empty())),
        selection.resamples
    );
    for (name, meaning, of) in PLOTS {
        if selection.candidates.iter().any(|own| of(own).is_some()) {
            body.push_str(&chart::figure(&name.to_lowercase(), name, &draw(selection, name, of), meaning));
        }
    }
    let key = escape(&format!("{key:#}"));
    let _ = writeln!(body, "<section><h2>Provenance</h2>\n<pre>{key}</pre></section>");
    chart::document(&title, "How many clusters there are", &body)
}

/// A text within a sentence, or capitalised at its beginning.
fn sentence(text: &str, first: bool) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if first => letter.to_uppercase().chain(letters).collect(),
        _ => text.to_string(),
    }
}

fn draw(selection: &Selection, name: &str, of: fn(&Candidate) -> Option<Estimate>) -> String {
    let points = selection.candidates.iter().filter_map(|own| {
        let (clusters, Estimate { value, error }) = (own.clusters, of(own)?);
        let label = format!("{clusters} clusters: {value:.4} ± {error:.4}");
        Some(Point::new(clusters as f64, value, label).error(error).chosen(clusters == selection.recommended))
    });
    let points: Vec<Point> = points.collect();
    let ends = points.iter().flat_map(|own| {
        let error = own.error.unwrap_or(0.0);
        [own.y - error, own.y + error]
    });
    // The axis includes zero.
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
    let ticks = points.iter().map(|own| (own.x, own.x.to_string())).collect();
    let x = Scale::new("number of clusters").ticks(ticks);
    let y = Scale::new("").range(low, if high > low { high } else { 1.0 });
    let label = format!("{name} by number of clusters");
    LineChart::new(name.to_lowercase(), label, x, y).lines(vec![Line::new("", 0, points)]).svg()
}
