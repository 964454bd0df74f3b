//! Columns of tables of annotated data: texts, numbers, truth values and categories.

use hdf5_pure::{Datatype, Group};

use super::array::Array;
use super::node::{Container, Node};
use crate::Result;
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::number::NumberType;

/// The values of a column; `None` for missing ones.
type Values = Vec<Option<String>>;

/// The names of the rows of a table.
pub(super) fn index(container: &Container, group: &Group, table: &str) -> Result<Vec<String>> {
    let name = match container.find(group, table)? {
        Some(node @ Node::Group(_)) => container.text_attribute(&node, "_index")?,
        Some(Node::Dataset(_)) => {
            return Err(container.place.fault(format!(
                "has a table {table} as anndata wrote it before 0.7; read and write it with a newer anndata"
            )));
        }
        None => None,
    };
    let name = name.unwrap_or_else(|| "_index".into());
    let values = values(container, group, table, &name)?
        .ok_or_else(|| container.place.fault(format!("has no index in {table}; save it anew")))?;
    let names: Option<Vec<String>> = values.into_iter().collect();
    names.ok_or_else(|| container.place.fault(format!("has a row without a name in {table}; name it")))
}

/// The columns of a table, but not its index.
pub(super) fn columns(container: &Container, group: &Group, table: &str) -> Result<Vec<String>> {
    let Some(node) = container.find(group, table)? else { return Ok(Vec::new()) };
    let index = container.text_attribute(&node, "_index")?;
    let Node::Group(table) = node else { return Ok(Vec::new()) };
    let mut names = container.names(&table)?;
    names.retain(|name| Some(name) != index.as_ref() && name != "__categories");
    Ok(names)
}

/// The values of a column; `None` where there is no such column.
pub(super) fn values(
    container: &Container,
    group: &Group,
    table: &str,
    name: &str,
) -> Result<Option<Values>> {
    let Some(table) = container.group(group, table)? else { return Ok(None) };
    match container.find(&table, name)? {
        None => Ok(None),
        Some(Node::Dataset(dataset)) => {
            let array = Array::open(&container.place, &dataset, &container.bytes)?;
            // Before anndata 0.7 the categories of all columns were in one group.
            if let Some(old) = container.group(&table, "__categories")?
                && let Some(Node::Dataset(categories)) = container.find(&old, name)?
            {
                let categories = Array::open(&container.place, &categories, &container.bytes)?;
                return categorical(container, &array, &categories).map(Some);
            }
            plain(container, &array).map(Some)
        }
        Some(Node::Group(column)) => {
            if container.find(&column, "codes")?.is_some() {
                let (codes, categories) =
                    (container.array(&column, "codes")?, container.array(&column, "categories"));
                let categories = match categories {
                    Ok(categories) => plain(container, &categories)?,
                    // Categories may be an array with a mask.
                    Err(_) => masked(container, &column, "categories")?,
                };
                return chosen(container, &codes, &categories).map(Some);
            }
            masked(container, &table, name).map(Some)
        }
    }
}

fn categorical(container: &Container, codes: &Array, categories: &Array) -> Result<Values> {
    chosen(container, codes, &plain(container, categories)?)
}

/// The categories of codes; −1 is a missing value.
fn chosen(container: &Container, codes: &Array, categories: &Values) -> Result<Values> {
    let codes: Vec<f64> = codes.list()?;
    let mut taken = MemoryMeter::default();
    let values = codes.into_iter().map(|code| {
        if code < 0.0 {
            return Ok(None);
        }
        let category = categories.get(code as usize).ok_or_else(|| {
            container.place.fault("has a code that is no category; copy it again or save it anew")
        })?;
        taken.take(&container.place, STRING_OVERHEAD + category.as_ref().map_or(0, String::len))?;
        Ok(category.clone())
    });
    values.collect()
}

/// Values with a mask of the missing ones.
fn masked(container: &Container, table: &Group, name: &str) -> Result<Values> {
    let Some(column) = container.group(table, name)? else { return Ok(Vec::new()) };
    let mut values = plain(container, &container.array(&column, "values")?)?;
    let mask: Vec<f32> = container.array(&column, "mask")?.list()?;
    for (value, _) in values.iter_mut().zip(mask).filter(|(_, missing)| *missing != 0.0) {
        *value = None;
    }
    Ok(values)
}

/// The values of an array as texts.
fn plain(container: &Container, array: &Array) -> Result<Values> {
    let Ok(encoding) = array.encoding() else {
        return Ok(container.strings(array)?.into_iter().map(Some).collect());
    };
    if let Datatype::Enumeration { .. } = array.kind {
        let values: Vec<f32> = array.list()?;
        return Ok(values
            .into_iter()
            .map(|value| Some(if value == 0.0 { "False" } else { "True" }.into()))
            .collect());
    }
    if encoding.kind == NumberType::F32 {
        let values: Vec<f32> = array.list()?;
        return Ok(values.into_iter().map(|value| (!value.is_nan()).then(|| value.to_string())).collect());
    }
    let values: Vec<f64> = array.list()?;
    Ok(values.into_iter().map(|value| (!value.is_nan()).then(|| value.to_string())).collect())
}
