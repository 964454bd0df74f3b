//! Line charts: curves, means with error bars, and step functions such as survival estimates.

use super::axis::{Axis, tick};
use super::marks::COLOURS;
use super::text::{escape, middle, put};
use crate::numbers::extent;

/// A line chart with axes and a legend.
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

/// The title, range and ticks of an axis, and whether it is logarithmic.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scale {
    /// The title of the axis.
    pub title: String,
    /// The range of the axis; by default that of the values.
    pub range: Option<(f64, f64)>,
    /// Positions and texts of the ticks; by default round numbers.
    pub ticks: Vec<(f64, String)>,
    /// Whether the axis is logarithmic if its values are positive and span more than a factor of 30. With a `range` the axis
    /// is linear.
    pub log: bool,
}

impl Scale {
    /// Creates a linear axis over the range of the values, with ticks at round numbers.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), range: None, ticks: Vec::new(), log: false }
    }

    /// Sets the range; values outside are drawn at its ends.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Sets the ticks: positions and texts.
    #[must_use]
    pub fn ticks(mut self, ticks: Vec<(f64, String)>) -> Self {
        self.ticks = ticks;
        self
    }

    /// Makes the axis logarithmic if its values are positive and span more than a factor of 30, unless it has a range.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    /// The axis of values between two pixels.
    fn axis(&self, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Axis {
        match self.range {
            Some(range) => Axis::linear(range, pixels),
            None if self.log => Axis::fitting(values, pixels),
            None => {
                let (low, high) = extent(values);
                if low.is_finite() {
                    Axis::linear((low, high), pixels)
                } else {
                    Axis::linear((0.0, 1.0), pixels)
                }
            }
        }
    }

    /// The ticks, by default about `wanted` round numbers on the axis.
    fn ticks_on(&self, axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
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
    /// Its name in the legend; a line without a name is not listed.
    pub name: String,
    /// An index that selects its colour and dash pattern.
    pub style: usize,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Whether it is a step function, in which a value holds until the next point.
    pub steps: bool,
    /// The positions of censoring marks, short vertical strokes.
    pub censored: Vec<(f64, f64)>,
    /// A band around it, as (x, low, high).
    pub band: Vec<(f64, f64, f64)>,
}

/// A point of a [`Line`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Point {
    /// Its position on the x-axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The half-length of its error bar.
    pub error: Option<f64>,
    /// Its tooltip.
    pub title: String,
    /// Whether it is highlighted.
    pub chosen: bool,
}

impl Point {
    /// Creates a point without an error bar.
    #[must_use]
    pub fn new(x: f64, y: f64, title: impl Into<String>) -> Self {
        Self { x, y, error: None, title: title.into(), chosen: false }
    }

    /// Adds an error bar.
    #[must_use]
    pub fn error(mut self, error: f64) -> Self {
        self.error = Some(error);
        self
    }

    /// Highlights the point.
    #[must_use]
    pub fn chosen(mut self, chosen: bool) -> Self {
        self.chosen = chosen;
        self
    }
}

impl Line {
    /// Creates a line through points.
    #[must_use]
    pub fn new(name: impl Into<String>, style: usize, points: Vec<Point>) -> Self {
        Self { name: name.into(), style, points, ..Self::default() }
    }

    /// Makes the line a step function with censoring marks.
    #[must_use]
    pub fn steps(mut self, censored: Vec<(f64, f64)>) -> Self {
        self.steps = true;
        self.censored = censored;
        self
    }

    /// Adds a band around the line, as (x, low, high).
    #[must_use]
    pub fn band(mut self, band: Vec<(f64, f64, f64)>) -> Self {
        self.band = band;
        self
    }

    /// The CSS classes of its colour and its dash pattern. The pattern changes after every five lines, which
    /// separates similar colours such as 0 and 5, both blue.
    fn class(&self) -> String {
        format!("c{} d{}", self.style % COLOURS, self.style / 5 % 3)
    }
}

/// The largest number of points of a line that are all visible. On a longer line only highlighted points and the one under the
/// pointer are.
const MAX_VISIBLE_POINTS: usize = 30;
/// The margins of the plot area; the left one depends on the ticks.
const RIGHT_MARGIN: f64 = 20.0;
const TOP_MARGIN: f64 = 14.0;
const BOTTOM_MARGIN: f64 = 44.0;
/// The height of a row of the legend.
const LEGEND_ROW: f64 = 20.0;
/// The approximate width of a letter.
const LETTER_WIDTH: f64 = 7.0;
/// The maximum number of letters of a name in the legend.
const MAX_NAME_LETTERS: usize = 40;

impl LineChart {
    /// Creates a chart whose element has this ID; `label` is its description for screen readers.
    #[must_use]
    pub fn new(id: impl Into<String>, label: impl Into<String>, x: Scale, y: Scale) -> Self {
        let (id, label) = (id.into(), label.into());
        Self { id, label, width: 920.0, height: 300.0, x, y, lines: Vec::new() }
    }

    /// Sets the size of the chart, without the legend.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    /// Sets the lines.
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
        let error_bars = points().flat_map(|point| {
            let error = point.error.unwrap_or(0.0);
            [point.y - error, point.y + error]
        });
        let bands = lines.iter().flat_map(|line| &line.band).flat_map(|&(_, low, high)| [low, high]);
        // The title of the y-axis is above it.
        let top = if y.title.is_empty() { TOP_MARGIN } else { TOP_MARGIN + 14.0 };
        let y_axis = y.axis(error_bars.chain(bands), (height - BOTTOM_MARGIN, top));
        let y_ticks = y.ticks_on(&y_axis, 5);
        let longest = y_ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * LETTER_WIDTH + 14.0).max(40.0);
        let right = width - RIGHT_MARGIN;
        let x_axis = x.axis(points().map(|point| point.x), (left, right));
        let (legend, legend_height) = self.legend(left);
        let mut out = format!(
            "<svg id=\"{}\" viewBox=\"0 0 {width} {:.0}\" role=\"img\" aria-label=\"{}\"><g class=\"grid\">",
            escape(id),
            height + legend_height,
            escape(label)
        );
        for (value, text) in y_ticks {
            let at = y_axis.at(value);
            put!(out, "<path d=\"M{left:.1} {at:.1}H{right:.1}\"/>");
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                at + 4.0,
                escape(&text)
            );
        }
        let mut previous_end = f64::NEG_INFINITY;
        for (value, text) in x.ticks_on(&x_axis, (width / 75.0) as usize) {
            let (at, half) = (x_axis.at(value), LETTER_WIDTH * text.chars().count() as f64 / 2.0);
            // The text of a tick that would overlap the previous one is omitted.
            if at - half > previous_end {
                let y = height - BOTTOM_MARGIN + 18.0;
                put!(out, "<text x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(&text));
                previous_end = at + half + 4.0;
            }
        }
        put!(
            out,
            "</g><text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(left, right),
            height - 6.0,
            escape(&x.title)
        );
        if !y.title.is_empty() {
            let suffix = if y_axis.is_log() { ", logarithmic" } else { "" };
            put!(out, "<text class=\"axis\" x=\"4\" y=\"12\">{}{suffix}</text>", escape(&y.title));
        }
        lines.iter().for_each(|line| line.draw(&mut out, &x_axis, &y_axis));
        out + &legend + "</svg>"
    }

    /// The legend, in rows below the plot area, and its height.
    fn legend(&self, left: f64) -> (String, f64) {
        let (mut out, mut x, mut y) = (String::new(), left, self.height + 8.0);
        let mut rows = 0.0;
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let name = middle(&line.name, MAX_NAME_LETTERS);
            let width = 34.0 + LETTER_WIDTH * name.chars().count() as f64 + 18.0;
            if rows == 0.0 {
                rows = 1.0;
            } else if x + width > self.width - 4.0 {
                (x, y, rows) = (left, y + LEGEND_ROW, rows + 1.0);
            }
            let class = line.class();
            put!(out, "<path class=\"line {class}\" d=\"M{x:.1} {y:.1}h24\"/>");
            put!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}", x + 32.0, y + 4.0, escape(&name));
            if name != line.name {
                put!(out, "<title>{}</title>", super::text::name(&line.name));
            }
            out.push_str("</text>");
            x += width;
        }
        (out, if rows > 0.0 { rows * LEGEND_ROW + 4.0 } else { 0.0 })
    }
}

impl Line {
    fn draw(&self, out: &mut String, x: &Axis, y: &Axis) {
        let class = self.class();
        if !self.band.is_empty() {
            let edge = |value: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
                self.band.iter().map(|at| (x.at(at.0), y.at(value(at)))).collect()
            };
            // The upper edge from left to right, then the lower one back.
            let mut outline = path(&edge(|at| at.2), self.steps, false);
            let mut lower = edge(|at| at.1);
            lower.reverse();
            outline += &path(&lower, self.steps, true).replacen('M', "L", 1);
            put!(out, "<path class=\"band {class}\" d=\"{outline}Z\"/>");
        }
        let pixels: Vec<(f64, f64)> =
            self.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
        if pixels.len() > 1 {
            put!(out, "<path class=\"line {class}\" d=\"{}\"/>", path(&pixels, self.steps, false));
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
        put!(out, "<g{}>", if pixels.len() <= MAX_VISIBLE_POINTS { " class=\"few\"" } else { "" });
        for (point, (at, height)) in self.points.iter().zip(&pixels) {
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

/// A path through points, or through the corners of a step function, whose values hold until the next point on the right. With
/// `leftwards` the points are from right to left.
fn path(points: &[(f64, f64)], steps: bool, leftwards: bool) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        match (i, steps, leftwards) {
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
        assert!(out.contains("d=\"M30.0 46.0v8\""), "a vertical stroke marks the censoring: {out}");
        assert!(!out.contains("<circle"));
        let band = curve().steps(Vec::new()).band(vec![(0.0, 0.9, 1.0), (2.0, 0.4, 0.6)]);
        let mut out = String::new();
        band.draw(&mut out, &x, &y);
        assert!(out.contains("d=\"M0.0 0.0H20.0V40.0L20.0 60.0V10.0H0.0Z\""), "{out}");
    }

    #[test]
    fn names_and_labels_are_escaped() {
        let mut line = curve();
        line.name = "<b>".into();
        let chart = LineChart::new("a", "b\"", Scale::new("months"), Scale::new("").range(0.0, 1.0));
        let svg = chart.lines(vec![line]).svg();
        assert!(svg.contains("&lt;b&gt;</text>") && svg.contains("aria-label=\"b&quot;\""), "{svg}");
        assert!(svg.contains(">months</text>") && svg.contains(">0.2</text>"));
    }
}
