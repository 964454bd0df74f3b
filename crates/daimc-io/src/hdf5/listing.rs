//! Names in messages.

use daimc::text::plain;

use crate::listing::{LISTED, listing};

/// Names for a message.
pub(super) fn list_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| plain(name).to_string()).collect();
    listing(&shown, names.len(), "nothing that could be one")
}
