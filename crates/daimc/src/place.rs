//! Rows of V and their clusters.

use rayon::prelude::*;

use crate::kmeans;
use crate::lens::Lens;
use crate::neighbours::Said;
use crate::options::Options;
use crate::scaling::Scaling;
use crate::scan::Scan;
use crate::{Matrix, Result, Stop, Views};

/// The rows of V of some instances, and their clusters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// Their rows of V.
    pub latent: Matrix,
    /// Their clusters.
    pub labels: Vec<usize>,
    /// How sure the clusters are, from 0 to 1; see [`Fit::confidence`](crate::Fit::confidence).
    pub confidence: Vec<f64>,
}

impl Place {
    /// The rows of V as data.
    pub(crate) fn rows(v: &Matrix) -> Result<Views<'_>> {
        Views::of_matrix(v)
    }

    /// Assigns rows of V to given centres.
    pub(crate) fn new(v: Matrix, scaling: &Scaling, centres: &Matrix, stop: &Stop) -> Result<Self> {
        let (labels, confidence) = {
            let rows = Views::of_matrix(&v)?;
            let rows = Scan::new(&rows, stop);
            let lens = Lens::new(&rows, 0, scaling.clone())?;
            let found = kmeans::assign(&rows, 0, &lens, centres)?;
            (found.labels.par_iter().map(|&label| label as usize).collect(), found.confidence)
        };
        Ok(Self { latent: v, labels, confidence })
    }

    /// Moves instances to the clusters of their neighbours. The margin is that between the two most likely clusters.
    pub(crate) fn follow(&mut self, said: &Said) {
        for (i, row) in said.posterior.iter_rows().enumerate() {
            let best = |without: Option<usize>| {
                let others = row.iter().enumerate().filter(|(k, _)| Some(*k) != without);
                others.fold((0, 0.0), |best, (k, share)| if *share > best.1 { (k, *share) } else { best })
            };
            let (first, share) = best(None);
            if share > 0.0 {
                self.labels[i] = first;
                self.confidence[i] = share - best(Some(first)).1;
            }
            if let Some(label) = said.same[i].filter(|label| *label != first) {
                self.labels[i] = label;
                self.confidence[i] = (row[label] - share).max(0.0);
            }
        }
    }

    /// Clusters rows by k-means. Returns how they were scaled for it, the centres, and the assignment.
    pub(crate) fn cluster(v: Matrix, options: &Options, stop: &Stop) -> Result<(Scaling, Matrix, Self)> {
        Self::cluster_from(v, options, stop, |_, _| Ok(None))
    }

    /// As [`Place::cluster`], for rows of V whose columns stand for clusters; see [`Place::first`].
    pub(crate) fn by_columns(v: Matrix, options: &Options, stop: &Stop) -> Result<(Scaling, Matrix, Self)> {
        Self::cluster_from(v, options, stop, |rows, lens| Self::first(rows, lens, options))
    }

    fn cluster_from(
        v: Matrix,
        options: &Options,
        stop: &Stop,
        first: impl FnOnce(&Scan<'_>, &Lens) -> Result<Option<Matrix>>,
    ) -> Result<(Scaling, Matrix, Self)> {
        let (scaling, centres) = {
            let rows = Views::of_matrix(&v)?;
            let rows = Scan::new(&rows, stop);
            let scaling = Scaling::fit(&rows, 0, options.latent_scale)?;
            let lens = Lens::new(&rows, 0, scaling.clone())?;
            let first = first(&rows, &lens)?;
            let centres = kmeans::centres(&rows, &lens, &options.kmeans(first.as_ref(), stop))?;
            (scaling, centres)
        };
        let place = Self::new(v, &scaling, &centres, stop)?;
        Ok((scaling, centres, place))
    }

    /// The centres of the clusters that the columns of V stand for, as a start of k-means. Used for more than [`kmeans::FEW`]
    /// clusters, where there are fewer random starts. An instance belongs to the column in which its entry is largest relative
    /// to the usual entry of the column.
    pub(crate) fn first(rows: &Scan<'_>, lens: &Lens, options: &Options) -> Result<Option<Matrix>> {
        let clusters = options.clusters;
        if lens.features() != clusters || clusters <= kmeans::FEW {
            return Ok(None);
        }
        kmeans::of_columns(rows, lens).map(Some)
    }

    /// Rows of V with given clusters. Returns how they are scaled, the means of the clusters, and the assignment.
    pub(crate) fn given(
        v: Matrix,
        options: &Options,
        labels: Vec<usize>,
        confidence: Vec<f64>,
    ) -> Result<(Scaling, Matrix, Self)> {
        let (scaling, centres) = {
            let rows = Views::of_matrix(&v)?;
            let rows = Scan::new(&rows, &Stop::default());
            let scaling = Scaling::fit(&rows, 0, options.latent_scale)?;
            let lens = Lens::new(&rows, 0, scaling.clone())?;
            let centres = kmeans::means(&rows, &lens, &labels, options.clusters)?;
            (scaling, centres)
        };
        Ok((scaling, centres, Self { latent: v, labels, confidence }))
    }
}
