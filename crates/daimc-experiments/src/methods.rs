//! The methods that DAIMC is compared with, one file each with its equations, behind one trait.
//!
//! Missing rows are imputed only if the method itself requires it, and no matrix is N × N unless the method's own model has one.
//! Methods work on rows in memory: a [`Source`] on disk is read completely first and kept during the fit.

mod algebra;
mod concatenation;
mod daimc_fit;
mod data;
mod graph;
mod img;
mod least_squares;
mod memory;
mod mic;
mod multi_nmf;
mod nemo;
mod nmf;
#[cfg(test)]
mod nmf_tests;
mod omvc;
mod opimc;
mod pair;
mod pca_spectral;
mod pvc;
mod single_view;
mod spectral;
#[cfg(test)]
mod testing;
mod view_rows;
mod weighted_semi_nmf;

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Source};

pub use concatenation::Concatenation;
pub use img::Img;
pub use mic::Mic;
pub use multi_nmf::MultiNmf;
pub use nemo::Nemo;
pub use nmf::NmfStart;
pub use omvc::Omvc;
pub use opimc::Opimc;
pub use pair::pairs;
pub use pca_spectral::PcaSpectral;
pub use pvc::Pvc;
pub use single_view::SingleView;
pub use weighted_semi_nmf::WeightedSemiNmf;

/// A clustering method for incomplete multi-view data.
pub trait Method: Sync {
    /// Its name in tables.
    fn name(&self) -> String;

    /// Clusters the instances into `clusters` clusters. Every random draw comes from `seed`. `each` is called after every
    /// iteration with its number and the objective; if it breaks, the result so far is returned.
    ///
    /// # Errors
    /// When the method cannot handle the data; the message suggests a remedy.
    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering>;
}

/// The result of a method.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Clustering {
    /// The cluster of each instance, from 0.
    pub labels: Vec<usize>,
    /// The representation that was clustered, a row per instance.
    pub embedding: Matrix,
    /// The objective after each iteration.
    pub history: Vec<f64>,
    /// The confidence of each instance, from 0 to 1; empty if the method does not report one.
    pub confidence: Vec<f64>,
}
