//! MATLAB's `.mat` from version 7.3 on. Matrices are in column-major order, so that a dataset is the transpose.

use daimc_core::text::{plain, quoted};
use hdf5_pure::{AttrValue, Dataset, Group};

use super::array::Array;
use super::matrix::{Matrix, Named, Sparse};
use super::node::{Container, Node};
use super::source::guarded;
use crate::listing::{LISTED, listing};
use crate::mat::{Selector, position};
use crate::{Position, Result};

const NUMERIC: [&str; 11] =
    ["double", "single", "logical", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"];

/// The matrix called `variable`, which may be in a cell (`X{2}`); without a name, the only matrix.
pub(super) fn matrix(container: &Container, variable: Option<&str>) -> Result<Named> {
    let place = &container.place;
    let root = container.root();
    let name = match variable {
        Some(name) => name.to_owned(),
        None => only_matrix(container, &root)?,
    };
    let selector = Selector::parse(&name).ok_or_else(|| {
        place.fault(format!("cannot have a variable {}; write NAME, or NAME{{2}} for a cell", quoted(&name)))
    })?;
    let Some(mut node) = container.find(&root, selector.name)? else {
        let reason =
            format!("has no variable {}; it holds {}", quoted(selector.name), list(container, &root)?);
        return Err(place.fault(reason));
    };
    let place = Position { variable: Some(name.clone()), ..place.clone() };
    for subscripts in &selector.cells {
        let kind = kind(container, &node)?;
        let Node::Dataset(dataset) = &node else {
            return Err(place.fault(format!("goes into cells, but there is {kind}")));
        };
        if class(container, &node)? != "cell" {
            return Err(place.fault(format!("goes into cells, but there is {kind}")));
        }
        let wanted = position(subscripts, &shape(container, dataset)?);
        let cell = container.referred(dataset)?.into_iter().nth(wanted.unwrap_or(usize::MAX));
        node = cell.ok_or_else(|| place.fault(format!("is outside of the cell array, which is {kind}")))?;
    }
    let matrix = read(container, &place, &node)?;
    Ok(Named { place, matrix, rows: None, columns: None })
}

fn read(container: &Container, place: &Position, node: &Node) -> Result<Matrix> {
    if let Node::Dataset(dataset) = node
        && NUMERIC.contains(&class(container, node)?.as_str())
    {
        // The error of opening an array is more specific than that it is no matrix.
        Array::open(place, dataset, &container.bytes)?;
    }
    if !is_numeric(container, node)? {
        return Err(place.fault(format!("is {}, not a matrix of real numbers", kind(container, node)?)));
    }
    match node {
        Node::Dataset(dataset) => {
            let array = Array::open(place, dataset, &container.bytes)?;
            Ok(Matrix::Dense { array: Box::new(array), by_column: true })
        }
        Node::Group(group) => {
            let rows = sparse_rows(container, node)?.unwrap_or(0);
            let offsets: Vec<usize> = container.array(group, "jc")?.list()?;
            if container.find(group, "data")?.is_none() {
                return Err(place.fault("is a sparse matrix without entries"));
            }
            let (values, indices) = (container.array(group, "data")?, container.array(group, "ir")?);
            let shape = [rows, offsets.len().saturating_sub(1)];
            Ok(Matrix::Sparse(Box::new(Sparse {
                values,
                indices,
                offsets,
                shape,
                by_row: false,
                only: None,
            })))
        }
    }
}

/// The MATLAB class of a variable; empty where it has none.
fn class(container: &Container, node: &Node) -> Result<String> {
    Ok(container.text_attribute(node, "MATLAB_class")?.unwrap_or_default())
}

/// The number of rows of a sparse matrix; `None` for other variables.
fn sparse_rows(container: &Container, node: &Node) -> Result<Option<usize>> {
    let rows = container.attributes(node)?.get("MATLAB_sparse").and_then(AttrValue::as_u64);
    Ok(rows.and_then(|rows| usize::try_from(rows).ok()))
}

/// Whether a variable can be a view: it is not empty, and its numbers are real.
fn is_numeric(container: &Container, node: &Node) -> Result<bool> {
    let class = class(container, node)?;
    let numeric = NUMERIC.contains(&class.as_str()) || class.is_empty();
    Ok(numeric
        && match node {
            Node::Group(_) => sparse_rows(container, node)?.is_some(),
            Node::Dataset(dataset) => {
                container.attributes(node)?.get("MATLAB_empty").is_none_or(|empty| empty.as_u64() == Some(0))
                    && Array::open(&container.place, dataset, &container.bytes)
                        .is_ok_and(|array| array.encoding().is_ok())
            }
        })
}

/// The shape of an array in the order of MATLAB.
fn shape(container: &Container, dataset: &Dataset) -> Result<Vec<usize>> {
    let shape = guarded(&container.place, || dataset.shape())?;
    Ok(shape.into_iter().rev().map(|size| usize::try_from(size).unwrap_or(usize::MAX)).collect())
}

/// Class and shape, for a message.
fn kind(container: &Container, node: &Node) -> Result<String> {
    let class = class(container, node)?;
    let class = if class.is_empty() { "array".into() } else { class };
    Ok(match node {
        Node::Group(_) => match sparse_rows(container, node)? {
            Some(rows) => format!("sparse {class} of {rows} rows"),
            None => class,
        },
        Node::Dataset(dataset) => {
            let shape: Vec<String> = shape(container, dataset)?.iter().map(ToString::to_string).collect();
            format!("{class} {}", shape.join(" × "))
        }
    })
}

/// The variables, without MATLAB's own groups such as `#refs#`.
fn variables(container: &Container, root: &Group) -> Result<Vec<(String, Node)>> {
    let mut found = Vec::new();
    for name in container.names(root)?.into_iter().filter(|name| !name.starts_with('#')) {
        if let Some(node) = container.find(root, &name)? {
            found.push((name, node));
        }
    }
    Ok(found)
}

/// The name of the only matrix of numbers. In files with cells or structures, which hold the views, a single matrix holds labels.
fn only_matrix(container: &Container, root: &Group) -> Result<String> {
    let mut names = Vec::new();
    let mut alone = true;
    for (name, node) in variables(container, root)? {
        if is_numeric(container, &node)? {
            names.push(name);
        } else {
            alone &= class(container, &node)? == "char";
        }
    }
    match names.pop() {
        Some(name) if names.is_empty() && alone => Ok(name),
        _ => {
            let hint = "pick one with ::NAME after the path, or a cell with ::NAME{2}";
            Err(container.place.fault(format!("holds {}; {hint}", list(container, root)?)))
        }
    }
}

/// The contents of a file, for a message.
fn list(container: &Container, root: &Group) -> Result<String> {
    let variables = variables(container, root)?;
    let mut parts = Vec::new();
    for (name, node) in variables.iter().take(LISTED) {
        parts.push(format!("{} ({})", plain(name), kind(container, node)?));
    }
    Ok(listing(&parts, variables.len(), "no variables"))
}
