//! The commands and outputs of the tutorial.
#![cfg(unix)]

use std::process::Command;

use crate::common::{Folder, skip};

#[test]
fn every_command_of_the_tutorial_works() {
    let text = include_str!("../../../../docs/tutorial.md");
    let blocks: Vec<&str> =
        text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 8);
    let folder = Folder::new();
    let program = assert_cmd::cargo::cargo_bin("daimc");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .current_dir(folder.path(""))
        .env("PATH", path)
        .args(["-e", "-c", &blocks.concat()])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");

    // The shown output of `inspect` is the real one.
    for line in text.lines().filter(|line| line.starts_with("    blood ") || line.starts_with("    vitals "))
    {
        assert!(out.contains(line.trim()), "{line}\n{out}");
    }
    // Similar patients share a cluster, and the new one is in that with fever.
    let labels = folder.labels("patients/labels.tsv");
    let groups = [["p01", "p02", "p07", "p10"], ["p03", "p04", "p08", "p11"], ["p05", "p06", "p09", "p12"]];
    for group in groups {
        assert!(group.iter().all(|id| labels[*id] == labels[group[0]]), "{labels:?}");
    }
    let new = out.lines().find(|line| line.starts_with("new\t")).unwrap();
    assert_eq!(new.split('\t').nth(1).unwrap(), labels["p05"].to_string());
}

/// The tutorial with real tables, if available.
#[test]
fn every_command_of_the_tutorial_of_omics_works() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/omics/acc");
    if !data.exists() {
        skip(&format!("no {}", data.display()));
        return;
    }
    let text = include_str!("../../../../docs/omics.md");
    let folder = Folder::new();
    std::os::unix::fs::symlink(data, folder.path("acc")).unwrap();
    // The first attempt fails with the shown message.
    let first = text.split("$ daimc ").nth(1).unwrap();
    let (command, message) = first.split_once("\ndaimc: ").unwrap();
    let found = folder.bad(3, &command.replace('\\', ""));
    for part in message.split("```").next().unwrap().split("[…]") {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(found.contains(&part), "{part}\n{found}");
    }
    for block in text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let message = folder.good(block.trim().strip_prefix("daimc ").unwrap().replace('\\', "").as_str());
        assert!(!block.contains("--survival") || message.contains("Survival: log-rank"), "{message}");
    }
    assert!(folder.text("tumours/report.html").contains("Kaplan–Meier"));
}
