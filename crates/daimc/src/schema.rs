//! What is known of the data before a row is read.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::index::MISSING;
use crate::{Error, Result};

/// The instances and views of a [`Source`](crate::Source): names, sizes, types, and who is present where. It is made once and
/// asked everywhere.
///
/// ```
/// use daimc::{Ids, Layout, Presence, Schema, ViewSchema};
///
/// let pixels = ViewSchema::new("pixels", 784, Layout::DenseF32);
/// let words = ViewSchema::new("words", 5000, Layout::SparseF64).presence(Presence::from_fn(3, |i| i != 1));
/// let schema = Schema::new(Ids::Numbers(3), vec![pixels, words])?;
/// assert_eq!((schema.instances(), schema.view(1).present()), (3, 2));
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    ids: Arc<Ids>,
    views: Vec<ViewSchema>,
}

/// The names of the instances. Where none were given, they are the row numbers from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Row numbers, `0` to `n - 1`.
    Numbers(usize),
    /// Given names.
    Names(Vec<String>),
}

impl Ids {
    /// How many there are.
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
    /// Cells that are missing inside the rows of a dense view, if that is known.
    holes: Option<usize>,
}

/// How the rows of a view are stored.
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

    /// The bytes of a stored value; a sparse one has its column with it.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::DenseF32 => 4,
            Self::DenseF64 | Self::SparseF32 => 8,
            Self::SparseF64 => 12,
        }
    }
}

/// Which instances a view shows: a bit for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    bits: Vec<u64>,
    present: usize,
}

impl Presence {
    /// Asks for each of `instances` whether it is there.
    #[must_use]
    pub fn from_fn(instances: usize, is_present: impl Fn(usize) -> bool) -> Self {
        let mut bits = vec![0_u64; instances.div_ceil(64)];
        for i in (0..instances).filter(|&i| is_present(i)) {
            bits[i / 64] |= 1 << (i % 64);
        }
        let present = bits.iter().map(|bits| bits.count_ones() as usize).sum();
        Self { bits, present }
    }

    pub(crate) fn shows(&self, instance: usize) -> bool {
        self.bits.get(instance / 64).is_some_and(|bits| bits >> (instance % 64) & 1 == 1)
    }
}

impl ViewSchema {
    /// A view that shows every instance.
    #[must_use]
    pub fn new(name: impl Into<String>, features: usize, layout: Layout) -> Self {
        let name = name.into();
        Self { name, features, layout, feature_names: None, presence: None, stored: None, holes: None }
    }

    /// Says which instances it shows.
    #[must_use]
    pub fn presence(mut self, presence: Presence) -> Self {
        self.presence = Some(presence);
        self
    }

    /// Names its features, one name for each.
    #[must_use]
    pub fn feature_names(mut self, names: impl Into<Arc<Vec<String>>>) -> Self {
        self.feature_names = Some(names.into());
        self
    }

    /// Says how many values a sparse view stores in all, from which it follows how many rows are read at a time.
    #[must_use]
    pub fn stored(mut self, values: usize) -> Self {
        self.stored = Some(values);
        self
    }

    /// Says how many cells of the present rows of a dense view are missing (NaN), no row lacking all: who knows that there
    /// are none spares others to look.
    #[must_use]
    pub fn holes(mut self, cells: usize) -> Self {
        self.holes = Some(cells);
        self
    }

    /// How many cells of the present rows are missing, if it is known before they are read. A sparse view has none: what it
    /// does not store is zero.
    #[must_use]
    pub fn missing_cells(&self) -> Option<usize> {
        if self.layout.is_dense() { self.holes } else { Some(0) }
    }

    /// The same view without the instances that turned out to lack all cells, in increasing order.
    pub(crate) fn without(self, instances: usize, empty: &[u32]) -> Self {
        if empty.is_empty() {
            return self;
        }
        let own = ViewOf { view: &self, instances };
        let gone = |i: usize| u32::try_from(i).is_ok_and(|i| empty.binary_search(&i).is_ok());
        let presence = Presence::from_fn(instances, |i| own.shows(i) && !gone(i));
        self.presence(presence)
    }

    /// The same, of some of its rows alone: that nothing is missing is true of them too.
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

    /// How its rows are stored.
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

    /// The name of feature `column`, or its number.
    #[must_use]
    pub fn feature_name(&self, column: usize) -> String {
        self.names().and_then(|names| names.get(column)).cloned().unwrap_or_else(|| column.to_string())
    }
}

/// One view of a schema, and how many instances that has.
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
    /// Whether the view shows an instance.
    #[must_use]
    pub fn shows(&self, instance: usize) -> bool {
        self.view.presence.as_ref().map_or(instance < self.instances, |presence| presence.shows(instance))
    }

    /// How many instances the view shows.
    #[must_use]
    pub fn present(&self) -> usize {
        self.view.presence.as_ref().map_or(self.instances, |presence| presence.present)
    }

    /// The instances that the view shows.
    pub(crate) fn shown(&self) -> Presence {
        self.view.presence.clone().unwrap_or_else(|| Presence::from_fn(self.instances, |_| true))
    }

    /// Whether it shows every instance.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.present() == self.instances
    }

    /// The values that are stored; of a sparse view of which nothing is known, a tenth of all.
    #[must_use]
    pub fn entries(&self) -> usize {
        let all = self.present() * self.view.features;
        if self.view.layout.is_dense() { all } else { self.view.stored.unwrap_or(all / 10) }
    }

    /// The bytes of a row, on average.
    #[must_use]
    pub fn bytes_per_row(&self) -> usize {
        self.entries() / self.present().max(1) * self.view.layout.bytes()
    }
}

impl Schema {
    /// Views of the instances with these IDs.
    ///
    /// # Errors
    /// No view, two of one name, a view without features or instances, an instance in no view, names of features that are
    /// not one for each, more instances or features than 32 bits can count.
    pub fn new(ids: impl Into<Arc<Ids>>, views: Vec<ViewSchema>) -> Result<Self> {
        let schema = Self::unchecked(ids, views);
        schema.check()?;
        Ok(schema)
    }

    /// Some instances of a source that was checked: a view may show none of them.
    pub(crate) fn unchecked(ids: impl Into<Arc<Ids>>, views: Vec<ViewSchema>) -> Self {
        Self { ids: ids.into(), views }
    }

    pub(crate) fn check(&self) -> Result<()> {
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

    /// As [`Schema::check`], of some of more instances: a view may show none of them, and be sound.
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
                    "instances whose presence is told, in units of 64",
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

    pub(crate) fn shared_ids(&self) -> Arc<Ids> {
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

    /// How many views there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there is no view.
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
