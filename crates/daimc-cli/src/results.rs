//! The files that a fit leaves.

use std::io::{self, Write};
use std::path::Path;

use daimc::{Contributions, Ids, Model, Views};
use daimc_report::Report;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::truth::Truth;

/// `labels.tsv`: id, cluster, confidence.
pub fn labels(
    out: &mut (impl Write + ?Sized),
    ids: &Ids,
    labels: &[usize],
    confidence: &[f64],
) -> io::Result<()> {
    writeln!(out, "id\tcluster\tconfidence")?;
    for (i, (label, confidence)) in labels.iter().zip(confidence).enumerate() {
        writeln!(out, "{}\t{label}\t{confidence}", field(&ids.get(i)))?;
    }
    Ok(())
}

/// `embedding.tsv`: id, then the columns of V.
pub fn embedding(out: &mut impl Write, model: &Model) -> io::Result<()> {
    write!(out, "id")?;
    (1..=model.latent.columns()).try_for_each(|k| write!(out, "\tv{k}"))?;
    writeln!(out)?;
    for (i, row) in model.latent.iter_rows().enumerate() {
        write!(out, "{}", field(&model.ids.get(i)))?;
        row.iter().try_for_each(|value| write!(out, "\t{value}"))?;
        writeln!(out)?;
    }
    Ok(())
}

/// `features.tsv`: view, feature, cluster, weight, and the share of the runs in which the feature leads the cluster; empty
/// with one run.
pub fn features(out: &mut impl Write, model: &Model) -> io::Result<()> {
    writeln!(out, "view\tfeature\tcluster\tweight\tstability")?;
    for view in &model.views {
        let names: Vec<String> = match &view.feature_names {
            Some(names) => names.iter().map(|name| field(name)).collect(),
            None => (0..view.basis.rows()).map(|f| f.to_string()).collect(),
        };
        let view_name = field(&view.name);
        for cluster in 0..model.options.clusters {
            for (f, (name, weight)) in names.iter().zip(model.weights(view, cluster)).enumerate() {
                write!(out, "{view_name}\t{name}\t{cluster}\t{weight}\t")?;
                if let Some(stability) = &view.stability {
                    write!(out, "{:.3}", stability[(f, cluster)])?;
                }
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

/// `contributions.tsv`: id, cluster, the rival that it was compared with, then for each view what it contributes to the
/// cluster; empty where the view does not show the instance.
pub fn contributions(
    out: &mut (impl Write + ?Sized),
    model: &Model,
    ids: &Ids,
    labels: &[usize],
    contributions: &Contributions,
) -> io::Result<()> {
    write!(out, "id\tcluster\trival")?;
    model.views.iter().try_for_each(|view| write!(out, "\t{}", field(&view.name)))?;
    writeln!(out)?;
    for (i, label) in labels.iter().enumerate() {
        let rival = contributions.rival(i).map(|rival| rival.to_string()).unwrap_or_default();
        write!(out, "{}\t{label}\t{rival}", field(&ids.get(i)))?;
        for share in contributions.shares(i) {
            match share {
                Some(share) => write!(out, "\t{share:.4}")?,
                None => write!(out, "\t")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Reads `model.safetensors`.
pub fn model(path: &Path) -> Result<Model> {
    Model::load(path).map_err(|error| match error {
        // This one names the file itself.
        daimc::Error::Io { .. } => Failure::Data(error.to_string()),
        _ => Failure::Data(format!("{}: {error}", path.display())),
    })
}

/// `report.html`.
pub fn report(views: &Views<'_>, model: &Model, truth: Option<&Truth>, provenance: &Value) -> Result<String> {
    let mut report = Report::new(views, model).provenance(provenance);
    if let Some(truth) = truth {
        report = report.truth(&truth.classes);
    }
    Ok(report.render()?)
}

/// A text as a field of a TSV file: quoted where it would not be one field otherwise.
pub fn field(text: &str) -> String {
    if text.contains(['\t', '\n', '\r', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
