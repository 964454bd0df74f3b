//! A column: its type, and its values over all row groups.

use std::sync::Arc;

use ::parquet::basic::{ConvertedType, LogicalType, Type};
use ::parquet::column::reader::{get_column_reader, get_typed_column_reader};
use ::parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use ::parquet::file::serialized_reader::SerializedPageReader;
use ::parquet::schema::types::ColumnDescPtr;
use daimc_core::text::quoted;
use half::f16;

use super::checked::Checked;
use super::file::{Parquet, guarded};
use super::pages::Pages;
use crate::frame::{Column, ColumnType};
use crate::number::Target;
use crate::{Precision, Result};

/// Values that are decoded at a time.
const BATCH: usize = 1 << 13;

/// A column in all row groups.
pub(super) struct Chunks {
    name: String,
    kind: ColumnType,
    index: usize,
    description: ColumnDescPtr,
}

impl Chunks {
    /// A column of the file; the error says why it is not supported.
    pub(super) fn new(index: usize, description: ColumnDescPtr) -> std::result::Result<Self, String> {
        let path = description.path().parts();
        let name = path.first().cloned().unwrap_or_default();
        if path.len() != 1 || description.max_rep_level() != 0 {
            return Err(format!(
                "has a column {} of lists or records; drop it, or make a column of each part",
                quoted(&name)
            ));
        }
        Ok(Self { name, kind: kind(&description), index, description })
    }

    pub(super) fn column(self) -> Column {
        Column { kind: self.kind, type_name: self.type_name(), index: self.index, name: self.name }
    }

    /// The name of the type, for a message.
    fn type_name(&self) -> String {
        let name = match self.description.converted_type() {
            _ if self.kind == ColumnType::Text => "string".into(),
            ConvertedType::NONE => match self.description.logical_type_ref() {
                Some(LogicalType::Timestamp(_)) => "timestamp".into(),
                Some(LogicalType::Time(_)) => "time".into(),
                Some(logical) => format!("{logical:?}"),
                None => self.description.physical_type().to_string(),
            },
            converted => converted.to_string(),
        };
        name.to_lowercase()
    }

    /// The numbers of all rows, NaN for null, appended to `out`.
    pub(super) fn numbers<T: Target>(&self, file: &Parquet, out: &mut Vec<T>) -> Result<()> {
        let signed = self.kind != ColumnType::Whole { signed: false };
        let mut push = |value: Option<f64>| {
            out.push(T::nearest(value.unwrap_or(f64::NAN)));
            Ok(())
        };
        match self.description.physical_type() {
            Type::BOOLEAN => self.each::<BoolType>(file, |v| push(v.map(|&v| f64::from(u8::from(v))))),
            Type::INT32 if signed => self.each::<Int32Type>(file, |v| push(v.map(|&v| f64::from(v)))),
            Type::INT32 => self.each::<Int32Type>(file, |v| push(v.map(|&v| f64::from(v as u32)))),
            Type::INT64 if signed => self.each::<Int64Type>(file, |v| push(v.map(|&v| v as f64))),
            Type::INT64 => self.each::<Int64Type>(file, |v| push(v.map(|&v| v as u64 as f64))),
            Type::FLOAT => self.each::<FloatType>(file, |v| push(v.map(|&v| f64::from(v)))),
            Type::DOUBLE => self.each::<DoubleType>(file, |v| push(v.copied())),
            _ => self.each::<FixedLenByteArrayType>(file, |v| {
                let bytes = v.and_then(|v| v.data().first_chunk());
                push(bytes.map(|&bytes| f64::from(f16::from_le_bytes(bytes))))
            }),
        }
    }

    /// Visits the values of all rows as text.
    pub(super) fn texts(
        &self,
        file: &Parquet,
        push: &mut dyn FnMut(Option<String>) -> Result<()>,
    ) -> Result<()> {
        let signed = self.kind != ColumnType::Whole { signed: false };
        match self.description.physical_type() {
            Type::INT32 if signed => self.each::<Int32Type>(file, |v| push(v.map(ToString::to_string))),
            Type::INT32 => self.each::<Int32Type>(file, |v| push(v.map(|&v| (v as u32).to_string()))),
            Type::INT64 if signed => self.each::<Int64Type>(file, |v| push(v.map(ToString::to_string))),
            Type::INT64 => self.each::<Int64Type>(file, |v| push(v.map(|&v| (v as u64).to_string()))),
            // Only columns of text and of integers are read as text.
            _ => self.each::<ByteArrayType>(file, |v| {
                push(v.and_then(|v| std::str::from_utf8(v.data()).ok()).map(String::from))
            }),
        }
    }

    /// Counts the stored rows.
    pub(super) fn count(&self, file: &Parquet, rows: &mut usize) -> Result<()> {
        macro_rules! count {
            ($type:ty) => {
                self.each::<$type>(file, |_| {
                    *rows += 1;
                    Ok(())
                })
            };
        }
        match self.description.physical_type() {
            Type::BOOLEAN => count!(BoolType),
            Type::INT32 => count!(Int32Type),
            Type::INT64 => count!(Int64Type),
            Type::FLOAT => count!(FloatType),
            Type::DOUBLE => count!(DoubleType),
            Type::BYTE_ARRAY => count!(ByteArrayType),
            Type::FIXED_LEN_BYTE_ARRAY => count!(FixedLenByteArrayType),
            Type::INT96 => count!(::parquet::data_type::Int96Type),
        }
    }

    /// Visits the values of all rows, `None` for null.
    fn each<D: DataType>(
        &self,
        file: &Parquet,
        mut visit: impl FnMut(Option<&D::T>) -> Result<()>,
    ) -> Result<()> {
        let place = &file.place;
        let mut levels = Vec::new();
        let mut values = Vec::new();
        for group in file.metadata.row_groups() {
            let rows = group.num_rows() as usize;
            let chunk = group.column(self.index);
            let mut reader = guarded(place, || {
                let pages = Pages::new(&file.bytes, chunk.compression());
                let pages = SerializedPageReader::new(Arc::new(pages), chunk, rows, None)?;
                let pages = Checked::new(pages, self.description.max_def_level() > 0, rows);
                let reader = get_column_reader(Arc::clone(&self.description), Box::new(pages));
                Ok(get_typed_column_reader::<D>(reader))
            })?;
            let mut left = rows;
            while left > 0 {
                levels.clear();
                values.clear();
                let (records, ..) = guarded(place, || {
                    reader.read_records(left.min(BATCH), Some(&mut levels), None, &mut values)
                })?;
                if records == 0 {
                    return Err(place.fault(format!(
                        "has fewer values in column {} than rows; copy it again or save it anew",
                        quoted(&self.name)
                    )));
                }
                if self.description.max_def_level() == 0 {
                    values.iter().try_for_each(|value| visit(Some(value)))?;
                } else {
                    let mut present = values.iter();
                    levels
                        .iter()
                        .try_for_each(|&level| visit((level > 0).then(|| present.next()).flatten()))?;
                }
                left -= records;
            }
        }
        Ok(())
    }
}

fn kind(description: &ColumnDescPtr) -> ColumnType {
    let logical = description.logical_type_ref();
    let converted = description.converted_type();
    match description.physical_type() {
        Type::FLOAT => ColumnType::Number(Precision::F32),
        Type::BOOLEAN | Type::DOUBLE => ColumnType::Number(Precision::F64),
        Type::FIXED_LEN_BYTE_ARRAY if logical == Some(&LogicalType::Float16) => {
            ColumnType::Number(Precision::F32)
        }
        Type::INT32 | Type::INT64 => match (logical, converted) {
            (Some(LogicalType::Integer(whole)), _) => ColumnType::Whole { signed: whole.is_signed },
            // A column in which every value is null.
            (Some(LogicalType::Unknown), _) => ColumnType::Number(Precision::F64),
            (
                None,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => ColumnType::Whole { signed: false },
            (
                None,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64,
            ) => ColumnType::Whole { signed: true },
            _ => ColumnType::Other,
        },
        Type::BYTE_ARRAY => match (logical, converted) {
            (Some(LogicalType::String | LogicalType::Enum), _)
            | (None, ConvertedType::NONE | ConvertedType::UTF8 | ConvertedType::ENUM) => ColumnType::Text,
            _ => ColumnType::Other,
        },
        _ => ColumnType::Other,
    }
}
