//! What the compared methods do to the data before they begin: scaling, a check of signs, and the mean in place of what
//! is missing.

use crate::kernel::aligned::Aligned;
use crate::kernel::{Scalar, sparse as kernel};
use crate::lens::Lens;
use crate::linalg::{product, transposed_product};
use crate::matrix::dot;
use crate::source::{Buffer, Csr, Rows, Source};
use crate::{Error, Matrix, Result, Scale, Scaling, Views, kmeans};

/// One view with the mean of its present rows in place of each missing row: an N × d matrix
///
/// ```text
/// X = P R + (1 − w) mᵀ
/// ```
///
/// R are the present rows, P puts them where they belong, and the rest has rank one. So the fill is never written and a
/// sparse view stays sparse; products with X cost what products with R do. R is a copy in `f64`: 8 bytes per value of a
/// dense view, 12 per stored value of a sparse one.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    rows: Present,
    features: usize,
    /// The instances of the rows, in increasing order.
    present: Vec<usize>,
    missing: Vec<usize>,
    mean: Vec<f64>,
}

/// The present rows.
#[derive(Clone, Debug)]
enum Present {
    Dense(Matrix),
    Sparse(Sparse),
}

#[derive(Clone, Debug, Default)]
struct Sparse {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// Every row, as the kernels want to be told.
    rows: Vec<usize>,
}

impl Sparse {
    fn csr(&self) -> Csr<'_, f64> {
        Csr { offsets: &self.offsets, columns: &self.columns, values: &self.values }
    }
}

/// Rows longer than this could leave the range of numbers in products.
const LONGEST: f64 = 1e100;

impl Filled {
    /// View `view`, its present rows scaled, its missing rows the mean of the scaled ones. A scaling that shifts makes
    /// a sparse view dense.
    pub fn new(views: &Views<'_>, view: usize, scale: Scale) -> Result<Self> {
        let scaling = Scaling::fit(views, view, scale)?;
        let features = views.features(view);
        let (present, missing): (Vec<usize>, Vec<usize>) =
            (0..views.instances()).partition(|&instance| views.is_present(view, instance));
        let mut buffer = Buffer::default();
        let block = views.block(view, 0..views.instances(), &mut buffer)?;
        let own = present.iter().filter_map(|&instance| block.index.row(instance));
        let rows = match block.rows {
            Rows::DenseF32(x) => dense(x, own, features, &scaling),
            Rows::DenseF64(x) => dense(x, own, features, &scaling),
            Rows::SparseF32(csr) => sparse(&csr, own, features, &scaling),
            Rows::SparseF64(csr) => sparse(&csr, own, features, &scaling),
        };
        let mut filled = Self { rows, features, present, missing, mean: Vec::new() };
        for (row, &instance) in filled.present.iter().enumerate() {
            let mut square = 0.0;
            filled.each(row, |_, x| square += x * x);
            if square.is_nan() || square > LONGEST * LONGEST {
                let id = views.ids().get(instance);
                return Err(Error::TooLarge { view: views.name(view).into(), row: instance, id });
            }
        }
        let mut mean = vec![0.0; features];
        let share = 1.0 / filled.present.len() as f64;
        for row in 0..filled.present.len() {
            filled.each(row, |column, value| mean[column] += share * value);
        }
        filled.mean = mean;
        Ok(filled)
    }

    /// Every view, refused if a value is below zero, and divided by its sum: the entries of each view, fill included,
    /// add up to 1.
    pub fn distributions(views: &Views<'_>, scale: Scale, method: &str) -> Result<Vec<Self>> {
        let prepare = |view| {
            let mut filled = Self::new(views, view, scale)?;
            filled.check_signs(views, view, method)?;
            let total = filled.mean.iter().sum::<f64>() * filled.instances() as f64;
            // A view of zeros stays as it is.
            if total > 0.0 {
                let values = filled.rows.values_mut().iter_mut().chain(&mut filled.mean);
                values.for_each(|value| *value /= total);
            }
            Ok(filled)
        };
        (0..views.len()).map(prepare).collect()
    }

    fn check_signs(&self, views: &Views<'_>, view: usize, method: &str) -> Result<()> {
        let Some(at) = self.values().iter().position(|&value| value < 0.0) else { return Ok(()) };
        let (row, column) = self.cell(at);
        let instance = self.present[row];
        let own = views.iter().nth(view);
        Err(Error::Negative {
            view: views.name(view).into(),
            row: instance,
            id: views.ids().get(instance),
            column,
            feature: own.map_or_else(|| column.to_string(), |own| own.feature_name(column)),
            value: self.values()[at],
            method: method.into(),
        })
    }

    /// The row of `rows` and the column where a stored value stands.
    fn cell(&self, at: usize) -> (usize, usize) {
        match &self.rows {
            Present::Dense(_) => (at / self.features, at % self.features),
            Present::Sparse(sparse) => {
                let row = sparse.offsets.partition_point(|&offset| offset <= at) - 1;
                (row, sparse.columns[at] as usize)
            }
        }
    }

    fn values(&self) -> &[f64] {
        match &self.rows {
            Present::Dense(rows) => rows.values(),
            Present::Sparse(sparse) => &sparse.values,
        }
    }

    /// Calls `visit(column, value)` for the stored values of a row.
    fn each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match &self.rows {
            Present::Dense(rows) => rows.row(row).iter().enumerate().for_each(|(f, &x)| visit(f, x)),
            Present::Sparse(sparse) => {
                let (columns, values) = sparse.csr().row(row);
                columns.iter().zip(values).for_each(|(&f, &x)| visit(f as usize, x));
            }
        }
    }

    pub fn instances(&self) -> usize {
        self.present.len() + self.missing.len()
    }

    pub fn features(&self) -> usize {
        self.features
    }

    /// One for each instance that is there, `otherwise` for the others.
    pub fn weights(&self, otherwise: f64) -> Vec<f64> {
        let mut weights = vec![1.0; self.instances()];
        self.missing.iter().for_each(|&instance| weights[instance] = otherwise);
        weights
    }

    /// The share of instances that are there.
    pub fn share(&self) -> f64 {
        self.present.len() as f64 / self.instances() as f64
    }

    /// `X A`, where A is d × K.
    pub fn times(&self, a: &Matrix) -> Matrix {
        let own = match &self.rows {
            Present::Dense(rows) => product(rows, a),
            Present::Sparse(sparse) => {
                let width = kernel::padded::<f64>(a.columns());
                let mut out = Aligned::zeros(self.present.len() * width);
                kernel::project(sparse.csr(), &sparse.rows, &pad(a.iter_rows(), width), width, &mut out);
                trim(&out, width, a.columns())
            }
        };
        if self.missing.is_empty() {
            return own;
        }
        let mut filled = vec![0.0; a.columns()];
        self.mean.iter().zip(a.iter_rows()).for_each(|(&m, row)| add(&mut filled, m, row));
        let mut out = Matrix::zeros(self.instances(), a.columns());
        for (row, &instance) in own.iter_rows().zip(&self.present) {
            out.row_mut(instance).copy_from_slice(row);
        }
        for &instance in &self.missing {
            out.row_mut(instance).copy_from_slice(&filled);
        }
        out
    }

    /// `Xᵀ A`, where A is N × K.
    pub fn transposed_times(&self, a: &Matrix) -> Matrix {
        let mut out = match &self.rows {
            Present::Dense(rows) if self.missing.is_empty() => return transposed_product(rows, a),
            Present::Dense(rows) => {
                let mut own = Matrix::zeros(self.present.len(), a.columns());
                for (row, &instance) in self.present.iter().enumerate() {
                    own.row_mut(row).copy_from_slice(a.row(instance));
                }
                transposed_product(rows, &own)
            }
            Present::Sparse(sparse) => {
                let width = kernel::padded::<f64>(a.columns());
                let own = pad(self.present.iter().map(|&instance| a.row(instance)), width);
                let mut out = Aligned::zeros(self.features * width);
                kernel::gather(sparse.csr(), &sparse.rows, &own, width, &mut out);
                trim(&out, width, a.columns())
            }
        };
        let mut filled = vec![0.0; a.columns()];
        self.missing.iter().for_each(|&instance| add(&mut filled, 1.0, a.row(instance)));
        for (f, &m) in self.mean.iter().enumerate() {
            add(out.row_mut(f), m, &filled);
        }
        out
    }

    /// `Σ_j c_j² ‖x_j‖²`, where c is one for rows that are there and `otherwise` for the others.
    pub fn sum_squares(&self, otherwise: f64) -> f64 {
        let filled = self.missing.len() as f64 * otherwise * otherwise;
        dot(self.values(), self.values()) + filled * dot(&self.mean, &self.mean)
    }

    /// X as it is, N × d.
    pub fn dense(&self) -> Matrix {
        let mut out = Matrix::zeros(self.instances(), self.features);
        for (row, &instance) in self.present.iter().enumerate() {
            let to = out.row_mut(instance);
            self.each(row, |f, x| to[f] = x);
        }
        for &instance in &self.missing {
            out.row_mut(instance).copy_from_slice(&self.mean);
        }
        out
    }
}

impl Present {
    fn values_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Dense(rows) => rows.values_mut(),
            Self::Sparse(sparse) => &mut sparse.values,
        }
    }
}

/// `sum ← sum + factor · row`.
fn add(sum: &mut [f64], factor: f64, row: &[f64]) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
}

/// Rows side by side, each padded with zeros to `width`.
fn pad<'a>(rows: impl ExactSizeIterator<Item = &'a [f64]>, width: usize) -> Aligned<f64> {
    let mut out = Aligned::zeros(rows.len() * width);
    for (to, row) in out.chunks_exact_mut(width).zip(rows) {
        to[..row.len()].copy_from_slice(row);
    }
    out
}

/// Padded rows as a matrix.
fn trim(padded: &[f64], width: usize, columns: usize) -> Matrix {
    let values = padded.chunks_exact(width).flat_map(|row| &row[..columns]).copied().collect();
    Matrix::new(padded.len() / width, columns, values).expect("whole rows")
}

fn dense<T: Scalar>(x: &[T], rows: impl Iterator<Item = usize>, d: usize, scaling: &Scaling) -> Present {
    let mut values = Vec::new();
    for row in rows {
        let start = values.len();
        values.extend(x[row * d..(row + 1) * d].iter().map(|x| x.to_f64()));
        finish(&mut values[start..], scaling);
    }
    Present::Dense(Matrix::new(values.len() / d, d, values).expect("whole rows"))
}

fn sparse<T: Scalar>(
    csr: &Csr<'_, T>,
    rows: impl Iterator<Item = usize>,
    d: usize,
    scaling: &Scaling,
) -> Present {
    if !scaling.shift.is_empty() {
        let mut values = Vec::new();
        for row in rows {
            let start = values.len();
            values.resize(start + d, 0.0);
            let (columns, stored) = csr.row(row);
            columns.iter().zip(stored).for_each(|(&f, x)| values[start + f as usize] = x.to_f64());
            finish(&mut values[start..], scaling);
        }
        return Present::Dense(Matrix::new(values.len() / d, d, values).expect("whole rows"));
    }
    let mut out = Sparse { offsets: vec![0], ..Sparse::default() };
    for (number, row) in rows.enumerate() {
        let start = out.values.len();
        let (columns, stored) = csr.row(row);
        out.columns.extend_from_slice(columns);
        let factor = |f: u32| scaling.factor.get(f as usize).copied().unwrap_or(1.0);
        out.values.extend(columns.iter().zip(stored).map(|(&f, x)| x.to_f64() * factor(f)));
        unit(&mut out.values[start..], scaling);
        out.offsets.push(out.values.len());
        out.rows.push(number);
    }
    Present::Sparse(out)
}

/// Scales a row: `(x − m) ∘ c`, and to length 1 if that is asked for. Written out, and not folded into products, so
/// that what min-max makes zero is zero and never a rounding below it.
fn finish(row: &mut [f64], scaling: &Scaling) {
    row.iter_mut().zip(&scaling.shift).for_each(|(x, shift)| *x -= shift);
    row.iter_mut().zip(&scaling.factor).for_each(|(x, factor)| *x *= factor);
    unit(row, scaling);
}

fn unit(row: &mut [f64], scaling: &Scaling) {
    let length = dot(row, row).sqrt();
    if scaling.unit_rows() && length > 0.0 {
        row.iter_mut().for_each(|x| *x /= length);
    }
}

/// Starts of the k-means that turns a representation into clusters.
pub(crate) const STARTS: usize = 20;

/// The clusters of the rows of an embedding by k-means, and the sum of squared distances to their centres.
pub(crate) fn cluster(embedding: &Matrix, clusters: usize, seed: u64) -> Result<(Vec<usize>, f64)> {
    let rows = crate::model::Place::rows(embedding)?;
    let lens = Lens::new(&rows, 0, Scaling::fit(&rows, 0, Scale::None)?)?;
    let centres = kmeans::centres(&rows, &lens, clusters, STARTS, seed)?;
    let labels = kmeans::assign(&rows, 0, &lens, &centres)?.labels;
    let labels: Vec<usize> = labels.into_iter().map(|label| label as usize).collect();
    let distance = |(row, &label): (&[f64], &usize)| {
        row.iter().enumerate().map(|(f, x)| (x - centres[(f, label)]).powi(2)).sum::<f64>()
    };
    let inertia = embedding.iter_rows().zip(&labels).map(distance).sum();
    Ok((labels, inertia))
}

/// Fails if so many clusters cannot be found among these instances.
pub(crate) fn check_clusters(instances: usize, clusters: usize) -> Result<()> {
    if (1..=instances).contains(&clusters) {
        return Ok(());
    }
    let reason = format!("must be at least 1 and at most the number of instances, {instances}");
    Err(Error::Option { option: "clusters", value: clusters.to_string(), reason })
}

/// Fails if a weight of an objective is not a number from zero.
pub(crate) fn check_weight(option: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    let reason = "must be a finite number that is not below 0".into();
    Err(Error::Option { option, value: value.to_string(), reason })
}

/// Fails if something is to be done no times.
pub(crate) fn check_count(option: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::Option { option, value: "0".into(), reason: "must be at least 1".into() })
}
