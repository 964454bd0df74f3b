//! Writes tables as Parquet.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

/// Rows of a row group, of which one column at a time is in memory.
const ROWS: usize = 1 << 17;

/// A column of a table that is written: its value in each row, `None` for a missing one.
pub enum Values<'a> {
    /// Text, never missing.
    Text(Box<dyn Fn(usize) -> Cow<'a, str> + 'a>),
    /// Integers.
    Integer(Box<dyn Fn(usize) -> Option<i32> + 'a>),
    /// Numbers of 32 bits.
    Single(Box<dyn Fn(usize) -> Option<f32> + 'a>),
    /// Numbers of 64 bits.
    Double(Box<dyn Fn(usize) -> Option<f64> + 'a>),
}

/// Writes a table of `rows` rows as Parquet, compressed with Zstandard. Columns have a title and values.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_parquet(
    out: impl Write + Send,
    rows: usize,
    columns: &[(String, Values<'_>)],
) -> io::Result<()> {
    written(out, rows, columns).map_err(|error| match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn written(
    out: impl Write + Send,
    rows: usize,
    columns: &[(String, Values<'_>)],
) -> Result<(), ParquetError> {
    let fields = columns.iter().map(|(title, values)| values.field(title).map(Arc::new));
    let schema = Type::group_type_builder("schema").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(ROWS))
        .build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for first in (0..rows).step_by(ROWS) {
        let mut group = writer.next_row_group()?;
        for (_, values) in columns {
            let Some(mut column) = group.next_column()? else { break };
            values.write(first..(first + ROWS).min(rows), &mut column)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

impl Values<'_> {
    fn field(&self, title: &str) -> Result<Type, ParquetError> {
        let (kind, repetition, logical) = match self {
            Self::Text(_) => (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String)),
            Self::Integer(_) => (PhysicalType::INT32, Repetition::OPTIONAL, None),
            Self::Single(_) => (PhysicalType::FLOAT, Repetition::OPTIONAL, None),
            Self::Double(_) => (PhysicalType::DOUBLE, Repetition::OPTIONAL, None),
        };
        Type::primitive_type_builder(title, kind)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    fn write(&self, rows: Range<usize>, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Text(of) => {
                let texts: Vec<ByteArray> =
                    rows.map(|row| ByteArray::from(of(row).into_owned().into_bytes())).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
                Ok(())
            }
            Self::Integer(of) => numbers::<Int32Type>(rows.map(of), column),
            Self::Single(of) => numbers::<FloatType>(rows.map(of), column),
            Self::Double(of) => numbers::<DoubleType>(rows.map(of), column),
        }
    }
}

fn numbers<T: DataType>(
    rows: impl Iterator<Item = Option<T::T>>,
    column: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let (mut there, mut values) = (Vec::new(), Vec::new());
    for value in rows {
        there.push(i16::from(value.is_some()));
        values.extend(value);
    }
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    Ok(())
}
