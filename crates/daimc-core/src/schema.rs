//! What is known about the data before rows are read.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::index::MISSING;
use crate::{Error, Result};

/// The instances and views of a [`Source`](crate::Source): names, sizes, types and presence. It is built once, before
/// any row is read.
///
/// ```
/// use daimc_core::{Ids, Layout, Presence, Schema, ViewSchema};
///
/// let pixels = ViewSchema::new("pixels", 784, Layout::DenseF32);
/// let words = ViewSchema::new("words", 5000, Layout::SparseF64).presence(Presence::from_fn(3, |i| i != 1));
/// let schema = Schema::new(Ids::Numbers(3), vec![pixels, words])?;
/// assert_eq!((schema.instances(), schema.view(1).present()), (3, 2));
/// # Ok::<(), daimc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    ids: Arc<Ids>,
    views: Vec<ViewSchema>,
}

/// The names of the instances; by default the row numbers from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Row numbers, `0` to `n - 1`.
    Numbers(usize),
    /// Given names.
    Names(Vec<String>),
}

impl Ids {
    /// The number of instances.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(count) => *count,
            Self::Names(names) => names.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ID of instance `i`.
    ///
    /// # Panics
    /// When names were given and there is none for `i`.
    #[must_use]
    pub fn get(&self, i: usize) -> String {
        match self {
            Self::Numbers(_) => i.to_string(),
            Self::Names(names) => names[i].clone(),
        }
    }
}

/// One view of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSchema {
    name: String,
    features: usize,
    layout: Layout,
    feature_names: Option<Arc<Vec<String>>>,
    presence: Option<Presence>,
    /// Stored values of a sparse view.
    stored: Option<usize>,
    /// The number of missing cells inside the rows of a dense view, if known.
    holes: Option<usize>,
}

/// The storage layout of the rows of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// Dense, single precision.
    DenseF32,
    /// Dense, double precision.
    DenseF64,
    /// Sparse (CSR), single precision.
    SparseF32,
    /// Sparse (CSR), double precision.
    SparseF64,
}

impl Layout {
    /// Whether every value of a row is stored.
    #[must_use]
    pub fn is_dense(self) -> bool {
        matches!(self, Self::DenseF32 | Self::DenseF64)
    }

    /// The bytes of a stored value; for a sparse one, with its column.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::DenseF32 => 4,
            Self::DenseF64 | Self::SparseF32 => 8,
            Self::SparseF64 => 12,
        }
    }
}

/// The instances that are present in a view, as a bit set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    bits: Vec<u64>,
    present: usize,
}

impl Presence {
    /// Evaluates a predicate for each of `instances`.
    #[must_use]
    pub fn from_fn(instances: usize, is_present: impl Fn(usize) -> bool) -> Self {
        let mut bits = vec![0_u64; instances.div_ceil(64)];
        for i in (0..instances).filter(|&i| is_present(i)) {
            bits[i / 64] |= 1 << (i % 64);
        }
        let present = bits.iter().map(|bits| bits.count_ones() as usize).sum();
        Self { bits, present }
    }

    /// Whether an instance is present.
    pub fn shows(&self, instance: usize) -> bool {
        self.bits.get(instance / 64).is_some_and(|bits| bits >> (instance % 64) & 1 == 1)
    }
}

impl ViewSchema {
    /// A view in which every instance is present.
    #[must_use]
    pub fn new(name: impl Into<String>, features: usize, layout: Layout) -> Self {
        let name = name.into();
        Self { name, features, layout, feature_names: None, presence: None, stored: None, holes: None }
    }

    /// Sets the instances that are present.
    #[must_use]
    pub fn presence(mut self, presence: Presence) -> Self {
        self.presence = Some(presence);
        self
    }

    /// Sets the names of the features, one for each.
    #[must_use]
    pub fn feature_names(mut self, names: impl Into<Arc<Vec<String>>>) -> Self {
        self.feature_names = Some(names.into());
        self
    }

    /// Sets the total number of stored values of a sparse view. It determines how many rows are read at a time.
    #[must_use]
    pub fn stored(mut self, values: usize) -> Self {
        self.stored = Some(values);
        self
    }

    /// Sets the number of missing cells (NaN) in the present rows of a dense view, none of which lacks all cells.
    /// Setting it, also to 0, avoids a pass over the data.
    #[must_use]
    pub fn holes(mut self, cells: usize) -> Self {
        self.holes = Some(cells);
        self
    }

    /// The number of missing cells in the present rows, if it is known before they are read. A sparse view has none:
    /// values that are not stored are zero.
    #[must_use]
    pub fn missing_cells(&self) -> Option<usize> {
        if self.layout.is_dense() { self.holes } else { Some(0) }
    }

    /// The same view without the given instances (in increasing order), which lack all cells.
    #[must_use]
    pub fn without(self, instances: usize, empty: &[u32]) -> Self {
        if empty.is_empty() {
            return self;
        }
        let own = ViewOf { view: &self, instances };
        let gone = |i: usize| u32::try_from(i).is_ok_and(|i| empty.binary_search(&i).is_ok());
        let presence = Presence::from_fn(instances, |i| own.shows(i) && !gone(i));
        self.presence(presence)
    }

    /// The view restricted to some of its rows. If no cell is missing in the view, none is missing in these.
    pub(crate) fn holes_of_some(mut self, known: Option<usize>) -> Self {
        self.holes = known.filter(|cells| *cells == 0);
        self
    }

    /// The view's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of features.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// The layout of the rows.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The names of the features, if they have any.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.feature_names.as_ref().map(|names| names.as_slice())
    }

    pub(crate) fn shared_names(&self) -> Option<Arc<Vec<String>>> {
        self.feature_names.clone()
    }

    /// The name of feature `column`, or its number if it has none.
    #[must_use]
    pub fn feature_name(&self, column: usize) -> String {
        self.names().and_then(|names| names.get(column)).cloned().unwrap_or_else(|| column.to_string())
    }
}

/// One view of a schema with the number of instances.
#[derive(Clone, Copy, Debug)]
pub struct ViewOf<'a> {
    view: &'a ViewSchema,
    instances: usize,
}

impl std::ops::Deref for ViewOf<'_> {
    type Target = ViewSchema;

    fn deref(&self) -> &ViewSchema {
        self.view
    }
}

impl ViewOf<'_> {
    /// Whether an instance is present.
    #[must_use]
    pub fn shows(&self, instance: usize) -> bool {
        self.view.presence.as_ref().map_or(instance < self.instances, |presence| presence.shows(instance))
    }

    /// The number of present instances.
    #[must_use]
    pub fn present(&self) -> usize {
        self.view.presence.as_ref().map_or(self.instances, |presence| presence.present)
    }

    /// The present instances.
    pub fn shown(&self) -> Presence {
        self.view.presence.clone().unwrap_or_else(|| Presence::from_fn(self.instances, |_| true))
    }

    /// Whether all instances are present.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.present() == self.instances
    }

    /// The number of stored values; for a sparse view of unknown size, a tenth of all.
    #[must_use]
    pub fn entries(&self) -> usize {
        let all = self.present() * self.view.features;
        if self.view.layout.is_dense() { all } else { self.view.stored.unwrap_or(all / 10) }
    }

    /// The average bytes of a row.
    #[must_use]
    pub fn bytes_per_row(&self) -> usize {
        self.entries() / self.present().max(1) * self.view.layout.bytes()
    }
}

impl Schema {
    /// Creates a schema of the views of the instances with these IDs.
    ///
    /// # Errors
    /// No view, repeated view names, a view without features or instances, an instance that is present in no view, a
    /// wrong number of feature names, or more instances or features than 32 bits can count.
    pub fn new(ids: impl Into<Arc<Ids>>, views: Vec<ViewSchema>) -> Result<Self> {
        let schema = Self::unchecked(ids, views);
        schema.check()?;
        Ok(schema)
    }

    /// Creates a schema without these checks, for a part of the instances of checked data: a view may have none of them.
    pub fn unchecked(ids: impl Into<Arc<Ids>>, views: Vec<ViewSchema>) -> Self {
        Self { ids: ids.into(), views }
    }

    /// Checks that IDs and presence fit together and every instance is present in a view.
    ///
    /// # Errors
    /// The first defect.
    pub fn check(&self) -> Result<()> {
        self.check_part()?;
        if let Some(view) = self.views().find(|view| view.present() == 0) {
            return Err(Error::EmptyView { view: view.name.clone() });
        }
        if self.views().any(|view| view.is_complete()) {
            return Ok(());
        }
        let instances = self.instances();
        let words = |word: usize| {
            let of_view =
                |view: &ViewSchema| view.presence.as_ref().map_or(0, |presence| presence.bits[word]);
            self.views.iter().map(of_view).fold(0, |any, bits| any | bits)
        };
        let seen: usize = (0..instances.div_ceil(64)).map(|word| words(word).count_ones() as usize).sum();
        if seen < instances {
            let unseen = |i: &usize| words(i / 64) >> (i % 64) & 1 == 0;
            let row = (0..instances).find(unseen).unwrap_or_default();
            return Err(Error::SeenInNoView { row, id: self.ids.get(row), count: instances - seen });
        }
        Ok(())
    }

    /// As [`Schema::check`], for a part of the instances: a view may contain none of them.
    pub(crate) fn check_part(&self) -> Result<()> {
        let (instances, limit) = (self.instances(), MISSING as usize - 1);
        if self.views.is_empty() {
            return Err(Error::NoViews);
        }
        let mut names = HashSet::new();
        for view in self.views() {
            let name = || view.name.clone();
            let shape = |what, expected, found| Err(Error::Shape { view: name(), what, expected, found });
            if instances > limit {
                return Err(Error::TooManyRows { view: name(), rows: instances, limit });
            }
            if view.features > limit {
                return shape("features (at most as many as 32 bits can count)", limit, view.features);
            }
            if !names.insert(&view.view.name) {
                return Err(Error::DuplicateView { view: name() });
            }
            if view.features == 0 {
                return Err(Error::NoFeatures { view: name() });
            }
            if let Some(names) = view.names().filter(|names| names.len() != view.features) {
                return shape("feature names", view.features, names.len());
            }
            if let Some(presence) =
                view.presence.as_ref().filter(|own| own.bits.len() != instances.div_ceil(64))
            {
                return shape(
                    "instances with presence, in units of 64",
                    instances.div_ceil(64),
                    presence.bits.len(),
                );
            }
        }
        Ok(())
    }

    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.ids.len()
    }

    /// The names of the instances.
    #[must_use]
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The IDs, shared.
    pub fn shared_ids(&self) -> Arc<Ids> {
        self.ids.clone()
    }

    /// The views.
    pub fn views(&self) -> impl ExactSizeIterator<Item = ViewOf<'_>> + Clone {
        self.views.iter().map(|view| ViewOf { view, instances: self.instances() })
    }

    /// One of the views.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn view(&self, view: usize) -> ViewOf<'_> {
        ViewOf { view: &self.views[view], instances: self.instances() }
    }

    /// The name of a view.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn view_name(&self, view: usize) -> &str {
        &self.views[view].name
    }

    /// The number of views.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are no views.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The bytes of all rows, as far as they are known.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.views().map(|view| view.present() * view.bytes_per_row()).sum()
    }
}
