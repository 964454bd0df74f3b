//! Provenance of the result.

use daimc::{Decision, Fit};
use serde_json::Value;

use super::text::{escape, name, put, shorten};

/// The maximum length of a JSON document that is shown in full.
const LONGEST: usize = 200_000;

pub(crate) fn section(fit: &Fit, provenance: Option<&Value>) -> String {
    let mut out = String::new();
    if let Some(provenance) = provenance {
        facts(&mut out, provenance);
        document(&mut out, "Provenance as JSON", provenance);
    }
    let options = serde_json::to_value(&fit.model.options).expect("options can be written as JSON");
    document(&mut out, "Options of the fit as JSON", &options);
    let timings = serde_json::to_value(fit.timings).expect("timings can be written as JSON");
    document(&mut out, "Seconds per stage as JSON", &timings);
    out
}

/// The automatic choices of the fit, with their reasons.
pub(crate) fn choices(fit: &Fit) -> String {
    let mut out = String::from("<h3>Scaling of the views</h3><dl class=facts>");
    for view in fit.model.views.iter().take(100) {
        put!(
            out,
            "<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>",
            name(&view.name),
            view.scaling.scale,
            escape(&view.scaling.reason)
        );
    }
    out.push_str("</dl>");
    let Decision { used, reason, .. } = &fit.neighbours;
    put!(out, "<h3>Neighbourhoods</h3><dl class=facts><div><dt>use</dt><dd>{used} ");
    put!(out, "<small>{}</small></dd></div></dl>", escape(reason));
    out
}

/// The entries of the provenance that fit on a line.
fn facts(out: &mut String, provenance: &Value) {
    let Value::Object(entries) = provenance else { return };
    out.push_str("<dl class=facts>");
    for (key, value) in entries {
        let text = match value {
            Value::String(text) => shorten(text, 300),
            Value::Number(value) => value.to_string(),
            Value::Bool(true) => "yes".into(),
            Value::Bool(false) => "no".into(),
            Value::Null => "–".into(),
            Value::Array(_) | Value::Object(_) => continue,
        };
        put!(out, "<div><dt>{}</dt><dd>{}</dd></div>", name(key), escape(&text));
    }
    out.push_str("</dl>");
}

fn document(out: &mut String, title: &str, value: &Value) {
    let text = serde_json::to_string_pretty(value).expect("a JSON value can be written");
    put!(out, "<details><summary>{title}</summary><pre>{}</pre>", escape(&shorten(&text, LONGEST)));
    if text.chars().count() > LONGEST {
        out.push_str("<p class=note>It is too long to be shown in full.</p>");
    }
    out.push_str("</details>");
}
