//! Adds results to annotated data: a copy of an `.h5ad` or `.h5mu` file with clusters in `obs` and the representation in `obsm`.

use std::io::Write;
use std::path::Path;

use daimc_core::{Ids, Matrix};
use hdf5_pure::{AttrValue, DatasetBuilder, File, Group};

use crate::ids::{Duplicates, Index, Matching};
use crate::quiet::caught;
use crate::{Position, Result, read_attributes};

/// The results of a fit.
pub struct Annotation<'a> {
    /// The name of the column of clusters, and the prefix of other names.
    pub key: &'a str,
    /// The ID of each instance.
    pub ids: &'a Ids,
    /// The cluster of each instance.
    pub labels: &'a [usize],
    /// The number of clusters.
    pub clusters: usize,
    /// The confidence of each instance.
    pub confidence: &'a [f64],
    /// The representation.
    pub latent: &'a Matrix,
    /// The map, if there is one.
    pub map: Option<&'a Matrix>,
}

/// Writes a copy of an `.h5ad` or `.h5mu` file with the columns `KEY` and `KEY_confidence` in `obs` and the arrays `X_KEY` and, for
/// the map, `X_KEY_map` in `obsm`. Rows are found by ID, as `matching` says; other rows get no cluster, and NaN. Existing columns
/// and arrays of these names are replaced. A temporary file in `folder` holds the copy.
///
/// # Errors
/// When the file is not an `.h5ad` or `.h5mu` file, has a layout that does not allow additions, or cannot be copied.
pub fn annotate(
    source: &Path,
    annotation: &Annotation<'_>,
    matching: &Matching,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<()> {
    let mut index = Index::new(matching);
    for i in 0..annotation.labels.len() {
        index.insert(&annotation.ids.get(i), i);
    }
    let taken = Matching { duplicates: Duplicates::First, ..Matching::default() };
    let rows: Vec<Option<usize>> =
        read_attributes(source, &taken)?.ids.iter().map(|id| index.get(id)).collect();
    let place = Position::file(source);
    let uncopied = |error| place.fault(format!("cannot be copied to {}: {error}", folder.display()));
    let copy = tempfile::NamedTempFile::new_in(folder).map_err(uncopied)?;
    std::fs::copy(source, copy.path()).map_err(uncopied)?;
    let wrong = |reason: &str| {
        place
            .fault(format!("nothing can be added to a copy of it ({reason}); read and write it with anndata"))
    };
    match caught(|| write(copy.path(), annotation, &rows)) {
        Some(written) => written.map_err(|error| wrong(&error.to_string()))?,
        None => return Err(wrong("its layout is not understood")),
    }
    let mut copy = std::fs::File::open(copy.path()).map_err(uncopied)?;
    std::io::copy(&mut copy, out).map_err(uncopied).map(drop)
}

fn write(target: &Path, annotation: &Annotation<'_>, rows: &[Option<usize>]) -> Result<(), hdf5_pure::Error> {
    let Annotation { key, labels, confidence, latent, map, clusters, .. } = annotation;
    let file = File::open_rw(target)?;
    let root = file.root();
    let obs = root.group("obs")?;
    let confident = format!("{key}_confidence");
    let mut order = column_order(&obs)?;
    for name in [*key, &confident] {
        if obs.group(name).is_ok() || obs.dataset(name).is_ok() {
            obs.delete(name)?;
        }
        if !order.iter().any(|own| own == name) {
            order.push(name.to_owned());
        }
    }
    let column = obs.create_group_with(key, |group| {
        encode("categorical", "0.2.0", |name, value| {
            group.set_attr(name, value);
        });
        group.set_attr("ordered", AttrValue::U8(0));
    })?;
    let names: Vec<String> = (0..*clusters).map(|cluster| cluster.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    column.create_dataset("categories", |array| {
        array.with_vlen_strings(&names);
        encode_array(array, "string-array");
    })?;
    let codes: Vec<i32> =
        rows.iter().map(|row| row.map_or(-1, |row| i32::try_from(labels[row]).unwrap_or(-1))).collect();
    column.create_dataset("codes", |array| {
        array.with_i32_data(&codes);
        encode_array(array, "array");
    })?;
    let sure: Vec<f64> = rows.iter().map(|row| row.map_or(f64::NAN, |row| confidence[row])).collect();
    obs.create_dataset(&confident, |array| {
        array.with_f64_data(&sure);
        encode_array(array, "array");
    })?;
    obs.set_attr("column-order", AttrValue::VarLenStringArray(order))?;
    let obsm = match root.group("obsm") {
        Ok(obsm) => obsm,
        Err(_) => root.create_group_with("obsm", |group| {
            encode("dict", "0.1.0", |name, value| {
                group.set_attr(name, value);
            });
        })?,
    };
    for (name, found) in [(format!("X_{key}"), Some(*latent)), (format!("X_{key}_map"), *map)] {
        if obsm.dataset(&name).is_ok() {
            obsm.delete(&name)?;
        }
        let Some(found) = found else { continue };
        let absent = vec![f64::NAN; found.columns()];
        let row = |row: &Option<usize>| row.map_or(&absent[..], |row| found.row(row));
        let values: Vec<f64> = rows.iter().flat_map(row).copied().collect();
        obsm.create_dataset(&name, |array| {
            array.with_f64_data(&values).with_shape(&[rows.len() as u64, found.columns() as u64]);
            encode_array(array, "array");
        })?;
    }
    file.commit()
}

/// The columns of a table in the order of its attribute.
fn column_order(table: &Group) -> Result<Vec<String>, hdf5_pure::Error> {
    let attributes = table.attrs()?;
    Ok(match attributes.get("column-order") {
        Some(AttrValue::StringArray(names) | AttrValue::VarLenStringArray(names)) => names.clone(),
        // An empty list is written as one of numbers.
        _ => Vec::new(),
    })
}

fn encode_array(array: &mut DatasetBuilder, kind: &str) {
    encode(kind, "0.2.0", |name, value| {
        array.set_attr(name, value);
    });
}

/// Sets the attributes by which anndata recognises types.
fn encode(kind: &str, version: &str, mut set: impl FnMut(&str, AttrValue)) {
    set("encoding-type", AttrValue::VarLenString(kind.into()));
    set("encoding-version", AttrValue::VarLenString(version.into()));
}
