//! The contents of the report as plain data, one module per chart. Nothing is drawn here. The computation needs memory for a
//! few numbers per instance; the results are a few thousand numbers in total.

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
    /// The key figures at the top of the page.
    pub summary: Summary,
    /// The presence of instances in views.
    pub presence: Presence,
    /// Missing cells, for the views that have any.
    pub cells: Vec<ViewCells>,
    /// The objective from iteration to iteration.
    pub course: Course,
    /// The instances that the page can look up by ID.
    pub instances: Instances,
    /// The instances in two dimensions.
    pub map: Map,
    /// Each cluster.
    pub clusters: Clusters,
    /// The mean contributions of the views to the clusters.
    pub evidence: Evidence,
    /// The features that B selects.
    pub features: Features,
    /// The values of these features for a sample of the instances.
    pub values: Values,
    /// The reconstruction errors of the views.
    pub reconstruction: Reconstruction,
    /// The agreement of clusters and true classes, if classes are known.
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
        check_length("instances (as many as the model was fitted to)", fit.labels.len(), found)?;
        check_length("views (as many as the model was fitted to)", fit.model.views.len(), schema.len())?;
        if let Some(classes) = classes {
            check_length("classes (one per instance)", found, classes.of.len())?;
        }
        let explanation = match explanation {
            Some(explanation) => Cow::Borrowed(explanation),
            None => Cow::Owned(fit.explain(source)?),
        };
        let Explanation { contributions, residuals, variations, .. } = &*explanation;
        check_length("instances of the explanation", found, contributions.instances())?;
        let members = members(&fit.labels, fit.model.options.clusters);
        let clusters = Clusters::of(schema, fit, &members);
        let sizes: Vec<usize> = clusters.clusters.iter().map(|cluster| cluster.size).collect();
        let agreement = classes.map(|classes| Agreement::of(fit, classes)).transpose()?.flatten();
        // Classes of which none is known are not shown.
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

fn check_length(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what: what.into(), expected, found }) }
}
