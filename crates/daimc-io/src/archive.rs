//! Zip archives: the arrays of numpy, a spreadsheet, or tables of text.

use std::borrow::Cow;
use std::io::BufReader;

use daimc_core::text::{list, quoted};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::input::{Input, Opened, Random, failed};
use crate::listing::LISTED;
use crate::sheet::{OpenDocument, Workbook, in_cell};
use crate::{Error, Position, Result};

/// About how many times longer a sheet is than its text.
const MARKUP: u64 = 3;

/// What an archive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Arrays of numpy.
    Arrays,
    /// A workbook of Excel.
    Workbook,
    /// A spreadsheet of `OpenDocument`.
    OpenDocument,
    /// Tables of text.
    Texts,
}

impl Content {
    /// Detects the contents by the names of the members.
    pub(crate) fn of(file: &mut Opened) -> Result<Self> {
        let ending = file.place.path.extension().unwrap_or_default().to_ascii_lowercase();
        if ending == "npz" {
            return Ok(Self::Arrays);
        }
        let bytes = file.preview()?;
        let archive = open(&file.place, &bytes)?;
        let has = |name: &str| archive.index_for_name(name).is_some();
        if has("xl/workbook.bin") {
            return Err(file
                .place
                .fault("is a binary workbook (.xlsb), which is not read; save it as .xlsx"));
        }
        let arrays = || archive.file_names().flatten().any(|name| name.ends_with(".npy"));
        Ok(if has("[Content_Types].xml") {
            Self::Workbook
        } else if has("content.xml") && has("mimetype") {
            Self::OpenDocument
        } else if arrays() {
            Self::Arrays
        } else {
            Self::Texts
        })
    }
}

/// Calls `read` with the text of the member or sheet `wanted`, or of the only one.
pub(crate) fn with_text<T: Send>(
    file: &mut Opened,
    content: Content,
    wanted: Option<&str>,
    read: impl FnOnce(&str, Input<'_>) -> Result<T> + Send,
) -> Result<T> {
    let place = file.place.clone();
    let unreadable = |error| place.unreadable(error);
    file.at_random(|bytes| {
        let mut archive = open(&place, &bytes)?;
        match content {
            Content::Workbook => {
                let mut workbook = Workbook::open(&place, &mut archive, wanted)?;
                let name = workbook.name.clone();
                let text = workbook.text().map_err(unreadable)?;
                read(&name, Input::of_sheet(text)).map_err(|error| in_cell(error, &name))
            }
            Content::OpenDocument => {
                let mut document = OpenDocument::open(&place, &mut archive, wanted)?;
                let name = document.name.clone();
                let text = document.text().map_err(unreadable)?;
                read(&name, Input::of_sheet(text)).map_err(|error| in_cell(error, &name))
            }
            Content::Arrays | Content::Texts => {
                let name = member(&place, &archive, wanted)?;
                let place = Position::array(&place.path, &name);
                let member = archive.by_name(&name).map_err(|error| damaged(&place, error))?;
                let method = member.compression();
                if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
                    return Err(place.fault(format!(
                        "is compressed by {method}, which is not read in archives; unpack it and name the file"
                    )));
                }
                let input = Input::new(member).map_err(|error| failed(&place.path, error));
                input.and_then(|input| read(&name, input)).map_err(|error| error.in_part(&name))
            }
        }
    })
}

/// The estimated length of the text of a table.
pub(crate) fn length(file: &mut Opened, content: Content, wanted: Option<&str>) -> Result<u64> {
    let (place, bytes) = (file.place.clone(), file.preview()?);
    let mut archive = open(&place, &bytes)?;
    Ok(match content {
        Content::Workbook => Workbook::open(&place, &mut archive, wanted)?.length() / MARKUP,
        Content::OpenDocument => OpenDocument::open(&place, &mut archive, wanted)?.length() / MARKUP,
        Content::Arrays | Content::Texts => {
            let name = member(&place, &archive, wanted)?;
            archive.by_name(&name).map(|member| member.size()).map_err(|error| damaged(&place, error))?
        }
    })
}

type Archive = ZipArchive<BufReader<Random>>;

fn open(place: &Position, bytes: &Random) -> Result<Archive> {
    ZipArchive::new(BufReader::new(bytes.clone())).map_err(|error| damaged(place, error))
}

/// The name of the member `wanted`, or of the only one. Folders and hidden files of macOS and editors do not count.
fn member(place: &Position, archive: &Archive, wanted: Option<&str>) -> Result<String> {
    let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let hidden =
        |name: &str| base(name).is_empty() || base(name).starts_with('.') || name.starts_with("__MACOSX/");
    let names = archive.file_names().flatten().map(Cow::into_owned);
    let names: Vec<String> = names.filter(|name| !hidden(name)).collect();
    let known = || match names.len() {
        0 => "nothing".into(),
        count if count > LISTED => format!("{count} files, such as {}", quoted(&names[0])),
        _ => list(names.iter().map(|name| quoted(name))),
    };
    let Some(wanted) = wanted else {
        let [name] = &*names else {
            return Err(place.fault(format!("holds {}; pick one table with ::NAME after the path", known())));
        };
        return Ok(name.clone());
    };
    let mut called = names.iter().filter(|name| **name == wanted || base(name) == wanted);
    match (called.next(), called.next()) {
        _ if names.iter().any(|name| name == wanted) => Ok(wanted.into()),
        (Some(name), None) => Ok(name.clone()),
        (Some(_), Some(_)) => {
            Err(place.fault(format!("holds {}; pick one of them by its whole path", known())))
        }
        (None, _) => Err(place.fault(format!("has no file {}; it holds {}", quoted(wanted), known()))),
    }
}

fn damaged(place: &Position, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => place.unreadable(error),
        ZipError::UnsupportedArchive(reason) => {
            place.fault(format!("cannot be unpacked here ({reason}); unpack it and name the file"))
        }
        error => place.fault(format!("is not a zip archive that can be read ({error}); save it anew")),
    }
}
