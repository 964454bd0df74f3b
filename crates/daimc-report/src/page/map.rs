//! The map of the instances.

use daimc_graph::layout::LAID_OUT;
use serde_json::{Value, json};

use super::marks::{LEVELS, MARKS, level, mark, swatch};
use super::text::{base64, count, escape, name, percent, put, shorten};
use crate::figures::{Figures, Instances, Map, Projection};
use crate::numbers::extent;

const WIDTH: f64 = 760.0;
/// The minimum and maximum height of the map.
const HEIGHT: (f64, f64) = (380.0, 600.0);
const MARGIN: f64 = 26.0;
/// The maximum number of clusters whose numbers are written into the map.
const NAMED: usize = 40;
/// Distance from the middle of a number to its baseline.
const BASELINE: f64 = 6.0;

pub(crate) fn section(figures: &Figures) -> String {
    let (map, instances) = (&figures.map, &figures.instances);
    let mut out = String::from(
        "<figure data-name=map><div class=map-grid><div><div class=switches><fieldset class=switch><legend>Colour by</legend>",
    );
    let mut choices = vec![("cluster", "cluster"), ("confidence", "confidence"), ("views", "views seen")];
    if instances.classes.is_some() {
        choices.push(("class", "true class"));
    }
    for (number, (value, label)) in choices.iter().enumerate() {
        let checked = if number == 0 { " checked" } else { "" };
        put!(out, "<label><input type=radio name=colour value={value}{checked}><span>{label}</span></label>");
    }
    put!(
        out,
        "</fieldset><fieldset class=switch><legend>Position by</legend>\
         <label><input type=radio name=position value=layout checked><span>neighbours</span></label>\
         <label><input type=radio name=position value=plane><span>PCA of V</span></label>"
    );
    put!(out, "</fieldset></div><div class=chart>{}</div></div><div class=legends>", draw(map));
    put!(out, "<div data-legend=cluster>{}</div>", clusters(figures));
    put!(out, "<div data-legend=confidence hidden>{}</div>", ramp("unclear", "clear"));
    put!(out, "<div data-legend=views hidden>{}</div>", views(figures.summary.views));
    if instances.classes.is_some() {
        put!(out, "<div data-legend=class hidden>{}</div>", classes(instances));
    }
    put!(out, "</div></div><figcaption>{}</figcaption></figure>", note(figures));
    out
}

/// The data of the script for colours, tooltips and the positions in the plane of V. Coordinates are in tenths of a pixel.
pub(crate) fn data(figures: &Figures) -> Value {
    let map = &figures.map;
    let frame = Frame::of(&map.plane, Frame::fitted(&map.layout).height);
    let tenths = |point: &[f64; 2]| {
        let (x, y) = frame.pixels(*point);
        [x, y].map(|pixels| ((10.0 * pixels).round() as u16).to_le_bytes())
    };
    let names = names(&map.plane, &frame).into_iter().map(|(_, (x, y))| [x.round(), (y + BASELINE).round()]);
    json!({
        "at": map.instances,
        "plane": base64(map.plane.points.iter().flat_map(tenths).flatten()),
        "names": names.collect::<Vec<_>>(),
    })
}

/// The mapping from coordinates to pixels, with the same scale for both axes, so that distances are preserved.
struct Frame {
    scale: f64,
    /// The coordinates at the middle of the map.
    middle: [f64; 2],
    height: f64,
}

impl Frame {
    /// A frame whose height follows from the projection, within [`HEIGHT`].
    fn fitted(projection: &Projection) -> Self {
        let own = Self::of(projection, HEIGHT.1);
        let (bottom, top) = bounds(projection, 1);
        let height = (own.scale * (top - bottom) + 2.0 * MARGIN).clamp(HEIGHT.0, HEIGHT.1).round();
        Self { height, ..own }
    }

    fn of(projection: &Projection, height: f64) -> Self {
        let ((left, right), (bottom, top)) = (bounds(projection, 0), bounds(projection, 1));
        let fit = |low: f64, high: f64, pixels: f64| (pixels - 2.0 * MARGIN) / (high - low).max(1e-12);
        let scale = fit(left, right, WIDTH).min(fit(bottom, top, height));
        Self { scale, middle: [f64::midpoint(left, right), f64::midpoint(bottom, top)], height }
    }

    fn pixels(&self, [x, y]: [f64; 2]) -> (f64, f64) {
        let x = WIDTH / 2.0 + self.scale * (x - self.middle[0]);
        (x, self.height / 2.0 - self.scale * (y - self.middle[1]))
    }
}

/// The smallest and the largest coordinate along an axis.
fn bounds(projection: &Projection, axis: usize) -> (f64, f64) {
    extent(projection.points.iter().map(|point| point[axis]))
}

/// The positions of the numbers of the clusters, unless there are too many clusters.
fn names(projection: &Projection, frame: &Frame) -> Vec<(usize, (f64, f64))> {
    if projection.centres.len() > NAMED {
        return Vec::new();
    }
    let centres = projection.centres.iter().enumerate();
    apart(centres.filter_map(|(cluster, centre)| Some((cluster, frame.pixels((*centre)?)))).collect())
}

fn draw(map: &Map) -> String {
    let frame = Frame::fitted(&map.layout);
    let height = frame.height;
    let mut out = format!(
        "<svg id=map class=map viewBox=\"0 0 {WIDTH} {height}\" role=img tabindex=0 \
         aria-label=\"Map of {} instances; arrow keys step through them\"><g class=points>",
        count(map.layout.points.len())
    );
    for (point, &cluster) in map.layout.points.iter().zip(&map.clusters) {
        let ((x, y), (colour, shape)) = (frame.pixels(*point), mark(cluster));
        put!(out, "<use href=\"#m{shape}\" x=\"{x:.1}\" y=\"{y:.1}\" class=k{colour} />");
    }
    out.push_str("</g><g class=names aria-hidden=true>");
    for (cluster, (x, y)) in names(&map.layout, &frame) {
        put!(out, "<text x=\"{x:.1}\" y=\"{:.1}\">{cluster}</text>", y + BASELINE);
    }
    put!(
        out,
        "</g><g data-position=plane hidden><text class=axis x=\"{:.1}\" y=\"{:.1}\" text-anchor=end>1st direction: {} of the variance →</text>",
        WIDTH - 6.0,
        height - 6.0,
        percent(map.shares[0])
    );
    put!(
        out,
        "<text class=axis transform=\"translate(20 6) rotate(-90)\" text-anchor=end>2nd direction: {} →</text></g></svg>",
        percent(map.shares[1])
    );
    out
}

/// Moves overlapping names apart.
fn apart(mut names: Vec<(usize, (f64, f64))>) -> Vec<(usize, (f64, f64))> {
    const DISTANCE: f64 = 28.0;
    for _ in 0..20 {
        for i in 0..names.len() {
            for j in 0..i {
                let ((ax, ay), (bx, by)) = (names[i].1, names[j].1);
                let distance = (ax - bx).hypot(ay - by);
                if distance >= DISTANCE {
                    continue;
                }
                // Names at the same position are moved sideways.
                let (dx, dy) =
                    if distance > 0.1 { ((ax - bx) / distance, (ay - by) / distance) } else { (1.0, 0.0) };
                let push = (DISTANCE - distance) / 2.0;
                names[i].1 = (ax + push * dx, ay + push * dy);
                names[j].1 = (bx - push * dx, by - push * dy);
            }
        }
    }
    names
}

fn clusters(figures: &Figures) -> String {
    let mut out =
        String::from("<p class=legend-title>Clusters <small>click to highlight</small></p><div class=keys>");
    for cluster in &figures.clusters.clusters {
        put!(
            out,
            "<button type=button aria-pressed=false data-group={0}>{1}{0}<small>{2}</small></button>",
            cluster.number,
            swatch(cluster.number),
            count(cluster.size)
        );
    }
    out.push_str("</div>");
    out
}

fn classes(map: &Instances) -> String {
    let mut out = String::from(
        "<p class=legend-title>True classes <small>click to highlight</small></p><div class=keys>",
    );
    for (number, class) in map.class_names.iter().enumerate() {
        put!(
            out,
            "<button type=button aria-pressed=false data-group={number} title=\"{}\">{}{}</button>",
            name(class),
            swatch(number),
            escape(&shorten(class, 28))
        );
    }
    let has = |class: Option<usize>| map.classes.iter().flatten().any(|found| *found == class);
    let grey = match (has(Some(map.class_names.len())), has(None)) {
        (true, true) => "another class, or not known",
        (true, false) => "another class",
        (false, true) => "not known",
        (false, false) => "",
    };
    if !grey.is_empty() {
        put!(out, "<span class=key><i class=\"dot kx\"></i>{grey}</span>");
    }
    out.push_str("</div>");
    out
}

fn ramp(low: &str, high: &str) -> String {
    let mut out = format!("<div class=ramp><small>{low}</small>");
    for level in 0..LEVELS {
        put!(out, "<i class=q{level}></i>");
    }
    put!(out, "<small>{high}</small></div>");
    out
}

fn views(count: usize) -> String {
    if count > LEVELS {
        return ramp("1 view", &format!("{count} views"));
    }
    let mut out =
        String::from("<p class=legend-title>Views in which an instance is present</p><div class=keys>");
    for seen in 1..=count {
        let share = if count == 1 { 1.0 } else { (seen - 1) as f64 / (count - 1) as f64 };
        put!(out, "<span class=key><i class=\"dot q{}\"></i>{seen}</span>", level(share));
    }
    out.push_str("</div>");
    out
}

fn note(figures: &Figures) -> String {
    let (map, instances) = (&figures.map, figures.summary.instances);
    let mut out = String::from("<span data-position=layout>");
    out.push_str(if map.of_views {
        "A layout of the graph that the clusters were cut from: instances that are close to each other in the views, and in V, attract \
         each other, all others repel each other, as in UMAP. "
    } else {
        "A layout of the kNN graph of the rows of V: linked instances attract each other, all others repel each other, as in \
         UMAP. "
    });
    out.push_str(
        "Points that are close together belong together; distances between separate clusters, and their sizes, mean little. ",
    );
    if instances > LAID_OUT {
        put!(
            out,
            "A sample of {} was laid out, and the others were placed between the nearest points of the sample. ",
            count(LAID_OUT)
        );
    }
    out.push_str("</span><span data-position=plane hidden>");
    out.push_str("Rows of V, scaled as for clustering, in the plane of largest variance (PCA). ");
    if map.plane_from < instances {
        put!(out, "The plane was computed from a sample of {}. ", count(map.plane_from));
    }
    out.push_str("</span>");
    if map.clusters.len() < instances {
        put!(
            out,
            "The map shows {} of {} instances: a fixed sample in which every cluster is represented. ",
            count(map.clusters.len()),
            count(instances)
        );
    }
    if figures.summary.clusters > MARKS {
        out.push_str(
            "There are more clusters than markers, so some clusters share one; point at an instance to be sure. ",
        );
    }
    out
}
