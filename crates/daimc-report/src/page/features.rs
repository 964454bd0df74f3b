//! The features that B selects: a chart that the script draws from the embedded data, and a table.

use serde_json::{Value, json};

use super::table::{Cell, Table};
use super::text::{LONGEST, escape, name, number, percent, put, shorten};
use crate::figures::{Features, Figures, Leader, ViewFeatures};

/// The maximum number of rows of the table.
const ROWS: usize = 1000;

pub(crate) fn section(figures: &Figures) -> String {
    let features = &figures.features;
    let mut out = String::from("<div class=choosers><label>View <select id=feature-view>");
    for (number, view) in features.views.iter().enumerate() {
        put!(
            out,
            "<option value={number} title=\"{}\">{}</option>",
            name(&view.name),
            escape(&shorten(&view.name, 60))
        );
    }
    out.push_str(
        "</select></label><label>Cluster <select id=feature-cluster><option value=-1>all clusters</option>",
    );
    for (index, cluster) in features.clusters.iter().enumerate() {
        put!(out, "<option value={index}>cluster {cluster}</option>");
    }
    out.push_str(
        "</select></label></div><div class=pair><figure data-name=features><h3>Largest weights</h3><div class=chart id=feature-bars></div><figcaption>",
    );
    put!(
        out,
        "The {} features with the largest weights. For all clusters: the norm of the feature's row of B. For one cluster: how far \
         the feature moves an instance towards the cluster's centre, bᵀc/‖c‖; to the left of the line it is evidence against the cluster. Click a feature to see its distribution.",
        features.top
    );
    if let Some(runs) = features.runs {
        put!(
            out,
            " The share behind a weight is its stability: of the {runs} runs, those in which the feature leads the cluster, that is, is among \
             the {} with the largest weights, with the same sign. The model shown is not one of the runs, but combines them all. 100%: the feature does not depend on the start.",
            leading(features)
        );
    }
    if features.clusters.len() < figures.summary.clusters {
        put!(out, " The {} largest clusters can be chosen.", features.clusters.len());
    }
    if features.views.len() < figures.summary.views {
        put!(out, " The first {} of {} views can be chosen.", features.views.len(), figures.summary.views);
    }
    out.push_str(
        "</figcaption></figure><figure data-name=distribution id=distribution><h3>Distribution by cluster</h3><div class=chart></div><figcaption></figcaption></figure></div>",
    );
    out + &super::values::heat_maps(figures)
}

/// The number of features that lead a cluster, in words.
fn leading(features: &Features) -> String {
    let counts = features.views.iter().map(|view| view.leading);
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => {
            format!("{least} to {most} (a twentieth of a view, at least ten, at most half)")
        }
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

/// The data of the script: names once per view, weights with three digits.
pub(crate) fn data(features: &Features) -> Value {
    let pairs = |list: &Vec<(usize, f64)>| -> Vec<(usize, f64)> {
        list.iter().map(|&(index, value)| (index, three_digits(value))).collect()
    };
    // With their stability in per cent, if there were several runs.
    let leaders = |list: &Vec<Leader>| -> Vec<Value> {
        let of = |leader: &Leader| match leader.stability {
            Some(share) => json!([leader.place, three_digits(leader.weight), (100.0 * share).round() as i64]),
            None => json!([leader.place, three_digits(leader.weight)]),
        };
        list.iter().map(of).collect()
    };
    let view = |view: &ViewFeatures| {
        json!({
            "names": view.names.iter().map(|name| shorten(name, LONGEST)).collect::<Vec<_>>(),
            "all": pairs(&view.overall),
            "by": view.by_cluster.iter().map(leaders).collect::<Vec<_>>(),
        })
    };
    json!(features.views.iter().map(view).collect::<Vec<_>>())
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

pub(crate) fn table(figures: &Figures) -> String {
    let features = &figures.features;
    let mut columns = vec![
        ("view", false),
        ("feature", false),
        ("relevance", true),
        ("rank in view", true),
        ("strongest for cluster", true),
    ];
    if features.runs.is_some() {
        columns.push(("stability there", true));
    }
    let mut table = Table::new("features-table", "Features", &columns);
    let per_view = (ROWS / features.views.len().max(1)).max(1);
    for view in &features.views {
        for (rank, &(index, relevance)) in view.overall.iter().take(per_view).enumerate() {
            let strongest = strongest(features, view, index);
            let mut cells = vec![
                Cell::Text(view.name.clone()),
                Cell::Text(view.names[index].clone()),
                Cell::Number(relevance, number(relevance)),
                Cell::Number((rank + 1) as f64, (rank + 1).to_string()),
                strongest
                    .map_or(Cell::Empty, |(cluster, _)| Cell::Number(cluster as f64, cluster.to_string())),
            ];
            if features.runs.is_some() {
                let stability = strongest.and_then(|(_, leader)| leader.stability);
                cells.push(stability.map_or(Cell::Empty, |share| Cell::Number(share, percent(share))));
            }
            table.push(&cells);
        }
    }
    table.finish(&format!("the {} most relevant of each view", per_view.min(features.top)))
}

/// The cluster for which a feature has its largest weight, if it is listed for any cluster.
fn strongest(features: &Features, view: &ViewFeatures, index: usize) -> Option<(usize, Leader)> {
    let lists = features.clusters.iter().zip(&view.by_cluster);
    let found = lists
        .filter_map(|(&cluster, list)| Some((cluster, *list.iter().find(|leader| leader.place == index)?)));
    found.max_by(|a, b| a.1.weight.total_cmp(&b.1.weight))
}
