//! Long lists in messages, cut short.

use daimc_core::text::plain;

/// The most items that a message lists.
pub(crate) const LISTED: usize = 30;

/// The first items, with commas between them, and how many more there are; `none` if there are none. `shown` are those that fit
/// into a message.
pub(crate) fn listing(shown: &[String], count: usize, none: &str) -> String {
    match count {
        0 => none.into(),
        count if count > shown.len() => format!("{}, and {} more", shown.join(", "), count - shown.len()),
        _ => shown.join(", "),
    }
}

/// The first names, for a message.
pub(crate) fn list_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| plain(name).to_string()).collect();
    listing(&shown, names.len(), "nothing that could be one")
}
