//! The data: named views of the same instances, each with some instances missing.

mod join;
mod strided;
mod view;

use std::ops::Range;

use rayon::prelude::*;

pub use join::Account;
pub use view::{Values, View};

use crate::source::{Block, Buffer, Index, MISSING, Source};
use crate::text::quoted;
use crate::{Error, Result};

/// Several views of the same instances.
///
/// Built from matrices whose rows are the same instances ([`Views::new`]) or by joining on IDs
/// ([`Views::join`]). Whatever is wrong with the data is found here, before any work is done.
///
/// ```
/// use daimc::{View, Views};
///
/// let height = View::dense("height", 1, vec![1.8, 1.6, f64::NAN])?.mask(&[true, true, false])?;
/// let colour = View::dense("colour", 3, vec![0.1_f32; 9])?;
/// let views = Views::new(vec![height, colour])?;
/// assert_eq!(views.instances(), 3);
/// assert!(!views.is_present(0, 2));
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Views<'a> {
    views: Vec<Aligned<'a>>,
    ids: Ids,
}

/// A view and, for each instance, the row of the view that holds it.
#[derive(Clone, Debug)]
struct Aligned<'a> {
    view: View<'a>,
    /// `None`: instance j is row j, for all j.
    rows: Option<Vec<u32>>,
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

impl<'a> Views<'a> {
    /// Views whose rows are the same instances in the same order. What is missing is told by
    /// [`View::mask`]; IDs, if a view has them, are taken from the first view that does, and the others must
    /// agree.
    ///
    /// # Errors
    /// No view, views of different length, a repeated name or ID, IDs that disagree, a view with no instance,
    /// an instance in no view, a value that is not finite.
    pub fn new(views: Vec<View<'a>>) -> Result<Self> {
        let Some(first) = views.first() else { return Err(Error::NoViews) };
        let instances = first.rows();
        let mut ids = Ids::Numbers(instances);
        for view in &views {
            if view.rows() != instances {
                let (what, found) = ("rows (as many as the first view has)", view.rows());
                return Err(Error::Shape { view: view.name().into(), what, expected: instances, found });
            }
            let Some(names) = view.id_names() else { continue };
            match &ids {
                Ids::Numbers(_) => {
                    join::unique(view)?;
                    ids = Ids::Names(names.to_vec());
                }
                Ids::Names(known) => {
                    if let Some(row) = (0..instances).find(|&i| known[i] != names[i]) {
                        return Err(Error::Unsuitable {
                            what: "ids",
                            value: names[row].clone(),
                            reason: format!(
                                "row {row} of view {} has another ID in an earlier view ({}); \
                                 join the views by ID instead",
                                quoted(view.name()),
                                quoted(&known[row])
                            ),
                        });
                    }
                }
            }
        }
        let aligned = views.into_iter().map(|view| {
            let rows = view.presence().map(|present| {
                let row = |(i, &here): (usize, &bool)| if here { index(i) } else { MISSING };
                present.par_iter().enumerate().map(row).collect()
            });
            Aligned { view, rows }
        });
        Self { views: aligned.collect(), ids }.checked()
    }

    /// Views whose rows are told apart by ID: an instance that a view does not list is missing there.
    /// Instances come in the order in which their IDs are first listed, whether the row is missing there or not; those
    /// that no view shows are dropped. The [`Account`] says what matched.
    ///
    /// # Errors
    /// As [`Views::new`], and when a view has no IDs.
    pub fn join(views: Vec<View<'a>>) -> Result<(Self, Account)> {
        if views.is_empty() {
            return Err(Error::NoViews);
        }
        let (names, rows, account) = join::join(&views)?;
        let aligned = views.into_iter().zip(rows).map(|(view, rows)| Aligned { view, rows: Some(rows) });
        let joined = Self { views: aligned.collect(), ids: Ids::Names(names) }.checked()?;
        Ok((joined, account))
    }

    /// The same views with more instances missing: `present[view][instance]` says which are left. Values are borrowed.
    ///
    /// # Errors
    /// When `present` does not have a list for each view or a list not an entry for each instance, and when a view is left
    /// with no instance or an instance with no view.
    pub fn masked(&self, present: &[Vec<bool>]) -> Result<Views<'_>> {
        let wrong =
            |what: &str, expected, found| Err(Error::LengthMismatch { what: what.into(), expected, found });
        if present.len() != self.len() {
            return wrong("the mask, a list for each view", self.len(), present.len());
        }
        if let Some(list) = present.iter().find(|list| list.len() != self.instances()) {
            return wrong("the mask of a view", self.instances(), list.len());
        }
        let views = self.views.iter().zip(present).enumerate().map(|(view, (aligned, present))| {
            let row = |i: usize| self.row_of(view, i).filter(|_| present[i]).map_or(MISSING, index);
            Aligned {
                view: aligned.view.borrowed(),
                rows: Some((0..self.instances()).into_par_iter().map(row).collect()),
            }
        });
        Views { views: views.collect(), ids: self.ids.clone() }.checked()
    }

    fn checked(self) -> Result<Self> {
        for (v, aligned) in self.views.iter().enumerate() {
            let name = aligned.view.name();
            if self.views[..v].iter().any(|other| other.view.name() == name) {
                return Err(Error::DuplicateView { view: name.into() });
            }
            if aligned.view.features() == 0 {
                return Err(Error::NoFeatures { view: name.into() });
            }
            if !(0..self.instances()).any(|i| self.is_present(v, i)) {
                return Err(Error::EmptyView { view: name.into() });
            }
        }
        // A view without a list of rows shows every instance.
        if self.views.iter().all(|aligned| aligned.rows.is_some()) {
            let unseen = |i: &usize| !(0..self.views.len()).any(|v| self.is_present(v, *i));
            let count = (0..self.instances()).into_par_iter().filter(unseen).count();
            if count > 0
                && let Some(row) = (0..self.instances()).find(unseen)
            {
                return Err(Error::SeenInNoView { row, id: self.ids.get(row), count });
            }
        }
        for (v, aligned) in self.views.iter().enumerate() {
            let of = |range: Range<usize>| range.filter_map(|i| Some((i, self.row_of(v, i)?)));
            let found =
                blocks(self.instances()).find_map_first(|range| aligned.view.find_not_finite(of(range)));
            if let Some((i, row, column, value)) = found {
                return Err(Error::NotFinite {
                    view: aligned.view.name().into(),
                    row,
                    id: self.ids.get(i),
                    column,
                    feature: aligned.view.feature_name(column),
                    value,
                });
            }
        }
        Ok(self)
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

    /// The views, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &View<'a>> {
        self.views.iter().map(|aligned| &aligned.view)
    }

    /// How many views there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Never true: there is no `Views` without a view.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Whether view `view` shows instance `instance`.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn is_present(&self, view: usize, instance: usize) -> bool {
        self.row_of(view, instance).is_some()
    }

    /// How many instances view `view` shows.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn present(&self, view: usize) -> usize {
        let shown = |rows: &Vec<u32>| rows.par_iter().filter(|row| **row != MISSING).count();
        self.views[view].rows.as_ref().map_or(self.instances(), shown)
    }

    fn row_of(&self, view: usize, instance: usize) -> Option<usize> {
        match &self.views[view].rows {
            None => (instance < self.instances()).then_some(instance),
            Some(rows) => rows.get(instance).filter(|&&row| row != MISSING).map(|&row| row as usize),
        }
    }
}

/// Instances that are looked at by one thread at a time.
const BLOCK: usize = 4096;

/// All instances, in blocks.
fn blocks(instances: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let range = move |block: usize| block * BLOCK..((block + 1) * BLOCK).min(instances);
    (0..instances.div_ceil(BLOCK)).into_par_iter().map(range)
}

/// A row number in 32 bits; [`View`] admits no more rows than fit.
pub(crate) fn index(row: usize) -> u32 {
    u32::try_from(row).expect("views of more rows are refused when they are made")
}

impl Source for Views<'_> {
    fn instances(&self) -> usize {
        self.ids.len()
    }

    fn views(&self) -> usize {
        self.views.len()
    }

    fn name(&self, view: usize) -> &str {
        self.views[view].view.name()
    }

    fn features(&self, view: usize) -> usize {
        self.views[view].view.features()
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.row_of(view, instance).is_some()
    }

    fn id(&self, instance: usize) -> String {
        self.ids.get(instance)
    }

    fn block<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        let aligned = &self.views[view];
        let Some(rows) = aligned.view.matrix() else {
            let row = |i| self.row_of(view, i).map_or(MISSING, index);
            buffer.index.clear();
            buffer.index.extend(instances.map(row));
            return Ok(aligned.view.pick(buffer));
        };
        let index = match &aligned.rows {
            None => Index::From(instances.start),
            Some(rows) => Index::Rows(&rows[instances]),
        };
        Ok(Block { rows, index })
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        let row = |&i: &u32| self.row_of(view, i as usize).map_or(MISSING, index);
        buffer.index.clear();
        buffer.index.extend(instances.iter().map(row));
        Ok(self.views[view].view.pick(buffer))
    }
}
