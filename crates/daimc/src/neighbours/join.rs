//! The squared distances of some rows from each other.

use pulp::{Arch, Simd, WithSimd};

/// Rows are as long as a whole multiple of this; what is missing is zero.
pub(super) const PADDED: usize = 16;

/// Others that a row is compared with at once.
const WIDE: usize = 4;

/// The squared distances of the first `fresh` rows from all rows that come after them: of a and b > a at `a · rows + b`.
///
/// A pair has the same bits wherever its rows stand, and whichever of the two comes first.
pub(super) fn distances(rows: &[f32], width: usize, fresh: usize, squares: &mut Vec<f32>) {
    let count = rows.len() / width;
    squares.resize(fresh * count, 0.0);
    Arch::new().dispatch(Join { rows, width, count, squares });
}

struct Join<'a> {
    rows: &'a [f32],
    width: usize,
    count: usize,
    squares: &'a mut [f32],
}

impl WithSimd for Join<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, width, count, squares } = self;
        for (a, squares) in squares.chunks_exact_mut(count).enumerate() {
            let own = &rows[a * width..][..width];
            let mut b = a + 1;
            while b + WIDE <= count {
                some::<S, WIDE>(simd, own, &rows[b * width..], &mut squares[b..]);
                b += WIDE;
            }
            while b < count {
                some::<S, 1>(simd, own, &rows[b * width..], &mut squares[b..]);
                b += 1;
            }
        }
    }
}

#[inline(always)]
fn some<S: Simd, const W: usize>(simd: S, own: &[f32], others: &[f32], squares: &mut [f32]) {
    let width = own.len();
    let own = S::as_simd_f32s(own).0;
    let others: [_; W] =
        std::array::from_fn(|w| &S::as_simd_f32s(&others[w * width..][..width]).0[..own.len()]);
    let mut sums = [simd.splat_f32s(0.0); W];
    for (at, &x) in own.iter().enumerate() {
        for (sum, other) in sums.iter_mut().zip(&others) {
            let difference = simd.sub_f32s(x, other[at]);
            *sum = simd.mul_add_f32s(difference, difference, *sum);
        }
    }
    for (square, sum) in squares.iter_mut().zip(sums) {
        *square = simd.reduce_sum_f32s(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn distances_are_those_of_the_definition_and_do_not_depend_on_places() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for (count, width) in [(2, 16), (9, 32), (21, 128)] {
            let rows: Vec<f32> = (0..count * width).map(|_| rng.random_range(-1.0..1.0)).collect();
            let of = |rows: &[f32], fresh| {
                let mut squares = Vec::new();
                distances(rows, width, fresh, &mut squares);
                squares
            };
            let found = of(&rows, count);
            let turned: Vec<f32> = rows.chunks(width).rev().flatten().copied().collect();
            let turned = of(&turned, count);
            for a in 0..count {
                for b in a + 1..count {
                    let pair = rows[a * width..][..width].iter().zip(&rows[b * width..][..width]);
                    let exact: f64 = pair.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
                    let own = found[a * count + b];
                    assert!((f64::from(own) / exact - 1.0).abs() < 1e-5);
                    assert_eq!(own.to_bits(), turned[(count - 1 - b) * count + count - 1 - a].to_bits());
                }
            }
            assert_eq!(of(&rows, 1)[..], found[..count]);
        }
    }
}
