//! The table: one row per measurement, printed at the end, when the best rates of the computer are known.

use crate::machine::Machine;
use crate::timing::{Laps, Volume};

const COLUMNS: [(&str, Side); 10] = [
    ("section", Side::Left),
    ("case", Side::Left),
    ("type", Side::Left),
    ("threads", Side::Right),
    ("roofline ms", Side::Right),
    ("min ms", Side::Right),
    ("median ms", Side::Right),
    ("result", Side::Right),
    ("target", Side::Right),
    ("", Side::Left),
];

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// One measurement. Times are in seconds.
#[derive(Default)]
pub struct Row {
    pub case: String,
    /// Type of the values.
    pub values: &'static str,
    pub threads: usize,
    pub best: Option<f64>,
    pub median: Option<f64>,
    pub result: Outcome,
    pub target: Option<Target>,
    /// Other programs interfered.
    pub busy: bool,
}

/// The content of a measurement.
#[derive(Default)]
pub enum Outcome {
    #[default]
    Nothing,
    /// A number and its unit.
    Number(f64, &'static str),
    /// The share of the roofline that the best time reaches.
    Share(Volume),
}

#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl Row {
    pub fn with(self, laps: Laps) -> Self {
        Self { best: Some(laps.best), median: Some(laps.median), busy: laps.busy, ..self }
    }
}

#[derive(Default)]
pub struct Table {
    section: &'static str,
    rows: Vec<(&'static str, Row)>,
}

impl Table {
    /// The following rows belong to this section.
    pub fn section(&mut self, name: &'static str) {
        self.section = name;
    }

    pub fn add(&mut self, row: Row) {
        self.rows.push((self.section, row));
    }

    pub fn print(&self, machine: &Machine) {
        let (mut targets, mut missed) = (0, 0);
        let mut lines = vec![COLUMNS.map(|(name, _)| name.to_owned())];
        let rates = machine.rows();
        let rates = rates.iter().map(|row| ("machine", row));
        for (section, row) in rates.chain(self.rows.iter().map(|(section, row)| (*section, row))) {
            let roofline = match &row.result {
                Outcome::Share(volume) => Some(machine.roofline(row.threads, volume)),
                _ => None,
            };
            let percent = matches!(row.result, Outcome::Share(_));
            let value = match row.result {
                Outcome::Nothing => None,
                Outcome::Number(value, _) => Some(value),
                Outcome::Share(_) => roofline.zip(row.best).map(|(roofline, best)| 100.0 * roofline / best),
            };
            let met = row.target.zip(value).map(|(target, value)| target.is_met(value));
            targets += usize::from(met.is_some());
            missed += usize::from(met == Some(false));
            lines.push([
                section.into(),
                row.case.clone(),
                row.values.into(),
                row.threads.to_string(),
                milliseconds(roofline),
                milliseconds(row.best),
                milliseconds(row.median),
                match row.result {
                    Outcome::Nothing => String::new(),
                    Outcome::Number(value, unit) => format!("{} {unit}", number(value)),
                    Outcome::Share(_) => format!("{:.1} % of roofline", value.unwrap_or(f64::NAN)),
                },
                row.target.map_or(String::new(), |target| {
                    let (sign, bound) = match target {
                        Target::AtLeast(bound) => ('≥', bound),
                        Target::AtMost(bound) => ('≤', bound),
                    };
                    format!("{sign} {bound}{}", if percent { " %" } else { "" })
                }),
                match (met, row.busy) {
                    (Some(true), _) => "ok",
                    (Some(false), true) => "MISSED, busy",
                    (Some(false), false) => "MISSED",
                    (None, true) => "busy",
                    (None, false) => "",
                }
                .into(),
            ]);
        }
        print(&lines);
        println!(
            "\n{} of {targets} targets met; in rows marked busy, threads had to wait for other programs.",
            targets - missed
        );
    }
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| number(seconds * 1e3))
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The first line is the header.
fn print(lines: &[[String; COLUMNS.len()]]) {
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).max(2);
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(COLUMNS).zip(widths).map(|((cell, (_, side)), width)| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rules = COLUMNS.iter().zip(widths).map(|((_, side), width)| match side {
                Side::Left => "-".repeat(width),
                Side::Right => "-".repeat(width - 1) + ":",
            });
            println!("| {} |", rules.collect::<Vec<_>>().join(" | "));
        }
    }
}
