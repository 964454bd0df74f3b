//! `compare` and `reproduce`.

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod panel;
mod reproduce;
