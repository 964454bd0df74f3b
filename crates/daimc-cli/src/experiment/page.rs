//! What was found as a page that loads nothing, as Markdown, and as files of plots.

use std::fmt::Write;

use serde_json::Value;

use super::chart::{Chart, escape};
use super::ledger::Ledger;
use super::table::Table;
use crate::failure::Result;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:32px auto;padding:0 20px;color:#1b2430;\
background:#fff}svg{width:100%;height:auto}table{border-collapse:collapse;\
font-variant-numeric:tabular-nums}td,th{padding:4px 12px;border-bottom:1px solid #dde2e8;text-align:left}.quiet{color:#5b6675}\
pre,figure{overflow:auto;margin:0}@media(prefers-color-scheme:dark){body{background:#12161c;color:#e6e9ee}\
td,th{border-color:#2e3743}}";

/// A table with what has to be said about it, and its plots.
pub struct Section {
    pub title: String,
    pub notes: Vec<String>,
    pub table: Table,
    pub charts: Vec<Chart>,
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

/// The sections as a page; `key` says where it comes from.
pub fn html(title: &str, sections: &[Section], key: &Value) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=viewport content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    for Section { title, notes, table, charts } in sections {
        let _ = writeln!(out, "<h2>{}</h2>", escape(title));
        for note in notes {
            let _ = writeln!(out, "<p class=quiet>{}</p>", escape(note));
        }
        for chart in charts {
            let _ = write!(out, "<h3>{}</h3>\n{}\n", escape(&chart.title), chart.svg());
        }
        let cells = |tag: &str, cells: &[String]| -> String {
            let cells = cells.iter().map(|cell| format!("<{tag}>{}", escape(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows: String = table.rows.iter().map(|row| cells("td", row)).collect();
        let _ = writeln!(out, "<figure><table>{}{rows}</table></figure>", cells("th", &table.header));
    }
    let _ = write!(out, "<h2>Provenance</h2>\n<pre>{}</pre>\n</html>\n", escape(&format!("{key:#}")));
    out
}

/// Writes the tables, the page and the plots to the folder of a ledger.
pub fn write(ledger: &Ledger, page: &str, title: &str, sections: &[Section], key: &Value) -> Result<()> {
    let charts = sections.iter().flat_map(|section| &section.charts);
    let charts = charts.map(|chart| (format!("{}.svg", chart.name), chart.file()));
    let texts = [("table.md".to_owned(), markdown(sections)), (page.to_owned(), html(title, sections, key))];
    ledger.publish(texts.into_iter().chain(charts))
}
