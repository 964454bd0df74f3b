//! Colours and shapes of marks: ten colours, distinguishable by lightness with colour-vision deficiency, times six shapes. The
//! style sheet defines the colours (`k0`… for groups, `q0`… for amounts) for light and dark mode.

use super::text::put;

pub(crate) const COLOURS: usize = 10;
pub(crate) const SHAPES: usize = 6;
/// The number of groups with different marks.
pub(crate) const MARKS: usize = COLOURS * SHAPES;
/// Levels of an amount.
pub(crate) const LEVELS: usize = 10;

/// The numbers of the colour and of the shape of a group.
pub(crate) fn mark(group: usize) -> (usize, usize) {
    (group % COLOURS, group / COLOURS % SHAPES)
}

/// The level of an amount from 0 to 1.
pub(crate) fn level(amount: f64) -> usize {
    ((amount * LEVELS as f64) as usize).min(LEVELS - 1)
}

/// The SVG definitions of the shapes: circle, square, triangle, diamond, cross, inverted triangle.
pub(crate) fn definitions() -> String {
    let mut out = String::from("<svg width=0 height=0 class=definitions aria-hidden=true><defs>");
    let shapes = [
        "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
        "M-2.7-2.7h5.4v5.4h-5.4z",
        "M0-3.6L3.4 2.6H-3.4z",
        "M0-3.8L3.4 0L0 3.8L-3.4 0z",
        "M-1.2-3.4h2.4v2.2h2.2v2.4h-2.2v2.2h-2.4v-2.2h-2.2v-2.4h2.2z",
        "M0 3.6L-3.4-2.6H3.4z",
    ];
    for (number, shape) in shapes.iter().enumerate() {
        put!(out, "<path id=m{number} d=\"{shape}\"/>");
    }
    // `hatch` fills bars that sum several combinations, `unseen` instances missing from a view.
    out.push_str(
        "<pattern id=hatch width=6 height=6 patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\">\
         <rect class=ink width=2 height=6 /></pattern>\
         <pattern id=unseen width=5 height=5 patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\">\
         <rect class=weave width=.8 height=5 /></pattern></defs></svg>",
    );
    out
}

/// The mark of a group in a legend.
pub(crate) fn swatch(group: usize) -> String {
    let (colour, shape) = mark(group);
    format!(
        "<svg class=swatch viewBox=\"-5 -5 10 10\" aria-hidden=true><use href=\"#m{shape}\" class=k{colour} /></svg>"
    )
}
