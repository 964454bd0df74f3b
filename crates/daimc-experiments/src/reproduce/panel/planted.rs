//! Planted clusters in data of many kinds, to test the effect of scales, offsets, counts, noise views and nuisance factors.

use daimc::{View, Views};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::Result;
use crate::harness::sample::Dataset;

/// A kind of data. All are based on `x = signal · c + e`: c the centre of the cluster, drawn from N(0, 1) for each
/// feature, e noise from N(0, 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Features times spreads of log-normal(0, 0.4).
    Spreads,
    /// Features far from zero.
    Offsets,
    /// Features times spreads of log-normal(0, 1.2), and away from zero.
    Wild,
    /// The exponential of x.
    LogNormal,
    /// Gamma-Poisson counts with exponential means, and instances of different sequencing depth.
    Counts,
    /// Clusters of 60, 25, 10 and 5 %.
    Unequal,
    /// Two views, and two views of noise.
    Junk,
    /// Noise with three strong common factors.
    Correlated,
    /// Few informative features.
    Few,
    /// No clusters.
    Nothing,
}

/// The dimensions of a family.
struct Shape {
    /// The share of each cluster.
    sizes: &'static [f64],
    features: &'static [usize],
    signal: f64,
}

const INSTANCES: usize = 250;
const FOUR: &[f64] = &[0.25; 4];
const FIVE: &[f64] = &[0.2; 5];
const THREE: &[f64] = &[1.0 / 3.0; 3];

impl Family {
    pub const ALL: [(&'static str, Self); 10] = [
        ("planted-spreads", Self::Spreads),
        ("planted-offsets", Self::Offsets),
        ("planted-wild", Self::Wild),
        ("planted-lognormal", Self::LogNormal),
        ("planted-counts", Self::Counts),
        ("planted-unequal", Self::Unequal),
        ("planted-junk", Self::Junk),
        ("planted-correlated", Self::Correlated),
        ("planted-few", Self::Few),
        ("planted-nothing", Self::Nothing),
    ];

    /// The signal is weak enough to separate methods: good ones find the clusters except for a few instances.
    fn shape(self) -> Shape {
        let (sizes, features, signal): (_, &[usize], _) = match self {
            Self::Spreads => (FOUR, &[100, 60, 30], 0.36),
            Self::Offsets => (FIVE, &[80, 50, 40], 0.38),
            Self::Wild => (FOUR, &[120, 60, 40], 0.33),
            Self::LogNormal => (FOUR, &[100, 80, 50], 0.4),
            Self::Counts => (FIVE, &[200, 100], 0.22),
            Self::Unequal => (&[0.6, 0.25, 0.1, 0.05], &[80, 60, 40], 0.45),
            Self::Junk => (THREE, &[60, 40, 120, 80], 0.42),
            Self::Correlated => (FOUR, &[100, 60, 40], 0.5),
            Self::Few => (FOUR, &[200, 150, 100], 1.0),
            Self::Nothing => (FOUR, &[100, 50, 30], 0.0),
        };
        Shape { sizes, features, signal }
    }

    /// The data of a seed; its random stream differs from those of masks and starts with the same seed.
    pub fn make(self, seed: u64) -> Result<Dataset> {
        let Shape { sizes, features, .. } = self.shape();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream((1 << 42) + self as u64);
        let truth = clusters(sizes, &mut rng);
        let mut views = Vec::new();
        for (view, &features) in features.iter().enumerate() {
            let values = self.values(view, features, &truth, &mut rng);
            views.push(View::dense(format!("view {}", view + 1), features, values)?);
        }
        let known = self != Self::Nothing;
        let classes = truth.into_iter().map(|cluster| known.then_some(cluster)).collect();
        Ok(Dataset { views: Views::new(views)?, classes, clusters: sizes.len() })
    }

    /// The values of a view, row by row.
    fn values(self, view: usize, features: usize, truth: &[usize], rng: &mut ChaCha8Rng) -> Vec<f64> {
        let Shape { sizes, signal, .. } = self.shape();
        let signal = if self == Self::Junk && view > 1 { 0.0 } else { signal };
        let informative = if self == Self::Few { FEW } else { features };
        let centres = gaussians(sizes.len() * features, rng);
        let per_feature = gaussians(2 * features, rng);
        let factors = if self == Self::Correlated { FACTORS } else { 0 };
        let loads: Vec<f64> = gaussians(factors * features, rng).iter().map(|load| LOAD * load).collect();
        let mut values = Vec::with_capacity(truth.len() * features);
        for &cluster in truth {
            let nuisance = gaussians(factors, rng);
            let depth = (0.5 * gaussian(rng)).exp();
            for f in 0..features {
                let centre = if f < informative { signal * centres[cluster * features + f] } else { 0.0 };
                let common: f64 = (0..factors).map(|k| nuisance[k] * loads[k * features + f]).sum();
                let (a, b) = (per_feature[f], per_feature[features + f]);
                let x = centre + common + gaussian(rng);
                values.push(match self {
                    Self::Spreads => (0.4 * a).exp() * x,
                    Self::Offsets => x + 50.0 + 20.0 * b,
                    Self::Wild => (1.2 * a).exp() * x + 10.0 + 5.0 * b,
                    Self::LogNormal => (a + x).exp(),
                    // The noise comes from counting.
                    Self::Counts => counts(depth * (0.8 + 0.8 * a + 1.5 * centre).exp(), rng),
                    _ => x,
                });
            }
        }
        values
    }
}

/// Informative features of [`Family::Few`].
const FEW: usize = 10;
/// Factors of [`Family::Correlated`], and the standard deviation of their loads: each factor spreads instances further than
/// the clusters do.
const FACTORS: usize = 3;
const LOAD: f64 = 0.4;

/// The cluster of each instance in random order, with the given shares.
fn clusters(sizes: &[f64], rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut truth = Vec::with_capacity(INSTANCES);
    let mut end = 0.0;
    for (cluster, size) in sizes.iter().enumerate() {
        end += size;
        truth.resize((end * INSTANCES as f64).round() as usize, cluster);
    }
    for i in (1..truth.len()).rev() {
        truth.swap(i, rng.random_range(0..=i));
    }
    truth
}

/// A number from N(0, 1), by Box and Muller.
fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
}

fn gaussians(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..count).map(|_| gaussian(rng)).collect()
}

/// A Poisson number whose mean is `mean` times a number from the gamma distribution of shape 2 and mean 1.
fn counts(mean: f64, rng: &mut ChaCha8Rng) -> f64 {
    let mut exponential = || -(1.0 - rng.random::<f64>()).ln();
    let mean = mean * f64::midpoint(exponential(), exponential());
    // Events at a rate of 1, until the time is up.
    let (mut time, mut count) = (exponential(), 0.0);
    while time < mean {
        time += exponential();
        count += 1.0;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_clusters_and_the_seed_decides() {
        for (name, family) in Family::ALL {
            let (one, other) = (family.make(1).unwrap(), family.make(2).unwrap());
            assert_eq!((one.views.instances(), one.classes.len()), (INSTANCES, INSTANCES), "{name}");
            assert_eq!(one.views.len(), family.shape().features.len(), "{name}");
            assert_eq!(one.classes, family.make(1).unwrap().classes, "{name}");
            let known = one.classes.iter().flatten().count();
            assert_eq!(known, if family == Family::Nothing { 0 } else { INSTANCES }, "{name}");
            assert!(known == 0 || one.classes != other.classes, "{name}");
        }
    }

    #[test]
    fn clusters_are_as_large_as_their_shares() {
        let truth = Family::Unequal.make(3).unwrap().classes;
        let size = |cluster| truth.iter().filter(|class| **class == Some(cluster)).count();
        assert_eq!([0, 1, 2, 3].map(size), [150, 63, 25, 12]);
    }

    #[test]
    fn counts_have_their_mean_and_are_more_spread_than_poissons() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<f64> = (0..20_000).map(|_| counts(4.0, &mut rng)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 20_000.0;
        // Mean 4, variance 4 + 4² / 2.
        assert!((mean - 4.0).abs() < 0.15 && (variance - 12.0).abs() < 1.0, "{mean} {variance}");
    }
}
