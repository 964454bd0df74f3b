//! A description of the fit for the methods section of a paper.

use daimc::{Decision, Fit, Neighbours, Outcome};

use super::text::{count, counted, escape, number, percent, put, shorten};
use crate::figures::Figures;

const REFERENCE: &str = "Hu, M. and Chen, S. (2018). Doubly aligned incomplete multi-view clustering. In Proceedings of the \
                         Twenty-Seventh International Joint Conference on Artificial Intelligence (IJCAI-18), pp. 2262–2268.";
/// The maximum number of views that are named.
const NAMED: usize = 12;

pub(crate) fn section(figures: &Figures, fit: &Fit) -> String {
    format!(
        "<div class=table-head><h3>Methods paragraph</h3><button type=button class=\"download copy\" data-copy=methods-text>Copy</button></div>\
         <div id=methods-text class=paste><p>{}</p>\n<p>{}</p></div>",
        escape(&paragraph(figures, fit)),
        escape(REFERENCE)
    )
}

fn paragraph(figures: &Figures, fit: &Fit) -> String {
    let (summary, options) = (&figures.summary, &fit.model.options);
    let mut out = format!(
        "Instances were clustered with doubly aligned incomplete multi-view clustering (DAIMC; Hu and Chen, 2018), as implemented in \
         daimc {}. The data were {} in {} with {}",
        env!("CARGO_PKG_VERSION"),
        counted(summary.instances, "instance"),
        counted(summary.views, "view"),
        counted(summary.features, "feature")
    );
    let presence = &figures.presence;
    if presence.views.len() <= NAMED {
        let view = |view: &crate::figures::ViewPresence| {
            let share = percent(view.present as f64 / summary.instances.max(1) as f64);
            format!(
                "{}: {}, {share} of the instances",
                shorten(&view.name, 40),
                counted(view.features, "feature")
            )
        };
        put!(out, " ({})", presence.views.iter().map(view).collect::<Vec<_>>().join("; "));
    }
    put!(out, "; {} of the pairs of instance and view were missing", percent(presence.missing));
    let cells: usize = figures.cells.iter().map(|view| view.cells).sum();
    match cells {
        0 => out.push_str(", and no values within rows were missing. "),
        cells => put!(
            out,
            ", and so {} within rows, which are excluded from the loss. ",
            if cells == 1 { "was one value".into() } else { format!("were {} values", count(cells)) }
        ),
    }
    out.push_str(&scaling(fit));
    put!(
        out,
        "Options were K = {}, {}α = {} and β = {} ({} penalty), {}, and seed {}. ",
        options.clusters,
        if options.latent == options.clusters {
            String::new()
        } else {
            format!("{} latent dimensions, ", options.latent)
        },
        options.alpha,
        options.beta,
        options.penalty.name(),
        counted(options.runs, "run"),
        options.seed
    );
    let end = match summary.outcome {
        Outcome::Converged => "converged",
        Outcome::Settled => "reached the limit with stable clusters",
        Outcome::Interrupted => "was stopped",
        _ => "reached the limit",
    };
    put!(
        out,
        "The fit {end} after {} (J = {}). ",
        counted(summary.iterations, "iteration"),
        number(summary.objective)
    );
    let Decision { used, reason, .. } = &fit.neighbours;
    match used {
        Neighbours::Off => {
            put!(out, "Clusters were taken from the latent representation V alone ({reason}). ");
        }
        used => put!(
            out,
            "Clusters were then refined by the nearest-neighbour graphs of the views ({}; {reason}). ",
            used.name()
        ),
    }
    if let Some(found) = &fit.significance {
        put!(
            out,
            "The mutual information between the cluster of an instance and those of its neighbours was {:.3} of its maximum, compared with {:.3} ± {:.3} \
             (mean ± SD) for the same data with every feature permuted. ",
            found.agreement,
            found.by_chance,
            found.deviation
        );
    }
    if let Some(share) = fit.model.reproducibility {
        put!(
            out,
            "In fits to a random four fifths of a sample, {} of the instances kept their cluster. ",
            percent(share)
        );
    }
    out.trim_end().to_owned()
}

/// The scalings, each with its views.
fn scaling(fit: &Fit) -> String {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for view in &fit.model.views {
        let (scale, own) = (view.scaling.scale.to_string(), shorten(&view.name, 40));
        match kinds.iter_mut().find(|(known, _)| *known == scale) {
            Some((_, views)) => views.push(own),
            None => kinds.push((scale, vec![own])),
        }
    }
    match kinds.as_slice() {
        [(scale, views)] if views.len() > 1 => format!("All views were scaled by {scale}. "),
        kinds => {
            let kind = |(scale, views): &(String, Vec<String>)| {
                let some = views.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
                let more = views.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("{scale} ({some}{more})")
            };
            format!("Views were scaled by {}. ", kinds.iter().map(kind).collect::<Vec<_>>().join(", "))
        }
    }
}
