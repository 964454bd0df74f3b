//! References: instances of a fit that new instances are compared with, if neighbourhoods took part in the clustering.
//!
//! A view predicts the cluster of an instance from its nearest references, with the weights of the graph:
//!
//! ```text
//! p_v(c) ∝ Σ_{j near i, in c} exp(−d_ij² / (r_i r_j)),        r the distance of the last neighbour
//! ```
//!
//! The reliability of a view is estimated from the references, each predicted by the others: `ε_v` is the share of the cluster
//! sizes π in a mixture with the prediction, by maximum likelihood, and close to 1 for a view of noise. The views of an instance
//! are combined as if they were independent:
//!
//! ```text
//! ln p(c) = ln π_c + Σ_v ln( ((1 − ε_v) p_v(c) + ε_v π_c) / π_c )
//! ```
//!
//! Rows are compared along the leading directions of the rows of the fit.
//!
//! On Digit with half of the rows missing and 400 of 2000 instances held out, the accuracy (mean of three masks) is 0.935 for
//! fitted instances. For held-out instances it is 0.943 with the views that they have, and 0.883 by V alone; with a single view
//! it is 0.878, and 0.805 by V alone. V as an additional vote is worse (0.92 and 0.83), because it repeats the information of the
//! views.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::lists::Lists;
use super::{NEIGHBOURS, search};
use daimc_core::index::index;
use daimc_core::kmeans::Points;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, View, Views, linalg};

/// The maximum number of references.
const MOST: usize = 10_000;
const STREAM: u64 = 1 << 42;

/// The number of rows that are multiplied, or compared with the references, at a time.
const TILE: usize = 64;

/// Views with a larger ε are not used.
const MOST_DOUBT: f64 = 0.9;

/// Two rows are equal if their squared distance is at most this share of their squared length.
const SAME: f64 = 1e-9;

/// Iterations of the maximum likelihood estimate of ε.
const ROUNDS: usize = 50;

/// Instances of a fit with their clusters and rows, from which `Model::place` predicts the clusters of new instances.
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    /// The cluster of each reference.
    pub labels: Vec<usize>,
    /// One for each view of the model.
    pub views: Vec<ViewReferences>,
}

/// The rows of the references in a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewReferences {
    /// Features × dimensions; no dimensions for a view without instances. The directions are scaled to a common unit of the
    /// views.
    pub directions: Matrix,
    /// The offset that is subtracted from products with the directions.
    pub origin: Vec<f64>,
    /// The references with a row in the view, in increasing order.
    pub members: Vec<usize>,
    /// Their rows along the directions, concatenated.
    pub rows: Vec<f32>,
    /// The distance of the last neighbour of each.
    pub reach: Vec<f32>,
    /// ε.
    pub doubt: f64,
}

/// The prediction of a view for an instance: a share for each cluster, and the references with the same row.
struct Answer {
    instance: usize,
    votes: Vec<f64>,
    twins: Vec<usize>,
}

/// The predictions for new instances.
pub struct Predictions {
    /// The probability of each cluster; a row of zeros for an instance without a usable view.
    pub posterior: Matrix,
    /// The cluster of a reference that is equal to the instance, if any.
    pub same: Vec<Option<usize>>,
}

impl References {
    /// References with these clusters. Each view has directions, unless it has no instances.
    pub fn new(
        scan: &Scan<'_>,
        scaled_views: &[ScaledView],
        directions: Vec<Option<Matrix>>,
        labels: &[usize],
        clusters: usize,
        seed: u64,
        watch: &Watch,
    ) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        let n = labels.len();
        let mut chosen: Vec<u32> = if n > MOST {
            rand::seq::index::sample(&mut rng, n, MOST).iter().map(index).collect()
        } else {
            (0..index(n)).collect()
        };
        chosen.sort_unstable();
        let labels: Vec<usize> = chosen.iter().map(|&i| labels[i as usize]).collect();
        let sizes = sizes(&labels, clusters);
        let mut views = Vec::with_capacity(scaled_views.len());
        for ((view, scaled_view), directions) in scaled_views.iter().enumerate().zip(directions) {
            watch.check()?;
            views.push(match directions {
                Some(directions) => ViewReferences::new(
                    (scan, view, scaled_view),
                    directions,
                    &chosen,
                    &labels,
                    &sizes,
                    watch,
                )?,
                None => ViewReferences { doubt: 1.0, ..ViewReferences::default() },
            });
        }
        Ok(Self { labels, views })
    }

    /// Replaces directions in a shortened view by directions in the view of this scaled view. `along` (features × dimensions) are the
    /// directions of the shortening. Afterwards complete rows can be compared.
    pub fn lengthen(&mut self, view: usize, along: &Matrix, scaled_view: &ScaledView) {
        let own = &mut self.views[view];
        if own.directions.rows() == along.columns() {
            own.directions = linalg::product(along, &own.directions);
            let centre = scaled_view.along_centre(&own.directions);
            own.origin.iter_mut().zip(centre).for_each(|(origin, centre)| *origin += centre);
        }
    }

    /// The number of references.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Predicts the clusters of the instances of a prepared source, whose views have these indices in the model.
    pub fn ask(
        &self,
        scan: &Scan<'_>,
        scaled_views: &[ScaledView],
        places: &[usize],
        clusters: usize,
    ) -> Result<Predictions> {
        let n = scan.instances();
        let sizes = sizes(&self.labels, clusters);
        let mut logs = Matrix::zeros(n, clusters);
        let mut queried = vec![false; n];
        // References that are equal to the instance in every view so far.
        let mut same: Vec<Option<Vec<usize>>> = vec![None; n];
        for ((view, scaled_view), &place) in scaled_views.iter().enumerate().zip(places) {
            let own = &self.views[place];
            if own.members.is_empty() {
                continue;
            }
            own.each(
                (scan, view, scaled_view),
                &self.labels,
                clusters,
                |Answer { instance: i, votes, twins }| {
                    if own.doubt <= MOST_DOUBT {
                        queried[i] = true;
                        let ratios = votes.iter().zip(&sizes).map(|(vote, size)| {
                            if *size > 0.0 { ((1.0 - own.doubt) * vote / size + own.doubt).ln() } else { 0.0 }
                        });
                        logs.row_mut(i).iter_mut().zip(ratios).for_each(|(log, ratio)| *log += ratio);
                    }
                    same[i] = Some(match same[i].take() {
                        None => twins,
                        Some(mut before) => {
                            before.retain(|twin| twins.contains(twin));
                            before
                        }
                    });
                },
            )?;
        }
        for i in (0..n).filter(|&i| queried[i]) {
            let row = logs.row_mut(i);
            row.iter_mut().zip(&sizes).for_each(|(log, size)| *log += size.ln());
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|log| *log = (*log - most).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= sum);
        }
        let label = |twins: Option<Vec<usize>>| {
            let mut labels = twins?.into_iter().map(|twin| self.labels[twin]);
            let first = labels.next()?;
            labels.all(|label| label == first).then_some(first)
        };
        Ok(Predictions { posterior: logs, same: same.into_iter().map(label).collect() })
    }

    /// Whether all parts have consistent sizes.
    pub fn fits(&self, features: &[usize], clusters: usize) -> bool {
        let count = self.labels.len();
        let view = |(own, &features): (&ViewReferences, &usize)| {
            let (members, width) = (own.members.len(), own.directions.columns());
            let known = members == 0 || own.directions.rows() == features && width > 0;
            known
                && own.origin.len() == width
                && own.rows.len() == members * width
                && own.reach.len() == members
                && own.members.is_sorted_by(|a, b| a < b)
                && own.members.last().is_none_or(|last| *last < count)
                && own.rows.iter().chain(&own.reach).all(|value| value.is_finite())
                && (0.0..=1.0).contains(&own.doubt)
        };
        self.views.len() == features.len()
            && self.labels.iter().all(|label| *label < clusters)
            && self.views.iter().zip(features).all(view)
    }
}

/// The number of nearest references: at most half of an average cluster, so that neighbours in a small data set do not include
/// everything.
fn near(references: usize, clusters: usize) -> usize {
    (references / (2 * clusters)).clamp(1, NEIGHBOURS)
}

/// The share of each cluster.
fn sizes(labels: &[usize], clusters: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1.0 / labels.len() as f64);
    sizes
}

impl ViewReferences {
    fn new(
        (scan, view, scaled_view): (&Scan<'_>, usize, &ScaledView),
        mut directions: Matrix,
        chosen: &[u32],
        labels: &[usize],
        sizes: &[f64],
        watch: &Watch,
    ) -> Result<Self> {
        let schema = scan.schema().view(view);
        let members: Vec<usize> = (0..chosen.len()).filter(|&at| schema.shows(chosen[at] as usize)).collect();
        let instances: Vec<u32> = members.iter().map(|&at| chosen[at]).collect();
        // Rows must be in range whatever the units of the data are.
        let root = search::unit(scaled_view).sqrt();
        directions.values_mut().iter_mut().for_each(|value| *value *= root);
        let origin = scaled_view.along_centre(&directions);
        let width = directions.columns();
        let mut own = Self { directions, origin, members, doubt: 1.0, ..Self::default() };
        let mut buffer = Buffer::default();
        let points = Points::new(scan, view, scaled_view, &instances, &mut buffer)?;
        let operand = scaled_view.operand(&own.directions);
        let parts = points.rows.par_chunks(TILE).map_init(Scratch::default, |scratch, rows| {
            let mut part = Vec::with_capacity(rows.len() * width);
            scaled_view.project_each(&points.block, rows, &operand, scratch, |_, products| {
                part.extend(
                    products.iter().zip(&own.origin).map(|(product, origin)| (product - origin) as f32),
                );
            });
            part
        });
        own.rows = parts.collect::<Vec<_>>().concat();
        if own.members.len() < 2 {
            own.reach = vec![0.0; own.members.len()];
            return Ok(own);
        }
        let found = search::among(&own.rows, width, near(own.members.len(), sizes.len()), watch)?;
        let last = |i: usize| found.of(i).last().map_or(0.0, |(_, square)| square.sqrt() as f32);
        own.reach = (0..own.members.len()).map(last).collect();
        let mut votes = vec![0.0; sizes.len()];
        let mut likely = Vec::with_capacity(own.members.len());
        for (i, &member) in own.members.iter().enumerate() {
            own.vote(found.of(i), own.reach[i], labels, &mut votes);
            likely.push((votes[labels[member]], sizes[labels[member]]));
        }
        own.doubt = doubt(&likely);
        Ok(own)
    }

    /// The predicted share of each cluster from neighbours and their squared distances; the shares sum to 1.
    fn vote(
        &self,
        near: impl Iterator<Item = (usize, f64)>,
        reach: f32,
        labels: &[usize],
        votes: &mut [f64],
    ) {
        votes.fill(0.0);
        for (other, square) in near {
            let scale = f64::from(reach) * f64::from(self.reach[other]);
            // Identical points, all at distance 0.
            let weight =
                if scale > 0.0 { (-square / scale).exp() } else { f64::from(u8::from(square == 0.0)) };
            votes[labels[self.members[other]]] += weight.max(1e-12);
        }
        let sum: f64 = votes.iter().sum();
        votes.iter_mut().for_each(|vote| *vote /= sum.max(f64::MIN_POSITIVE));
    }

    /// Calls `each` with the prediction for every instance of the view.
    fn each(
        &self,
        (scan, view, scaled_view): (&Scan<'_>, usize, &ScaledView),
        labels: &[usize],
        clusters: usize,
        mut each: impl FnMut(Answer) + Send,
    ) -> Result<()> {
        let width = self.directions.columns();
        let source = Views::new(vec![View::dense("references", width, &self.rows[..])?])?;
        let stop = scan.stop();
        let known = Scan::new(&source, stop);
        let plain = ScaledView::new(&known, 0, Scaling::fit(&known, 0, Scale::None)?)?;
        let all: Vec<u32> = (0..index(self.members.len())).collect();
        let mut buffer = Buffer::default();
        let references = Points::new(&known, 0, &plain, &all, &mut buffer)?;
        let operand = scaled_view.operand(&self.directions);
        let count = near(self.members.len(), clusters);
        scan.pass_view(
            view,
            || (Vec::new(), Scratch::default()),
            |piece, (part, scratch): &mut (Vec<Answer>, Scratch)| {
                for rows in piece.shown().chunks(TILE) {
                    let mut queries = Matrix::zeros(width, rows.len());
                    scaled_view.project_each(&piece.blocks[0], rows, &operand, scratch, |q, products| {
                        for (f, (product, origin)) in products.iter().zip(&self.origin).enumerate() {
                            // Rounded like the rows of the references.
                            queries[(f, q)] = f64::from((product - origin) as f32);
                        }
                    });
                    let mut near = Lists::empty(rows.len(), count);
                    references.distances(0..self.members.len(), &queries, scratch, |other, squares| {
                        for (q, square) in squares.iter().enumerate() {
                            near.offer(q, index(other), *square as f32);
                        }
                    });
                    for (q, &(instance, _)) in rows.iter().enumerate() {
                        let row: Vec<f64> = (0..width).map(|f| queries[(f, q)]).collect();
                        let (votes, twins) = self.answer(&row, near.of(q), labels, clusters);
                        part.push(Answer { instance, votes, twins });
                    }
                }
                Ok(())
            },
            |(part, _)| part.drain(..).for_each(&mut each),
        )
    }

    /// The prediction of the nearest references for a row, and the references with an equal row.
    fn answer(
        &self,
        row: &[f64],
        near: impl Iterator<Item = (u32, f32)>,
        labels: &[usize],
        clusters: usize,
    ) -> (Vec<f64>, Vec<usize>) {
        let width = row.len();
        // Distances of nearly equal rows have lost their digits.
        let square = |other: usize| -> f64 {
            let known = &self.rows[other * width..][..width];
            row.iter().zip(known).map(|(x, y)| (x - f64::from(*y)).powi(2)).sum()
        };
        let near: Vec<(usize, f64)> =
            near.map(|(other, _)| (other as usize, square(other as usize))).collect();
        let length: f64 = row.iter().map(|x| x * x).sum();
        let twins = near.iter().filter(|(_, square)| *square <= SAME * length);
        let twins = twins.map(|(other, _)| self.members[*other]).collect();
        let reach = near.iter().map(|(_, square)| square.sqrt()).fold(0.0, f64::max);
        let mut votes = vec![0.0; clusters];
        self.vote(near.into_iter(), reach as f32, labels, &mut votes);
        (votes, twins)
    }
}

/// The estimate of ε from the probability of each instance's true cluster, by its neighbours and by the sizes: expectation
/// maximisation with one pseudo-instance on either side.
fn doubt(likely: &[(f64, f64)]) -> f64 {
    let mut doubt = 0.5;
    for _ in 0..ROUNDS {
        let share = |&(by_neighbours, by_size): &(f64, f64)| {
            let blind = doubt * by_size;
            blind / (blind + (1.0 - doubt) * by_neighbours).max(f64::MIN_POSITIVE)
        };
        doubt = (1.0 + likely.iter().map(share).sum::<f64>()) / (2.0 + likely.len() as f64);
    }
    doubt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_instances_have_few_neighbours() {
        assert_eq!([(0, 3), (5, 3), (12, 3), (50, 3), (1000, 10)].map(|(n, k)| near(n, k)), [1, 1, 2, 8, 10]);
    }

    #[test]
    fn doubt_is_the_most_likely_share_of_the_mixture() {
        let likely: Vec<(f64, f64)> =
            (0..200).map(|i| if i % 5 == 0 { (0.0, 0.25) } else { (0.9, 0.25) }).collect();
        let found = doubt(&likely);
        let log = |doubt: f64| -> f64 {
            let own = likely.iter().map(|(a, b)| ((1.0 - doubt) * a + doubt * b).ln());
            own.sum::<f64>() + doubt.ln() + (1.0 - doubt).ln()
        };
        assert!(log(found) >= log(found - 1e-3) && log(found) >= log(found + 1e-3), "{found}");
        // Uninformative neighbours, and perfect ones.
        let strange: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(u8::from(i % 4 == 0)), 0.25)).collect();
        assert!(doubt(&strange) > 0.9);
        assert!(doubt(&[(1.0, 0.25); 200]) < 0.02);
    }
}
