//! The objective from iteration to iteration.

use super::text::{number, put};
use crate::chart::{Line, LineChart, Point, Scale};
use crate::figures::{Course, Figures, Term};

pub(crate) fn section(figures: &Figures) -> String {
    let course = &figures.course;
    if course.total.is_empty() {
        return "<p class=empty>No iteration was recorded.</p>".into();
    }
    // A part that is always zero (α = 0) cannot be drawn on a logarithmic axis.
    let parts = course.parts.iter().enumerate();
    let parts = parts.filter(|(_, part)| part.values.iter().any(|&value| value > 0.0));
    let part = |(style, part): (usize, &Term)| {
        line(course, &format!("{}: {}", part.name, part.formula), part.name, style, &part.values)
    };
    let parts: Vec<Line> = parts.map(part).collect();
    let total = draw("objective", course, vec![line(course, "", "J", 0, &course.total)], "Objective");
    let parts = draw("parts", course, parts, "Parts of the objective");
    let mut out = String::from("<div class=pair>");
    put!(out, "<figure data-name=objective><h3>Objective J</h3><div class=chart>{total}</div></figure>");
    put!(out, "<figure data-name=parts><h3>Its parts</h3><div class=chart>{parts}</div></figure>");
    put!(out, "</div><p class=note>The model has J = {}", number(course.last));
    let reached = course.total[course.total.len() - 1];
    if (reached - course.last).abs() > 1e-9 * reached.abs() {
        put!(
            out,
            ". The last iteration reached {}; after it, V was finalised and the clusters were consolidated",
            number(reached)
        );
    }
    out.push_str(".</p>");
    out
}

fn line(course: &Course, legend: &str, name: &str, style: usize, values: &[f64]) -> Line {
    let point = |(&iteration, &value): (&usize, &f64)| {
        Point::new(iteration as f64, value, format!("iteration {iteration}: {name} {}", number(value)))
    };
    // Three styles that differ in colour and dash pattern.
    let style = [0, 14, 6][style % 3];
    Line::new(legend, style, course.iterations.iter().zip(values).map(point).collect())
}

fn draw(id: &str, course: &Course, lines: Vec<Line>, what: &str) -> String {
    let last = course.iterations[course.iterations.len() - 1];
    let step = last.div_ceil(6).max(1);
    let mut ticks: Vec<usize> = (1..=last / step).map(|tick| tick * step).filter(|tick| *tick > 1).collect();
    ticks.insert(0, 1);
    let ticks = ticks.into_iter().map(|tick| (tick as f64, super::axis::tick(tick as f64))).collect();
    let x = Scale::new("iteration").ticks(ticks).range(1.0, last as f64);
    let chart = LineChart::new(id, format!("{what} after each iteration"), x, Scale::new(what).log());
    chart.size(460.0, 250.0).lines(lines).svg()
}
