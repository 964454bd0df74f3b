//! Presence of instances in views: the tile map and the combinations of views.

use super::table::{Cell, Table};
use super::text::{count, counted, escape, middle, name, percent, put, shorten};
use crate::figures::{Combination, Figures, Presence};

const WIDTH: usize = 920;
/// The maximum numbers of views and of combinations drawn.
const VIEWS: usize = 60;
const COMBINATIONS: usize = 30;
const LETTERS: usize = 20;

pub(crate) fn section(figures: &Figures) -> String {
    instances(figures) + &cells(figures)
}

/// A sentence and a table about missing cells; empty if there are none.
fn cells(figures: &Figures) -> String {
    if figures.cells.is_empty() {
        return String::new();
    }
    let columns = [
        ("view", false),
        ("cells missing", true),
        ("share", true),
        ("instances", true),
        ("features", true),
        ("without a value", true),
        ("features that most lack", false),
    ];
    let mut table = Table::new("cells-table", "Cells missing inside rows", &columns);
    for view in &figures.cells {
        let number = |value: usize| Cell::Number(value as f64, count(value));
        let most = view
            .most
            .iter()
            .map(|(feature, share)| format!("{} ({})", shorten(feature, 40), percent(*share)));
        table.push(&[
            Cell::Text(view.name.clone()),
            number(view.cells),
            Cell::Number(view.share, percent(view.share)),
            number(view.instances),
            number(view.features),
            number(view.without_value),
            Cell::Text(most.collect::<Vec<_>>().join(", ")),
        ]);
    }
    let all: usize = figures.cells.iter().map(|view| view.cells).sum();
    format!(
        "<p>Within rows that have some values, {} missing. None was imputed: the fit uses the values that are present. Features without any value \
         are ignored.</p>{}",
        if all == 1 { "one cell is".into() } else { format!("{} cells are", count(all)) },
        table.finish("")
    )
}

/// Charts of the instances missing from views.
fn instances(figures: &Figures) -> String {
    let (presence, instances) = (&figures.presence, figures.summary.instances);
    if presence.views.len() == 1 {
        return format!(
            "<p class=empty>There is one view, and it contains all {} instances.</p>",
            count(instances)
        );
    }
    if presence.missing == 0.0 {
        return format!(
            "<p class=empty>{}: each of the {} views contains all {} instances.</p>",
            if figures.cells.is_empty() { "Nothing is missing" } else { "No instance is missing" },
            presence.views.len(),
            count(instances)
        );
    }
    let mut out = format!(
        "<p class=lead>{} of all pairs of instance and view are missing. {} of {} instances ({}) are present in every view.</p>",
        percent(presence.missing),
        count(presence.complete),
        count(instances),
        percent(presence.complete as f64 / instances as f64)
    );
    let drawn = presence.views.len().min(VIEWS);
    put!(
        out,
        "<figure data-name=presence><h3>Instances in each view</h3><div class=chart>{}</div>",
        tiles(presence, instances, drawn)
    );
    let per_tile = instances as f64 / presence.bins as f64;
    let width = if per_tile > 1.0 {
        format!(
            "a column stands for about {} instances; the stronger its colour, the more of them are present",
            count(per_tile.round() as usize)
        )
    } else {
        "a column is an instance".into()
    };
    put!(
        out,
        "<figcaption>Instances from left to right, ordered by the combination of views that they have; {width}."
    );
    if drawn < presence.views.len() {
        put!(out, " The first {drawn} of {} views are drawn.", presence.views.len());
    }
    put!(
        out,
        "</figcaption></figure><figure data-name=combinations><h3>Combinations of views</h3><div class=chart>{}</div>",
        upset(presence, drawn)
    );
    let all = presence.combinations.len() + presence.rest.0;
    put!(out, "<figcaption>Instances that are present in exactly the views marked below the bar.");
    if all > COMBINATIONS {
        let listed = presence.combinations.iter().take(COMBINATIONS);
        let rest = instances - listed.map(|combination| combination.instances).sum::<usize>();
        put!(
            out,
            " The {COMBINATIONS} most frequent of {} combinations; the hatched bar is the rest{}.",
            count(all),
            if rest > most_frequent(presence) { ", not to scale" } else { "" }
        );
    }
    out.push_str("</figcaption></figure>");
    out
}

/// The width of the names of the views.
fn names_width(presence: &Presence, drawn: usize) -> usize {
    let letters = presence.views.iter().take(drawn).map(|view| view.name.chars().count().min(LETTERS));
    24 + 8 * letters.max().unwrap_or(0)
}

/// Names and numbers of the views, to the left of a chart.
fn labels(out: &mut String, presence: &Presence, drawn: usize, top: usize, height: usize) {
    let left = names_width(presence, drawn);
    for (number, view) in presence.views.iter().take(drawn).enumerate() {
        let y = top + number * height + height / 2 + 4;
        put!(
            out,
            "<text x={} y={y} text-anchor=end>{}<title>{}: {} present</title></text>",
            left - 10,
            escape(&middle(&view.name, LETTERS)),
            name(&view.name),
            count(view.present)
        );
    }
}

fn tiles(presence: &Presence, instances: usize, drawn: usize) -> String {
    let (height, left, right) = (18, names_width(presence, drawn), 62);
    let full = drawn * height + 4;
    let mut out = format!(
        "<svg id=tiles viewBox=\"0 0 {WIDTH} {full}\" role=img aria-label=\"Which instances are present in each of {}\">",
        counted(presence.views.len(), "view")
    );
    labels(&mut out, presence, drawn, 0, height);
    let width = (WIDTH - left - right) as f64 / presence.bins as f64;
    for (number, row) in presence.tiles.iter().take(drawn).enumerate() {
        let y = number * height + 2;
        put!(
            out,
            "<g class=tile><rect class=ground x={left} y={y} width={} height={} />",
            WIDTH - left - right,
            height - 3
        );
        // Adjacent tiles of equal shade are merged.
        let steps: Vec<u32> = row.iter().map(|share| (share * 20.0).round() as u32).collect();
        let mut start = 0;
        for run in steps.chunk_by(|a, b| a == b) {
            let x = left as f64 + start as f64 * width;
            if run[0] > 0 {
                put!(
                    out,
                    "<rect x=\"{x:.1}\" y={y} width=\"{:.1}\" height={} opacity=\"{}\"/>",
                    run.len() as f64 * width,
                    height - 3,
                    f64::from(run[0]) / 20.0
                );
            }
            start += run.len();
        }
        let share = presence.views[number].present as f64 / instances as f64;
        put!(out, "</g><text class=quiet x={} y={}>{}</text>", WIDTH - right + 8, y + 12, percent(share));
    }
    out.push_str("</svg>");
    out
}

fn upset(presence: &Presence, drawn: usize) -> String {
    let (bars, row, left) = (150, 18, names_width(presence, drawn));
    let shown = &presence.combinations[..presence.combinations.len().min(COMBINATIONS)];
    let listed: usize = presence.combinations[shown.len()..].iter().map(|c| c.instances).sum();
    let rest = listed + presence.rest.1;
    let most = most_frequent(presence);
    let columns = shown.len() + usize::from(rest > 0);
    let width = ((WIDTH - left) / columns.max(1)).min(44);
    let height = bars + 26 + drawn * row;
    let mut out = format!(
        "<svg id=combinations viewBox=\"0 0 {WIDTH} {height}\" role=img aria-label=\"Instances in each combination of views\">"
    );
    let matrix = bars + 22;
    for number in (0..drawn).step_by(2) {
        put!(
            out,
            "<rect class=stripe x=0 y={} width={} height={row} />",
            matrix + number * row,
            left + columns * width
        );
    }
    labels(&mut out, presence, drawn, matrix, row);
    let bar = |out: &mut String, column: usize, instances: usize, class: &str, title: &str| {
        // The bar of the rest is cut off at the height of the tallest bar.
        let tall = ((instances as f64 / most as f64).min(1.0) * (bars as f64 - 6.0)).max(1.0);
        let x = left + column * width;
        put!(
            out,
            "<rect class={class} x={} y=\"{:.1}\" width={} height=\"{tall:.1}\"><title>{title}</title></rect>",
            x + 3,
            bars as f64 + 14.0 - tall,
            width - 6
        );
        let middle = x + width / 2;
        put!(
            out,
            "<text class=quiet x={middle} y=\"{:.1}\" text-anchor=middle>{}</text>",
            bars as f64 + 10.0 - tall,
            brief(instances)
        );
        middle
    };
    for (column, combination) in shown.iter().enumerate() {
        let title =
            format!("{}: {}", views_of(presence, combination), counted(combination.instances, "instance"));
        let middle = bar(&mut out, column, combination.instances, "bar", &escape(&title));
        let rows: Vec<usize> = combination.views.iter().copied().filter(|&view| view < drawn).collect();
        let y = |view: usize| matrix + view * row + row / 2;
        for view in 0..drawn {
            put!(out, "<circle class=off cx={middle} cy={} r=3.5 />", y(view));
        }
        if let (Some(&first), Some(&last)) = (rows.first(), rows.last()) {
            put!(out, "<path class=link d=\"M{middle} {}V{}\"/>", y(first), y(last));
        }
        for view in rows {
            put!(out, "<circle class=on cx={middle} cy={} r=4.5 />", y(view));
        }
    }
    if rest > 0 {
        let others = presence.combinations.len() - shown.len() + presence.rest.0;
        let title = format!("{}: {}", counted(others, "other combination"), counted(rest, "instance"));
        bar(&mut out, shown.len(), rest, "hatched", &title);
    }
    out.push_str("</svg>");
    out
}

/// The instances of the most frequent combination.
fn most_frequent(presence: &Presence) -> usize {
    presence.combinations.first().map_or(1, |combination| combination.instances)
}

/// A count that fits above a bar.
fn brief(number: usize) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

fn views_of(presence: &Presence, combination: &Combination) -> String {
    if combination.views.len() == presence.views.len() {
        return "all views".into();
    }
    let names = combination.views.iter().map(|&view| shorten(&presence.views[view].name, 40));
    shorten(&names.collect::<Vec<_>>().join(" + "), 200)
}

pub(crate) fn table(figures: &Figures) -> String {
    let (presence, instances) = (&figures.presence, figures.summary.instances);
    let columns = [("combination", false), ("views", true), ("instances", true), ("share", true)];
    let mut table = Table::new("combinations-table", "Combinations of views", &columns);
    for combination in &presence.combinations {
        let share = combination.instances as f64 / instances as f64;
        table.push(&[
            Cell::Text(views_of(presence, combination)),
            Cell::Number(combination.views.len() as f64, combination.views.len().to_string()),
            Cell::Number(combination.instances as f64, count(combination.instances)),
            Cell::Number(share, percent(share)),
        ]);
    }
    let note = match presence.rest {
        (0, _) => String::new(),
        (others, of) => format!(
            "{} with {} are not listed",
            counted(others, "rarer combination"),
            counted(of, "instance")
        ),
    };
    table.finish(&note)
}
