//! The points that descent compares, in single precision.

use std::hint::black_box;

use pulp::{Arch, Simd, WithSimd};

use super::join::PADDED;
use daimc_core::kernel::Scalar;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::Scaling;
use daimc_core::source::{self, Block, Index};

/// Points, padded to a multiple of [`PADDED`] numbers.
pub(super) enum Rows<'a> {
    /// Copies.
    Held(Held),
    /// Rows in place, scaled at each access: this takes a fraction of the time of the comparisons, and no memory.
    Seen(Seen<'a>),
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Held(held) => held.values.len() / held.width,
            Self::Seen(seen) => seen.instances.len(),
        }
    }

    /// Numbers of a point.
    pub fn width(&self) -> usize {
        match self {
            Self::Held(held) => held.width,
            Self::Seen(seen) => seen.width,
        }
    }

    /// Copies some points into consecutive memory.
    pub fn gather(&self, points: impl IntoIterator<Item = u32>, near: &mut Vec<f32>) {
        near.clear();
        match self {
            Self::Held(held) => points.into_iter().for_each(|i| near.extend_from_slice(held.row(i as usize))),
            Self::Seen(seen) => {
                let points: Vec<u32> = points.into_iter().collect();
                near.resize(points.len() * seen.width, 0.0);
                match seen.values {
                    Dense::Single(x) => Arch::new().dispatch(Gather { seen, x, points: &points, near }),
                    Dense::Double(x) => Arch::new().dispatch(Gather { seen, x, points: &points, near }),
                }
            }
        }
    }
}

/// Copies of points.
pub(super) struct Held {
    width: usize,
    values: Vec<f32>,
}

impl Held {
    /// Reserves memory for this many points of this many numbers.
    pub fn new(points: usize, numbers: usize) -> Self {
        let width = numbers.next_multiple_of(PADDED);
        Self { width, values: Vec::with_capacity(points * width) }
    }

    /// Adds a point.
    pub fn push(&mut self, row: &[f32]) {
        let end = self.values.len() + self.width;
        self.values.extend_from_slice(row);
        self.values.resize(end, 0.0);
    }

    fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.width..][..self.width]
    }
}

#[derive(Clone, Copy)]
enum Dense<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
}

/// Dense rows in memory: `root (x' − μ)` of the scaled row `x' = (f x − f m) ∘ c`.
pub(super) struct Seen<'a> {
    scaled_view: &'a ScaledView,
    values: Dense<'a>,
    index: Index<'a>,
    instances: &'a [u32],
    width: usize,
    root: f64,
    /// Whether scaling is only a factor for each row.
    plain: bool,
    shift: Vec<f64>,
    factor: Vec<f64>,
    centre: Vec<f64>,
}

impl<'a> Seen<'a> {
    /// The rows of these instances, which are those of the block; `None` if they are not dense.
    pub fn new(
        scaled_view: &'a ScaledView,
        block: Block<'a>,
        instances: &'a [u32],
        root: f64,
    ) -> Option<Self> {
        let values = match block.rows {
            source::Rows::DenseF32(x) => Dense::Single(x),
            source::Rows::DenseF64(x) => Dense::Double(x),
            source::Rows::SparseF32(_) | source::Rows::SparseF64(_) => return None,
        };
        let Scaling { shift, factor, .. } = &scaled_view.scaling;
        let or = |own: &[f64], else_all: f64| {
            if own.is_empty() { vec![else_all; scaled_view.features()] } else { own.to_vec() }
        };
        Some(Self {
            values,
            index: block.index,
            instances,
            width: scaled_view.features().next_multiple_of(PADDED),
            root,
            plain: shift.is_empty() && factor.is_empty() && scaled_view.centre().is_empty(),
            shift: or(shift, 0.0),
            factor: or(factor, 1.0),
            centre: or(scaled_view.centre(), 0.0),
            scaled_view,
        })
    }
}

struct Gather<'a, T> {
    seen: &'a Seen<'a>,
    x: &'a [T],
    points: &'a [u32],
    near: &'a mut [f32],
}

impl<T: Scalar> WithSimd for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Seen { scaled_view, index, instances, width, ref shift, ref factor, ref centre, .. } = *self.seen;
        let d = shift.len();
        // Touching all rows first lets their loads from memory overlap.
        let touch = |point: &u32| index.row(*point as usize).map_or(0.0, |row| self.x[row * d].to_f64());
        black_box(self.points.iter().map(touch).sum::<f64>());
        for (&point, near) in self.points.iter().zip(self.near.chunks_exact_mut(width)) {
            let point = point as usize;
            let Some(row) = index.row(point) else { continue };
            let own = scaled_view.full_factor(instances[point] as usize);
            let x = &self.x[row * d..][..d];
            let scale = RowScale { root: self.seen.root, own, plain: self.seen.plain };
            let of = |f: usize| scale.one(x[f], shift[f], factor[f], centre[f]);
            if d < PADDED {
                near[..d].iter_mut().enumerate().for_each(|(f, near)| *near = of(f));
                continue;
            }
            // The last chunk overlaps the one before it, so that no loop has a remainder.
            for chunk in 0..d.div_ceil(PADDED) {
                let at = (chunk * PADDED).min(d - PADDED);
                let (x, shift) = (&x[at..at + PADDED], &shift[at..at + PADDED]);
                let (factor, centre) = (&factor[at..at + PADDED], &centre[at..at + PADDED]);
                let mut scaled = [0.0; PADDED];
                if scale.plain {
                    (0..PADDED).for_each(|k| scaled[k] = (scale.root * (own * x[k].to_f64())) as f32);
                } else {
                    (0..PADDED).for_each(|k| scaled[k] = scale.one(x[k], shift[k], factor[k], centre[k]));
                }
                near[at..at + PADDED].copy_from_slice(&scaled);
            }
        }
    }
}

/// The scaling of a row.
#[derive(Clone, Copy)]
struct RowScale {
    root: f64,
    own: f64,
    plain: bool,
}

impl RowScale {
    #[inline(always)]
    fn one<T: Scalar>(self, x: T, shift: f64, factor: f64, centre: f64) -> f32 {
        let scaled = (self.own * x.to_f64() - self.own * shift) * factor;
        (self.root * (scaled - centre)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daimc_core::Stop;
    use daimc_core::scaling::{Scale, Scaling};
    use daimc_core::scan::Scan;
    use daimc_core::source::Buffer;
    use daimc_core::synthetic::Synthetic;
    use daimc_core::{View, Views};

    fn check(view: View<'_>, n: usize, scale: Scale) {
        let other = View::dense("y", 1, vec![1.0; n]).unwrap();
        let source = Views::new(vec![view, other]).unwrap();
        let scan = Scan::new(&source, &Stop::default());
        let scaled_view = ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
        let shown = (0..n as u32).filter(|&i| source.is_present(0, i as usize));
        let shown: Vec<u32> = shown.collect();
        let mut buffer = Buffer::default();
        let block = scan.pick(0, &shown, &mut buffer).unwrap();
        let rows = Rows::Seen(Seen::new(&scaled_view, block, &shown, 0.3).unwrap());
        assert_eq!((rows.len(), rows.width()), (shown.len(), 32));
        let (some, mut near) = ([5_u32, 0, 17], Vec::new());
        rows.gather(some, &mut near);
        for (i, own) in some.iter().zip(near.chunks_exact(32)) {
            let at = (shown[*i as usize] as usize, block.index.row(*i as usize).unwrap());
            let centre = |f: usize| scaled_view.centre().get(f).copied().unwrap_or(0.0);
            let literal = scaled_view.values(&block, at).into_iter().enumerate();
            let literal: Vec<f32> = literal.map(|(f, x)| (0.3 * (x - centre(f))) as f32).collect();
            assert_eq!(own[..20], literal[..], "{scale}");
            assert_eq!(own[20..], [0.0; 12]);
        }
    }

    #[test]
    fn rows_scaled_in_place_equal_scaled_copies() {
        let data = Synthetic::new(60, 3).seed(4);
        let present: Vec<bool> = (0..60).map(|i| i % 3 != 1).collect();
        for scale in [Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
            check(data.dense::<f32>("x", 20).unwrap().mask(&present).unwrap(), 60, scale);
            check(data.dense::<f64>("x", 20).unwrap().mask(&present).unwrap(), 60, scale);
            let far: Vec<f32> = (0..60 * 20_u16).map(|i| 1e5 + f32::from(i * 7 % 31)).collect();
            check(View::dense("x", 20, far).unwrap(), 60, scale);
        }
    }
}
