//! A summary of joined views.

use std::fmt;

use daimc_core::Views;
use daimc_core::text::{list, plain, quoted};
use rayon::prelude::*;

use crate::ids::near;

/// A summary of joined views. `Display` writes it as a few lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// The number of instances.
    pub instances: usize,
    /// Instances that are present in every view.
    pub in_every_view: usize,
    /// The summary of each view.
    pub views: Vec<ViewAccount>,
    /// The IDs of instances that are present in no view and were dropped.
    pub dropped: Vec<String>,
    /// Warnings about the data.
    pub remarks: Vec<String>,
}

/// A summary of one view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewAccount {
    /// Its name.
    pub name: String,
    /// Instances that are present.
    pub present: usize,
    /// Instances that are present in this view only.
    pub alone: usize,
    /// Rows that the mask hides.
    pub masked: usize,
    /// Other rows that are missing because they have no value.
    pub empty: usize,
    /// Values that were replaced by the mean of their feature.
    pub imputed: usize,
    /// Missing values in rows with other values.
    pub missing: usize,
    /// The number of these rows.
    pub partial: usize,
}

impl Account {
    /// With `apart`, views may have nothing in common.
    pub(super) fn of(
        views: &Views<'_>,
        mut accounts: Vec<ViewAccount>,
        dropped: Vec<String>,
        apart: bool,
    ) -> Self {
        let (instances, count) = (views.instances(), views.len());
        // Instances that are present in every view, in each view, and in each view only.
        let none = || (0, vec![(0, 0); count]);
        let (in_every_view, shown) = (0..instances)
            .into_par_iter()
            .fold(none, |(mut everywhere, mut shown), i| {
                let here = || (0..count).filter(|&v| views.is_present(v, i));
                let seen = here().count();
                everywhere += usize::from(seen == count);
                here().for_each(|v| shown[v] = (shown[v].0 + 1, shown[v].1 + usize::from(seen == 1)));
                (everywhere, shown)
            })
            .reduce(none, |(everywhere, mut shown), (more, others)| {
                shown
                    .iter_mut()
                    .zip(others)
                    .for_each(|(own, other)| *own = (own.0 + other.0, own.1 + other.1));
                (everywhere + more, shown)
            });
        for (account, (present, alone)) in accounts.iter_mut().zip(shown) {
            (account.present, account.alone) = (present, alone);
        }
        let remarks = if apart { Vec::new() } else { few_shared(views, &accounts).into_iter().collect() };
        Self { instances, in_every_view, views: accounts, dropped, remarks }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", counted(self.instances, "instance"))?;
        if self.views.len() > 1 {
            write!(f, " in {}, {} in every view", counted(self.views.len(), "view"), self.in_every_view)?;
        }
        for view in &self.views {
            write!(f, "\n  {}: {}", plain(&view.name), counted(view.present, "instance"))?;
            let notes = [
                (view.alone, "in no other view", self.views.len() > 1),
                (view.masked, "hidden by the mask", true),
                (view.empty, "without any value", true),
            ];
            for (count, what, _) in notes.iter().filter(|(count, _, shown)| *count > 0 && *shown) {
                write!(f, ", {count} {what}")?;
            }
            if view.imputed > 0 {
                write!(f, ", {} imputed by the mean", counted(view.imputed, "value"))?;
            }
            if view.missing > 0 {
                let rows = counted(view.partial, "instance");
                write!(f, ", {} missing inside {rows}", counted(view.missing, "value"))?;
            }
            if self.views.len() > 1 && view.alone == view.present {
                write!(f, " (shares no instance with another view)")?;
            }
        }
        if !self.dropped.is_empty() {
            let examples: Vec<String> = self.dropped.iter().take(3).map(|id| plain(id).to_string()).collect();
            let more = if self.dropped.len() > 3 { ", …" } else { "" };
            let count = counted(self.dropped.len(), "instance");
            write!(f, "\ndropped {count} that no view shows: {}{more}", examples.join(", "))?;
        }
        self.remarks.iter().try_for_each(|remark| write!(f, "\nwarning: {remark}"))
    }
}

/// A view shares few instances if it has less than this share of the possible ones in common with the others.
const FEW: f64 = 0.2;
/// IDs that are listed as examples.
const EXAMPLES: usize = 2;

/// The warning that a view has few instances in common with the others.
fn few_shared(views: &Views<'_>, accounts: &[ViewAccount]) -> Option<String> {
    let shares_few = |own: &ViewAccount| {
        let shared = own.present - own.alone;
        let others = views.instances() - own.alone;
        (shared as f64) < FEW * own.present.min(others) as f64
    };
    let odd = accounts.iter().position(shares_few)?;
    let all = || 0..views.instances();
    let id = |i: usize| views.ids().get(i);
    let seen = |i: usize| (0..accounts.len()).filter(|&v| views.is_present(v, i)).count();
    let here = all().filter(|&i| views.is_present(odd, i) && seen(i) == 1).take(EXAMPLES).map(id);
    let there = all().filter(|&i| !views.is_present(odd, i)).take(EXAMPLES).map(id);
    let (here, there) = (here.collect::<Vec<_>>(), there.collect::<Vec<_>>());
    let lists = (0..accounts.len()).map(|v| all().filter(|&i| views.is_present(v, i)).map(id).collect());
    let own = &accounts[odd];
    let shared = own.present - own.alone;
    let near = near(&lists.collect::<Vec<Vec<String>>>()).filter(|near| near.shared[odd] > 2 * shared);
    let hint = near.map_or_else(String::new, |near| format!("; with {near} there are {}", near.shared[odd]));
    Some(format!(
        "view {} has only {shared} of its {} instances in common with others: it alone has {}, others have {}{hint}",
        quoted(&own.name),
        own.present,
        list(here.iter().map(|id| quoted(id))),
        list(there.iter().map(|id| quoted(id))),
    ))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
