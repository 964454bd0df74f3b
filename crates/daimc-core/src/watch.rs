//! Progress callbacks outside the iterations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Result, Stop};

/// Long work outside the iterations; see `Daimc::stages`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Scalings are compared.
    Scaling,
    /// α and β are chosen.
    Penalty,
    /// The weights of the views are learned.
    ViewWeights,
    /// Clusterings of V are compared, and the fit starts again from the clearest.
    Consolidate,
    /// The nearest neighbours in a view are searched for.
    Search {
        /// The view's name.
        view: String,
    },
    /// Clusters are cut from the graph of neighbours.
    Cut,
    /// The layout of the map is computed.
    Map,
    /// The clusters are compared with those of permuted data.
    Significance,
    /// The reproducibility of the clusters is estimated.
    Reproducibility,
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scaling => out.write_str("comparing scalings"),
            Self::Penalty => out.write_str("choosing alpha and beta"),
            Self::ViewWeights => out.write_str("weighing the views"),
            Self::Consolidate => out.write_str("comparing clusterings"),
            Self::Search { view } => {
                write!(out, "searching for neighbours in view {}", crate::text::quoted(view))
            }
            Self::Cut => out.write_str("cutting the graph of neighbours"),
            Self::Map => out.write_str("laying out the map"),
            Self::Significance => out.write_str("comparing with chance"),
            Self::Reproducibility => out.write_str("fitting parts of the data"),
        }
    }
}

type Listener = Arc<dyn Fn(&Stage, f64) + Send + Sync>;

/// The switch that stops a fit, and its progress callback.
#[derive(Clone, Default)]
pub struct Watch {
    /// Cancels the work.
    pub stop: Stop,
    /// Receives the stages.
    pub listener: Option<Listener>,
    /// The current stage.
    stage: Option<Stage>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listened = self.listener.is_some();
        let mut shown = out.debug_struct("Watch");
        shown.field("stop", &self.stop).field("listened", &listened).field("stage", &self.stage).finish()
    }
}

impl Watch {
    /// Fails after a request to stop, in work that is useless unless finished.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }

    /// The same callback, with another switch.
    #[must_use]
    pub fn within(&self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self.clone() }
    }

    /// Reports the start of a stage, and returns the watch over it.
    #[allow(clippy::return_self_not_must_use)] // Work without a known amount only begins.
    pub fn begin(&self, stage: Stage) -> Self {
        let watch = Self { stage: Some(stage), ..self.clone() };
        watch.reach(0.0);
        watch
    }

    /// Reports the completed share of the stage.
    pub fn reach(&self, share: f64) {
        if let (Some(listener), Some(stage)) = (&self.listener, &self.stage) {
            listener(stage, share);
        }
    }

    /// Counts equal pieces of the stage's work, from any thread.
    pub fn pieces(&self, of: usize) -> impl Fn() + Sync {
        let done = AtomicUsize::new(0);
        move || self.reach((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / of as f64)
    }
}
