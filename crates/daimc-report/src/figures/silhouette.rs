//! Silhouettes: how much closer instances are to their own cluster than to the nearest other one.

use daimc::Matrix;
use rayon::prelude::*;

/// `s = (b − a) / max(a, b)` of each row, where a is the mean distance to the other rows of its cluster and b the
/// smallest mean distance to the rows of another. Zero for a row that is alone in its cluster, and if there is only one cluster.
#[must_use]
pub fn silhouettes(rows: &Matrix, labels: &[usize], clusters: usize) -> Vec<f64> {
    let n = rows.rows();
    let mut sizes = vec![0.0; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1.0);
    // Stored by column, so that the loop over all other rows is vectorised.
    let columns = Matrix::from_fn(rows.columns(), n, |k, i| rows[(i, k)]);
    let of = |i: usize| {
        let mut squares = vec![0.0; n];
        for (x, column) in rows.row(i).iter().zip(columns.iter_rows()) {
            squares.iter_mut().zip(column).for_each(|(square, y)| *square += (x - y) * (x - y));
        }
        // Sums of the distances to the rows of each cluster; the distance to itself is zero.
        let mut sums = vec![0.0; clusters];
        squares.iter().zip(labels).for_each(|(square, &label)| sums[label] += square.sqrt());
        let own = labels[i];
        let others = (0..clusters).filter(|&k| k != own && sizes[k] > 0.0);
        let b = others.map(|k| sums[k] / sizes[k]).fold(f64::INFINITY, f64::min);
        let a = sums[own] / (sizes[own] - 1.0);
        let larger = a.max(b);
        if sizes[own] < 2.0 || !b.is_finite() || larger == 0.0 { 0.0 } else { (b - a) / larger }
    };
    (0..n).into_par_iter().map(of).collect()
}
