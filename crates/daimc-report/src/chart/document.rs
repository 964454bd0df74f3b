//! The HTML page of charts, and charts as files.

use super::marks;
use super::text::{escape, put};

/// The style sheets of charts and of the page.
const CHART: &str = include_str!("../../assets/chart.css");
const PAGE: &str = include_str!("../../assets/page.css");
/// The script of every page: sorts and downloads tables, and saves figures.
pub(crate) const SCRIPT: &str = include_str!("../../assets/page.js");
/// The content security policy: the page cannot load anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A page that loads nothing, from a title, the contents of its body, and scripts.
pub(crate) fn shell(title: &str, body: &str, scripts: &str) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=generator content=\"daimc {}\">\n\
         <link rel=icon href=\"data:,\">\n<title>{title}</title>\n<style>\n{CHART}{PAGE}</style></head>\n<body>\n{}",
        env!("CARGO_PKG_VERSION"),
        marks::definitions(),
    );
    put!(
        out,
        "{body}<footer>Made by daimc {}. This page is complete: it loads nothing and sends nothing.</footer>\n\
         {scripts}</body></html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// A page in the style of the report: a title, a subtitle, and a body of HTML. It loads nothing; its figures can be saved.
#[must_use]
pub fn document(title: &str, subtitle: &str, body: &str) -> String {
    let header = format!(
        "<header><h1>{}</h1><p class=subtitle>{}</p></header>\n<main>\n{body}</main>\n",
        escape(title),
        escape(subtitle)
    );
    shell(title, &header, &format!("<script>\n{SCRIPT}</script>\n"))
}

/// A figure of a page: a chart that can be saved under `name`, with a heading and a caption, both of which may be empty.
#[must_use]
pub fn figure(name: &str, heading: &str, svg: &str, caption: &str) -> String {
    let mut out = format!("<figure data-name=\"{}\">", escape(name));
    if !heading.is_empty() {
        put!(out, "<h3>{}</h3>", escape(heading));
    }
    put!(out, "<div class=chart>{svg}</div>");
    if !caption.is_empty() {
        put!(out, "<figcaption>{}</figcaption>", escape(caption));
    }
    out.push_str("</figure>\n");
    out
}

/// A table of a page.
#[must_use]
pub fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let body: String = rows.iter().map(|row| cells("td", row)).collect();
    format!(
        "<div class=\"scroll wide\"><table class=lined><thead>{}</thead><tbody>{body}</tbody></table></div>\n",
        cells("th", header)
    )
}

/// Converts a chart to an SVG file with the colours of light mode. Many drawing programs do not support CSS variables, so they
/// are replaced by their values.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let light = CHART.split_once("@media").map_or(CHART, |(light, _)| light);
    let mut style = CHART.split_once("/* Marks */").map_or("", |(_, marks)| marks).to_owned();
    for (name, value) in
        light.split([';', '{']).filter_map(|own| own.trim().strip_prefix("--")?.split_once(':'))
    {
        style = style.replace(&format!("var(--{name})"), value.trim());
    }
    let opening = "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\" style=\"background:#fff\" ";
    let mut file =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", svg.replacen("<svg ", opening, 1));
    if let Some(at) = file.find("<svg ").and_then(|start| Some(start + file[start..].find('>')? + 1)) {
        file.insert_str(at, &format!("<style>{style}</style>"));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standalone_chart_has_no_css_variables() {
        let file = standalone("<svg id=\"a\" viewBox=\"0 0 1 1\"><rect class=\"k0\"/></svg>");
        assert!(file.starts_with("<?xml") && file.contains("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(file.contains(".k0 { fill: #0072b2; }"), "{file}");
        assert!(!file.contains("var("), "{file}");
    }
}
