//! The tutorial does what it says.
#![cfg(unix)]

use std::process::Command;

use crate::common::Folder;

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

    // What it shows of `inspect` is what `inspect` shows.
    for line in text.lines().filter(|line| line.starts_with("    blood ") || line.starts_with("    vitals "))
    {
        assert!(out.contains(line.trim()), "{line}\n{out}");
    }
    // Patients who are alike are together, and the new one is with the feverish.
    let labels = folder.labels("patients/labels.tsv");
    let groups = [["p01", "p02", "p07", "p10"], ["p03", "p04", "p08", "p11"], ["p05", "p06", "p09", "p12"]];
    for group in groups {
        assert!(group.iter().all(|id| labels[*id] == labels[group[0]]), "{labels:?}");
    }
    let new = out.lines().find(|line| line.starts_with("new\t")).unwrap();
    assert_eq!(new.split('\t').nth(1).unwrap(), labels["p05"].to_string());
}

/// The tutorial with real tables, where these are at hand.
#[test]
fn every_command_of_the_tutorial_of_omics_works() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/omics/acc");
    if !data.exists() {
        println!("skipped: no {}", data.display());
        return;
    }
    let text = include_str!("../../../../docs/omics.md");
    let folder = Folder::new();
    std::os::unix::fs::symlink(data, folder.path("acc")).unwrap();
    // The first try fails with the words that are shown.
    let first = text.split("$ daimc ").nth(1).unwrap();
    let (command, told) = first.split_once("\ndaimc: ").unwrap();
    let found = folder.bad(3, &command.replace('\\', ""));
    for part in told.split("```").next().unwrap().split("[…]") {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(found.contains(&part), "{part}\n{found}");
    }
    for block in text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let told = folder.good(block.trim().strip_prefix("daimc ").unwrap().replace('\\', "").as_str());
        assert!(!block.contains("--survival") || told.contains("Survival: log-rank"), "{told}");
    }
    assert!(folder.text("tumours/report.html").contains("Kaplan–Meier"));
}
