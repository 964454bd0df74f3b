//! A fit that is interrupted, killed, or fills the disk leaves no partial file.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Folder;
use assert_cmd::cargo::CommandCargoExt;

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
    // The pipe must be drained, or the fit would block.
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
fn ctrl_c_writes_the_results_so_far_and_reports_it() {
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

/// Rows of single-precision numbers as an .npy file.
fn npy(rows: usize, columns: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:<117}\n").into_bytes());
    let mut state = 1_u32;
    for i in 0..rows * columns {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f32::from(u16::try_from(state >> 16).unwrap()) / 65536.0;
        let cluster = (i / columns) % 3;
        file.extend((noise + if i % 3 == cluster { 1.0 } else { 0.0 }).to_le_bytes());
    }
    file
}

#[test]
fn ctrl_c_leaves_the_search_for_neighbours_and_keeps_the_clusters() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    // Every pair is compared in each of six views, on one thread: that takes many seconds, and the signal comes in the first.
    folder.file("x.npy", npy(20_000, 300));
    let views: Vec<String> = (1..=6).map(|view| format!("--view v{view}=x.npy")).collect();
    let arguments =
        format!("fit {} -k 3 -o out --max-iter 2 --neighbours refine --threads 1 -v", views.join(" "));
    let mut command = Command::cargo_bin("daimc").unwrap();
    command.current_dir(folder.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.args(arguments.split(' ')).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "searching for neighbours in view 'v1'"));
    signal(&child, "INT");
    let message: Vec<String> = lines.collect();
    assert_eq!(wait(child).code(), Some(1), "{message:?}");
    // The search was interrupted, not finished.
    assert!(
        !message.iter().any(|line| line.contains("view 'v6'") || line.starts_with("cutting")),
        "{message:?}"
    );
    assert!(
        message.iter().any(|line| line.contains("neighbourhoods: off (the fit was interrupted)")),
        "{message:?}"
    );
    let summary = folder.json("out/summary.json");
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["iterations"], 2);
    assert_eq!(folder.labels("out/labels.tsv").len(), 20_000);
}

#[test]
fn a_fit_that_is_killed_leaves_no_output() {
    let folder = Folder::digit();
    let before = folder.list(".");
    let mut child = start(&folder);
    iterations(&mut child);
    signal(&child, "KILL");
    assert_eq!(wait(child).code(), None);
    // Its temporary files are hidden and ignored, and the next fit removes them.
    assert_eq!(folder.list("out"), [".daimc-partial"]);
    folder.good("fit --view zer.tsv -k 10 -o out --max-iter 2 -q");
    assert_eq!(folder.list("out").len(), 8);
    assert!(folder.list(".").into_iter().filter(|name| name != "out").eq(before));
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
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot be written"), "{message}");
    assert_eq!(folder.list("."), before);
}
