//! The results as a self-contained page, as Markdown, and as files of plots.

use std::fmt::Write;

use daimc_report::chart::{self, escape};
use serde_json::Value;

use super::chart::Chart;
use super::ledger::Ledger;
use super::table::Table;
use crate::harness::Result;

/// A table with notes and plots.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Paragraphs above the table.
    pub notes: Vec<String>,
    /// The table.
    pub table: Table,
    /// The plots.
    pub(crate) charts: Vec<Chart>,
}

/// The sections as Markdown.
pub fn markdown(sections: &[Section]) -> String {
    let mut out = String::new();
    for (i, Section { title, notes, table, .. }) in sections.iter().enumerate() {
        let gap = if i > 0 { "\n" } else { "" };
        let _ = write!(out, "{gap}## {title}\n\n");
        for note in notes {
            let _ = write!(out, "{note}\n\n");
        }
        out.push_str(&table.markdown());
    }
    out
}

/// The sections as a page with the provenance `key`.
pub fn html(title: &str, sections: &[Section], key: &Value) -> String {
    let mut body = String::new();
    for Section { title, notes, table, charts } in sections {
        let _ = writeln!(body, "<section><h2>{}</h2>", escape(title));
        for note in notes {
            let _ = writeln!(body, "<p class=lead>{}</p>", escape(note));
        }
        charts.iter().for_each(|chart| body.push_str(&chart.figure()));
        let _ = writeln!(body, "{}</section>", chart::table(&table.header, &table.rows));
    }
    let key = escape(&format!("{key:#}"));
    let _ = writeln!(body, "<section><h2>Provenance</h2>\n<pre>{key}</pre></section>");
    let subtitle = format!("daimc {}", env!("CARGO_PKG_VERSION"));
    chart::document(title, &subtitle, &body)
}

/// Writes the tables, the page and the plots to the folder of a ledger.
pub fn write(ledger: &Ledger, page: &str, title: &str, sections: &[Section], key: &Value) -> Result<()> {
    let charts = sections.iter().flat_map(|section| &section.charts);
    let charts = charts.map(|chart| (format!("{}.svg", chart.name), chart.file()));
    let texts = [("table.md".to_owned(), markdown(sections)), (page.to_owned(), html(title, sections, key))];
    ledger.publish(texts.into_iter().chain(charts))
}
