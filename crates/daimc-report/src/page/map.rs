//! The map of V.

use serde_json::{Value, json};

use super::marks::{LEVELS, MARKS, level, mark, swatch};
use super::text::{count, escape, name, percent, put, shorten};
use crate::figures::{Figures, Instances, Map};

const WIDTH: f64 = 760.0;
/// The map is as high as the plane asks for, within reason.
const HEIGHT: (f64, f64) = (380.0, 600.0);
const MARGIN: f64 = 26.0;
/// Clusters whose numbers are written into the map, at most.
const NAMED: usize = 40;

pub(crate) fn section(figures: &Figures) -> String {
    let (map, instances) = (&figures.map, &figures.instances);
    let mut out = String::from(
        "<figure data-name=map><div class=map-grid><div><fieldset class=switch><legend>Colour by</legend>",
    );
    let mut choices = vec![("cluster", "cluster"), ("confidence", "confidence"), ("views", "views seen")];
    if instances.classes.is_some() {
        choices.push(("class", "true class"));
    }
    for (number, (value, label)) in choices.iter().enumerate() {
        let checked = if number == 0 { " checked" } else { "" };
        put!(out, "<label><input type=radio name=colour value={value}{checked}><span>{label}</span></label>");
    }
    put!(out, "</fieldset><div class=chart>{}</div></div><div class=legends>", draw(map));
    put!(out, "<div data-legend=cluster>{}</div>", clusters(figures));
    put!(out, "<div data-legend=confidence hidden>{}</div>", ramp("unclear", "clear"));
    put!(out, "<div data-legend=views hidden>{}</div>", views(figures.summary.views));
    if instances.classes.is_some() {
        put!(out, "<div data-legend=class hidden>{}</div>", classes(instances));
    }
    put!(out, "</div></div><figcaption>{}</figcaption></figure>", note(figures));
    out
}

/// What the script needs to recolour the map and to say what is under the pointer.
pub(crate) fn data(figures: &Figures) -> Value {
    json!({ "at": figures.map.instances })
}

fn draw(map: &Map) -> String {
    // One scale for both axes: distances in the map are distances in the plane.
    let bounds = |axis: usize| {
        let values = map.points.iter().map(|point| point[axis]);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ((left, right), (bottom, top)) = (bounds(0), bounds(1));
    let room = |low: f64, high: f64, pixels: f64| (pixels - 2.0 * MARGIN) / (high - low).max(1e-12);
    let scale = room(left, right, WIDTH).min(room(bottom, top, HEIGHT.1));
    let height = (scale * (top - bottom) + 2.0 * MARGIN).clamp(HEIGHT.0, HEIGHT.1).round();
    let place = |[x, y]: [f64; 2]| {
        let x = WIDTH / 2.0 + scale * (x - f64::midpoint(left, right));
        let y = height / 2.0 - scale * (y - f64::midpoint(bottom, top));
        (x, y)
    };
    let mut out = format!(
        "<svg id=map class=map viewBox=\"0 0 {WIDTH} {height}\" role=img tabindex=0 \
         aria-label=\"Map of {} instances in the two main directions of V; arrow keys step through them\"><g class=points>",
        count(map.points.len())
    );
    for (point, &cluster) in map.points.iter().zip(&map.clusters) {
        let ((x, y), (colour, shape)) = (place(*point), mark(cluster));
        put!(out, "<use href=\"#m{shape}\" x=\"{x:.1}\" y=\"{y:.1}\" class=k{colour} />");
    }
    out.push_str("</g><g class=names aria-hidden=true>");
    if map.centres.len() <= NAMED {
        let centres =
            map.centres.iter().enumerate().filter_map(|(cluster, centre)| Some((cluster, place((*centre)?))));
        for (cluster, (x, y)) in apart(centres.collect()) {
            put!(out, "<text x=\"{x:.1}\" y=\"{:.1}\">{cluster}</text>", y + 6.0);
        }
    }
    put!(
        out,
        "</g><text class=axis x=\"{:.1}\" y=\"{:.1}\" text-anchor=end>1st direction: {} of the variance →</text>",
        WIDTH - 6.0,
        height - 6.0,
        percent(map.shares[0])
    );
    put!(
        out,
        "<text class=axis transform=\"translate(20 6) rotate(-90)\" text-anchor=end>2nd direction: {} →</text></svg>",
        percent(map.shares[1])
    );
    out
}

/// Moves names that would cover one another apart, as little as it takes.
fn apart(mut names: Vec<(usize, (f64, f64))>) -> Vec<(usize, (f64, f64))> {
    const ROOM: f64 = 28.0;
    for _ in 0..20 {
        for i in 0..names.len() {
            for j in 0..i {
                let ((ax, ay), (bx, by)) = (names[i].1, names[j].1);
                let distance = (ax - bx).hypot(ay - by);
                if distance >= ROOM {
                    continue;
                }
                // Two in the same place part sideways.
                let (dx, dy) =
                    if distance > 0.1 { ((ax - bx) / distance, (ay - by) / distance) } else { (1.0, 0.0) };
                let push = (ROOM - distance) / 2.0;
                names[i].1 = (ax + push * dx, ay + push * dy);
                names[j].1 = (bx - push * dx, by - push * dy);
            }
        }
    }
    names
}

fn clusters(figures: &Figures) -> String {
    let mut out =
        String::from("<p class=legend-title>Clusters <small>press to pick out</small></p><div class=keys>");
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
        "<p class=legend-title>True classes <small>press to pick out</small></p><div class=keys>",
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
    let mut out = String::from("<p class=legend-title>Views that show an instance</p><div class=keys>");
    for seen in 1..=count {
        let share = if count == 1 { 1.0 } else { (seen - 1) as f64 / (count - 1) as f64 };
        put!(out, "<span class=key><i class=\"dot q{}\"></i>{seen}</span>", level(share));
    }
    out.push_str("</div>");
    out
}

fn note(figures: &Figures) -> String {
    let (map, instances) = (&figures.map, figures.summary.instances);
    let mut out =
        String::from("Rows of V, scaled as for clustering, in the plane where they vary most (PCA). ");
    if map.points.len() < instances {
        put!(
            out,
            "Drawn are {} of {} instances: a fixed sample in which every cluster has its share. ",
            count(map.points.len()),
            count(instances)
        );
    }
    if map.plane_from < instances {
        put!(out, "The plane is that of a sample of {}. ", count(map.plane_from));
    }
    if figures.summary.clusters > MARKS {
        out.push_str(
            "There are more clusters than marks, so some share theirs; point at an instance to be sure. ",
        );
    }
    out
}
