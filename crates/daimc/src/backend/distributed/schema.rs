//! The schema of a data set, from those of its partitions.

use crate::partition::rows::ViewPart;
use daimc_core::scale::Observed;
use daimc_core::schema::Presence;
use daimc_core::table::unsuitable;
use daimc_core::text::quoted;
use daimc_core::{Ids, Result, Schema, ViewSchema};

/// The views of a partition, by its first instance and its number of instances.
type Part = (usize, usize, Vec<ViewPart>);

/// The schema of all instances.
/// # Errors
/// When instances are in no partition or in several, or when partitions have different views.
pub(super) fn whole(mut shares: Vec<Part>, instances: usize) -> Result<Schema> {
    shares.sort_by_key(|(first, ..)| *first);
    let mut next = 0;
    for (first, count, _) in &shares {
        if *first != next {
            return Err(unsuitable("some instances are in no partition, or in two"));
        }
        next += count;
    }
    if next != instances {
        return Err(unsuitable(format!(
            "the partitions have {next} instances, and the executor reports {instances}"
        )));
    }
    let count = shares.first().map_or(0, |(.., views)| views.len());
    if shares.iter().any(|(.., views)| views.len() != count) {
        return Err(unsuitable("partitions have different views"));
    }
    let views = (0..count).map(|view| whole_view(&shares, view, instances)).collect::<Result<_>>()?;
    Schema::new(Ids::Numbers(instances), views)
}

/// The schema once the views are prepared.
pub(super) fn prepared(given: &Schema, observed: &[Observed]) -> Result<Schema> {
    let view = |(view, Observed { missing, empty, .. }): (usize, &Observed)| {
        let own = ViewSchema::clone(&given.view(view));
        own.without(given.instances(), empty).holes(missing.cells())
    };
    Schema::new(given.shared_ids(), observed.iter().enumerate().map(view).collect())
}

/// One view, of all instances.
fn whole_view(shares: &[Part], view: usize, instances: usize) -> Result<ViewSchema> {
    let first = &shares[0].2[view];
    let mut holes = Some(0);
    for own in shares.iter().map(|(.., views)| &views[view]) {
        let differ = |what: &str| {
            let name = quoted(&first.name);
            Err(unsuitable(format!("parts of view {name} differ in {what}; give them alike")))
        };
        if own.name != first.name {
            return differ("their names");
        }
        if own.features != first.features {
            return differ("the number of features");
        }
        if own.feature_names != first.feature_names {
            return differ("the names of features");
        }
        if own.layout != first.layout {
            return differ("how they are stored (single or double precision, dense or sparse)");
        }
        holes = holes.zip(own.missing_cells).map(|(all, own)| all + own);
    }
    let entries = shares.iter().map(|(.., views)| views[view].entries).sum();
    let mut bits = vec![0_u64; instances.div_ceil(64)];
    for (start, count, views) in shares {
        let shown = (0..*count).filter(|&i| views[view].presence.shows(i)).map(|i| start + i);
        shown.for_each(|i| bits[i / 64] |= 1 << (i % 64));
    }
    let presence = Presence::from_fn(instances, |i| bits[i / 64] >> (i % 64) & 1 == 1);
    let whole = ViewSchema::new(&first.name, first.features, first.layout);
    let mut whole = whole.presence(presence).stored(entries);
    if let Some(names) = &first.feature_names {
        whole = whole.feature_names(names.clone());
    }
    Ok(match holes {
        Some(cells) => whole.holes(cells),
        None => whole,
    })
}
