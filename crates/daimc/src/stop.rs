//! The one way to end work before it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// A switch that ends whatever was given a clone of it: a fit, a choice of the number of clusters, a pass over the data.
/// It is looked at after every block of instances, so that work ends soon wherever it is; what was finished by then is
/// kept where the documentation of the work promises it.
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
/// assert_eq!((model.outcome, model.iterations()), (Outcome::Cancelled, 1));
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// Another switch that ends this work too.
    above: Option<Arc<Stop>>,
}

impl Stop {
    /// A switch that nobody has set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the work. There is no way back.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.above.as_ref().is_some_and(|above| above.is_set())
    }

    /// A switch for part of the work: this one ends it too, but setting it ends that part alone.
    #[must_use]
    pub fn part(&self) -> Self {
        Self { flag: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Ends work that is of no use unless it is finished.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once the switch is set.
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// A flag that somebody else owns, such as that of a signal handler.
impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self { flag, above: None }
    }
}
