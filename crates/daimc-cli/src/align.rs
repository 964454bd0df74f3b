//! Reorders the features of new data to match a model.

use std::collections::HashMap;

use daimc::Model;
use daimc::text::{list, plain, quoted};
use daimc_io::{Cells, Csr, Table};

use crate::failure::{Failure, Result};

/// Returns the table with the features of the model's view, in its order. If the table or the view has no feature names, both must
/// have the same number of features, in the same order.
pub fn align(view: &str, mut table: Table, model: &Model) -> Result<Table> {
    let wrong = |reason: String| Err(Failure::Data(format!("{}: {reason}", table.path.display())));
    let Some(own) = model.views.iter().find(|own| own.name == view) else {
        let (view, known) = (quoted(view), list(model.views.iter().map(|own| plain(&own.name))));
        return wrong(format!("the model has no view {view}: it has {known}; write --view NAME=PATH"));
    };
    let expected = own.basis.rows();
    let (Some(known), Some(found)) = (&own.feature_names, &table.features) else {
        if table.columns == expected {
            return Ok(table);
        }
        let hint = if table.rows == expected { "; if instances are in columns, use --transpose" } else { "" };
        return wrong(format!(
            "{} features, but view {} of the model has {expected}{hint}",
            table.columns,
            quoted(view)
        ));
    };
    if known == found {
        return Ok(table);
    }
    let place: HashMap<&str, usize> = found.iter().enumerate().map(|(f, name)| (name.as_str(), f)).collect();
    let missing: Vec<&str> =
        known.iter().map(String::as_str).filter(|name| !place.contains_key(name)).collect();
    if missing.len() == known.len() {
        return wrong(format!(
            "none of its features is one of view {} of the model, such as {}: is it another view, or has it instances in \
             columns (--transpose)?",
            quoted(view),
            quoted(&known[0])
        ));
    }
    if let Some(first) = missing.first() {
        let others =
            if missing.len() > 1 { format!(" and {} others are", missing.len() - 1) } else { " is".into() };
        return wrong(format!(
            "feature {}{others} missing, which view {} of the model was fitted to: add every one",
            quoted(first),
            quoted(view)
        ));
    }
    if place.len() < found.len() {
        return wrong("two features have the same name, so they cannot be put into the model's order".into());
    }
    let order: Vec<usize> = known.iter().map(|name| place[name.as_str()]).collect();
    table.cells = match table.cells {
        Cells::DenseF32(values) => Cells::DenseF32(dense(&values, table.columns, &order)),
        Cells::DenseF64(values) => Cells::DenseF64(dense(&values, table.columns, &order)),
        Cells::SparseF32(csr) => Cells::SparseF32(sparse(&csr, table.columns, &order)),
        Cells::SparseF64(csr) => Cells::SparseF64(sparse(&csr, table.columns, &order)),
        Cells::Stored(_) => {
            return wrong("its features are not in the order of the model, and they do not fit into memory, where they could be put \
                 into it: put them into that order, or allow more memory (--memory)".into());
        }
    };
    table.columns = order.len();
    table.features.clone_from(&own.feature_names);
    Ok(table)
}

fn dense<T: Copy>(values: &[T], columns: usize, order: &[usize]) -> Vec<T> {
    values.chunks_exact(columns).flat_map(|row| order.iter().map(|&f| row[f])).collect()
}

fn sparse<T: Copy>(csr: &Csr<T>, columns: usize, order: &[usize]) -> Csr<T> {
    let mut target = vec![None; columns];
    for (to, &from) in (0_u32..).zip(order) {
        target[from] = Some(to);
    }
    let mut out = Csr { offsets: vec![0], columns: Vec::new(), values: Vec::new() };
    for bounds in csr.offsets.windows(2) {
        let entries =
            (bounds[0]..bounds[1]).filter_map(|at| Some((target[csr.columns[at] as usize]?, csr.values[at])));
        let mut entries: Vec<(u32, T)> = entries.collect();
        entries.sort_unstable_by_key(|(column, _)| *column);
        out.columns.extend(entries.iter().map(|(column, _)| *column));
        out.values.extend(entries.iter().map(|(_, value)| *value));
        out.offsets.push(out.columns.len());
    }
    out
}
