//! Online learning: a model is updated with batches of new instances, of which it keeps only sums.
//!
//! The bases of a model are solved from statistics, `S_v = Σ w v vᵀ` and `C_v = Σ w x vᵀ`. A batch is assigned with the present
//! bases. Its statistics are added to those of the past, which may be reduced by a factor. The bases are solved again, and the
//! batch is assigned again, until hardly an instance changes its cluster:
//!
//! ```text
//! S ← μ S + Σ_batch w v vᵀ,      C ← μ C + Σ_batch w x vᵀ,      U, B as in an iteration
//! ```
//!
//! If columns of V stand for clusters, `v` is the row of a start from the clusters, as in the last step of a fit
//! (`consolidate.rs`), so that bases stay the means of clusters. Scalings stay those of the fit. So does the scale of the columns
//! of V, which Eq. 20–21 would change with every batch: the centres of clusters among rows of V keep their meaning.
//!
//! A fitted model starts from its own clusters, and a batch is refused if the model would place its own instances differently
//! afterwards (`lost.rs`). Only the clusters of a stream that began with a few instances are revised (`cells.rs`).
//!
//! A model with references assigns a batch by them, as `Model::place` does, and keeps them as they are. Rows of a batch do not
//! become references: the directions fit the rows of the fit, and other rows are shorter along them. They would be the nearest
//! neighbours of all other new rows. On planted data (256 instances, 1450 features), after a batch of 64 instances of one cluster,
//! 28 % of new instances were then right, instead of 99.9 %.

mod cells;
mod lost;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use crate::cluster_sums::mean_rows;
use crate::confidence::confidence;
use crate::descent::{Descent, Outcome};
use crate::fit::{Decision, Fit, Timings};
use crate::missingness::Missingness;
use crate::model::{Misfit, Model, ViewModel};
use crate::novelty;
use crate::options::{Options, Penalty};
use crate::place::Place;
use crate::retained::{Cells, Learnt, Retained};
use cells::placed;
use daimc_core::accelerator::DeviceUsed;
use daimc_core::kmeans;
use daimc_core::linalg::product;
use daimc_core::prepared::{MissingCells, Prepared};
use daimc_core::scale::Observed;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::{Scan, off_the_pool};
use daimc_core::source::Source;
use daimc_core::statistics::{Statistics, Totals};
use daimc_core::steps::basis::Bases;
use daimc_core::steps::objective::{Objective, misalignment, sparsity};
use daimc_core::sweep::Sweep;
use daimc_core::text::{list, plain};
use daimc_core::{Error, Ids, Matrix, Result, Stop, Views};
use daimc_graph::neighbours::{Predictions, References, ViewReferences};
pub use stream::{StreamProgress, Streamed};

/// Updates of a model with new instances.
///
/// ```
/// use daimc::{Daimc, Online, View, Views};
///
/// let rows = |values: Vec<f64>| Views::new(vec![View::dense("a", 2, values)?]);
/// let fit = Daimc::new(2).fit(&rows(vec![1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9])?)?;
/// let update = Online::new().memory_factor(0.9).update(&fit, &rows(vec![0.1, 0.8, 1.1, 0.2])?)?;
/// assert_eq!(update.fit.labels, [fit.labels[2], fit.labels[0]]);
/// assert!(update.drift[0].total < 0.5 && update.died.is_empty());
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Online {
    memory_factor: f64,
    new_views: Vec<String>,
    stop: Stop,
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Update {
    /// The new model, with the instances of the batch.
    pub fit: Fit,
    /// The drift of each view of the model.
    pub drift: Vec<Drift>,
    /// The instances of the batch that no cluster explains: their distance from the old model's reconstruction is larger than for
    /// all but one in two hundred of the instances that it had learnt from.
    pub unexplained: Vec<usize>,
    /// Groups of such instances that are close to each other, the largest first: candidates for new clusters.
    pub emerging: Vec<Vec<usize>>,
    /// Clusters of which less than one instance, or less than one hundredth of an average cluster, is remembered.
    pub died: Vec<usize>,
    /// The views that were added.
    pub added: Vec<String>,
}

/// The drift of a view: the change of the expected rows of the clusters, `U m_k` for the mean row `m_k` of V, relative to their
/// length before.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Drift {
    /// The view.
    pub view: String,
    /// All clusters together.
    pub total: f64,
    /// Each cluster.
    pub clusters: Vec<f64>,
}

/// The maximum number of times that a batch is assigned, and the share of its instances that may change their cluster in the last
/// one.
const ROUNDS: usize = 5;
const MOVED: usize = 200;

/// A cluster has died if its remembered size is below this share of an average cluster.
const DEAD: f64 = 0.01;

impl Default for Online {
    fn default() -> Self {
        Self::new()
    }
}

impl Online {
    /// An update that forgets nothing, and rejects views that the model does not have.
    #[must_use]
    pub fn new() -> Self {
        Self { memory_factor: 1.0, new_views: Vec::new(), stop: Stop::default() }
    }

    /// The weight of earlier instances after a batch, above 0 and at most 1 (the default): with 0.9, instances of ten batches ago
    /// have a weight of about one third. A view that the batch lacks is not reduced. A factor below 1 removes the
    /// [references](Model::references), which cannot be reduced: the model then assigns instances by V alone.
    #[must_use]
    pub fn memory_factor(mut self, factor: f64) -> Self {
        self.memory_factor = factor;
        self
    }

    /// Allows a batch to add a view that the model does not have; without this, a new view is an error. The view is scaled by its
    /// rows in the batch, and its basis is fitted to the clusters of the other views. Instances without any other view have no
    /// influence until then.
    #[must_use]
    pub fn add_view(mut self, name: impl Into<String>) -> Self {
        self.new_views.push(name.into());
        self
    }

    /// A switch that ends an update, which then has no result.
    #[must_use]
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Updates a fit with a batch of new instances, which may have any of its views. Clusters keep their numbers.
    ///
    /// # Errors
    /// When the memory factor is out of range, the model does not contain statistics, the batch has views or features that the
    /// model does not have, no instance of the batch is present in any view of the model, an ID is one that was learnt from
    /// before, the model would place its own instances differently ([`Error::ClusterLost`]), or rows cannot be read.
    pub fn update(&self, fit: &Fit, batch: &dyn Source) -> Result<Update> {
        if let Ids::Names(names) = batch.schema().ids() {
            let mut before = fit.learnt.clone();
            before.add(&fit.ids);
            let known: Vec<&String> = names.iter().filter(|name| before.contains(name)).collect();
            if let Some(first) = known.first() {
                return Err(Error::LearntBefore { id: (*first).clone(), count: known.len() });
            }
        }
        let mut update = self.update_model(&fit.model, batch)?;
        update.fit.learnt.clone_from(&fit.learnt);
        update.fit.learnt.add(&fit.ids);
        Ok(update)
    }

    /// As [`Online::update`], for a bare model, which does not record the IDs that it has learnt from.
    ///
    /// # Errors
    /// As [`Online::update`].
    pub fn update_model(&self, model: &Model, batch: &dyn Source) -> Result<Update> {
        let factor = self.memory_factor;
        if !(factor > 0.0 && factor <= 1.0) {
            let reason = "must be above 0 (everything is forgotten) and at most 1 (nothing is)".into();
            return Err(Error::Option { option: "memory_factor", value: factor.to_string(), reason });
        }
        if model.retained.is_none() {
            return Err(Error::NotUpdatable);
        }
        off_the_pool(batch, || self.updated(model, batch))
    }

    fn updated(&self, before: &Model, batch: &dyn Source) -> Result<Update> {
        let start = Instant::now();
        let mut model = before.clone();
        let added = self.grow(&mut model, batch)?;
        let Some(mut retained) = model.retained.take() else { return Err(Error::NotUpdatable) };
        let prepared = model.prepare(batch)?;
        let scan = Scan::new(&prepared, &self.stop);
        let (places, mut scaled_views) = model.scaled_views(&scan)?;
        let new = places.iter().enumerate().filter(|(_, place)| **place >= before.views.len());
        for (own, &place) in new {
            let view = &mut model.views[place];
            scaled_views[own] =
                ScaledView::fit(&scan, own, view.scaling.clone(), model.options.equal_weight)?;
            view.scaling = scaled_views[own].scaling.clone();
        }
        let sweep = Arc::new(Sweep::new(scan, scaled_views, model.options.latent));
        let shows = |own: usize| sweep.scan.schema().view(own).present();
        let mut renewed = vec![false; model.views.len()];
        places.iter().enumerate().for_each(|(own, &place)| renewed[place] = shows(own) > 0);
        let mut known = places.iter().filter(|place| **place < before.views.len());
        if !known.any(|&place| renewed[place]) {
            let known = list(before.views.iter().map(|view| plain(&view.name)));
            let reason =
                format!("no instance of the batch is present in any view of the model, which has {known}");
            return Err(Error::Unsuitable { what: "batch", value: names(batch), reason });
        }

        let surprise = Surprise::of(&sweep, before, &retained, &places)?;
        retained.fade(self.memory_factor, &renewed);
        let ask = |references: &References| {
            references.ask(&sweep.scan, &sweep.scaled_views, &places, model.options.clusters)
        };
        let predicted = model.references.as_ref().map(ask).transpose()?;
        if self.memory_factor < 1.0 {
            // References do not fade.
            model.references = None;
        }
        let place = learn(&sweep, &mut model, &mut retained, &places, predicted.as_ref())?;
        place.labels.iter().for_each(|&label| model.sizes[label] += 1);
        let misfits = misfits(&sweep, &model, &places, &place.latent)?;
        retained.spread.add(&misfits, &retained.shown, &places, 1.0);

        let average = retained.instances() / model.options.clusters as f64;
        let dead = |cluster: &usize| retained.members[*cluster] < (DEAD * average).max(1.0);
        let (died, alive): (Vec<usize>, Vec<usize>) = (0..model.options.clusters).partition(dead);
        if retained.cells.is_none() {
            lost::check(before, &model, &alive, &self.stop)?;
        }
        model.retained = Some(retained);
        let drift = drift(before, &model);
        let given = Scan::new(batch, &self.stop);
        let mut missing_cells = vec![MissingCells::default(); model.views.len()];
        for (own, &place) in places.iter().enumerate() {
            missing_cells[place] = Scaling::observe(&given, own, Scale::None, None)?.missing;
        }
        let fit =
            Self::placed(model, &prepared, place, &misfits, missing_cells, (sweep.scan.passes(), start));
        let Surprise { unexplained, emerging } = surprise;
        Ok(Update { fit, drift, unexplained, emerging, died, added })
    }

    /// Adds the views that the model does not have, if allowed.
    fn grow(&self, model: &mut Model, batch: &dyn Source) -> Result<Vec<String>> {
        let (schema, options) = (batch.schema(), model.options.clone());
        for name in &self.new_views {
            let wrong = |reason| Err(Error::Option { option: "add_view", value: name.clone(), reason });
            if model.views.iter().any(|view| view.name == *name) {
                return wrong("the model already has this view: remove the option".into());
            }
            if !schema.views().any(|view| view.name() == name) {
                return wrong(format!("the views of the batch are {}", names(batch)));
            }
        }
        let mut added = Vec::new();
        let scan = Scan::new(batch, &self.stop);
        for (number, given) in schema.views().enumerate() {
            if model.views.iter().any(|view| view.name == given.name()) {
                continue;
            }
            if !self.new_views.iter().any(|name| name == given.name()) {
                let known = list(model.views.iter().map(|view| plain(&view.name)));
                let reason = format!("the model has {known}; allow this view to be added, or remove it");
                return Err(Error::Unsuitable { what: "view", value: given.name().into(), reason });
            }
            let scale = options.view_scales.get(given.name()).unwrap_or(&options.scale);
            let Observed { scalings, preparation, .. } =
                Scaling::observe(&scan, number, *scale, options.top_features)?;
            if let Some(references) = &mut model.references {
                references.views.push(ViewReferences { doubt: 1.0, ..ViewReferences::default() });
            }
            let zeros = Matrix::zeros(given.features(), options.latent);
            model.views.push(ViewModel {
                name: given.name().into(),
                feature_names: given.names().map(<[String]>::to_vec),
                basis: zeros.clone(),
                alignment: zeros,
                preparation,
                scaling: scalings.likely().clone(),
                stability: None,
            });
            if let Some(retained) = &mut model.retained {
                retained.add_view(given.features());
            }
            added.push(given.name().to_owned());
        }
        Ok(added)
    }

    /// The model with the instances of the batch.
    fn placed(
        model: Model,
        batch: &Prepared<'_>,
        place: Place,
        misfits: &[Misfit],
        missing_cells: Vec<MissingCells>,
        (passes, start): (usize, Instant),
    ) -> Fit {
        let schema = batch.schema();
        let Options { clusters, seed, .. } = model.options;
        let reason = match model.references {
            Some(_) => "the references of the fit assigned the instances",
            None => "updates do not use neighbourhoods",
        };
        let objective = objective(&model, misfits);
        Fit {
            missing_cells,
            ids: schema.ids().clone(),
            learnt: Learnt::default(),
            neighbours: Decision::without(Some(reason.into())),
            missingness: Missingness::of(schema, &place.labels, clusters, seed),
            significance: None,
            runs: Vec::new(),
            objective,
            history: vec![objective],
            outcome: Outcome::Converged,
            passes,
            timings: Timings { iterate: start.elapsed().as_secs_f64(), ..Timings::default() },
            device: DeviceUsed::default(),
            confidence: confidence(place.confidence, model.reproducibility),
            latent: place.latent,
            map: None,
            map_source: None,
            labels: place.labels,
            model,
        }
    }
}

fn names(batch: &dyn Source) -> String {
    list((0..batch.views()).map(|view| plain(batch.name(view))))
}

/// The error of the reconstruction of the instances of a batch, in each view of the batch.
fn misfits(sweep: &Sweep<'_>, model: &Model, places: &[usize], latent: &Matrix) -> Result<Vec<Misfit>> {
    let of_view = |(own, &place): (usize, &usize)| {
        Misfit::of(&sweep.scan, own, &sweep.scaled_views[own], &model.views[place].basis, latent)
    };
    places.iter().enumerate().map(of_view).collect()
}

/// Adds the statistics of the batch and solves the bases, until the clusters of the batch stay the same; a young stream may
/// revise its clusters. `predicted` are the clusters of the batch by the references.
fn learn(
    sweep: &Arc<Sweep<'_>>,
    model: &mut Model,
    retained: &mut Retained,
    places: &[usize],
    predicted: Option<&Predictions>,
) -> Result<Place> {
    let (options, stop) = (model.options.clone(), sweep.scan.stop().clone());
    for (own, &place) in places.iter().enumerate() {
        retained.squares[place] += sweep.scaled_views[own].sum_squares;
        retained.shown[place] += sweep.scan.schema().view(own).present() as f64;
    }
    let squares = retained.squares.clone();
    let solve = |model: &mut Model, totals: Totals, views: &[usize]| {
        let mut descent = Descent::new(&options, squares.clone(), Bases::Fitted, Statistics::of_all(totals))?;
        descent.solve()?;
        let (bases, alignments) = descent.into_parts();
        let solved = bases.into_iter().zip(alignments).enumerate();
        for (number, (basis, alignment)) in solved.filter(|(number, _)| views.contains(number)) {
            model.views[number].basis = basis;
            model.views[number].alignment = alignment;
        }
        Ok(())
    };
    let young = |cells: &Cells| predicted.is_none() && cells.are_young(options.clusters);
    if let Some(cells) = retained.cells.take().filter(young) {
        return cells::revisit(sweep, cells, model, retained, places, solve);
    }
    let past = retained.clone();
    let assigned = |model: &Model| {
        let mut place = placed(sweep, model, places, &stop)?;
        if let Some(predicted) = predicted {
            place.follow(predicted);
        }
        Ok::<_, Error>(place)
    };
    let mut place = assigned(model)?;
    for _ in 0..ROUNDS {
        let mut rows = match &past.rows {
            Some(members) => members.rows(&place.labels, &place.latent),
            None => place.latent.clone(),
        };
        retained.totals = past.with(&sweep.gather(&mut rows, &stop)?.whole()?, places);
        // The batch has no information about the other views.
        solve(model, retained.totals.clone(), places)?;
        let before = std::mem::replace(&mut place, assigned(model)?);
        let moved = place.labels.iter().zip(&before.labels).filter(|(now, before)| now != before).count();
        if moved * MOVED <= place.labels.len() {
            break;
        }
    }
    move_centres(model, retained, &place)?;
    Ok(place)
}

/// Moves the centres and the mean rows of the clusters towards those of the batch, weighted by numbers of instances.
fn move_centres(model: &mut Model, retained: &mut Retained, place: &Place) -> Result<()> {
    let clusters = model.options.clusters;
    let centres = {
        let rows = Views::of_matrix(&place.latent)?;
        let rows = Scan::new(&rows, &Stop::default());
        let scaled_view = ScaledView::new(&rows, 0, model.latent_scaling.clone())?;
        kmeans::means(&rows, &scaled_view, &place.labels, clusters)?
    };
    let (means, counts) = mean_rows(&place.latent, &place.labels, clusters);
    for (cluster, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        retained.members[cluster] += count as f64;
        let share = count as f64 / retained.members[cluster];
        for (old, new) in [(&mut model.centres, &centres), (&mut model.means, &means)] {
            for k in 0..old.rows() {
                old[(k, cluster)] += share * (new[(k, cluster)] - old[(k, cluster)]);
            }
        }
    }
    Ok(())
}

/// The instances that the old model does not explain.
struct Surprise {
    unexplained: Vec<usize>,
    emerging: Vec<Vec<usize>>,
}

impl Surprise {
    /// For instances that have a view of the model, from the views that it had before.
    fn of(sweep: &Sweep<'_>, model: &Model, retained: &Retained, places: &[usize]) -> Result<Self> {
        let limit = retained.spread.limit();
        if limit.is_infinite() {
            return Ok(Self { unexplained: Vec::new(), emerging: Vec::new() });
        }
        // An added view has a basis of zeros, and predicts nothing.
        let bases: Vec<Matrix> = places
            .iter()
            .enumerate()
            .map(|(own, &place)| match model.views.get(place) {
                Some(view) => view.basis.clone(),
                None => Matrix::zeros(sweep.scan.schema().view(own).features(), model.options.latent),
            })
            .collect();
        let v = sweep.place(&bases)?;
        let of_view = |own: usize| Misfit::of(&sweep.scan, own, &sweep.scaled_views[own], &bases[own], &v);
        let misfits = (0..places.len()).map(of_view).collect::<Result<Vec<_>>>()?;
        let misfits = retained.spread.misfits(&misfits, &retained.shown, places);
        let mut far: Vec<(usize, f64)> = misfits
            .iter()
            .enumerate()
            .filter_map(|(i, own)| Some((i, own.filter(|own| *own > limit)?)))
            .collect();
        let unexplained = far.iter().map(|(i, _)| *i).collect();
        far.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        far.truncate(novelty::MOST);
        let mut farthest: Vec<u32> = far.iter().map(|(i, _)| daimc_core::index::index(*i)).collect();
        farthest.sort_unstable();
        let known = (&retained.spread, limit);
        let groups = novelty::groups(sweep, known, (&retained.shown, places), &farthest)?;
        let emerging =
            groups.into_iter().map(|group| group.into_iter().map(|i| i as usize).collect()).collect();
        Ok(Self { unexplained, emerging })
    }
}

/// The drift of the views of a model.
fn drift(before: &Model, after: &Model) -> Vec<Drift> {
    let of_view = |(old, new): (&ViewModel, &ViewModel)| {
        let (old_rows, new_rows) = (product(&old.basis, &before.means), product(&new.basis, &after.means));
        let clusters = after.options.clusters;
        let (mut moved, mut length) = (vec![0.0; clusters], vec![0.0; clusters]);
        for f in 0..old_rows.rows() {
            for (k, (old, new)) in old_rows.row(f).iter().zip(new_rows.row(f)).enumerate() {
                moved[k] += (new - old).powi(2);
                length[k] += old.powi(2);
            }
        }
        let share = |moved: f64, length: f64| if length > 0.0 { (moved / length).sqrt() } else { 0.0 };
        Drift {
            view: new.name.clone(),
            total: share(moved.iter().sum(), length.iter().sum()),
            clusters: moved.iter().zip(&length).map(|(moved, length)| share(*moved, *length)).collect(),
        }
    };
    before.views.iter().zip(&after.views).map(of_view).collect()
}

/// J of the batch.
fn objective(model: &Model, misfits: &[Misfit]) -> Objective {
    let loss = misfits.iter().flat_map(|misfit| &misfit.error).sum();
    let (mut misaligned, mut weighted, mut sparse) = (0.0, 0.0, 0.0);
    let Options { alpha, beta, penalty, latent, .. } = model.options;
    for (number, view) in model.views.iter().enumerate() {
        let own = misalignment(&view.basis, &view.alignment);
        let squares = model.retained.as_ref().map_or(0.0, |retained| retained.squares[number]);
        misaligned += own;
        weighted += own * alpha * squares / latent as f64;
        sparse += sparsity(&view.alignment);
    }
    let mut objective = Objective::new(loss, misaligned, sparse, alpha, beta);
    if penalty != Penalty::Published {
        objective.total = loss + weighted;
    }
    objective
}
