//! Names and types of the features of 10x Genomics.

use std::collections::HashMap;

/// Unique names of features: where several have the same name, their IDs.
pub(crate) fn unique_names(names: Vec<String>, ids: &[String]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let unique: Vec<String> = names
        .iter()
        .zip(ids)
        .map(|(name, id)| if counts.get(name.as_str()).is_some_and(|count| *count > 1) { id } else { name })
        .cloned()
        .collect();
    if unique.len() == names.len() { unique } else { names }
}

/// The new index of each feature of a type, `u32::MAX` for the others; and the number of features of the type.
pub(crate) fn numbered(types: &[String], wanted: &str) -> (Vec<u32>, usize) {
    let mut count = 0;
    let numbers = types.iter().map(|kind| {
        if kind == wanted {
            count += 1;
            count - 1
        } else {
            u32::MAX
        }
    });
    (numbers.collect(), count as usize)
}

/// The distinct types in order of appearance.
pub(crate) fn distinct(types: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for kind in types {
        if !found.contains(kind) {
            found.push(kind.clone());
        }
    }
    found
}
