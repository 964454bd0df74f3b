//! True classes.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::numbers;

/// The number of each instance's class, if known, and the names of the classes in natural order.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    pub names: Vec<String>,
    pub of: Vec<Option<usize>>,
}

impl Classes {
    pub fn new<S: AsRef<str>>(classes: &[Option<S>]) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for name in classes.iter().flatten() {
            let next = numbers.len();
            numbers.entry(name.as_ref()).or_insert(next);
        }
        let mut names: Vec<&str> = numbers.keys().copied().collect();
        names.sort_unstable_by(|a, b| natural(a, b));
        numbers.extend(names.iter().enumerate().map(|(number, name)| (*name, number)));
        let number = |name: &Option<S>| name.as_ref().map(|name| numbers[name.as_ref()]);
        Self {
            of: classes.iter().map(number).collect(),
            names: names.iter().map(ToString::to_string).collect(),
        }
    }

    /// The number of instances of each class.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.names.len()];
        self.of.iter().flatten().for_each(|&class| sizes[class] += 1);
        sizes
    }
}

/// The natural order: numbers by value, then other names alphabetically, with runs of digits compared by value.
fn natural(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => parts(a).cmp(parts(b)).then_with(|| a.cmp(b)),
    }
}

/// Splits a name into runs of digits and of other characters. A run of digits without leading zeros compares by length first.
fn parts(name: &str) -> impl Iterator<Item = (usize, &[u8])> {
    name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).map(|run| {
        let zeros = run.iter().take_while(|&&byte| byte == b'0').count();
        if run[0].is_ascii_digit() { (run.len() - zeros, &run[zeros..]) } else { (usize::MAX, run) }
    })
}

/// The maximum number of classes or clusters shown.
pub(super) const SHOWN: usize = 50;

/// The largest groups that are not empty, in the order of their numbers.
pub(super) fn largest(sizes: &[usize]) -> Vec<usize> {
    let mut groups = numbers::largest(sizes, SHOWN);
    groups.retain(|&group| sizes[group] > 0);
    groups
}
