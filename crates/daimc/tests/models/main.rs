//! The results of a fit.

mod explain;
mod impute;
mod misfit;
mod model;
mod stored;
