//! The starts of k-means: their number, their first centres, and the best result.

use std::sync::{Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Clustering, Points, SAME};
use crate::scaled_view::Scratch;
use crate::{Error, Matrix, Result, Stop};

/// Up to this number of clusters k-means makes all its starts and computes every distance.
///
/// Beyond it, starts and the candidates of `consolidate` decrease in proportion, so that their
/// cost stays linear in K, next to the N·K² of V. One start uses the clusters that the columns of V represent, which is
/// better than ten random starts. Lloyd's iterations then skip points whose nearest centre cannot have changed, and V
/// is solved with over-relaxation. Results with up to this number of clusters are not affected.
pub const FEW: usize = 20;

/// The parameters of k-means.
#[derive(Clone, Copy)]
pub struct KMeans<'a> {
    /// The number of clusters K.
    pub clusters: usize,
    /// The number of starts for up to [`FEW`] clusters; see `KMeans::starts`.
    pub restarts: usize,
    /// The seed of the random starts.
    pub seed: u64,
    /// The centres (d × K) of the first start, in place of random ones.
    pub first: Option<&'a Matrix>,
    /// Cancels the iterations.
    pub stop: &'a Stop,
}

impl KMeans<'_> {
    /// See [`starts`].
    fn starts(&self) -> usize {
        starts(self.clusters, self.restarts)
    }
}

/// The number of k-means starts for this number of clusters. Above [`FEW`] clusters it decreases in proportion, so that
/// the total cost is linear in the number of clusters; the more clusters, the less the starts differ.
pub fn starts(clusters: usize, restarts: usize) -> usize {
    restarts.saturating_mul(FEW).div_ceil(clusters.max(FEW)).max(1)
}

impl Points<'_> {
    /// Clusters the points and returns the best of all starts.
    ///
    /// # Errors
    /// When there are no points, or the fit is stopped.
    pub fn cluster(&self, k_means: &KMeans<'_>) -> Result<Clustering> {
        let found = self.cluster_all(k_means, |best, run| run <= best + SAME * best)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Clusters the points from each start, best first. Start s draws from stream s of the seed. `keep` receives the
    /// inertia of the best result so far and that of another, and returns whether to keep the other: the centres of
    /// many starts in a wide view need much memory.
    ///
    /// # Errors
    /// When there are no points, or the fit is stopped.
    pub fn cluster_all(
        &self,
        k_means: &KMeans<'_>,
        keep: impl Fn(f64, f64) -> bool + Sync,
    ) -> Result<Vec<Clustering>> {
        if self.len() == 0 {
            return Err(Error::EmptyInput { what: "k-means".into() });
        }
        let KMeans { clusters, seed, stop, .. } = *k_means;
        let distinct = clusters.min(self.len()).max(1);
        let first = k_means.first.filter(|first| first.columns() == distinct);
        let runs = Mutex::new(Vec::<(usize, Clustering)>::new());
        let best = |runs: &[(usize, Clustering)]| {
            runs.iter().map(|(_, run)| run.inertia).fold(f64::INFINITY, f64::min)
        };
        (0..k_means.starts()).into_par_iter().with_max_len(1).try_for_each(|stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream as u64);
            let mut scratch = Scratch::default();
            let centres = match first {
                Some(first) if stream == 0 => first.clone(),
                _ => self.seeds(distinct, &mut rng, &mut scratch, stop)?,
            };
            let run = self.lloyd(centres, distinct > FEW, &mut scratch, stop)?;
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push((stream, run));
            let best = best(&runs);
            runs.retain(|(_, run)| run.inertia == best || keep(best, run.inertia));
            Ok(())
        })?;
        let mut runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        runs.sort_by_key(|(stream, _)| *stream);
        // Starts with the same clusters differ by rounding only: the earliest of them comes first.
        let best = best(&runs);
        let inertia = |run: &Clustering| if run.inertia - best <= SAME * best { best } else { run.inertia };
        runs.sort_by(|(_, a), (_, b)| inertia(a).total_cmp(&inertia(b)));
        let mut runs: Vec<Clustering> = runs.into_iter().map(|(_, run)| run).collect();
        if distinct < clusters {
            // Fewer points than clusters: the remaining centres are the mean, and their clusters are empty.
            let mean = self.mean();
            for run in &mut runs {
                let centre = |f: usize, k: usize| if k < distinct { run.centres[(f, k)] } else { mean[f] };
                run.centres = Matrix::from_fn(mean.len(), clusters, centre);
            }
        }
        Ok(runs)
    }

    /// Greedy k-means++: each new centre is the best of a few candidates, drawn with probability proportional to the
    /// squared distance from the nearest centre so far.
    fn seeds(
        &self,
        clusters: usize,
        rng: &mut impl Rng,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<Matrix> {
        let candidates = 2 + (clusters as f64).ln() as usize;
        let mut nearest = vec![f64::INFINITY; self.len()];
        let mut chosen: Vec<Vec<f64>> = Vec::with_capacity(clusters);
        let mut trial: Vec<Vec<f64>> = vec![Vec::new(); candidates];
        while chosen.len() < clusters {
            stop.check()?;
            let first = chosen.is_empty();
            let mass = |i: usize| if first { self.weight(i) } else { self.weight(i) * nearest[i] };
            let total: f64 = (0..self.len()).map(mass).sum();
            let draws = if first { 1 } else { candidates };
            let mut targets: Vec<f64> = (0..draws).map(|_| rng.random::<f64>() * total).collect();
            targets.sort_unstable_by(f64::total_cmp);
            let picked = draw(&targets, self.len(), mass, rng);
            let rows: Vec<Vec<f64>> = picked.iter().map(|&i| self.values(i)).collect();
            let matrix = Matrix::from_fn(self.scaled_view.features(), draws, |f, c| rows[c][f]);
            trial.iter_mut().for_each(Vec::clear);
            let mut potential = vec![0.0; draws];
            self.distances(0..self.len(), &matrix, scratch, |i, distances| {
                for (c, distance) in distances.iter().enumerate() {
                    let distance = distance.min(nearest[i]);
                    potential[c] += self.weight(i) * distance;
                    trial[c].push(distance);
                }
            });
            let best = (0..draws).min_by(|&a, &b| potential[a].total_cmp(&potential[b])).unwrap_or(0);
            nearest.copy_from_slice(&trial[best]);
            chosen.push(rows.into_iter().nth(best).unwrap_or_default());
        }
        Ok(Matrix::from_fn(self.scaled_view.features(), clusters, |f, c| chosen[c][f]))
    }
}

/// For each of the increasing targets, the first index at which the cumulative sum of `mass` exceeds it; a random index
/// if all mass is zero.
fn draw(targets: &[f64], count: usize, mass: impl Fn(usize) -> f64, rng: &mut impl Rng) -> Vec<usize> {
    let mut picked = Vec::with_capacity(targets.len());
    let mut sum = 0.0;
    for i in 0..count {
        sum += mass(i);
        while picked.len() < targets.len() && targets[picked.len()] < sum {
            picked.push(i);
        }
    }
    while picked.len() < targets.len() {
        picked.push(rng.random_range(0..count));
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaled_view::ScaledView;
    use crate::scan::Scan;
    use crate::source::Buffer;
    use crate::synthetic::Synthetic;
    use crate::{Scale, Scaling, Views};

    #[test]
    fn many_clusters_have_fewer_starts() {
        let of = |clusters| starts(clusters, 10);
        assert_eq!([1, 10, 20, 21, 50, 100, 200, 1000].map(of), [10, 10, 10, 10, 4, 2, 1, 1]);
        assert_eq!(
            [(5, 0), (50, 1), (100, 50)].map(|(clusters, starts)| super::starts(clusters, starts)),
            [1, 1, 10]
        );
    }

    #[test]
    fn a_stop_ends_k_means() {
        let views = Views::new(vec![Synthetic::new(300, 30).dense::<f64>("x", 5).unwrap()]).unwrap();
        let scan = Scan::new(&views, &Stop::default());
        let scaled_view =
            ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, Scale::None).unwrap(), true).unwrap();
        let all: Vec<u32> = (0..300).collect();
        let mut buffer = Buffer::default();
        let points = Points::new(&scan, 0, &scaled_view, &all, &mut buffer).unwrap();
        for stopped in [false, true] {
            let stop = Stop::new();
            if stopped {
                stop.set();
            }
            for clusters in [3, 30] {
                let first = Matrix::from_fn(5, clusters, |f, k| points.values(k)[f]);
                for first in [None, Some(&first)] {
                    let k_means = KMeans { clusters, restarts: 1, seed: 0, first, stop: &stop };
                    let found = points.cluster(&k_means);
                    assert_eq!(matches!(found, Err(Error::Interrupted)), stopped);
                }
            }
        }
    }
}
