//! Running methods on samples of data and showing the scores as tables and plots: shared by [`compare`](mod@crate::compare) and
//! [`reproduce`](mod@crate::reproduce).

pub mod chart;
pub mod contender;
mod error;
pub mod ledger;
mod monitor;
pub mod page;
pub mod runs;
pub mod sample;
pub mod setting;
pub mod table;

pub use error::{Error, Result};
pub use monitor::Monitor;
pub use page::{Section, markdown};
pub use sample::Dataset;
pub use table::{Line, Mean, Table};
