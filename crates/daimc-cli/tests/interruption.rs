//! A fit that is stopped, killed, or finds no room leaves no half-written file.
#![cfg(unix)]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt;
use common::Folder;

/// A fit that would go on for minutes.
fn start(folder: &Folder) -> Child {
    let mut command = Command::cargo_bin("daimc").unwrap();
    command.current_dir(folder.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let views = "--view fac.tsv --view fou.tsv --view kar.tsv --view pix.tsv --view zer.tsv";
    let arguments = format!("fit {views} -k 10 -o out --tol 0 --max-iter 1000000 -v");
    command.args(arguments.split(' ')).spawn().unwrap()
}

/// Waits until the fit has made some iterations.
fn iterations(child: &mut Child) {
    use std::io::{BufRead, BufReader};
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("iteration 5:")));
    // Somebody has to read on, or the fit would wait.
    std::thread::spawn(move || lines.for_each(drop));
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

fn wait(mut child: Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "the fit goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_writes_what_there_is_and_says_so() {
    let folder = Folder::digit();
    let mut child = start(&folder);
    iterations(&mut child);
    signal(&child, "INT");
    assert_eq!(wait(child).code(), Some(1));
    let summary = folder.json("out/summary.json");
    assert_eq!((&summary["interrupted"], &summary["converged"]), (&true.into(), &false.into()));
    assert!(summary["iterations"].as_u64().unwrap() >= 5);
    assert_eq!(folder.labels("out/labels.tsv").len(), 2000);
    assert!(folder.text("out/report.html").contains("nterrupted"));
}

#[test]
fn a_fit_that_is_killed_leaves_no_output() {
    let folder = Folder::digit();
    let before = folder.list(".");
    let mut child = start(&folder);
    iterations(&mut child);
    signal(&child, "KILL");
    assert_eq!(wait(child).code(), None);
    assert_eq!(folder.list("."), before);
}

#[test]
fn a_full_disk_leaves_no_half_written_file() {
    let folder = Folder::digit();
    let before = folder.list(".");
    let program = assert_cmd::cargo::cargo_bin("daimc");
    // No file may grow beyond 64 blocks of 512 bytes: writing fails as on a full disk.
    let fit = format!("{} fit --view fac.tsv --view zer.tsv -k 10 -o out", program.display());
    let output = Command::new("sh")
        .current_dir(folder.path(""))
        .args(["-c", &format!("trap '' XFSZ; ulimit -f 64; {fit}")])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot be written"), "{told}");
    assert_eq!(folder.list("."), before);
}
