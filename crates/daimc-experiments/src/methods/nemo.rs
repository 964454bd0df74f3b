//! NEMO: a neighbourhood graph averaged over the views that instances share.

use std::ops::ControlFlow;

use daimc::{Result, Scale, Source};
use rayon::prelude::*;

use crate::methods::data::{Scaled, check_clusters, check_count};
use crate::methods::memory::check_memory;
use crate::methods::spectral::{Entries, nearest};
use crate::methods::{Clustering, Method};

/// NEMO (Rappoport and Shamir, *NEMO: cancer subtyping by integration of partial multi-omic data*, Bioinformatics 2019).
///
/// In each view, among its present instances, with the k nearest neighbours `N(i)` of each:
///
/// ```text
/// S(i, j)  = exp(−‖x_i − x_j‖² / 2σ²_ij) / √(2π) σ_ij
/// σ²_ij    = ⅓ (mean of ‖x_i − x_r‖² over r ∈ N(i)  +  mean of ‖x_j − x_r‖² over r ∈ N(j)  +  ‖x_i − x_j‖²)
/// RS(i, j) = S(i, j) / Σ_{r ∈ N(i)} S(i, r)  if j ∈ N(i),  plus  S(i, j) / Σ_{r ∈ N(j)} S(j, r)  if i ∈ N(j)
/// ```
///
/// The weight of an edge is the mean of RS over the views with both instances. The clusters are those of spectral
/// clustering. Only missing cells inside rows are filled, with the mean of their feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nemo {
    /// How the rows of each view are scaled before they are compared.
    pub scale: Scale,
    /// Nearest neighbours of each instance in a view; `None`: the instances of the view divided by the number of clusters, as
    /// published.
    pub neighbours: Option<usize>,
}

impl Default for Nemo {
    /// Standardised features, and the published number of neighbours.
    fn default() -> Self {
        Self { scale: Scale::ZScore, neighbours: None }
    }
}

impl Method for Nemo {
    fn name(&self) -> String {
        "nemo".into()
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
        check_count("neighbours", self.neighbours.unwrap_or(1))?;
        let found = self.graph(source, clusters)?.cluster(clusters, seed)?;
        // The fit is finished: a break has no effect.
        let _ = each(1, found.history[0]);
        Ok(found)
    }
}

impl Nemo {
    /// E with `E + Eᵀ` = the mean of RS: the neighbours of each instance in all views, view by view.
    fn graph(&self, source: &dyn Source, clusters: usize) -> Result<Entries> {
        let n = source.instances();
        let shown = |view: usize| -> Vec<usize> { (0..n).filter(|&i| source.is_present(view, i)).collect() };
        let counts = |present: usize| self.neighbours.unwrap_or(present / clusters).max(1);
        let links: f64 = (0..source.views())
            .map(|view| shown(view).len())
            .map(|present| present as f64 * counts(present).min(present) as f64)
            .sum();
        // Both directions of an edge are stored while the graph is assembled.
        check_memory("NEMO keeps the neighbourhoods of all instances", n, 40.0 * links)?;
        let shared = |i: usize, j: usize| {
            (0..source.views())
                .filter(|&view| source.is_present(view, i) && source.is_present(view, j))
                .count()
        };
        let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); n];
        for view in 0..source.views() {
            let present = shown(view);
            let points = Scaled::new(source, view, self.scale)?.rows(&present)?.dense();
            let nearest = nearest(&points, counts(present.len()));
            for (&i, links) in present.iter().zip(relative(&nearest)) {
                let link = |(j, weight): (u32, f64)| {
                    let j = present[j as usize];
                    // Twice, because products with the graph are those with ½ (E + Eᵀ).
                    (j as u32, 2.0 * weight / shared(i, j) as f64)
                };
                rows[i].extend(links.into_iter().map(link));
            }
        }
        let mut graph = Entries::default();
        rows.into_iter().for_each(|row| graph.push(row));
        Ok(graph)
    }
}

/// The first half of RS: for each instance its neighbours with `S(i, j) / Σ_{r ∈ N(i)} S(i, r)`.
fn relative(nearest: &[Vec<(u32, f64)>]) -> Vec<Vec<(u32, f64)>> {
    let mean = |links: &Vec<(u32, f64)>| {
        links.iter().map(|(_, square)| square).sum::<f64>() / links.len().max(1) as f64
    };
    let means: Vec<f64> = nearest.iter().map(mean).collect();
    // Identical instances get the width of rounding errors, so that edges between them are equal.
    let least = f64::EPSILON * means.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let row = |(i, links): (usize, &Vec<(u32, f64)>)| {
        let weight = |&(j, square): &(u32, f64)| {
            let width = ((means[i] + means[j as usize] + square) / 3.0).max(least);
            // The factor √2π cancels.
            (j, (-0.5 * square / width).exp() / width.sqrt())
        };
        let weights: Vec<(u32, f64)> = links.iter().map(weight).collect();
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        weights.into_iter().map(|(j, weight)| (j, weight / sum)).collect()
    };
    nearest.par_iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use daimc::{Matrix, View, Views};
    use daimc_naive::{self as naive, Mat};

    use super::*;
    use crate::methods::testing::{assert_close, dense, plain, spectral, views};

    /// The equations, pair by pair.
    fn literal(source: &Views<'_>, k: impl Fn(usize) -> usize) -> Mat {
        let n = source.instances();
        let mut sum = naive::build(n, n, |_, _| 0.0);
        let mut views = naive::build(n, n, |_, _| 0.0);
        for view in 0..source.len() {
            let present: Vec<usize> = (0..n).filter(|&i| source.is_present(view, i)).collect();
            let x = dense(&Scaled::new(source, view, Scale::ZScore).unwrap().rows(&present).unwrap());
            let m = present.len();
            let square =
                |i: usize, j: usize| x[i].iter().zip(&x[j]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let near = |i: usize| {
                let mut others: Vec<usize> = (0..m).filter(|&j| j != i).collect();
                others.sort_by(|&a, &b| square(i, a).total_cmp(&square(i, b)));
                others.truncate(k(m));
                others
            };
            let mean = |i: usize| near(i).iter().map(|&r| square(i, r)).sum::<f64>() / near(i).len() as f64;
            let s = |i: usize, j: usize| {
                let sigma = ((mean(i) + mean(j) + square(i, j)) / 3.0).sqrt();
                (-square(i, j) / (2.0 * sigma * sigma)).exp() / ((2.0 * std::f64::consts::PI).sqrt() * sigma)
            };
            let half = |i: usize, j: usize| {
                if !near(i).contains(&j) {
                    return 0.0;
                }
                s(i, j) / near(i).iter().map(|&r| s(i, r)).sum::<f64>()
            };
            for i in 0..m {
                for j in (0..m).filter(|&j| j != i) {
                    sum[present[i]][present[j]] += half(i, j) + half(j, i);
                    views[present[i]][present[j]] += 1.0;
                }
            }
        }
        naive::build(n, n, |i, j| if views[i][j] > 0.0 { sum[i][j] / views[i][j] } else { 0.0 })
    }

    #[test]
    fn the_graph_and_its_embedding_are_those_of_the_equations() {
        let source = views(24, &[5, 3, 4], -1.0, 2);
        let identity = Matrix::from_fn(24, 24, |i, j| f64::from(u8::from(i == j)));
        for neighbours in [None, Some(3)] {
            let method = Nemo { neighbours, ..Nemo::default() };
            let expected = literal(&source, |present| neighbours.unwrap_or(present / 3));
            assert_close(&method.graph(&source, 3).unwrap().times(&identity), &expected);
            let found = method.fit(&source, 3, 0, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let products = |e: &Mat| naive::mul(e, &naive::transpose(e));
            let (found, expected) = (products(&plain(&found.embedding)), products(&spectral(&expected, 3)));
            let difference = naive::relative_difference(&found, &expected);
            assert!(difference < 1e-6, "{difference}");
        }
    }

    #[test]
    fn instances_in_one_place_are_linked_alike() {
        let same = Views::new(vec![View::dense("a", 1, vec![3.0; 6]).unwrap()]).unwrap();
        let identity = Matrix::from_fn(6, 6, |i, j| f64::from(u8::from(i == j)));
        let graph = Nemo { neighbours: Some(5), ..Nemo::default() }.graph(&same, 2).unwrap();
        assert_close(&graph.times(&identity), &naive::build(6, 6, |i, j| if i == j { 0.0 } else { 0.4 }));
    }

    #[test]
    fn a_view_that_shows_one_instance_links_nothing() {
        let a = View::dense("a", 1, vec![1.0, 2.0, 3.0, 9.0]).unwrap();
        let b = View::dense("b", 1, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
        let b = b.mask(&[true, false, false, false]).unwrap();
        let source = Views::new(vec![a, b]).unwrap();
        let found = Nemo::default().fit(&source, 2, 0, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(found.labels.len(), 4);
    }
}
