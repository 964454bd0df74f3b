//! A table that maps the IDs of views to instances.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use daimc_core::text::{list, quoted};

use crate::input::Opened;
use crate::records::{self, Record};
use crate::{Error, Position, Result};

/// The columns of the table.
const TITLES: [&str; 3] = ["view", "id", "instance"];

/// The instance of each ID of some views.
#[derive(Clone, Debug)]
pub struct IdMap {
    path: PathBuf,
    /// By view, then by ID.
    instances: HashMap<String, HashMap<String, String>>,
}

impl IdMap {
    /// Reads a table with the columns `view`, `id` and `instance`, in any order and among others.
    ///
    /// # Errors
    /// When the file cannot be read, lacks one of the columns, or has an ID of a view twice.
    pub fn read(path: &Path) -> Result<Self> {
        let (mut records, _) = records::read(path, Opened::new(path, false)?)?;
        let titles = records.remove(0).fields;
        let place = |title: &str| titles.iter().position(|own| own.trim().eq_ignore_ascii_case(title));
        let [Some(view), Some(id), Some(instance)] = TITLES.map(place) else {
            let (wanted, found) = (list(TITLES), list(titles.iter().map(|title| quoted(title))));
            let reason = format!(
                "a map of IDs has the columns {wanted}, but here are {found}: name them in the first line"
            );
            return Err(Error::in_file(path, reason));
        };
        let mut instances: HashMap<String, HashMap<String, String>> = HashMap::new();
        for Record { line, mut fields } in records {
            let place = Position::line(path, line);
            if fields.len() != titles.len() {
                return Err(place.fault(format!(
                    "{} fields where {} are expected",
                    fields.len(),
                    titles.len()
                )));
            }
            let [view, id, instance] = [view, id, instance].map(|at| std::mem::take(&mut fields[at]));
            if id.is_empty() || instance.is_empty() {
                return Err(place.fault("the ID or the instance is empty: fill both in, or delete the line"));
            }
            let own = instances.entry(view.clone()).or_default();
            if own.insert(id.clone(), instance).is_some() {
                let (id, view) = (quoted(&id), quoted(&view));
                return Err(place.fault(format!(
                    "the ID {id} of view {view} occurs a second time: delete one of the two"
                )));
            }
        }
        Ok(Self { path: path.to_owned(), instances })
    }

    /// The instance of an ID; `None` for a view that the map does not list.
    pub(super) fn get(&self, view: &str, id: &str) -> Result<Option<&str>> {
        let Some(own) = self.instances.get(view) else { return Ok(None) };
        let missing = || {
            let (id, view) = (quoted(id), quoted(view));
            let reason =
                format!("has no line for the ID {id} of view {view}, of which it lists others: add one");
            Error::in_file(&self.path, reason)
        };
        own.get(id).map(|instance| Some(instance.as_str())).ok_or_else(missing)
    }

    /// Fails if the map lists an unknown view.
    pub(super) fn check<'a>(&self, views: impl Iterator<Item = &'a str>) -> Result<()> {
        let views: HashSet<&str> = views.collect();
        let mut unknown: Vec<&str> =
            self.instances.keys().map(String::as_str).filter(|view| !views.contains(view)).collect();
        unknown.sort_unstable();
        let Some(first) = unknown.first() else { return Ok(()) };
        let mut known: Vec<&str> = views.into_iter().collect();
        known.sort_unstable();
        let known = list(known.into_iter().map(|view| quoted(view)));
        let reason = format!("names the view {}, but the views are {known}", quoted(first));
        Err(Error::in_file(&self.path, reason))
    }
}
