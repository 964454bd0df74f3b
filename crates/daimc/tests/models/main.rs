//! What a fit leaves.

mod explain;
mod misfit;
mod model;
mod stored;
