//! Features of 10x Genomics: their names, and those of one type.

use std::collections::HashMap;

/// Names of features, by which they are told apart: where two have one name, their IDs are taken.
pub(crate) fn told_apart(names: Vec<String>, ids: &[String]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let told: Vec<String> = names
        .iter()
        .zip(ids)
        .map(|(name, id)| if counts.get(name.as_str()).is_some_and(|count| *count > 1) { id } else { name })
        .cloned()
        .collect();
    if told.len() == names.len() { told } else { names }
}

/// The new numbers of those of a type, and `u32::MAX` for others; and how many there are.
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

/// Different ones, in the order in which they come.
pub(crate) fn distinct(types: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for kind in types {
        if !found.contains(kind) {
            found.push(kind.clone());
        }
    }
    found
}
