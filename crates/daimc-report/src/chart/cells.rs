//! Heat maps with numbers.

use super::text::{escape, middle, put};
use crate::numbers::extent;

/// A matrix of numbers; the larger a number, the darker its cell.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cells {
    /// The ID of its element.
    pub id: String,
    /// Its description for screen readers.
    pub label: String,
    /// The titles of the horizontal and of the vertical axis.
    pub axes: (String, String),
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The numbers by row; NaN for an empty cell.
    pub values: Vec<Vec<f64>>,
}

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 30.0;
const TOP: f64 = 28.0;
const LETTERS: usize = 16;

impl Cells {
    /// Creates an empty chart.
    #[must_use]
    pub fn new(id: impl Into<String>, label: impl Into<String>, axes: (String, String)) -> Self {
        let (id, label) = (id.into(), label.into());
        Self { id, label, axes, columns: Vec::new(), rows: Vec::new(), values: Vec::new() }
    }

    /// Renders the chart as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let Self { id, label, axes: (across, down), columns, rows, values } = self;
        let (low, high) = extent(values.iter().flatten().copied().filter(|value| value.is_finite()));
        let longest = rows.iter().map(|row| row.chars().count().min(LETTERS)).max().unwrap_or(0);
        let left = (7.2 * longest as f64 + 20.0).max(60.0);
        let width = (WIDTH - left - 10.0) / columns.len().max(1) as f64;
        let bottom = TOP + HEIGHT * rows.len() as f64;
        let mut out = format!(
            "<svg id=\"{}\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\
             <text class=\"axis\" x=\"{:.1}\" y=\"16\" text-anchor=\"end\">{}</text>",
            escape(id),
            bottom + 42.0,
            escape(label),
            left - 10.0,
            escape(down)
        );
        for (i, (row, values)) in rows.iter().zip(values).enumerate() {
            let y = TOP + HEIGHT * i as f64;
            let name = escape(&middle(row, LETTERS));
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                left - 10.0,
                y + 19.0
            );
            for (k, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
                let x = left + width * k as f64;
                put!(
                    out,
                    "<rect class=\"k0\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill-opacity=\"{:.2}\"/>",
                    0.08 + 0.6 * share
                );
                let middle = x + width / 2.0;
                put!(
                    out,
                    "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.3}</text>",
                    y + 19.0
                );
            }
        }
        for (k, column) in columns.iter().enumerate() {
            let x = left + width * (k as f64 + 0.5);
            let name = escape(&middle(column, LETTERS));
            put!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>", bottom + 18.0);
        }
        let middle = f64::midpoint(left, WIDTH - 10.0);
        put!(
            out,
            "<text class=\"axis\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></svg>",
            bottom + 36.0,
            escape(across)
        );
        out
    }
}
