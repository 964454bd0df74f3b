//! Views from pipes.
#![cfg(unix)]

use std::fmt::Write as _;
use std::process::{Command, Output};

use crate::common::Folder;

/// Runs a command of the shell, in which $DAIMC is the program.
fn shell(folder: &Folder, command: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin!("daimc");
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).current_dir(folder.path("")).env("DAIMC", program).output().unwrap()
}

/// A folder with a table larger than the buffer of a pipe, as large.csv and large.csv.gz.
fn large() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("id,x,y,z\n");
    for i in 0..20_000 {
        let far = f64::from(i % 2) * 9.0;
        writeln!(text, "s{i},{},{},1.5", far + f64::from(i % 7) / 10.0, f64::from(i % 5) / 10.0).unwrap();
    }
    folder.file("large.csv", text);
    assert!(shell(&folder, "gzip -k large.csv").status.success());
    folder
}

#[test]
fn a_pipe_gives_what_the_file_gives() {
    let folder = large();
    let options = "-k 2 --neighbours off -q --json";
    let of_file = shell(&folder, &format!("$DAIMC fit --view a=large.csv {options} -o file"));
    assert!(of_file.status.success());
    let labels = folder.text("file/labels.tsv");
    assert_eq!(labels.lines().count(), 20_001);
    let input = folder.json("file/summary.json")["inputs"][0].clone();
    for (number, view) in [
        "--view a=<(cat large.csv)",
        "--view a=<(zcat large.csv.gz)",
        "--view a=- < large.csv",
        "--view a=/dev/stdin < <(zcat large.csv.gz)",
        "--view a=- < <(cat large.csv)",
    ]
    .into_iter()
    .enumerate()
    {
        let output = shell(&folder, &format!("$DAIMC fit {options} -o pipe{number} {view}"));
        assert!(output.status.success(), "{view}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(folder.text(&format!("pipe{number}/labels.tsv")) == labels, "{view}");
        let summary = folder.json(&format!("pipe{number}/summary.json"));
        for key in ["sha256", "shape", "values", "entries", "bytes"] {
            assert_eq!(summary["inputs"][0][key], input[key], "{view}: {key}");
        }
    }
}

#[test]
fn the_hash_is_that_of_the_file() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv -k 2 -o out");
    let message = shell(&folder, "sha256sum a.tsv");
    let message = String::from_utf8(message.stdout).unwrap();
    let hash = folder.json("out/summary.json")["inputs"][0]["sha256"].clone();
    assert_eq!(hash.as_str(), message.split_whitespace().next());
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::small();
    for arguments in [
        "fit --view a=- --view b=- -k 2 -o out",
        "fit --view a=- --truth - -k 2 -o out",
        "fit --view a=- --mask - -k 2 -o out",
        "evaluate - --truth -",
        "compare --view a=- --truth - -o out",
    ] {
        let message = folder.bad(2, arguments);
        assert!(message.contains("standard input"), "{arguments}: {message}");
    }
    assert!(folder.bad(2, "inspect --view -").contains("NAME=-"));
}

#[test]
fn truths_and_masks_are_read_from_pipes() {
    let folder = Folder::small();
    let output = shell(&folder, "$DAIMC fit --view a=a.tsv -k 2 -o out --truth - < truth.csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.json("out/summary.json")["metrics"]["ac"], 1.0);
    let output = shell(&folder, "$DAIMC evaluate <(cat out/labels.tsv) --truth <(cat truth.csv) --json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
