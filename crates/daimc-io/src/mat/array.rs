//! A variable or a cell: flags, shape and name, followed by its contents.

use std::io;

use super::element::{MATRIX, Stream, Tag, invalid};
use crate::dense::MatrixLayout;
use crate::disk::{Disk, Keep, Numbers, Spool, store};
use crate::number::{Encoding, NumberType, Target};
use crate::real::Real;
use crate::sparse::{Entries, Shape, check_offsets};
use crate::{Cells, Csr, Position, Precision, Reading, Result, Stored, Table};

const CELL: u8 = 1;
const CHAR: u8 = 4;
const SPARSE: u8 = 5;
const DOUBLE: u8 = 6;
const SINGLE: u8 = 7;
const UINT64: u8 = 15;
const OPAQUE: u8 = 17;

/// An array whose contents were not read yet.
pub(super) struct Array<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    class: u8,
    complex: bool,
    logical: bool,
    stream: Stream<'a>,
}

impl<'a> Array<'a> {
    /// Reads flags, shape and name.
    pub(super) fn open(mut stream: Stream<'a>) -> io::Result<Self> {
        // An empty cell may consist of its tag only.
        if stream.left == 0 {
            let shape = vec![0, 0];
            return Ok(Self {
                name: String::new(),
                shape,
                class: DOUBLE,
                complex: false,
                logical: false,
                stream,
            });
        }
        let flags = *stream.short_u32()?.first().ok_or_else(|| invalid("a matrix has no flags"))?;
        let class = flags as u8;
        // Objects of newer kinds, such as tables, have no shape here.
        let shape = match class {
            OPAQUE => Vec::new(),
            _ => stream.short_u32()?.into_iter().map(|size| size as usize).collect(),
        };
        let name = String::from_utf8_lossy(&stream.short()?).trim_end_matches('\0').to_owned();
        Ok(Self { name, shape, class, complex: flags & 0x800 != 0, logical: flags & 0x200 != 0, stream })
    }

    pub(super) fn is_cell(&self) -> bool {
        self.class == CELL
    }

    pub(super) fn is_text(&self) -> bool {
        self.class == CHAR
    }

    /// Whether it is a matrix that can be a view.
    pub(super) fn is_numeric(&self) -> bool {
        (SPARSE..=UINT64).contains(&self.class) && !self.complex
    }

    /// The shape, as `2 × 3`.
    pub(super) fn shape(&self) -> String {
        self.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
    }

    /// Class and shape, for a message.
    pub(super) fn kind(&self) -> String {
        const NAMES: [&str; 18] = [
            "unknown", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8",
            "int16", "uint16", "int32", "uint32", "int64", "uint64", "function", "object",
        ];
        let class = NAMES.get(usize::from(self.class)).unwrap_or(&NAMES[0]);
        let class = if self.logical && self.class != SPARSE { "logical" } else { class };
        let complex = if self.complex { "complex " } else { "" };
        format!("{complex}{class} {}", self.shape()).trim_end().to_owned()
    }

    /// Calls `visit` with each cell until it returns a value.
    pub(super) fn each_cell<B>(
        mut self,
        place: &Position,
        mut visit: impl FnMut(usize, Array<'_>) -> Result<Option<B>>,
    ) -> Result<Option<B>> {
        let io = |error| place.unreadable(error);
        let mut index = 0;
        while self.stream.left > 0 {
            let tag = self.stream.tag().map_err(io)?;
            if tag.kind != MATRIX {
                return Err(io(invalid("a cell is no matrix")));
            }
            let end = self.stream.end(tag);
            let cell = Array::open(self.stream.child(tag.bytes)).map_err(io)?;
            let found = visit(index, cell)?;
            if found.is_some() {
                return Ok(found);
            }
            self.stream.go_to(end).map_err(io)?;
            index += 1;
        }
        Ok(None)
    }

    /// The matrix as a table.
    pub(super) fn table(self, place: &Position, how: Reading, keep: Keep<'_>) -> Result<Table> {
        if self.is_cell() {
            return Err(place.fault(format!(
                "is a cell array of {}; pick a cell with {}{{1}}",
                self.shape(),
                place.variable.as_deref().unwrap_or_default()
            )));
        }
        if !self.is_numeric() {
            return Err(place.fault(format!("is {}, not a matrix of real numbers", self.kind())));
        }
        let &[rows, columns] = &*self.shape else {
            return Err(place.fault(format!(
                "has the shape {}, but a view is a matrix; reshape it to two dimensions",
                self.shape()
            )));
        };
        if rows == 0 || columns == 0 {
            return Err(place.fault(format!("is empty: its shape is {rows} × {columns}")));
        }
        let precision = if self.class == SINGLE { Precision::F32 } else { Precision::F64 };
        let precision = how.precision.unwrap_or(precision);
        let cells = match (self.class, precision) {
            (SPARSE, Precision::F32) => self.sparse::<f32>(place, rows, columns, how, keep)?,
            (SPARSE, Precision::F64) => self.sparse::<f64>(place, rows, columns, how, keep)?,
            (_, Precision::F32) => self.dense::<f32>(place, rows, columns, how, keep)?,
            (_, Precision::F64) => self.dense::<f64>(place, rows, columns, how, keep)?,
        };
        let (rows, columns) = if how.transpose { (columns, rows) } else { (rows, columns) };
        Ok(Table::new(place.clone(), rows, columns, cells, how))
    }

    fn dense<T: Real>(
        mut self,
        place: &Position,
        rows: usize,
        columns: usize,
        how: Reading,
        keep: Keep<'_>,
    ) -> Result<Cells> {
        let io = |error| place.unreadable(error);
        let tag = self.stream.tag().map_err(io)?;
        let (encoding, count) = tag.numbers(self.stream.big_endian).map_err(io)?;
        if rows.checked_mul(columns) != Some(count) {
            return Err(place.fault(format!(
                "should be {rows} × {columns} but holds {count} numbers; copy the file again or save it anew"
            )));
        }
        let layout = MatrixLayout::new(rows, columns, true, how);
        let Some(disk) = keep.disk() else {
            return layout.read(place, encoding, T::PRECISION, &mut self.stream);
        };
        let mut spool = Spool::new(disk)?;
        encoding.pieces(place, &mut self.stream, count, |values: &[T]| spool.write(values))?;
        Ok(Cells::Stored(spool.dense::<T>(layout.rows(), layout.columns(), !layout.lines_are_rows)?))
    }

    fn sparse<T: Real>(
        mut self,
        place: &Position,
        rows: usize,
        columns: usize,
        how: Reading,
        keep: Keep<'_>,
    ) -> Result<Cells> {
        if let Some(disk) = keep.disk() {
            return self.store_sparse::<T>(place, rows, columns, how, disk).map(Cells::Stored);
        }
        let mut indices = self.list(place)?;
        let offsets: Vec<usize> = self.list(place)?;
        // MATLAB may allocate more entries than the matrix has.
        let entries = offsets.last().copied().unwrap_or_default();
        let mut values = self.list_of(place, entries)?;
        indices.truncate(entries);
        values.truncate(entries);
        let compressed = Csr { offsets, columns: indices, values };
        Ok(T::sparse(if how.transpose {
            Shape::new(place, columns, rows, entries)?.rows_in_order(place, compressed)?
        } else {
            Shape::new(place, rows, columns, entries)?.rows_of_columns(place, compressed)?
        }))
    }

    /// Indices precede offsets and values, and are kept in a spool file until these are read.
    fn store_sparse<T: Real>(
        mut self,
        place: &Position,
        rows: usize,
        columns: usize,
        how: Reading,
        disk: &Disk,
    ) -> Result<Stored> {
        let io = |error| place.unreadable(error);
        let tag = self.stream.tag().map_err(io)?;
        let end = self.stream.end(tag);
        let (encoding, indices) = tag.numbers(self.stream.big_endian).map_err(io)?;
        let mut spool = Spool::new(disk)?;
        encoding.pieces(place, &mut self.stream, indices, |indices: &[u32]| spool.write_columns(indices))?;
        self.stream.go_to(end).map_err(io)?;
        let offsets: Vec<usize> = self.list(place)?;
        let tag = self.stream.tag().map_err(io)?;
        let end = self.stream.end(tag);
        // MATLAB may allocate more entries than the matrix has.
        let entries = offsets.last().copied().unwrap_or_default();
        let (encoding, values) = self.numbers(tag, entries).map_err(io)?;
        check_offsets(place, columns, &offsets, [indices.min(entries), values.min(entries)])?;
        let (rows, columns) = if how.transpose { (columns, rows) } else { (rows, columns) };
        let shape = Shape::new(place, rows, columns, entries)?;
        let indices = Numbers {
            file: spool.finish()?,
            offset: 0,
            encoding: Encoding { kind: NumberType::U32, big_endian: false },
        };
        let mut pieces = SpooledEntries { place, indices, taken: 0, values: &mut self.stream, encoding };
        let stored = store::<T>(disk, place, shape, how.transpose, &offsets, &mut pieces)?;
        self.stream.go_to(end).map_err(io)?;
        Ok(stored)
    }

    /// Encoding and number of the values of an element. MATLAB stores logical sparse matrices as bytes, although the tag says
    /// doubles.
    fn numbers(&self, tag: Tag, entries: usize) -> io::Result<(Encoding, usize)> {
        let (encoding, count) = tag.numbers(self.stream.big_endian)?;
        if self.logical && count < entries && tag.bytes >= entries as u64 {
            return Ok((Encoding { kind: NumberType::U8, ..encoding }, tag.bytes as usize));
        }
        Ok((encoding, count))
    }

    /// The numbers of the next element.
    fn list<T: Target>(&mut self, place: &Position) -> Result<Vec<T>> {
        self.list_of(place, 0)
    }

    /// As [`list`](Self::list), of an element that should have `entries` numbers.
    fn list_of<T: Target>(&mut self, place: &Position, entries: usize) -> Result<Vec<T>> {
        let io = |error| place.unreadable(error);
        let tag = self.stream.tag().map_err(io)?;
        let end = self.stream.end(tag);
        let (encoding, count) = self.numbers(tag, entries).map_err(io)?;
        let mut list = place.allocate(count)?;
        encoding.read(&mut self.stream, count, &mut list).map_err(io)?;
        self.stream.go_to(end).map_err(io)?;
        Ok(list)
    }
}

/// The entries of a sparse matrix: indices in a spool file, and values that are read in order.
struct SpooledEntries<'a, 'b> {
    place: &'a Position,
    indices: Numbers,
    taken: usize,
    values: &'a mut Stream<'b>,
    encoding: Encoding,
}

impl<T: Target> Entries<T> for SpooledEntries<'_, '_> {
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()> {
        let read = self.indices.append(&(self.taken..self.taken + count), &mut Vec::new(), out);
        self.taken += count;
        read.map_err(|error| self.place.unreadable(io::Error::other(error)))
    }

    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()> {
        self.encoding.read(self.values, count, out).map_err(|error| self.place.unreadable(error))
    }
}
