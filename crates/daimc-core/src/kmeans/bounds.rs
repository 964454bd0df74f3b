//! Bounds on distances, with which most points skip the search for their nearest centre: Elkan's triangle inequality
//! (*Using the triangle inequality to accelerate k-means*, ICML 2003). A point is either skipped or compared with all
//! centres, as in Hamerly's variant, because one product of many rows with all centres is far cheaper than its parts.

use std::cmp::Ordering;

use super::Points;
use crate::Matrix;
use crate::scaled_view::Scratch;

/// The relative rounding error of a bound in single precision.
const SLACK: f64 = 4.0 * f32::EPSILON as f64;

/// For each point, an upper bound of the distance to its own centre and lower bounds of the distances to all others.
pub(super) struct Bounds {
    /// Infinite where nothing is known.
    upper: Vec<f64>,
    /// For each point and centre, the last computed distance plus the path of the centre up to then; minus the path up
    /// to now it is a lower bound. Infinite for the point's own centre.
    lower: Vec<f32>,
    /// The length of the path of each centre.
    path: Vec<f64>,
    /// The rounding error of each point's squared distances.
    rounding: Vec<f64>,
    /// The own centre of each point when its distances were computed.
    own: Vec<u32>,
}

impl Bounds {
    pub fn new(points: &Points<'_>, clusters: usize) -> Self {
        Self {
            upper: vec![f64::INFINITY; points.len()],
            lower: vec![0.0; points.len() * clusters],
            path: vec![0.0; clusters],
            rounding: points.rounding(),
            own: vec![0; points.len()],
        }
    }

    /// Calls `visit`, which returns the nearest centre, with the squared distances of every point whose nearest centre
    /// may have changed. A point is skipped only if its own centre is nearer than all others by more than rounding
    /// errors.
    pub fn search(
        &mut self,
        points: &Points<'_>,
        centres: &Matrix,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, &[f64]) -> u32,
    ) {
        let Self { upper, lower, path, rounding, own } = self;
        let count = path.len();
        let come: Vec<f32> = path.iter().map(|path| (path * (1.0 + SLACK)) as f32).collect();
        let open = |i: &usize| {
            let lower = lower[i * count..(i + 1) * count].iter().zip(&come).map(|(lower, come)| lower - come);
            let least = lower.fold(f32::INFINITY, f32::min);
            // Also `true` if the bounds are not comparable (NaN).
            f64::from(least).partial_cmp(&upper[*i]) != Some(Ordering::Greater)
        };
        let open: Vec<usize> = (0..points.len()).filter(open).collect();
        points.distances(open, centres, scratch, |i, distances| {
            let label = visit(i, distances);
            let error = rounding[i];
            own[i] = label;
            upper[i] = (distances[label as usize] + error).sqrt() * (1.0 + SLACK);
            let lower = &mut lower[i * count..(i + 1) * count];
            for ((lower, distance), path) in lower.iter_mut().zip(distances).zip(&*path) {
                *lower = (((distance - error).max(0.0).sqrt() + path) * (1.0 - SLACK)) as f32;
            }
            lower[label as usize] = f32::INFINITY;
        });
    }

    /// Updates the bounds after the centres have moved. Bounds of points that were assigned to another cluster become
    /// invalid.
    pub fn follow(&mut self, before: &Matrix, after: &Matrix, labels: &[u32]) {
        let mut moves = vec![0.0; self.path.len()];
        for (before, after) in before.iter_rows().zip(after.iter_rows()) {
            let steps = before.iter().zip(after);
            moves.iter_mut().zip(steps).for_each(|(sum, (before, after))| *sum += (after - before).powi(2));
        }
        moves.iter_mut().for_each(|sum| *sum = sum.sqrt() * (1.0 + SLACK));
        self.path.iter_mut().zip(&moves).for_each(|(path, step)| *path += step);
        for ((upper, own), label) in self.upper.iter_mut().zip(&self.own).zip(labels) {
            *upper += if own == label { moves[*label as usize] } else { f64::INFINITY };
        }
    }
}
