//! Damaged files give an error or a table, never a panic, and never take memory out of proportion to their length.

mod common;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Mutex;

use common::Formats;
use daimc_io::{Reading, Table, read};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process, so that tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The memory that a reader may take in addition to ten times the length of the file.
const BUFFERS: usize = 8 << 20;

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Reads `bytes` as a file called `name`, and returns the peak of the memory.
fn read_bytes(
    folder: &Path,
    name: &str,
    variable: Option<&str>,
    bytes: &[u8],
) -> (Result<Table, String>, usize) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    // Printing a backtrace takes more memory than any reader here.
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = catch_unwind(AssertUnwindSafe(|| read(&path, variable, Reading::default())));
    let taken = MEMORY.peak_usage().saturating_sub(before);
    set_hook(hook);
    let result = result.unwrap_or_else(|_| panic!("{name}: reading panicked"));
    (result.map_err(|error| error.to_string()), taken)
}

fn refused(name: &str, bytes: &[u8], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (result, taken) = read_bytes(folder.path(), name, None, bytes);
    let message = result.expect_err(name);
    assert!(taken < BUFFERS + 10 * bytes.len(), "{taken} bytes for {}: {message}", bytes.len());
    assert!(message.contains(name), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

/// A `.mat` file of one variable with this class, shape and data.
fn mat(class: u32, shape: [i32; 2], tag: [u32; 2], data: &[u8]) -> Vec<u8> {
    let mut body: Vec<u8> = [6, 8, class, 0, 5, 8].into_iter().flat_map(u32::to_le_bytes).collect();
    body.extend(shape.into_iter().flat_map(i32::to_le_bytes));
    body.extend([1 | 1 << 16, u32::from(b'a')].into_iter().flat_map(u32::to_le_bytes));
    body.extend(tag.into_iter().flat_map(u32::to_le_bytes));
    body.extend(data);
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend(b"\x00\x01IM");
    bytes.extend([14, body.len() as u32].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(body);
    bytes
}

#[test]
fn generated_files_are_valid() {
    let _alone = alone();
    let data: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    for (name, bytes) in [("a.npy", npy("<f8", "(2, 3)", &data)), ("a.mat", mat(6, [2, 3], [9, 48], &data))] {
        let folder = tempfile::tempdir().unwrap();
        let table = read_bytes(folder.path(), name, None, &bytes).0.unwrap();
        assert_eq!(common::values(&table), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0], "{name}");
    }
}

#[test]
fn headers_with_wrong_sizes_are_refused() {
    let _alone = alone();
    let data = [0; 48];
    refused("a.npy", &npy("<f8", "(1000000, 1000000)", &data), &["1000000 × 1000000", "48 bytes"]);
    refused("a.npy", &npy("<f8", "(9223372036854775807, 9)", &data), &["48 bytes"]);
    refused("a.npy", &npy("<f8", "(99999999999999999999999, 9)", &data), &["header"]);
    refused("a.npy", &npy("<f8", "(2, 2)", &data), &["48 bytes"]);
    refused("a.npy", &npy("<f8", "(0, 1000000000000)", &[]), &["empty"]);
    refused("a.mat", &mat(6, [1 << 30, 1 << 30], [9, 48], &data), &["1073741824", "6 numbers"]);
    refused("a.mat", &mat(6, [1 << 28, 1], [9, u32::MAX], &data), &["longer"]);
    refused("a.mat", &mat(6, [-1, -1], [9, 48], &data), &["6 numbers"]);
    refused("a.mat", &mat(5, [1 << 30, 1 << 30], [5, 8], &data), &["a.mat"]);
    refused("a.mat", &mat(1, [1 << 30, 1 << 30], [9, 48], &data), &["cell"]);
}

#[test]
fn files_of_another_format_are_refused() {
    let _alone = alone();
    let noise: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for name in ["a.npy", "a.npz", "a.mat", "a.parquet"] {
        refused(name, b"", &["empty"]);
        refused(name, b"x", &[]);
        refused(name, &noise, &[]);
        refused(name, &[0; 300], &[]);
        refused(name, b"id,a,b\n1,2,3\n", &[]);
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.npy", "a.npz", "a.mat", "a.parquet"] {
        let error = read(&folder.path().join(name), None, Reading::default()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("cannot be read"), "{error}");
        fs::create_dir(folder.path().join(name)).unwrap();
        let error = read(&folder.path().join(name), None, Reading::default()).unwrap_err().to_string();
        assert!(error.contains("folder"), "{error}");
    }
}

#[test]
fn pages_that_claim_more_values_than_rows_are_refused() {
    let _alone = alone();
    refused("lengths.parquet", include_bytes!("data/lengths.parquet"), &["a page claims more than it holds"]);
}

#[test]
fn pages_with_wrong_sizes_are_refused() {
    let Some(formats) = Formats::make() else { return };
    let _alone = alone();
    for name in ["lying_snappy.parquet", "lying_lz4.parquet"] {
        refused(name, &fs::read(formats.path(&name.into())).unwrap(), &["claims more"]);
    }
}

#[test]
fn any_byte_may_be_wrong_and_any_tail_missing() {
    let Some(formats) = Formats::make() else { return };
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in [
        "tiny.npy",
        "tiny.npz",
        "tiny_sparse.npz",
        "tiny.mat",
        "tiny_sparse.mat",
        "tiny.parquet",
        "tiny_zstd.parquet",
        "tiny_uncompressed.feather",
        "tiny_lz4.feather",
        "tiny_zstd.feather",
        "tiny.arrows",
        "tiny.xlsx",
        "tiny.ods",
        "tiny.csv.bz2",
        "tiny.csv.xz",
        "tiny.csv.zip",
    ] {
        let whole = fs::read(formats.path(&name.into())).unwrap();
        assert!(read_bytes(folder, name, None, &whole).0.is_ok(), "{name}");
        for at in 0..whole.len() {
            let (result, _) = read_bytes(folder, name, None, &whole[..at]);
            assert!(result.is_err(), "{name} without its end is read");
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                let (result, taken) = read_bytes(folder, name, None, &bytes);
                assert!(taken < BUFFERS, "{name}, byte {at} ^ {change}: {taken} bytes taken");
                assert!(result.err().is_none_or(|message| message.contains(name)));
            }
        }
    }
}

/// Damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Change(Vec<(prop::sample::Index, u8)>),
    /// Lengths and offsets are most often in the first or the last bytes.
    Edge(bool, prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        let index = any::<prop::sample::Index>;
        prop_oneof![
            index().prop_map(Self::Cut),
            prop::collection::vec((index(), any::<u8>()), 1..8).prop_map(Self::Change),
            (any::<bool>(), index(), any::<u8>()).prop_map(|(end, at, byte)| Self::Edge(end, at, byte)),
            (index(), prop::collection::vec(any::<u8>(), 1..20))
                .prop_map(|(at, bytes)| Self::Insert(at, bytes)),
        ]
    }

    fn apply(self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        match self {
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Change(changes) => {
                for (at, byte) in changes {
                    bytes[at.index(length)] ^= byte;
                }
            }
            Self::Edge(end, at, byte) => {
                let edge = at.index(length.min(400));
                bytes[if end { length - 1 - edge } else { edge }] ^= byte;
            }
            Self::Insert(at, new) => {
                let at = at.index(length);
                bytes.splice(at..at, new);
            }
        }
    }
}

#[test]
fn damaged_files_give_an_error_or_a_table() {
    let Some(formats) = Formats::make() else { return };
    let _alone = alone();
    let files = formats.tables.iter().filter(|table| table["text"] == false);
    let files: Vec<_> = files.filter(|table| formats.path(&table["file"]).is_file()).collect();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4000);
    let config =
        Config { cases, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
    let folder = tempfile::tempdir().unwrap();
    let damage = (0..files.len(), Damage::any());
    let result = TestRunner::new(config).run(&damage, |(file, damage)| {
        let path = formats.path(&files[file]["file"]);
        let mut bytes = fs::read(&path).unwrap();
        damage.apply(&mut bytes);
        let name = Path::file_name(&path).unwrap().to_str().unwrap();
        let (result, taken) = read_bytes(folder.path(), name, files[file]["variable"].as_str(), &bytes);
        prop_assert!(taken < BUFFERS + 10 * bytes.len(), "{} took {} bytes", name, taken);
        if let Err(message) = result {
            prop_assert!(message.contains(name), "{}", message);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
