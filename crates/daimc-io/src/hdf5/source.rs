//! The file as a source of the `hdf5-pure` crate.

use std::io::{self, Read};

use hdf5_pure::{Error, FormatError, Source};

use crate::input::Random;
use crate::quiet::caught;
use crate::{Position, Result};

/// Reads the structure of the file in many small pieces.
pub(super) struct Bytes(pub Random);

impl Source for Bytes {
    fn len(&self) -> u64 {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::result::Result<(), FormatError> {
        self.0.at(offset).read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FormatError::UnexpectedEof {
                expected: usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(buffer.len()),
                available: usize::try_from(self.0.length()).unwrap_or(usize::MAX),
            },
            _ => FormatError::Source(error.to_string()),
        })
    }
}

/// Calls the `hdf5-pure` crate, which might panic on a damaged file.
pub(super) fn guarded<T>(
    place: &Position,
    call: impl FnOnce() -> std::result::Result<T, Error>,
) -> Result<T> {
    match caught(call) {
        Some(Ok(found)) => Ok(found),
        Some(Err(Error::Io(error))) => Err(place.unreadable(error)),
        Some(Err(Error::Format(FormatError::UnexpectedEof { .. }))) => {
            Err(place.fault("ends before its data do; copy it again or save it anew"))
        }
        Some(Err(error)) => Err(place.fault(format!(
            "is not HDF5 that can be read ({error}); copy it again, or save it anew without libver='latest'"
        ))),
        None => Err(place.fault("is damaged; copy it again or save it anew")),
    }
}
