//! Files become tables, and tables views.

mod annotated;
mod assemble;
#[path = "../common/mod.rs"]
mod common;
mod formats;
mod ids;
mod labels;
mod matrix_market;
mod pipes;
mod stored;
mod stored_npz;
mod text;
