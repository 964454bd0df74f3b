//! Rows by ID.

use std::collections::HashMap;

use super::matching::Matching;

/// The rows of a table by ID, for a table about instances that is not a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    rows: HashMap<String, usize>,
    /// By the part of the ID that is compared, if it is not the whole ID.
    keys: HashMap<String, usize>,
    matching: Matching,
}

impl Index {
    pub fn new(matching: &Matching) -> Self {
        Self { matching: matching.clone(), ..Self::default() }
    }

    /// Adds the ID of the next row. An earlier row of the same instance is kept and returned.
    pub fn insert(&mut self, id: &str, row: usize) -> Option<usize> {
        if let Some(&earlier) = self.rows.get(id) {
            return Some(earlier);
        }
        self.rows.insert(id.to_owned(), row);
        if !self.matching.trims() && !self.matching.folds() {
            return None;
        }
        let key = self.matching.key(id).into_owned();
        let earlier = self.keys.get(&key).copied();
        if earlier.is_none() {
            self.keys.insert(key, row);
        }
        earlier
    }

    /// The row of an instance, by its ID or by the part of it that is compared.
    pub fn get(&self, instance: &str) -> Option<usize> {
        let row = self.rows.get(instance).or_else(|| self.keys.get(self.matching.fold(instance).as_ref()));
        row.or_else(|| self.keys.get(self.matching.key(instance).as_ref())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_finds_whole_ids_before_parts_of_them() {
        let mut index = Index::new(&Matching { prefix: Some(2), ..Matching::default() });
        assert_eq!(index.insert("S1-a", 0), None);
        assert_eq!(index.insert("S2", 1), None);
        assert_eq!(index.insert("S1-b", 2), Some(0));
        assert_eq!(
            (index.get("S1"), index.get("S2"), index.get("S1-b"), index.get("S3")),
            (Some(0), Some(1), Some(2), None)
        );
    }
}
