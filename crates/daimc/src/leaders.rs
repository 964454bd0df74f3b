//! The features that lead the clusters, and their stability over several runs.
//!
//! A feature leads a cluster if its weight ([`Model::weights`](crate::Model::weights)) is among the largest in absolute
//! value. A feature that leads the same cluster in every run does not depend on the random start.

use daimc_core::Matrix;
use daimc_core::matrix::dot;

/// The number of features of a view that lead a cluster: one twentieth of them, at least ten because of small views, and at most
/// half.
pub(crate) fn leading(features: usize) -> usize {
    (features / 20).max(10).min(features.div_ceil(2))
}

/// The weight of each feature of a view for a cluster, from B and the centres of the clusters: `b_fᵀc / ‖c‖`.
pub(crate) fn weights(alignment: &Matrix, centres: &Matrix, cluster: usize) -> Vec<f64> {
    let centre: Vec<f64> = centres.iter_rows().map(|row| row[cluster]).collect();
    let length = dot(&centre, &centre).sqrt();
    let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
    alignment.iter_rows().map(|row| dot(row, &centre) * unit).collect()
}

/// The features that lead the clusters of one run, and the sign of their weights.
#[derive(Clone, Debug)]
pub(crate) struct Leaders {
    /// By view and cluster.
    by_view: Vec<Vec<Vec<(u32, bool)>>>,
}

impl Leaders {
    /// The leaders, from B of each view and the centres of the clusters.
    pub fn of(alignments: &[Matrix], centres: &Matrix) -> Self {
        let of = |alignment: &Matrix| {
            let of = |cluster| strongest(&weights(alignment, centres, cluster));
            (0..centres.columns()).map(of).collect()
        };
        Self { by_view: alignments.iter().map(of).collect() }
    }
}

/// The features that lead according to these weights. A weight of zero does not lead.
fn strongest(weights: &[f64]) -> Vec<(u32, bool)> {
    let mut order: Vec<usize> = (0..weights.len()).filter(|&feature| weights[feature] != 0.0).collect();
    let most = leading(weights.len());
    if order.len() > most {
        order.select_nth_unstable_by(most, |&a, &b| {
            weights[b].abs().total_cmp(&weights[a].abs()).then(a.cmp(&b))
        });
        order.truncate(most);
    }
    order.into_iter().map(|feature| (daimc_core::index::index(feature), weights[feature] > 0.0)).collect()
}

/// The share of the runs in which each feature leads each cluster with the same sign as in the final result: for each view,
/// features × clusters. Each run comes with its matched pairs (final cluster, own cluster); B and the centres are those of the
/// final result.
pub(crate) fn stability<'a>(
    runs: impl ExactSizeIterator<Item = (&'a Leaders, &'a [(usize, usize)])>,
    alignments: &[Matrix],
    centres: &Matrix,
) -> Vec<Matrix> {
    let clusters = centres.columns();
    let count = runs.len() as f64;
    let mut out: Vec<Matrix> = alignments.iter().map(|b| Matrix::zeros(b.rows(), clusters)).collect();
    let signs: Vec<Vec<Vec<f64>>> = alignments
        .iter()
        .map(|b| (0..clusters).map(|cluster| weights(b, centres, cluster)).collect())
        .collect();
    for (leaders, pairs) in runs {
        for (view, by_cluster) in leaders.by_view.iter().enumerate() {
            for &(cluster, own) in pairs {
                for &(feature, is_for) in &by_cluster[own] {
                    let feature = feature as usize;
                    let weight = signs[view][cluster][feature];
                    if weight != 0.0 && (weight > 0.0) == is_for {
                        out[view][(feature, cluster)] += 1.0;
                    }
                }
            }
        }
    }
    out.iter_mut().flat_map(Matrix::values_mut).for_each(|times| *times /= count);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_leads_but_at_least_ten_and_at_most_half() {
        assert_eq!([1, 2, 5, 20, 21, 200, 1000].map(leading), [1, 1, 3, 10, 10, 10, 50]);
    }

    #[test]
    fn a_feature_leads_where_it_is_matched_and_on_the_same_side() {
        // Three features, two of which lead; the centres are the axes, so that weights are columns of B.
        let centres = Matrix::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 });
        let alignment = |values: [f64; 6]| [Matrix::new(3, 2, values.into()).unwrap()];
        let end = alignment([3.0, 0.0, -2.0, 1.0, 1.0, 2.0]);
        // The first run is equal to the result.
        let first = Leaders::of(&end, &centres);
        // The second has the clusters in reverse order, and the opposite sign for feature 1 in cluster 0.
        let second = Leaders::of(&alignment([0.0, 3.0, 1.0, 2.0, 2.0, 1.0]), &centres);
        // The third has lost cluster 1.
        let third = Leaders::of(&end, &centres);
        let pairs = [vec![(0, 0), (1, 1)], vec![(0, 1), (1, 0)], vec![(0, 0)]];
        let found = stability(
            [&first, &second, &third].into_iter().zip(pairs.iter().map(Vec::as_slice)),
            &end,
            &centres,
        );
        let times: Vec<f64> = found[0].values().iter().map(|share| (share * 3.0).round()).collect();
        assert_eq!(times, [3.0, 0.0, 2.0, 2.0, 0.0, 2.0]);
    }
}
