//! MATLAB's `.mat`, versions 4 and 5 (written by `save` up to `-v7`): named matrices, dense or sparse, and cell arrays of them,
//! without IDs and feature names.

mod array;
mod container;
mod element;
mod level4;
mod selector;

use array::Array;
use container::Container;
use daimc_core::text::{plain, quoted};
pub(crate) use level4::is_level_4;
pub(crate) use selector::{Selector, position};

use crate::disk::Keep;
use crate::input::Opened;
use crate::listing::{LISTED, listing};
use crate::{Position, Reading, Result, Table};

/// Reads the matrix called `variable`, which may be in a cell (`X{2}`); without a name, the only matrix.
pub fn read(file: &mut Opened, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = file.place.clone();
    let start = file.start().to_vec();
    if is_level_4(&start) {
        return file.at_random(|bytes| level4::read(&place, &bytes, variable, how));
    }
    file.at_random(|bytes| pick(Container::new(place, bytes, &start)?, variable, how, keep))
}

/// Reads the matrix `variable`, or the only one.
fn pick(mut container: Container, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let file = container.place.clone();
    let name = match variable {
        Some(name) => name.to_owned(),
        None => only_matrix(&mut container)?,
    };
    let selector = Selector::parse(&name).ok_or_else(|| {
        file.fault(format!("cannot have a variable {}; write NAME, or NAME{{2}} for a cell", quoted(&name)))
    })?;
    let place = Position::array(&file.path, &name);
    let table = container.find(|array| {
        let wanted = array.name == selector.name;
        wanted.then(|| descend(&place, array, &selector.cells, how, keep)).transpose()
    })?;
    match table {
        Some(table) => Ok(table),
        None => Err(file.fault(format!(
            "has no variable {}; it holds {}",
            quoted(selector.name),
            list(&mut container)?
        ))),
    }
}

/// Follows the subscripts of cells to a matrix.
fn descend(
    place: &Position,
    array: Array<'_>,
    cells: &[Vec<usize>],
    how: Reading,
    keep: Keep<'_>,
) -> Result<Table> {
    let Some((subscripts, further)) = cells.split_first() else { return array.table(place, how, keep) };
    if !array.is_cell() {
        return Err(place.fault(format!("goes into cells, but there is {}", array.kind())));
    }
    let outside = place.fault(format!("is outside of the cell array, which is {}", array.shape()));
    let Some(wanted) = position(subscripts, &array.shape) else { return Err(outside) };
    let found = array.each_cell(place, |index, cell| {
        (index == wanted).then(|| descend(place, cell, further, how, keep)).transpose()
    })?;
    found.ok_or(outside)
}

/// The name of the only matrix of numbers. In files with cells or structures, which hold the views, a single matrix holds labels.
fn only_matrix(container: &mut Container) -> Result<String> {
    let mut names = Vec::new();
    let mut alone = true;
    container.find(|array| {
        if array.is_numeric() {
            names.push(array.name);
        } else {
            alone &= array.is_text();
        }
        Ok(None::<()>)
    })?;
    match names.pop() {
        Some(name) if names.is_empty() && alone => Ok(name),
        _ => {
            let list = list(container)?;
            let hint = "pick one with ::NAME after the path, or a cell with ::NAME{2}";
            Err(container.place.fault(format!("holds {list}; {hint}")))
        }
    }
}

/// The contents of a file, for a message.
fn list(container: &mut Container) -> Result<String> {
    let place = container.place.clone();
    let mut parts = Vec::new();
    let mut count = 0;
    container.find(|array| {
        count += 1;
        if count <= LISTED {
            parts.push(describe(&place, array)?);
        }
        Ok(None::<()>)
    })?;
    Ok(listing(&parts, count, "no variables"))
}

/// A variable and, for a cell array, its cells.
fn describe(place: &Position, array: Array<'_>) -> Result<String> {
    let (name, kind) = (plain(&array.name).to_string(), array.kind());
    if !array.is_cell() {
        return Ok(format!("{name} ({kind})"));
    }
    let mut cells = Vec::new();
    array.each_cell(place, |index, cell| {
        if index == LISTED {
            cells.push("…".into());
            return Ok(Some(()));
        }
        cells.push(format!("{{{}}} {}", index + 1, cell.kind()));
        Ok(None)
    })?;
    Ok(format!("{name} ({kind}: {})", cells.join(", ")))
}
