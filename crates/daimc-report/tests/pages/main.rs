//! The contents of the page, as data and as text.

mod figures;
mod page;
