//! A pair of views: the instances in both, in one, and in neither.

use daimc::{Error, Matrix, Result, Source};

use crate::methods::data::{Rows, Scaled};

/// Every pair of views. A method for two views is run on each of them, and the best result is reported.
///
/// ```
/// use daimc::{View, Views};
/// use daimc_experiments::methods::pairs;
///
/// let view = |name: &str| View::dense(name, 1, vec![1.0, 2.0]);
/// let views = Views::new(vec![view("a")?, view("b")?, view("c")?])?;
/// assert_eq!(pairs(&views).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
/// # Ok::<(), daimc::Error>(())
/// ```
pub fn pairs(source: &dyn Source) -> impl Iterator<Item = (usize, usize)> + use<> {
    let count = source.views();
    (0..count).flat_map(move |first| (first + 1..count).map(move |second| (first, second)))
}

/// The instances of a pair of views. Methods stack them in this order: both, only the first, only the second.
pub(super) struct Pair {
    pub both: Vec<usize>,
    pub first: Vec<usize>,
    pub second: Vec<usize>,
    /// All instances, also those in neither view.
    all: usize,
}

/// The rows of a view of a pair: those whose instances are in both views, and those that are in this one only.
pub(super) struct Side {
    pub both: Rows,
    pub only: Rows,
}

impl Pair {
    pub fn new(source: &dyn Source, (a, b): (usize, usize)) -> Result<Self> {
        let refuse =
            |reason: String| Err(Error::Option { option: "views", value: format!("({a}, {b})"), reason });
        if a == b || a.max(b) >= source.views() {
            return refuse(format!(
                "must be two different numbers below {}, the number of views",
                source.views()
            ));
        }
        let all = source.instances();
        let which = |in_a: bool, in_b: bool| {
            let there = |&i: &usize| source.is_present(a, i) == in_a && source.is_present(b, i) == in_b;
            (0..all).filter(there).collect::<Vec<_>>()
        };
        let (both, first, second) = (which(true, true), which(true, false), which(false, true));
        if both.is_empty() {
            let reason = "no instance is in both views, so nothing connects them; take another pair".into();
            return Err(Error::Unsuitable { what: "views", value: format!("({a}, {b})"), reason });
        }
        Ok(Self { both, first, second, all })
    }

    /// The number of instances in at least one of the views.
    pub fn len(&self) -> usize {
        self.both.len() + self.first.len() + self.second.len()
    }

    fn stacked(&self) -> impl Iterator<Item = usize> {
        self.both.iter().chain(&self.first).chain(&self.second).copied()
    }

    /// The rows of the view with the instances `both` and `only`; fails on negative values if the method does not allow them.
    pub fn side(&self, view: &Scaled<'_>, only: &[usize], non_negative_for: Option<&str>) -> Result<Side> {
        let side = Side { both: view.rows(&self.both)?, only: view.rows(only)? };
        if let Some(method) = non_negative_for {
            view.refuse_negative(method, &self.both, &side.both)?;
            view.refuse_negative(method, only, &side.only)?;
        }
        Ok(side)
    }

    /// Unstacks rows and labels. Instances in neither view get a row of zeros and the largest cluster, the most probable one.
    pub fn unstack(&self, stacked: &Matrix, stacked_labels: &[usize]) -> (Matrix, Vec<usize>) {
        let mut sizes = vec![0_usize; stacked_labels.iter().max().map_or(1, |most| most + 1)];
        stacked_labels.iter().for_each(|&label| sizes[label] += 1);
        let largest = (0..sizes.len()).rev().max_by_key(|&k| sizes[k]).unwrap_or(0);
        let mut rows = Matrix::zeros(self.all, stacked.columns());
        let mut labels = vec![largest; self.all];
        for (from, to) in self.stacked().enumerate() {
            rows.row_mut(to).copy_from_slice(stacked.row(from));
            labels[to] = stacked_labels[from];
        }
        (rows, labels)
    }
}

/// Stacks matrices with the same number of columns.
pub(super) fn stack(parts: [&Matrix; 3]) -> Matrix {
    let values: Vec<f64> = parts.iter().flat_map(|part| part.values()).copied().collect();
    let rows = parts.iter().map(|part| part.rows()).sum();
    Matrix::new(rows, parts[0].columns(), values).expect("the parts are as wide as the first")
}
