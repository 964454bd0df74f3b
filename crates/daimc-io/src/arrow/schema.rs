//! The columns of a file, and how their values are stored.

use daimc_core::text::quoted;

use super::flatbuffer::Table;
use crate::number::NumberType;
use crate::{Position, Result};

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// Every value is null, and nothing is stored.
    Null,
    /// Booleans, eight to a byte.
    Bits,
    Number(NumberType),
    Text(TextLayout),
    /// Keys into a dictionary of texts.
    Dictionary {
        keys: NumberType,
        id: i64,
        text: TextLayout,
    },
    Other,
}

/// How texts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLayout {
    /// One after another, with the start of each in 32 bits.
    Narrow,
    /// One after another, with the start of each in 64 bits.
    Wide,
    /// Short texts in place, others by buffer and position.
    Views,
}

/// A column of the file.
pub(super) struct Field {
    pub name: String,
    pub storage: Storage,
    pub type_name: String,
    /// The number of its buffers in a batch; `None` where the batch says.
    pub buffers: Option<usize>,
}

/// The names of the types, by their number in the format.
const TYPES: &str = "none null int floatingpoint binary utf8 bool decimal date time timestamp interval list struct_ union \
                     fixedsizebinary fixedsizelist map duration largebinary largeutf8 largelist runendencoded binaryview \
                     utf8view listview largelistview";

impl Field {
    /// Reads a column of a schema: name (0), number of its type (2), type (3) and dictionary (4).
    pub fn new(place: &Position, field: Table<'_>) -> Result<Self> {
        let name = field.text(0)?.to_owned();
        let mut type_name = TYPES.split(' ').nth(field.u8(2)?.into()).unwrap_or("unknown");
        let about = field.table(3)?;
        let dictionary = field.table(4)?;
        let number = |kind| (Storage::Number(kind), Some(2));
        let (storage, buffers) = match type_name {
            "null" => (Storage::Null, Some(0)),
            "bool" => (Storage::Bits, Some(2)),
            "int" => number(about.map(integer).transpose()?.flatten().unwrap_or(NumberType::I64)),
            "floatingpoint" => number(match about.map(|float| float.i16(0)).transpose()? {
                Some(0) => NumberType::F16,
                Some(1) => NumberType::F32,
                _ => NumberType::F64,
            }),
            "utf8" => (Storage::Text(TextLayout::Narrow), Some(3)),
            "largeutf8" => (Storage::Text(TextLayout::Wide), Some(3)),
            "utf8view" => (Storage::Text(TextLayout::Views), None),
            "binary" | "largebinary" => (Storage::Other, Some(3)),
            "binaryview" => (Storage::Other, None),
            "date" | "time" | "timestamp" | "duration" | "interval" | "decimal" | "fixedsizebinary" => {
                (Storage::Other, Some(2))
            }
            _ if dictionary.is_some() => (Storage::Other, Some(2)),
            _ => {
                return Err(place.fault(format!(
                    "has a column {} of lists or records; drop it, or make a column of each part",
                    quoted(&name)
                )));
            }
        };
        if matches!(storage, Storage::Text(_)) {
            type_name = "string";
        }
        let Some(dictionary) = dictionary else {
            return Ok(Self { name, storage, type_name: type_name.into(), buffers });
        };
        // ID (0) and type of the keys (1).
        let keys = dictionary.table(1)?.map_or(Ok(Some(NumberType::I32)), integer)?;
        let storage = match (storage, keys) {
            (Storage::Text(text), Some(keys)) => Storage::Dictionary { keys, id: dictionary.i64(0)?, text },
            _ => Storage::Other,
        };
        Ok(Self { name, storage, type_name: format!("category of {type_name}"), buffers: Some(2) })
    }

    /// The texts of a dictionary, as a column of a batch.
    pub fn of_dictionary(text: TextLayout) -> Self {
        let buffers = if text == TextLayout::Views { None } else { Some(3) };
        Self { name: String::new(), storage: Storage::Text(text), type_name: String::new(), buffers }
    }
}

/// The type of integers, by bits (0) and sign (1); `None` for sizes that are not read.
fn integer(int: Table<'_>) -> Result<Option<NumberType>> {
    let size = usize::try_from(int.i32(0)?).ok().filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
    let signed = int.bool(1)?;
    Ok(size.and_then(|size| NumberType::integer(size, signed)))
}
