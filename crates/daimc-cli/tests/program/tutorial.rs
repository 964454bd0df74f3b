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
