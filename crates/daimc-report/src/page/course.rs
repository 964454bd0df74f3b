//! The objective from iteration to iteration.

use super::axis::{Axis, tick};
use super::text::{escape, number, put};
use crate::figures::{Course, Figures};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Points up to which each is marked; among more of them only the one under the pointer is.
const MARKED: usize = 30;

struct Line<'a> {
    name: &'a str,
    values: &'a [f64],
    style: usize,
}

pub(crate) fn section(figures: &Figures) -> String {
    let course = &figures.course;
    if course.total.is_empty() {
        return "<p class=empty>No iteration was recorded.</p>".into();
    }
    let total = [Line { name: "J", values: &course.total, style: 0 }];
    // A part that is zero throughout (α = 0) has no place on a logarithmic axis.
    let parts: Vec<Line<'_>> = course
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.values.iter().any(|&value| value > 0.0))
        .map(|(style, part)| Line { name: part.name, values: &part.values, style })
        .collect();
    let mut out = String::from("<div class=pair>");
    let (chart, scale) = draw("objective", course, &total, "Objective after each iteration");
    put!(out, "<figure><h3>Objective J{scale}</h3><div class=chart>{chart}</div></figure>");
    let (chart, scale) = draw("parts", course, &parts, "Parts of the objective after each iteration");
    put!(out, "<figure><h3>Its parts{scale}</h3><div class=chart>{chart}</div><div class=keys>");
    for (style, part) in course.parts.iter().enumerate() {
        put!(
            out,
            "<span class=key><svg class=dash viewBox=\"0 0 24 8\" aria-hidden=true>\
             <path class=\"line s{style}\" d=\"M0 4H24\"/></svg>{} <small>{}</small></span>",
            part.name,
            escape(part.formula)
        );
    }
    put!(out, "</div></figure></div><p class=note>The model has J = {}", number(course.last));
    let reached = course.total[course.total.len() - 1];
    if (reached - course.last).abs() > 1e-9 * reached.abs() {
        put!(
            out,
            ". The last iteration reached {}; after it, V was made final and the clusters were consolidated",
            number(reached)
        );
    }
    out.push_str(".</p>");
    out
}

/// The chart, and what its heading says about its scale.
fn draw(id: &str, course: &Course, lines: &[Line<'_>], label: &str) -> (String, &'static str) {
    let y = Axis::fitting(lines.iter().flat_map(|line| line.values.iter().copied()), (HEIGHT - BOTTOM, TOP));
    let last = course.iterations[course.iterations.len() - 1] as f64;
    let x = Axis::linear((1.0, last), (LEFT, WIDTH - RIGHT));
    let scale = if y.is_log() { ", on a logarithmic scale" } else { "" };
    let mut out = format!(
        "<svg id={id} viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"{label}{scale}\"><g class=grid>"
    );
    for value in y.ticks(5) {
        let at = y.at(value);
        put!(out, "<path d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        put!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=end>{}</text>", LEFT - 8.0, at + 4.0, tick(value));
    }
    let whole = |value: &f64| value.fract() == 0.0 && *value > 1.0 && *value <= last;
    for value in std::iter::once(1.0).chain(x.ticks(6).into_iter().filter(whole)) {
        let (at, below) = (x.at(value), HEIGHT - BOTTOM + 18.0);
        put!(out, "<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=middle>{}</text>", tick(value));
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    put!(
        out,
        "</g><text class=axis x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=middle>iteration</text>",
        HEIGHT - 4.0
    );
    for line in lines {
        let at = |(&iteration, &value): (&usize, &f64)| (x.at(iteration as f64), y.at(value));
        let points: Vec<(f64, f64)> = course.iterations.iter().zip(line.values).map(at).collect();
        draw_line(&mut out, course, line, &points);
    }
    out.push_str("</svg>");
    (out, scale)
}

fn draw_line(out: &mut String, course: &Course, line: &Line<'_>, points: &[(f64, f64)]) {
    let Line { name, values, style } = line;
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    put!(out, "<path class=\"line s{style}\" d=\"M{}\"/>", path.join("L"));
    put!(out, "<g{}>", if points.len() <= MARKED { " class=few" } else { "" });
    for ((x, y), (iteration, &value)) in points.iter().zip(course.iterations.iter().zip(*values)) {
        put!(
            out,
            "<circle class=\"point s{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=3>\
             <title>iteration {iteration}: {name} {}</title></circle>",
            number(value)
        );
    }
    out.push_str("</g>");
}
