//! The principal plane of rows (PCA).

use daimc::Matrix;

/// The two directions of largest variance.
#[derive(Clone, Debug)]
pub struct Plane {
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    /// The variance along each direction.
    pub variance: [f64; 2],
    /// The variance along all directions.
    pub total: f64,
}

/// Orthogonal iteration ends when the relative change of the variance is below `TOLERANCE`, or after `STEPS` steps.
const TOLERANCE: f64 = 1e-13;
const STEPS: usize = 500;

impl Plane {
    /// The principal plane of some rows.
    #[must_use]
    pub fn of(rows: &Matrix) -> Self {
        let (n, d) = (rows.rows().max(1) as f64, rows.columns());
        let mut mean = vec![0.0; d];
        for row in rows.iter_rows() {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / n);
        }
        let mut covariance = Matrix::zeros(d, d);
        let mut centred = vec![0.0; d];
        for row in rows.iter_rows() {
            centred.iter_mut().zip(row.iter().zip(&mean)).for_each(|(c, (x, mean))| *c = x - mean);
            for (i, x) in centred.iter().enumerate() {
                let share = x / n;
                covariance.row_mut(i).iter_mut().zip(&centred).for_each(|(c, y)| *c += share * y);
            }
        }
        let total = (0..d).map(|i| covariance[(i, i)]).sum();
        let (axes, variance) = leading(&covariance);
        Self { mean, axes, variance, total }
    }

    /// The coordinates of a row in the plane.
    #[must_use]
    pub fn project(&self, row: &[f64]) -> [f64; 2] {
        let along = |axis: &Vec<f64>| -> f64 {
            axis.iter().zip(row.iter().zip(&self.mean)).map(|(a, (x, mean))| a * (x - mean)).sum()
        };
        [along(&self.axes[0]), along(&self.axes[1])]
    }

    /// The share of the variance along each direction; zero if nothing varies.
    #[must_use]
    pub fn shares(&self) -> [f64; 2] {
        self.variance.map(|variance| if self.total > 0.0 { variance / self.total } else { 0.0 })
    }
}

/// The two leading eigenvectors of a positive semi-definite matrix and their eigenvalues, by orthogonal iteration. For nearly
/// equal eigenvalues, any vectors of their eigenspace are returned.
fn leading(matrix: &Matrix) -> ([Vec<f64>; 2], [f64; 2]) {
    let d = matrix.rows();
    // Two start vectors that are unlikely to be orthogonal to the leading eigenvectors.
    let start = |seed: f64| (0..d).map(|i| 1.0 + (seed * (i + 1) as f64).sin()).collect::<Vec<f64>>();
    let mut axes = [start(1.3), start(2.7)];
    let mut variance = [0.0; 2];
    orthonormalise(&mut axes);
    for _ in 0..STEPS {
        let products = axes.each_ref().map(|axis| product(matrix, axis));
        let now = [dot(&axes[0], &products[0]), dot(&axes[1], &products[1])];
        let change = (now[0] - variance[0]).abs() + (now[1] - variance[1]).abs();
        variance = now;
        if change <= TOLERANCE * now[0].abs() {
            break;
        }
        axes = products;
        orthonormalise(&mut axes);
    }
    if variance[1] > variance[0] {
        axes.swap(0, 1);
        variance.swap(0, 1);
    }
    for axis in &mut axes {
        // The component of largest absolute value is positive, so that the sign does not depend on the start.
        let largest = axis.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            axis.iter_mut().for_each(|value| *value = -*value);
        }
    }
    (axes, variance.map(|variance| variance.max(0.0)))
}

fn orthonormalise([first, second]: &mut [Vec<f64>; 2]) {
    normalise(first);
    let along = dot(first, second);
    second.iter_mut().zip(&*first).for_each(|(s, f)| *s -= along * f);
    normalise(second);
}

/// Scales a vector to length 1; a vector of negligible length becomes zero.
fn normalise(vector: &mut [f64]) {
    let length = dot(vector, vector).sqrt();
    let factor = if length > 1e-150 { 1.0 / length } else { 0.0 };
    vector.iter_mut().for_each(|value| *value *= factor);
}

fn product(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
    matrix.iter_rows().map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
