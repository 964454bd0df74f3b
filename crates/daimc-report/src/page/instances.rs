//! Single instances, looked up by ID.

use serde_json::{Value, json};

use super::text::{LONGEST, base64, count, put, shorten};
use crate::figures::Figures;

pub(crate) fn section(figures: &Figures) -> String {
    let (known, all) = (figures.instances.numbers.len(), figures.summary.instances);
    let mut out = String::from(
        "<div class=choosers><label>ID <input type=search id=instance-id autocomplete=off spellcheck=false></label>\
         <div id=instance-matches class=keys aria-live=polite></div></div>\
         <div id=instance aria-live=polite><p class=empty>Enter an ID, or part of it, to see its cluster, what each view \
         contributes to it, and its nearest neighbours in V.</p></div>",
    );
    if known < all {
        put!(
            out,
            "<p class=note>This page contains {} of {} instances, a fixed sample in which every cluster is represented; labels.tsv and \
             contributions.tsv of the fit contain all.</p>",
            count(known),
            count(all)
        );
    }
    out
}

/// The data of the script about single instances.
pub(crate) fn data(figures: &Figures) -> Value {
    let instances = &figures.instances;
    let percent = |value: &f64| (100.0 * value).round() as i64;
    // −128: missing from the view.
    let contributions = instances.contributions.iter().flatten();
    let contributions = contributions.map(|share| share.map_or(-128_i8, |share| percent(&share) as i8) as u8);
    json!({
        "id": instances.ids.iter().map(|id| shorten(id, LONGEST)).collect::<Vec<_>>(),
        "cluster": instances.clusters,
        "confidence": instances.confidence.iter().map(percent).collect::<Vec<_>>(),
        "views": instances.views,
        "class": instances.classes,
        "classNames": instances.class_names.iter().map(|name| shorten(name, LONGEST)).collect::<Vec<_>>(),
        "viewNames": figures.evidence.views.iter().map(|view| shorten(&view.name, LONGEST)).collect::<Vec<_>>(),
        "contributions": base64(contributions),
        "latent": instances.latent.as_ref().map(|codes| base64(codes.iter().copied())),
    })
}
