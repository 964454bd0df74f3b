//! Preparation of single values.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Layout;
use crate::kernel::Scalar;
use crate::source::{Buffer, HoleRows};
use crate::text::quoted;

/// The preparation of the values of a view before scaling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Whether each value x becomes `ln(1 + x)`, as for [`Scale::Log`](crate::Scale::Log). No value may be negative then.
    pub log: bool,
    /// The value that fills a missing cell of each feature in rows that are compared: the mean of the feature in the
    /// fit. Empty: zero. It has no effect on V, which depends on observed cells only.
    pub fill: Vec<f64>,
}

/// A negative value, which has no logarithm: its row in the buffer, its feature, the value.
pub(super) struct Negative {
    pub row: usize,
    pub feature: usize,
    pub value: f64,
}

/// Rows that one thread prepares at a time.
const ROWS: usize = 1024;

impl Preparation {
    /// Sets the values that fill missing cells, one for each feature.
    #[must_use]
    pub fn new(fill: Vec<f64>) -> Self {
        Self { log: false, fill }
    }

    /// Prepares the rows of a buffer; `fill` has a finite value for each feature.
    pub(super) fn apply(&self, layout: Layout, buffer: &mut Buffer) -> Result<(), Negative> {
        let Buffer { f32, f64, offsets, columns, holes, .. } = buffer;
        holes.clear();
        let bad = match layout {
            Layout::DenseF32 => return self.dense(f32, holes),
            Layout::DenseF64 => return self.dense(f64, holes),
            Layout::SparseF32 => self.sparse(f32),
            Layout::SparseF64 => self.sparse(f64),
        };
        bad.map_err(|(at, value)| {
            let row = offsets.partition_point(|&offset| offset <= at) - 1;
            Negative { row, feature: columns[at] as usize, value }
        })
    }

    fn dense<T: Scalar>(&self, values: &mut [T], holes: &mut HoleRows) -> Result<(), Negative> {
        let Self { log, fill } = self;
        let d = fill.len();
        let prepare = |(part, values): (usize, &mut [T])| {
            let mut holes = HoleRows::default();
            for (i, row) in values.chunks_exact_mut(d).enumerate() {
                if let Some((feature, value)) = log.then(|| take_logarithms(row)).and_then(Result::err) {
                    return Err(Negative { row: part * ROWS + i, feature, value });
                }
                holes.fill(row, fill);
            }
            Ok(holes)
        };
        let parts: Vec<Result<HoleRows, Negative>> =
            values.par_chunks_mut(ROWS * d).enumerate().map(prepare).collect();
        parts.into_iter().try_for_each(|part| {
            holes.append(&mut part?);
            Ok(())
        })
    }

    fn sparse<T: Scalar>(&self, values: &mut [T]) -> Result<(), (usize, f64)> {
        const VALUES: usize = 1 << 16;
        if !self.log {
            return Ok(());
        }
        let parts = values.par_chunks_mut(VALUES).enumerate();
        let parts = parts
            .map(|(part, values)| take_logarithms(values).map_err(|(at, value)| (part * VALUES + at, value)));
        // The first in order, for any number of threads.
        parts.collect::<Vec<_>>().into_iter().collect()
    }
}

/// `ln(1 + x)`, in the precision of x.
pub fn logarithm<T: Scalar>(value: T) -> T {
    T::from_f64(value.to_f64().ln_1p())
}

/// The reason why the logarithm of a value cannot be taken.
pub fn negative(value: f64, feature: &str) -> String {
    let feature = quoted(feature);
    format!("feature {feature} contains {value}: cannot take logarithms of negative values")
}

/// Takes the logarithms of values, some of which may be NaN. Returns the position and value of the first negative one.
fn take_logarithms<T: Scalar>(values: &mut [T]) -> Result<(), (usize, f64)> {
    for (at, value) in values.iter_mut().enumerate() {
        if value.to_f64() < 0.0 {
            return Err((at, value.to_f64()));
        }
        *value = logarithm(*value);
    }
    Ok(())
}
