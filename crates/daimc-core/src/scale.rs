//! Fits the scaling of a view to its features.

mod columns;
mod tails;

use crate::prepared::{MissingCells, Preparation, Prepared, negative};
use crate::scan::{Scan, Shared, off_the_pool};
use crate::table::Table;
use crate::{Error, Result, Scale, Scaling, Source, Stop};
use columns::Columns;
pub use columns::SumColumns;
use tails::Tails;

/// The candidate scalings of a view, with the statistics of its features.
pub struct Observed {
    /// The candidates.
    pub scalings: Candidates,
    /// The preparation of the rows before scaling.
    pub preparation: Preparation,
    /// The missing cells.
    pub missing: MissingCells,
    /// Instances in which all cells are missing.
    pub empty: Vec<u32>,
}

impl<'a> Prepared<'a> {
    /// Prepares the views of a source as their observations require.
    pub fn observed(source: Shared<'a>, observed: &[Observed]) -> Result<Self> {
        Self::with(source, observed.iter().map(|own| (&own.preparation, own.missing.cells(), &own.empty[..])))
    }
}

/// What the scalings of a family have in common. A comparison takes one family for all views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Features as they are.
    Plain,
    /// Features with equal ranges.
    Range,
    /// Features with equal standard deviations.
    Deviation,
    /// Any other.
    Other,
}

impl Family {
    fn of(scale: Scale) -> Self {
        match scale {
            Scale::Unit | Scale::LogUnit => Self::Plain,
            Scale::MinMaxUnit | Scale::Log => Self::Range,
            Scale::ZScoreUnit => Self::Deviation,
            _ => Self::Other,
        }
    }
}

/// The candidate scalings of a view, each of another family.
pub struct Candidates {
    /// The likeliest first.
    scalings: Vec<Scaling>,
}

impl Candidates {
    /// The scaling to use without a comparison.
    pub fn likely(&self) -> &Scaling {
        &self.scalings[0]
    }

    /// The candidate of a family, or the likeliest.
    fn of(&self, family: Family) -> &Scaling {
        self.scalings.iter().find(|own| Family::of(own.scale) == family).unwrap_or(self.likely())
    }

    /// The candidates for a view with counts are not those of other views.
    fn counts(&self) -> bool {
        Family::of(self.likely().scale) == Family::Other
    }
}

/// The scalings of all views that a fit compares, the likeliest first: views of one family as far as they have candidates of it. If
/// one view has features in different units, all views are scaled by feature unless the comparison says otherwise.
pub fn assignments(observed: &[Observed]) -> Vec<Vec<Scaling>> {
    let views = || observed.iter().map(|view| &view.scalings);
    let unlike = views().any(|own| own.scalings.len() > 1 && Family::of(own.likely().scale) == Family::Range);
    let likely = |own: &Candidates| {
        if unlike && !own.counts() { own.of(Family::Range).clone() } else { own.likely().clone() }
    };
    let mut all: Vec<Vec<Scaling>> = vec![views().map(likely).collect()];
    for family in [Family::Plain, Family::Range, Family::Deviation] {
        let next: Vec<Scaling> = views().map(|own| own.of(family).clone()).collect();
        let same = |other: &Vec<Scaling>| other.iter().zip(&next).all(|(a, b)| a.scale == b.scale);
        if !all.iter().any(same) {
            all.push(next);
        }
    }
    all
}

/// For every view with a choice, the scaling of features as they are if another was taken, and that of features in one range
/// otherwise; other views as they are. `None` if no view has a choice.
pub fn rejected(observed: &[Observed], taken: &[Scaling]) -> Option<Vec<Scaling>> {
    let choice = |own: &Candidates| own.scalings.len() > 1 && !own.counts();
    observed.iter().any(|view| choice(&view.scalings)).then(|| {
        let other = |(view, taken): (&Observed, &Scaling)| match Family::of(taken.scale) {
            _ if !choice(&view.scalings) => taken.clone(),
            Family::Plain => view.scalings.of(Family::Range).clone(),
            _ => view.scalings.of(Family::Plain).clone(),
        };
        observed.iter().zip(taken).map(other).collect()
    })
}

/// Up to this ratio of the largest to the median standard deviation, features are assumed to have the same unit.
const ALIKE: f64 = 2.0;

/// The choice of [`Scale::Auto`] for a view.
enum Choice {
    One(Scale, String),
    /// No rule based on the values only can decide whether features with a larger variance are more informative.
    Compared {
        /// The largest standard deviation of a feature, in units of the median.
        spread: f64,
    },
    /// Sparse counts, of which this share is not zero.
    Counts {
        density: f64,
    },
}

/// The reason for a scaling that the user has named.
const REQUESTED: &str = "requested";

/// Counts are sparse if at most this share of the entries is not zero.
const SPARSE: f64 = 0.2;

impl Scaling {
    /// The scaling that a fit with this [`Scale`] gives a view, and the preparation of its rows, for a
    /// [`Shard`](crate::Shard) or another method of clustering. Its weight and length are 1: a fit sets those of all its
    /// views in another pass. For [`Scale::Auto`] it is the likeliest of the candidates that a fit compares.
    ///
    /// ```
    /// use daimc_core::{Scale, Scaling, View, Views};
    ///
    /// let views = Views::new(vec![View::dense("a", 2, vec![0.0, 3.0, 2.0, 5.0, 4.0, 4.0])?])?;
    /// let (scaling, _) = Scaling::of_view(&views, 0, Scale::MinMax)?;
    /// assert_eq!((scaling.shift, scaling.factor), (vec![0.0, 3.0], vec![0.25, 0.5]));
    /// # Ok::<(), daimc_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the rows cannot be read or the scaling cannot be applied.
    ///
    /// # Panics
    /// When there is no such view.
    pub fn of_view(source: &dyn Source, view: usize, scale: Scale) -> Result<(Self, Preparation)> {
        off_the_pool(source, || {
            let observed = Self::observe(&Scan::new(source, &Stop::default()), view, scale, None)?;
            Ok((observed.scalings.likely().clone(), observed.preparation))
        })
    }

    /// Fits `scale` to complete rows, such as those of V; for [`Scale::Auto`] the likeliest candidate. The weight is still 1.
    pub fn fit(table: &impl Table, view: usize, scale: Scale) -> Result<Self> {
        if matches!(scale, Scale::None | Scale::Unit) {
            return Ok(Self::plain(scale, REQUESTED.into()));
        }
        let columns = Columns::gather(table, view, false)?;
        let fitted = Self::candidates(table.rows(), view, scale, &columns, None)?;
        Ok(Self { squares: Vec::new(), ..fitted.likely().clone() })
    }

    /// Fits `scale` to the observed cells of a view.
    ///
    /// With more than `top` features, only those with the largest variance are kept.
    pub fn observe(table: &impl Table, view: usize, scale: Scale, top: Option<usize>) -> Result<Observed> {
        let known = table.schema().view(view);
        // Features are measured if cells may be missing now, or if rows with missing cells may come later.
        let skip = top.is_none_or(|top| top >= known.features())
            && known.missing_cells() == Some(0)
            && (scale == Scale::None || scale == Scale::Unit && !known.layout().is_dense());
        if skip {
            let scalings = Candidates { scalings: vec![Self::plain(scale, REQUESTED.into())] };
            let missing = MissingCells::new(known.present(), 0, &[]);
            return Ok(Observed {
                scalings,
                preparation: Preparation::default(),
                missing,
                empty: Vec::new(),
            });
        }
        let mut columns = Columns::gather(table, view, false)?;
        let tails = match scale {
            Scale::Auto => Tails::heavy(table.rows(), view, &columns)?,
            _ => None,
        };
        let log = tails.is_some() || scale.is_log();
        if log {
            if let Some(feature) = columns.min.iter().position(|min| *min < 0.0) {
                let reason = negative(columns.min[feature], &known.feature_name(feature));
                let reason = format!("{reason}; use another scale");
                return Err(Error::Scaling { view: known.name().into(), scale: scale.to_string(), reason });
            }
            columns = Columns::gather(table, view, true)?;
        }
        if let Some(top) = top {
            columns.keep(top);
        }
        let scalings = Self::candidates(table.rows(), view, scale, &columns, tails)?;
        let rows = known.present() - columns.empty.len();
        let missing = MissingCells::new(rows, columns.partial, &columns.observed);
        // As if the features had not been read.
        let means = if scale == Scale::None && missing.instances == 0 { Vec::new() } else { columns.mean };
        let preparation = Preparation { log, ..Preparation::new(means) };
        Ok(Observed { scalings, preparation, missing, empty: columns.empty })
    }

    /// The scaling, or the candidates if [`Scale::Auto`] has no rule. If tails are heavy, the features are those of the logarithms.
    fn candidates(
        scan: &Scan<'_>,
        view: usize,
        scale: Scale,
        columns: &Columns,
        tails: Option<Tails>,
    ) -> Result<Candidates> {
        let schema = scan.schema().view(view);
        let dense = schema.layout().is_dense();
        let chosen = match scale {
            Scale::Auto => choose(columns, dense, tails.is_some()),
            requested => Choice::One(requested, REQUESTED.to_string()),
        };
        let (scales, reason) = match chosen {
            Choice::One(scale, reason) => (vec![scale], reason),
            Choice::Counts { density } => {
                let reason = format!("sparse counts: {:.1} % of the entries are not zero", 100.0 * density);
                (vec![Scale::TfIdf, Scale::Unit, Scale::MinMaxUnit], reason)
            }
            Choice::Compared { spread } => {
                let reason =
                    format!("largest standard deviation of a feature is {spread:.1} times the median");
                let (mut scales, reason) = match tails {
                    Some(tails) => {
                        (vec![Scale::LogUnit, Scale::Log], format!("{tails}; after logarithms, the {reason}"))
                    }
                    None if dense => (vec![Scale::Unit, Scale::MinMaxUnit, Scale::ZScoreUnit], reason),
                    None => (vec![Scale::Unit, Scale::MinMaxUnit], reason),
                };
                if spread > ALIKE {
                    scales.swap(0, 1);
                }
                (scales, reason)
            }
        };
        let of = |scale| Self::of_columns(scale, reason.clone(), columns, schema.name(), dense);
        Ok(Candidates { scalings: scales.into_iter().map(of).collect::<Result<_>>()? })
    }

    /// The scaling of a view with these statistics.
    fn of_columns(scale: Scale, reason: String, columns: &Columns, view: &str, dense: bool) -> Result<Self> {
        let mut scaling = Self::plain(scale, reason);
        match scale {
            Scale::MinMax | Scale::MinMaxUnit | Scale::Log => {
                scaling.shift.clone_from(&columns.min);
                let range = columns.min.iter().zip(&columns.max).map(|(min, max)| max - min);
                scaling.factor = range.map(reciprocal).collect();
            }
            Scale::ZScore | Scale::ZScoreUnit => {
                scaling.shift.clone_from(&columns.mean);
                scaling.factor = columns.deviation.iter().map(|&deviation| reciprocal(deviation)).collect();
            }
            Scale::TfIdf => {
                let idf = |(with, n): (&f64, &f64)| ((1.0 + n) / (1.0 + with)).ln() + 1.0;
                scaling.factor = columns.nonzero.iter().zip(&columns.observed).map(idf).collect();
            }
            Scale::Auto | Scale::None | Scale::Unit | Scale::LogUnit => {}
        }
        let range = |f: &usize| columns.max[*f] - columns.min[*f];
        if let Some(f) = (0..scaling.shift.len()).find(|f| !range(f).is_finite()) {
            let reason = format!(
                "the values of feature {f} (from 0) differ by more than the largest number; divide the view by a constant first"
            );
            return Err(Error::Scaling { view: view.into(), scale: scale.to_string(), reason });
        }
        if scaling.shift.iter().all(|&shift| shift == 0.0) {
            scaling.shift.clear();
        }
        let out: Vec<usize> = (0..columns.observed.len()).filter(|&f| columns.leaves_out(f)).collect();
        if !out.is_empty() {
            scaling.factor.resize(columns.observed.len(), 1.0);
            out.iter().for_each(|&f| scaling.factor[f] = 0.0);
        }
        if scaling.unit_rows() && dense {
            scaling.squares = scaling.mean_squares(columns);
        }
        Ok(scaling)
    }

    /// The mean square of each scaled feature, in a unit that keeps squares in range: only their ratios matter.
    fn mean_squares(&self, columns: &Columns) -> Vec<f64> {
        let lengths =
            columns.mean.iter().zip(&columns.deviation).enumerate().map(|(f, (mean, deviation))| {
                let shift = self.shift.get(f).copied().unwrap_or(0.0);
                let factor = self.factor.get(f).copied().unwrap_or(1.0);
                if factor == 0.0 { 0.0 } else { (mean - shift).hypot(*deviation) * factor }
            });
        let lengths: Vec<f64> = lengths.collect();
        let largest = lengths.iter().copied().fold(0.0, f64::max);
        let usable = largest > 0.0 && largest.is_finite();
        if usable { lengths.iter().map(|length| (length / largest).powi(2)).collect() } else { Vec::new() }
    }
}

/// A smaller spread counts as zero: values divided by it could overflow.
const SMALLEST_SPREAD: f64 = 1e-290;

/// `1 / value`, or zero for a constant feature: it has no information, and must not amplify new data.
fn reciprocal(value: f64) -> f64 {
    if value > SMALLEST_SPREAD { 1.0 / value } else { 0.0 }
}

/// The share of nonzero entries, if the view has sparse counts, such as those of words.
fn sparse_counts(columns: &Columns) -> Option<f64> {
    let entries = columns.observed.iter().sum::<f64>();
    let density = columns.nonzero.iter().sum::<f64>() / entries;
    (columns.counts && density <= SPARSE).then_some(density)
}

fn choose(columns: &Columns, dense: bool, log: bool) -> Choice {
    if let Some(density) = sparse_counts(columns).filter(|_| !log) {
        return Choice::Counts { density };
    }
    if columns.deviation.len() == 1 {
        return Choice::One(Scale::ZScore, "one feature: all rows of length 1 would be equal".into());
    }
    let mut deviations: Vec<f64> = columns.deviation.iter().copied().filter(|&d| d > 0.0).collect();
    deviations.sort_unstable_by(f64::total_cmp);
    let (Some(&largest), Some(&median)) = (deviations.last(), deviations.get(deviations.len() / 2)) else {
        return Choice::One(Scale::Unit, "no feature varies".into());
    };
    let finite = columns.min.iter().zip(&columns.max).all(|(min, max)| (max - min).is_finite());
    if !finite || !dense && columns.min.iter().any(|min| *min < 0.0) {
        return Choice::One(Scale::Unit, "its features cannot be brought to one range".into());
    }
    Choice::Compared { spread: largest / median }
}
