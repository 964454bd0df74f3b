//! Silhouettes: whether instances lie nearer to their own cluster than to the next.

use daimc::Matrix;

/// `s = (b − a) / max(a, b)` of each row, where a is the mean distance to the other rows of its cluster and b the
/// smallest mean distance to the rows of another. Zero for a row that is alone and where there is one cluster only.
#[must_use]
pub fn silhouettes(rows: &Matrix, labels: &[usize], clusters: usize) -> Vec<f64> {
    let n = rows.rows();
    let mut sizes = vec![0.0; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1.0);
    // Σ of the distances from each row to each cluster: n × K, never n × n.
    let mut sums = Matrix::zeros(n, clusters);
    for i in 0..n {
        for j in 0..i {
            let square: f64 = rows.row(i).iter().zip(rows.row(j)).map(|(x, y)| (x - y) * (x - y)).sum();
            let distance = square.sqrt();
            sums[(i, labels[j])] += distance;
            sums[(j, labels[i])] += distance;
        }
    }
    let of = |i: usize| {
        let own = labels[i];
        let others = (0..clusters).filter(|&k| k != own && sizes[k] > 0.0);
        let b = others.map(|k| sums[(i, k)] / sizes[k]).fold(f64::INFINITY, f64::min);
        let a = sums[(i, own)] / (sizes[own] - 1.0);
        let larger = a.max(b);
        if sizes[own] < 2.0 || !b.is_finite() || larger == 0.0 { 0.0 } else { (b - a) / larger }
    };
    (0..n).map(of).collect()
}
