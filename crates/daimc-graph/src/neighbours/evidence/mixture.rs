//! A mixture of normal distributions, for clusters of unequal size.
//!
//! K-means and the eigenvectors of a graph prefer clusters of similar size: they cut a large cluster in two rather than separate
//! a rare one. In a mixture each cluster has a share `π_k` and a mean `μ_vk` in each view, and each view has one variance:
//! `p(z) = Σ_k π_k Π_v N(z_v; μ_vk, σ_v² I)`, where the product runs over the views that an instance has. Expectation
//! maximisation finds the nearest maximum only, and usually keeps clusters that were cut or joined. So each given cluster is first split
//! in two, and then the pair whose union costs least likelihood is joined, until the given number is left.

use rand::SeedableRng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Evidence, Rule, Space};
use crate::neighbours::project::each_block;
use daimc_core::matrix::dot;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, kmeans, linalg};

/// Instances to which the mixture is fitted, if there are as many.
const SAMPLE: usize = 10_000;

/// Sample and starts do not depend on the seed of the fit.
const SEED: u64 = 0;
const SAMPLE_STREAM: u64 = 1 << 42;

/// Iterations from a start, and of the final mixture.
const FIRST: usize = 15;
const LAST: usize = 60;

/// The gain of log likelihood per instance at which the iterations stop.
const GAIN: f64 = 1e-6;

/// Starts of the split of a cluster, and the least number of instances that are split.
const STARTS: usize = 4;
const LEAST: usize = 4;

/// The difference of two log probabilities beyond which the smaller one adds nothing to their sum.
const NEGLIGIBLE: f64 = 37.0;

/// Rows of one task.
const TOGETHER: usize = 64;

/// The least variance of a view, relative to the mean square of its rows.
const FLOOR: f64 = 1e-12;

/// Clusters, and how much more likely each instance's own cluster is than the next.
pub struct Mixed {
    /// The clusters.
    pub labels: Vec<usize>,
    /// The differences between the two largest probabilities.
    pub margins: Vec<f64>,
}

impl Evidence<'_> {
    /// The clusters of mixtures that start from each of these clusterings, without those that have an empty cluster.
    ///
    /// # Errors
    /// When rows cannot be read, or [`Error::Interrupted`](daimc_core::Error::Interrupted) after a request to stop.
    pub fn mixtures(&self, starts: &[&[usize]], clusters: usize, watch: &Watch) -> Result<Vec<Mixed>> {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        rng.set_stream(SAMPLE_STREAM);
        let chosen = kmeans::sample_instances(self.scan.source(), SAMPLE, &mut rng);
        let points = self.points(&chosen)?;
        let mut found = Vec::with_capacity(starts.len());
        for labels in starts {
            let given: Vec<usize> = chosen.iter().map(|&i| labels[i as usize]).collect();
            let halves = points.halves(&given, clusters, watch)?;
            let (finer, _) = points.climb(one_hot(&halves, 2 * clusters), FIRST, watch)?;
            let (share, _) = points.climb(points.join(&finer, clusters), LAST, watch)?;
            found.push(self.assign(&points.maximise(&share))?);
        }
        found.retain(|mixed| (0..clusters).all(|cluster| mixed.labels.contains(&cluster)));
        Ok(found)
    }

    /// The projected rows of some instances.
    fn points(&self, chosen: &[u32]) -> Result<Points> {
        let views = self.spaces.iter().map(|space| {
            let width = space.directions.columns();
            let mut rows = Matrix::zeros(chosen.len(), width);
            let mut present = vec![0.0; chosen.len()];
            each_block(
                (self.scan, space.view, space.scaled_view),
                &space.directions,
                std::iter::repeat(()),
                Vec::new,
                |seen, (), found: &mut Vec<(usize, Vec<f64>)>| {
                    let at = |i: usize| chosen.binary_search(&daimc_core::index::index(i)).ok();
                    found.extend(seen.iter().filter_map(|(i, row)| at(i).map(|at| (at, row.to_vec()))));
                    Ok(())
                },
                |found| {
                    for (at, row) in found.drain(..) {
                        rows.row_mut(at).copy_from_slice(&row);
                        present[at] = 1.0;
                    }
                },
            )?;
            Ok(PointsOfView::new(rows, present, space.scaled_view.scaling.importance))
        });
        Ok(Points { views: views.collect::<Result<_>>()? })
    }

    /// The most likely cluster of each instance.
    fn assign(&self, mixture: &Mixture) -> Result<Mixed> {
        let (instances, clusters) = (self.scan.instances(), mixture.priors.len());
        let mut logs = Matrix::zeros(instances, clusters);
        logs.each_row(|_, row| row.copy_from_slice(&mixture.priors));
        for (space, rule) in self.spaces.iter().zip(&mixture.rules) {
            space.add_scores(self, rule, &mut logs)?;
        }
        let best = |row: &mut [f64]| {
            shares(row);
            let first = largest(row);
            let others = (0..clusters).filter(|k| *k != first).map(|k| row[k]);
            (first, row[first] - others.fold(0.0, f64::max))
        };
        let rows = logs.values_mut().par_chunks_exact_mut(clusters).with_min_len(TOGETHER);
        let (labels, margins) = rows.map(best).unzip();
        Ok(Mixed { labels, margins })
    }
}

impl Space<'_> {
    /// Adds the scores of a rule to the rows of `logs`.
    fn add_scores(&self, of: &Evidence<'_>, rule: &Rule, logs: &mut Matrix) -> Result<()> {
        let (clusters, importance) = (logs.columns(), self.scaled_view.scaling.importance);
        let block = of.scan.blocks().size() * clusters;
        each_block(
            (of.scan, self.view, self.scaled_view),
            &self.directions,
            logs.values_mut().chunks_mut(block),
            || vec![0.0; clusters],
            |seen, logs, scores| {
                for (i, row) in seen.iter() {
                    rule.scores(row, scores);
                    let own = &mut logs[(i - seen.first) * clusters..][..clusters];
                    own.iter_mut().zip(&*scores).for_each(|(log, score)| *log += importance * score);
                }
                Ok(())
            },
            |_| (),
        )
    }
}

/// Turns log probabilities into shares, and returns the logarithm of their sum. Most are 0 to the last bit: they cost no exponential.
fn shares(row: &mut [f64]) -> f64 {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for log in row.iter_mut() {
        *log = if *log < most - NEGLIGIBLE { 0.0 } else { (*log - most).exp() };
        sum += *log;
    }
    row.iter_mut().for_each(|share| *share /= sum);
    most + sum.ln()
}

/// The position of the largest number, the first of equal ones.
fn largest(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
}

/// Each instance in its cluster only.
fn one_hot(labels: &[usize], clusters: usize) -> Matrix {
    Matrix::from_fn(labels.len(), clusters, |i, k| f64::from(u8::from(labels[i] == k)))
}

/// The rows of some instances in all views.
struct Points {
    views: Vec<PointsOfView>,
}

/// The rows of some instances in a view.
struct PointsOfView {
    /// Zero for an instance without a row.
    rows: Matrix,
    /// 1 for an instance with a row, 0 for another.
    present: Vec<f64>,
    shown: f64,
    squares: f64,
    importance: f64,
}

/// Shares of the clusters, and a linear rule for each view.
struct Mixture {
    /// The logarithms of the shares.
    priors: Vec<f64>,
    rules: Vec<Rule>,
    /// The part of the log likelihood that does not depend on the clusters.
    constant: f64,
}

/// Sums over the members of a cluster: their number, and for each view that of those with a row, and the sum of these rows.
#[derive(Clone)]
struct Sums {
    count: f64,
    views: Vec<(f64, Vec<f64>)>,
}

impl PointsOfView {
    fn new(rows: Matrix, present: Vec<f64>, importance: f64) -> Self {
        let (shown, squares) = (present.iter().sum(), rows.sum_squares());
        Self { rows, present, shown, squares, importance }
    }

    fn some(&self, chosen: &[usize]) -> Self {
        let rows = Matrix::from_fn(chosen.len(), self.rows.columns(), |i, f| self.rows[(chosen[i], f)]);
        Self::new(rows, chosen.iter().map(|&i| self.present[i]).collect(), self.importance)
    }

    /// The mean square of an entry.
    fn mean_square(&self) -> f64 {
        (self.squares / (self.shown * self.rows.columns() as f64).max(1.0)).max(f64::MIN_POSITIVE)
    }

    /// The common variance around the means of the clusters, given their counts and sums.
    fn variance(&self, counts: &[f64], sums: &Matrix) -> f64 {
        let entries = (self.shown * self.rows.columns() as f64).max(1.0);
        let between = sums.iter_rows().zip(counts).filter(|(_, count)| **count > 0.0);
        let between: f64 = between.map(|(sum, count)| dot(sum, sum) / count).sum();
        ((self.squares - between) / entries).max(FLOOR * self.mean_square())
    }
}

impl Points {
    fn some(&self, chosen: &[usize]) -> Self {
        Self { views: self.views.iter().map(|view| view.some(chosen)).collect() }
    }

    /// The mixture that is most likely for these shares of the instances in each cluster.
    fn maximise(&self, share: &Matrix) -> Mixture {
        let (instances, clusters) = (share.rows() as f64, share.columns());
        let total = |k: usize| share.iter_rows().map(|row| row[k]).sum::<f64>();
        let priors = (0..clusters).map(|k| (total(k) / instances).ln()).collect();
        let mut constant = 0.0;
        let rules = self.views.iter().map(|view| {
            let (counts, mut means) = view.sums(share);
            let variance = view.variance(&counts, &means);
            for (k, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                means.row_mut(k).iter_mut().for_each(|sum| *sum /= count);
            }
            let entries = view.shown * view.rows.columns() as f64;
            constant -= 0.5 * view.importance * (view.squares / variance + entries * variance.ln());
            let offsets = means.iter_rows().map(|mean| -0.5 * dot(mean, mean) / variance).collect();
            means.values_mut().iter_mut().for_each(|mean| *mean /= variance);
            Rule { weights: means, offsets }
        });
        Mixture { rules: rules.collect(), priors, constant }
    }

    /// The shares of the instances in each cluster after some iterations from given shares, and the log likelihood per instance.
    fn climb(&self, mut share: Matrix, iterations: usize, watch: &Watch) -> Result<(Matrix, f64)> {
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..iterations {
            watch.check()?;
            let mixture = self.maximise(&share);
            let before = std::mem::replace(&mut likelihood, self.expect(&mixture, &mut share));
            if likelihood - before < GAIN {
                break;
            }
        }
        Ok((share, likelihood))
    }

    /// The shares of the instances in each cluster, and the log likelihood per instance.
    fn expect(&self, mixture: &Mixture, share: &mut Matrix) -> f64 {
        share.each_row(|_, row| row.copy_from_slice(&mixture.priors));
        for (view, rule) in self.views.iter().zip(&mixture.rules) {
            let products = linalg::product_transposed(&view.rows, &rule.weights);
            share.each_row(|i, row| {
                if view.present[i] > 0.0 {
                    let scores = products.row(i).iter().zip(&rule.offsets);
                    let added = row.iter_mut().zip(scores);
                    added.for_each(|(log, (along, offset))| *log += view.importance * (along + offset));
                }
            });
        }
        let clusters = share.columns();
        let rows = share.values_mut().par_chunks_exact_mut(clusters).with_min_len(TOGETHER);
        let total: f64 = rows.map(shares).collect::<Vec<f64>>().iter().sum();
        (total + mixture.constant) / share.rows() as f64
    }

    /// Splits each cluster in two: the second halves have the numbers from `clusters` on.
    fn halves(&self, labels: &[usize], clusters: usize, watch: &Watch) -> Result<Vec<usize>> {
        let split = |cluster: usize| -> Result<Vec<usize>> {
            let members: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == cluster).collect();
            if members.len() < LEAST {
                return Ok(Vec::new());
            }
            let own = self.some(&members);
            let mut rng = ChaCha8Rng::seed_from_u64(SEED);
            rng.set_stream(SAMPLE_STREAM + 1 + cluster as u64);
            let mut best: Option<(Vec<usize>, f64)> = None;
            for _ in 0..STARTS {
                let Some(start) = own.seeded(members.len(), &mut rng) else { continue };
                let (share, likelihood) = own.climb(start, FIRST, watch)?;
                if best.as_ref().is_none_or(|(_, known)| likelihood > *known) {
                    let second = (0..members.len()).filter(|&i| share[(i, 1)] > share[(i, 0)]);
                    best = Some((second.map(|i| members[i]).collect(), likelihood));
                }
            }
            Ok(best.map(|(second, _)| second).unwrap_or_default())
        };
        let seconds = (0..clusters).into_par_iter().map(split).collect::<Result<Vec<_>>>()?;
        let mut halves = labels.to_vec();
        for (cluster, second) in seconds.into_iter().enumerate() {
            second.into_iter().for_each(|i| halves[i] = clusters + cluster);
        }
        Ok(halves)
    }

    /// The instances nearer to the first and to the second of two random instances, the second of which is drawn in proportion to
    /// its squared distance; `None` if all are equal.
    fn seeded(&self, instances: usize, rng: &mut ChaCha8Rng) -> Option<Matrix> {
        use rand::RngExt;
        let first = rng.random_range(0..instances);
        let distances = |from: usize| -> Vec<Option<f64>> {
            let distance = |i: usize| {
                let shared = self.views.iter().filter(|view| view.present[i] * view.present[from] > 0.0);
                let of = |view: &PointsOfView| {
                    let pairs = view.rows.row(i).iter().zip(view.rows.row(from));
                    let width = view.rows.columns() as f64;
                    pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / (width * view.mean_square())
                };
                let of_views: Vec<f64> = shared.map(of).collect();
                (!of_views.is_empty()).then(|| of_views.iter().sum::<f64>() / of_views.len() as f64)
            };
            (0..instances).map(distance).collect()
        };
        let to_first = distances(first);
        let drawn = WeightedIndex::new(to_first.iter().map(|own| own.unwrap_or(0.0))).ok()?;
        let to_second = distances(drawn.sample(rng));
        let nearer = |i: usize| match (to_first[i], to_second[i]) {
            (Some(first), Some(second)) => second < first,
            (None, Some(_)) => true,
            _ => false,
        };
        let labels: Vec<usize> = (0..instances).map(|i| usize::from(nearer(i))).collect();
        Some(one_hot(&labels, 2))
    }

    /// Joins the pairs of clusters whose union costs least likelihood, each instance in its likeliest cluster, until this many are
    /// left.
    fn join(&self, share: &Matrix, clusters: usize) -> Matrix {
        let finer = share.columns();
        let mut labels: Vec<usize> = share.iter_rows().map(largest).collect();
        let members = one_hot(&labels, finer);
        let of_views: Vec<(Vec<f64>, Matrix)> = self.views.iter().map(|view| view.sums(&members)).collect();
        let variances: Vec<f64> = self
            .views
            .iter()
            .zip(&of_views)
            .map(|(view, (counts, sums))| view.variance(counts, sums) / view.importance)
            .collect();
        let sums = |k: usize| Sums {
            count: members.iter_rows().map(|row| row[k]).sum(),
            views: of_views.iter().map(|(counts, sums)| (counts[k], sums.row(k).to_vec())).collect(),
        };
        let mut known: Vec<Option<Sums>> =
            (0..finer).map(|k| Some(sums(k)).filter(|own| own.count > 0.0)).collect();
        let cost = |known: &[Option<Sums>], a: usize, b: usize| match (&known[a], &known[b]) {
            (Some(a), Some(b)) => a.cost_of_union(b, &variances),
            _ => f64::INFINITY,
        };
        let mut costs =
            Matrix::from_fn(finer, finer, |a, b| if a < b { cost(&known, a, b) } else { f64::INFINITY });
        while known.iter().flatten().count() > clusters {
            let cheapest = (0..finer * finer)
                .fold(0, |best, at| if costs.values()[at] < costs.values()[best] { at } else { best });
            let (a, b) = (cheapest / finer, cheapest % finer);
            let Some(gone) = known[b].take() else { break };
            if let Some(kept) = &mut known[a] {
                kept.absorb(&gone);
            }
            labels.iter_mut().filter(|label| **label == b).for_each(|label| *label = a);
            for other in 0..finer {
                for changed in [a, b] {
                    let (low, high) = (changed.min(other), changed.max(other));
                    if low < high {
                        costs[(low, high)] = cost(&known, low, high);
                    }
                }
            }
        }
        let left: Vec<usize> = (0..finer).filter(|k| known[*k].is_some()).collect();
        let renamed: Vec<usize> = labels.iter().map(|label| left.binary_search(label).unwrap_or(0)).collect();
        one_hot(&renamed, clusters)
    }
}

impl PointsOfView {
    /// For each cluster, the number of its instances with a row, and the sum of their rows.
    fn sums(&self, share: &Matrix) -> (Vec<f64>, Matrix) {
        let mut counts = vec![0.0; share.columns()];
        for (row, present) in share.iter_rows().zip(&self.present).filter(|(_, present)| **present > 0.0) {
            counts.iter_mut().zip(row).for_each(|(count, share)| *count += present * share);
        }
        (counts, linalg::transposed_product(share, &self.rows))
    }
}

impl Sums {
    /// The loss of log likelihood if both are one cluster: the squares between their means, less the gain of the shares.
    fn cost_of_union(&self, other: &Self, variances: &[f64]) -> f64 {
        let plogp = |count: f64| count * count.ln();
        let mut cost = plogp(self.count) + plogp(other.count) - plogp(self.count + other.count);
        for (((n, own), (m, others)), variance) in self.views.iter().zip(&other.views).zip(variances) {
            if *n > 0.0 && *m > 0.0 {
                let pairs = own.iter().zip(others);
                let squares: f64 = pairs.map(|(a, b)| (a / n - b / m).powi(2)).sum();
                cost += 0.5 * n * m / (n + m) * squares / variance;
            }
        }
        cost
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        for ((n, own), (m, others)) in self.views.iter_mut().zip(&other.views) {
            *n += m;
            own.iter_mut().zip(others).for_each(|(a, b)| *a += b);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use daimc_core::scaled_view::ScaledView;
    use daimc_core::scaling::{Scale, Scaling};
    use daimc_core::scan::Scan;
    use daimc_core::{Stop, View, Views, simulate};

    /// Normal numbers.
    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    /// Clusters of these sizes in two views, some rows missing.
    fn planted(sizes: &[usize], missing: f64, seed: u64) -> (Views<'static>, Vec<usize>) {
        let truth: Vec<usize> =
            sizes.iter().enumerate().flat_map(|(k, size)| std::iter::repeat_n(k, *size)).collect();
        let present = simulate::missing(truth.len(), &[missing, missing], seed).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let views = [20, 30].into_iter().zip(&present).map(|(d, present)| {
            let centres = Matrix::from_fn(sizes.len(), d, |_, _| 2.0 * normal(&mut rng));
            let values: Vec<f64> = truth
                .iter()
                .flat_map(|&k| (0..d).map(|f| centres[(k, f)] + normal(&mut rng)).collect::<Vec<_>>())
                .collect();
            View::dense(format!("v{d}"), d, values).unwrap().mask(present).unwrap()
        });
        (Views::new(views.collect()).unwrap(), truth)
    }

    fn with<T>(views: &Views<'_>, work: impl FnOnce(&Evidence<'_>, &Watch) -> T) -> T {
        let (scan, watch) = (Scan::new(views, &Stop::new()), Watch::default());
        let scaled_view = |view| {
            let scaling = Scaling::fit(&scan, view, Scale::None).unwrap();
            ScaledView::fit(&scan, view, scaling, true).unwrap()
        };
        let scaled_views: Vec<ScaledView> = (0..views.len()).map(scaled_view).collect();
        work(&Evidence::new(&scan, &scaled_views, 0, &watch).unwrap(), &watch)
    }

    fn points(views: &Views<'_>) -> Points {
        let all: Vec<u32> = (0..daimc_core::index::index(views.instances())).collect();
        with(views, |evidence, _| evidence.points(&all).unwrap())
    }

    /// `ln π_k` plus the log densities of an instance's rows in cluster `k`, from means and variances computed entry by entry.
    fn literal(points: &Points, labels: &[usize], clusters: usize) -> Matrix {
        let (n, all) = (labels.len(), 0..labels.len());
        let mut logs = Matrix::from_fn(n, clusters, |_, k| {
            (all.clone().filter(|&i| labels[i] == k).count() as f64 / n as f64).ln()
        });
        for view in &points.views {
            let d = view.rows.columns();
            let shown: Vec<usize> = all.clone().filter(|&i| view.present[i] > 0.0).collect();
            let mean = |k: usize, f: usize| {
                let own: Vec<f64> =
                    shown.iter().filter(|&&i| labels[i] == k).map(|&i| view.rows[(i, f)]).collect();
                own.iter().sum::<f64>() / own.len().max(1) as f64
            };
            let means = Matrix::from_fn(clusters, d, mean);
            let square =
                |i: usize, k: usize| (0..d).map(|f| (view.rows[(i, f)] - means[(k, f)]).powi(2)).sum::<f64>();
            let variance =
                shown.iter().map(|&i| square(i, labels[i])).sum::<f64>() / (shown.len() * d) as f64;
            for &i in &shown {
                for k in 0..clusters {
                    logs[(i, k)] -= 0.5 * (square(i, k) / variance + d as f64 * variance.ln());
                }
            }
        }
        logs
    }

    #[test]
    fn shares_and_likelihood_are_those_of_normal_distributions() {
        let (views, truth) = planted(&[30, 20, 10], 0.3, 1);
        // Clusters that overlap.
        let labels: Vec<usize> =
            truth.iter().enumerate().map(|(i, k)| if i % 3 == 0 { i % 2 } else { *k }).collect();
        let points = points(&views);
        let logs = literal(&points, &labels, 3);
        let mut share = one_hot(&labels, 3);
        let mixture = points.maximise(&share);
        let likelihood = points.expect(&mixture, &mut share);
        let mut expected = 0.0;
        for (i, row) in logs.iter_rows().enumerate() {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|log| (log - most).exp()).sum();
            expected += most + sum.ln();
            for (k, log) in row.iter().enumerate() {
                assert!((share[(i, k)] - (log - most).exp() / sum).abs() < 1e-9);
            }
        }
        assert!((likelihood - expected / 60.0).abs() < 1e-9 * likelihood.abs(), "{likelihood} {expected}");
    }

    #[test]
    fn the_likelihood_never_falls() {
        let (views, truth) = planted(&[60, 30, 10], 0.4, 3);
        let points = points(&views);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<usize> = truth.iter().map(|_| rng.random_range(0..3)).collect();
        let mut share = one_hot(&drawn, 3);
        let mut before = f64::NEG_INFINITY;
        for _ in 0..30 {
            let mixture = points.maximise(&share);
            let now = points.expect(&mixture, &mut share);
            assert!(now >= before - 1e-9 * before.abs(), "{before} {now}");
            before = now;
        }
    }

    #[test]
    fn a_union_costs_what_the_likelihood_of_the_members_loses() {
        let (views, truth) = planted(&[30, 20, 10], 0.3, 2);
        let points = points(&views);
        let members = one_hot(&truth, 3);
        let of_views: Vec<(Vec<f64>, Matrix)> = points.views.iter().map(|view| view.sums(&members)).collect();
        let variances: Vec<f64> = points
            .views
            .iter()
            .zip(&of_views)
            .map(|(view, (counts, sums))| view.variance(counts, sums))
            .collect();
        let sums = |k: usize| Sums {
            count: members.iter_rows().map(|row| row[k]).sum(),
            views: of_views.iter().map(|(counts, sums)| (counts[k], sums.row(k).to_vec())).collect(),
        };
        // Squares around the means of these clusters, in units of the variances before, and the shares.
        let literal = |labels: &[usize]| {
            let size = |k: usize| labels.iter().filter(|label| **label == k).count() as f64;
            let mut log: f64 = labels.iter().map(|&k| (size(k) / 60.0).ln()).sum();
            for (view, variance) in points.views.iter().zip(&variances) {
                let (counts, sums) = view.sums(&one_hot(labels, 3));
                log -=
                    0.5 * view.variance(&counts, &sums) * view.shown * view.rows.columns() as f64 / variance;
            }
            log
        };
        let joined: Vec<usize> = truth.iter().map(|&k| if k == 2 { 0 } else { k }).collect();
        let (cost, expected) =
            (sums(0).cost_of_union(&sums(2), &variances), literal(&truth) - literal(&joined));
        assert!((cost - expected).abs() < 1e-8 * expected.abs(), "{cost} {expected}");
    }

    #[test]
    fn rare_clusters_are_found_from_clusters_of_equal_size() {
        for (sizes, missing) in
            [(&[196, 4][..], 0.0), (&[250, 5], 0.0), (&[300, 60, 12], 0.3), (&[50, 50, 50], 0.3)]
        {
            for seed in 0..5 {
                let (views, truth) = planted(sizes, missing, seed);
                // Large clusters in equal parts, the rare ones with one of them.
                let cut: Vec<usize> = (0..truth.len()).map(|i| i % sizes.len()).collect();
                let found = with(&views, |evidence, watch| {
                    evidence.mixtures(&[&cut], sizes.len(), watch).unwrap().pop()
                });
                let found = found.unwrap();
                let wrong = daimc_core::metrics::ari(&truth, &found.labels).unwrap();
                assert!(wrong > 0.95, "{sizes:?} {seed}: {wrong}");
                assert!(found.margins.iter().all(|margin| (0.0..=1.0).contains(margin)));
            }
        }
    }

    #[test]
    fn equal_rows_are_equally_likely_in_all_clusters() {
        let views = Views::new(vec![View::dense("x", 3, vec![1.0; 60]).unwrap()]).unwrap();
        let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
        let found = with(&views, |evidence, watch| evidence.mixtures(&[&labels], 2, watch).unwrap());
        // They are all in one cluster, so the other one is empty.
        assert!(found.is_empty());
    }
}
