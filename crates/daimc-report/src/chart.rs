//! The charts that every page of the project is drawn with: axes, lines, bars, cells, and the page around them. A chart is SVG with
//! classes, to which the style sheet gives colours that follow light and dark; [`standalone`] makes a file of one.

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
