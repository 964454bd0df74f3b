//! Turns a fitted model and its data into one HTML page that needs nothing else: no network, no other file.
//!
//! ```
//! use daimc::{Daimc, Views, synthetic::Synthetic};
//! use daimc_report::Report;
//!
//! let data = Synthetic::new(300, 3);
//! let views = Views::new(vec![data.dense::<f64>("a", 20)?, data.dense::<f64>("b", 10)?])?;
//! let fit = Daimc::new(3).fit(&views)?;
//!
//! let page = Report::new(&views, &fit).title("Three clusters").render()?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), daimc::Error>(())
//! ```
//!
//! What is shown is worked out first, as plain data ([`figures`]), then drawn. Both are linear in the number of
//! instances; what is drawn one by one is a sample that the page mentions, so the page stays small for any number.

pub mod chart;
pub mod figures;
mod page;

use daimc::{Explanation, Fit, Result, Source};
use daimc_clinical::{Associations, Survival};
use figures::Figures;
use figures::classes::Classes;
use serde_json::Value;

/// A report about a model and the data it was fitted to.
#[derive(Clone)]
pub struct Report<'a> {
    source: &'a dyn Source,
    fit: &'a Fit,
    classes: Option<Classes>,
    explanation: Option<&'a Explanation>,
    provenance: Option<&'a Value>,
    title: String,
    clinical: Option<Clinical<'a>>,
}

/// What a clinical table has to do with the clusters.
#[derive(Clone, Copy)]
pub(crate) struct Clinical<'a> {
    pub associations: &'a Associations,
    pub survival: Option<&'a Survival>,
}

impl<'a> Report<'a> {
    /// A report about a model and the data it was fitted to.
    #[must_use]
    pub fn new(source: &'a dyn Source, fit: &'a Fit) -> Self {
        let title = "Clusters of incomplete views".into();
        Self { source, fit, classes: None, explanation: None, provenance: None, title, clinical: None }
    }

    /// Compares clusters with true classes; for each instance the name of its class, if it is known.
    #[must_use]
    pub fn truth<S: AsRef<str>>(mut self, classes: &[Option<S>]) -> Self {
        self.classes = Some(Classes::new(classes));
        self
    }

    /// Takes what [`Fit::explain`] has found about the same views, which is worked out otherwise.
    #[must_use]
    pub fn explanation(mut self, explanation: &'a Explanation) -> Self {
        self.explanation = Some(explanation);
        self
    }

    /// Shows where the result comes from: anything that is worth keeping beside it, such as files, versions and
    /// the command.
    #[must_use]
    pub fn provenance(mut self, provenance: &'a Value) -> Self {
        self.provenance = Some(provenance);
        self
    }

    /// Shows the association of clinical columns with the clusters, and survival by cluster.
    #[must_use]
    pub fn clinical(mut self, associations: &'a Associations, survival: Option<&'a Survival>) -> Self {
        self.clinical = Some(Clinical { associations, survival });
        self
    }

    /// The title of the page.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The data of every chart.
    ///
    /// # Errors
    /// When the model was fitted to other views or instances, or there is not one class per instance.
    pub fn figures(&self) -> Result<Figures> {
        Figures::of(self.source, self.fit, self.classes.as_ref(), self.explanation)
    }

    /// The page.
    ///
    /// # Errors
    /// As [`Report::figures`].
    pub fn render(&self) -> Result<String> {
        let figures = self.figures()?;
        Ok(page::page(&self.title, &figures, self.fit, self.provenance, self.clinical))
    }
}
