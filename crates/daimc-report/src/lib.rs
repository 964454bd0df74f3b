//! Renders a fitted model and its data as one self-contained HTML page, which needs neither a network nor other files.
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
//! The data of the charts are computed first ([`figures`]), then drawn. Both steps are linear in the number of instances.
//! Charts that show single instances show a sample, as the page says, so the page stays small for any number of instances.

pub mod chart;
pub mod figures;
mod numbers;
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

/// The association of a clinical table with the clusters.
#[derive(Clone, Copy)]
pub(crate) struct Clinical<'a> {
    pub associations: &'a Associations,
    pub survival: Option<&'a Survival>,
}

impl<'a> Report<'a> {
    /// Creates a report about a model and the data it was fitted to.
    #[must_use]
    pub fn new(source: &'a dyn Source, fit: &'a Fit) -> Self {
        let title = "Clusters of incomplete views".into();
        Self { source, fit, classes: None, explanation: None, provenance: None, title, clinical: None }
    }

    /// Compares clusters with true classes: the name of the class of each instance, if known.
    #[must_use]
    pub fn truth<S: AsRef<str>>(mut self, classes: &[Option<S>]) -> Self {
        self.classes = Some(Classes::new(classes));
        self
    }

    /// Sets the result of [`Fit::explain`] for the same views, which is computed otherwise.
    #[must_use]
    pub fn explanation(mut self, explanation: &'a Explanation) -> Self {
        self.explanation = Some(explanation);
        self
    }

    /// Shows the provenance of the result, such as input files, versions and the command.
    #[must_use]
    pub fn provenance(mut self, provenance: &'a Value) -> Self {
        self.provenance = Some(provenance);
        self
    }

    /// Shows the associations of clinical columns with the clusters, and survival by cluster.
    #[must_use]
    pub fn clinical(mut self, associations: &'a Associations, survival: Option<&'a Survival>) -> Self {
        self.clinical = Some(Clinical { associations, survival });
        self
    }

    /// Sets the title of the page.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Computes the data of every chart.
    ///
    /// # Errors
    /// If the model was fitted to other views or instances, or the number of classes is not the number of instances.
    pub fn figures(&self) -> Result<Figures> {
        Figures::of(self.source, self.fit, self.classes.as_ref(), self.explanation)
    }

    /// Renders the page.
    ///
    /// # Errors
    /// The errors of [`Report::figures`].
    pub fn render(&self) -> Result<String> {
        let figures = self.figures()?;
        Ok(page::page(&self.title, &figures, self.fit, self.provenance, self.clinical))
    }
}
