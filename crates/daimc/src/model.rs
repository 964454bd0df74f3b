//! Fitted models and their methods.

mod impute;
mod misfit;

use crate::confidence::confidence;
use crate::leaders;
use crate::options::Options;
use crate::place::Place;
use crate::retained::Retained;
use daimc_core::linalg::product_transposed;
use daimc_core::prepared::{Preparation, Prepared};
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::Scaling;
use daimc_core::scan::{Scan, off_the_pool};
use daimc_core::source::Source;
use daimc_core::steps::alignment;
use daimc_core::sweep::Sweep;
use daimc_core::text::{list, plain, quoted};
use daimc_core::{Error, Matrix, Result, Stop, ViewOf};
use daimc_graph::neighbours::References;

pub use impute::{Accuracy, Gap, Imputed, Shares};
pub use misfit::Misfit;

/// A fitted model: assigns new instances to clusters, explains assignments, and imputes missing values. It contains no instances
/// of the fit except anonymous [`references`](Self::references); the instances of the fit are in [`Fit`](crate::Fit).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The options of the fit.
    pub options: Options,
    /// The parts of the model that belong to one view.
    pub views: Vec<ViewModel>,
    /// The scaling of rows of V before they are clustered.
    pub latent_scaling: Scaling,
    /// The centres of the clusters among the scaled rows of V, one per column: latent × clusters.
    pub centres: Matrix,
    /// The mean row of V of the instances of each cluster, one per column: latent × clusters. Zero for a cluster without
    /// instances.
    pub means: Matrix,
    /// The number of instances of the fit in each cluster.
    pub sizes: Vec<usize>,
    /// The reproducibility of the clusters: the mean share of instances that keep their cluster in quick fits to four fifths of a
    /// sample. `None` if there were too few instances or the fit was stopped. Confidence is calibrated with it.
    pub reproducibility: Option<f64>,
    /// Instances of the fit whose clusters new instances are compared with, if neighbourhoods took part in the clustering: all,
    /// or a sample of 10 000. Without them, [`Model::place`] uses V alone.
    pub references: Option<References>,
    /// Sums over the instances that the model has learnt from, so that it can be [updated](crate::Online); `None` in files of
    /// earlier versions.
    pub retained: Option<Retained>,
}

/// The part of a model that belongs to one view.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ViewModel {
    /// The view's name.
    pub name: String,
    /// The names of its features, if given.
    pub feature_names: Option<Vec<String>>,
    /// U: features × latent.
    pub basis: Matrix,
    /// B: features × latent.
    pub alignment: Matrix,
    /// The substitutes of missing cells.
    pub preparation: Preparation,
    /// The scaling of the view.
    pub scaling: Scaling,
    /// The share of the runs in which each feature leads each cluster, from 0 to 1: features × clusters. A feature leads if it is
    /// among the [`leading`](Self::leading) of largest absolute weight ([`Model::weights`]) for the run's matching cluster, with
    /// the same sign. Runs differ in their start, not in their data. `None` for a single run; see
    /// [`Daimc::runs`](crate::Daimc::runs).
    pub stability: Option<Matrix>,
}

impl ViewModel {
    /// The name of a feature, or its number.
    #[must_use]
    pub fn feature_name(&self, feature: usize) -> String {
        let name = self.feature_names.as_ref().and_then(|names| names.get(feature));
        name.cloned().unwrap_or_else(|| feature.to_string())
    }

    /// The relevance of each feature: the norm of its row of B.
    #[must_use]
    pub fn relevance(&self) -> Vec<f64> {
        self.alignment.iter_rows().map(alignment::row_norm).collect()
    }

    /// The number of features that lead a cluster, as in [`stability`](Self::stability): one twentieth of the view's features, at
    /// least ten and at most half.
    #[must_use]
    pub fn leading(&self) -> usize {
        leaders::leading(self.basis.rows())
    }

    /// The features that were kept: those whose row of B is not zero. See [`Penalty::Relative`].
    ///
    /// [`Penalty::Relative`]: crate::Penalty::Relative
    #[must_use]
    pub fn selected(&self) -> Vec<usize> {
        let rows = self.alignment.iter_rows().enumerate();
        rows.filter(|(_, row)| row.iter().any(|&b| b != 0.0)).map(|(feature, _)| feature).collect()
    }
}

impl Model {
    /// The view of this name.
    ///
    /// # Errors
    /// When the model has no such view.
    pub fn view(&self, name: &str) -> Result<&ViewModel> {
        self.place_of(name).map(|place| &self.views[place])
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        self.views.iter().position(|view| view.name == name).ok_or_else(|| Error::UnknownView {
            view: name.into(),
            known: list(self.views.iter().map(|view| plain(&view.name))),
        })
    }

    /// The prepared rows of a source, each view with its scaling in the model, and the indices of the views in the model.
    pub(crate) fn scaled_views(&self, scan: &Scan<'_>) -> Result<(Vec<usize>, Vec<ScaledView>)> {
        let (mut places, mut scaled_views) = (Vec::new(), Vec::new());
        for (number, given) in scan.schema().views().enumerate() {
            let place = self.place_of(given.name())?;
            let own = &self.views[place];
            own.check(given)?;
            scaled_views.push(ScaledView::new(scan, number, own.scaling.clone())?);
            places.push(place);
        }
        Ok((places, scaled_views))
    }

    /// Some of the model's views, with missing cells filled as in the fit. A source that does not record missing cells is read
    /// once.
    ///
    /// # Errors
    /// When a view is unknown, its features are not those of the model, or rows cannot be read.
    pub fn prepare<'a>(&self, source: &'a dyn Source) -> Result<Prepared<'a>> {
        let own = |given: ViewOf<'_>| {
            let own = self.view(given.name())?;
            own.check(given)?;
            Ok(own.preparation.clone())
        };
        let preparations = source.schema().views().map(own).collect::<Result<Vec<_>>>()?;
        Prepared::new(source, &preparations)
    }

    /// The weight of each feature of a view for a cluster. `Bᵀx` predicts the row of V, so feature f moves it along the cluster's
    /// centre c by `b_fᵀc / ‖c‖`; if a cluster is a column of V, this is its column of B.
    ///
    /// # Panics
    /// When there is no such cluster.
    #[must_use]
    pub fn weights(&self, view: &ViewModel, cluster: usize) -> Vec<f64> {
        leaders::weights(&view.alignment, &self.centres, cluster)
    }

    /// The rows of V of new instances, with fixed bases, from any of the model's views (at least one per instance) and any of
    /// their cells.
    ///
    /// # Errors
    /// When a view is unknown or its features differ from those of the model.
    pub fn transform(&self, source: &dyn Source) -> Result<Matrix> {
        off_the_pool(source, || self.transform_here(source))
    }

    fn transform_here(&self, source: &dyn Source) -> Result<Matrix> {
        let prepared = self.prepare(source)?;
        let scan = Scan::new(&prepared, &Stop::default());
        let (places, scaled_views) = self.scaled_views(&scan)?;
        self.latent_rows(scan, &places, scaled_views)
    }

    fn latent_rows(&self, scan: Scan<'_>, places: &[usize], scaled_views: Vec<ScaledView>) -> Result<Matrix> {
        let bases: Vec<Matrix> = places.iter().map(|&place| self.views[place].basis.clone()).collect();
        Sweep::new(scan, scaled_views, self.options.latent).place(&bases)
    }

    /// Assigns new instances to clusters: their rows of V, clusters and confidence. If neighbourhoods took part in the clustering
    /// of the fit, the cluster is the most likely one by the nearest [references](Self::references) in the views of the instance;
    /// an instance with the same rows as a reference gets its cluster. Otherwise it is the cluster whose centre is nearest to the
    /// row of V.
    ///
    /// # Errors
    /// As [`Model::transform`].
    pub fn place(&self, source: &dyn Source) -> Result<Place> {
        off_the_pool(source, || self.place_here(source))
    }

    fn place_here(&self, source: &dyn Source) -> Result<Place> {
        let prepared = self.prepare(source)?;
        let scan = Scan::new(&prepared, &Stop::default());
        let (places, scaled_views) = self.scaled_views(&scan)?;
        let clusters = self.options.clusters;
        let predicted = match &self.references {
            Some(references) => Some(references.ask(&scan, &scaled_views, &places, clusters)?),
            None => None,
        };
        let latent = self.latent_rows(scan, &places, scaled_views)?;
        let mut place = Place::new(latent, &self.latent_scaling, &self.centres, &Stop::default())?;
        if let Some(predicted) = predicted {
            place.follow(&predicted);
        }
        place.confidence = confidence(place.confidence, self.reproducibility);
        Ok(place)
    }

    /// Marks the model of a fit as the first batch of a stream: [updates](crate::Online) may revise its clusters, as long as the
    /// stream has fewer than 200 instances per cluster. Without this, and in a model with [references](Self::references), updates
    /// start from the clusters of the fit. [`Online::fit`](crate::Online::fit) calls this itself.
    pub fn begin_stream(&mut self) {
        if let (None, Some(retained)) = (&self.references, &mut self.retained) {
            retained.begin_stream();
        }
    }

    /// The clusters of new instances.
    ///
    /// # Errors
    /// As [`Model::transform`].
    pub fn predict(&self, source: &dyn Source) -> Result<Vec<usize>> {
        Ok(self.place(source)?.labels)
    }

    /// Fails unless V has the model's number of columns.
    fn check_columns(&self, latent: &Matrix) -> Result<()> {
        let (expected, found) = (self.options.latent, latent.columns());
        if expected == found {
            return Ok(());
        }
        Err(Error::LengthMismatch { what: "columns of V".into(), expected, found })
    }

    /// The model of a view of a source, after a check of its features and of the number of rows of V.
    fn checked(&self, source: &dyn Source, number: usize, latent: &Matrix) -> Result<&ViewModel> {
        let given = source.schema().view(number);
        let own = self.view(given.name())?;
        own.check(given)?;
        let (found, expected) = (source.instances(), latent.rows());
        if found != expected {
            return Err(Error::LengthMismatch { what: "instances".into(), expected, found });
        }
        self.check_columns(latent)?;
        Ok(own)
    }

    /// The reconstruction of a view, given rows of V: `U v`, in the units of the data. If rows were scaled to length 1, the
    /// reconstruction has the mean length of the rows of this view.
    ///
    /// # Errors
    /// When the view is unknown or the number of columns of `latent` differs from that of the model.
    pub fn reconstruct(&self, view: &str, latent: &Matrix) -> Result<Matrix> {
        let own = self.view(view)?;
        self.check_columns(latent)?;
        let mut rows = product_transposed(latent, &own.basis);
        for i in 0..rows.rows() {
            own.scaling.undo(rows.row_mut(i));
        }
        Ok(rows)
    }
}

impl ViewModel {
    fn check(&self, view: ViewOf<'_>) -> Result<()> {
        let expected = self.basis.rows();
        if view.features() != expected {
            let what = "features (as many as the model was fitted to)";
            return Err(Error::Shape { view: self.name.clone(), what, expected, found: view.features() });
        }
        let (Some(known), Some(given)) = (&self.feature_names, view.names()) else { return Ok(()) };
        match known.iter().zip(given).position(|(known, given)| known != given) {
            None => Ok(()),
            Some(column) => Err(Error::Unsuitable {
                what: "features",
                value: given[column].clone(),
                reason: format!(
                    "column {column} of view {} is {} in the model; reorder the columns as in the model",
                    quoted(&self.name),
                    quoted(&known[column])
                ),
            }),
        }
    }
}
