//! The plots of experiments, drawn by [`daimc_report::chart`].

use daimc_report::chart::{self, Bar, Bars, Cells, LineChart, Point, Scale};

use super::table::{Line, Mean};

/// A plot.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name of its file, without an extension.
    pub name: String,
    /// The heading.
    pub title: String,
    /// What is drawn.
    pub kind: Drawing,
}

/// The content of a plot.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// A bar for each name, from 0 to 1.
    Bars(Vec<(String, Mean)>),
    /// A line for each series.
    Lines(Lines),
    /// A matrix of coloured cells.
    Heat(Heat),
}

/// A name, and values at positions on the horizontal axis.
pub type Series = (String, Vec<(f64, Mean)>);

/// A line chart.
#[derive(Clone, Debug)]
pub struct Lines {
    pub across: String,
    /// The labels of the horizontal axis and their positions.
    pub ticks: Vec<(f64, String)>,
    pub series: Vec<Series>,
    /// The range of the vertical axis; values outside are drawn at its end.
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

/// A heat map.
#[derive(Clone, Debug)]
pub struct Heat {
    pub across: String,
    pub down: String,
    pub columns: Vec<String>,
    pub rows: Vec<String>,
    /// The values row by row; NaN if missing.
    pub values: Vec<Vec<f64>>,
}

impl Chart {
    /// As part of a page.
    pub fn figure(&self) -> String {
        chart::figure(&self.name, &self.title, &self.svg(), "")
    }

    /// As a file of its own.
    pub fn file(&self) -> String {
        chart::standalone(&self.svg())
    }

    fn svg(&self) -> String {
        let Self { name, title, kind } = self;
        match kind {
            Drawing::Bars(bars) => {
                let bar = |(name, Mean { mean, sd }): &(String, Mean)| {
                    Bar::new(name, *mean, *sd, format!("{mean:.3}"))
                };
                Bars::new(name, title, (0.0, 1.0), bars.iter().map(bar).collect()).svg()
            }
            Drawing::Lines(Lines { across, ticks, series, range }) => {
                let line = |(style, (name, points)): (usize, &Series)| {
                    let point = |&(place, Mean { mean, sd }): &(f64, Mean)| {
                        Point::new(place, mean, format!("{name}: {mean:.3} ± {sd:.3}")).error(sd)
                    };
                    chart::Line::new(name, style, points.iter().map(point).collect())
                };
                let x = Scale::new(across).ticks(ticks.clone());
                let y = Scale::new("").range(range.0, range.1);
                let lines = series.iter().enumerate().map(line).collect();
                LineChart::new(name, title, x, y).size(920.0, 380.0).lines(lines).svg()
            }
            Drawing::Heat(Heat { across, down, columns, rows, values }) => {
                let mut cells = Cells::new(name, title, (across.clone(), down.clone()));
                (cells.columns, cells.rows, cells.values) = (columns.clone(), rows.clone(), values.clone());
                cells.svg()
            }
        }
    }
}
