//! Files of no known convention: datasets in groups.

use daimc_core::text::quoted;
use hdf5_pure::Group;

use super::anndata::{dense_or_sparse, is_sparse};
use super::matrix::Named;
use super::node::{Container, Node};
use super::source::guarded;
use crate::Result;
use crate::listing::list_names;

/// The deepest nesting of groups, and the most names, that are searched.
const DEEPEST: usize = 8;
const MOST: usize = 1000;

/// The matrix at a path; without one, the only matrix.
pub(super) fn matrix(container: &Container, path: Option<&str>) -> Result<Named> {
    let mut names = Vec::new();
    let path = if let Some(path) = path {
        path.trim_matches('/').to_owned()
    } else {
        matrices(container, &container.root(), "", 0, &mut names)?;
        let [name] = &*names else {
            let reason = format!("holds {}; pick a matrix with ::PATH", list_names(&names));
            return Err(container.place.fault(reason));
        };
        name.clone()
    };
    let Some(node) = container.find(&container.root(), &path)? else {
        matrices(container, &container.root(), "", 0, &mut names)?;
        let reason = format!("has no dataset {}; it holds {}", quoted(&path), list_names(&names));
        return Err(container.place.fault(reason));
    };
    let matrix = dense_or_sparse(container, &node, &path)?;
    Ok(Named { place: container.place.clone(), matrix, rows: None, columns: None })
}

/// The paths of datasets of two dimensions.
fn matrices(
    container: &Container,
    group: &Group,
    before: &str,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<()> {
    for name in container.names(group)? {
        let path = format!("{before}{name}");
        match container.find(group, &name)? {
            Some(Node::Dataset(dataset)) if guarded(&container.place, || dataset.shape())?.len() == 2 => {
                out.push(path);
            }
            Some(Node::Group(group)) if depth < DEEPEST => {
                if is_sparse(container, &group)? {
                    out.push(path);
                } else {
                    matrices(container, &group, &format!("{path}/"), depth + 1, out)?;
                }
            }
            _ => {}
        }
        if out.len() > MOST {
            break;
        }
    }
    Ok(())
}
