//! The files that a fit writes.

use std::io::{self, Write};
use std::path::Path;

use daimc::{Contributions, Explanation, Fit, Ids, Imputed, Matrix, Model, ViewModel, Views};
use daimc_report::Report;
use serde_json::Value;

use crate::annotate::Annotated;
use crate::clinical::Findings;
use crate::failure::{Failure, Result};
use crate::truth::Truth;
use crate::tsv::{field, push_field};
use crate::{blocks, digits};

/// The files of a result in every format; those that a new result does not write are removed.
pub const FILES: [&str; 18] = [
    "labels.tsv",
    "labels.parquet",
    "map.tsv",
    "map.parquet",
    "annotated.h5ad",
    "annotated.h5mu",
    "clinical.tsv",
    "survival.tsv",
    "embedding.tsv",
    "embedding.npy",
    "embedding.parquet",
    "contributions.tsv",
    "contributions.parquet",
    "features.tsv",
    "features.parquet",
    "report.html",
    "summary.json",
    "model.safetensors",
];

/// Appends formatted text to a buffer, which cannot fail.
macro_rules! push {
    ($out:expr, $($format:tt)*) => {{
        let _ = write!($out, $($format)*);
    }};
}

/// `labels.tsv`: id, cluster, confidence with six significant digits.
pub fn labels(
    out: &mut (impl Write + ?Sized),
    ids: &Ids,
    labels: &[usize],
    confidence: &[f64],
) -> io::Result<()> {
    writeln!(out, "id\tcluster\tconfidence")?;
    blocks::write(out, labels.len(), 3, |range, out| {
        for i in range {
            push_id(out, ids, i);
            push!(out, "\t{}\t", labels[i]);
            digits::significant(out, confidence[i]);
            out.push(b'\n');
        }
    })
}

/// The clusters of `predict --json`: a list of objects, formatted as `serde_json` does.
pub fn labels_as_json(
    out: &mut (impl Write + ?Sized),
    ids: &Ids,
    labels: &[usize],
    confidence: &[f64],
) -> io::Result<()> {
    let last = labels.len().saturating_sub(1);
    writeln!(out, "[")?;
    blocks::write(out, labels.len(), 4, |range, out| {
        for i in range {
            let (id, confidence) = (Value::from(ids.get(i)), Value::from(confidence[i]));
            push!(out, "  {{\n    \"id\": {id},\n    \"cluster\": {},\n", labels[i]);
            push!(out, "    \"confidence\": {confidence}\n  }}{}\n", if i < last { "," } else { "" });
        }
    })?;
    writeln!(out, "]")
}

/// `embedding.tsv`: id, then the columns of V with six significant digits.
pub fn embedding(out: &mut (impl Write + ?Sized), ids: &Ids, latent: &Matrix) -> io::Result<()> {
    write!(out, "id")?;
    (1..=latent.columns()).try_for_each(|k| write!(out, "\tv{k}"))?;
    writeln!(out)?;
    rows(out, ids, latent)
}

/// `map.tsv`: id, x, y with six significant digits.
pub fn map(out: &mut (impl Write + ?Sized), ids: &Ids, map: &Matrix) -> io::Result<()> {
    writeln!(out, "id\tx\ty")?;
    rows(out, ids, map)
}

/// The ID and the row of each instance, with six significant digits.
fn rows(out: &mut (impl Write + ?Sized), ids: &Ids, rows: &Matrix) -> io::Result<()> {
    blocks::write(out, rows.rows(), 1 + rows.columns(), |range, out| {
        for i in range {
            push_id(out, ids, i);
            for value in rows.row(i) {
                out.push(b'\t');
                digits::significant(out, *value);
            }
            out.push(b'\n');
        }
    })
}

/// `embedding.npy`: V, a row for each line of `labels.tsv`. The values are float32, more precise than the six digits of
/// the text; the model has full precision.
pub fn embedding_as_npy(out: &mut (impl Write + ?Sized), latent: &Matrix) -> io::Result<()> {
    let shape = format!("({}, {})", latent.rows(), latent.columns());
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // The values begin at a multiple of 64 bytes; ten bytes precede the header and a line end follows it.
    let padding = (header.len() + 11).next_multiple_of(64) - header.len() - 11;
    header.extend(std::iter::repeat_n(' ', padding));
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16 + 1).to_le_bytes())?;
    writeln!(out, "{header}")?;
    blocks::write(out, latent.rows(), latent.columns(), |range, out| {
        range.for_each(|i| out.extend(latent.row(i).iter().flat_map(|value| (*value as f32).to_le_bytes())));
    })
}

/// `features.tsv`: view, feature, cluster, weight, and the share of the runs in which the feature leads the cluster; empty
/// with one run.
pub fn features(out: &mut impl Write, model: &Model) -> io::Result<()> {
    writeln!(out, "view\tfeature\tcluster\tweight\tstability")?;
    for view in &model.views {
        blocks::write(out, model.options.clusters, 5 * view.basis.rows(), |clusters, out| {
            for cluster in clusters {
                for (f, weight) in model.weights(view, cluster).into_iter().enumerate() {
                    push_field(out, &view.name);
                    out.push(b'\t');
                    match &view.feature_names {
                        Some(names) => push_field(out, &names[f]),
                        None => push!(out, "{f}"),
                    }
                    push!(out, "\t{cluster}\t{weight}\t");
                    if let Some(stability) = &view.stability {
                        push!(out, "{:.3}", stability[(f, cluster)]);
                    }
                    out.push(b'\n');
                }
            }
        })?;
    }
    Ok(())
}

/// `contributions.tsv`: id, cluster, the rival that it was compared with, then the contribution of each view to the
/// cluster; empty if the instance is missing from the view.
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
    blocks::write(out, labels.len(), 3 + model.views.len(), |range, out| {
        for i in range {
            push_id(out, ids, i);
            push!(out, "\t{}\t", labels[i]);
            if let Some(rival) = contributions.rival(i) {
                push!(out, "{rival}");
            }
            for share in contributions.shares(i) {
                out.push(b'\t');
                if let Some(share) = share {
                    digits::decimals(out, share);
                }
            }
            out.push(b'\n');
        }
    })
}

/// A view that `impute` has filled in: id, then its features. Values have the digits of the precision of the view.
pub fn table(
    out: &mut (impl Write + ?Sized),
    ids: &Ids,
    view: &ViewModel,
    values: &Matrix,
    single: bool,
) -> io::Result<()> {
    write!(out, "id")?;
    (0..values.columns()).try_for_each(|f| write!(out, "\t{}", feature(view, f)))?;
    writeln!(out)?;
    blocks::write(out, values.rows(), 1 + values.columns(), |range, out| {
        for i in range {
            push_id(out, ids, i);
            for value in values.row(i) {
                out.push(b'\t');
                push_value(out, *value, single);
            }
            out.push(b'\n');
        }
    })
}

/// The imputed values: id, feature, value.
pub fn gaps(
    out: &mut (impl Write + ?Sized),
    ids: &Ids,
    view: &ViewModel,
    imputed: &Imputed,
    single: bool,
) -> io::Result<()> {
    let names: Vec<String> = (0..imputed.values.columns()).map(|f| feature(view, f)).collect();
    writeln!(out, "id\tfeature\tvalue")?;
    blocks::write(out, imputed.gaps.len(), 3 * names.len(), |range, out| {
        for gap in &imputed.gaps[range] {
            let all = (0..names.len()).filter(|_| gap.features.is_none());
            for f in all.chain(gap.features.iter().flatten().map(|&f| f as usize)) {
                push_id(out, ids, gap.instance);
                push!(out, "\t{}\t", names[f]);
                push_value(out, imputed.values[(gap.instance, f)], single);
                out.push(b'\n');
            }
        }
    })
}

/// The name of a feature as a field; a feature without a name has its number, as in `simulate`.
fn feature(view: &ViewModel, f: usize) -> String {
    view.feature_names.as_ref().map_or_else(|| format!("f{f}"), |names| field(&names[f]))
}

fn push_value(out: &mut Vec<u8>, value: f64, single: bool) {
    if single {
        push!(out, "{}", value as f32);
    } else {
        push!(out, "{value}");
    }
}

/// Reads the model of `model.safetensors`.
pub fn model(path: &Path) -> Result<Model> {
    Model::load(path).map_err(|error| of_file(path, &error))
}

/// Reads the whole fit of `model.safetensors`.
pub fn fitted(path: &Path) -> Result<Fit> {
    Fit::load(path).map_err(|error| of_file(path, &error))
}

/// Reads the whole fit of `model.safetensors`, or a model alone as a fit without instances.
pub fn fit_or_model(path: &Path) -> Result<Fit> {
    Fit::load_or_model(path).map_err(|error| of_file(path, &error))
}

fn of_file(path: &Path, error: &daimc::Error) -> Failure {
    match error {
        // This error names the file already.
        daimc::Error::Io { .. } => Failure::Data(error.to_string()),
        _ if path.extension().is_none_or(|ending| ending != "safetensors") => Failure::Data(format!(
            "{}: {error}; name the folder of a fit, or the model.safetensors in it",
            path.display()
        )),
        _ => Failure::Data(format!("{}: {error}", path.display())),
    }
}

/// Results and options that a report has in addition to the views and the fit.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    pub truth: Option<&'a Truth>,
    pub clinical: Option<&'a Findings>,
    /// The title of the report; `None`: the default title.
    pub title: Option<&'a str>,
    /// The annotated input file to copy with the results added, and the folder for temporary files.
    pub annotated: Option<(&'a Annotated, &'a Path)>,
}

/// `report.html`; the explanation is computed if it is not given.
pub fn report(
    views: &Views<'_>,
    fitted: &Fit,
    explanation: Option<&Explanation>,
    extras: Extras<'_>,
    provenance: &Value,
) -> Result<String> {
    let mut report = Report::new(views, fitted).provenance(provenance);
    if let Some(explanation) = explanation {
        report = report.explanation(explanation);
    }
    if let Some(title) = extras.title {
        report = report.title(title);
    }
    if let Some(truth) = extras.truth {
        report = report.truth(&truth.classes);
    }
    if let Some(Findings { associations, survival, .. }) = extras.clinical {
        report = report.clinical(associations, survival.as_ref());
    }
    Ok(report.render()?)
}

/// Appends the ID of an instance.
fn push_id(out: &mut Vec<u8>, ids: &Ids, i: usize) {
    match ids {
        Ids::Numbers(_) => push!(out, "{i}"),
        Ids::Names(names) => push_field(out, &names[i]),
    }
}
