//! A pipe gives the same table as the file, and is hashed while it is read.
#![cfg(unix)]

use std::fmt::Write as _;
use std::fs;
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Folder, Formats, values};
use daimc::source::Buffer;
use daimc_io::{Cells, Csr, Disk, Reading, Table, read, read_hashed, read_stored, read_within, sha256};

/// Reads these bytes through a pipe.
fn piped(bytes: &[u8], variable: Option<&str>, how: Reading) -> daimc_io::Result<(String, String)> {
    let found = through_pipe(bytes, |path| read_hashed(path, variable, how));
    found.map(|(table, hash)| (format!("{:?} {:?} {:?}", table.ids, table.features, table.cells), hash))
}

fn through_pipe(
    bytes: &[u8],
    read: impl FnOnce(&Path) -> daimc_io::Result<(Table, String)>,
) -> daimc_io::Result<(Table, String)> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    std::thread::scope(|scope| {
        // The reader may have closed the pipe.
        scope.spawn(move || {
            let _ = writer.write_all(bytes);
        });
        let found = read(&path);
        drop(reader);
        found
    })
}

/// Whether a table from a pipe is that of a file. A pipe has no companion files with names.
fn same(own: &Table, table: &Table) -> bool {
    let mut buffer = Buffer::default();
    let ours = match &own.cells {
        Cells::Stored(stored) => {
            stored.rows().read(0..own.rows, &mut buffer).unwrap();
            let all: Vec<f64> = if buffer.f32.is_empty() {
                std::mem::take(&mut buffer.f64)
            } else {
                buffer.f32.iter().map(|&value| value.into()).collect()
            };
            if stored.layout().is_dense() {
                all
            } else {
                let csr = Csr { offsets: buffer.offsets, columns: buffer.columns, values: all };
                values(&Table { cells: Cells::SparseF64(csr), ..own.clone() })
            }
        }
        _ => values(own),
    };
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let no_names = own.features.is_none() && own.ids.is_none();
    (no_names || (&own.ids, &own.features) == (&table.ids, &table.features))
        && bits(&ours) == bits(&values(table))
}

#[test]
fn a_pipe_loses_no_row() {
    let mut text = String::from("id,a,b\n");
    (0..200_000).for_each(|i| writeln!(text, "i{i},{i},{}", i * 7 % 1000).unwrap());
    let folder = Folder::new();
    let path = folder.file("a.csv", &text);
    let expected = format!("{:?}", read(&path, None, Reading::default()).unwrap().cells);
    for _ in 0..5 {
        let (found, hash) = piped(text.as_bytes(), None, Reading::default()).unwrap();
        assert!(found.ends_with(&expected), "rows are lost");
        assert_eq!(hash, sha256(text.as_bytes()));
    }
}

#[test]
fn every_format_is_detected_by_its_first_bytes() {
    let Some(formats) = Formats::make() else { return };
    let mut seen = Vec::new();
    for table in formats.tables.iter().filter(|table| table["text"] == false) {
        let path = formats.path(&table["file"]);
        let variable = table["variable"].as_str();
        let how = Reading { no_ids: table["no_ids"] == true, ..Reading::default() };
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let (mut table, hash) = read_hashed(&path, variable, how).unwrap();
        // A pipe has no companion files with names.
        if path.extension().is_some_and(|ending| ending == "mtx") {
            (table.ids, table.features) = (None, None);
        }
        assert_eq!(hash, sha256(&bytes), "{}", path.display());
        let table = format!("{:?} {:?} {:?}", table.ids, table.features, table.cells);
        assert!(piped(&bytes, variable, how).unwrap() == (table, hash), "{}", path.display());
        seen.extend(path.extension().map(|ending| ending.to_string_lossy().into_owned()));
    }
    for ending in
        ["npy", "npz", "mat", "parquet", "feather", "arrow", "arrows", "xlsx", "ods", "h5ad", "h5mu", "h5"]
    {
        assert!(seen.iter().any(|seen| seen == ending), "{ending} was not tried");
    }
}

#[test]
fn a_pipe_that_does_not_fit_into_memory_is_written_to_disk() {
    let Some(formats) = Formats::make() else { return };
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    for given in &formats.tables {
        let path = formats.path(&given["file"]);
        let variable = given["variable"].as_str();
        let how = Reading { no_ids: given["no_ids"] == true, ..Reading::default() };
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let (table, hash) = read_hashed(&path, variable, how).unwrap();
        for most in [0, 100, 2000, u64::MAX] {
            let what = format!("{} {variable:?} within {most}", path.display());
            let (own, own_hash) =
                through_pipe(&bytes, |path| read_within(path, variable, how, &disk, most)).unwrap();
            assert_eq!(own_hash, hash, "{what}");
            assert!(same(&own, &table), "{what}");
            let stored = matches!(own.cells, Cells::Stored(_));
            assert!(stored || most > 0, "{what}");
            assert!(!stored || most < u64::MAX, "{what}");
        }
        let (own, own_hash) = through_pipe(&bytes, |path| read_stored(path, variable, how, &disk)).unwrap();
        assert!(own_hash == hash && same(&own, &table) && matches!(own.cells, Cells::Stored(_)));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn matrix_market_is_detected_by_its_first_line_also_compressed() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1\n2 2 5\n3 1 2\n";
    let (plain, _) = piped(text.as_bytes(), None, Reading::default()).unwrap();
    assert!(plain.contains("SparseF64"), "{plain}");
    let squeezed = zstd(text);
    let (found, hash) = piped(&squeezed, None, Reading::default()).unwrap();
    assert_eq!((found, hash), (plain, sha256(&squeezed)));
}

#[test]
fn an_empty_pipe_is_refused() {
    let error = piped(b"", None, Reading::default()).unwrap_err().to_string();
    assert!(error.contains("empty"), "{error}");
}

/// A frame of Zstandard with the uncompressed text.
fn zstd(text: &str) -> Vec<u8> {
    let size = u8::try_from(text.len()).unwrap();
    // One segment, its size in one byte; then one raw block, the last.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, size];
    frame.extend(&((u32::from(size) << 3) | 1).to_le_bytes()[..3]);
    frame.extend(text.as_bytes());
    frame
}

#[test]
fn a_file_is_hashed_with_the_bytes_that_its_reader_skips() {
    let folder = Folder::new();
    let hashed = |path: &Path| read_hashed(path, None, Reading::default()).unwrap().1;
    // The last empty lines are no part of the table.
    let text = "id,a,b\nx,1,2\ny,3,4\n\n\n\n";
    assert_eq!(hashed(&folder.file("a.csv", text)), sha256(text.as_bytes()));
}

#[test]
fn the_hash_of_a_file_that_changes_is_that_of_the_bytes_read() {
    let folder = Folder::new();
    let version = |value: u8| {
        let rows = (0..20_000).map(|i| format!("s{i},{value}\n"));
        String::from("id,x\n") + &rows.collect::<String>()
    };
    let versions = [1, 2].map(version);
    let path = folder.file("a.csv", &versions[0]);
    let (stop, hashes) = (AtomicBool::new(false), versions.each_ref().map(|text| sha256(text.as_bytes())));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Both are equally long, and written in place.
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            for text in versions.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                file.rewind().unwrap();
                file.write_all(text.as_bytes()).unwrap();
            }
        });
        for _ in 0..100 {
            let (table, hash) = read_hashed(&path, None, Reading::default()).unwrap();
            let values = values(&table);
            for (hashed, value) in hashes.iter().zip([1.0, 2.0]) {
                assert_eq!(*hashed == hash, values.iter().all(|other| *other == value));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
