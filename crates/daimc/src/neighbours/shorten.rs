//! Rows that are brought from elsewhere to be compared with each other: as they are, or shortened to what of them says who is near
//! whom.

use std::ops::Range;

use rayon::prelude::*;

use super::project::longest;
use super::search::{DIRECTIONS, unit};
use crate::index::index;
use crate::lens::{Lens, Scratch};
use crate::scaling::{Scale, Scaling};
use crate::scan::Scan;
use crate::source::{Buffer, MISSING};
use crate::watch::Watch;
use crate::{Layout, Matrix, Result, Schema, ViewOf, ViewSchema};

/// Bytes of the rows that directions are found from, at most, as long as they are enough rows.
const SAMPLED: usize = 128 << 20;
const LEAST_SAMPLE: usize = 2000;

/// Bytes of rows that travel at once, and of those that a holder reads at once.
const TRAVELLING: usize = 32 << 20;
const READ: usize = 32 << 20;

/// Rows that one thread multiplies at a time.
const TILE: usize = 64;

/// How the rows of a view are gathered: along these directions, in single precision, or as they are.
pub(crate) struct Shortened {
    pub directions: Option<Matrix>,
}

impl Shortened {
    /// Whether rows of a view are shortened: those of many features, unless they store no more than would be left of them.
    pub(crate) fn applies(view: ViewOf<'_>) -> bool {
        let least = Layout::DenseF32.bytes() * DIRECTIONS;
        // Few rows do not have so many directions.
        let few = view.features() <= DIRECTIONS || view.present() < DIRECTIONS;
        !few && (view.layout().is_dense() || view.bytes_per_row() > least)
    }

    /// The directions in which rows are longest, from a sample of them; their lengths bring rows to a common unit.
    pub fn new(scan: &Scan<'_>, view: usize, lens: &Lens, seed: u64, watch: &Watch) -> Result<Self> {
        let known = scan.schema().view(view);
        if !Self::applies(known) {
            return Ok(Self { directions: None });
        }
        let mut directions = longest((scan, view, lens), DIRECTIONS, sampled(known), seed, watch)?;
        if let Some(directions) = &mut directions {
            let root = unit(lens).sqrt();
            directions.values_mut().iter_mut().for_each(|value| *value *= root);
        }
        Ok(Self { directions })
    }

    /// What is gathered of a view.
    pub fn schema(&self, known: ViewOf<'_>) -> ViewSchema {
        match &self.directions {
            None => ViewSchema::clone(&known),
            Some(directions) => {
                let own = ViewSchema::new(known.name(), directions.columns(), Layout::DenseF32).holes(0);
                own.presence(known.shown())
            }
        }
    }

    /// How gathered rows are seen: as those of the view, or as they are.
    pub fn lens(&self, gathered: &Scan<'_>, view: usize, whole: &Lens) -> Result<Lens> {
        if self.directions.is_none() {
            let mut lens = Lens::placed(gathered, view, &whole.parts())?;
            lens.sum_squares = whole.sum_squares;
            return Ok(lens);
        }
        let mut scaling = Scaling::fit(gathered, view, Scale::None)?;
        scaling.importance = whole.scaling.importance;
        Lens::new(gathered, view, scaling)
    }
}

/// Instances whose rows are fetched to find directions.
fn sampled(view: ViewOf<'_>) -> usize {
    (SAMPLED / view.bytes_per_row().max(1)).max(LEAST_SAMPLE)
}

/// Instances whose rows of so many bytes travel at once; directions that travel with them are to be little beside them.
pub(crate) fn travelling(bytes_per_row: usize, directions: Option<&Matrix>) -> usize {
    let least = directions.map_or(0, |directions| 4 * 8 * directions.values().len());
    (TRAVELLING.max(least) / bytes_per_row.max(1)).max(1)
}

/// Bytes that gathering takes beside what is gathered: messages, or the sample that directions are found from and the directions.
pub(crate) fn gathering(schema: &Schema) -> f64 {
    let view = |view: ViewOf<'_>| {
        if !Shortened::applies(view) {
            return 3 * TRAVELLING;
        }
        let sample = sampled(view).min(super::project::SAMPLE).min(view.present()) * view.bytes_per_row();
        // Directions are numbers of 8 bytes, of which several copies are on their way; replies are four times as long, and as many.
        let directions = 8 * view.features() * DIRECTIONS;
        let reply =
            TRAVELLING.max(4 * directions).min(view.present() * Layout::DenseF32.bytes() * DIRECTIONS);
        (3 * sample).max(4 * reply) + 6 * directions
    };
    schema.views().map(view).max().unwrap_or(0) as f64
}

/// The rows of successive instances along some directions, less the centre of the view, in single precision.
pub(crate) fn along(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    instances: Range<usize>,
    directions: &Matrix,
) -> Result<Buffer> {
    let (operand, origin) = (lens.operand(directions), lens.along_centre(directions));
    let width = directions.columns();
    let mut all = Buffer::default();
    let mut room = Buffer::default();
    let step = (READ / scan.schema().view(view).bytes_per_row().max(1)).clamp(TILE, 1 << 14);
    for start in instances.clone().step_by(step) {
        let range = start..(start + step).min(instances.end);
        let block = scan.read(view, range.clone(), &mut room)?;
        let row = |i: usize| Some((i, block.index.row(i - start)?));
        let rows: Vec<(usize, usize)> = range.clone().filter_map(row).collect();
        let parts = rows.par_chunks(TILE).map_init(Scratch::default, |scratch, rows| {
            let mut part = Vec::with_capacity(rows.len() * width);
            lens.project_each(&block, rows, &operand, scratch, |_, products| {
                part.extend(products.iter().zip(&origin).map(|(product, origin)| (product - origin) as f32));
            });
            part
        });
        let values = parts.collect::<Vec<_>>().concat();
        let mut next = (0..index(rows.len())).zip(rows.iter().map(|row| row.0)).peekable();
        let place = |i: usize| next.next_if(|(_, own)| *own == i).map_or(MISSING, |(at, _)| at);
        let mut part = Buffer { f32: values, index: range.map(place).collect(), ..Buffer::default() };
        part.offsets = vec![0; rows.len() + 1];
        all.append(&mut part);
    }
    Ok(all)
}
