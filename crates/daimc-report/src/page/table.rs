//! Tables that can be sorted and downloaded.

use super::text::{counted, escape, name, put};

/// A table of the page.
pub(crate) struct Table {
    id: &'static str,
    title: &'static str,
    columns: Vec<Column>,
    rows: Vec<String>,
}

struct Column {
    name: &'static str,
    numeric: bool,
}

/// A cell. A number has a value, for sorting and download, and a text.
pub(crate) enum Cell {
    Text(String),
    Number(f64, String),
    Empty,
}

impl Table {
    /// Creates a table with these columns; `true` marks a numeric column.
    pub fn new(id: &'static str, title: &'static str, columns: &[(&'static str, bool)]) -> Self {
        let columns = columns.iter().map(|&(name, numeric)| Column { name, numeric }).collect();
        Self { id, title, columns, rows: Vec::new() }
    }

    pub fn push(&mut self, cells: &[Cell]) {
        let mut row = String::from("<tr>");
        for cell in cells {
            match cell {
                Cell::Text(text) => put!(row, "<td>{}</td>", name(text)),
                Cell::Number(value, text) => {
                    put!(row, "<td class=n data-v=\"{value}\">{}</td>", escape(text));
                }
                Cell::Empty => put!(row, "<td class=n data-v=\"\">–</td>"),
            }
        }
        row.push_str("</tr>\n");
        self.rows.push(row);
    }

    /// Renders the table with its heading, its download button and a note, for example about omitted rows.
    pub fn finish(self, note: &str) -> String {
        let Self { id, title, columns, rows } = self;
        let mut out = String::new();
        put!(
            out,
            "<div class=table-head><h3 id=\"{id}-title\">{title} <small>{}",
            counted(rows.len(), "row")
        );
        if !note.is_empty() {
            put!(out, "; {}", escape(note));
        }
        put!(
            out,
            "</small></h3><button type=button class=download data-table=\"{id}\">Download TSV</button></div>"
        );
        put!(out, "<div class=scroll tabindex=0 role=region aria-labelledby=\"{id}-title\">");
        put!(out, "<table class=sortable id=\"{id}\"><thead><tr>");
        for Column { name, numeric } in columns {
            let class = if numeric { " class=n" } else { "" };
            put!(out, "<th scope=col{class}><button type=button>{}</button></th>", escape(name));
        }
        put!(out, "</tr></thead><tbody>\n{}</tbody></table></div>", rows.concat());
        out
    }
}
