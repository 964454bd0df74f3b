//! Preparation of the data for the compared methods: scaling, a check of signs, mean imputation; and the final clustering of an
//! embedding.

use daimc::internal::{self, Aligned, ViewRows, dot, product, sparse as kernel, transposed_product};
use daimc::source::{self, Buffer, Csr};
use daimc::{Error, Matrix, Result, Scalar, Scale, Scaling, Source};

use crate::methods::algebra::{add, gram, rows_of};

/// Products of longer rows could overflow.
const LONGEST: f64 = 1e100;

/// A view and its scaling. Rows on disk are read once and kept in their stored format.
pub(crate) struct Scaled<'a> {
    source: &'a dyn Source,
    view: usize,
    scaling: Scaling,
    own: ViewRows<'a>,
}

impl<'a> Scaled<'a> {
    pub fn new(source: &'a dyn Source, view: usize, scale: Scale) -> Result<Self> {
        let (scaling, preparation) = Scaling::of_view(source, view, scale)?;
        Ok(Self { source, view, scaling, own: ViewRows::new(source, view, &preparation)? })
    }

    pub fn features(&self) -> usize {
        self.source.features(self.view)
    }

    pub fn shows(&self, instance: usize) -> bool {
        self.source.is_present(self.view, instance)
    }

    /// A scaled copy of the rows of some instances, all of which must be present in the view. Sparse rows stay sparse unless the
    /// scaling shifts them.
    pub fn rows(&self, instances: &[usize]) -> Result<Rows> {
        let (d, scaling) = (self.features(), &self.scaling);
        let mut buffer = Buffer::default();
        let block = self.own.block(&mut buffer);
        let own = instances.iter().filter_map(|&instance| block.index.row(instance));
        let rows = match block.rows {
            source::Rows::DenseF32(x) => dense(x, own, d, scaling),
            source::Rows::DenseF64(x) => dense(x, own, d, scaling),
            source::Rows::SparseF32(csr) => sparse(&csr, own, d, scaling),
            source::Rows::SparseF64(csr) => sparse(&csr, own, d, scaling),
        };
        for (row, &instance) in instances.iter().enumerate() {
            let mut square = 0.0;
            rows.each(row, |_, x| square += x * x);
            if square.is_nan() || square > LONGEST * LONGEST {
                let id = self.source.id(instance);
                return Err(Error::TooLarge { view: self.source.name(self.view).into(), row: instance, id });
            }
        }
        Ok(rows)
    }

    /// Rejects rows with a negative value, for methods whose factors are all non-negative.
    pub fn refuse_negative(&self, method: &str, instances: &[usize], rows: &Rows) -> Result<()> {
        let Some(at) = rows.values().iter().position(|&value| value < 0.0) else { return Ok(()) };
        let (row, column) = rows.cell(at);
        let instance = instances[row];
        Err(Error::Negative {
            view: self.source.name(self.view).into(),
            row: instance,
            id: self.source.id(instance),
            column,
            feature: self.source.schema().view(self.view).feature_name(column),
            value: rows.values()[at],
            method: method.into(),
        })
    }
}

/// Scaled rows of some instances of a view, X (n × d), in `f64`: 8 bytes per value of a dense view, 12 per stored value of
/// a sparse one.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    Dense(Matrix),
    Sparse(Sparse),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sparse {
    features: usize,
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// The index of all rows, for the kernels.
    rows: Vec<usize>,
}

impl Sparse {
    fn csr(&self) -> Csr<'_, f64> {
        Csr { offsets: &self.offsets, columns: &self.columns, values: &self.values }
    }
}

impl Rows {
    pub fn count(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.rows(),
            Self::Sparse(sparse) => sparse.rows.len(),
        }
    }

    pub fn features(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.columns(),
            Self::Sparse(sparse) => sparse.features,
        }
    }

    /// The stored values.
    fn values(&self) -> &[f64] {
        match self {
            Self::Dense(rows) => rows.values(),
            Self::Sparse(sparse) => &sparse.values,
        }
    }

    fn values_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Dense(rows) => rows.values_mut(),
            Self::Sparse(sparse) => &mut sparse.values,
        }
    }

    /// The row and the column of a stored value.
    fn cell(&self, at: usize) -> (usize, usize) {
        match self {
            Self::Dense(rows) => (at / rows.columns(), at % rows.columns()),
            Self::Sparse(sparse) => {
                let row = sparse.offsets.partition_point(|&offset| offset <= at) - 1;
                (row, sparse.columns[at] as usize)
            }
        }
    }

    /// Calls `visit(column, value)` for the stored values of a row.
    pub fn each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Self::Dense(rows) => rows.row(row).iter().enumerate().for_each(|(f, &x)| visit(f, x)),
            Self::Sparse(sparse) => {
                let (columns, values) = sparse.csr().row(row);
                columns.iter().zip(values).for_each(|(&f, &x)| visit(f as usize, x));
            }
        }
    }

    /// X as a dense matrix, n × d.
    pub fn dense(&self) -> Matrix {
        let mut out = Matrix::zeros(self.count(), self.features());
        for row in 0..self.count() {
            let to = out.row_mut(row);
            self.each(row, |f, x| to[f] = x);
        }
        out
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.values().iter().sum()
    }

    /// `‖X‖²`.
    pub fn sum_squares(&self) -> f64 {
        dot(self.values(), self.values())
    }

    /// `X B` for a basis B (d × K).
    pub fn times(&self, basis: &Matrix) -> Matrix {
        match self {
            Self::Dense(rows) => product(rows, basis),
            Self::Sparse(sparse) => {
                let width = kernel::padded::<f64>(basis.columns());
                let mut out = Aligned::zeros(sparse.rows.len() * width);
                kernel::project(sparse.csr(), &sparse.rows, &pad(basis.iter_rows(), width), width, &mut out);
                trim(&out, width, basis.columns())
            }
        }
    }

    /// `Xᵀ P` for coefficients P (n × K).
    pub fn transposed_times(&self, coefficients: &Matrix) -> Matrix {
        match self {
            Self::Dense(rows) => transposed_product(rows, coefficients),
            Self::Sparse(sparse) => {
                let width = kernel::padded::<f64>(coefficients.columns());
                let mut out = Aligned::zeros(sparse.features * width);
                kernel::gather(
                    sparse.csr(),
                    &sparse.rows,
                    &pad(coefficients.iter_rows(), width),
                    width,
                    &mut out,
                );
                trim(&out, width, coefficients.columns())
            }
        }
    }

    /// `‖X − P Bᵀ‖²`, by its three terms.
    pub fn misfit(&self, coefficients: &Matrix, basis: &Matrix) -> f64 {
        let cross = self.transposed_times(coefficients).dot(basis);
        self.sum_squares() - 2.0 * cross + gram(coefficients).dot(&gram(basis))
    }
}

/// One view with each missing row replaced by the mean of the present ones: an N × d matrix
///
/// ```text
/// X = P R + (1 − w) mᵀ
/// ```
///
/// R are the present rows, P their positions, and the rest has rank one. The fill is therefore never stored, a sparse view stays
/// sparse, and products with X cost the same as products with R.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    rows: Rows,
    /// The instances of the rows, in increasing order.
    present: Vec<usize>,
    missing: Vec<usize>,
    mean: Vec<f64>,
}

impl Filled {
    /// View `view` with scaled present rows, and missing rows as the mean of these.
    pub fn new(source: &dyn Source, view: usize, scale: Scale) -> Result<Self> {
        Self::of(&Scaled::new(source, view, scale)?)
    }

    fn of(view: &Scaled<'_>) -> Result<Self> {
        let (present, missing): (Vec<usize>, Vec<usize>) =
            (0..view.source.instances()).partition(|&instance| view.shows(instance));
        let rows = view.rows(&present)?;
        let mut mean = vec![0.0; rows.features()];
        let share = 1.0 / present.len() as f64;
        for row in 0..present.len() {
            rows.each(row, |column, value| mean[column] += share * value);
        }
        Ok(Self { rows, present, missing, mean })
    }

    /// Every view, rejected if a value is negative, and divided by its sum: the entries of each view, fill included, sum
    /// to 1.
    pub fn distributions(source: &dyn Source, scale: Scale, method: &str) -> Result<Vec<Self>> {
        let prepare = |view| {
            let scaled = Scaled::new(source, view, scale)?;
            let mut filled = Self::of(&scaled)?;
            scaled.refuse_negative(method, &filled.present, &filled.rows)?;
            let total = filled.mean.iter().sum::<f64>() * filled.instances() as f64;
            // A view of zeros stays zero.
            if total > 0.0 {
                let values = filled.rows.values_mut().iter_mut().chain(&mut filled.mean);
                values.for_each(|value| *value /= total);
            }
            Ok(filled)
        };
        (0..source.views()).map(prepare).collect()
    }

    pub fn instances(&self) -> usize {
        self.present.len() + self.missing.len()
    }

    pub fn features(&self) -> usize {
        self.rows.features()
    }

    /// One for each present instance, `otherwise` for the others.
    pub fn weights(&self, otherwise: f64) -> Vec<f64> {
        let mut weights = vec![1.0; self.instances()];
        self.missing.iter().for_each(|&instance| weights[instance] = otherwise);
        weights
    }

    /// The share of present instances.
    pub fn share(&self) -> f64 {
        self.present.len() as f64 / self.instances() as f64
    }

    /// `X A`, where A is d × K.
    pub fn times(&self, a: &Matrix) -> Matrix {
        let own = self.rows.times(a);
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
        if self.missing.is_empty() {
            return self.rows.transposed_times(a);
        }
        let mut out = self.rows.transposed_times(&rows_of(a, &self.present));
        let mut filled = vec![0.0; a.columns()];
        self.missing.iter().for_each(|&instance| add(&mut filled, 1.0, a.row(instance)));
        for (f, &m) in self.mean.iter().enumerate() {
            add(out.row_mut(f), m, &filled);
        }
        out
    }

    /// `Σ_j c_j² ‖x_j‖²`, where c is one for present rows and `otherwise` for the others.
    pub fn sum_squares(&self, otherwise: f64) -> f64 {
        let filled = self.missing.len() as f64 * otherwise * otherwise;
        self.rows.sum_squares() + filled * dot(&self.mean, &self.mean)
    }

    /// X as a dense matrix, N × d.
    pub fn dense(&self) -> Matrix {
        let mut out = Matrix::zeros(self.instances(), self.features());
        for (row, &instance) in self.present.iter().enumerate() {
            let to = out.row_mut(instance);
            self.rows.each(row, |f, x| to[f] = x);
        }
        for &instance in &self.missing {
            out.row_mut(instance).copy_from_slice(&self.mean);
        }
        out
    }
}

/// Rows padded with zeros to `width`.
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

fn dense<T: Scalar>(x: &[T], rows: impl Iterator<Item = usize>, d: usize, scaling: &Scaling) -> Rows {
    let mut values = Vec::new();
    for row in rows {
        let start = values.len();
        values.extend(x[row * d..(row + 1) * d].iter().map(|x| x.to_f64()));
        finish(&mut values[start..], scaling);
    }
    Rows::Dense(Matrix::new(values.len() / d, d, values).expect("whole rows"))
}

fn sparse<T: Scalar>(
    csr: &Csr<'_, T>,
    rows: impl Iterator<Item = usize>,
    d: usize,
    scaling: &Scaling,
) -> Rows {
    if !scaling.shift.is_empty() {
        let mut values = Vec::new();
        for row in rows {
            let start = values.len();
            values.resize(start + d, 0.0);
            let (columns, stored) = csr.row(row);
            columns.iter().zip(stored).for_each(|(&f, x)| values[start + f as usize] = x.to_f64());
            finish(&mut values[start..], scaling);
        }
        return Rows::Dense(Matrix::new(values.len() / d, d, values).expect("whole rows"));
    }
    let mut out = Sparse { features: d, offsets: vec![0], ..Sparse::default() };
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
    Rows::Sparse(out)
}

/// Scales a row: `(x − m) ∘ c`, and optionally to length 1. The scaled values are computed explicitly, not within products, so that
/// the minimum under min-max is exactly zero and not slightly negative.
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

/// Starts of the k-means on a representation.
pub(crate) const STARTS: usize = 20;

/// The clusters of the rows of an embedding by k-means, and the sum of squared distances to their centres.
pub(crate) fn cluster(embedding: &Matrix, clusters: usize, seed: u64) -> Result<(Vec<usize>, f64)> {
    let (labels, centres) = internal::kmeans(embedding, clusters, STARTS, seed)?;
    let distance = |(row, &label): (&[f64], &usize)| {
        row.iter().enumerate().map(|(f, x)| (x - centres[(f, label)]).powi(2)).sum::<f64>()
    };
    let inertia = embedding.iter_rows().zip(&labels).map(distance).sum();
    Ok((labels, inertia))
}

/// Fails if the number of clusters is invalid for these instances.
pub(crate) fn check_clusters(instances: usize, clusters: usize) -> Result<()> {
    if (1..=instances).contains(&clusters) {
        return Ok(());
    }
    let reason = format!("must be at least 1 and at most the number of instances, {instances}");
    let value = clusters.to_string();
    Err(match clusters {
        0 => Error::Option { option: "clusters", value, reason },
        _ => Error::Unsuitable { what: "clusters", value, reason },
    })
}

/// Fails if a weight of an objective is negative or not finite.
pub(crate) fn check_weight(option: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    let reason = "must be a finite number that is not below 0".into();
    Err(Error::Option { option, value: value.to_string(), reason })
}

/// Fails if a count is zero.
pub(crate) fn check_count(option: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::Option { option, value: "0".into(), reason: "must be at least 1".into() })
}

#[cfg(test)]
mod tests {
    use daimc::{View, Views};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::methods::algebra::uniform;
    use crate::methods::testing::{assert_close, plain};

    #[test]
    fn sparse_and_dense_rows_give_the_same_products() {
        let values = [0.0, 2.0, 0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 0.0, 5.0];
        let dense = View::dense("dense", 3, values.to_vec()).unwrap();
        let offsets = vec![0, 1, 3, 4, 5];
        let sparse = View::sparse("sparse", 3, offsets, vec![1, 0, 2, 2, 2], vec![2.0, 1.0, 3.0, 4.0, 5.0]);
        let views = Views::new(vec![dense, sparse.unwrap()]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (basis, coefficients) = (uniform(3, 2, &mut rng), uniform(2, 2, &mut rng));
        for scale in [Scale::None, Scale::Unit, Scale::TfIdf] {
            let parts = [0, 1].map(|v| Scaled::new(&views, v, scale).unwrap().rows(&[3, 1]).unwrap());
            assert_close(&parts[0].times(&basis), &plain(&parts[1].times(&basis)));
            let products = parts.each_ref().map(|part| part.transposed_times(&coefficients));
            assert_close(&products[0], &plain(&products[1]));
            let misfits = parts.each_ref().map(|part| part.misfit(&coefficients, &basis));
            assert!((misfits[0] - misfits[1]).abs() < 1e-12 * misfits[0]);
        }
    }

    /// A shifting scaling turns zeros into other values.
    #[test]
    fn a_sparse_view_becomes_dense_where_it_must() {
        let sparse = View::sparse("sparse", 1, vec![0, 1, 1, 2], vec![0, 0], vec![2.0, 4.0]).unwrap();
        let views = Views::new(vec![sparse]).unwrap();
        let rows = Scaled::new(&views, 0, Scale::MinMax).unwrap().rows(&[2, 1, 0]).unwrap();
        assert_close(&rows.times(&Matrix::from_fn(1, 1, |_, _| 1.0)), &vec![vec![1.0], vec![0.0], vec![0.5]]);
    }
}
