//! Preparation of rows before scaling: logarithms, and missing cells inside rows.
//!
//! The loss counts the observed cells only. With `h(j)` the missing features of row j it is
//!
//! ```text
//! Σ_j Σ_{f ∉ h(j)} ( x_jf − u_fᵀv_j )²
//! ```
//!
//! A [`Prepared`] source returns rows without NaN: missing cells hold a finite value, and the pattern of missing cells
//! comes with the rows. Steps that compare rows (k-means, neighbour search) use the filled rows, in which a missing
//! cell holds the mean of the feature; steps that work with the loss subtract the filled values again (see
//! `sweep/holes.rs`).
//!
//! The features of a view are examined once, by the pass that fits the scaling. A view without missing cells is not
//! changed or copied.

mod missing;
mod preparation;

use std::ops::Range;
use std::sync::Arc;

use crate::index::index;
use crate::scaling::Scale;
use crate::scan::{Scan, Shared, off_the_pool};
use crate::source::{Block, Buffer, DeviceRows, Index, MISSING, Memory, RandomAccess, ReadError, Source};
use crate::text::quoted;
use crate::{Error, Layout, Result, Schema, Stop, ViewSchema};
use missing::Looked;
pub use missing::MissingCells;
use preparation::Negative;
pub use preparation::Preparation;
pub use preparation::{logarithm, negative};

/// The rows of a [`Source`] with finite values in missing cells, the pattern of missing cells, and logarithms of the
/// values if the scaling requires them. Rows in memory are borrowed from the source if nothing changes, and copied
/// otherwise; other rows are prepared while they are read. Fits and models prepare their input themselves; a
/// [`Cpu`](crate::Cpu) needs prepared input.
pub struct Prepared<'a> {
    source: Shared<'a>,
    schema: Schema,
    views: Vec<PreparedView>,
}

/// How the rows of a view are prepared.
enum PreparedView {
    /// Unchanged.
    Whole,
    /// Copied to memory.
    Copied(Buffer),
    /// Changed while they are read.
    Read(Preparation),
}

impl<'a> Prepared<'a> {
    /// Prepares each view of a source, for example with that of a `ViewModel`. If the
    /// schema does not give the number of missing cells, all rows are read once.
    ///
    /// # Errors
    /// When there is not one preparation per view, one does not have a number for each feature, or rows cannot be read.
    pub fn new(source: &'a dyn Source, preparations: &[Preparation]) -> Result<Self> {
        Self::over(Arc::new(source), preparations)
    }

    /// As [`Prepared::new`], for a shared source.
    pub fn over(source: Shared<'a>, preparations: &[Preparation]) -> Result<Self> {
        let (expected, found) = (source.views(), preparations.len());
        if expected != found {
            let what = "preparations, one for each view".into();
            return Err(Error::LengthMismatch { what, expected, found });
        }
        for (view, Preparation { fill, .. }) in preparations.iter().enumerate() {
            let (expected, found) = (source.features(view), fill.len());
            if found != 0 && found != expected {
                let what = "fill values of missing cells, one for each feature".into();
                return Err(Error::LengthMismatch { what, expected, found });
            }
            if let Some(bad) = fill.iter().find(|value| !value.is_finite()) {
                let reason = "the fill value of a missing cell must be finite".into();
                return Err(Error::Unsuitable { what: "preparation", value: bad.to_string(), reason });
            }
        }
        let look = || {
            let scan = Scan::new(&*source, &Stop::default());
            (0..source.views()).map(|view| Looked::at(&scan, view)).collect::<Result<Vec<_>>>()
        };
        let counted = source.schema().views().all(|view| view.missing_cells().is_some());
        let looked = if counted { look()? } else { off_the_pool(&*source, look)? };
        let known = looked.iter().zip(preparations);
        let known = known.map(|(Looked { cells, empty }, preparation)| (preparation, *cells, &empty[..]));
        Self::with(source, known)
    }

    /// Prepares one view of a source and leaves the others unchanged.
    pub fn one(source: &'a dyn Source, view: usize, preparation: &Preparation) -> Result<Self> {
        let own = Looked::at(&Scan::new(source, &Stop::default()), view)?;
        let none = Preparation::default();
        let known = (0..source.views()).map(|other| {
            if other == view { (preparation, own.cells, &own.empty[..]) } else { (&none, 0, &[][..]) }
        });
        Self::with(Arc::new(source), known)
    }

    /// Prepares each view, given the preparation, the number of missing cells, and the instances that lack all cells.
    pub fn with<'k>(
        source: Shared<'a>,
        known: impl Iterator<Item = (&'k Preparation, usize, &'k [u32])>,
    ) -> Result<Self> {
        let given = source.schema();
        let instances = given.instances();
        let (mut views, mut schemas) = (Vec::new(), Vec::new());
        let mut any_empty = false;
        for (view, (preparation, cells, empty)) in known.enumerate() {
            let schema = ViewSchema::clone(&given.view(view)).without(instances, empty).holes(cells);
            any_empty |= !empty.is_empty();
            schemas.push(schema);
            let mut preparation = preparation.clone();
            preparation.fill.resize(source.features(view), 0.0);
            views.push(match source.memory() {
                _ if cells == 0 && empty.is_empty() && !preparation.log => PreparedView::Whole,
                None => PreparedView::Read(preparation),
                Some(memory) => PreparedView::Copied(copy(&*source, memory, view, empty, &preparation)?),
            });
        }
        let schema = Schema::unchecked(given.shared_ids(), schemas);
        // Instances that lack all cells of a view may be present in no other.
        if any_empty {
            schema.check()?;
        }
        Ok(Self { source, schema, views })
    }

    /// Prepares the rows of the given instances in the buffer.
    fn prepare(
        &self,
        view: usize,
        instances: impl Iterator<Item = usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        buffer.holes.clear();
        let PreparedView::Read(preparation) = &self.views[view] else { return Ok(()) };
        let (own, given) = (self.schema.view(view), self.source.schema().view(view));
        preparation
            .apply(own.layout(), buffer)
            .map_err(|Negative { feature, value, .. }| refusal(value, &own.feature_name(feature)))?;
        if own.present() == given.present() {
            return Ok(());
        }
        let all = buffer.index.is_empty();
        for (at, instance) in instances.enumerate() {
            if all {
                buffer.index.push(index(at));
            }
            if let Some(row) = buffer.index.get_mut(at).filter(|_| !own.shows(instance)) {
                *row = MISSING;
            }
        }
        Ok(())
    }
}

/// The reason why logarithms of rows cannot be taken. A fit reports it earlier.
fn refusal(value: f64, feature: &str) -> String {
    format!("{}; give the values in the units of the fit", negative(value, feature))
}

/// Instances that are copied at a time.
const COPIED: usize = 16_384;

/// Copies the rows of a view to memory and prepares them, without the instances that lack all cells.
fn copy(
    source: &dyn Source,
    memory: &dyn Memory,
    view: usize,
    empty: &[u32],
    preparation: &Preparation,
) -> Result<Buffer> {
    let (instances, schema) = (source.instances(), source.schema().view(view));
    let d = schema.features();
    let mut rows = Buffer::default();
    match schema.layout() {
        Layout::DenseF32 => rows.f32.reserve_exact(schema.present() * d),
        Layout::DenseF64 => rows.f64.reserve_exact(schema.present() * d),
        Layout::SparseF32 | Layout::SparseF64 => {}
    }
    for start in (0..instances).step_by(COPIED) {
        let range = start..(start + COPIED).min(instances);
        let mut scratch = Buffer::default();
        let block = memory.block(view, range.clone(), &mut scratch);
        range.clone().for_each(|i| rows.push_from(&block, i - start, d));
    }
    if let Err(Negative { row, feature, value }) = preparation.apply(schema.layout(), &mut rows) {
        let instance = rows.index.iter().position(|own| *own == index(row)).unwrap_or(row);
        let (id, reason) = (source.id(instance), refusal(value, &schema.feature_name(feature)));
        let reason = format!("instance {}: {reason}", quoted(&id));
        return Err(Error::Scaling { view: schema.name().into(), scale: Scale::Log.to_string(), reason });
    }
    empty.iter().for_each(|&i| rows.index[i as usize] = MISSING);
    if !rows.index.contains(&MISSING) {
        rows.index.clear();
    }
    Ok(rows)
}

impl Source for Prepared<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        view: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        if let PreparedView::Copied(_) = &self.views[view] {
            let mut scratch = Buffer::default();
            let block = Memory::block(self, view, instances.clone(), &mut scratch);
            buffer.copy(&block, instances.len(), self.features(view));
            return Ok(());
        }
        self.source.read(view, instances.clone(), buffer)?;
        self.prepare(view, instances, buffer)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        self.source.random_access().is_some().then_some(self)
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.source.memory().is_some().then_some(self)
    }

    fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        match self.views[view] {
            PreparedView::Whole => self.source.device_rows(view),
            PreparedView::Copied(_) | PreparedView::Read(_) => None,
        }
    }
}

impl RandomAccess for Prepared<'_> {
    fn pick(
        &self,
        view: usize,
        instances: &[u32],
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        if let PreparedView::Copied(_) = &self.views[view] {
            let mut scratch = Buffer::default();
            let block = Memory::pick(self, view, instances, &mut scratch);
            buffer.copy(&block, instances.len(), self.features(view));
            return Ok(());
        }
        let Some(random) = self.source.random_access() else {
            return Err("the source has no random access".into());
        };
        random.pick(view, instances, buffer)?;
        self.prepare(view, instances.iter().map(|&i| i as usize), buffer)
    }
}

/// Only where the rows of the source are in memory.
impl Memory for Prepared<'_> {
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Block<'b> {
        match &self.views[view] {
            PreparedView::Copied(rows) => rows.block(self.schema.view(view).layout(), instances),
            _ => self.source.memory().expect("the rows are in memory").block(view, instances, buffer),
        }
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        match &self.views[view] {
            PreparedView::Copied(rows) => {
                let row = |&i: &u32| rows.index.get(i as usize).copied().unwrap_or(i);
                buffer.index.clear();
                buffer.index.extend(instances.iter().map(row));
                let block = rows.block(self.schema.view(view).layout(), 0..0);
                Block { index: Index::Rows(&buffer.index), ..block }
            }
            _ => self.source.memory().expect("the rows are in memory").pick(view, instances, buffer),
        }
    }
}
