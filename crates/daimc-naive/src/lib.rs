//! A literal implementation of Hu and Chen, "Doubly Aligned Incomplete Multi-view Clustering",
//! IJCAI 2018: section 3, Eq. 11-26 and Algorithm 1. A deliberately simple reference for tests on
//! small dense problems.
//!
//! The orientation is the paper's: X is d x N (features x instances), U and B are d x K, V is
//! N x K, W is a dense N x N diagonal matrix of zeros and ones, so that W = W W^T. A column of X
//! whose weight is zero must still be finite, as it is multiplied by that zero.

#![allow(clippy::too_many_arguments, clippy::doc_markdown)] // as in the paper
#![allow(clippy::missing_panics_doc)] // shapes that differ are a mistake of the test

/// A dense matrix; the outer vector holds the rows.
pub type Mat = Vec<Vec<f64>>;

/// The matrix whose entry (i, j) is `f(i, j)`.
pub fn build(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Mat {
    let row = |i| (0..cols).map(|j| f(i, j)).collect();
    (0..rows).map(row).collect()
}

/// (rows, columns).
pub fn shape(a: &Mat) -> (usize, usize) {
    (a.len(), a.first().map_or(0, Vec::len))
}

/// The identity matrix of order n.
pub fn identity(n: usize) -> Mat {
    build(n, n, |i, j| if i == j { 1.0 } else { 0.0 })
}

/// The dense diagonal matrix of `entries`: Eq. 7 if they are the presence of the instances.
pub fn diagonal(entries: &[f64]) -> Mat {
    let n = entries.len();
    build(n, n, |i, j| if i == j { entries[i] } else { 0.0 })
}

/// A^T.
pub fn transpose(a: &Mat) -> Mat {
    let (rows, cols) = shape(a);
    build(cols, rows, |i, j| a[j][i])
}

/// A + B.
pub fn add(a: &Mat, b: &Mat) -> Mat {
    assert_eq!(shape(a), shape(b), "add: shapes differ");
    build(a.len(), shape(a).1, |i, j| a[i][j] + b[i][j])
}

/// A - B.
pub fn subtract(a: &Mat, b: &Mat) -> Mat {
    add(a, &scale(-1.0, b))
}

/// factor A.
pub fn scale(factor: f64, a: &Mat) -> Mat {
    build(a.len(), shape(a).1, |i, j| factor * a[i][j])
}

/// A B, each entry a compensated dot product.
pub fn mul(a: &Mat, b: &Mat) -> Mat {
    assert_eq!(shape(a).1, b.len(), "mul: inner dimensions differ");
    build(a.len(), shape(b).1, |i, j| compensated(0.0, (0..b.len()).map(|l| (a[i][l], b[l][j]))))
}

/// start + the sum of the products, as if in twice the working precision and then rounded
/// (two-product by a fused multiply-add, two-sum by Knuth).
pub fn compensated(start: f64, products: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut error) = (start, 0.0);
    for (x, y) in products {
        let product = x * y;
        let product_error = x.mul_add(y, -product);
        let next = sum + product;
        let part = next - sum;
        let sum_error = (sum - (next - part)) + (product - part);
        sum = next;
        error += product_error + sum_error;
    }
    sum + error
}

/// ||A||_F.
pub fn frobenius(a: &Mat) -> f64 {
    a.iter().flatten().map(|x| x * x).sum::<f64>().sqrt()
}

/// ||A - B||_F / max(||B||_F, tiny).
pub fn relative_difference(a: &Mat, b: &Mat) -> f64 {
    frobenius(&subtract(a, b)) / frobenius(b).max(f64::MIN_POSITIVE)
}

/// The X of A X = RHS: Gaussian elimination with partial pivoting, then two steps of iterative
/// refinement whose residuals are compensated. Panics if A is singular.
pub fn solve(a: &Mat, rhs: &Mat) -> Mat {
    let (n, columns) = (a.len(), shape(rhs).1);
    assert_eq!(shape(a), (n, n), "solve: the matrix is not square");
    assert_eq!(rhs.len(), n, "solve: the right-hand side does not fit");
    // L (unit diagonal, below) and U (on and above the diagonal) of the row-permuted matrix.
    let mut lu = a.clone();
    let mut order: Vec<usize> = (0..n).collect();
    for k in 0..n {
        let larger = |&p: &usize, &q: &usize| lu[p][k].abs().total_cmp(&lu[q][k].abs());
        let pivot = (k..n).max_by(larger).unwrap();
        lu.swap(k, pivot);
        order.swap(k, pivot);
        let pivot_is_usable = lu[k][k] != 0.0 && lu[k][k].is_finite();
        assert!(pivot_is_usable, "solve: the matrix is singular");
        for i in k + 1..n {
            lu[i][k] /= lu[k][k];
            for j in k + 1..n {
                lu[i][j] -= lu[i][k] * lu[k][j];
            }
        }
    }
    let substitute = |right: &Mat| -> Mat {
        let mut y: Mat = order.iter().map(|&p| right[p].clone()).collect();
        for c in 0..columns {
            for i in 0..n {
                y[i][c] -= (0..i).map(|l| lu[i][l] * y[l][c]).sum::<f64>();
            }
            for i in (0..n).rev() {
                y[i][c] -= (i + 1..n).map(|l| lu[i][l] * y[l][c]).sum::<f64>();
                y[i][c] /= lu[i][i];
            }
        }
        y
    };
    let mut solution = substitute(rhs);
    for _ in 0..2 {
        let residual =
            build(n, columns, |i, c| compensated(rhs[i][c], (0..n).map(|l| (-a[i][l], solution[l][c]))));
        solution = add(&solution, &substitute(&residual));
    }
    solution
}

/// A (x) B, the Kronecker product of Eq. 15.
pub fn kronecker(a: &Mat, b: &Mat) -> Mat {
    let ((m, n), (p, q)) = (shape(a), shape(b));
    build(m * p, n * q, |i, j| a[i / p][j / q] * b[i % p][j % q])
}

/// vec(A) of Eq. 15: the columns stacked into one column.
pub fn vectorise(a: &Mat) -> Mat {
    let (rows, cols) = shape(a);
    build(rows * cols, 1, |i, _| a[i % rows][i / rows])
}

/// Eq. 15: U from X, W, V and B. Panics if the system is singular.
pub fn update_u_kronecker(x: &Mat, w: &Mat, v: &Mat, b: &Mat, alpha: f64) -> Mat {
    let s = mul(&mul(&transpose(v), w), v);
    let c = mul(&mul(x, w), v);
    update_u_from_statistics(&s, &c, b, alpha)
}

/// Eq. 15 from S = V^T W V (K x K, symmetric) and C = X W V (d x K):
/// vec(U) = [I_K (x) (alpha B B^T) + S (x) I_d]^-1 vec(C + alpha B).
///
/// The rounding of alpha B B^T limits the relative accuracy of the result to about
/// 1e-16 ||alpha B B^T|| / (smallest eigenvalue of S), however well the system is solved.
pub fn update_u_from_statistics(s: &Mat, c: &Mat, b: &Mat, alpha: f64) -> Mat {
    let (d, k) = shape(b);
    let alpha_bbt = scale(alpha, &mul(b, &transpose(b)));
    let left = kronecker(&identity(k), &alpha_bbt);
    let system = add(&left, &kronecker(s, &identity(d)));
    let vec_u = solve(&system, &vectorise(&add(c, &scale(alpha, b))));
    build(d, k, |i, j| vec_u[j * d + i][0])
}

/// Eq. 13: the gradient of Eq. 12 by U,
/// 2 (U V^T - X) W W^T V + 2 alpha B (B^T U - I).
pub fn gradient_u(x: &Mat, w: &Mat, u: &Mat, v: &Mat, b: &Mat, alpha: f64) -> Mat {
    let residual = subtract(&mul(u, &transpose(v)), x);
    let fit = mul(&mul(&mul(&residual, w), &transpose(w)), v);
    let misalignment = subtract(&mul(&transpose(b), u), &identity(shape(u).1));
    add(&scale(2.0, &fit), &scale(2.0 * alpha, &mul(b, &misalignment)))
}

/// sqrt(||b_j||^2 + eta) of each row j of B: what Eq. 24 inverts, kept away from zero by eta.
pub fn row_norms(b: &Mat, eta: f64) -> Vec<f64> {
    let norm = |row: &Vec<f64>| (row.iter().map(|x| x * x).sum::<f64>() + eta).sqrt();
    b.iter().map(norm).collect()
}

/// Eq. 25: B = [U U^T + 0.5 beta D]^-1 U, with D by Eq. 24 from the previous B and
/// D_jj = 1 / sqrt(||b_j||^2 + eta); a dense d x d system.
///
/// The rounding of U U^T limits the relative accuracy of the result to about
/// 1e-16 ||U U^T|| / (0.5 beta min_j D_jj), however well the system is solved.
pub fn update_b_dense(u: &Mat, b_old: &Mat, beta: f64, eta: f64) -> Mat {
    let d: Vec<f64> = row_norms(b_old, eta).iter().map(|n| 1.0 / n).collect();
    let penalty = scale(0.5 * beta, &diagonal(&d));
    solve(&add(&mul(u, &transpose(u)), &penalty), u)
}

/// A^+ = (|A| + A) / 2, as Eq. 19 uses it.
pub fn positive_part(a: &Mat) -> Mat {
    build(a.len(), shape(a).1, |i, j| a[i][j].max(0.0))
}

/// A^- = (|A| - A) / 2, as Eq. 19 uses it; it is not negative.
pub fn negative_part(a: &Mat) -> Mat {
    positive_part(&scale(-1.0, a))
}

/// Eq. 19, applied once to all of V; positive and negative parts are taken view by view.
///
/// Where the denominator is zero the new entry is zero. Either the entry was zero before, and
/// stays so, or the ratio is 0 / 0 (its column of U is zero in every view that has the instance,
/// or no view has it), and no value of the entry alters Eq. 16.
pub fn update_v_multiplicative(xs: &[Mat], ws: &[Mat], us: &[Mat], v: &Mat) -> Mat {
    let (n, k) = shape(v);
    let mut numerator = build(n, k, |_, _| 0.0);
    let mut denominator = numerator.clone();
    for ((x, w), u) in xs.iter().zip(ws).zip(us) {
        let xtu = mul(&transpose(x), u);
        let utu = mul(&transpose(u), u);
        numerator = add(&numerator, &mul(w, &positive_part(&xtu)));
        numerator = add(&numerator, &mul(&mul(w, v), &negative_part(&utu)));
        denominator = add(&denominator, &mul(w, &negative_part(&xtu)));
        denominator = add(&denominator, &mul(&mul(w, v), &positive_part(&utu)));
    }
    build(n, k, |j, l| match denominator[j][l] {
        0.0 => 0.0,
        below => v[j][l] * (numerator[j][l] / below).sqrt(),
    })
}

/// One cyclic pass of coordinate descent on Eq. 16, row by row, over k = 0..K in order:
/// `v_jk <- max(0, v_jk + (r_jk - sum_l G_j[k][l] v_jl) / G_j[k][k])`, where
/// G_j = sum_i w_ij U_i^T U_i and r_j = sum_i w_ij U_i^T x_ij over the views i, the terms of
/// Eq. 17. An entry with `G_j[k][k] <= 0` is left unchanged.
pub fn update_v_coordinate(xs: &[Mat], ws: &[Mat], us: &[Mat], v: &Mat) -> Mat {
    let (n, rank) = shape(v);
    let mut v = v.clone();
    let utus: Vec<Mat> = us.iter().map(|u| mul(&transpose(u), u)).collect();
    let xtus: Vec<Mat> = xs.iter().zip(us).map(|(x, u)| mul(&transpose(x), u)).collect();
    for j in 0..n {
        let mut g = build(rank, rank, |_, _| 0.0);
        let mut r = vec![0.0; rank];
        for i in 0..xs.len() {
            let weight = ws[i][j][j];
            g = add(&g, &scale(weight, &utus[i]));
            for k in 0..rank {
                r[k] += weight * xtus[i][j][k];
            }
        }
        for k in 0..rank {
            if g[k][k] > 0.0 {
                let descent = compensated(r[k], (0..rank).map(|l| (-g[k][l], v[j][l])));
                v[j][k] = (v[j][k] + descent / g[k][k]).max(0.0);
            }
        }
    }
    v
}

/// Eq. 20-21: U <- U Q and V <- V Q^-1 with Q the column sums of V; a sum of zero counts as one.
/// The products U V^T, hence Eq. 16, stay as they are; the alignment term of Eq. 11 does not.
pub fn normalise(us: &[Mat], v: &Mat) -> (Vec<Mat>, Mat) {
    let (n, k) = shape(v);
    let mut q: Vec<f64> = (0..k).map(|l| (0..n).map(|j| v[j][l]).sum()).collect();
    for sum in &mut q {
        if *sum == 0.0 {
            *sum = 1.0;
        }
    }
    let scaled_u = |u: &Mat| build(u.len(), k, |i, l| u[i][l] * q[l]);
    let scaled_v = build(n, k, |j, l| v[j][l] / q[l]);
    (us.iter().map(scaled_u).collect(), scaled_v)
}

/// Eq. 8 and 16: the sum over the views of ||(X - U V^T) W||_F^2.
pub fn loss(xs: &[Mat], ws: &[Mat], us: &[Mat], v: &Mat) -> f64 {
    let mut total = 0.0;
    for ((x, w), u) in xs.iter().zip(ws).zip(us) {
        total += frobenius(&mul(&subtract(x, &mul(u, &transpose(v))), w)).powi(2);
    }
    total
}

/// First term of Eq. 10: the sum over the views of ||B^T U - I||_F^2.
pub fn alignment(us: &[Mat], bs: &[Mat]) -> f64 {
    let of_view =
        |(u, b): (&Mat, &Mat)| frobenius(&subtract(&mul(&transpose(b), u), &identity(shape(u).1))).powi(2);
    us.iter().zip(bs).map(of_view).sum()
}

/// Second term of Eq. 10 without beta: the sum over the views of ||B||_{2,1}, smoothed by eta.
pub fn sparsity(bs: &[Mat], eta: f64) -> f64 {
    let of_view = |b: &Mat| row_norms(b, eta).iter().sum::<f64>();
    bs.iter().map(of_view).sum()
}

/// Eq. 11: loss + alpha (alignment + beta sparsity).
pub fn objective(
    xs: &[Mat],
    ws: &[Mat],
    us: &[Mat],
    v: &Mat,
    bs: &[Mat],
    alpha: f64,
    beta: f64,
    eta: f64,
) -> f64 {
    loss(xs, ws, us, v) + alpha * (alignment(us, bs) + beta * sparsity(bs, eta))
}

/// The rule for the V step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VSolver {
    /// `update_v_multiplicative`, Eq. 19.
    Multiplicative,
    /// `update_v_coordinate`.
    Coordinate,
}

/// The result of Algorithm 1, and Eq. 11 after each outer iteration.
#[derive(Clone, Debug)]
pub struct Run {
    /// The bases U.
    pub us: Vec<Mat>,
    /// The latent matrix V.
    pub v: Mat,
    /// The alignments B.
    pub bs: Vec<Mat>,
    /// Eq. 11.
    pub history: Vec<f64>,
}

/// Algorithm 1 without the final k-means, for given numbers of outer and inner iterations. U needs
/// no initial value: Eq. 15 computes it from V and B. (Without outer iterations U is zero.)
pub fn algorithm_1(
    xs: &[Mat],
    ws: &[Mat],
    v0: &Mat,
    b0s: &[Mat],
    alpha: f64,
    beta: f64,
    eta: f64,
    iterations: usize,
    inner: usize,
    solver: VSolver,
) -> Run {
    let mut us: Vec<Mat> = b0s.iter().map(|b| scale(0.0, b)).collect();
    let mut v = v0.clone();
    let mut bs = b0s.to_vec();
    let mut history = Vec::new();
    for _ in 0..iterations {
        for i in 0..xs.len() {
            us[i] = update_u_kronecker(&xs[i], &ws[i], &v, &bs[i], alpha);
            bs[i] = update_b_dense(&us[i], &bs[i], beta, eta);
        }
        for _ in 0..inner {
            v = match solver {
                VSolver::Multiplicative => update_v_multiplicative(xs, ws, &us, &v),
                VSolver::Coordinate => update_v_coordinate(xs, ws, &us, &v),
            };
        }
        (us, v) = normalise(&us, &v);
        history.push(objective(xs, ws, &us, &v, &bs, alpha, beta, eta));
    }
    Run { us, v, bs, history }
}
