//! Imputation of missing rows and cells.
//!
//! Three predictors estimate the row of an instance in a view: the nearest donors, which are instances with a row in the view, by
//! their distance in the other views (`near`); the donors of the instance's cluster; and the basis, `U v`. A trial on hidden rows
//! and cells (`trial`) decides, for each view, the number of neighbours, whether distances use rows scaled to length 1, the
//! weight of the row's own view for missing cells, and whether means are taken of logarithms. It also fits the weights of the
//! predictors (`blend`). Distances are computed both with and without scaling rows to length 1, because the level of a row is
//! informative about its values, though not about its cluster.

mod blend;
mod donors;
mod leverage;
mod near;
mod trial;

use super::{Model, Place, ViewModel};
use daimc_core::kernel::Scalar;
use daimc_core::matrix::dot;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::{Piece, Scan, off_the_pool};
use daimc_core::source::{Block, Buffer, Csr, Rows, Source};
use daimc_core::{Matrix, Result, Stop};
use donors::{Donors, MOST_DONORS, Mean, some_shown};
use leverage::Leverage;
use near::{Metric, Near, Query, TILE};
use trial::{Hide, Recipe};

/// A view with its missing values filled in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Imputed {
    /// The view's name.
    pub view: String,
    /// Instances × features.
    pub values: Matrix,
    /// The missing values, in the order of the instances.
    pub gaps: Vec<Gap>,
    /// The accuracy of imputed rows; `None` if it could not be measured.
    pub rows_accuracy: Option<Accuracy>,
    /// The accuracy of imputed cells; `None` if it could not be measured.
    pub cells_accuracy: Option<Accuracy>,
}

/// The missing values of an instance in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The instance.
    pub instance: usize,
    /// The missing features of its row, in increasing order; `None` if the row is missing.
    pub features: Option<Vec<u32>>,
}

impl Imputed {
    /// The number of missing rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.gaps.iter().filter(|gap| gap.features.is_none()).count()
    }

    /// The number of missing cells in other rows.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.gaps.iter().filter_map(|gap| gap.features.as_ref()).map(Vec::len).sum()
    }
}

/// The accuracy of imputation, measured on hidden values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Accuracy {
    /// The root of the mean squared error, in standard deviations of each feature. The weights were fitted to one half of the
    /// hidden rows and evaluated on the other.
    pub error: f64,
    /// The same for imputation by the mean of the feature: about 1, and more if values are so heavy-tailed that a hidden value
    /// often lies far beyond all others.
    pub of_mean: f64,
    /// The number of hidden values.
    pub values: usize,
    /// The number of neighbours in the mean.
    pub neighbours: usize,
    /// The weight of each predictor.
    pub shares: Shares,
}

/// The weight of each predictor, from 0 to 1. The rest is the weight of the feature's mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Shares {
    /// The nearest instances.
    pub neighbours: f64,
    /// Instances of the same cluster.
    pub cluster: f64,
    /// `U v`.
    pub basis: f64,
}

/// With fewer donors than this, only the bases of the model are used.
const FEWEST_DONORS: usize = 8;

impl Model {
    /// The rows of a view, one for each instance, with missing values filled in, given their rows of V, and the accuracy of
    /// imputation.
    ///
    /// Observed values do not change. Missing values are a weighted mean of the values of the nearest instances, of those of the
    /// same cluster, and of `U v`, as in [`Model::reconstruct`]; the weights are the best for hidden observed values. They are
    /// learnt from the instances of this source with a row in the view (a sample of more than 5000), and results stay within the
    /// range of each feature among them: pass new instances together with those of the fit. With fewer than eight such instances,
    /// and in a view that is not given, the result is `U v` alone.
    ///
    /// # Errors
    /// When the number of rows of V differs from the number of instances, when a view is unknown or its features differ from
    /// those of the model, and when rows cannot be read.
    pub fn impute(&self, source: &dyn Source, view: &str, latent: &Matrix) -> Result<Imputed> {
        let own = self.view(view)?;
        let values = self.reconstruct(view, latent)?;
        let gaps = (0..latent.rows()).map(|instance| Gap { instance, features: None }).collect();
        let mut imputed =
            Imputed { view: view.into(), values, gaps, rows_accuracy: None, cells_accuracy: None };
        let Some(number) = (0..source.views()).find(|&number| source.name(number) == view) else {
            return Ok(imputed);
        };
        self.checked(source, number, latent)?;
        off_the_pool(source, || self.fill(source, number, own, latent, &mut imputed))?;
        Ok(imputed)
    }

    fn fill(
        &self,
        source: &dyn Source,
        view: usize,
        own: &ViewModel,
        latent: &Matrix,
        out: &mut Imputed,
    ) -> Result<()> {
        let prepared = self.prepare(source)?;
        let scan = Scan::new(&prepared, &Stop::default());
        let raw = Scan::new(source, &Stop::default());
        let (schema, d) = (scan.schema().view(view), own.basis.rows());
        let (rows, cells) = (source.instances() - schema.present(), schema.missing_cells().unwrap_or(0));
        out.gaps.clear();
        if rows + cells > 0 {
            let labels =
                Place::new(latent.clone(), &self.latent_scaling, &self.centres, &Stop::default())?.labels;
            let by_scaling = ByScaling::new(self, &scan, 2)?;
            let seed = self.options.seed;
            let chosen = some_shown(schema, source.instances(), MOST_DONORS, seed, |_| true);
            let mut buffers = vec![vec![Buffer::default(); source.views()]; by_scaling.0.len()];
            let metrics = by_scaling.0.iter().zip(&mut buffers);
            let metrics =
                metrics.map(|(scaled_views, buffers)| Metric::new(&scan, scaled_views, &chosen, buffers));
            let metrics = metrics.collect::<Result<Vec<_>>>()?;
            let mut buffer = Buffer::default();
            let block = raw.pick(view, &chosen, &mut buffer)?;
            let leverage = Leverage::new(latent, &chosen)?;
            let donors = Donors::new(chosen, block, d, &labels, self.options.clusters, own.preparation.log);
            let filler = Filler { model: self, own, view, scan: &scan, donors, metrics, leverage };
            let few = filler.donors.instances.len() < FEWEST_DONORS;
            // A few at a time, so that the rest of a row is about as large as before.
            let hidden_cells = (cells / schema.present().max(1) / 4).max(1);
            let choose = |hide, wanted: bool| {
                if few || !wanted {
                    return Ok((None, None));
                }
                let (recipe, accuracy) = trial::choose(&filler, source, hide, seed)?;
                Result::Ok((Some(recipe), accuracy))
            };
            let (for_rows, rows_accuracy) = choose(Hide::Rows, rows > 0)?;
            let (for_cells, cells_accuracy) = choose(Hide::Cells(hidden_cells), cells > 0)?;
            (out.rows_accuracy, out.cells_accuracy) = (rows_accuracy, cells_accuracy);
            let recipes = [for_rows, for_cells];
            scan.pass(
                0..source.views(),
                out.values.values_mut().chunks_mut(scan.blocks().size() * d),
                Vec::new,
                |piece, values, gaps| {
                    *gaps = filler.block(&piece, &by_scaling, &recipes, latent, &labels, values);
                    Ok(())
                },
                |_, gaps| out.gaps.append(gaps),
            )?;
        }
        // Observed values, as given and not as prepared.
        raw.pass(
            view..view + 1,
            out.values.values_mut().chunks_mut(raw.blocks().size() * d),
            || (),
            |piece, values, ()| {
                for (instance, row) in piece.shown() {
                    let at = (instance - piece.instances.start) * d;
                    write_row(&piece.blocks[0], row, d, &mut values[at..at + d]);
                }
                Ok(())
            },
            |_, ()| {},
        )
    }
}

/// The views of a source in the scalings of a model and, if these scale rows to length 1, without that: the level of a row is not
/// informative about its cluster, but about its values.
struct ByScaling(Vec<Vec<ScaledView>>);

impl ByScaling {
    /// One or both.
    fn new(model: &Model, scan: &Scan<'_>, most: usize) -> Result<Self> {
        let (places, scaled_views) = model.scaled_views(scan)?;
        let scalings = || places.iter().map(|&place| &model.views[place].scaling);
        let mut all = vec![scaled_views];
        if most > 1 && scalings().any(Scaling::unit_rows) {
            let scaled_view = |(view, scaling): (usize, &Scaling)| {
                let scale = if scaling.unit_rows() { Scale::None } else { scaling.scale };
                ScaledView::new(scan, view, Scaling { scale, weight: 1.0, length: 1.0, ..scaling.clone() })
            };
            // Rows that were scaled to length 1 may be too long without that.
            all.extend(scalings().enumerate().map(scaled_view).collect::<Result<Vec<_>>>());
        }
        Ok(Self(all))
    }
}

/// The inputs of the imputation of one view.
struct Filler<'a> {
    model: &'a Model,
    own: &'a ViewModel,
    view: usize,
    scan: &'a Scan<'a>,
    donors: Donors<'a>,
    /// One for each of the [`ByScaling`].
    metrics: Vec<Metric<'a>>,
    leverage: Leverage,
}

impl Filler<'_> {
    /// The nearest donors of some instances, for each of these weights of the view itself.
    fn nearest(
        &self,
        (metric, own_weights): (usize, &[f64]),
        blocks: &[Block<'_>],
        scaled_views: &[ScaledView],
        queries: &[Query],
        scratch: &mut Scratch,
    ) -> Vec<Vec<Near>> {
        let weights = |own: &f64| {
            (0..scaled_views.len()).map(|view| if view == self.view { *own } else { 1.0 }).collect()
        };
        let weights: Vec<Vec<f64>> = own_weights.iter().map(weights).collect();
        self.metrics[metric].nearest(blocks, scaled_views, queries, &weights, scratch)
    }

    /// The mean of the nearest donors, in all or some features.
    fn mean(&self, recipe: &Recipe, near: &[(usize, f64)], some: Option<&[u32]>, mean: &mut Mean) {
        mean.clear();
        for (&(donor, _), weight) in near.iter().zip(near::weights(near, recipe.count)) {
            self.donors.add(donor, weight, recipe.logs, some, mean);
        }
    }

    /// The prediction `U v` in a row with this factor, in the units of the data.
    fn basis(&self, feature: usize, v: &[f64], factor: f64) -> f64 {
        self.own.scaling.undo_value(feature, dot(self.own.basis.row(feature), v), factor)
    }

    /// The factor of a row of average length.
    fn row_factor(&self) -> f64 {
        self.own.scaling.weight / self.own.scaling.length
    }

    /// The predictions of the neighbours, the cluster and the basis for a feature that some donor has. If no neighbour has it,
    /// the cluster replaces them, and the mean replaces the cluster. A donor does not predict itself.
    fn predictions(
        &self,
        feature: usize,
        logs: bool,
        near: &Mean,
        (label, donor): (usize, Option<usize>),
        basis: f64,
    ) -> [f64; 3] {
        let columns = &self.donors.columns;
        let cluster = self.donors.cluster(label, donor, feature, logs).unwrap_or(columns.mean[feature]);
        let near = near.get(feature, logs).unwrap_or(cluster);
        [near, cluster, basis.clamp(columns.low[feature], columns.high[feature])]
    }

    /// The weighted combination of the predictions.
    fn blend(&self, feature: usize, weights: &[f64; 3], predicted: &[f64; 3]) -> f64 {
        let columns = &self.donors.columns;
        let rest = 1.0 - weights.iter().sum::<f64>();
        let blend = predicted.iter().zip(weights).map(|(x, weight)| weight * x);
        let value = rest * columns.mean[feature] + blend.sum::<f64>();
        value.clamp(columns.low[feature], columns.high[feature])
    }

    /// Fills in the missing values of the instances of a block, rows by the first recipe and cells by the second, and returns
    /// what was missing.
    fn block(
        &self,
        piece: &Piece<'_>,
        by_scaling: &ByScaling,
        recipes: &[Option<Recipe>; 2],
        latent: &Matrix,
        labels: &[usize],
        values: &mut [f64],
    ) -> Vec<Gap> {
        let (block, d) = (&piece.blocks[self.view], self.own.basis.rows());
        let (mut mean, mut scratch) = (Mean::new(d), Scratch::default());
        let row = |instance: usize| block.index.row(instance - piece.instances.start);
        let missing = piece.instances.clone().filter(|&i| row(i).is_none()).collect::<Vec<_>>();
        let holes = |i: usize| row(i).map_or(&[][..], |row| block.holes.row(row));
        let lacking = piece.instances.clone().filter(|&i| !holes(i).is_empty()).collect::<Vec<_>>();
        for (instances, recipe) in [missing, lacking].iter().zip(recipes) {
            for tile in instances.chunks(TILE) {
                let query = |&instance: &usize| {
                    let place = instance - piece.instances.start;
                    Query { place, instance, donor: self.donors.place(instance) }
                };
                let queries: Vec<Query> = tile.iter().map(query).collect();
                let near = recipe.map(|recipe| {
                    let how = (recipe.metric, &[recipe.own_weight][..]);
                    let scaled_views = &by_scaling.0[recipe.metric];
                    self.nearest(how, piece.blocks, scaled_views, &queries, &mut scratch).swap_remove(0)
                });
                for (at, (&i, query)) in tile.iter().zip(&queries).enumerate() {
                    let some = row(i).map(|_| holes(i));
                    let factor = match some {
                        None => self.row_factor(),
                        Some(_) => by_scaling.0[0][self.view].full_factor(i),
                    };
                    if let (Some(recipe), Some(near)) = (recipe, &near) {
                        self.mean(recipe, &near[at], some, &mut mean);
                    }
                    let out = &mut values[query.place * d..][..d];
                    let mut fill = |f: usize| {
                        let basis = self.basis(f, latent.row(i), factor);
                        let known = recipe.filter(|_| self.donors.columns.observed[f] > 0);
                        out[f] = known.map_or(basis, |recipe| {
                            let target = (labels[i], query.donor);
                            let predicted = self.predictions(f, recipe.logs, &mean, target, basis);
                            self.blend(f, &recipe.weights, &predicted)
                        });
                    };
                    match some {
                        None => (0..d).for_each(&mut fill),
                        Some(some) => some.iter().for_each(|&f| fill(f as usize)),
                    }
                }
            }
        }
        let gap = |instance: usize| match row(instance) {
            None => Some(Gap { instance, features: None }),
            Some(_) if holes(instance).is_empty() => None,
            Some(_) => Some(Gap { instance, features: Some(holes(instance).to_vec()) }),
        };
        piece.instances.clone().filter_map(gap).collect()
    }
}

/// Writes the cells that a row has.
fn write_row(block: &Block<'_>, row: usize, features: usize, out: &mut [f64]) {
    let given = row * features..(row + 1) * features;
    match block.rows {
        Rows::DenseF32(x) => put(&x[given], out),
        Rows::DenseF64(x) => put(&x[given], out),
        Rows::SparseF32(csr) => scatter(csr, row, out),
        Rows::SparseF64(csr) => scatter(csr, row, out),
    }
}

fn put<T: Scalar>(given: &[T], out: &mut [f64]) {
    let there = given.iter().map(|x| x.to_f64()).zip(out).filter(|(x, _)| !x.is_nan());
    there.for_each(|(x, out)| *out = x);
}

fn scatter<T: Scalar>(csr: Csr<'_, T>, row: usize, out: &mut [f64]) {
    let (columns, values) = csr.row(row);
    out.fill(0.0);
    columns.iter().zip(values).for_each(|(&f, x)| out[f as usize] = x.to_f64());
}
