//! The fuzzer itself: it runs every reader, and finds no fault in a few thousand cases.

use std::process::Command;

#[test]
fn a_few_thousand_mutants_of_every_format_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_daimc-fuzz"))
        .args(["--cases", "9000", "--seconds", "300", "--jobs", "1", "--findings"])
        .arg(folder.path().join("findings"))
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    let readers = [
        "csv", "gz", "hdf5", "labels", "mask", "mat", "mat73", "obs", "model", "mtx", "names", "npy", "npz",
        "parquet", "zst", "arrow", "xlsx", "ods", "gct", "bz2", "xz", "zip",
    ];
    for reader in readers {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(reader)).unwrap();
        let numbers: Vec<f64> = row.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
        let &[cases, read, findings, ..] = &*numbers else { panic!("{row}") };
        assert!(cases > 0.0 && read > 0.0 && read < cases && findings == 0.0, "{row}");
    }
    assert!(!folder.path().join("findings").exists());
}
