//! What a fit has learnt, and what can be done with it.

mod impute;
mod misfit;

use crate::confidence::confidence;
use crate::leaders;
use crate::lens::Lens;
use crate::linalg::product_transposed;
use crate::neighbours::References;
use crate::options::Options;
use crate::place::Place;
use crate::prepared::{Preparation, Prepared};
use crate::retained::Retained;
use crate::scaling::Scaling;
use crate::scan::{Scan, off_the_pool};
use crate::source::Source;
use crate::steps::alignment;
use crate::sweep::Sweep;
use crate::text::{list, plain, quoted};
use crate::{Error, Matrix, Result, Stop, ViewOf};

pub use impute::{Accuracy, Gap, Imputed, Shares};
pub use misfit::Misfit;

/// What a fit has learnt: places new instances, explains where they are put, and reconstructs what they lack. Of single
/// instances it knows what [`references`](Self::references) hold, without their IDs; those that it was fitted to are in the
/// [`Fit`](crate::Fit).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The options it was fitted with.
    pub options: Options,
    /// What belongs to each view.
    pub views: Vec<ViewModel>,
    /// How rows of V are scaled before they are clustered.
    pub latent_scaling: Scaling,
    /// The centres of the clusters among the scaled rows of V, one per column: latent × clusters.
    pub centres: Matrix,
    /// The mean row of V of the instances of each cluster, one per column: latent × clusters. Zero for a cluster without
    /// instances.
    pub means: Matrix,
    /// How many instances of the fit are in each cluster.
    pub sizes: Vec<usize>,
    /// How far parts of the data lead to the same clusters: the mean share of instances that stay where they are in quick fits to
    /// four fifths of a sample. `None` where there were too few instances to tell, or the fit was stopped. Confidence is made of
    /// it.
    pub reproducibility: Option<f64>,
    /// Instances of the fit whose clusters new ones are compared with, where neighbours had a say in them: all, or a sample of
    /// 10 000. [`Model::place`] does without where there are none.
    pub references: Option<References>,
    /// What it keeps of the instances that it has learnt from, so that it can be [updated](crate::Online); `None` in files of
    /// earlier versions.
    pub retained: Option<Retained>,
}

/// The part of a model that belongs to one view.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ViewModel {
    /// The view's name.
    pub name: String,
    /// The names of its features, if they had any.
    pub feature_names: Option<Vec<String>>,
    /// U: features × latent.
    pub basis: Matrix,
    /// B: features × latent.
    pub alignment: Matrix,
    /// What stands for missing cells.
    pub preparation: Preparation,
    /// How the view was scaled.
    pub scaling: Scaling,
    /// The share of the runs in which each feature leads each cluster, from 0 to 1: features × clusters. A feature leads if
    /// it is among the [`leading`](Self::leading) of largest absolute weight ([`Model::weights`]) for the run's cluster that
    /// matches, on the same side, for or against. Runs differ in their start, not in their data. `None` if there was but
    /// one; see [`Daimc::runs`](crate::Daimc::runs).
    pub stability: Option<Matrix>,
}

impl ViewModel {
    /// The name of a feature, or its number.
    #[must_use]
    pub fn feature_name(&self, feature: usize) -> String {
        let name = self.feature_names.as_ref().and_then(|names| names.get(feature));
        name.cloned().unwrap_or_else(|| feature.to_string())
    }

    /// How much each feature matters: the norm of its row of B.
    #[must_use]
    pub fn relevance(&self) -> Vec<f64> {
        self.alignment.iter_rows().map(alignment::row_norm).collect()
    }

    /// How many features lead a cluster, as [`stability`](Self::stability) has it: a twentieth of the view's features, but at
    /// least ten and at most half.
    #[must_use]
    pub fn leading(&self) -> usize {
        leaders::leading(self.basis.rows())
    }

    /// The features that were not left out: those whose row of B is not zero. See [`Penalty::Relative`].
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
    /// When there is none.
    pub fn view(&self, name: &str) -> Result<&ViewModel> {
        self.place_of(name).map(|place| &self.views[place])
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        self.views.iter().position(|view| view.name == name).ok_or_else(|| Error::UnknownView {
            view: name.into(),
            known: list(self.views.iter().map(|view| plain(&view.name))),
        })
    }

    /// The rows of a source that was prepared, each view seen through the scaling that the model has for it, and the places
    /// of the views in the model.
    pub(crate) fn lenses(&self, scan: &Scan<'_>) -> Result<(Vec<usize>, Vec<Lens>)> {
        let (mut places, mut lenses) = (Vec::new(), Vec::new());
        for (number, given) in scan.schema().views().enumerate() {
            let place = self.place_of(given.name())?;
            let own = &self.views[place];
            own.check(given)?;
            lenses.push(Lens::new(scan, number, own.scaling.clone())?);
            places.push(place);
        }
        Ok((places, lenses))
    }

    /// Some of the model's views, whose missing cells are filled as in the fit. A source that does not tell whether cells are
    /// missing is looked through once.
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

    /// What each feature of a view says for a cluster. `Bᵀx` regresses the row of V, so feature f moves it along the
    /// cluster's centre c by `b_fᵀc / ‖c‖`; where a cluster is a column of V, that is its column of B.
    ///
    /// # Panics
    /// When there is no such cluster.
    #[must_use]
    pub fn weights(&self, view: &ViewModel, cluster: usize) -> Vec<f64> {
        leaders::weights(&view.alignment, &self.centres, cluster)
    }

    /// The rows of V of new instances, from whichever of the model's views they have (at least one) and whichever cells of
    /// these, with the bases fixed.
    ///
    /// # Errors
    /// When a view is unknown or its features are not those of the model.
    pub fn transform(&self, source: &dyn Source) -> Result<Matrix> {
        off_the_pool(source, || self.transform_here(source))
    }

    fn transform_here(&self, source: &dyn Source) -> Result<Matrix> {
        let prepared = self.prepare(source)?;
        let scan = Scan::new(&prepared, &Stop::default());
        let (places, lenses) = self.lenses(&scan)?;
        self.latent_rows(scan, &places, lenses)
    }

    fn latent_rows(&self, scan: Scan<'_>, places: &[usize], lenses: Vec<Lens>) -> Result<Matrix> {
        let bases: Vec<Matrix> = places.iter().map(|&place| self.views[place].basis.clone()).collect();
        Sweep::new(scan, lenses, self.options.latent).place(&bases)
    }

    /// Places new instances: their rows of V, clusters and confidence. If neighbours had a say in the clusters of the fit, they
    /// have it here: the cluster is the one that the nearest [references](Self::references) in the views of an instance make most
    /// likely, and an instance whose rows are those of a reference is in its cluster. Otherwise it is the one whose centre is
    /// nearest to the row of V.
    ///
    /// # Errors
    /// As [`Model::transform`].
    pub fn place(&self, source: &dyn Source) -> Result<Place> {
        off_the_pool(source, || self.place_here(source))
    }

    fn place_here(&self, source: &dyn Source) -> Result<Place> {
        let prepared = self.prepare(source)?;
        let scan = Scan::new(&prepared, &Stop::default());
        let (places, lenses) = self.lenses(&scan)?;
        let clusters = self.options.clusters;
        let said = match &self.references {
            Some(references) => Some(references.ask(&scan, &lenses, &places, clusters)?),
            None => None,
        };
        let latent = self.latent_rows(scan, &places, lenses)?;
        let mut place = Place::new(latent, &self.latent_scaling, &self.centres, &Stop::default())?;
        if let Some(said) = said {
            place.follow(&said);
        }
        place.confidence = confidence(place.confidence, self.reproducibility);
        Ok(place)
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

    /// What the model knows of a view of a source, if its features are those of the model and there is a row of V for each
    /// instance.
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

    /// What a view would show of instances, given their rows of V: `U v`, in the units of the data. Where rows were
    /// brought to length 1, a row gets the length that rows of this view have on average.
    ///
    /// # Errors
    /// When the view is unknown or `latent` does not have the model's number of columns.
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
                    "column {column} of view {} is {} in the model; put the columns into the model's order",
                    quoted(&self.name),
                    quoted(&known[column])
                ),
            }),
        }
    }
}
