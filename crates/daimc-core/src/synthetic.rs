//! Multi-view data of any size with known clusters, for tests and benchmarks.

pub mod planted;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::kernel::Scalar;
use crate::{Result, View};

/// Multi-view data with planted clusters; the same seed gives the same data.
///
/// ```
/// use daimc_core::{Views, synthetic::Synthetic};
///
/// let data = Synthetic::new(300, 3).seed(1);
/// let views = Views::new(vec![data.dense::<f64>("a", 20)?, data.sparse::<f32>("b", 200, 0.05)?])?;
/// assert_eq!(views.instances(), data.truth().len());
/// # Ok::<(), daimc_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    instances: usize,
    clusters: usize,
    noise: f64,
    informative: Option<usize>,
    seed: u64,
}

/// Rows that draw from the same stream of the seed, so that rows can be generated in parallel.
const ROWS: usize = 1024;

impl Synthetic {
    /// Data with this number of instances and clusters.
    #[must_use]
    pub fn new(instances: usize, clusters: usize) -> Self {
        Self { instances, clusters: clusters.max(1), noise: 1.0, informative: None, seed: 0 }
    }

    /// Sets the standard deviation of the noise; that of the centres is 1. The default is 1.
    #[must_use]
    pub fn noise(mut self, noise: f64) -> Self {
        self.noise = noise;
        self
    }

    /// Sets the number of features of a dense view that distinguish the clusters; the others are noise. By default all
    /// do. [`Synthetic::informative_features`] returns them.
    #[must_use]
    pub fn informative(mut self, features: usize) -> Self {
        self.informative = Some(features);
        self
    }

    /// The features of a dense view that distinguish the clusters, in increasing order.
    #[must_use]
    pub fn informative_features(&self, name: &str, features: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = (0..features).collect();
        let Some(count) = self.informative.filter(|&count| count < features) else { return chosen };
        let mut rng = self.rng(name, u64::MAX);
        for i in 0..count {
            chosen.swap(i, rng.random_range(i..features));
        }
        chosen.truncate(count);
        chosen.sort_unstable();
        chosen
    }

    /// Sets the seed of all draws.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The cluster of each instance: sizes differ by at most one, the order is random.
    #[must_use]
    pub fn truth(&self) -> Vec<usize> {
        let mut truth: Vec<usize> = (0..self.instances).map(|i| i % self.clusters).collect();
        let mut rng = self.rng("truth", 0);
        for i in (1..truth.len()).rev() {
            truth.swap(i, rng.random_range(0..=i));
        }
        truth
    }

    /// A dense view: each row is the centre of its cluster plus noise.
    ///
    /// # Errors
    /// When there are no features.
    pub fn dense<T: Scalar>(&self, name: &str, features: usize) -> Result<View<'static>>
    where
        Vec<T>: crate::views::Values<'static>,
    {
        let truth = self.truth();
        let mut rng = self.rng(name, 0);
        let mut centres: Vec<f64> = (0..self.clusters * features).map(|_| gaussian(&mut rng)).collect();
        if self.informative.is_some() {
            let informative = self.informative_features(name, features);
            for (at, centre) in centres.iter_mut().enumerate() {
                if informative.binary_search(&(at % features)).is_err() {
                    *centre = 0.0;
                }
            }
        }
        let mut values = vec![T::default(); self.instances * features];
        let blocks = values.par_chunks_mut((ROWS * features).max(1)).enumerate();
        blocks.for_each(|(block, values)| {
            let mut rng = self.rng(name, 1 + block as u64);
            for (i, row) in values.chunks_mut(features).enumerate() {
                let centre = &centres[truth[block * ROWS + i] * features..][..features];
                for (value, centre) in row.iter_mut().zip(centre) {
                    *value = T::from_f64(centre + self.noise * gaussian(&mut rng));
                }
            }
        });
        View::dense(name, features, values)
    }

    /// A sparse view of counts: a share of about `density` of the entries of each row is not zero, and half of them are
    /// among the features that the row's cluster prefers.
    ///
    /// # Errors
    /// When there are no features.
    pub fn sparse<T: Scalar>(&self, name: &str, features: usize, density: f64) -> Result<View<'static>>
    where
        Vec<T>: crate::views::Values<'static>,
    {
        let truth = self.truth();
        let per_row = ((density * features as f64).round() as usize).clamp(1, features.max(1));
        let band = (features / self.clusters).max(1);
        let blocks: Vec<(Vec<usize>, Vec<u32>, Vec<T>)> = truth
            .par_chunks(ROWS)
            .enumerate()
            .map(|(block, truth)| {
                let mut rng = self.rng(name, 1 + block as u64);
                let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
                let mut row = Vec::new();
                for &cluster in truth {
                    row.clear();
                    for _ in 0..per_row {
                        let own = rng.random::<bool>();
                        let feature = if own {
                            (cluster * band + rng.random_range(0..band)) % features
                        } else {
                            rng.random_range(0..features)
                        };
                        row.push(crate::index::index(feature));
                    }
                    row.sort_unstable();
                    row.dedup();
                    lengths.push(row.len());
                    columns.extend_from_slice(&row);
                    values.extend(
                        row.iter().map(|_| T::from_f64(f64::from(1 + rng.next_u32().leading_zeros()))),
                    );
                }
                (lengths, columns, values)
            })
            .collect();
        let mut offsets = vec![0];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (lengths, block_columns, block_values) in blocks {
            for length in lengths {
                offsets.push(offsets[offsets.len() - 1] + length);
            }
            columns.extend(block_columns);
            values.extend(block_values);
        }
        View::sparse(name, features, offsets, columns, values)
    }

    fn rng(&self, name: &str, stream: u64) -> ChaCha8Rng {
        // FNV-1a, so that views with different names differ.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ hash);
        rng.set_stream(stream);
        rng
    }
}

/// Approximately standard normal: the sum of four uniform numbers, from one draw.
fn gaussian(rng: &mut impl Rng) -> f64 {
    let bits = rng.next_u64();
    let sum: u64 = (0..4).map(|i| bits >> (16 * i) & 0xffff).sum();
    (sum as f64 / 65536.0 - 2.0) * 3.0_f64.sqrt()
}
