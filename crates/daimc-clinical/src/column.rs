//! Columns of a clinical table and the types of their values.

use std::collections::BTreeMap;

/// Texts that stand for an unknown value.
const UNKNOWN: [&str; 12] = [
    "",
    "na",
    "n/a",
    "nan",
    "null",
    "none",
    "not available",
    "[not available]",
    "[not applicable]",
    "[unknown]",
    "unknown",
    "not reported",
];

/// Numbers with at most this many different values are codes of categories, such as 0 and 1 or grades from 1 to 5.
const CODES: usize = 5;

/// A column: its name, and the value of each instance, if known.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The values.
    pub values: Vec<Option<String>>,
}

/// Values parsed for a test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    /// Numbers; NaN for unknown values.
    Numbers(Vec<f64>),
    /// The names of the levels, and the index of each instance's level.
    Categories { levels: Vec<String>, of: Vec<Option<usize>> },
}

impl Column {
    /// Creates a column of texts. Empty texts and texts such as `NA`, `null` or `[Not Available]` are unknown values.
    pub fn new<S: Into<String>>(name: impl Into<String>, values: impl IntoIterator<Item = S>) -> Self {
        let values = values.into_iter().map(Into::into).map(Some);
        Self { name: name.into(), values: values.collect() }.with_unknown()
    }

    /// Replaces texts that stand for an unknown value by `None`.
    #[must_use]
    pub fn with_unknown(mut self) -> Self {
        for value in &mut self.values {
            if value.as_deref().is_some_and(|text| UNKNOWN.contains(&text.trim().to_lowercase().as_str())) {
                *value = None;
            }
        }
        self
    }

    /// Numbers where every known value is one and there are more than a few, else categories: numbers in their order, words
    /// in that of the alphabet.
    pub(crate) fn parse(&self) -> Values {
        let known = || self.values.iter().flatten();
        let number = |text: &String| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers: Option<Vec<f64>> = known().map(number).collect();
        if let Some(numbers) = &numbers {
            let mut distinct = numbers.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            let codes = distinct.len() <= CODES && distinct.iter().all(|number| number.fract() == 0.0);
            if !codes {
                let of = |value: &Option<String>| value.as_ref().and_then(number).unwrap_or(f64::NAN);
                return Values::Numbers(self.values.iter().map(of).collect());
            }
        }
        let mut levels: Vec<&str> = known().map(|text| text.trim()).collect();
        levels.sort_unstable();
        levels.dedup();
        if numbers.is_some() {
            let key = |text: &&str| text.parse::<f64>().unwrap_or(f64::NAN);
            levels.sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
        let place: BTreeMap<&str, usize> =
            levels.iter().enumerate().map(|(at, level)| (*level, at)).collect();
        let of = self.values.iter().map(|value| value.as_ref().map(|text| place[text.trim()])).collect();
        Values::Categories { of, levels: levels.into_iter().map(String::from).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_whole_numbers_are_categories_in_their_order() {
        let Values::Categories { levels, of } = Column::new("grade", ["10", "2", "NA", "2"]).parse() else {
            panic!()
        };
        assert_eq!((levels, of), (vec!["2".into(), "10".into()], vec![Some(1), Some(0), None, Some(0)]));
    }

    #[test]
    fn numbers_are_numbers_unless_a_word_is_among_them() {
        assert!(matches!(Column::new("x", ["1.5", "2", "NaN", "1e3"]).parse(), Values::Numbers(_)));
        assert!(matches!(Column::new("x", ["1.5", "2", "high"]).parse(), Values::Categories { .. }));
        assert!(matches!(Column::new("x", ["1", "2", "3", "4", "5", "6"]).parse(), Values::Numbers(_)));
    }
}
