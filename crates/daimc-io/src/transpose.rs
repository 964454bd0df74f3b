//! Transposes a dense matrix in place.
//!
//! Needed for parsed text. Formats that can be read line by line are transposed while they are read (`dense`), in a tenth of the
//! time and without a second matrix either.

use rayon::prelude::*;

/// Columns that are moved together: 16 `f64` fill two cache lines.
const TOGETHER: usize = 16;

/// Transposes `values`, an `m` × `n` matrix in row-major order, in place.
///
/// This is the C2R decomposition of Catanzaro, Keller and Garland (A decomposition for in-place matrix
/// transposition, `PPoPP` 2014): rotate the columns, permute each row, permute each column. With c = gcd(m, n),
/// a = m / c and b = n / c,
///
/// ```text
/// rotate   A[i, j] ← A[(i + ⌊j / b⌋) mod m, j]
/// rows     A[i, ((i + ⌊j / b⌋) mod m + j m) mod n] ← A[i, j]
/// columns  A[i, j] ← A[(j + i n − ⌊i / a⌋) mod m, j]
/// ```
pub(crate) fn transpose<T: Copy + Send + Sync>(values: &mut [T], m: usize, n: usize) {
    assert_eq!(values.len(), m * n);
    if m <= 1 || n <= 1 {
        return;
    }
    let c = gcd(m, n);
    let (a, b) = (m / c, n / c);
    if c > 1 {
        gather_columns(values, m, n, |i, j| (i + j / b) % m);
    }
    values.par_chunks_mut(n).enumerate().for_each_init(Vec::new, |before, (i, row)| {
        before.clear();
        before.extend_from_slice(row);
        for (j, value) in before.iter().enumerate() {
            row[((i + j / b) % m + j * m) % n] = *value;
        }
    });
    gather_columns(values, m, n, |i, j| (j + i * n - i / a) % m);
}

/// A[i, j] ← A[from(i, j), j], [`TOGETHER`] columns at a time.
fn gather_columns<T: Copy>(values: &mut [T], m: usize, n: usize, from: impl Fn(usize, usize) -> usize) {
    let mut after = Vec::with_capacity(m * TOGETHER);
    for start in (0..n).step_by(TOGETHER) {
        let columns = start..(start + TOGETHER).min(n);
        after.clear();
        for i in 0..m {
            after.extend(columns.clone().map(|j| values[from(i, j) * n + j]));
        }
        for (i, row) in after.chunks_exact(columns.len()).enumerate() {
            values[i * n + start..i * n + columns.end].copy_from_slice(row);
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_transposed_matrix_holds_every_value_at_its_place(m in 1_usize..70, n in 1_usize..70) {
            let mut values: Vec<usize> = (0..m * n).collect();
            super::transpose(&mut values, m, n);
            let expected: Vec<usize> = (0..n).flat_map(|j| (0..m).map(move |i| i * n + j)).collect();
            prop_assert_eq!(values, expected);
        }
    }
}
