//! The charts of all pages of the project: axes, lines, bars, cells, and the page itself. A chart is SVG whose classes get their
//! colours from the style sheet, for light and dark mode; [`standalone`] converts one to a file.

pub(crate) mod axis;
mod bars;
mod cells;
mod document;
mod line;
pub(crate) mod marks;
pub(crate) mod text;

pub use bars::{Bar, Bars};
pub use cells::Cells;
pub use document::{document, figure, standalone, table};
pub use line::{Line, LineChart, Point, Scale};
pub use text::escape;

pub(crate) use document::{SCRIPT, shell};
