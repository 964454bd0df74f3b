//! A fit whose rows are held by others: in other processes, on other machines, in whatever engine carries bytes between them.
//!
//! Who fits asks, and whoever holds rows answers. A [request](Ask) goes to every holder as it is; the answers are
//! [merged](merge_replies), two at a time and in any order, and the one that is left comes back. That is all an engine has to do:
//!
//! ```text
//!              request                    request
//!   driver  ───────────►  every holder    (Daimc::fit_elsewhere asks, serve answers)
//!           ◄───────────  merge_replies ◄─ replies
//! ```
//!
//! What goes over all rows is a sum that merges along the tree of the leaves (`forest.rs`), and a fit to rows that one process
//! holds uses the same functions. So the result is the same to the last bit for any number of holders. Neighbourhoods alone compare
//! rows with each other: what says who is near whom is [gathered](Gathered), and holders are told the clusters.

mod gathered;
mod holder;
mod message;
mod remote;

pub(crate) use gathered::{Gathered, fetch_latent};
pub use holder::serve;
pub(crate) use message::{Clusters, Nearest, Request, Table, last_request};
pub use message::{gather_place, merge_replies, reset};
pub use remote::Ask;
pub(crate) use remote::{Held, Holders, Remote, Team};
