//! Heavy-tailed values, such as counts, intensities and concentrations, for which logarithms are more informative.

use std::fmt;

use rayon::prelude::*;

use super::columns::Columns;
use super::sparse_counts;
use crate::Result;
use crate::kernel::Scalar;
use crate::scan::Scan;
use crate::source::{Buffer, Rows};

/// The skewness of the features of a view: the median over the features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tails {
    values: f64,
    logarithms: f64,
}

/// A median skewness above this is heavy-tailed; an exponential distribution has 2.
const HEAVY: f64 = 1.5;

/// The number of sampled rows, evenly spaced.
const LOOKED_AT: usize = 1000;

impl Tails {
    /// The tails of a dense view, if they are heavy and logarithms reduce the skewness. The sampled rows depend on
    /// their number only, so that the result does not change with the seed.
    pub fn heavy(scan: &Scan<'_>, view: usize, columns: &Columns) -> Result<Option<Self>> {
        let schema = scan.schema().view(view);
        let suitable = schema.layout().is_dense()
            && schema.features() > 1
            && sparse_counts(columns).is_none()
            && columns.min.iter().all(|min| *min >= 0.0)
            && columns.max.iter().all(|max| max.is_finite());
        if !suitable {
            return Ok(None);
        }
        let present: Vec<u32> =
            (0..).zip(0..scan.instances()).filter(|&(_, i)| schema.shows(i)).map(|(i, _)| i).collect();
        let count = present.len().min(LOOKED_AT);
        let rows: Vec<u32> = (0..count).map(|i| present[i * present.len() / count]).collect();
        let mut buffer = Buffer::default();
        let block = scan.pick(view, &rows, &mut buffer)?;
        let at: Vec<usize> = (0..rows.len()).filter_map(|i| block.index.row(i)).collect();
        let d = schema.features();
        let tails = match block.rows {
            Rows::DenseF32(x) => Self::of(d, |f| at.iter().map(move |row| x[row * d + f].to_f64())),
            Rows::DenseF64(x) => Self::of(d, |f| at.iter().map(move |row| x[row * d + f].to_f64())),
            Rows::SparseF32(_) | Rows::SparseF64(_) => return Ok(None),
        };
        Ok(Some(tails).filter(|own| own.values > HEAVY && own.logarithms.abs() < own.values))
    }

    /// The tails of features, each given by its values.
    fn of<I: Iterator<Item = f64>>(features: usize, values: impl Fn(usize) -> I + Sync) -> Self {
        let both = |f: usize| {
            let mut own: Vec<f64> = values(f).filter(|value| !value.is_nan()).collect();
            let plain = skewness(&own);
            own.iter_mut().for_each(|x| *x = x.ln_1p());
            (plain, skewness(&own))
        };
        let (plain, logarithms): (Vec<_>, Vec<_>) = (0..features).into_par_iter().map(both).unzip();
        let median = |all: Vec<Option<f64>>| {
            let mut all: Vec<f64> = all.into_iter().flatten().collect();
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(0.0)
        };
        Self { values: median(plain), logarithms: median(logarithms) }
    }
}

impl fmt::Display for Tails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, logarithms } = self;
        write!(f, "heavy-tailed: median skewness {values:.1}, of logarithms {logarithms:.1}")
    }
}

/// The third standardised moment of the values; `None` if they are all equal.
fn skewness(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    // In a unit in which no power overflows.
    let unit = values.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let mean = values.iter().map(|x| x / unit).sum::<f64>() / count;
    let moment = |power| values.iter().map(|x| (x / unit - mean).powi(power)).sum::<f64>() / count;
    let (variance, third) = (moment(2), moment(3));
    (variance > 1e-24).then(|| third / variance.powf(1.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(i: usize) -> f64 {
        -(1.0 - (i as f64 + 0.5) / 1000.0).ln()
    }

    #[test]
    fn skewness_is_that_of_the_distribution() {
        let of = |value: &dyn Fn(usize) -> f64| skewness(&(0..1000).map(value).collect::<Vec<_>>());
        assert!((of(&exponential).unwrap() - 2.0).abs() < 0.1);
        assert!(of(&|i| i as f64).unwrap().abs() < 1e-10);
        // Mirrored, in another unit.
        let mirrored = of(&|i| -1e300 * exponential(i)).unwrap();
        assert!((mirrored + of(&exponential).unwrap()).abs() < 1e-9);
        // Missing values are ignored.
        let tails = |lacks: bool| {
            Tails::of(1, |_| {
                (0..2000)
                    .filter(move |i| lacks || i % 2 > 0)
                    .map(|i| if i % 2 == 0 { f64::NAN } else { exponential(i / 2) })
            })
        };
        assert_eq!(tails(true), tails(false));
        // Three values by hand: about their mean 1 they are −1, −1, 2.
        assert!((skewness(&[0.0, 0.0, 3.0]).unwrap() - 2.0 / 2.0_f64.powf(1.5)).abs() < 1e-12);
        assert_eq!((of(&|_| 3.0), of(&|_| 0.0), skewness(&[])), (None, None, None));
    }
}
