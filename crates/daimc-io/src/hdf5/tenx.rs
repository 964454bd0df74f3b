//! Matrices of Cell Ranger (10x Genomics): one matrix whose features have types, or one matrix for each genome.

use daimc_core::text::quoted;
use hdf5_pure::Group;

use super::matrix::{Matrix, Named, Sparse};
use super::node::Container;
use crate::Result;
use crate::feature_types::{distinct, numbered, unique_names};
use crate::listing::list_names;

/// The groups of a file that are such matrices.
pub(super) fn matrices(container: &Container, root: &Group) -> Result<Vec<(String, Group)>> {
    let mut found = Vec::new();
    for name in container.names(root)? {
        let Some(group) = container.group(root, &name)? else { continue };
        if ["barcodes", "data", "indices", "indptr", "shape"].iter().try_fold(true, |all, part| {
            Ok::<_, crate::Error>(all && container.find(&group, part)?.is_some())
        })? {
            found.push((name, group));
        }
    }
    Ok(found)
}

/// The names that pick the views of a file: genomes or types of features, if there are several.
pub(super) fn parts(container: &Container, matrices: &[(String, Group)]) -> Result<Vec<String>> {
    let parts = match matrices {
        [(_, only)] => distinct(&types(container, only)?.unwrap_or_default()),
        several => several.iter().map(|(name, _)| name.clone()).collect(),
    };
    Ok(if parts.len() > 1 { parts } else { Vec::new() })
}

/// The matrix of a genome or of the features of a type; cells are instances.
pub(super) fn matrix(
    container: &Container,
    matrices: &[(String, Group)],
    part: Option<&str>,
) -> Result<Named> {
    let parts = parts(container, matrices)?;
    let unknown = |part: &str, known: &[String]| {
        container.place.fault(format!("has no part {}; it holds {}", quoted(part), list_names(known)))
    };
    let genome = part.and_then(|part| matrices.iter().find(|(name, _)| name == part));
    let (group, kind) = match (genome, part, matrices) {
        (Some((_, group)), ..) => (group, None),
        (None, part, [(_, group)]) => (group, part),
        (None, Some(part), _) => return Err(unknown(part, &parts)),
        (None, None, _) => (&matrices[0].1, None),
    };
    if part.is_none() && parts.len() > 1 {
        let reason = format!("holds {}; pick one with ::NAME", list_names(&parts));
        return Err(container.place.fault(reason));
    }
    let barcodes = container.texts(group, "barcodes")?;
    let (names, ids) = match container.group(group, "features")? {
        Some(features) => (container.texts(&features, "name")?, container.texts(&features, "id")?),
        None => (container.texts(group, "gene_names")?, container.texts(group, "genes")?),
    };
    let shape: Vec<usize> = container.array(group, "shape")?.list()?;
    let &[features, cells] = &*shape else {
        return Err(container.place.fault("has a matrix without a shape; save it anew"));
    };
    let mut columns = unique_names(names, &ids);
    let only = match kind {
        None => None,
        Some(kind) => {
            let types = types(container, group)?.unwrap_or_default();
            let (only, count) = numbered(&types, kind);
            if count == 0 || only.len() != features || columns.len() != features {
                return Err(unknown(kind, &distinct(&types)));
            }
            let mut kept = only.iter().map(|number| *number != u32::MAX);
            columns.retain(|_| kept.next().unwrap_or(false));
            (count < features).then_some(only)
        }
    };
    let sparse = Sparse {
        values: container.array(group, "data")?,
        indices: container.array(group, "indices")?,
        offsets: container.array(group, "indptr")?.list()?,
        // Cells are compressed columns, i.e. rows of the transpose.
        shape: [cells, only.as_ref().map_or(features, |_| columns.len())],
        by_row: true,
        only,
    };
    let matrix = Matrix::Sparse(Box::new(sparse));
    Ok(Named { place: container.place.clone(), matrix, rows: Some(barcodes), columns: Some(columns) })
}

/// The types of features, if the file has them.
fn types(container: &Container, group: &Group) -> Result<Option<Vec<String>>> {
    let Some(features) = container.group(group, "features")? else { return Ok(None) };
    if container.find(&features, "feature_type")?.is_none() {
        return Ok(None);
    }
    container.texts(&features, "feature_type").map(Some)
}
