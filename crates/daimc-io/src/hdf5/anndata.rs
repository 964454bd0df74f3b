//! Annotated data: matrices `X`, `layers/…`, `raw` and `obsm/…` with the instances of the table `obs`, and files with several
//! modalities.

use daimc_core::text::quoted;
use hdf5_pure::{AttrValue, Group};

use super::array::Array;
use super::column::{columns, index, values};
use super::matrix::{Matrix, Named, Sparse};
use super::node::{Container, Node};
use crate::Result;
use crate::listing::list_names;

/// The table of instances of annotated data.
pub struct Obs {
    pub ids: Vec<String>,
    pub titles: Vec<String>,
    /// The values of each column; `None` for missing ones.
    pub columns: Vec<Vec<Option<String>>>,
}

/// The matrix of a part of annotated data: `X`, `layers/NAME`, `raw` or `obsm/NAME`.
pub(super) fn matrix(container: &Container, group: &Group, part: &str) -> Result<Named> {
    let part = part.trim_matches('/');
    let (folder, name) = part.split_once('/').unwrap_or((part, ""));
    let (path, var) = match (folder, name) {
        ("X" | "", "") => ("X".to_owned(), Some("var")),
        ("raw", "" | "X") => ("raw/X".to_owned(), Some("raw/var")),
        ("layers", name) if !name.is_empty() => (part.to_owned(), Some("var")),
        ("obsm", name) if !name.is_empty() => (part.to_owned(), None),
        _ => return Err(no_part(container, group, part)?),
    };
    let Some(node) = container.find(group, &path)? else {
        return Err(no_part(container, group, part)?);
    };
    let matrix = dense_or_sparse(container, &node, &path)?;
    let rows = Some(index(container, group, "obs")?);
    let columns = var.map(|var| index(container, group, var)).transpose()?;
    Ok(Named { place: container.place.clone(), matrix, rows, columns })
}

/// The matrix of a modality (`rna`), a part of one (`rna/layers/counts`), or a matrix of all (`obsm/X_pca`).
pub(super) fn modality(container: &Container, modalities: &Group, part: Option<&str>) -> Result<Named> {
    let names = self::modalities(container, modalities)?;
    let part = match (part, &*names) {
        (Some(part), _) => part.trim_matches('/'),
        (None, [only]) => only,
        (None, _) => {
            let reason = format!("holds the modalities {}; pick one with ::NAME", list_names(&names));
            return Err(container.place.fault(reason));
        }
    };
    if part.starts_with("obsm/") {
        return matrix(container, &container.root(), part);
    }
    let part = part.strip_prefix("mod/").unwrap_or(part);
    let (name, rest) = part.split_once('/').unwrap_or((part, "X"));
    let Some(group) = container.group(modalities, name)? else {
        let reason = format!("has no modality {}; it holds {}", quoted(name), list_names(&names));
        return Err(container.place.fault(reason));
    };
    matrix(container, &group, rest)
}

/// The names of the modalities, in their order.
pub(super) fn modalities(container: &Container, modalities: &Group) -> Result<Vec<String>> {
    let attributes = container.attributes(&Node::Group(modalities.clone()))?;
    let mut names = container.names(modalities)?;
    let order = attributes.get("mod-order").and_then(AttrValue::as_strings).unwrap_or_default();
    names.sort_by_key(|name| order.iter().position(|other| other == name).unwrap_or(order.len()));
    Ok(names)
}

/// The IDs of instances and the labels in a column of their table: `obs/NAME`, or `NAME`.
pub(super) fn labels(
    container: &Container,
    group: &Group,
    column: Option<&str>,
) -> Result<(Vec<String>, Vec<Option<String>>)> {
    let names = columns(container, group, "obs")?;
    let Some(column) = column else {
        let reason =
            format!("has the columns {}; pick the one of the labels with ::obs/COLUMN", list_names(&names));
        return Err(container.place.fault(reason));
    };
    let name = column.strip_prefix("obs/").unwrap_or(column);
    let Some(labels) = values(container, group, "obs", name)? else {
        let reason = format!("has no column {} in obs; it has {}", quoted(name), list_names(&names));
        return Err(container.place.fault(reason));
    };
    let ids = index(container, group, "obs")?;
    if ids.len() != labels.len() {
        return Err(container.place.fault("has not as many labels as instances; save it anew"));
    }
    Ok((ids, labels))
}

/// All columns of the table of instances that are as long as the table.
pub(super) fn attributes(container: &Container) -> Result<Obs> {
    let root = container.root();
    let mut obs = Obs { ids: index(container, &root, "obs")?, titles: Vec::new(), columns: Vec::new() };
    for name in columns(container, &root, "obs")? {
        let found = values(container, &root, "obs", &name)?;
        if let Some(values) = found.filter(|values| values.len() == obs.ids.len()) {
            obs.titles.push(name);
            obs.columns.push(values);
        }
    }
    Ok(obs)
}

/// As [`labels`], of all instances (`obs/NAME`) or those of a modality (`rna/obs/NAME`).
pub(super) fn labels_of_any(
    container: &Container,
    modalities: &Group,
    column: Option<&str>,
) -> Result<(Vec<String>, Vec<Option<String>>)> {
    let path = column.map(|column| column.strip_prefix("mod/").unwrap_or(column));
    if let Some((name, rest)) = path.and_then(|path| path.split_once('/'))
        && name != "obs"
        && let Some(group) = container.group(modalities, name)?
    {
        return labels(container, &group, Some(rest));
    }
    labels(container, &container.root(), column)
}

/// Whether a group is a sparse matrix.
pub(super) fn is_sparse(container: &Container, group: &Group) -> Result<bool> {
    Ok(container.find(group, "indptr")?.is_some() && container.find(group, "indices")?.is_some())
}

/// A dataset, or a group that is a sparse matrix.
pub(super) fn dense_or_sparse(container: &Container, node: &Node, path: &str) -> Result<Matrix> {
    let group = match node {
        Node::Dataset(dataset) => {
            let array = Array::open(&container.place, dataset, &container.bytes)?;
            return Ok(Matrix::Dense { array: Box::new(array), by_column: false });
        }
        Node::Group(group) => group,
    };
    let attributes = container.attributes(node)?;
    let text = |names: [&str; 2]| names.into_iter().find_map(|name| attributes.get(name)?.as_str());
    let kind = text(["encoding-type", "h5sparse_format"]).unwrap_or_default();
    let by_row = match kind {
        "csr_matrix" | "csr" => true,
        "csc_matrix" | "csc" => false,
        _ => {
            let what = if kind.is_empty() { "a group" } else { kind };
            let reason = format!("has no matrix at {path} but {what}; pick a dense or sparse matrix");
            return Err(container.place.fault(reason));
        }
    };
    let numbers = |name| attributes.get(name).and_then(AttrValue::to_u64s);
    let shape = numbers("shape").or_else(|| numbers("h5sparse_shape")).unwrap_or_default();
    let &[rows, columns] = &*shape else {
        return Err(container
            .place
            .fault(format!("has a sparse matrix at {path} without a shape; save it anew")));
    };
    let values = container.array(group, "data")?;
    let indices = container.array(group, "indices")?;
    let offsets = container.array(group, "indptr")?.list()?;
    let shape = [rows, columns].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok(Matrix::Sparse(Box::new(Sparse { values, indices, offsets, shape, by_row, only: None })))
}

/// The error for an unknown part, which lists the known ones.
fn no_part(container: &Container, group: &Group, part: &str) -> Result<crate::Error> {
    let mut parts = Vec::new();
    for (path, name) in [("X", "X"), ("raw/X", "raw")] {
        if container.find(group, path)?.is_some() {
            parts.push(name.to_owned());
        }
    }
    for folder in ["layers", "obsm"] {
        if let Some(group) = container.group(group, folder)? {
            parts.extend(container.names(&group)?.into_iter().map(|name| format!("{folder}/{name}")));
        }
    }
    let reason = format!("has no matrix {}; it holds {}", quoted(part), list_names(&parts));
    Ok(container.place.fault(reason))
}
