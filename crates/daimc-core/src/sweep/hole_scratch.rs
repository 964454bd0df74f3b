//! Scratch memory for rows with missing cells.

use std::ops::Range;

/// Scratch memory for rows with missing cells, reused from tile to tile.
#[derive(Default)]
pub(super) struct HoleScratch {
    /// The rows of the tile with missing cells.
    pub(super) rows: Vec<HoleRow>,
    /// Their missing cells: the feature and the fill value.
    pub(super) cells: Vec<Hole>,
    /// `r` of one view, in lanes.
    pub(super) right: Vec<f64>,
    /// A row of V and of r, padded.
    pub(super) v: Vec<f64>,
    pub(super) r: Vec<f64>,
    /// A copy of `r` of the tile.
    pub(super) kept: Vec<f64>,
    pub(super) gram: Vec<f64>,
    /// A row of V and of r in a group of otherwise empty lanes.
    pub(super) own_v: Vec<f64>,
    pub(super) own_right: Vec<f64>,
}

/// A row with missing cells in a view.
#[derive(Clone)]
pub(super) struct HoleRow {
    pub(super) lane: usize,
    pub(super) view: usize,
    /// The row of the view's matrix.
    pub(super) row: usize,
    /// Its range among the cells of the tile.
    pub(super) cells: Range<usize>,
}

#[derive(Clone, Copy)]
pub(super) struct Hole {
    pub(super) feature: u32,
    /// The scaled fill value.
    pub(super) stored: f64,
}
