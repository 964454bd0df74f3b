//! The data model: named views of the same instances, each with some instances missing.

mod join;
mod not_finite;
mod strided;
mod view;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

pub use join::Account;
use not_finite::NotFinite;
pub use view::{Values, View};

use crate::index::index;
use crate::schema::{Ids, Presence, Schema, ViewSchema};
use crate::source::{
    Block, Buffer, DeviceRows, Holes, Index, MISSING, Memory, RandomAccess, ReadError, RowStore, Source,
};
use crate::text::quoted;
use crate::{Error, Matrix, Result};

/// Several views of the same instances.
///
/// Built from matrices with the same rows ([`Views::new`]) or by joining on IDs ([`Views::join`]). The data are
/// validated here, before any work. NaN in a dense view is a missing cell; a row of NaN only is a missing instance.
///
/// ```
/// use daimc_core::{View, Views};
///
/// let height = View::dense("height", 1, vec![1.8, 1.6, f64::NAN])?.mask(&[true, true, false])?;
/// let colour = View::dense("colour", 3, vec![0.1_f32; 9])?;
/// let views = Views::new(vec![height, colour])?;
/// assert_eq!(views.instances(), 3);
/// assert!(!views.is_present(0, 2));
/// # Ok::<(), daimc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Views<'a> {
    views: Vec<Aligned<'a>>,
    schema: Schema,
}

/// A view and the row of each instance in it.
#[derive(Clone, Debug)]
struct Aligned<'a> {
    view: View<'a>,
    /// `None`: instance j is row j.
    rows: Option<Vec<u32>>,
    /// The missing cells inside the rows, once they have been counted.
    holes: Option<usize>,
}

impl<'a> Views<'a> {
    /// Views whose rows are the same instances in the same order. Missing instances are marked with [`View::mask`]. IDs
    /// are taken from the first view that has them; the IDs of other views must agree.
    ///
    /// # Errors
    /// No view, views of different length, a repeated name or ID, IDs that disagree, a view with no instance, an
    /// instance in no view, an infinite value, or NaN in a sparse view.
    pub fn new(views: Vec<View<'a>>) -> Result<Self> {
        Self::aligned(views, false)
    }

    /// As [`Views::new`], for a partition of the instances: a view may contain none of them.
    /// Instances that are present in no view are reported by the fit to all of them.
    ///
    /// # Errors
    /// As [`Views::new`].
    pub fn part(views: Vec<View<'a>>) -> Result<Self> {
        Self::aligned(views, true)
    }

    /// The rows of a matrix, as one view named `V`.
    pub fn of_matrix(rows: &'a Matrix) -> Result<Self> {
        Self::new(vec![View::dense("V", rows.columns(), rows.values())?])
    }

    fn aligned(views: Vec<View<'a>>, part: bool) -> Result<Self> {
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
            Aligned { view, rows, holes: None }
        });
        Self::checked(aligned.collect(), ids.into(), part)
    }

    /// Joins views by ID: an instance that a view does not list is missing in it. Instances come in the order in which
    /// their IDs are first listed, including rows marked as missing; instances that are present in no view are dropped.
    /// The [`Account`] reports what matched.
    ///
    /// # Errors
    /// As [`Views::new`], and when a view has no IDs.
    pub fn join(views: Vec<View<'a>>) -> Result<(Self, Account)> {
        if views.is_empty() {
            return Err(Error::NoViews);
        }
        let (names, rows, account) = join::join(&views)?;
        let aligned =
            views.into_iter().zip(rows).map(|(view, rows)| Aligned { view, rows: Some(rows), holes: None });
        let joined = Self::checked(aligned.collect(), Ids::Names(names).into(), false)?;
        Ok((joined, account))
    }

    /// The same views with more instances missing: `present[view][instance]` is `true` for the instances to keep.
    /// Values are borrowed.
    ///
    /// # Errors
    /// When `present` does not have a list for each view or an entry for each instance, when no instance is left in a
    /// view, or when an instance is left in no view.
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
                holes: None,
            }
        });
        Views::checked(views.collect(), self.schema.shared_ids(), false)
    }

    fn checked(views: Vec<Aligned<'a>>, ids: Arc<Ids>, part: bool) -> Result<Self> {
        let instances = ids.len();
        let schema_of =
            |views: &[Aligned<'a>]| views.iter().map(|aligned| aligned.schema(instances)).collect();
        let sound = |schema: Schema| if part { schema.check_part() } else { schema.check() }.map(|()| schema);
        let schema = sound(Schema::unchecked(ids.clone(), schema_of(&views)))?;
        let mut checked = Self { views, schema };
        let mut empty = false;
        for v in 0..checked.views.len() {
            let found = checked.look(v)?;
            let aligned = &mut checked.views[v];
            if aligned.view.store().is_none() {
                aligned.holes = Some(found.holes);
            }
            if !found.empty.is_empty() {
                empty = true;
                let rows = aligned.rows.get_or_insert_with(|| (0..instances).map(index).collect());
                found.empty.into_iter().for_each(|i| rows[i] = MISSING);
            }
        }
        let schema = Schema::unchecked(ids, schema_of(&checked.views));
        checked.schema = if empty { sound(schema)? } else { schema };
        Ok(checked)
    }

    /// Checks the values of a view in memory and counts missing cells.
    fn look(&self, view: usize) -> Result<NotFinite> {
        let aligned = &self.views[view];
        let of = |range: Range<usize>| range.filter_map(|i| Some((i, self.row_of(view, i)?)));
        let parts: Vec<NotFinite> =
            blocks(self.instances()).map(|range| aligned.view.not_finite(of(range))).collect();
        let found = parts.into_iter().fold(NotFinite::default(), NotFinite::and);
        match found.refused {
            None => Ok(found),
            Some((i, row, column, value)) => Err(Error::NotFinite {
                view: aligned.view.name().into(),
                row,
                id: self.ids().get(i),
                column,
                feature: aligned.view.feature_name(column),
                value,
            }),
        }
    }

    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.schema.instances()
    }

    /// The names of the instances.
    #[must_use]
    pub fn ids(&self) -> &Ids {
        self.schema.ids()
    }

    /// The views, in the given order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &View<'a>> {
        self.views.iter().map(|aligned| &aligned.view)
    }

    /// The number of views.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Always `false`: there is no `Views` without a view.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Whether instance `instance` is present in view `view`.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn is_present(&self, view: usize, instance: usize) -> bool {
        self.row_of(view, instance).is_some()
    }

    /// The number of instances in view `view`.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn present(&self, view: usize) -> usize {
        self.schema.view(view).present()
    }

    /// The number of missing cells in view `view`: NaN in rows that have other values. `None` if the rows are not in
    /// memory and the store does not report it.
    ///
    /// # Panics
    /// When there is no such view.
    #[must_use]
    pub fn missing_cells(&self, view: usize) -> Option<usize> {
        self.schema.view(view).missing_cells()
    }

    fn row_of(&self, view: usize, instance: usize) -> Option<usize> {
        match &self.views[view].rows {
            None => (instance < self.instances()).then_some(instance),
            Some(rows) => rows.get(instance).filter(|&&row| row != MISSING).map(|&row| row as usize),
        }
    }
}

/// Instances that one thread checks at a time.
const BLOCK: usize = 4096;

/// All instances, in blocks.
fn blocks(instances: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let range = move |block: usize| block * BLOCK..((block + 1) * BLOCK).min(instances);
    (0..instances.div_ceil(BLOCK)).into_par_iter().map(range)
}

impl Aligned<'_> {
    fn schema(&self, instances: usize) -> ViewSchema {
        let mut schema = self.view.schema();
        if let Some(rows) = self.rows.as_ref().filter(|rows| rows.contains(&MISSING)) {
            schema = schema.presence(Presence::from_fn(instances, |i| rows[i] != MISSING));
        }
        if let Some(cells) = self.holes {
            schema = schema.holes(cells);
        }
        schema
    }
}

impl Views<'_> {
    /// The rows of a range of instances in a view: borrowed, or in the buffer if they had to be gathered or read.
    ///
    /// # Errors
    /// When they are not in memory and cannot be read.
    ///
    /// # Panics
    /// When there is no such view or instance.
    pub fn block<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        if self.views[view].view.store().is_none() {
            return Ok(Memory::block(self, view, instances, buffer));
        }
        self.read(view, instances.clone(), buffer).map_err(|source| Error::Read {
            view: self.name(view).into(),
            first: instances.start,
            last: instances.end.saturating_sub(1),
            source,
        })?;
        Ok(buffer.block(self.schema.view(view).layout(), 0..instances.len()))
    }

    fn rows_of(&self, view: usize, instances: impl Iterator<Item = usize>) -> Vec<u32> {
        instances.map(|i| self.row_of(view, i).map_or(MISSING, index)).collect()
    }
}

/// Reads rows of a store in any order, some of which may be missing. Rows that are close together are read at once,
/// others one by one.
fn read_rows(
    store: &dyn RowStore,
    rows: Vec<u32>,
    buffer: &mut Buffer,
) -> std::result::Result<(), ReadError> {
    let here = || rows.iter().copied().filter(|&row| row != MISSING);
    let (first, end) = (here().min().unwrap_or(0), here().max().map_or(0, |last| last + 1));
    let count = here().count();
    if (end - first) as usize <= 2 * count {
        store.read(first as usize..end as usize, buffer)?;
        buffer.holds(store.layout(), store.shape().1, (end - first) as usize)?;
        buffer.index = rows;
        buffer.index.iter_mut().filter(|row| **row != MISSING).for_each(|row| *row -= first);
        return Ok(());
    }
    let mut sorted: Vec<u32> = here().collect();
    sorted.sort_unstable();
    store.pick(&sorted, buffer)?;
    buffer.holds(store.layout(), store.shape().1, sorted.len())?;
    buffer.index = rows;
    for row in buffer.index.iter_mut().filter(|row| **row != MISSING) {
        *row = index(sorted.binary_search(row).unwrap_or_default());
    }
    Ok(())
}

impl Source for Views<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        view: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        let aligned = &self.views[view];
        match (aligned.view.store(), &aligned.rows) {
            (Some(store), None) => {
                store.read(instances, buffer)?;
                buffer.index.clear();
            }
            (Some(store), Some(_)) => read_rows(store, self.rows_of(view, instances), buffer)?,
            (None, _) => {
                let mut scratch = Buffer::default();
                let block = Memory::block(self, view, instances.clone(), &mut scratch);
                buffer.copy(&block, instances.len(), aligned.view.features());
            }
        }
        Ok(())
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        Some(self)
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.views.iter().all(|aligned| aligned.view.store().is_none()).then_some(self)
    }

    fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        let aligned = &self.views[view];
        let there = aligned.view.store()?.device_rows()?;
        Some((there, aligned.rows.as_deref().map_or(Index::From(0), Index::Rows)))
    }
}

impl RandomAccess for Views<'_> {
    fn pick(
        &self,
        view: usize,
        instances: &[u32],
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        let numbers = || instances.iter().map(|&i| i as usize);
        let rows = self.rows_of(view, numbers());
        if let Some(store) = self.views[view].view.store() {
            return read_rows(store, rows, buffer);
        }
        let mut scratch = Buffer::default();
        let block = Memory::pick(self, view, instances, &mut scratch);
        buffer.copy(&block, instances.len(), self.views[view].view.features());
        Ok(())
    }
}

/// Only for views in memory.
impl Memory for Views<'_> {
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Block<'b> {
        let aligned = &self.views[view];
        let Some(rows) = aligned.view.matrix() else {
            buffer.index = self.rows_of(view, instances);
            return aligned.view.pick(buffer);
        };
        let index = match &aligned.rows {
            None => Index::From(instances.start),
            Some(rows) => Index::Rows(&rows[instances]),
        };
        Block { rows, index, holes: Holes::default() }
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        let row = |&i: &u32| self.row_of(view, i as usize).map_or(MISSING, index);
        buffer.index.clear();
        buffer.index.extend(instances.iter().map(row));
        self.views[view].view.pick(buffer)
    }
}
