//! Lloyd's iterations from given centres, with repair of empty clusters.

use super::bounds::Bounds;
use super::{Clustering, Points, nearest};
use crate::scaled_view::Scratch;
use crate::source::MISSING;
use crate::{Matrix, Result, Stop};

/// The maximum number of iterations of a start, and the relative gain at which it stops.
pub(super) const MOST_ITERATIONS: usize = 100;
pub(super) const SMALLEST_GAIN: f64 = 1e-4;

impl Points<'_> {
    /// Lloyd's iterations. Sums are kept and updated for points that change their cluster only. With `bounded`,
    /// distances are computed only for points whose nearest centre may have changed; the clusters are the same.
    ///
    /// # Errors
    /// When the fit is stopped.
    pub(super) fn lloyd(
        &self,
        mut centres: Matrix,
        bounded: bool,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<Clustering> {
        let (count, d) = (centres.columns(), centres.rows());
        let mut labels = vec![MISSING; self.len()];
        let mut own = vec![0.0; self.len()];
        let mut sums = ClusterSums::new(count, d, self.extra.is_some());
        let mut bounds = bounded.then(|| Bounds::new(self, count));
        let (mut origin, mut spread) = (Vec::new(), 0.0);
        if bounded {
            origin = self.mean();
            let only = Matrix::from_fn(d, 1, |f, _| origin[f]);
            let add = |i: usize, distances: &[f64]| spread += self.weight(i) * distances[0];
            self.distances(0..self.len(), &only, scratch, add);
        }
        let mut inertia = f64::INFINITY;
        for _ in 0..MOST_ITERATIONS {
            stop.check()?;
            let mut now = 0.0;
            let mut moved: Vec<(usize, u32)> = Vec::new();
            let mut visit = |i: usize, distances: &[f64]| {
                let (label, distance) = nearest(distances);
                own[i] = distance;
                now += self.weight(i) * distance;
                if labels[i] != label {
                    moved.push((i, label));
                }
                label
            };
            match &mut bounds {
                None => self.distances(0..self.len(), &centres, scratch, |i, distances| {
                    visit(i, distances);
                }),
                Some(bounds) => bounds.search(self, &centres, scratch, visit),
            }
            let stable = moved.is_empty();
            for (i, label) in moved {
                self.move_point(i, labels[i], label, &mut sums);
                labels[i] = label;
            }
            if bounded {
                now = self.inertia(&sums, &centres, &origin, spread);
                if sums.counts.iter().any(|&count| count <= 0.0) {
                    self.distances(0..self.len(), &centres, scratch, |i, distances| {
                        own[i] = distances[labels[i] as usize];
                    });
                }
            }
            let repaired = self.repair(&mut labels, &mut own, &mut sums);
            let converged = inertia - now <= SMALLEST_GAIN * now;
            inertia = now;
            if !repaired && (stable || converged) {
                break;
            }
            match &mut bounds {
                None => self.centres(&sums, &mut centres),
                Some(bounds) => {
                    let before = centres.clone();
                    self.centres(&sums, &mut centres);
                    bounds.follow(&before, &centres, &labels);
                }
            }
        }
        let extra_label = if self.extra.is_some() { labels.pop().unwrap_or(0) } else { 0 };
        Ok(Clustering { centres, labels, extra_label, inertia })
    }

    /// `Σ ‖x − c‖² = Σ ‖x‖² + Σ_k (n_k ‖c_k‖² − 2 c_kᵀ Σ x)`, measured from an origin, from which the squared distances
    /// of the points sum to `spread`.
    fn inertia(&self, sums: &ClusterSums, centres: &Matrix, origin: &[f64], spread: f64) -> f64 {
        let mut total = spread;
        for (f, (row, origin)) in centres.iter_rows().zip(origin).enumerate() {
            for (k, centre) in row.iter().enumerate() {
                let (count, centre) = (sums.counts[k], centre - origin);
                let sum = self.sum(sums, k, f) - count * origin;
                total += centre * (count * centre - 2.0 * sum);
            }
        }
        total.max(0.0)
    }

    /// Assigns the point that is farthest from its centre to each empty cluster.
    fn repair(&self, labels: &mut [u32], own: &mut [f64], sums: &mut ClusterSums) -> bool {
        let mut repaired = false;
        for cluster in 0..sums.counts.len() {
            if sums.counts[cluster] > 0.0 {
                continue;
            }
            let movable = |&i: &usize| sums.counts[labels[i] as usize] > self.weight(i) && own[i] > 0.0;
            let farthest = (0..labels.len()).filter(movable).max_by(|&a, &b| own[a].total_cmp(&own[b]));
            let Some(i) = farthest else { continue };
            let label = u32::try_from(cluster).unwrap_or(0);
            self.move_point(i, labels[i], label, sums);
            labels[i] = label;
            own[i] = 0.0;
            repaired = true;
        }
        repaired
    }

    fn move_point(&self, i: usize, from: u32, to: u32, sums: &mut ClusterSums) {
        for (label, sign) in [(from, -1.0), (to, 1.0)] {
            if label == MISSING {
                continue;
            }
            let weight = sign * self.weight(i);
            let k = label as usize;
            sums.counts[k] += weight;
            if let Some(&at) = self.rows.get(i) {
                sums.factors[k] += weight * self.scaled_view.full_factor(at.0);
                self.scaled_view.add_row(&self.block, at, weight, sums.values.row_mut(k));
            } else if let Some(extra) = &self.extra {
                let row = sums.extra.row_mut(k).iter_mut().zip(&extra.row);
                row.for_each(|(sum, x)| *sum += weight * x);
            }
        }
    }

    /// The mean of each cluster; an empty one keeps its centre. Feature by feature, since a view can have many features.
    fn centres(&self, sums: &ClusterSums, centres: &mut Matrix) {
        for f in 0..centres.rows() {
            for (k, centre) in
                centres.row_mut(f).iter_mut().enumerate().filter(|(k, _)| sums.counts[*k] > 0.0)
            {
                *centre = self.sum(sums, k, f) / sums.counts[k];
            }
        }
    }

    /// The sum of a feature's scaled values over the points of a cluster.
    fn sum(&self, sums: &ClusterSums, k: usize, f: usize) -> f64 {
        let value = self.scaled_view.finish(f, sums.factors[k], sums.values[(k, f)]);
        if self.extra.is_some() { value + sums.extra[(k, f)] } else { value }
    }
}

/// Sums over the points of each cluster: of the stored values, of the row factors, of the extra point.
struct ClusterSums {
    values: Matrix,
    extra: Matrix,
    factors: Vec<f64>,
    counts: Vec<f64>,
}

impl ClusterSums {
    fn new(count: usize, features: usize, extra: bool) -> Self {
        Self {
            values: Matrix::zeros(count, features),
            extra: Matrix::zeros(if extra { count } else { 0 }, features),
            factors: vec![0.0; count],
            counts: vec![0.0; count],
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::scaled_view::ScaledView;
    use crate::scan::Scan;
    use crate::source::Buffer;
    use crate::{Scale, Scaling, View, Views};

    /// The numbers of points, features and clusters.
    type Shape = (usize, usize, usize);

    /// Clusters points from given centres, with and without bounds; integers produce ties, duplicates and empty
    /// clusters. The plain variant is also compared with the textbook algorithm, which recomputes every sum.
    fn compare(source: &Views<'_>, scale: Scale, (n, _, clusters): Shape, extra: Option<f64>, untied: bool) {
        let scan = Scan::new(source, &Stop::default());
        let scaled_view = ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
        let all: Vec<u32> = (0..crate::index::index(n)).collect();
        let mut buffer = Buffer::default();
        let mut points = Points::new(&scan, 0, &scaled_view, &all, &mut buffer).unwrap();
        if let Some(weight) = extra {
            let row = points.mean();
            points = points.with_extra(row, weight);
        }
        let start = Matrix::from_fn(scaled_view.features(), clusters, |f, k| points.values(k)[f]);
        let mut scratch = Scratch::default();
        let never = Stop::new();
        let [plain, bounded] =
            [false, true].map(|bounded| points.lloyd(start.clone(), bounded, &mut scratch, &never).unwrap());
        let case = format!("{n} points, {clusters} clusters, {scale}, extra {extra:?}");
        assert_eq!(bounded.labels, plain.labels, "{case}");
        assert_eq!(bounded.extra_label, plain.extra_label, "{case}");
        let apart = |a: &Matrix, b: &Matrix| {
            a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        // Where points coincide with their centres, the inertia consists of rounding errors and may need one more round.
        assert!(apart(&bounded.centres, &plain.centres) < 1e-12, "{case}");
        let spread: f64 = points.squares.iter().sum();
        let (now, before) = (bounded.inertia, plain.inertia);
        assert!((now - before).abs() <= 1e-5 * spread + 1e-20, "{case}: {now}, not {before}, of {spread}");
        if untied && let Some((labels, centres)) = literal(&points, start) {
            assert!(labels.starts_with(&plain.labels), "{case}");
            assert!(apart(&centres, &plain.centres) < 1e-9, "{case}");
        }
    }

    /// Lloyd's iterations as in textbooks, without empty clusters.
    fn literal(points: &Points<'_>, mut centres: Matrix) -> Option<(Vec<u32>, Matrix)> {
        let rows: Vec<Vec<f64>> = (0..points.len()).map(|i| points.values(i)).collect();
        let mut labels = vec![MISSING; rows.len()];
        let mut inertia = f64::INFINITY;
        for _ in 0..MOST_ITERATIONS {
            let before = std::mem::take(&mut labels);
            let mut now = 0.0;
            for (i, row) in rows.iter().enumerate() {
                let square = |k: usize| {
                    row.iter().enumerate().map(|(f, x)| (x - centres[(f, k)]).powi(2)).sum::<f64>()
                };
                let distances: Vec<f64> = (0..centres.columns()).map(square).collect();
                let (label, distance) = nearest(&distances);
                labels.push(label);
                now += points.weight(i) * distance;
            }
            if labels == before || inertia - now <= SMALLEST_GAIN * now {
                break;
            }
            inertia = now;
            let mut counts = vec![0.0; centres.columns()];
            let mut sums = Matrix::zeros(centres.rows(), centres.columns());
            for (i, row) in rows.iter().enumerate() {
                let k = labels[i] as usize;
                counts[k] += points.weight(i);
                row.iter().enumerate().for_each(|(f, x)| sums[(f, k)] += points.weight(i) * x);
            }
            if counts.contains(&0.0) {
                return None;
            }
            centres = Matrix::from_fn(sums.rows(), sums.columns(), |f, k| sums[(f, k)] / counts[k]);
        }
        Some((labels, centres))
    }

    #[test]
    fn bounds_change_no_clusters() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for case in 0..400 {
            let whole = case % 2 == 0;
            let clusters = rng.random_range(1..40);
            let (n, d) = (clusters + rng.random_range(0..300), rng.random_range(1..20));
            let mut value = || {
                if whole { f64::from(rng.random_range(0..3_u8)) } else { 10.0 * rng.random::<f64>() }
            };
            let values: Vec<f64> = (0..n * d).map(|_| value()).collect();
            let single: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let view = if case % 3 == 0 { View::dense("x", d, single) } else { View::dense("x", d, values) };
            let views = Views::new(vec![view.unwrap()]).unwrap();
            let scale = [Scale::None, Scale::Unit, Scale::MinMax][case % 5 % 3];
            let extra = (case % 4 == 1).then(|| f64::from(rng.random_range(1..50_u8)));
            // In single precision, and in one dimension, rounding decides ties.
            compare(&views, scale, (n, d, clusters), extra, !whole && case % 3 != 0 && d > 2);
        }
    }
}
