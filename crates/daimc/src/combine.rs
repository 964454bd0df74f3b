//! Several runs from different starts, combined: their rows of V, each brought to length 1, are stacked side by side and
//! clustered together. What most runs agree on decides; how many agree is the confidence.

use crate::consolidate::restart;
use crate::kmeans;
use crate::leaders::{self, Leaders};
use crate::lens::Lens;
use crate::metrics::matching;
use crate::options::Options;
use crate::place::Place;
use crate::scale::{Scale, Scaling};
use crate::scan::Scan;
use crate::{Matrix, Result, Stop, View, Views};

/// What is kept of the runs.
#[derive(Default)]
pub(crate) struct Runs {
    /// The clusters that each run found.
    labels: Vec<Vec<usize>>,
    /// V of each run; rows of length 1.
    rows: Vec<Vec<f32>>,
    /// The features that lead the clusters of each run.
    leaders: Vec<Leaders>,
}

impl Runs {
    /// Adds a run.
    pub fn add(&mut self, place: &Place, leaders: Leaders) {
        let row = |row: &[f64]| {
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
            row.iter().map(|v| (v * unit) as f32).collect::<Vec<_>>()
        };
        self.rows.push(place.latent.iter_rows().flat_map(row).collect());
        self.labels.push(place.labels.clone());
        self.leaders.push(leaders);
    }

    /// Clusters the stacked rows.
    fn cluster(&mut self, options: &Options) -> Result<Vec<usize>> {
        let (runs, latent) = (self.rows.len(), options.latent);
        let instances = self.labels[0].len();
        let mut stacked = vec![0.0_f32; instances * runs * latent];
        // One run after the other, so that less than twice of what is stacked is held.
        for (run, rows) in self.rows.drain(..).enumerate() {
            for (stacked, row) in stacked.chunks_exact_mut(runs * latent).zip(rows.chunks_exact(latent)) {
                stacked[run * latent..(run + 1) * latent].copy_from_slice(row);
            }
        }
        let views = Views::new(vec![View::dense("runs", runs * latent, stacked)?])?;
        let rows = Scan::new(&views, &Stop::default());
        let lens = Lens::new(&rows, 0, Scaling::fit(&rows, 0, Scale::None)?)?;
        let centres = kmeans::centres(&rows, &lens, &options.kmeans(None, rows.stop()))?;
        let found = kmeans::assign(&rows, 0, &lens, &centres)?;
        Ok(found.labels.into_iter().map(|label| label as usize).collect())
    }

    /// The clusters of all runs together, as the first V of one more: see [`restart`].
    pub fn combine(&mut self, options: &Options) -> Result<Matrix> {
        let labels = self.cluster(options)?;
        Ok(restart(&labels, options.clusters))
    }

    /// For each run, the pairs of a final cluster and its own that belong together.
    pub fn matched(&self, labels: &[usize]) -> Result<Vec<Vec<(usize, usize)>>> {
        self.labels.iter().map(|own| matching(labels, own)).collect()
    }

    /// For each instance, the share of the runs that agree with its cluster, and for each run, the share of the
    /// instances on which it agrees.
    pub fn agreement(&self, labels: &[usize], matched: &[Vec<(usize, usize)>]) -> (Vec<f64>, Vec<f64>) {
        let mut agreed = vec![0_usize; labels.len()];
        let mut by_run = Vec::with_capacity(self.labels.len());
        for (own, pairs) in self.labels.iter().zip(matched) {
            let mut count = 0;
            for ((label, own), agreed) in labels.iter().zip(own).zip(&mut agreed) {
                if pairs.binary_search(&(*label, *own)).is_ok() {
                    *agreed += 1;
                    count += 1;
                }
            }
            by_run.push(f64::from(count) / labels.len() as f64);
        }
        let runs = self.labels.len() as f64;
        (agreed.into_iter().map(|count| count as f64 / runs).collect(), by_run)
    }

    /// For each view, the share of the runs in which each feature leads each of the final clusters, given how these are
    /// matched, B and the centres; see [`ViewModel::stability`](crate::ViewModel::stability). `None` if there was but one run.
    pub fn stability(
        &self,
        matched: &[Vec<(usize, usize)>],
        alignments: &[Matrix],
        centres: &Matrix,
    ) -> Option<Vec<Matrix>> {
        let runs = self.leaders.iter().zip(matched.iter().map(Vec::as_slice));
        (runs.len() > 1).then(|| leaders::stability(runs, alignments, centres))
    }
}
