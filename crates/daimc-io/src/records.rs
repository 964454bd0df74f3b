//! Small tables of any format as records of text, such as labels.

use std::io::Read;
use std::path::Path;

use crate::archive::{self, Content};
use crate::arrow::Arrow;
use crate::format::Format;
use crate::input::{Opened, failed};
use crate::parquet::Parquet;
pub(crate) use crate::text::Record;
use crate::{Result, frame, text};

/// All records of a table, the header included, and the SHA-256 of its file. Where no separator is found, they have one
/// field each.
pub(crate) fn read(path: &Path, mut file: Opened) -> Result<(Vec<Record>, String)> {
    let records = match Format::of(path, file.start()) {
        Format::Parquet => frame::records::<Parquet>(&mut file)?,
        Format::Arrow => frame::records::<Arrow>(&mut file)?,
        _ => {
            let (text, tabs, sha256) = whole_text(path, file)?;
            return Ok((text::records(path, &text, tabs)?, sha256));
        }
    };
    Ok((records, file.sha256()?))
}

/// The whole text of a small file, decompressed, or of the only table of an archive, whether tabs separate its fields; and the
/// SHA-256 of the file.
fn whole_text(path: &Path, mut file: Opened) -> Result<(Vec<u8>, bool, String)> {
    let content = match Format::of(path, file.start()) {
        Format::Zip => Some(Content::of(&mut file)?).filter(|content| *content != Content::Arrays),
        _ => None,
    };
    let Some(content) = content else {
        return file.whole_text().map(|(text, sha256)| (text, false, sha256));
    };
    let (text, tabs) = archive::with_text(&mut file, content, None, |_, mut input| {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|error| failed(path, error))?;
        Ok((text, input.tabs))
    })?;
    Ok((text, tabs, file.sha256()?))
}
