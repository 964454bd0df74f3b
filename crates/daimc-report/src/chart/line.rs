//! Lines over an axis: curves, means with their errors, and step functions such as estimates of survival.

use super::axis::{Axis, tick};
use super::marks::COLOURS;
use super::text::{escape, middle, put};

/// A chart of lines, with axes and a legend.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LineChart {
    id: String,
    label: String,
    width: f64,
    height: f64,
    x: Scale,
    y: Scale,
    lines: Vec<Line>,
}

/// What is written along an axis.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scale {
    /// What the axis shows.
    pub title: String,
    /// Its ends; those of the values if there are none.
    pub range: Option<(f64, f64)>,
    /// What is written where; round numbers if there is nothing.
    pub ticks: Vec<(f64, String)>,
    /// Whether it is logarithmic where values are positive and span more than a factor of 30.
    pub log: bool,
}

impl Scale {
    /// An axis over the values, with round numbers beside it.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), range: None, ticks: Vec::new(), log: false }
    }

    /// From here to there; what is beyond is drawn at the end.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// With these words at these places.
    #[must_use]
    pub fn ticks(mut self, ticks: Vec<(f64, String)>) -> Self {
        self.ticks = ticks;
        self
    }

    /// Logarithmic, where values are positive and span more than a factor of 30.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    fn axis(&self, values: impl Iterator<Item = f64> + Clone, pixels: (f64, f64)) -> Axis {
        match self.range {
            Some(range) => Axis::linear(range, pixels),
            None if self.log => Axis::fitting(values, pixels),
            None => {
                let ends = (f64::INFINITY, f64::NEG_INFINITY);
                let (low, high) = values.fold(ends, |(low, high), value| (low.min(value), high.max(value)));
                if low.is_finite() {
                    Axis::linear((low, high), pixels)
                } else {
                    Axis::linear((0.0, 1.0), pixels)
                }
            }
        }
    }

    fn written(&self, axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
        if self.ticks.is_empty() {
            axis.ticks(wanted).into_iter().map(|value| (value, tick(value))).collect()
        } else {
            self.ticks.clone()
        }
    }
}

/// A line of a [`LineChart`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Line {
    /// Its name in the legend; without one it is not there.
    pub name: String,
    /// The number of its colour and of its dashes.
    pub style: usize,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Whether a value holds until the next, as in a step function.
    pub steps: bool,
    /// Where it is crossed by a small stroke: censored times of an estimate of survival.
    pub censored: Vec<(f64, f64)>,
    /// The ends of a band around it, as (x, low, high).
    pub band: Vec<(f64, f64, f64)>,
}

/// A point of a [`Line`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Point {
    /// Where it is.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// How far its error bar reaches to either side.
    pub error: Option<f64>,
    /// What is told of it under the pointer.
    pub title: String,
    /// Whether it is the one to look at.
    pub chosen: bool,
}

impl Point {
    /// A point without an error.
    #[must_use]
    pub fn new(x: f64, y: f64, title: impl Into<String>) -> Self {
        Self { x, y, error: None, title: title.into(), chosen: false }
    }

    /// With an error bar.
    #[must_use]
    pub fn error(mut self, error: f64) -> Self {
        self.error = Some(error);
        self
    }

    /// Marked, if it is the one to look at.
    #[must_use]
    pub fn chosen(mut self, chosen: bool) -> Self {
        self.chosen = chosen;
        self
    }
}

impl Line {
    /// A line through points.
    #[must_use]
    pub fn new(name: impl Into<String>, style: usize, points: Vec<Point>) -> Self {
        Self { name: name.into(), style, points, ..Self::default() }
    }

    /// A step function, crossed by strokes where it is censored.
    #[must_use]
    pub fn steps(mut self, censored: Vec<(f64, f64)>) -> Self {
        self.steps = true;
        self.censored = censored;
        self
    }

    /// With a band around it, as (x, low, high).
    #[must_use]
    pub fn band(mut self, band: Vec<(f64, f64, f64)>) -> Self {
        self.band = band;
        self
    }

    /// The classes that give it its colour and, if there are more lines than eyes tell apart, its dashes.
    fn class(&self) -> String {
        format!("c{} d{}", self.style % COLOURS, self.style / 5 % 3)
    }
}

/// Points up to which each is marked; among more of them only the one under the pointer is.
const MARKED: usize = 30;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BELOW: f64 = 44.0;
/// A line of the legend, and what a letter takes.
const KEY: f64 = 20.0;
const LETTER: f64 = 7.0;
const LETTERS: usize = 40;

impl LineChart {
    /// A chart whose element has this ID; the label says what it shows to whoever cannot see it.
    #[must_use]
    pub fn new(id: impl Into<String>, label: impl Into<String>, x: Scale, y: Scale) -> Self {
        let (id, label) = (id.into(), label.into());
        Self { id, label, width: 920.0, height: 300.0, x, y, lines: Vec::new() }
    }

    /// The size of the axes with what is written beside them, without the legend.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    /// The lines.
    #[must_use]
    pub fn lines(mut self, lines: Vec<Line>) -> Self {
        self.lines = lines;
        self
    }

    /// The chart as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let Self { id, label, width, height, x, y, lines } = self;
        let points = || lines.iter().flat_map(|line| &line.points);
        let ends = points().flat_map(|point| {
            let error = point.error.unwrap_or(0.0);
            [point.y - error, point.y + error]
        });
        let bands = lines.iter().flat_map(|line| &line.band).flat_map(|&(_, low, high)| [low, high]);
        // A title stands above its axis.
        let top = if y.title.is_empty() { TOP } else { TOP + 14.0 };
        let vertical = y.axis(ends.chain(bands), (height - BELOW, top));
        let written = y.written(&vertical, 5);
        let longest = written.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * LETTER + 14.0).max(40.0);
        let horizontal = x.axis(points().map(|point| point.x), (left, width - RIGHT));
        let (legend, below) = self.legend(left);
        let mut out = format!(
            "<svg id=\"{}\" viewBox=\"0 0 {width} {:.0}\" role=\"img\" aria-label=\"{}\"><g class=\"grid\">",
            escape(id),
            height + below,
            escape(label)
        );
        for (value, text) in written {
            let at = vertical.at(value);
            put!(out, "<path d=\"M{left:.1} {at:.1}H{:.1}\"/>", width - RIGHT);
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                at + 4.0,
                escape(&text)
            );
        }
        let mut end = f64::NEG_INFINITY;
        for (value, text) in x.written(&horizontal, (width / 75.0) as usize) {
            let (at, half) = (horizontal.at(value), LETTER * text.chars().count() as f64 / 2.0);
            // Numbers that would run into the one before are left out.
            if at - half > end {
                let y = height - BELOW + 18.0;
                put!(out, "<text x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(&text));
                end = at + half + 4.0;
            }
        }
        put!(
            out,
            "</g><text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(left, width - RIGHT),
            height - 6.0,
            escape(&x.title)
        );
        if !y.title.is_empty() {
            let how = if vertical.is_log() { ", logarithmic" } else { "" };
            put!(out, "<text class=\"axis\" x=\"4\" y=\"12\">{}{how}</text>", escape(&y.title));
        }
        lines.iter().for_each(|line| line.draw(&mut out, &horizontal, &vertical));
        out + &legend + "</svg>"
    }

    /// The names of the lines, in rows below the axes, and how high these are.
    fn legend(&self, left: f64) -> (String, f64) {
        let (mut out, mut x, mut y) = (String::new(), left, self.height + 8.0);
        let mut rows = 0.0;
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let name = middle(&line.name, LETTERS);
            let room = 34.0 + LETTER * name.chars().count() as f64 + 18.0;
            if rows == 0.0 {
                rows = 1.0;
            } else if x + room > self.width - 4.0 {
                (x, y, rows) = (left, y + KEY, rows + 1.0);
            }
            let class = line.class();
            put!(out, "<path class=\"line {class}\" d=\"M{x:.1} {y:.1}h24\"/>");
            put!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}", x + 32.0, y + 4.0, escape(&name));
            if name != line.name {
                put!(out, "<title>{}</title>", super::text::name(&line.name));
            }
            out.push_str("</text>");
            x += room;
        }
        (out, if rows > 0.0 { rows * KEY + 4.0 } else { 0.0 })
    }
}

impl Line {
    fn draw(&self, out: &mut String, x: &Axis, y: &Axis) {
        let class = self.class();
        if !self.band.is_empty() {
            let edge = |value: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
                self.band.iter().map(|at| (x.at(at.0), y.at(value(at)))).collect()
            };
            let mut back = edge(|at| at.1);
            let mut outline = path(&edge(|at| at.2), self.steps, false);
            back.reverse();
            outline += &path(&back, self.steps, true).replacen('M', "L", 1);
            put!(out, "<path class=\"band {class}\" d=\"{outline}Z\"/>");
        }
        let places: Vec<(f64, f64)> =
            self.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
        if places.len() > 1 {
            put!(out, "<path class=\"line {class}\" d=\"{}\"/>", path(&places, self.steps, false));
        }
        for &(at, value) in &self.censored {
            put!(
                out,
                "<path class=\"line censored {class}\" d=\"M{:.1} {:.1}v8\"/>",
                x.at(at),
                y.at(value) - 4.0
            );
        }
        if self.steps {
            return;
        }
        put!(out, "<g{}>", if places.len() <= MARKED { " class=\"few\"" } else { "" });
        for (point, (at, height)) in self.points.iter().zip(&places) {
            if let Some(error) = point.error.filter(|error| *error > 0.0) {
                let (low, high) = (y.at(point.y - error), y.at(point.y + error));
                put!(out, "<path class=\"line error {class}\" d=\"M{at:.1} {low:.1}V{high:.1}\"/>");
            }
            let (mark, radius) = if point.chosen { (" chosen", 6) } else { ("", 3) };
            put!(
                out,
                "<circle class=\"point{mark} {class}\" cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"{radius}\"><title>{}</title></circle>",
                escape(&point.title)
            );
        }
        out.push_str("</g>");
    }
}

/// A path through points. Of steps each value holds until the next point, also on the way back.
fn path(points: &[(f64, f64)], steps: bool, back: bool) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        match (i, steps, back) {
            (0, ..) => put!(out, "M{x:.1} {y:.1}"),
            (_, false, _) => put!(out, "L{x:.1} {y:.1}"),
            (_, true, false) => put!(out, "H{x:.1}V{y:.1}"),
            (_, true, true) => put!(out, "V{y:.1}H{x:.1}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Line {
        let points = [(0.0, 1.0), (2.0, 0.5), (4.0, 0.25)].map(|(x, y)| Point::new(x, y, ""));
        Line::new("patients", 1, points.into())
    }

    #[test]
    fn steps_hold_until_the_next_point() {
        let x = Axis::linear((0.0, 4.0), (0.0, 40.0));
        let y = Axis::linear((0.0, 1.0), (100.0, 0.0));
        let mut out = String::new();
        curve().steps(vec![(3.0, 0.5)]).draw(&mut out, &x, &y);
        assert!(out.contains("d=\"M0.0 0.0H20.0V50.0H40.0V75.0\""), "{out}");
        assert!(out.contains("d=\"M30.0 46.0v8\""), "a stroke where it is censored: {out}");
        assert!(!out.contains("<circle"));
        let band = curve().steps(Vec::new()).band(vec![(0.0, 0.9, 1.0), (2.0, 0.4, 0.6)]);
        let mut out = String::new();
        band.draw(&mut out, &x, &y);
        assert!(out.contains("d=\"M0.0 0.0H20.0V40.0L20.0 60.0V10.0H0.0Z\""), "{out}");
    }

    #[test]
    fn names_are_in_the_legend_and_whatever_they_hold_is_text() {
        let mut line = curve();
        line.name = "<b>".into();
        let chart = LineChart::new("a", "b\"", Scale::new("months"), Scale::new("").range(0.0, 1.0));
        let svg = chart.lines(vec![line]).svg();
        assert!(svg.contains("&lt;b&gt;</text>") && svg.contains("aria-label=\"b&quot;\""), "{svg}");
        assert!(svg.contains(">months</text>") && svg.contains(">0.2</text>"));
    }
}
