//! The comparison as a page: a bar for each method, or a line where there are several shares of missing instances.

use std::fmt::Write;

use serde_json::Value;

use super::table::{Line, Mean};

const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a89a00", "#6e6e6e", "#7a1f4d",
    "#27307f",
];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:32px auto;padding:0 20px;color:#1b2430;\
background:#fff}svg{width:100%;height:auto}svg text{font-size:12px;fill:currentColor}table{border-collapse:collapse;\
font-variant-numeric:tabular-nums}td,th{padding:4px 12px;border-bottom:1px solid #dde2e8;text-align:left}.quiet{color:#5b6675}\
pre{overflow:auto}@media(prefers-color-scheme:dark){body{background:#12161c;color:#e6e9ee}td,th{border-color:#2e3743}}";

pub fn page(lines: &[Line], key: &Value) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Methods compared</title>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style>\n<h1>Methods compared</h1>\n\
         <p class=quiet>Means over the seeds with standard deviations. No method has seen the classes; where a method has \
         several settings, the classes chose the best.</p>\n"
    );
    for (name, of) in
        [("AC", (|line| line.ac) as fn(&Line) -> Mean), ("NMI", |line| line.nmi), ("ARI", |line| line.ari)]
    {
        let _ = write!(out, "<h2>{name}</h2>\n{}\n", chart(lines, name, of));
    }
    out.push_str("<h2>Table</h2>\n<table><tr><th>missing<th>method<th>setting<th>AC<th>NMI<th>ARI<th>seconds<th>runs</tr>\n");
    for line in lines {
        let score = |mean: Mean| format!("{:.3} ± {:.3}", mean.mean, mean.sd);
        let setting = match line.settings {
            1 => escape(&line.setting),
            count => format!("{}, best of {count}", escape(&line.setting)),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{setting}<td>{}<td>{}<td>{}<td>{:.2}<td>{}</tr>",
            line.missing,
            escape(&line.method),
            score(line.ac),
            score(line.nmi),
            score(line.ari),
            line.seconds,
            line.runs
        );
    }
    let _ =
        write!(out, "</table>\n<h2>Provenance</h2>\n<pre>{}</pre>\n</html>\n", escape(&format!("{key:#}")));
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn chart(lines: &[Line], name: &str, of: fn(&Line) -> Mean) -> String {
    let mut rates: Vec<f64> = lines.iter().map(|line| line.missing).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let mut methods: Vec<&str> = Vec::new();
    for line in lines {
        if !methods.contains(&line.method.as_str()) {
            methods.push(&line.method);
        }
    }
    if rates.len() > 1 { curves(lines, name, of, &rates, &methods) } else { bars(lines, name, of) }
}

/// A bar for each method.
fn bars(lines: &[Line], name: &str, of: fn(&Line) -> Mean) -> String {
    let height = 24 * lines.len() + 10;
    let x = |value: f64| 190.0 + 600.0 * value.clamp(0.0, 1.0);
    let mut out = format!("<svg viewBox=\"0 0 900 {height}\" role=img aria-label=\"{name} of each method\">");
    for (i, line) in lines.iter().enumerate() {
        let Mean { mean, sd } = of(line);
        let y = 24 * i + 6;
        let _ = write!(
            out,
            "<text x=180 y={} text-anchor=end>{}</text><rect x=190 y={y} width={:.1} height=16 fill=\"{}\"/>\
             <path d=\"M{:.1} {}H{:.1}\" stroke=currentColor stroke-width=2 /><text x={:.1} y={}>{mean:.3}</text>",
            y + 13,
            escape(&line.method),
            x(mean) - 190.0,
            COLOURS[i % COLOURS.len()],
            x(mean - sd),
            y + 8,
            x(mean + sd),
            x(mean + sd).max(x(mean)) + 8.0,
            y + 13
        );
    }
    out + "</svg>"
}

/// A line for each method, over the shares of missing instances.
fn curves(lines: &[Line], name: &str, of: fn(&Line) -> Mean, rates: &[f64], methods: &[&str]) -> String {
    let (first, last) = (rates[0], rates[rates.len() - 1]);
    let x = |rate: f64| 60.0 + 600.0 * (rate - first) / (last - first);
    let y = |value: f64| 330.0 - 310.0 * value.clamp(0.0, 1.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 900 370\" role=img aria-label=\"{name} of each method by share missing\">"
    );
    for tick in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        let _ = write!(
            out,
            "<path d=\"M60 {0:.1}H660\" stroke=currentColor opacity=.15 /><text x=50 y={1:.1} text-anchor=end>{tick}</text>",
            y(tick),
            y(tick) + 4.0
        );
    }
    for rate in rates {
        let _ = write!(out, "<text x={:.1} y=350 text-anchor=middle>{rate}</text>", x(*rate));
    }
    out.push_str("<text x=360 y=366 text-anchor=middle>share missing</text>");
    for (i, method) in methods.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let own: Vec<&Line> = lines.iter().filter(|line| line.method == *method).collect();
        let path: Vec<String> =
            own.iter().map(|line| format!("{:.1} {:.1}", x(line.missing), y(of(line).mean))).collect();
        let dash = if i >= 5 { " stroke-dasharray=\"6 3\"" } else { "" };
        let _ = write!(
            out,
            "<path d=\"M{}\" fill=none stroke=\"{colour}\" stroke-width=2{dash} />",
            path.join("L")
        );
        for line in own {
            let Mean { mean, sd } = of(line);
            let _ = write!(
                out,
                "<circle cx={0:.1} cy={1:.1} r=3.5 fill=\"{colour}\"/><path d=\"M{0:.1} {2:.1}V{3:.1}\" stroke=\"{colour}\"/>",
                x(line.missing),
                y(mean),
                y(mean - sd),
                y(mean + sd)
            );
        }
        let key = 24 + 20 * i;
        let _ = write!(
            out,
            "<path d=\"M690 {key}h24\" stroke=\"{colour}\" stroke-width=2{dash} /><text x=722 y={}>{}</text>",
            key + 4,
            escape(method)
        );
    }
    out + "</svg>"
}
