//! Kaplan–Meier curves.

use daimc_clinical::{Curve, Survival};

use super::axis::{Axis, tick};
use super::marks::{mark, swatch};
use super::text::{count, number, p_value, put};

/// The maximum number of clusters whose numbers at risk are listed.
const LISTED: usize = 12;
/// The maximum number of clusters whose confidence bands are drawn.
const BANDS: usize = 3;

const WIDTH: f64 = 760.0;
const PLOT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const LINE: f64 = 17.0;

/// The curves of the clusters with follow-up data, with the numbers of the clusters.
type Known<'a> = Vec<(usize, &'a Curve)>;

/// The curves, and the numbers at risk below them unless there are too many clusters.
pub(crate) fn figure(survival: &Survival) -> String {
    let known: Known<'_> =
        survival.curves.iter().enumerate().filter(|(_, curve)| curve.instances > 0).collect();
    let ends = known.iter().filter_map(|(_, curve)| curve.steps.last());
    let last = ends.fold(0.0_f64, |last, step| last.max(step.time));
    let bottom = TOP + PLOT;
    let x = Axis::linear((0.0, last), (LEFT, WIDTH - RIGHT));
    let y = Axis::linear((0.0, 1.0), (bottom, TOP));
    let listed = if known.len() <= LISTED { known.len() } else { 0 };
    let height = bottom + 44.0 + if listed > 0 { (listed + 1) as f64 * LINE + 6.0 } else { 0.0 };
    let mut out = format!(
        "<figure data-name=survival><div class=chart><svg id=survival viewBox=\"0 0 {WIDTH} {height:.0}\" role=img \
         aria-label=\"Kaplan–Meier estimate of survival by cluster\">"
    );
    frame(&mut out, x, y);
    for (cluster, curve) in &known {
        draw(&mut out, *cluster, curve, x, y, known.len() <= BANDS);
    }
    if listed > 0 {
        at_risk(&mut out, &known, x, bottom + 44.0 + LINE);
    }
    out.push_str("</svg></div><div class=keys>");
    for (cluster, curve) in &known {
        let median = curve
            .median
            .map_or_else(|| "median not reached".into(), |median| format!("median {}", number(median)));
        put!(
            out,
            "<span class=key>{}cluster {cluster} <small>{} of {} with the event; {median}</small></span>",
            swatch(*cluster),
            count(curve.events),
            count(curve.instances)
        );
    }
    put!(out, "</div><figcaption>{} ", log_rank(survival));
    out.push_str("Kaplan–Meier curves; a mark is a censored instance");
    out.push_str(if known.len() <= BANDS { "; bands are 95 % confidence intervals." } else { "." });
    out.push_str("</figcaption></figure>");
    out
}

fn log_rank(survival: &Survival) -> String {
    let (Some(statistic), Some(p)) = (survival.statistic, survival.p) else {
        return "No log-rank test: it needs events, and two clusters at risk.".into();
    };
    let freedom = survival.freedom;
    let degrees = if freedom == 1 { "degree" } else { "degrees" };
    format!("Log-rank test: χ² = {}, {freedom} {degrees} of freedom, p = {}.", number(statistic), p_value(p))
}

/// The axes.
fn frame(out: &mut String, x: Axis, y: Axis) {
    let bottom = TOP + PLOT;
    out.push_str("<g class=grid>");
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y.at(share);
        put!(out, "<path d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        put!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=end>{}</text>", LEFT - 8.0, at + 4.0, tick(share));
    }
    for time in x.ticks(6) {
        let at = x.at(time);
        put!(out, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=middle>{}</text>", bottom + 18.0, tick(time));
    }
    put!(
        out,
        "</g><text class=axis x=\"{:.1}\" y=\"{:.1}\" text-anchor=middle>follow-up time</text>\
         <text class=axis transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=middle>survival probability</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        bottom + 36.0,
        f64::midpoint(TOP, bottom)
    );
}

/// A line for each cluster with the number at risk at each tick of the axis.
fn at_risk(out: &mut String, known: &Known<'_>, x: Axis, top: f64) {
    put!(out, "<g class=grid><text x=\"{:.1}\" y=\"{top:.1}\" text-anchor=middle>at risk</text>", x.at(0.0));
    for (row, (cluster, curve)) in known.iter().enumerate() {
        let (at, colour) = (top + (row + 1) as f64 * LINE, mark(*cluster).0);
        put!(out, "<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=end>{cluster}</text>", LEFT - 40.0);
        put!(
            out,
            "<path d=\"M{:.1} {:.1}h12\" style=\"stroke:var(--k{colour});stroke-width:3\"/>",
            LEFT - 36.0,
            at - 4.0
        );
        for time in x.ticks(6) {
            let left = curve.steps.iter().find(|step| step.time >= time).map_or(0, |step| step.at_risk);
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=middle>{}</text>",
                x.at(time),
                count(left)
            );
        }
    }
    out.push_str("</g>");
}

fn draw(out: &mut String, cluster: usize, curve: &Curve, x: Axis, y: Axis, band: bool) {
    let colour = mark(cluster).0;
    let steps = |value: fn(&daimc_clinical::Step) -> f64| {
        let mut path = format!("{:.1} {:.1}", x.at(0.0), y.at(1.0));
        curve.steps.iter().for_each(|step| put!(path, "H{:.1}V{:.1}", x.at(step.time), y.at(value(step))));
        path
    };
    if band && !curve.steps.is_empty() {
        // The outline follows the upper ends, then the lower ends backwards.
        let mut path = format!("M{}", steps(|step| step.upper));
        let mut level = curve.steps.len();
        while level > 0 {
            level -= 1;
            let step = &curve.steps[level];
            let before = level.checked_sub(1).map_or(1.0, |before| curve.steps[before].lower);
            put!(path, "V{:.1}H{:.1}V{:.1}", y.at(step.lower), x.at(step.time), y.at(before));
        }
        put!(out, "<path class=k{colour} style=\"opacity:.14\" d=\"{path}Z\"/>");
    }
    put!(
        out,
        "<path class=line style=\"stroke:var(--k{colour})\" d=\"M{}\"><title>cluster {cluster}</title></path>",
        steps(|step| step.survival)
    );
    let mut censored = String::new();
    for step in curve.steps.iter().filter(|step| step.censored > 0) {
        put!(censored, "M{:.1} {:.1}v8", x.at(step.time), y.at(step.survival) - 4.0);
    }
    if !censored.is_empty() {
        put!(out, "<path class=line style=\"stroke:var(--k{colour});stroke-width:1.3\" d=\"{censored}\"/>");
    }
}
