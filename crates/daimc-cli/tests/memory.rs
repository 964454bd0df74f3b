//! Where memory is short, the program says so; it does not abort.

mod common;

use std::fs::File;
use std::io::Write;
use std::process::{Command, Output};

use common::Folder;

/// Runs the program with so many KiB of addresses, as `ulimit -v` does.
fn limited(folder: &Folder, kib: u64, arguments: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin("daimc");
    let script = format!("ulimit -v {kib}; exec {} {arguments}", program.display());
    Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap()
}

fn told(output: &Output, code: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(errors.lines().filter(|line| line.starts_with("daimc: ")).count(), 1, "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    errors
}

#[test]
fn a_limit_is_checked_before_files_are_read_and_before_a_fit_begins() {
    let folder = Folder::small();
    let fit = "fit --view a=a.tsv --view b=b.csv -k 2 -o out --threads 1";
    assert!(folder.bad(1, &format!("{fit} --memory 1MB")).contains("the fit needs about"));
    assert!(folder.list("out").is_empty());
    assert!(folder.bad(2, &format!("{fit} --memory much")).contains("500MB"));
    folder.good(&format!("{fit} --memory 2GB"));
}

#[test]
#[cfg(target_os = "linux")]
fn under_a_limit_of_the_system_a_sentence_is_said() {
    let folder = Folder::new();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (400000, 1000), }";
    let mut file = File::create(folder.path("a.npy")).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(10 + header.len() as u64 + 3_200_000_000).unwrap();
    let output = limited(&folder, 1_000_000, "inspect --view a=a.npy --threads 1");
    assert!(told(&output, 1).contains("a.npy: 3200 MB of memory is needed"));

    // Few values, but many features and clusters.
    let entries: Vec<String> = (1..=200).map(|i| format!("{i} {} 1", i * 4000)).collect();
    let entries = entries.join("\n");
    folder.file("b.mtx", format!("%%MatrixMarket matrix coordinate real general\n200 800000 200\n{entries}"));
    let output = limited(&folder, 1_000_000, "fit --view b=b.mtx -k 100 -o out --threads 1");
    assert!(told(&output, 1).contains("the fit needs about"));
}

#[test]
#[cfg(unix)]
fn files_that_claim_or_have_no_end_are_refused() {
    let folder = Folder::new();
    folder.file("a.mtx", "%%MatrixMarket matrix array real general\n4294967295 0\n");
    assert!(folder.bad(3, "inspect --view a=a.mtx").contains("the matrix is empty"));
    folder.file("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 4294967295 1\n1 1 1\n");
    assert!(folder.bad(3, "fit --view a=b.mtx -k 2 -o out").contains("4294967295 features"));
    assert!(folder.bad(3, "inspect --view a=/dev/zero").contains("is a device"));
}
