//! The evidence of each view for the cluster of each instance. (Module `leaders` finds the features that lead a cluster, and
//! their stability.)
//!
//! The prototype of cluster c in view v is `p = U_v m_c`, where `m_c` is the mean row of V of the cluster's instances: the
//! expected row of these instances. The row of an instance j in cluster c is compared with it and with the prototype of the rival
//! r, the strongest other cluster:
//!
//! ```text
//! e_v = ‖x_vj − a_j U_v m_r‖² − ‖x_vj − a_j U_v m_c‖²,      contribution = e_v / Σ_u |e_u|
//! ```
//!
//! Lengths are no evidence: rows of V are clustered by their direction, and an instance that is twice as long as others belongs
//! to the same cluster. Both prototypes are therefore scaled by `a_j`, the factor at which the prototype that is nearest to the
//! instance in all its views together fits best. There is one factor per instance. A factor per view would scale up the
//! prototypes of a view that does not separate the clusters, whose direction is noise. A factor per cluster would create evidence
//! in a view that cannot distinguish two clusters.
//!
//! The rival is the same for all views, so that their evidence adds up to the margin by which the instance is nearer to its own
//! cluster. A view that does not distinguish the two clusters contributes zero. `‖x‖²` cancels, and the rest are products of the
//! row with the prototypes: one pass over the data.
//!
//! Cells that are missing inside a row are left out.
//!
//! Rows are scaled as in the fit, so views have the same weight as there. A view whose rows are all nearly parallel has little
//! influence on V, and its evidence is small.

mod variance;

use std::collections::HashMap;

use crate::fit::Fit;
use crate::model::{Misfit, Model};
use daimc_core::linalg::{product, transposed_product};
use daimc_core::matrix::dot;
use daimc_core::scaled_view::{Operand, ScaledView, Scratch};
use daimc_core::scan::{Piece, Scan, off_the_pool};
use daimc_core::source::{Block, Source};
use daimc_core::{Error, Matrix, Result, Stop};
use variance::Moments;

/// The evidence of each view for the cluster of each instance.
///
/// The evidence of a view is the squared distance (scaled as in the fit) from the instance's row to the prototype of its rival,
/// minus that to the prototype of its own cluster. Views are those of the model, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributions {
    views: usize,
    /// Instances × views.
    evidence: Vec<Option<f64>>,
    rivals: Vec<Option<usize>>,
}

impl Contributions {
    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.rivals.len()
    }

    /// The number of views of the model.
    #[must_use]
    pub fn views(&self) -> usize {
        self.views
    }

    /// The cluster that an instance was compared with: of all other clusters the nearest in all views together. `None` if there
    /// is no other.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn rival(&self, instance: usize) -> Option<usize> {
        self.rivals[instance]
    }

    /// The evidence of each view for an instance: how much nearer its row is to its own cluster than to its rival. `None` if the
    /// instance has no row in the view. Without a rival the evidence is zero.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn evidence(&self, instance: usize) -> &[Option<f64>] {
        &self.evidence[instance * self.views..(instance + 1) * self.views]
    }

    /// The sum of the evidence; negative if the rival is nearer.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn margin(&self, instance: usize) -> f64 {
        self.evidence(instance).iter().flatten().sum()
    }

    /// The share of each view in the evidence, from −1 to 1; negative if the view supports the rival. The absolute shares of an
    /// instance sum to 1, or are all zero if no view has evidence. `None` if the instance has no row in the view.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn shares(&self, instance: usize) -> impl ExactSizeIterator<Item = Option<f64>> {
        let evidence = self.evidence(instance);
        let total: f64 = evidence.iter().flatten().map(|evidence| evidence.abs()).sum();
        let share = move |evidence: f64| if total > 0.0 { (evidence / total).clamp(-1.0, 1.0) } else { 0.0 };
        evidence.iter().map(move |evidence| evidence.map(share))
    }
}

/// The evidence for the clusters, and the residuals of the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The evidence of each view for the cluster of each instance.
    pub contributions: Contributions,
    /// For each view of the model and each cluster, the residual of its instances.
    pub residuals: Vec<Vec<Residual>>,
    /// For each view of the model, `Σ (x − x̄)²` over the observed cells, scaled as in the fit, where x̄ is the mean of the
    /// feature. The model explains the part by which it exceeds Σ [`Residual::error`].
    pub variations: Vec<f64>,
}

/// The residual of some rows, scaled as in the fit; see [`Fit::misfit`] for single rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Residual {
    /// `Σ ‖x − U v‖²`.
    pub error: f64,
    /// `Σ ‖x‖²`.
    pub square: f64,
}

impl Residual {
    fn add(&mut self, other: Self) {
        self.error += other.error;
        self.square += other.square;
    }
}

impl Fit {
    /// The evidence of each view for the cluster of each instance of the fit.
    ///
    /// ```
    /// use daimc::{Daimc, Views, synthetic::Synthetic};
    ///
    /// let data = Synthetic::new(100, 3);
    /// let views = Views::new(vec![data.dense::<f64>("a", 20)?, data.dense::<f64>("b", 10)?])?;
    /// let fit = Daimc::new(3).fit(&views)?;
    /// let contributions = fit.contributions(&views)?;
    /// let sum: f64 = contributions.shares(0).flatten().map(f64::abs).sum();
    /// assert!((sum - 1.0).abs() < 1e-12);
    /// # Ok::<(), daimc::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not the instances of the fit, a view is unknown, or its features differ from those of the model.
    pub fn contributions(&self, source: &dyn Source) -> Result<Contributions> {
        self.check_instances(source)?;
        self.model.contributions_of(source, &self.labels)
    }

    /// The [contributions](Self::contributions) and the [residuals](Self::misfit), from one pass over the data.
    ///
    /// # Errors
    /// As [`Fit::contributions`].
    pub fn explain(&self, source: &dyn Source) -> Result<Explanation> {
        self.check_instances(source)?;
        self.model.judged(source, &self.labels, Some(&self.latent))
    }

    /// The error of the reconstruction of each instance of the fit in one view. The sum over instances and views is the loss of
    /// [`Fit::objective`].
    ///
    /// ```
    /// use daimc::{Daimc, Views, synthetic::Synthetic};
    ///
    /// let data = Synthetic::new(100, 3);
    /// let views = Views::new(vec![data.dense::<f64>("a", 20)?])?;
    /// let fit = Daimc::new(3).fit(&views)?;
    /// let misfit = fit.misfit(&views, "a")?;
    /// let unexplained = misfit.error.iter().sum::<f64>() / misfit.square.iter().sum::<f64>();
    /// assert!((0.0..1.0).contains(&unexplained));
    /// # Ok::<(), daimc::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not the instances or the features of the fit, or it has no such view.
    pub fn misfit(&self, source: &dyn Source, view: &str) -> Result<Misfit> {
        self.model.misfit_of(source, view, &self.latent)
    }
}

impl Model {
    /// The evidence of each view for given clusters of instances, such as those that [`Model::place`] assigns to new instances.
    /// Instances may have any of the model's views.
    ///
    /// # Errors
    /// When there is not one label per instance, a label is not that of a cluster, a view is unknown, or its features differ from
    /// those of the model.
    pub fn contributions_of(&self, source: &dyn Source, labels: &[usize]) -> Result<Contributions> {
        let (expected, clusters) = (source.instances(), self.options.clusters);
        if labels.len() != expected {
            return Err(Error::LengthMismatch { what: "labels".into(), expected, found: labels.len() });
        }
        if let Some(label) = labels.iter().find(|label| **label >= clusters) {
            let reason = format!("the clusters of the model are 0 to {}", clusters - 1);
            return Err(Error::Unsuitable { what: "labels", value: label.to_string(), reason });
        }
        Ok(self.judged(source, labels, None)?.contributions)
    }

    /// Computes evidence and, given V, residuals.
    fn judged(&self, source: &dyn Source, labels: &[usize], latent: Option<&Matrix>) -> Result<Explanation> {
        off_the_pool(source, || {
            let prepared = self.prepare(source)?;
            let scan = Scan::new(&prepared, &Stop::default());
            Prototypes::of(self, &scan, latent)?.judge_all(&scan, labels)
        })
    }
}

/// The prototypes of all clusters, prepared for products with the rows of some views.
struct Prototypes<'a> {
    model: &'a Model,
    /// V, if residuals are computed too.
    latent: Option<&'a Matrix>,
    /// Whether each cluster has instances.
    alive: Vec<bool>,
    views: Vec<ViewPrototypes>,
}

/// The prototypes in one of the given views.
struct ViewPrototypes {
    /// The view's place in the model.
    place: usize,
    scaled_view: ScaledView,
    /// The prototypes, followed by the basis if residuals are computed too.
    operand: Operand,
    /// The prototypes, features × clusters.
    prototypes: Matrix,
    /// `‖p‖²` of each cluster.
    squares: Vec<f64>,
    /// `UᵀU`, if the operand includes the basis.
    gram: Option<Matrix>,
}

impl ViewPrototypes {
    /// Subtracts the missing cells of an instance from its products with the prototypes, and returns `‖p‖²` over them.
    fn leave_out(&self, block: &Block<'_>, at: (usize, usize), products: &mut [f64]) -> Vec<f64> {
        let mut squares = vec![0.0; products.len()];
        for f in self.scaled_view.holes(block, at.1) {
            let value = self.scaled_view.value(block, at, f);
            for ((product, square), p) in products.iter_mut().zip(&mut squares).zip(self.prototypes.row(f)) {
                *product -= value * p;
                *square += p * p;
            }
        }
        squares
    }
}

/// The results for a block.
struct BlockEvidence {
    contributions: Contributions,
    residuals: Vec<Vec<Residual>>,
    moments: Vec<Moments>,
    scratch_rows: BlockScratch,
}

/// Scratch memory for the products of a block.
#[derive(Default)]
struct BlockScratch {
    /// Views × instances × clusters: `xᵀp`.
    products: Vec<f64>,
    /// Views × instances.
    shown: Vec<bool>,
    /// `‖p‖²` over the missing cells of rows, by view and instance (views × instances); only for rows with missing cells.
    lacking: HashMap<usize, Vec<f64>>,
    /// `UᵀU v`.
    made: Vec<f64>,
    scratch: Scratch,
}

/// Rows that are multiplied together.
const TILE: usize = 120;

impl<'a> Prototypes<'a> {
    fn of(model: &'a Model, scan: &Scan<'_>, latent: Option<&'a Matrix>) -> Result<Self> {
        let means = &model.means;
        let (places, scaled_views) = model.scaled_views(scan)?;
        let seen = places.into_iter().zip(scaled_views).map(|(place, scaled_view)| {
            let basis = &model.views[place].basis;
            let prototypes = product(basis, means);
            let mut squares = vec![0.0; means.columns()];
            for row in prototypes.iter_rows() {
                squares.iter_mut().zip(row).for_each(|(square, p)| *square += p * p);
            }
            let operand = match latent {
                Some(_) => scaled_view.operand(&side_by_side(&prototypes, basis)),
                None => scaled_view.operand(&prototypes),
            };
            let gram = latent.map(|_| transposed_product(basis, basis));
            ViewPrototypes { place, scaled_view, operand, prototypes, squares, gram }
        });
        let views = seen.collect();
        Ok(Self { model, latent, views, alive: model.sizes.iter().map(|&size| size > 0).collect() })
    }

    /// The evidence for all instances and, with the basis, the residuals of each view and cluster.
    fn judge_all(&self, scan: &Scan<'_>, labels: &[usize]) -> Result<Explanation> {
        let (instances, views, clusters) = (scan.instances(), self.model.views.len(), self.alive.len());
        let residuals = || vec![vec![Residual::default(); clusters]; views];
        let mut total = Contributions {
            views,
            evidence: Vec::with_capacity(instances * views),
            rivals: Vec::with_capacity(instances),
        };
        let mut sums = residuals();
        // In the order of the given views.
        let moments =
            || self.views.iter().map(|seen| Moments::new(seen.scaled_view.features())).collect::<Vec<_>>();
        let mut all_moments = moments();
        let part = || BlockEvidence {
            contributions: Contributions { views, evidence: Vec::new(), rivals: Vec::new() },
            residuals: residuals(),
            moments: moments(),
            scratch_rows: BlockScratch::default(),
        };
        scan.pass(
            0..self.views.len(),
            std::iter::repeat(()),
            part,
            |piece, (), part| {
                self.judge(&piece, labels, part);
                Ok(())
            },
            |_, BlockEvidence { contributions, residuals, moments, .. }| {
                total.evidence.append(&mut contributions.evidence);
                total.rivals.append(&mut contributions.rivals);
                let all = sums.iter_mut().flatten().zip(residuals.iter().flatten());
                all.for_each(|(sum, own)| sum.add(*own));
                all_moments.iter_mut().zip(moments).for_each(|(sum, own)| sum.absorb(own));
            },
        )?;
        let mut variations = vec![0.0; views];
        for (seen, moments) in self.views.iter().zip(all_moments) {
            variations[seen.place] = moments.about_mean(&seen.scaled_view);
        }
        Ok(Explanation { contributions: total, residuals: sums, variations })
    }

    /// The evidence for the instances of a block, and their residuals.
    fn judge(
        &self,
        piece: &Piece<'_>,
        labels: &[usize],
        BlockEvidence { contributions: part, residuals, moments, scratch_rows }: &mut BlockEvidence,
    ) {
        residuals.iter_mut().for_each(|view| view.fill(Residual::default()));
        self.multiply(piece, labels, scratch_rows, (residuals, moments));
        let range = piece.instances.clone();
        let (size, clusters) = (range.len(), self.alive.len());
        let BlockScratch { products, shown, lacking, .. } = scratch_rows;
        part.evidence.clear();
        part.evidence.resize(size * part.views, None);
        part.rivals.clear();
        let (mut sums, mut squares) = (vec![0.0; clusters], vec![0.0; clusters]);
        for (i, &own) in labels[range].iter().enumerate() {
            let here = || {
                let views = self.views.iter().enumerate().filter(|(v, _)| shown[v * size + i]);
                views.map(|(v, seen)| {
                    let lacks = lacking.get(&(v * size + i));
                    let square = move |k: usize| seen.squares[k] - lacks.map_or(0.0, |lacks| lacks[k]);
                    (seen.place, &products[(v * size + i) * clusters..][..clusters], square)
                })
            };
            sums.fill(0.0);
            squares.fill(0.0);
            for (_, products, square) in here() {
                sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
                squares.iter_mut().enumerate().for_each(|(k, sum)| *sum += square(k));
            }
            let factor = self.factor(&sums, &squares);
            // Squared distances, without ‖x‖².
            let distance = |product: f64, square: f64| factor * (factor * square - 2.0 * product);
            let others = (0..clusters).filter(|&cluster| cluster != own && self.alive[cluster]);
            let rival = others.reduce(|best, other| {
                let nearer = distance(sums[other], squares[other]) < distance(sums[best], squares[best]);
                if nearer { other } else { best }
            });
            part.rivals.push(rival);
            for (place, products, square) in here() {
                let to = |cluster: usize| distance(products[cluster], square(cluster));
                part.evidence[i * part.views + place] = Some(rival.map_or(0.0, |rival| to(rival) - to(own)));
            }
        }
    }

    /// The factor at which the nearest prototype fits an instance best, from `xᵀp` and `‖p‖²` over its views; zero for an
    /// instance that resembles no cluster.
    fn factor(&self, sums: &[f64], squares: &[f64]) -> f64 {
        let mut best = (0.0, 0.0);
        for ((&sum, &square), alive) in sums.iter().zip(squares).zip(&self.alive) {
            // ‖x − a p‖² is least at a = xᵀp / ‖p‖², where it is ‖x‖² − (xᵀp)² / ‖p‖².
            let (factor, gain) = (sum / square, sum * sum / square);
            if *alive && factor > 0.0 && gain.is_finite() && gain > best.1 {
                best = (factor, gain);
            }
        }
        best.0
    }

    /// The products of the rows of a block with the prototypes of all clusters, and the residuals of the rows.
    fn multiply(
        &self,
        piece: &Piece<'_>,
        labels: &[usize],
        scratch_rows: &mut BlockScratch,
        (residuals, moments): (&mut [Vec<Residual>], &mut [Moments]),
    ) {
        let (size, clusters) = (piece.instances.len(), self.alive.len());
        let BlockScratch { products, shown, lacking, made, scratch } = scratch_rows;
        lacking.clear();
        shown.clear();
        shown.resize(self.views.len() * size, false);
        products.clear();
        products.resize(self.views.len() * size * clusters, 0.0);
        for (number, seen) in self.views.iter().enumerate() {
            let block = &piece.blocks[number];
            for rows in piece.shown_in(number).chunks(TILE) {
                seen.scaled_view.project_each(block, rows, &seen.operand, scratch, |i, found| {
                    let instance = rows[i].0;
                    let at = number * size + instance - piece.instances.start;
                    shown[at] = true;
                    let (with_prototypes, with_basis) = found.split_at(clusters);
                    let own = &mut products[at * clusters..(at + 1) * clusters];
                    own.copy_from_slice(with_prototypes);
                    if !block.holes.row(rows[i].1).is_empty() {
                        lacking.insert(at, seen.leave_out(block, rows[i], own));
                    }
                    if let (Some(gram), Some(latent)) = (&seen.gram, self.latent) {
                        let v = latent.row(instance);
                        let mut square = seen.scaled_view.square(block, rows[i]);
                        let mut error = error(square, with_basis, v, gram, made);
                        if !block.holes.row(rows[i].1).is_empty() {
                            let basis = &self.model.views[seen.place].basis;
                            error = (error - seen.scaled_view.hole_error(block, rows[i], basis, v)).max(0.0);
                            square = seen.scaled_view.observed_square(block, rows[i]);
                        }
                        residuals[seen.place][labels[instance]].add(Residual { error, square });
                        moments[number].add(&seen.scaled_view, block, rows[i], square);
                    }
                });
            }
        }
    }
}

/// `‖x − Uv‖² = ‖x‖² − 2 (Uᵀx)ᵀv + vᵀ(UᵀU)v`; rounding could make it negative.
fn error(square: f64, products: &[f64], v: &[f64], gram: &Matrix, made: &mut Vec<f64>) -> f64 {
    made.clear();
    made.resize(v.len(), 0.0);
    for (row, v_k) in gram.iter_rows().zip(v).filter(|(_, v_k)| **v_k != 0.0) {
        made.iter_mut().zip(row).for_each(|(made, value)| *made += v_k * value);
    }
    (square - 2.0 * dot(products, v) + dot(made, v)).max(0.0)
}

/// The concatenated columns of two matrices.
fn side_by_side(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), a.columns() + b.columns(), |i, j| {
        if j < a.columns() { a[(i, j)] } else { b[(i, j - a.columns())] }
    })
}
