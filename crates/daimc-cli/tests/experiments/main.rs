//! Methods side by side, and the experiments of the paper.

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod panel;
mod reproduce;
