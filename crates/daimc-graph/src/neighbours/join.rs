//! The squared distances of some rows from each other.

use pulp::{Arch, Simd, WithSimd};

/// Rows are padded with zeros to a multiple of this length.
pub(super) const PADDED: usize = 16;

/// The number of other rows that a row is compared with at once.
const WIDE: usize = 4;

/// The number of other rows that a row is compared with before the bounds are checked.
const LANES: usize = 16;

/// Two rows and their squared distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub pair: [u32; 2],
    pub square: f32,
}

/// Compares each of the first `fresh` rows with all rows that come after it. Returns the pairs whose distance does not exceed the
/// bound of either of the two.
///
/// The distance of a pair has the same bits at any position and in either order.
pub(super) fn near(rows: &[f32], width: usize, fresh: usize, bars: &[f32], near: &mut Vec<Near>) {
    near.clear();
    Arch::new().dispatch(Join { rows, width, fresh, bars, near });
}

struct Join<'a> {
    rows: &'a [f32],
    width: usize,
    fresh: usize,
    bars: &'a [f32],
    near: &'a mut Vec<Near>,
}

impl WithSimd for Join<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, width, fresh, bars, near } = self;
        let count = bars.len();
        for a in 0..fresh {
            let own = &rows[a * width..][..width];
            for first in (a + 1..count).step_by(LANES) {
                let lanes = LANES.min(count - first);
                let mut squares = [f32::INFINITY; LANES];
                let mut b = 0;
                while b + WIDE <= lanes {
                    some::<S, WIDE>(simd, own, &rows[(first + b) * width..], &mut squares[b..]);
                    b += WIDE;
                }
                while b < lanes {
                    some::<S, 1>(simd, own, &rows[(first + b) * width..], &mut squares[b..]);
                    b += 1;
                }
                for b in 0..lanes {
                    if squares[b] <= bars[a].max(bars[first + b]) {
                        let pair = [a as u32, (first + b) as u32];
                        near.push(Near { pair, square: squares[b] });
                    }
                }
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
            let of = |rows: &[f32], fresh, bar| {
                let mut found = Vec::new();
                near(rows, width, fresh, &vec![bar; count], &mut found);
                found
            };
            let found = of(&rows, count, f32::INFINITY);
            let turned: Vec<f32> = rows.chunks(width).rev().flatten().copied().collect();
            let turned = of(&turned, count, f32::INFINITY);
            assert_eq!(found.len(), count * (count - 1) / 2);
            for Near { pair: [a, b], square } in &found {
                let (a, b) = (*a as usize, *b as usize);
                let pair = rows[a * width..][..width].iter().zip(&rows[b * width..][..width]);
                let exact: f64 = pair.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
                assert!(a < b && (f64::from(*square) / exact - 1.0).abs() < 1e-5);
                let pair = [count - 1 - b, count - 1 - a].map(|i| i as u32);
                let other = turned.iter().find(|near| near.pair == pair).unwrap();
                assert_eq!(square.to_bits(), other.square.to_bits());
            }
            assert_eq!(of(&rows, 1, f32::INFINITY)[..], found[..count - 1]);
            let bar = found[0].square;
            let nearer: Vec<Near> = found.into_iter().filter(|near| near.square <= bar).collect();
            assert_eq!(of(&rows, count, bar), nearer);
        }
    }
}
