//! The switch that ends work early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// A switch that ends all work that holds a clone of it: a fit, a choice of the number of clusters, a pass over the
/// data. It is checked after every block of instances, so that work ends within a short time. The documentation of each
/// operation says which results are kept.
///
/// ```
/// use daimc::{Daimc, Outcome, Stop, Views, synthetic::Synthetic};
///
/// let data = Synthetic::new(300, 3);
/// let views = Views::new(vec![data.dense::<f64>("a", 20)?])?;
/// let stop = Stop::new();
/// let own = stop.clone();
/// // From another thread, a signal handler, or as here from a callback.
/// let model = Daimc::new(3).stop(&stop).fit_with(&views, move |_| { own.set(); std::ops::ControlFlow::Continue(()) })?;
/// assert_eq!((model.outcome, model.iterations()), (Outcome::Interrupted, 1));
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// A parent switch, which ends this work too.
    above: Option<Arc<Stop>>,
}

impl Stop {
    /// Creates a switch that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the work. A switch cannot be reset.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether the work must end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.above.as_ref().is_some_and(|above| above.is_set())
    }

    /// Creates a switch for a part of the work. This switch ends the part too, but setting the new one ends the part only.
    #[must_use]
    pub fn part(&self) -> Self {
        Self { flag: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Returns an error if the switch is set, for work whose partial results have no use.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once the switch is set.
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// A switch with an external flag, such as that of a signal handler.
impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self { flag, above: None }
    }
}
