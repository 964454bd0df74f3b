//! Checks of feature names and IDs of a table that was read.

use std::collections::HashSet;

use daimc_core::text::{list, quoted};

use crate::Table;

/// The most names that a remark lists.
const LISTED: usize = 5;

/// Makes feature names unique: the second `x` becomes `x.1`. Returns a remark about them.
pub(crate) fn make_unique(table: &mut Table) -> Option<String> {
    let features = table.features.as_mut()?;
    let mut known = HashSet::with_capacity(features.len());
    let repeated: Vec<usize> =
        (0..features.len()).filter(|&at| !known.insert(features[at].as_str())).collect();
    if repeated.is_empty() {
        return None;
    }
    let mut known: HashSet<String> = known.into_iter().map(String::from).collect();
    let mut shown: Vec<String> = Vec::new();
    // The next number of a name: without it, n equal names would try n² / 2 numbers.
    let mut numbers = std::collections::HashMap::new();
    let count = repeated.len();
    for at in repeated {
        let name = std::mem::take(&mut features[at]);
        if shown.len() < LISTED && !shown.contains(&name) {
            shown.push(name.clone());
        }
        let number = numbers.entry(name.clone()).or_insert(0_usize);
        features[at] = loop {
            *number += 1;
            let other = format!("{name}.{number}");
            if known.insert(other.clone()) {
                break other;
            }
        };
    }
    let more = if count > shown.len() { " …" } else { "" };
    Some(format!(
        "has {count} features whose names occur before ({}{more}); they get numbers, as in {}",
        list(shown.iter().map(|name| quoted(name))),
        quoted(&format!("{}.1", shown[0]))
    ))
}

/// A remark if IDs look like values: numbers with decimals.
pub(crate) fn numbers(table: &Table) -> Option<String> {
    let ids = table.ids.as_ref().filter(|_| !table.transposed && table.lines.is_some())?;
    let mut decimal = None;
    for id in ids {
        let number: f64 = id.parse().ok()?;
        if number.fract() != 0.0 {
            decimal = decimal.or(Some(id));
        }
    }
    Some(format!(
        "has numbers such as {} in its first column, which were taken for IDs; if they are values, read it with --no-ids",
        quoted(decimal?)
    ))
}
