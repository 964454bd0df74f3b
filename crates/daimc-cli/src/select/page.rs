//! The selection as a page: a plot for each criterion, over the numbers of clusters.

use std::fmt::Write;

use daimc::select::{Candidate, Estimate, Selection};
use serde_json::Value;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:32px auto;padding:0 20px;color:#1b2430;\
background:#fff}svg{width:100%;height:auto}svg text{font-size:12px;fill:currentColor}.quiet{color:#5b6675}\
pre{overflow:auto}@media(prefers-color-scheme:dark){body{background:#12161c;color:#e6e9ee}}";

/// A plot: its heading, what it shows in a sentence, and the value of a candidate.
type Plot = (&'static str, &'static str, fn(&Candidate) -> Option<Estimate>);

const PLOTS: [Plot; 3] = [
    (
        "Score",
        "The reproducible share of the variance of hidden rows: what is explained × stability; stability alone where no instance \
         is seen in two views.",
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
    let mut out = format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>How many clusters</title>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{votes}{}.</p>\n\
         <p class=quiet>Medians of {} resamples with standard errors.</p>\n",
        escape(&sentence(&selection.reason, votes.is_empty())),
        selection.resamples
    );
    for (name, meaning, of) in PLOTS {
        if selection.candidates.iter().any(|own| of(own).is_some()) {
            let _ = write!(
                out,
                "<h2>{name}</h2>\n<p class=quiet>{meaning}</p>\n{}\n",
                chart(selection, name, of)
            );
        }
    }
    let _ = write!(out, "<h2>Provenance</h2>\n<pre>{}</pre>\n</html>\n", escape(&format!("{key:#}")));
    out
}

/// A text as it stands in a sentence, or as the beginning of one.
fn sentence(text: &str, first: bool) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if first => letter.to_uppercase().chain(letters).collect(),
        _ => text.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn chart(selection: &Selection, name: &str, of: fn(&Candidate) -> Option<Estimate>) -> String {
    let points: Vec<(usize, Estimate)> =
        selection.candidates.iter().filter_map(|own| Some((own.clusters, of(own)?))).collect();
    let ends = points.iter().flat_map(|(_, own)| [own.value - own.error, own.value + own.error]);
    let (low, high) =
        ends.fold((0.0_f64, f64::MIN_POSITIVE), |(low, high), end| (low.min(end), high.max(end)));
    let step = tick(high - low);
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let x = |clusters: usize| 70.0 + 780.0 * (clusters - first) as f64 / (last - first).max(1) as f64;
    let y = |value: f64| 230.0 - 215.0 * (value - low) / (high - low);
    let mut out =
        format!("<svg viewBox=\"0 0 900 275\" role=img aria-label=\"{name} by number of clusters\">");
    let from = (low / step).ceil() as i64;
    for tick in (from..).map(|tick| tick as f64 * step).take_while(|tick| *tick <= high) {
        let at = y(tick);
        let _ = write!(
            out,
            "<path d=\"M70 {at:.1}H850\" stroke=currentColor opacity=.15 /><text x=60 y={:.1} text-anchor=end>{}</text>",
            at + 4.0,
            (tick * 1e6).round() / 1e6
        );
    }
    let path: Vec<String> =
        points.iter().map(|(clusters, own)| format!("{:.1} {:.1}", x(*clusters), y(own.value))).collect();
    let _ = write!(out, "<path d=\"M{}\" fill=none stroke=\"#0072b2\" stroke-width=2 />", path.join("L"));
    for (clusters, Estimate { value, error }) in &points {
        let chosen = *clusters == selection.recommended;
        let (radius, colour) = if chosen { (6, "#d55e00") } else { (3, "#0072b2") };
        let _ = write!(
            out,
            "<path d=\"M{0:.1} {1:.1}V{2:.1}\" stroke=\"{colour}\" stroke-width=2 />\
             <circle cx={0:.1} cy={3:.1} r={radius} fill=\"{colour}\"><title>{clusters}: {value:.4} ± {error:.4}</title></circle>\
             <text x={0:.1} y=250 text-anchor=middle>{clusters}</text>",
            x(*clusters),
            y(value - error),
            y(value + error),
            y(*value)
        );
    }
    out + "<text x=460 y=270 text-anchor=middle>number of clusters</text></svg>"
}

/// A round step between four to ten ticks apart.
fn tick(range: f64) -> f64 {
    let power = 10_f64.powf((range / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| range / step <= 8.0).unwrap_or(range)
}
