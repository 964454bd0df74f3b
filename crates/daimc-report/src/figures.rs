//! What the report shows, as plain data: one module per chart. Nothing here draws, and nothing is larger than a few
//! numbers per instance while it is worked out, or than a few thousand in all once it is.

mod agreement;
mod cells;
pub(crate) mod classes;
mod clusters;
mod contributions;
mod course;
mod features;
mod instances;
mod latent;
mod map;
mod pca;
mod presence;
mod reconstruction;
mod sample;
mod silhouette;
mod spread;
mod summary;
mod values;

use std::borrow::Cow;

use daimc::{Error, Explanation, Fit, Result, Source};
use serde::Serialize;

pub use agreement::Agreement;
pub use cells::ViewCells;
use classes::Classes;
pub use clusters::{Cluster, Clusters};
pub use contributions::{Contribution, Evidence, ViewEvidence};
pub use course::{Course, Term};
pub use features::{Features, Leader, ViewFeatures};
pub use instances::Instances;
pub use map::{Map, Projection};
pub use pca::Plane;
pub use presence::{Combination, Presence, ViewPresence};
pub use reconstruction::{Reconstruction, ViewError};
use sample::members;
pub use silhouette::silhouettes;
pub use spread::Spread;
pub use summary::Summary;
pub use values::{ABSENT, FeatureValues, STEPS, Values, ViewValues};

/// The data of every chart.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// The headline numbers.
    pub summary: Summary,
    /// What is missing where.
    pub presence: Presence,
    /// Views whose rows lack cells.
    pub cells: Vec<ViewCells>,
    /// The objective from iteration to iteration.
    pub course: Course,
    /// The instances that the page knows one by one.
    pub instances: Instances,
    /// The instances in two dimensions.
    pub map: Map,
    /// The clusters, one by one.
    pub clusters: Clusters,
    /// What the views say for the clusters.
    pub evidence: Evidence,
    /// The features that B selects.
    pub features: Features,
    /// Values of these features, of some instances.
    pub values: Values,
    /// How well the views are explained.
    pub reconstruction: Reconstruction,
    /// Clusters beside true classes, where these are known.
    pub agreement: Option<Agreement>,
}

impl Figures {
    pub(crate) fn of(
        source: &dyn Source,
        fit: &Fit,
        classes: Option<&Classes>,
        explanation: Option<&Explanation>,
    ) -> Result<Self> {
        let schema = source.schema();
        let found = schema.instances();
        fits("instances (as many as the model was fitted to)", fit.labels.len(), found)?;
        fits("views (as many as the model was fitted to)", fit.model.views.len(), schema.len())?;
        if let Some(classes) = classes {
            fits("classes (one per instance)", found, classes.of.len())?;
        }
        let explanation = match explanation {
            Some(given) => Cow::Borrowed(given),
            None => Cow::Owned(fit.explain(source)?),
        };
        let Explanation { contributions, residuals, variations, .. } = &*explanation;
        fits("instances of the explanation", found, contributions.instances())?;
        let members = members(&fit.labels, fit.model.options.clusters);
        let clusters = Clusters::of(schema, fit, &members);
        let sizes: Vec<usize> = clusters.clusters.iter().map(|cluster| cluster.size).collect();
        let agreement = classes.map(|classes| Agreement::of(fit, classes)).transpose()?.flatten();
        // Classes of which none is known are none.
        let classes = classes.filter(|_| agreement.is_some());
        let instances = Instances::of(schema, fit, classes, contributions, &members);
        let features = Features::of(fit, &sizes);
        Ok(Self {
            summary: Summary::of(schema, fit),
            presence: Presence::of(schema),
            cells: cells::of(fit),
            course: Course::of(fit),
            map: Map::of(fit, &members, &instances)?,
            instances,
            evidence: Evidence::of(fit, contributions),
            values: Values::of(source, fit, &features, &members)?,
            features,
            reconstruction: Reconstruction::of(fit, residuals, variations),
            clusters,
            agreement,
        })
    }
}

fn fits(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what: what.into(), expected, found }) }
}
