//! Spectral clustering on the concatenated principal components of all views.

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use daimc_core::linalg;

use crate::methods::algebra::{add, gram};
use crate::methods::data::{Filled, check_clusters, check_count};
use crate::methods::memory::check_memory;
use crate::methods::spectral::{Entries, nearest};
use crate::methods::{Clustering, Method};

/// Spectral clustering on the concatenated principal components of each view, with missing rows filled with the mean of the others.
///
/// The graph links each instance with its nearest neighbours, `W = ½ (A + Aᵀ)` with `A_ij = 1` if j is one of those of i.
/// Scores are not rescaled, so a view is weighted by the variance of its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcaSpectral {
    /// How the rows of each view are scaled before they are filled in.
    pub scale: Scale,
    /// Maximum number of principal components of each view.
    pub components: usize,
    /// Nearest neighbours of each instance.
    pub neighbours: usize,
}

impl Default for PcaSpectral {
    /// Standardised features, 30 components, 10 neighbours.
    fn default() -> Self {
        Self { scale: Scale::ZScore, components: 30, neighbours: 10 }
    }
}

impl Method for PcaSpectral {
    fn name(&self) -> String {
        "pca-spectral".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        let n = source.instances();
        check_clusters(n, clusters)?;
        check_count("components", self.components)?;
        check_count("neighbours", self.neighbours)?;
        let mut scores = Vec::with_capacity(source.views());
        for view in 0..source.views() {
            // Products of features, or of instances if there are fewer; their eigenvectors; and scratch memory.
            let order = source.features(view).min(n) as f64;
            check_memory("principal components take a square matrix", n, 24.0 * order * order)?;
            scores.push(components(Filled::new(source, view, self.scale)?.dense(), self.components)?);
        }
        let width = scores.iter().map(Matrix::columns).sum();
        let mut points = Matrix::zeros(n, width);
        for i in 0..n {
            let row = scores.iter().flat_map(|scores| scores.row(i));
            points.row_mut(i).iter_mut().zip(row).for_each(|(to, score)| *to = *score);
        }
        let mut graph = Entries::default();
        for neighbours in nearest(&points, self.neighbours) {
            graph.push(neighbours.into_iter().map(|(j, _)| (j, 1.0)));
        }
        let found = graph.cluster(clusters, seed)?;
        // The fit is finished: a break has no effect.
        let _ = each(1, found.history[0]);
        Ok(found)
    }
}

/// The scores of the rows on their first principal components: `X V` with the leading eigenvectors V of `XᵀX`, with X
/// centred, or `U Λ^½` with those of `XXᵀ` if there are fewer rows than features.
fn components(mut x: Matrix, most: usize) -> Result<Matrix> {
    let (n, d) = (x.rows(), x.columns());
    let mut mean = vec![0.0; d];
    x.iter_rows().for_each(|row| add(&mut mean, 1.0 / n as f64, row));
    (0..n).for_each(|i| add(x.row_mut(i), -1.0, &mean));
    let count = most.min(n).min(d);
    if d <= n {
        let (_, vectors) = linalg::symmetric_eigen(&gram(&x))?;
        let leading = Matrix::from_fn(d, count, |f, k| vectors[(f, d - 1 - k)]);
        return Ok(linalg::product(&x, &leading));
    }
    let (values, vectors) = linalg::symmetric_eigen(&linalg::product_transposed(&x, &x))?;
    Ok(Matrix::from_fn(n, count, |i, k| values[n - 1 - k].max(0.0).sqrt() * vectors[(i, n - 1 - k)]))
}

#[cfg(test)]
mod tests {
    use daimc::View;
    use daimc::Views;
    use daimc_naive::{self as naive, Mat};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::methods::algebra::uniform;
    use crate::methods::testing::{plain, views};

    /// Scores on one component after the other: the direction of largest variance by the power method, followed by
    /// deflation.
    fn literal(x: &Mat, count: usize) -> Mat {
        let (n, d) = naive::shape(x);
        let mean: Vec<f64> = (0..d).map(|f| x.iter().map(|row| row[f]).sum::<f64>() / n as f64).collect();
        let mut left = naive::build(n, d, |i, f| x[i][f] - mean[f]);
        let mut scores = vec![Vec::new(); n];
        for _ in 0..count {
            let mut direction = naive::build(d, 1, |f, _| 1.0 + f as f64);
            for _ in 0..20_000 {
                direction = naive::mul(&naive::transpose(&left), &naive::mul(&left, &direction));
                direction = naive::scale(1.0 / naive::frobenius(&direction), &direction);
            }
            let own = naive::mul(&left, &direction);
            left = naive::subtract(&left, &naive::mul(&own, &naive::transpose(&direction)));
            scores.iter_mut().zip(&own).for_each(|(row, own)| row.push(own[0]));
        }
        scores
    }

    /// Products of scores do not depend on the signs of the components.
    fn products(scores: &Mat) -> Mat {
        naive::mul(scores, &naive::transpose(scores))
    }

    #[test]
    fn components_are_the_directions_of_largest_variance_one_after_the_other() {
        for (n, d) in [(12, 5), (6, 9)] {
            let x = uniform(n, d, &mut ChaCha8Rng::seed_from_u64(7));
            let found = plain(&components(x.clone(), 3).unwrap());
            let expected = literal(&plain(&x), 3);
            let difference = naive::relative_difference(&products(&found), &products(&expected));
            assert!(difference < 1e-8, "{n} × {d}: {difference}");
        }
    }

    #[test]
    fn the_clustering_is_that_of_its_definition() {
        let source = views(40, &[6, 4], -1.0, 3);
        let method = PcaSpectral { components: 2, neighbours: 5, ..PcaSpectral::default() };
        let found = method.fit(&source, 3, 1, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let mut points: Mat = vec![Vec::new(); 40];
        for view in 0..2 {
            let filled = plain(&Filled::new(&source, view, Scale::ZScore).unwrap().dense());
            points.iter_mut().zip(literal(&filled, 2)).for_each(|(row, own)| row.extend(own));
        }
        let square =
            |i: usize, j: usize| points[i].iter().zip(&points[j]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let mut weights = naive::build(40, 40, |_, _| 0.0);
        for i in 0..40 {
            let mut others: Vec<usize> = (0..40).filter(|&j| j != i).collect();
            others.sort_by(|&a, &b| square(i, a).total_cmp(&square(i, b)));
            for &j in &others[..5] {
                weights[i][j] += 0.5;
                weights[j][i] += 0.5;
            }
        }
        let expected = crate::methods::testing::spectral(&weights, 3);
        let difference =
            naive::relative_difference(&products(&plain(&found.embedding)), &products(&expected));
        assert!(difference < 1e-6, "{difference}");
    }

    #[test]
    fn few_instances_and_constant_features_are_no_obstacle() {
        let one = Views::new(vec![View::dense("a", 2, vec![1.0, 2.0]).unwrap()]).unwrap();
        let method = PcaSpectral::default();
        let fit = |source: &Views<'_>, clusters| {
            method.fit(source, clusters, 0, &mut |_, _| ControlFlow::Continue(())).unwrap().labels
        };
        assert_eq!(fit(&one, 1), [0]);
        let same = Views::new(vec![View::dense("a", 1, vec![3.0; 5]).unwrap()]).unwrap();
        assert_eq!(fit(&same, 2).len(), 5);
    }
}
