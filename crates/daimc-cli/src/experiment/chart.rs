//! Plots as SVG, without a script and without anything to load.

use std::fmt::Write;

use super::table::{Line, Mean};

const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a89a00", "#6e6e6e", "#7a1f4d",
    "#27307f",
];

/// Series beyond this one are dashed, to be told apart without colours.
const PLAIN: usize = 5;

/// A plot.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name of its file, without an ending.
    pub name: String,
    pub title: String,
    pub kind: Drawing,
}

#[derive(Clone, Debug)]
pub enum Drawing {
    /// A bar for each name, from 0 to 1.
    Bars(Vec<(String, Mean)>),
    Lines(Lines),
    Heat(Heat),
}

/// A name, and values at places on the horizontal axis.
pub type Series = (String, Vec<(f64, Mean)>);

/// A line for each series over places on the horizontal axis.
#[derive(Clone, Debug)]
pub struct Lines {
    pub across: String,
    /// The labels of the horizontal axis and where they are.
    pub ticks: Vec<(f64, String)>,
    pub series: Vec<Series>,
    /// The range of the vertical axis; what is beyond is drawn at its end.
    pub range: (f64, f64),
}

impl Lines {
    /// A line for each method over the shares of missing instances, from 0 to 1.
    pub fn by_rate(lines: &[Line], score: fn(&Line) -> Mean) -> Self {
        let mut series: Vec<Series> = Vec::new();
        for line in lines {
            add(&mut series, &line.method, (line.missing, score(line)));
        }
        let mut rates: Vec<f64> = lines.iter().map(|line| line.missing).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let ticks = rates.into_iter().map(|rate| (rate, rate.to_string())).collect();
        Self { across: "share missing".into(), ticks, series, range: (0.0, 1.0) }
    }
}

/// Adds a value to the series of a name.
pub fn add(series: &mut Vec<Series>, name: &str, point: (f64, Mean)) {
    match series.iter_mut().find(|(known, _)| known == name) {
        Some((_, points)) => points.push(point),
        None => series.push((name.to_owned(), vec![point])),
    }
}

/// A coloured cell for each row and column.
#[derive(Clone, Debug)]
pub struct Heat {
    pub across: String,
    pub down: String,
    pub columns: Vec<String>,
    pub rows: Vec<String>,
    /// Row by row; NaN where there is none.
    pub values: Vec<Vec<f64>>,
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Chart {
    /// As part of a page.
    pub fn svg(&self) -> String {
        match &self.kind {
            Drawing::Bars(bars) => self.bars(bars),
            Drawing::Lines(lines) => self.lines(lines),
            Drawing::Heat(heat) => self.heat(heat),
        }
    }

    /// As a file of its own.
    pub fn file(&self) -> String {
        let name = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", self.svg().replacen("<svg ", name, 1))
    }

    fn open(&self, height: usize) -> String {
        let title = escape(&self.title);
        format!(
            "<svg viewBox=\"0 0 900 {height}\" role=\"img\" aria-label=\"{title}\" font-family=\"sans-serif\" \
             font-size=\"12\"><title>{title}</title>"
        )
    }

    fn bars(&self, bars: &[(String, Mean)]) -> String {
        let x = |value: f64| 260.0 + 560.0 * value.clamp(0.0, 1.0);
        let mut out = self.open(24 * bars.len() + 10);
        for (i, (name, Mean { mean, sd })) in bars.iter().enumerate() {
            let y = 24 * i + 6;
            out.push_str(&text(250.0, y as f64 + 13.0, "end", name));
            let _ = write!(
                out,
                "<rect x=\"260\" y=\"{y}\" width=\"{:.1}\" height=\"16\" fill=\"{}\"/>\
                 <path d=\"M{:.1} {}H{:.1}\" stroke=\"currentColor\" stroke-width=\"2\"/>",
                x(*mean) - 260.0,
                COLOURS[i % COLOURS.len()],
                x(mean - sd),
                y + 8,
                x(mean + sd)
            );
            out.push_str(&text(
                x(mean + sd).max(x(*mean)) + 8.0,
                y as f64 + 13.0,
                "start",
                &format!("{mean:.3}"),
            ));
        }
        out + "</svg>"
    }

    fn lines(&self, lines: &Lines) -> String {
        let Lines { across, ticks, series, range } = lines;
        let places = || series.iter().flat_map(|(_, points)| points).map(|(place, _)| *place);
        let (first, last) =
            (places().fold(f64::INFINITY, f64::min), places().fold(f64::NEG_INFINITY, f64::max));
        let (low, high) = *range;
        let x = |place: f64| 60.0 + 600.0 * (place - first) / (last - first).max(f64::MIN_POSITIVE);
        let y = |value: f64| {
            330.0 - 310.0 * ((value - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
        };
        let mut out = self.open(370.max(34 + 20 * series.len()));
        for step in 0..=5 {
            let value = low + (high - low) * f64::from(step) / 5.0;
            let _ =
                write!(out, "<path d=\"M60 {:.1}H660\" stroke=\"currentColor\" opacity=\".15\"/>", y(value));
            out.push_str(&text(50.0, y(value) + 4.0, "end", &short(value)));
        }
        for (place, label) in ticks {
            out.push_str(&text(x(*place), 350.0, "middle", label));
        }
        out.push_str(&text(360.0, 366.0, "middle", across));
        for (i, (name, points)) in series.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let dash = if i >= PLAIN { " stroke-dasharray=\"6 3\"" } else { "" };
            let path: Vec<String> = points
                .iter()
                .map(|(place, value)| format!("{:.1} {:.1}", x(*place), y(value.mean)))
                .collect();
            let line = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}");
            let _ = write!(out, "<path d=\"M{}\" {line}/>", path.join("L"));
            for (place, Mean { mean, sd }) in points {
                let _ = write!(
                    out,
                    "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"{colour}\"/>\
                     <path d=\"M{0:.1} {2:.1}V{3:.1}\" stroke=\"{colour}\"/>",
                    x(*place),
                    y(*mean),
                    y(mean - sd),
                    y(mean + sd)
                );
            }
            let key = 24 + 20 * i;
            let _ = write!(out, "<path d=\"M690 {key}h24\" {line}/>");
            out.push_str(&text(722.0, key as f64 + 4.0, "start", name));
        }
        out + "</svg>"
    }

    fn heat(&self, heat: &Heat) -> String {
        let Heat { across, down, columns, rows, values } = heat;
        let known = || values.iter().flatten().copied().filter(|value| value.is_finite());
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        let (width, height) = (760.0 / columns.len().max(1) as f64, 30.0);
        let bottom = 10.0 + height * rows.len() as f64;
        let mut out = self.open(bottom as usize + 40);
        for (i, (row, values)) in rows.iter().zip(values).enumerate() {
            let y = 10.0 + height * i as f64;
            out.push_str(&text(120.0, y + 19.0, "end", row));
            for (k, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
                let x = 130.0 + width * k as f64;
                let _ = write!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"#0072b2\" \
                     fill-opacity=\"{:.2}\"/>",
                    0.08 + 0.6 * share
                );
                out.push_str(&text(x + width / 2.0, y + 19.0, "middle", &format!("{value:.3}")));
            }
        }
        for (k, column) in columns.iter().enumerate() {
            out.push_str(&text(130.0 + width * (k as f64 + 0.5), bottom + 16.0, "middle", column));
        }
        out.push_str(&text(510.0, bottom + 34.0, "middle", across));
        out.push_str(&text(10.0, 29.0, "start", down));
        out + "</svg>"
    }
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escape(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"currentColor\">{text}</text>")
}

/// A number in few digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}
