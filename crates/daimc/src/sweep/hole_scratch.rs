//! Scratch memory for rows that lack cells.

use std::ops::Range;

/// What rows that lack cells need, kept from tile to tile.
#[derive(Default)]
pub(super) struct HoleScratch {
    /// The rows of the tile that lack cells.
    pub(super) rows: Vec<HoleRow>,
    /// Their missing cells: the feature, and what stands there.
    pub(super) cells: Vec<Hole>,
    /// `r` of one view, in lanes.
    pub(super) right: Vec<f64>,
    /// A row of V and of r, padded.
    pub(super) v: Vec<f64>,
    pub(super) r: Vec<f64>,
    /// `r` of the tile, while another is worked with.
    pub(super) kept: Vec<f64>,
    pub(super) gram: Vec<f64>,
    /// A row of V and of r among empty lanes.
    pub(super) own_v: Vec<f64>,
    pub(super) own_right: Vec<f64>,
}

/// A row that lacks cells in a view.
#[derive(Clone)]
pub(super) struct HoleRow {
    pub(super) lane: usize,
    pub(super) view: usize,
    /// The row of the view's matrix.
    pub(super) row: usize,
    /// Its cells among those of the tile.
    pub(super) cells: Range<usize>,
}

#[derive(Clone, Copy)]
pub(super) struct Hole {
    pub(super) feature: u32,
    /// The scaled value that stands there.
    pub(super) stored: f64,
}
