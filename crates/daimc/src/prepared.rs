//! Cells that are missing inside rows.
//!
//! The loss counts the cells that are there. With `h(j)` the features that row j lacks it is
//!
//! ```text
//! Σ_j Σ_{f ∉ h(j)} ( x_jf − u_fᵀv_j )²
//! ```
//!
//! A [`Prepared`] source hands out rows without a gap, in which something finite stands for what is missing, and beside
//! them the pattern of the holes. Whoever only compares rows (k-means, neighbourhoods) takes them as they are; whoever
//! works with the loss takes what stands in the holes out again (see `sweep/holes.rs`).

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::Scalar;
use crate::scale::Observed;
use crate::scan::{Scan, off_the_pool};
use crate::source::{
    Block, Buffer, HoleRows, Index, MISSING, Memory, RandomAccess, ReadError, Rows, Source, is_finite,
};
use crate::views::index;
use crate::{Error, Layout, Result, Schema, Stop, ViewSchema};

/// What is done to the values of a view before they are scaled.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Preparation {
    /// What stands for a missing cell of each feature where rows are compared as they are: the mean of the values that the
    /// feature had in the fit. Empty: zero. It has no influence on V, which counts the cells that are there.
    pub fill: Vec<f64>,
}

impl Preparation {
    /// Puts these values where cells are missing, one for each feature.
    #[must_use]
    pub fn new(fill: Vec<f64>) -> Self {
        Self { fill }
    }
}

/// How many cells were missing inside the rows that a view shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingCells {
    /// Instances that the view shows.
    pub present: usize,
    /// Those of them that lack some cells.
    pub instances: usize,
    /// How many of them lack each feature; empty if no cell is missing.
    pub by_feature: Vec<usize>,
}

impl MissingCells {
    /// Of a view that shows so many instances, and has so many values of each feature.
    pub(crate) fn new(present: usize, instances: usize, observed: &[f64]) -> Self {
        let by_feature = match instances {
            0 => Vec::new(),
            _ => observed.iter().map(|observed| present - *observed as usize).collect(),
        };
        Self { present, instances, by_feature }
    }

    /// Cells in all.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.by_feature.iter().sum()
    }

    /// The share of the cells of present instances that are missing.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cells() as f64 / (self.present * self.by_feature.len()).max(1) as f64
    }

    /// How many features some instance lacks.
    #[must_use]
    pub fn features(&self) -> usize {
        self.by_feature.iter().filter(|missing| **missing > 0).count()
    }

    /// The features that most instances lack, at most so many, with the number of these; those that nobody lacks are not
    /// among them.
    #[must_use]
    pub fn most(&self, features: usize) -> Vec<(usize, usize)> {
        let mut lacking: Vec<(usize, usize)> = self.by_feature.iter().copied().enumerate().collect();
        lacking.retain(|(_, missing)| *missing > 0);
        lacking.sort_by_key(|&(_, missing)| std::cmp::Reverse(missing));
        lacking.truncate(features);
        lacking
    }

    /// The features that no instance has. They take no part.
    #[must_use]
    pub fn without_value(&self) -> Vec<usize> {
        let missing = self.by_feature.iter().enumerate();
        missing.filter(|(_, missing)| **missing == self.present).map(|(feature, _)| feature).collect()
    }
}

/// The rows of a [`Source`] with something finite in place of missing cells, and the pattern of these beside them. Rows in
/// memory are copied if any of a view lacks a cell, and are else those of the source; rows elsewhere are filled as they are
/// read. Fits and models prepare what they are given; a [`Cpu`](crate::Cpu) is given what is prepared.
pub struct Prepared<'a> {
    source: &'a dyn Source,
    schema: Schema,
    views: Vec<PreparedView>,
}

/// How the rows of a view are prepared.
enum PreparedView {
    /// Nothing is missing in them.
    Whole,
    /// In memory: a copy.
    Copied { values: Values, index: Vec<u32>, holes: HoleRows },
    /// As they are read.
    Read { fill: Vec<f64> },
}

enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// What has to be known of a view.
struct Known<'k> {
    fill: &'k [f64],
    cells: usize,
    empty: &'k [u32],
}

impl<'a> Prepared<'a> {
    /// Prepares the views of a source, each in its way, such as that of a [`ViewModel`](crate::ViewModel::preparation). A
    /// source that does not tell whether cells are missing is looked through once.
    ///
    /// # Errors
    /// When there is not a preparation for each view, or one has not a number for each feature, and when rows cannot be read.
    pub fn new(source: &'a dyn Source, preparations: &[Preparation]) -> Result<Self> {
        let (expected, found) = (source.views(), preparations.len());
        if expected != found {
            let what = "preparations, one for each view".into();
            return Err(Error::LengthMismatch { what, expected, found });
        }
        for (view, Preparation { fill }) in preparations.iter().enumerate() {
            let (expected, found) = (source.features(view), fill.len());
            if found != 0 && found != expected {
                let what = "values that stand for missing cells, one for each feature".into();
                return Err(Error::LengthMismatch { what, expected, found });
            }
            if let Some(bad) = fill.iter().find(|value| !value.is_finite()) {
                let reason = "what stands for a missing cell must be finite".into();
                return Err(Error::Unsuitable { what: "preparation", value: bad.to_string(), reason });
            }
        }
        let look = || {
            let scan = Scan::new(source, &Stop::default());
            (0..source.views()).map(|view| Looked::at(&scan, view)).collect::<Result<Vec<_>>>()
        };
        let told = source.schema().views().all(|view| view.missing_cells().is_some());
        let looked = if told { look()? } else { off_the_pool(source, look)? };
        let known = looked
            .iter()
            .zip(preparations)
            .map(|(Looked { cells, empty }, Preparation { fill })| Known { fill, cells: *cells, empty });
        Self::with(source, known)
    }

    /// Prepares one view of a source; the others are as they are.
    pub(crate) fn one(
        source: &'a dyn Source,
        view: usize,
        Preparation { fill }: &Preparation,
    ) -> Result<Self> {
        let own = Looked::at(&Scan::new(source, &Stop::default()), view)?;
        let known = (0..source.views()).map(|other| {
            let (cells, empty) = if other == view { (own.cells, &own.empty[..]) } else { (0, &[][..]) };
            Known { fill, cells, empty }
        });
        Self::with(source, known)
    }

    /// Prepares the views of a source as what was seen of their features says.
    pub(crate) fn observed(source: &'a dyn Source, observed: &[Observed]) -> Result<Self> {
        let known = observed.iter().map(|Observed { means, missing, empty, .. }| Known {
            fill: means,
            cells: missing.cells(),
            empty,
        });
        Self::with(source, known)
    }

    fn with<'k>(source: &'a dyn Source, known: impl Iterator<Item = Known<'k>>) -> Result<Self> {
        let given = source.schema();
        let instances = given.instances();
        let (mut views, mut schemas) = (Vec::new(), Vec::new());
        let mut any_empty = false;
        for (view, Known { fill, cells, empty }) in known.enumerate() {
            let schema = ViewSchema::clone(&given.view(view)).without(instances, empty).holes(cells);
            any_empty |= !empty.is_empty();
            schemas.push(schema);
            let mut fill = fill.to_vec();
            fill.resize(source.features(view), 0.0);
            views.push(match source.memory() {
                _ if cells == 0 && empty.is_empty() => PreparedView::Whole,
                None => PreparedView::Read { fill },
                Some(memory) => PreparedView::copy(memory, given, view, empty, &fill),
            });
        }
        let schema = Schema::unchecked(given.shared_ids(), schemas);
        // Instances that lack all cells of a view may be in no other.
        if any_empty {
            schema.check()?;
        }
        Ok(Self { source, schema, views })
    }

    /// Fills what was read of some instances.
    fn fill(&self, view: usize, instances: impl Iterator<Item = usize>, buffer: &mut Buffer) {
        buffer.holes.clear();
        let PreparedView::Read { fill } = &self.views[view] else { return };
        let Buffer { f32, f64, holes, .. } = buffer;
        match self.schema.view(view).layout() {
            Layout::DenseF32 => f32.chunks_exact_mut(fill.len()).for_each(|row| holes.fill(row, fill)),
            Layout::DenseF64 => f64.chunks_exact_mut(fill.len()).for_each(|row| holes.fill(row, fill)),
            Layout::SparseF32 | Layout::SparseF64 => {}
        }
        let (own, given) = (self.schema.view(view), self.source.schema().view(view));
        if own.present() == given.present() {
            return;
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
    }
}

impl PreparedView {
    /// A copy of the rows of a view in memory.
    fn copy(memory: &dyn Memory, schema: &Schema, view: usize, empty: &[u32], fill: &[f64]) -> Self {
        let (instances, given) = (schema.instances(), schema.view(view));
        let here = |i: &u32| given.shows(*i as usize) && empty.binary_search(i).is_err();
        let shown: Vec<u32> = (0..index(instances)).filter(here).collect();
        let mut rows = vec![MISSING; instances];
        (0..).zip(&shown).for_each(|(row, &i)| rows[i as usize] = row);
        let (values, holes) = if given.layout() == Layout::DenseF32 {
            let (values, holes) = copy(memory, view, &shown, fill, single);
            (Values::F32(values), holes)
        } else {
            let (values, holes) = copy(memory, view, &shown, fill, double);
            (Values::F64(values), holes)
        };
        Self::Copied { values, index: rows, holes }
    }
}

fn single(rows: Rows<'_>) -> &[f32] {
    if let Rows::DenseF32(values) = rows { values } else { &[] }
}

fn double(rows: Rows<'_>) -> &[f64] {
    if let Rows::DenseF64(values) = rows { values } else { &[] }
}

/// Rows that one thread copies at a time.
const COPIED: usize = 1024;

/// The rows of these instances, filled.
fn copy<T: Scalar>(
    memory: &dyn Memory,
    view: usize,
    instances: &[u32],
    fill: &[f64],
    typed: impl Fn(Rows<'_>) -> &[T] + Sync,
) -> (Vec<T>, HoleRows) {
    let d = fill.len();
    let mut values = vec![T::default(); instances.len() * d];
    let parts = values.par_chunks_mut(COPIED * d).zip(instances.par_chunks(COPIED));
    let patterns: Vec<HoleRows> = parts
        .map(|(values, instances)| {
            let (mut buffer, mut holes) = (Buffer::default(), HoleRows::default());
            let block = memory.pick(view, instances, &mut buffer);
            let given = typed(block.rows);
            for (i, values) in values.chunks_exact_mut(d).enumerate() {
                if let Some(row) = block.index.row(i) {
                    values.copy_from_slice(&given[row * d..(row + 1) * d]);
                }
                holes.fill(values, fill);
            }
            holes
        })
        .collect();
    let mut holes = HoleRows::default();
    patterns.into_iter().for_each(|mut own| holes.append(&mut own));
    (values, holes)
}

/// What is missing in a view.
#[derive(Default)]
struct Looked {
    cells: usize,
    empty: Vec<u32>,
}

impl Looked {
    /// Asks the schema, or looks at all rows.
    fn at(scan: &Scan<'_>, view: usize) -> Result<Self> {
        let schema = scan.schema().view(view);
        if let Some(cells) = schema.missing_cells() {
            return Ok(Self { cells, empty: Vec::new() });
        }
        let d = schema.features();
        let mut all = Self::default();
        scan.pass_view(
            view,
            Self::default,
            |piece, own| {
                for (instance, row) in piece.shown() {
                    match piece.blocks[0].rows {
                        Rows::DenseF32(x) => own.row(instance, &x[row * d..(row + 1) * d]),
                        Rows::DenseF64(x) => own.row(instance, &x[row * d..(row + 1) * d]),
                        Rows::SparseF32(_) | Rows::SparseF64(_) => {}
                    }
                }
                Ok(())
            },
            |own| {
                all.cells += std::mem::take(&mut own.cells);
                all.empty.append(&mut own.empty);
            },
        )?;
        Ok(all)
    }

    fn row<T: Scalar>(&mut self, instance: usize, row: &[T]) {
        if is_finite(row) {
            return;
        }
        let missing = row.iter().filter(|value| value.to_f64().is_nan()).count();
        if missing == row.len() {
            self.empty.push(index(instance));
        } else {
            self.cells += missing;
        }
    }
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
        if let PreparedView::Copied { .. } = &self.views[view] {
            let mut room = Buffer::default();
            let block = Memory::block(self, view, instances.clone(), &mut room);
            buffer.clear();
            (0..instances.len()).for_each(|i| buffer.push(&block, i, self.features(view)));
            return Ok(());
        }
        self.source.read(view, instances.clone(), buffer)?;
        self.fill(view, instances, buffer);
        Ok(())
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        self.source.random_access().is_some().then_some(self)
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.source.memory().is_some().then_some(self)
    }
}

impl RandomAccess for Prepared<'_> {
    fn pick(
        &self,
        view: usize,
        instances: &[u32],
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        if let PreparedView::Copied { .. } = &self.views[view] {
            let mut room = Buffer::default();
            let block = Memory::pick(self, view, instances, &mut room);
            buffer.clear();
            (0..instances.len()).for_each(|i| buffer.push(&block, i, self.features(view)));
            return Ok(());
        }
        let Some(random) = self.source.random_access() else {
            return Err("there is no way to single rows".into());
        };
        random.pick(view, instances, buffer)?;
        self.fill(view, instances.iter().map(|&i| i as usize), buffer);
        Ok(())
    }
}

/// Only where the rows of the source are in memory.
impl Memory for Prepared<'_> {
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Block<'b> {
        match &self.views[view] {
            PreparedView::Copied { values, index, holes } => {
                Block { rows: values.rows(), index: Index::Rows(&index[instances]), holes: holes.holes() }
            }
            _ => self.source.memory().expect("the rows are in memory").block(view, instances, buffer),
        }
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        match &self.views[view] {
            PreparedView::Copied { values, index, holes } => {
                buffer.index.clear();
                buffer.index.extend(instances.iter().map(|&i| index[i as usize]));
                Block { rows: values.rows(), index: Index::Rows(&buffer.index), holes: holes.holes() }
            }
            _ => self.source.memory().expect("the rows are in memory").pick(view, instances, buffer),
        }
    }
}

impl Values {
    fn rows(&self) -> Rows<'_> {
        match self {
            Self::F32(values) => Rows::DenseF32(values),
            Self::F64(values) => Rows::DenseF64(values),
        }
    }
}
