//! What the page shows, as figures and as text.

mod figures;
mod page;
