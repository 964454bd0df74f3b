//! numpy's `.npz`: arrays in a zip archive, or a sparse matrix of scipy.

mod archive;
mod store;

use archive::{Archive, Wanted};

use crate::disk::Keep;
use crate::input::Opened;
use crate::{Precision, Reading, Result, Table};

/// Reads the array called `variable`; without a name, a sparse matrix that fills the file, or the only matrix.
pub fn read(file: &mut Opened, variable: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = file.place.clone();
    let kept = match keep.disk() {
        Some(disk) => Some((disk, file.watched()?)),
        None => None,
    };
    file.at_random(|bytes| {
        let mut archive = Archive::open(place, bytes)?;
        let wanted = archive.wanted(variable)?;
        match (kept, wanted) {
            (None, Wanted::Array(name)) => archive.array(&name)?.table(how),
            (None, Wanted::Sparse) => archive.sparse(how),
            (Some((disk, file)), Wanted::Array(name)) => archive.store(&name, how, disk, file),
            (Some((disk, file)), Wanted::Sparse) => archive.store_sparse(how, disk, file),
        }
    })
}

/// The number of instances, and the bytes of their values in memory.
pub fn size(file: &mut Opened, variable: Option<&str>, how: Reading) -> Result<(usize, u64)> {
    let place = file.place.clone();
    file.at_random(|bytes| {
        let mut archive = Archive::open(place, bytes)?;
        match archive.wanted(variable)? {
            Wanted::Array(name) => archive.array(&name)?.size(how),
            Wanted::Sparse => {
                let shape = archive.array("shape")?.list::<usize>()?;
                let rows = shape.get(usize::from(how.transpose)).copied().unwrap_or(0);
                let data = archive.array("data")?.pieces_of_list()?;
                let precision = how.precision.unwrap_or(data.encoding.kind.precision());
                let entry = if precision == Precision::F32 { 8 } else { 12 };
                Ok((rows, (data.count as u64).saturating_mul(entry).saturating_add(8 * rows as u64)))
            }
        }
    })
}
