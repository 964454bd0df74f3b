//! Zip archives: the arrays of numpy, or tables of text.

use std::borrow::Cow;
use std::io::BufReader;

use daimc::text::{list, quoted};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::input::{Input, Opened, Random, failed};
use crate::{Error, Place, Result};

/// How many members a message lists.
const LISTED: usize = 30;

/// What an archive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Arrays of numpy.
    Arrays,
    /// Tables of text.
    Texts,
}

impl Content {
    /// Told by the names of the members.
    pub(crate) fn of(file: &mut Opened) -> Result<Self> {
        let ending = file.place.path.extension().unwrap_or_default().to_ascii_lowercase();
        if ending == "npz" {
            return Ok(Self::Arrays);
        }
        let bytes = file.glance()?;
        let archive = open(&file.place, &bytes)?;
        let arrays = archive.file_names().flatten().any(|name| name.ends_with(".npy"));
        Ok(if arrays { Self::Arrays } else { Self::Texts })
    }
}

/// Hands the text of a member to `read`, decompressed: of the one that is called `wanted`, by its path or by its name, or of the
/// only one.
pub(crate) fn with_text<T: Send>(
    file: &mut Opened,
    wanted: Option<&str>,
    read: impl FnOnce(&Place, Input<'_>) -> Result<T> + Send,
) -> Result<T> {
    let place = file.place.clone();
    file.at_random(|bytes| {
        let mut archive = open(&place, &bytes)?;
        let name = member(&place, &archive, wanted)?;
        let place = Place { variable: Some(name.clone()), ..place };
        let member = archive.by_name(&name).map_err(|error| damaged(&place, error))?;
        if !matches!(member.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            let method = member.compression();
            return Err(place.fault(format!(
                "is compressed by {method}, which is not read in archives; unpack it and name the file"
            )));
        }
        let input = Input::new(member).map_err(|error| failed(&place.path, error));
        input.and_then(|input| read(&place, input)).map_err(|error| error.in_part(&name))
    })
}

/// How many bytes the text of a member claims to be.
pub(crate) fn length(file: &mut Opened, wanted: Option<&str>) -> Result<u64> {
    let place = file.place.clone();
    let mut archive = open(&place, &file.glance()?)?;
    let name = member(&place, &archive, wanted)?;
    archive.by_name(&name).map(|member| member.size()).map_err(|error| damaged(&place, error))
}

type Archive = ZipArchive<BufReader<Random>>;

fn open(place: &Place, bytes: &Random) -> Result<Archive> {
    ZipArchive::new(BufReader::new(bytes.clone())).map_err(|error| damaged(place, error))
}

/// The member that is called so, or the only one. Folders, and what macOS and editors leave beside files, are none.
fn member(place: &Place, archive: &Archive, wanted: Option<&str>) -> Result<String> {
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

fn damaged(place: &Place, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => place.unreadable(error),
        ZipError::UnsupportedArchive(reason) => {
            place.fault(format!("cannot be unpacked here ({reason}); unpack it and name the file"))
        }
        error => place.fault(format!("is not a zip archive that can be read ({error}); save it anew")),
    }
}
