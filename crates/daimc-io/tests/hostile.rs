//! Malicious files, and paths that are not files. The panic hook is global: no other tests belong here.

mod common;

use std::panic::{catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Folder, refused};
use daimc_io::{Matching, Reading, read_labels};

#[test]
fn sizes_without_data_in_a_matrix_market_file_are_refused() {
    let folder = Folder::new();
    for (text, reason) in [
        (
            "%%MatrixMarket matrix array real general\n4294967295 0\n",
            "the matrix is empty: its size is 4294967295 × 0",
        ),
        ("%%MatrixMarket matrix array real general\n0 4294967295\n", "the matrix is empty"),
        ("%%MatrixMarket matrix coordinate real general\n0 3 0\n", "the matrix is empty"),
        (
            "%%MatrixMarket matrix coordinate real general\n3 4294967295 1\n1 1 1\n",
            "4294967295 features, but only 1 entries",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n4294967295 3 1\n1 1 1\n",
            "4294967295 instances, but only 1",
        ),
    ] {
        let path = folder.file("a.mtx", text);
        for transpose in [false, true] {
            let error = refused(&path, Reading { transpose, ..Reading::default() });
            let other = if transpose { reason.replace("instances", "features") } else { reason.into() };
            assert!(
                error.contains(reason) || error.contains(&other) || error.contains("instances, but"),
                "{error}"
            );
            assert!(error.starts_with("a.mtx, line 2: "), "{error}");
        }
    }
}

#[test]
#[cfg(unix)]
fn devices_which_have_no_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.npy", "a.npz", "a.mat", "a.mtx", "a.parquet"] {
        let path = folder.path().join(name);
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let error = refused(&path, Reading::default());
        assert_eq!(error, format!("{name}: is a device; name a file or a pipe"));
    }
    let error = read_labels("/dev/urandom".as_ref(), None, &Matching::default()).unwrap_err().to_string();
    assert!(error.contains("is a device"), "{error}");
}

#[test]
fn a_nul_in_a_name_is_refused_with_its_place() {
    let folder = Folder::new();
    // After the bytes from which the format is detected.
    let row = |i: usize| if i == 15_000 { "s\0,1,2\n".into() } else { format!("s{i},1,2\n") };
    let text: String = std::iter::once("id,a,b\n".into()).chain((0..20_000).map(row)).collect();
    let path = folder.file("a.csv", &text);
    let error = refused(&path, Reading::default());
    assert_eq!(error, "a.csv, line 15002, column 1: there is a NUL in the text: remove it");
    let labels = read_labels(&path, None, &Matching::default()).unwrap_err().to_string();
    assert!(labels.ends_with("line 15002, column 1: there is a NUL in the text: remove it"), "{labels}");

    let path = folder.file("b.mtx", "%%MatrixMarket matrix coordinate real general\n2 1 1\n1 1 1\n");
    folder.file("b.ids", "x\ny\0z\n");
    let error = refused(&path, Reading::default());
    assert_eq!(error, "b.ids, line 2: there is a NUL in the name: remove it");
}

#[test]
fn a_panic_of_a_decoder_is_an_error_and_is_not_printed() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    set_hook(Box::new(|_| REPORTED.store(true, Ordering::Relaxed)));
    let folder = Folder::new();
    let path = folder.file("a.parquet", include_bytes!("data/panic.parquet"));
    assert_eq!(refused(&path, Reading::default()), "a.parquet: is damaged; copy it again or save it anew");
    assert!(!REPORTED.load(Ordering::Relaxed));
    // The hook still receives all other panics.
    assert!(catch_unwind(|| panic!("of a program")).is_err());
    assert!(REPORTED.load(Ordering::Relaxed));
}

#[test]
fn a_carriage_return_within_a_line_is_refused() {
    let folder = Folder::new();
    let reason = "a carriage return stands within the line: remove it, or save the file with line ends of Unix or Windows";
    for (text, place) in [
        ("id,a,b\nx,1,\r2\ny,3,4\n", "line 2, column 3"),
        ("id,a,b\nx,1\r,2\ny,3,4\n", "line 2, column 2"),
        ("id,a,b\nx\rz,1,2\ny,3,4\n", "line 2, column 1"),
        ("id,a,b\r]\nx,1,2\ny,3,4\n", "line 1, column 3"),
    ] {
        let path = folder.file("a.csv", text);
        assert_eq!(refused(&path, Reading::default()), format!("a.csv, {place}: {reason}"));
    }
    for text in
        ["id,a,b\r\nx,1,2\r\ny,3,4\r\n", "id,a,b\r\r\nx,1,2\r\r\ny,3,4\r", "id a  b\r\nx 1 2 \r\ny 3 4"]
    {
        let table = common::table(&folder.file("a.csv", text));
        assert_eq!(common::values(&table), [1.0, 2.0, 3.0, 4.0], "{text:?}");
    }
}
