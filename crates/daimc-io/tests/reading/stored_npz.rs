//! Arrays and sparse matrices in `.npz` files have the same bits on disk as in memory, and are refused alike.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use crate::common::{Folder, bare};
use daimc::source::Buffer;
use daimc::{Daimc, Neighbours, Stop};
use daimc_io::{
    Assembly, Cells, Disk, Precision, Progress, Reading, Stored, Table, assemble, expected, read,
    read_hashed, read_stored,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// An array as numpy writes it.
fn npy(descr: &str, shape: &str, fortran: bool, bytes: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend(format!("{header:<117}\n").into_bytes());
    array.extend(bytes);
    array
}

fn npz(folder: &Folder, arrays: &[(&str, Vec<u8>)], compressed: bool) -> PathBuf {
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        out.start_file(format!("{name}.npy"), options).unwrap();
        out.write_all(bytes).unwrap();
    }
    folder.file("a.npz", out.finish().unwrap().into_inner())
}

/// A sparse matrix in compressed rows.
struct Matrix {
    columns: i64,
    offsets: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<f64>,
}

impl Matrix {
    /// A number of rows, some of them empty and one of them long; optionally unsorted with duplicate entries.
    fn new(rows: i64, columns: i64, in_order: bool) -> Self {
        let mut state = 7_u64;
        let mut draw = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap() % below
        };
        let mut of = Self { columns, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
        for row in 0..rows {
            let count = if row == rows / 3 { columns } else { draw(60) };
            let mut indices: Vec<i64> = (0..count).map(|_| draw(columns)).collect();
            if in_order {
                indices.sort_unstable();
                indices.dedup();
            }
            of.values.extend(indices.iter().map(|_| (draw(2001) - 1000) as f64 / 64.0));
            of.indices.extend(indices);
            of.offsets.push(i64::try_from(of.indices.len()).unwrap());
        }
        of
    }

    fn arrays(&self, wide: bool, single: bool) -> Vec<(&'static str, Vec<u8>)> {
        let whole = |numbers: &[i64]| -> Vec<u8> {
            if wide {
                return numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            }
            numbers.iter().flat_map(|number| (*number as i32).to_le_bytes()).collect()
        };
        let values: Vec<u8> = if single {
            self.values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()
        } else {
            self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let kind = if wide { "<i8" } else { "<i4" };
        let list = |count: usize| format!("({count},)");
        let rows = i64::try_from(self.offsets.len()).unwrap() - 1;
        let shape: Vec<u8> = [rows, self.columns].map(i64::to_le_bytes).concat();
        vec![
            ("indices", npy(kind, &list(self.indices.len()), false, &whole(&self.indices))),
            ("indptr", npy(kind, &list(self.offsets.len()), false, &whole(&self.offsets))),
            ("format", npy("|S3", "()", false, b"csr")),
            ("shape", npy("<i8", "(2,)", false, &shape)),
            ("data", npy(if single { "<f4" } else { "<f8" }, &list(self.values.len()), false, &values)),
        ]
    }
}

fn stored(table: &Table) -> &Stored {
    match &table.cells {
        Cells::Stored(stored) => stored,
        _ => panic!("the values are in memory"),
    }
}

/// Offsets, columns and the bits of values of a range of rows.
fn rows(table: &Table, range: std::ops::Range<usize>) -> (Vec<usize>, Vec<u32>, Vec<u64>) {
    fn of<T: Copy + Into<f64>>(
        csr: &daimc_io::Csr<T>,
        range: &std::ops::Range<usize>,
    ) -> (Vec<usize>, Vec<u32>, Vec<u64>) {
        let start = csr.offsets[range.start];
        let all = start..csr.offsets[range.end];
        let offsets = csr.offsets[range.start..=range.end].iter().map(|offset| offset - start).collect();
        let bits = csr.values[all.clone()].iter().map(|&value| value.into().to_bits()).collect();
        (offsets, csr.columns[all].to_vec(), bits)
    }
    match &table.cells {
        Cells::SparseF32(csr) => of(csr, &range),
        Cells::SparseF64(csr) => of(csr, &range),
        Cells::Stored(stored) => {
            let mut buffer = Buffer::default();
            stored.rows().read(range, &mut buffer).unwrap();
            let wide = buffer.f32.iter().map(|&value| f64::from(value));
            let bits = wide.chain(buffer.f64.iter().copied()).map(f64::to_bits).collect();
            (buffer.offsets, buffer.columns, bits)
        }
        _ => panic!("dense"),
    }
}

#[test]
fn sparse_rows_have_the_same_bits_on_disk_and_in_memory() {
    let folder = Folder::new();
    let spool = tempfile::tempdir().unwrap();
    let disk = Disk::new(spool.path());
    for in_order in [true, false] {
        // More entries than are read at a time.
        let matrix = Matrix::new(20_000, 5000, in_order);
        for (wide, single, compressed) in
            [(false, false, false), (true, true, false), (true, false, true), (false, true, true)]
        {
            let path = npz(&folder, &matrix.arrays(wide, single), compressed);
            for (transpose, precision) in [(false, None), (true, None), (false, Some(Precision::F32))] {
                let how = Reading { transpose, precision, ..Reading::default() };
                let (table, hash) = read_hashed(&path, None, how).unwrap();
                let (own, own_hash) = read_stored(&path, None, how, &disk).unwrap();
                assert_eq!((own.rows, own.columns, own_hash), (table.rows, table.columns, hash));
                for range in [0..table.rows, table.rows / 3..table.rows / 3 + 5, table.rows - 1..table.rows] {
                    assert!(rows(&own, range.clone()) == rows(&table, range.clone()), "{how:?} {range:?}");
                }
                let size = expected(&path, None, how).unwrap();
                assert_eq!(size.rows, Some(table.rows));
            }
        }
    }
    assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0);
}

#[test]
fn uncompressed_arrays_are_read_in_place() {
    let folder = Folder::new();
    // No spool file can be written here.
    let disk = Disk::new("/nowhere");
    let path = npz(&folder, &Matrix::new(300, 50, true).arrays(false, false), false);
    let (own, _) = read_stored(&path, None, Reading::default(), &disk).unwrap();
    assert!(rows(&own, 0..300) == rows(&read(&path, None, Reading::default()).unwrap(), 0..300));
    let values: Vec<u8> = (0_u16..600).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    for fortran in [false, true] {
        let path = npz(&folder, &[("x", npy("<f4", "(100, 6)", fortran, &values))], false);
        let (own, _) = read_stored(&path, None, Reading::default(), &disk).unwrap();
        let mut buffer = Buffer::default();
        stored(&own).rows().read(7..9, &mut buffer).unwrap();
        let wide: Vec<f64> = buffer.f32.iter().map(|&value| value.into()).collect();
        assert_eq!(wide, &crate::common::values(&read(&path, None, Reading::default()).unwrap())[42..54]);
    }
    // Unsorted rows are not.
    let path = npz(&folder, &Matrix::new(300, 50, false).arrays(false, false), false);
    let error = read_stored(&path, None, Reading::default(), &disk).unwrap_err().to_string();
    assert!(error.contains("spool file in /nowhere"), "{error}");
}

#[test]
fn errors_on_disk_and_in_memory_are_the_same() {
    let folder = Folder::new();
    let spool = tempfile::tempdir().unwrap();
    let disk = Disk::new(spool.path());
    let good = || Matrix::new(300, 50, true);
    let outside = Matrix { indices: good().indices.iter().map(|index| index + 1).collect(), ..good() };
    let negative = Matrix { indices: good().indices.iter().map(|index| index - 1).collect(), ..good() };
    let mut falling = good();
    falling.offsets.swap(4, 9);
    let mut short = good();
    short.indices.pop();
    let mut infinite = good();
    infinite.values[20] = f64::INFINITY;
    let mut missing = good();
    missing.values[20] = f64::NAN;
    for matrix in [&outside, &negative, &falling, &short] {
        for compressed in [false, true] {
            for transpose in [false, true] {
                let path = npz(&folder, &matrix.arrays(true, false), compressed);
                let how = Reading { transpose, ..Reading::default() };
                let message = read_stored(&path, None, how, &disk).unwrap_err().to_string();
                assert_eq!(message, read(&path, None, how).unwrap_err().to_string());
            }
        }
    }
    // Infinite values are found when tables are joined, or in the first pass over them.
    for (matrix, compressed) in [(&infinite, false), (&infinite, true), (&missing, false), (&missing, true)] {
        let path = npz(&folder, &matrix.arrays(true, false), compressed);
        let refused = |table: Table| {
            let views =
                assemble(vec![("a".into(), table)], &Assembly::default()).map_err(|e| e.to_string())?.0;
            let fit = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(2).fit(&views);
            fit.map(|_| ()).map_err(|error| error.to_string())
        };
        let memory = refused(read(&path, None, Reading::default()).unwrap()).unwrap_err();
        let disk = refused(read_stored(&path, None, Reading::default(), &disk).unwrap().0).unwrap_err();
        assert!(memory.contains("instance") && disk.contains("instance"), "{memory}\n{disk}");
    }
}

/// Flips a bit of a value, so that the checksum of the archive is wrong.
#[test]
fn damage_is_found_before_the_fit() {
    let folder = Folder::new();
    let path = npz(&folder, &Matrix::new(300, 50, true).arrays(false, false), false);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    // The last array ends before the first entry of the directory.
    let first = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    assert!(first < at);
    bytes[first - 9] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let message = read_stored(&path, None, Reading::default(), &Disk::new("/nowhere")).unwrap_err();
    let message = bare(message, &path);
    assert_eq!(message, crate::common::refused(&path, Reading::default()));
    assert!(message.starts_with("a.npz::data: is damaged"), "{message}");
}

#[test]
fn an_archive_that_changes_or_shrinks_ends_the_fit() {
    let folder = Folder::new();
    for shrink in [false, true] {
        let path = npz(&folder, &Matrix::new(5000, 50, true).arrays(false, false), false);
        let table = read_stored(&path, None, Reading::default(), &Disk::new("/nowhere")).unwrap().0;
        let views = assemble(vec![("a".into(), table)], &Assembly::default()).unwrap().0;
        let fit = Daimc::new(3).neighbours(Neighbours::Off).tolerance(0.0).max_iterations(20);
        let error = fit.fit_with(&views, |iteration| {
            if iteration.number == 2 {
                change(&path, shrink);
            }
            std::ops::ControlFlow::Continue(())
        });
        let message = error.unwrap_err().to_string();
        let why = if shrink { "has become shorter" } else { "was changed" };
        assert!(message.contains("a.npz") && message.contains(why) && !message.contains('\n'), "{message}");
    }
}

fn change(path: &Path, shrink: bool) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    if shrink { file.set_len(4000).unwrap() } else { file.write_all(b"more").unwrap() }
}

#[test]
fn a_file_that_changes_while_it_is_spooled_is_refused_and_leaves_nothing() {
    let folder = Folder::new();
    let spool = tempfile::tempdir().unwrap();
    for (compressed, shrink) in [(true, false), (true, true), (false, false), (false, true)] {
        let path = npz(&folder, &Matrix::new(30_000, 5000, true).arrays(true, false), compressed);
        let own = path.clone();
        let once = std::sync::Once::new();
        let disk = Disk::new(spool.path()).progress(move |_| once.call_once(|| change(&own, shrink)));
        let error = read_stored(&path, None, Reading::default(), &disk).unwrap_err();
        assert_eq!(error.kind(), daimc::ErrorKind::Data);
        let message = error.to_string();
        assert!(message.contains("a.npz") && !message.contains('\n'), "{message}");
        assert!(message.contains("was changed while it was read") || shrink, "{message}");
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0);
    }
    // An array that becomes shorter after its header was read.
    let path = folder.file("a.npy", npy("<f8", "(100000, 10)", false, &vec![0; 8_000_000]));
    let own = path.clone();
    let disk = Disk::new(spool.path())
        .progress(move |_| File::options().write(true).open(&own).unwrap().set_len(9000).unwrap());
    let message = read_stored(&path, None, Reading::default(), &disk).unwrap_err().to_string();
    assert!(message.contains("a.npy: ends before its data do"), "{message}");
}

#[test]
fn progress_is_reported_and_a_stop_flag_ends_reading() {
    let folder = Folder::new();
    let spool = tempfile::tempdir().unwrap();
    let path = npz(&folder, &Matrix::new(30_000, 5000, true).arrays(true, false), true);
    for transpose in [false, true] {
        let how = Reading { transpose, ..Reading::default() };
        let (read, ordered) = std::sync::mpsc::channel();
        let disk = Disk::new(spool.path()).progress(move |progress| read.send(progress).unwrap());
        let (table, _) = read_stored(&path, None, how, &disk).unwrap();
        drop(disk);
        let reported: Vec<Progress> = ordered.into_iter().collect();
        let sum = |of: fn(&Progress) -> u64| reported.iter().map(of).sum::<u64>();
        let bytes = sum(|progress| if let Progress::Read(bytes) = progress { *bytes } else { 0 });
        assert_eq!(bytes, stored(&table).entries() as u64 * if transpose { 16 } else { 12 });
        let later = sum(|progress| if let Progress::Ordered(bytes) = progress { *bytes } else { 0 });
        assert_eq!(later > 0, transpose);
        // The flag is set after some time.
        let stop = Stop::new();
        let own = stop.clone();
        let disk = Disk::new(spool.path()).stop(&stop).progress(move |_| own.set());
        let error = read_stored(&path, None, how, &disk).unwrap_err();
        assert_eq!(error.kind(), daimc::ErrorKind::Interrupted);
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0);
    }
}
