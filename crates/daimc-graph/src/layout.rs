//! A map of the instances: a two-dimensional layout of the graph that the clusters were cut from, in which points attract each
//! other along links and repel each other (`forces`).
//!
//! The graph is the fused one, its weights multiplied by the fourth power of the cosine of the rows of the final V, and not one
//! of the graphs that voted: it is the only graph that shows the result of the vote. If the clusters do not come from a graph,
//! the graph of the nearest rows of V is used instead.
//!
//! Up to [`LAID_OUT`] instances are laid out individually. Of more instances, a seeded sample of landmarks is laid out. A
//! landmark represents the instances that are most strongly linked with it, and has their links (`landmarks`); the other
//! instances are placed at the weighted mean of the landmarks that they are linked with. Instances without links are placed near
//! those with the most similar rows of V.

mod forces;
mod landmarks;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::neighbours::Graph;
use crate::random::mix;
use daimc_core::kmeans::thin;
use daimc_core::matrix::dot;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Matrix, Result, linalg};
use forces::Point;
use landmarks::Landmarks;

/// The maximum number of points in a layout.
pub const LAID_OUT: usize = 20_000;

/// The root mean square of the initial coordinates: wide enough that clusters can pass each other.
const SPREAD: f64 = 5.0;

/// The size of the initial random displacement, which separates identical points.
const JITTER: f64 = 0.05;

/// The number of landmarks whose rows of V are compared with that of an instance, and the number of nearest ones between which it
/// is placed.
const COMPARED: usize = 128;
const NEAREST: usize = 3;

/// The map of instances whose clusters come from a graph: instances × 2. Links are weighted by the agreement of rows of V.
///
/// # Errors
/// When the work is stopped.
pub fn of_graph(graph: &Graph, latent: &Matrix, seed: u64, watch: &Watch) -> Result<Matrix> {
    let watch = watch.begin(Stage::Map);
    graph_within(&graph.along(latent), &unit_rows(latent, 0..latent.rows()), LAID_OUT, seed, &watch)
}

/// The map of instances by their rows of V alone: the graph of the nearest rows, scaled to length 1.
///
/// # Errors
/// When the work is stopped, or rows are not finite.
pub fn of_latent(latent: &Matrix, seed: u64, watch: &Watch) -> Result<Matrix> {
    let watch = watch.begin(Stage::Map);
    latent_within(&unit_rows(latent, 0..latent.rows()), LAID_OUT, seed, &watch)
}

/// Lays out at most `most` instances of a graph, and positions the others.
fn graph_within(graph: &Graph, rows: &Matrix, most: usize, seed: u64, watch: &Watch) -> Result<Matrix> {
    let places = arranged(graph, rows, most, seed, watch)?;
    placed(rows, places, seed)
}

/// Lays out at most `most` rows, and positions the others.
fn latent_within(rows: &Matrix, most: usize, seed: u64, watch: &Watch) -> Result<Matrix> {
    let n = rows.rows();
    let chosen = sample((0..n as u32).collect(), most, seed);
    let some = unit_rows(rows, chosen.iter().map(|&i| i as usize));
    let graph = Graph::of_rows(&some, seed, watch)?;
    let mut places = vec![None; n];
    let found = arranged(&graph, &some, most, seed, watch)?;
    chosen.iter().zip(found).for_each(|(&i, place)| places[i as usize] = place);
    placed(rows, places, seed)
}

/// At most `most` of some instances.
fn sample(instances: Vec<u32>, most: usize, seed: u64) -> Vec<u32> {
    thin(instances, most, &mut ChaCha8Rng::seed_from_u64(seed))
}

/// Some rows, scaled to length 1; rows of zeros stay zero.
fn unit_rows(latent: &Matrix, instances: impl ExactSizeIterator<Item = usize>) -> Matrix {
    let mut rows = Matrix::zeros(instances.len(), latent.columns());
    for (place, i) in instances.enumerate() {
        let length = dot(latent.row(i), latent.row(i)).sqrt();
        let factor = if length > 0.0 { length.recip() } else { 0.0 };
        rows.row_mut(place).iter_mut().zip(latent.row(i)).for_each(|(to, from)| *to = factor * from);
    }
    rows
}

/// The positions of the instances that a graph links with others.
fn arranged(
    graph: &Graph,
    rows: &Matrix,
    most: usize,
    seed: u64,
    watch: &Watch,
) -> Result<Vec<Option<Point>>> {
    let linked = (0..graph.instances()).filter(|&i| graph.row(i).next().is_some());
    let chosen = sample(linked.map(|i| i as u32).collect(), most, seed);
    let landmarks = Landmarks::new(graph, &chosen);
    watch.check()?;
    let links = landmarks.links();
    let start = start(&unit_rows(rows, chosen.iter().map(|&i| i as usize)), seed)?;
    let at = links.arrange(start, seed, watch)?;
    Ok(landmarks.place(&chosen, &at))
}

/// The initial positions of rows: the plane of their largest variance, with a little noise.
fn start(rows: &Matrix, seed: u64) -> Result<Vec<Point>> {
    let (n, d) = (rows.rows(), rows.columns());
    let mut mean = vec![0.0; d];
    rows.iter_rows().for_each(|row| mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / n as f64));
    let centred = Matrix::from_fn(n, d, |i, k| rows[(i, k)] - mean[k]);
    let (_, axes) = linalg::symmetric_eigen(&linalg::transposed_product(&centred, &centred))?;
    // The largest eigenvalue comes last. The sign is chosen such that the largest entry is positive.
    let axis = |back: usize| -> Vec<f64> {
        let Some(column) = d.checked_sub(back) else { return vec![0.0; d] };
        let axis: Vec<f64> = (0..d).map(|k| axes[(k, column)]).collect();
        let largest =
            axis.iter().fold(0.0_f64, |largest, x| if x.abs() > largest.abs() { *x } else { largest });
        axis.into_iter().map(|x| x * largest.signum()).collect()
    };
    let (first, second) = (axis(1), axis(2));
    let mut at: Vec<Point> = centred.iter_rows().map(|row| [dot(row, &first), dot(row, &second)]).collect();
    let square = at.iter().map(|[x, y]| x * x + y * y).sum::<f64>() / n.max(1) as f64;
    // Rows that are equal except for rounding have no directions.
    let factor = if square > 1e-20 { SPREAD / square.sqrt() } else { 0.0 };
    let noise = |number: usize| {
        let drawn = mix(seed.wrapping_add(number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        2.0 * JITTER * (f64::from(drawn) / f64::from(u32::MAX) - 0.5)
    };
    for (i, at) in at.iter_mut().enumerate() {
        *at = [factor * at[0] + noise(2 * i), factor * at[1] + noise(2 * i + 1)];
    }
    Ok(at)
}

/// Positions the remaining points between those with the nearest rows, among some with the same largest column of V, and returns
/// the matrix of all positions. If no point has a position, all are at their initial positions.
fn placed(rows: &Matrix, mut places: Vec<Option<Point>>, seed: u64) -> Result<Matrix> {
    let known: Vec<(usize, Point)> =
        places.iter().enumerate().filter_map(|(i, place)| Some((i, (*place)?))).collect();
    if known.is_empty() {
        places = start(rows, seed)?.into_iter().map(Some).collect();
    }
    let column = |i: usize| {
        let entries = rows.row(i).iter().enumerate();
        entries.fold((0, 0.0), |best, (k, &x)| if x > best.1 { (k, x) } else { best }).0
    };
    let mut by_column = vec![Vec::new(); rows.columns()];
    known.iter().for_each(|own| by_column[column(own.0)].push(*own));
    let some: Vec<Vec<(usize, Point)>> = by_column.iter().map(|own| thinned(own)).collect();
    let any = thinned(&known);
    places.par_iter_mut().enumerate().filter(|(_, place)| place.is_none()).for_each(|(i, place)| {
        let candidates = Some(&some[column(i)]).filter(|own| !own.is_empty()).unwrap_or(&any);
        *place = Some(between(rows, i, candidates));
    });
    let values = places.into_iter().flatten().flatten().collect();
    Matrix::new(rows.rows(), 2, values)
}

/// At most [`COMPARED`] points, evenly spread.
fn thinned(all: &[(usize, Point)]) -> Vec<(usize, Point)> {
    let count = all.len().min(COMPARED);
    (0..count).map(|k| all[k * all.len() / count]).collect()
}

/// The mean position of the nearest points, each weighted by the inverse of its squared distance.
fn between(rows: &Matrix, i: usize, candidates: &[(usize, Point)]) -> Point {
    let square = |j: usize| rows.row(i).iter().zip(rows.row(j)).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let mut nearest: Vec<(f64, Point)> = candidates.iter().map(|&(j, at)| (square(j), at)).collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    nearest.truncate(NEAREST);
    // A coincident point must not have all of the weight.
    let least = 1e-3 * nearest.last().map_or(0.0, |last| last.0) + 1e-12;
    let mut sum = [0.0; 3];
    for (square, [x, y]) in nearest {
        let weight = 1.0 / (square + least);
        sum = [sum[0] + weight * x, sum[1] + weight * y, sum[2] + weight];
    }
    [sum[0] / sum[2], sum[1] / sum[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use daimc_core::synthetic::Synthetic;

    /// Rows near the axes, one per group, and their groups.
    fn grouped(n: usize, groups: usize) -> (Matrix, Vec<usize>) {
        let truth = Synthetic::new(n, groups).seed(1).truth();
        let noise = |i: usize, k: usize| f64::from(mix((i * groups + k + 1) as u64)) / f64::from(u32::MAX);
        let rows = Matrix::from_fn(n, groups, |i, k| f64::from(u8::from(truth[i] == k)) + 0.4 * noise(i, k));
        (unit_rows(&rows, 0..n), truth)
    }

    /// The share of the ten nearest points that belong to the same group.
    fn together(map: &Matrix, groups: &[usize]) -> f64 {
        let square =
            |i: usize, j: usize| (map[(i, 0)] - map[(j, 0)]).powi(2) + (map[(i, 1)] - map[(j, 1)]).powi(2);
        let of = |i: usize| {
            let mut others: Vec<usize> = (0..groups.len()).filter(|&j| j != i).collect();
            others.sort_by(|&a, &b| square(i, a).total_cmp(&square(i, b)));
            others[..10].iter().filter(|&&j| groups[j] == groups[i]).count()
        };
        (0..groups.len()).map(of).sum::<usize>() as f64 / (10 * groups.len()) as f64
    }

    #[test]
    fn a_sample_shows_the_groups_as_all_do() {
        let (rows, truth) = grouped(1200, 6);
        let watch = Watch::default();
        let graph = Graph::of_rows(&rows, 0, &watch).unwrap();
        for most in [1200, 300, 60] {
            let of_graph = graph_within(&graph, &rows, most, 0, &watch).unwrap();
            let of_rows = latent_within(&rows, most, 0, &watch).unwrap();
            for map in [of_graph, of_rows] {
                assert!(map.values().iter().all(|value| value.is_finite()));
                let share = together(&map, &truth);
                assert!(share > 0.95, "{most}: {share}");
            }
        }
    }

    #[test]
    fn parts_of_a_graph_that_nothing_links_are_all_shown() {
        // Groups of twenty copies without links between groups; some groups have no landmark.
        let rows = Matrix::from_fn(400, 20, |i, k| f64::from(u8::from(i / 20 == k)));
        let watch = Watch::default();
        let graph = Graph::of_rows(&rows, 0, &watch).unwrap();
        for most in [400, 12] {
            let map = graph_within(&graph, &rows, most, 0, &watch).unwrap();
            assert!(map.values().iter().all(|value| value.is_finite() && value.abs() < 1e3), "{map:?}");
        }
    }

    #[test]
    fn instances_without_links_are_placed_by_v() {
        let (rows, truth) = grouped(200, 4);
        let places = (0..200).map(|i| (i >= 20).then(|| [truth[i] as f64, -(truth[i] as f64)])).collect();
        let map = placed(&rows, places, 0).unwrap();
        for i in 0..20 {
            assert!((map[(i, 0)] - truth[i] as f64).abs() < 1e-9, "{i}");
        }
    }
}
