//! The program from outside.

mod annotated;
mod bad_input;
mod cells;
mod clinical;
#[path = "../common/mod.rs"]
mod common;
mod demo;
mod device;
mod embedding;
mod fit;
mod help;
mod hints;
mod ids;
mod impute;
mod incomplete;
mod inspect;
mod interruption;
mod memory;
mod missingness;
mod output;
mod pipes;
mod predict;
mod progress;
mod select;
mod spreadsheets;
mod tables;
mod terminal;
mod truth;
mod tutorial;
mod update;
