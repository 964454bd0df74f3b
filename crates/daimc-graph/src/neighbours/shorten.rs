//! Rows of other partitions, gathered for the neighbour search: complete, or shortened to what the search needs.

use std::ops::Range;

use rayon::prelude::*;

use super::project::longest;
use super::search::{DIRECTIONS, unit};
use daimc_core::index::index;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, MISSING};
use daimc_core::watch::Watch;
use daimc_core::{Layout, Matrix, Result, Schema, ViewOf, ViewSchema};

/// The maximum number of bytes of the rows from which directions are computed, if these are enough rows.
const SAMPLED: usize = 128 << 20;
const LEAST_SAMPLE: usize = 2000;

/// The number of bytes of rows that are sent, and read by a partition, at a time.
const TRAVELLING: usize = 32 << 20;
const READ: usize = 32 << 20;

/// The number of rows that one thread multiplies at a time.
const TILE: usize = 64;

/// The form in which the rows of a view are gathered: projections on these directions in single precision, or complete rows.
pub struct Shortened {
    /// The directions, d × D, or `None` for complete rows.
    pub directions: Option<Matrix>,
}

impl Shortened {
    /// Whether rows of a view are shortened: if they have many features, unless they store no more than their projections.
    pub fn applies(view: ViewOf<'_>) -> bool {
        let least = Layout::DenseF32.bytes() * DIRECTIONS;
        // Few rows do not span this many directions.
        let few = view.features() <= DIRECTIONS || view.present() < DIRECTIONS;
        !few && (view.layout().is_dense() || view.bytes_per_row() > least)
    }

    /// The leading directions of the rows, from a sample of them, scaled to a common unit of the views.
    pub fn new(
        scan: &Scan<'_>,
        view: usize,
        scaled_view: &ScaledView,
        seed: u64,
        watch: &Watch,
    ) -> Result<Self> {
        let known = scan.schema().view(view);
        if !Self::applies(known) {
            return Ok(Self { directions: None });
        }
        let mut directions = longest((scan, view, scaled_view), DIRECTIONS, sampled(known), seed, watch)?;
        if let Some(directions) = &mut directions {
            let root = unit(scaled_view).sqrt();
            directions.values_mut().iter_mut().for_each(|value| *value *= root);
        }
        Ok(Self { directions })
    }

    /// The schema of the gathered rows of a view.
    pub fn schema(&self, known: ViewOf<'_>) -> ViewSchema {
        match &self.directions {
            None => ViewSchema::clone(&known),
            Some(directions) => {
                let own = ViewSchema::new(known.name(), directions.columns(), Layout::DenseF32).holes(0);
                own.presence(known.shown())
            }
        }
    }

    /// The scaled view of the gathered rows: that of the view, or the identity.
    pub fn scaled_view(&self, gathered: &Scan<'_>, view: usize, whole: &ScaledView) -> Result<ScaledView> {
        if self.directions.is_none() {
            let mut scaled_view = ScaledView::placed(gathered, view, &whole.parts())?;
            scaled_view.sum_squares = whole.sum_squares;
            return Ok(scaled_view);
        }
        let mut scaling = Scaling::fit(gathered, view, Scale::None)?;
        scaling.importance = whole.scaling.importance;
        ScaledView::new(gathered, view, scaling)
    }
}

/// The number of instances whose rows are fetched to compute directions.
fn sampled(view: ViewOf<'_>) -> usize {
    (SAMPLED / view.bytes_per_row().max(1)).max(LEAST_SAMPLE)
}

/// The number of instances whose rows, of this many bytes, are sent at a time. Directions in the request must be small compared
/// with the rows.
pub fn travelling(bytes_per_row: usize, directions: Option<&Matrix>) -> usize {
    let least = directions.map_or(0, |directions| 4 * 8 * directions.values().len());
    (TRAVELLING.max(least) / bytes_per_row.max(1)).max(1)
}

/// Bytes of memory for gathering, in addition to the gathered rows: messages, or the directions and the sample that they are
/// computed from.
pub fn gathering(schema: &Schema) -> f64 {
    let view = |view: ViewOf<'_>| {
        if !Shortened::applies(view) {
            return 3 * TRAVELLING;
        }
        let sample = sampled(view).min(super::project::SAMPLE).min(view.present()) * view.bytes_per_row();
        // Directions are numbers of 8 bytes, with several copies in transit; replies are four times as long, and as many.
        let directions = 8 * view.features() * DIRECTIONS;
        let reply =
            TRAVELLING.max(4 * directions).min(view.present() * Layout::DenseF32.bytes() * DIRECTIONS);
        (3 * sample).max(4 * reply) + 6 * directions
    };
    schema.views().map(view).max().unwrap_or(0) as f64
}

/// The projections of consecutive instances on some directions, minus the centre of the view, in single precision.
pub fn along(
    (scan, view, scaled_view): (&Scan<'_>, usize, &ScaledView),
    instances: Range<usize>,
    directions: &Matrix,
) -> Result<Buffer> {
    let (operand, origin) = (scaled_view.operand(directions), scaled_view.along_centre(directions));
    let width = directions.columns();
    let mut all = Buffer::default();
    let mut buffer = Buffer::default();
    let step = (READ / scan.schema().view(view).bytes_per_row().max(1)).clamp(TILE, 1 << 14);
    for start in instances.clone().step_by(step) {
        let range = start..(start + step).min(instances.end);
        let block = scan.read(view, range.clone(), &mut buffer)?;
        let row = |i: usize| Some((i, block.index.row(i - start)?));
        let rows: Vec<(usize, usize)> = range.clone().filter_map(row).collect();
        let parts = rows.par_chunks(TILE).map_init(Scratch::default, |scratch, rows| {
            let mut part = Vec::with_capacity(rows.len() * width);
            scaled_view.project_each(&block, rows, &operand, scratch, |_, products| {
                part.extend(products.iter().zip(&origin).map(|(product, origin)| (product - origin) as f32));
            });
            part
        });
        let values = parts.collect::<Vec<_>>().concat();
        let mut next = (0..index(rows.len())).zip(rows.iter().map(|row| row.0)).peekable();
        let place = |i: usize| next.next_if(|(_, own)| *own == i).map_or(MISSING, |(at, _)| at);
        let mut part = Buffer::default();
        part.f32 = values;
        part.index = range.map(place).collect();
        part.offsets = vec![0; rows.len() + 1];
        all.append(&mut part);
    }
    Ok(all)
}
