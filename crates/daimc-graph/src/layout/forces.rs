//! The layout of a graph as in UMAP (`McInnes`, Healy and Melville 2018): points attract each other along links and repel random
//! other points.
//!
//! With `q_ij = 1 / (1 + a ‖y_i − y_j‖²)`, all other points fixed and the negative samples `S_i`, point i lowers
//!
//! ```text
//! E_i = − Σ_j p_ij ln q_ij − γ (d_i / |S_i|) Σ_{s ∈ S_i} ln (1 − q_is),      d_i = Σ_j p_ij
//! ```
//!
//! UMAP moves one pair after the other, and its threads overwrite each other's moves. Here an epoch is synchronous: the move of
//! each point depends on the positions of all points in the epoch before, and its negative samples are a hash of seed, epoch and
//! point. The result therefore does not depend on the number of threads. Small steps would be needed to avoid overshooting;
//! instead, a step along the gradient is divided by `2a d_i`, the curvature of the attraction, so that a point moves at most to
//! the mean of its linked points.

use rayon::prelude::*;

use crate::random::mix;
use daimc_core::Result;
use daimc_core::watch::Watch;

/// A position on the map.
pub(super) type Point = [f64; 2];

/// The decay of the attraction with distance. UMAP's `min_dist` of 0.1 gives 1.58, with an exponent of 0.9 instead of 1 as here.
const A: f64 = 1.6;

/// γ: UMAP draws five negative samples for each link that moves both its ends.
const REPULSION: f64 = 2.5;

/// Negative samples of a point in each epoch.
const SAMPLES: usize = 8;

/// Keeps the repulsion of coincident points finite: `1 − q` is at least `a` times this.
const SOFTENING: f64 = 0.01;

const EPOCHS: usize = 200;

/// The share of its last move that a point repeats.
const MOMENTUM: f64 = 0.5;

/// Points that one thread moves at a time.
const POINTS: usize = 256;

/// Attraction between points: row by row, symmetric.
pub(super) struct Links {
    pub offsets: Vec<usize>,
    pub columns: Vec<u32>,
    pub weights: Vec<f64>,
}

impl Links {
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.offsets[i]..self.offsets[i + 1];
        self.columns[range.clone()].iter().map(|&j| j as usize).zip(self.weights[range].iter().copied())
    }

    fn degree(&self, i: usize) -> f64 {
        self.weights[self.offsets[i]..self.offsets[i + 1]].iter().sum()
    }

    /// Moves points from a start to the end of the schedule. Points without links do not move.
    ///
    /// # Errors
    /// When the work is stopped.
    pub fn arrange(&self, start: Vec<Point>, seed: u64, watch: &Watch) -> Result<Vec<Point>> {
        let n = start.len();
        let degrees: Vec<f64> = (0..n).map(|i| self.degree(i)).collect();
        let (mut at, mut next) = (start.clone(), start);
        let mut moves = vec![[0.0; 2]; n];
        for epoch in 0..EPOCHS {
            watch.check()?;
            let rate = 1.0 - epoch as f64 / EPOCHS as f64;
            let draw = Negatives { salt: seed.wrapping_add((epoch as u64) << 40), points: n };
            let parts = next.par_chunks_mut(POINTS).zip(moves.par_chunks_mut(POINTS)).enumerate();
            parts.for_each(|(part, (next, moves))| {
                for (k, (next, last)) in next.iter_mut().zip(moves).enumerate() {
                    let i = part * POINTS + k;
                    if degrees[i] > 0.0 {
                        let force = self.force(i, degrees[i], &at, draw.of(i));
                        let step = rate / (2.0 * A * degrees[i]);
                        *last = [0, 1].map(|c| MOMENTUM * last[c] + step * force[c]);
                        *next = [0, 1].map(|c| at[i][c] + last[c]);
                    }
                }
            });
            std::mem::swap(&mut at, &mut next);
        }
        Ok(at)
    }

    /// `− ∂E_i / ∂y_i`.
    fn force(&self, i: usize, degree: f64, at: &[Point], samples: impl Iterator<Item = usize>) -> Point {
        let [x, y] = at[i];
        let mut force = [0.0; 2];
        for (j, weight) in self.row(i) {
            let (dx, dy) = (at[j][0] - x, at[j][1] - y);
            let pull = 2.0 * A * weight / (1.0 + A * (dx * dx + dy * dy));
            force[0] += pull * dx;
            force[1] += pull * dy;
        }
        let share = 2.0 * (1.0 - A * SOFTENING) * REPULSION * degree / SAMPLES as f64;
        for j in samples {
            let (dx, dy) = (x - at[j][0], y - at[j][1]);
            let square = dx * dx + dy * dy;
            let push = share / ((SOFTENING + square) * (1.0 + A * square));
            force[0] += push * dx;
            force[1] += push * dy;
        }
        force
    }
}

/// The negative samples of an epoch.
struct Negatives {
    salt: u64,
    points: usize,
}

impl Negatives {
    /// The points that repel point i; a point drawn for itself has no effect.
    fn of(&self, i: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, points) = (self.salt.wrapping_add((SAMPLES * i) as u64), self.points as u64);
        (0..SAMPLES as u64).map(move |sample| {
            let drawn = mix(first.wrapping_add(sample).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            ((u64::from(drawn) * points) >> 32) as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A ring with chords of several weights.
    fn ring(n: usize) -> Links {
        let mut links = Links { offsets: vec![0], columns: Vec::new(), weights: Vec::new() };
        for i in 0..n {
            for step in [1, 3, n - 3, n - 1] {
                let j = (i + step) % n;
                links.columns.push(j as u32);
                links.weights.push(1.0 / (1.0 + (i.min(j) % 5) as f64));
            }
            links.offsets.push(links.columns.len());
        }
        links
    }

    /// `E_i`, written from its definition; `1 − q` is softened.
    fn energy(links: &Links, i: usize, at: &[Point], samples: &[usize]) -> f64 {
        let square = |j: usize| (at[i][0] - at[j][0]).powi(2) + (at[i][1] - at[j][1]).powi(2);
        let q = |j: usize| 1.0 / (1.0 + A * square(j));
        let attraction: f64 = links.row(i).map(|(j, weight)| -weight * q(j).ln()).sum();
        let apart = |j: usize| (A * (square(j) + SOFTENING) * q(j)).ln();
        let repulsion: f64 = samples.iter().map(|&s| apart(s)).sum();
        attraction - REPULSION * links.degree(i) / SAMPLES as f64 * repulsion
    }

    #[test]
    fn forces_are_the_gradient_of_the_objective() {
        let n = 20;
        let links = ring(n);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut at: Vec<Point> =
            (0..n).map(|_| [rng.random_range(-2.0..2.0), rng.random_range(-2.0..2.0)]).collect();
        let draw = Negatives { salt: 5, points: n };
        for i in 0..n {
            let samples: Vec<usize> = draw.of(i).filter(|&j| j != i).collect();
            let found = links.force(i, links.degree(i), &at, samples.iter().copied());
            for c in 0..2 {
                let (here, h) = (at[i][c], 1e-5);
                at[i][c] = here + h;
                let above = energy(&links, i, &at, &samples);
                at[i][c] = here - h;
                let below = energy(&links, i, &at, &samples);
                at[i][c] = here;
                let expected = (below - above) / (2.0 * h);
                assert!((found[c] - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{found:?} {expected}");
            }
        }
    }

    #[test]
    fn negative_samples_are_about_uniform() {
        let n = 50;
        let mut counts = vec![0_usize; n];
        for epoch in 0..200_u64 {
            let draw = Negatives { salt: epoch << 40, points: n };
            (0..n).flat_map(|i| draw.of(i)).for_each(|j| counts[j] += 1);
        }
        // 80 000 draws; the standard deviation of a count is 40.
        assert!(counts.iter().all(|count| count.abs_diff(1600) < 200), "{counts:?}");
    }

    #[test]
    fn a_knotted_ring_converges_to_a_ring() {
        let n = 60;
        let links = ring(n);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let start: Vec<Point> =
            (0..n).map(|_| [rng.random_range(-3.0..3.0), rng.random_range(-3.0..3.0)]).collect();
        let spread = |at: &[Point]| {
            let linked: f64 =
                (0..n).map(|i| (at[i][0] - at[(i + 1) % n][0]).hypot(at[i][1] - at[(i + 1) % n][1])).sum();
            let across: f64 = (0..n)
                .map(|i| (at[i][0] - at[(i + n / 2) % n][0]).hypot(at[i][1] - at[(i + n / 2) % n][1]))
                .sum();
            linked / across
        };
        let at = links.arrange(start.clone(), 0, &Watch::default()).unwrap();
        assert!(spread(&at) < 0.5 * spread(&start), "{} {}", spread(&at), spread(&start));
    }
}
