//! Sums over the instances that a model has learnt from.

mod cells;

use crate::descent::Descent;
use crate::initialise::FLOOR;
use crate::options::Options;
pub(crate) use cells::Cells;
use daimc_core::metrics::best_assignment;
use daimc_core::statistics::Totals;
use daimc_core::{Ids, Matrix, Schema};

/// Sums over the instances that a model has learnt from, by which it can be updated with more. Their number does not grow with the
/// number of instances. After an update with a [memory factor](crate::Online::memory_factor) below 1 they are weighted sums, in
/// which earlier instances count less.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Retained {
    /// The statistics that the bases were solved from, at the scale of the bases.
    pub totals: Totals,
    /// `Σ_j w_vj ‖x_vj‖²` of each view.
    pub squares: Vec<f64>,
    /// How many instances each view shows.
    pub shown: Vec<f64>,
    /// How many instances each cluster has.
    pub members: Vec<f64>,
    /// The distribution of misfits, with which those of new instances are compared.
    pub(crate) spread: Spread,
    /// The rows that the bases are solved from, if columns of V stand for clusters; `None`: the rows of V.
    pub(crate) rows: Option<Members>,
    /// Sums over small groups of instances, while a stream is young.
    pub(crate) cells: Option<Cells>,
}

impl Retained {
    /// The sums of a fit. Clusters and misfits are added later.
    pub(crate) fn new(descent: &Descent, squares: Vec<f64>, schema: &Schema) -> Self {
        Self {
            totals: descent.basis_totals().clone(),
            squares,
            shown: schema.views().map(|view| view.present() as f64).collect(),
            members: Vec::new(),
            spread: Spread::new(schema.len()),
            rows: None,
            cells: None,
        }
    }

    /// Adds the clusters of a fit, given their centres and sizes. If columns of V stand for clusters, this matches them.
    pub(crate) fn of_clusters(mut self, options: &Options, centres: &Matrix, sizes: &[usize]) -> Self {
        self.members = sizes.iter().map(|&size| size as f64).collect();
        if options.consolidate && options.latent == options.clusters {
            self.rows = Some(Members::new(&self, centres));
        }
        self
    }

    /// Makes the clusters of a fit to few instances the first cells of a stream.
    pub(crate) fn begin_stream(&mut self) {
        self.cells = self.rows.as_ref().and_then(|rows| Cells::of_fit(self, rows));
    }

    /// The number of instances, weighted by memory.
    #[must_use]
    pub fn instances(&self) -> f64 {
        self.members.iter().sum()
    }

    /// Multiplies all sums by `factor`, except those of views that are not renewed.
    pub(crate) fn fade(&mut self, factor: f64, renewed: &[bool]) {
        for (view, _) in renewed.iter().enumerate().filter(|(_, renewed)| **renewed) {
            let Totals { gram, cross, holes, .. } = &mut self.totals;
            for values in [gram[view].values_mut(), cross[view].values_mut()] {
                values.iter_mut().for_each(|value| *value *= factor);
            }
            holes[view] *= factor;
            self.squares[view] *= factor;
            self.shown[view] *= factor;
            self.spread.errors[view] *= factor;
        }
        if let Some(cells) = &mut self.cells {
            cells.fade(factor, renewed);
        }
        let counts = self.totals.column_sums.iter_mut().chain(&mut self.members);
        counts.chain(&mut self.spread.counts).for_each(|count| *count *= factor);
    }

    /// Adds a view, with sums of zero.
    pub(crate) fn add_view(&mut self, features: usize) {
        let latent = self.totals.column_sums.len();
        self.totals.gram.push(Matrix::zeros(latent, latent));
        self.totals.cross.push(Matrix::zeros(features, latent));
        self.totals.holes.push(0.0);
        self.squares.push(0.0);
        self.shown.push(0.0);
        self.spread.errors.push(0.0);
        if let Some(cells) = &mut self.cells {
            cells.add_view(features);
        }
    }

    /// The sum of these statistics and those of a batch. View i of the batch is view `places[i]` of the model.
    pub(crate) fn with(&self, batch: &Totals, places: &[usize]) -> Totals {
        fn add(into: &mut [f64], from: &[f64]) {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        }
        let mut totals = self.totals.clone();
        for (own, &place) in places.iter().enumerate() {
            add(totals.gram[place].values_mut(), batch.gram[own].values());
            add(totals.cross[place].values_mut(), batch.cross[own].values());
            totals.holes[place] += batch.holes[own];
        }
        add(&mut totals.column_sums, &batch.column_sums);
        totals
    }

    /// Whether the sums have the shapes for views with these numbers of features and for these options.
    pub(crate) fn fits(&self, features: &[usize], options: &Options) -> bool {
        let Totals { cross, .. } = &self.totals;
        let positive = |values: &[f64]| values.iter().all(|value| *value >= 0.0);
        self.totals.check(options.latent).is_ok()
            && cross.iter().map(Matrix::rows).eq(features.iter().copied())
            && self.squares.len() == features.len()
            && self.shown.len() == features.len()
            && self.members.len() == options.clusters
            && self.spread.fits(features.len())
            && self
                .rows
                .as_ref()
                .is_none_or(|rows| options.latent == options.clusters && rows.fits(options.clusters))
            && (self.cells.is_none() || self.rows.is_some())
            && self.cells.as_ref().is_none_or(|cells| cells.fits(features))
            && [&self.squares, &self.shown, &self.members, &self.totals.holes, &self.totals.column_sums]
                .into_iter()
                .all(|values| positive(values))
    }
}

/// The rows of V that bases are solved from, if columns stand for clusters: those of a start from the clusters (see
/// `consolidate.rs`), at the scale that V had in the fit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Members {
    /// The column of each cluster.
    pub columns: Vec<usize>,
    /// The entry of an instance in the column of its cluster.
    pub scale: Vec<f64>,
}

impl Members {
    /// Matches the clusters of a fit with columns. The match stays fixed, because statistics of many batches are summed by it.
    fn new(retained: &Retained, centres: &Matrix) -> Self {
        let clusters = centres.columns();
        // Entries of unit rows as integers, whose sums do not overflow.
        let weight = |cluster: usize, column: usize| (centres[(column, cluster)] * 1e9) as i64;
        let matched = best_assignment(clusters, centres.rows(), weight);
        let columns: Vec<usize> =
            matched.into_iter().enumerate().map(|(cluster, column)| column.unwrap_or(cluster)).collect();
        let floor = FLOOR * retained.instances();
        let mut scale = vec![1.0; centres.rows()];
        for (cluster, &column) in columns.iter().enumerate() {
            let own = retained.totals.column_sums[column] / (retained.members[cluster] + floor);
            if own > 0.0 && own.is_finite() {
                scale[column] = own;
            }
        }
        Self { columns, scale }
    }

    pub fn fits(&self, clusters: usize) -> bool {
        let mut columns = self.columns.clone();
        columns.sort_unstable();
        columns.into_iter().eq(0..clusters)
            && self.scale.len() == clusters
            && self.scale.iter().all(|scale| *scale > 0.0)
    }

    /// The rows of instances with these labels; zero for an instance whose row of V is zero.
    pub fn rows(&self, labels: &[usize], latent: &Matrix) -> Matrix {
        let mut rows = Matrix::zeros(latent.rows(), latent.columns());
        for (i, &label) in labels.iter().enumerate() {
            if latent.row(i).iter().all(|value| *value == 0.0) {
                continue;
            }
            for (k, (value, scale)) in rows.row_mut(i).iter_mut().zip(&self.scale).enumerate() {
                let own = if k == self.columns[label] { 1.0 } else { 0.0 };
                *value = (own + FLOOR) * scale;
            }
        }
        rows
    }
}

/// The distribution of the misfits of the instances that a model has learnt from.
///
/// The misfit of an instance is its error in the views that it has, divided by the mean error there:
/// `Σ_v w_vj ‖x_vj − U_v v_j‖² / Σ_v w_vj ε_v`, about 1 for any set of views.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    /// `Σ_j w_vj ‖x_vj − U_v v_j‖²` of each view.
    pub errors: Vec<f64>,
    /// Histogram of the misfits over [`BINS`] ranges, four per factor of two.
    pub counts: Vec<f64>,
}

/// Ranges of misfits, from 2⁻⁴ to 2⁸.
pub(crate) const BINS: usize = 48;

impl Spread {
    pub fn new(views: usize) -> Self {
        Self { errors: vec![0.0; views], counts: vec![0.0; BINS] }
    }

    pub fn fits(&self, views: usize) -> bool {
        self.errors.len() == views
            && self.counts.len() == BINS
            && self.errors.iter().chain(&self.counts).all(|value| *value >= 0.0)
    }
}

/// The IDs of instances that a model has learnt from, as 64-bit hashes, from which the IDs cannot be recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// In increasing order.
    pub(crate) hashes: Vec<u64>,
}

impl Learnt {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether an ID is one of them.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.hashes.binary_search(&hash(id)).is_ok()
    }

    /// Merges two sorted runs, which a stable sort does in linear time.
    #[expect(clippy::stable_sort_primitive, reason = "there are two runs")]
    fn sort(&mut self) {
        self.hashes.sort();
    }

    /// Adds IDs. Row numbers are not IDs: every batch has the same.
    pub(crate) fn add(&mut self, ids: &Ids) {
        if let Ids::Names(names) = ids {
            let mut new: Vec<u64> = names.iter().map(|name| hash(name)).collect();
            new.sort_unstable();
            self.hashes.append(&mut new);
            self.sort();
            self.hashes.dedup();
        }
    }
}

/// FNV-1a with a finaliser. Model files contain its values, so it must not change.
fn hash(id: &str) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = id.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}
