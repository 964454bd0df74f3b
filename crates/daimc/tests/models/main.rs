//! What a fit leaves.

mod explain;
mod impute;
mod misfit;
mod model;
mod stored;
