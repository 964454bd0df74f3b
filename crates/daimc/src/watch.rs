//! What a fit tells beside its iterations.

use std::fmt;
use std::sync::Arc;

use crate::{Result, Stop};

/// Work that may take long and is no iteration; see [`Daimc::stages`](crate::Daimc::stages).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Scalings are compared.
    Scaling,
    /// α and β are chosen.
    Penalty,
    /// It is learned how much the views count.
    ViewWeights,
    /// Clusterings of V are compared, and the fit starts again from the clearest.
    Consolidate,
    /// The neighbours of each instance are looked for in a view.
    Search {
        /// The view's name.
        view: String,
    },
    /// Clusters are cut from the graph of neighbours.
    Cut,
    /// The clusters are compared with those that chance would give.
    Significance,
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scaling => out.write_str("comparing scalings"),
            Self::Penalty => out.write_str("choosing alpha and beta"),
            Self::ViewWeights => out.write_str("weighing the views"),
            Self::Consolidate => out.write_str("comparing clusterings"),
            Self::Search { view } => {
                write!(out, "looking for neighbours in view {}", crate::text::quoted(view))
            }
            Self::Cut => out.write_str("cutting the graph of neighbours"),
            Self::Significance => out.write_str("comparing with chance"),
        }
    }
}

type Listener = Arc<dyn Fn(&Stage) + Send + Sync>;

/// Those who watch a fit: the switch by which they stop it, and who is told of its stages.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    pub stop: Stop,
    pub listener: Option<Listener>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listened = self.listener.is_some();
        out.debug_struct("Watch").field("stop", &self.stop).field("listened", &listened).finish()
    }
}

impl Watch {
    /// Ends work that is of no use unless it is finished.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }

    /// The same watch, over work that another switch ends.
    pub fn within(&self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), listener: self.listener.clone() }
    }

    pub fn tell(&self, stage: &Stage) {
        if let Some(listener) = &self.listener {
            listener(stage);
        }
    }
}
