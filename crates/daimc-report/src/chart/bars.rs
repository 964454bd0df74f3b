//! Bar charts.

use super::axis::{Axis, tick};
use super::marks::COLOURS;
use super::text::{escape, middle, name, put};

/// A chart of horizontal bars, one below the other.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bars {
    id: String,
    label: String,
    range: (f64, f64),
    rows: Vec<Bar>,
}

/// A bar of [`Bars`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The half-length of its error bar.
    pub error: f64,
    /// The text after it.
    pub text: String,
}

impl Bar {
    /// Creates a bar with an error, which may be zero.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64, error: f64, text: impl Into<String>) -> Self {
        Self { name: name.into(), value, error, text: text.into() }
    }
}

const WIDTH: f64 = 920.0;
const ROW: f64 = 24.0;
const RIGHT: f64 = 70.0;
const LETTERS: usize = 34;

impl Bars {
    /// Creates a chart over an axis with this range; `label` is its description for screen readers.
    #[must_use]
    pub fn new(id: impl Into<String>, label: impl Into<String>, range: (f64, f64), rows: Vec<Bar>) -> Self {
        Self { id: id.into(), label: label.into(), range, rows }
    }

    /// Renders the chart as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let longest = self.rows.iter().map(|bar| bar.name.chars().count().min(LETTERS)).max().unwrap_or(0);
        let left = 7.2 * longest as f64 + 20.0;
        let bottom = ROW * self.rows.len() as f64 + 8.0;
        let x = Axis::linear(self.range, (left, WIDTH - RIGHT));
        let mut out = format!(
            "<svg id=\"{}\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\"><g class=\"grid\">",
            escape(&self.id),
            bottom + 22.0,
            escape(&self.label)
        );
        for value in x.ticks(5) {
            let at = x.at(value);
            put!(out, "<path d=\"M{at:.1} 4V{bottom:.1}\"/>");
            put!(
                out,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                tick(value)
            );
        }
        out.push_str("</g>");
        for (row, bar) in self.rows.iter().enumerate() {
            let y = ROW * row as f64 + 6.0;
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
                left - 10.0,
                y + 13.0,
                escape(&middle(&bar.name, LETTERS)),
                name(&bar.name)
            );
            put!(
                out,
                "<rect class=\"k{}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"16\" rx=\"1.5\"/>",
                row % COLOURS,
                (x.at(bar.value) - left).max(0.5)
            );
            let (low, high) = (x.at(bar.value - bar.error), x.at(bar.value + bar.error));
            if bar.error > 0.0 {
                put!(out, "<path class=\"whisker\" d=\"M{low:.1} {0:.1}H{high:.1}\"/>", y + 8.0);
            }
            put!(
                out,
                "<text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                high.max(x.at(bar.value)) + 8.0,
                y + 13.0,
                escape(&bar.text)
            );
        }
        out + "</svg>"
    }
}
