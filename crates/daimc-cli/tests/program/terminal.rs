//! Messages never end a command, and control characters from files are escaped.
#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

use crate::common::Folder;

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -k 2 -o out";

fn program() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("daimc"))
}

/// Runs a command of the shell, in which $DAIMC is the program.
fn shell(folder: &Folder, command: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).current_dir(folder.path(""));
    shell.env("DAIMC", program().get_program()).output().unwrap()
}

#[test]
fn a_standard_error_that_is_closed_or_full_does_not_end_a_fit() {
    for (number, way) in [
        "2>&-",
        "2>/dev/full",
        "-v 2>/dev/full",
        "2>&1 >/dev/null | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}",
        "-v 2>&1 | head -1; exit ${PIPESTATUS[0]}",
        "-v 2>/dev/full >&-",
        "-v >/dev/null 2> >(true)",
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::small();
        let output = shell(&folder, &format!("$DAIMC {FIT} --truth truth.csv {way}"));
        assert_eq!(output.status.code(), Some(0), "{number}: {way}");
        assert_eq!(folder.labels("out/labels.tsv").len(), 12, "{way}");
        assert_eq!(folder.list("out").len(), 8, "{way}");
        assert_eq!(folder.list(".").len(), 4, "{way}: {:?}", folder.list("."));
    }
}

#[test]
fn errors_keep_their_exit_code_when_standard_error_is_closed() {
    let folder = Folder::small();
    for (code, arguments) in [
        (3, "fit --view a=nowhere.tsv -k 2 -o out"),
        (2, "fit --view a=a.tsv -k 0 -o out"),
        (2, "fit --view a=a.tsv -k two -o out"),
        (2, "fly"),
    ] {
        for way in ["2>&-", "2>/dev/full"] {
            let output = shell(&folder, &format!("$DAIMC {arguments} {way}"));
            assert_eq!(output.status.code(), Some(code), "{arguments} {way}");
        }
    }
}

#[test]
fn a_closed_standard_output_costs_no_result() {
    let folder = Folder::small();
    for (name, arguments) in [("out", FIT), ("demo", "demo -o demo --threads 2")] {
        let output = shell(&folder, &format!("$DAIMC {arguments} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(output.status.code(), Some(0), "{arguments}");
        assert_eq!(folder.list(name).len(), 8, "{arguments}");
    }
}

/// Two views of which one has this ID, this feature or this cell, and the messages of every command about it.
fn message(id: &str, feature: &str, cell: &str, view: &str) -> Vec<(String, Output)> {
    let folder = Folder::small();
    let field = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let (id, feature) = (field(id), field(feature));
    folder.file("bad.csv", format!("id,{feature}\n{id},{}\ns1,2\n", field(cell)));
    folder.file("gap.csv", format!("id,{feature},q\n{id},1,\ns1,2,3\n"));
    folder.file("twice.csv", format!("id,{feature}\n{id},1\n{id},2\n"));
    folder.file("good.csv", format!("id,{feature}\n{id},1\ns1,2\ns2,3\n"));
    folder.file("other.csv", format!("id,{feature}\n{id},1\n"));
    folder.file("truth2.csv", format!("id,{feature},q\n{id},1,2\n"));
    folder.file("mask.tsv", format!("id\t{feature}\n{id}\t1\n"));
    folder.file("mask2.tsv", format!("id\tv\n{id}\t{}\n", field(cell)));
    folder.good("fit --view v=a.tsv -k 2 -o out -q");
    let named = format!("{view}=good.csv");
    let runs: Vec<Vec<&str>> = vec![
        vec!["inspect", "--view", "v=bad.csv"],
        vec!["inspect", "--view", "v=gap.csv"],
        vec!["inspect", "--view", "v=twice.csv"],
        vec!["inspect", "--view", "v=other.csv", "--view", "b=b.csv"],
        vec!["inspect", "--view", &named],
        vec!["inspect", "--view", "v=good.csv", "--mask", "mask.tsv"],
        vec!["inspect", "--view", "v=good.csv", "--mask", "mask2.tsv"],
        vec!["fit", "--view", &named, "--view", "a=a.tsv", "-k", "2", "-v", "-o", "named"],
        vec!["fit", "--view", "a=a.tsv", "-k", "2", "-o", "x", "--truth", "other.csv"],
        vec!["evaluate", "out/labels.tsv", "--truth", "truth2.csv"],
        vec!["evaluate", "other.csv", "--truth", "truth.csv"],
        vec!["predict", "out/model.safetensors", "--view", "v=good.csv"],
        vec!["predict", "out/model.safetensors", "--view", &named],
        vec!["simulate", "--view", &named, "--missing", "0", "-o", "m"],
        vec!["simulate", "--view", "v=twice.csv", "--missing", "0", "-o", "m2"],
        vec![
            "compare",
            "--view",
            &named,
            "--truth",
            "other.csv",
            "--methods",
            "single",
            "--seeds",
            "1",
            "-o",
            "c",
        ],
    ];
    let run = |arguments: Vec<&str>| {
        let output = program().args(&arguments).current_dir(folder.path("")).output().unwrap();
        (arguments.join(" "), output)
    };
    runs.into_iter().map(run).collect()
}

#[test]
fn control_characters_from_files_are_escaped() {
    let evil = "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\ry\u{202e}";
    for (command, output) in message(evil, evil, evil, evil) {
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let raw = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}');
            assert_eq!(raw, None, "{command}\n{text:?}");
        }
    }
}

#[test]
fn a_name_of_three_megabytes_makes_no_message_of_three_megabytes() {
    let long = "x".repeat(900_000);
    for (command, output) in message(&long, &long, &long, "v") {
        let length = output.stdout.len() + output.stderr.len();
        assert!(length < 4000, "{command}: {length}");
    }
}

#[test]
fn a_name_of_several_lines_is_printed_on_one() {
    let folder = Folder::small();
    folder.file("a.csv", "id,x\n\"s0\ndaimc: all is well\",high\n");
    let message = folder.bad(3, "inspect --view a=a.csv");
    assert!(message.contains(r"s0\ndaimc: all is well"), "{message}");
}

#[test]
fn data_files_keep_names_as_they_are() {
    let folder = Folder::small();
    let id = "x\u{1b}[2J".to_owned() + &"y".repeat(200);
    folder.file("good.csv", format!("id,p\n{id},1\ns1,2\ns2,9\n"));
    folder.good("fit --view v=good.csv -k 2 -o named");
    assert!(folder.text("named/labels.tsv").contains(&format!("{id}\t")));
    folder.good("simulate --view v=good.csv --missing 0 -o m");
    assert!(folder.text("m/mask.tsv").contains(&id) && folder.text("m/v.tsv").contains(&id));
}

#[test]
fn a_folder_whose_name_is_not_utf_8_is_worked_in_and_written_to() {
    let folder = Folder::small();
    let odd = folder.path("").join(OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::copy(folder.path("a.tsv"), odd.join("a.tsv")).unwrap();
    let fit = |extra: &[&OsStr]| {
        let mut fit = program();
        fit.current_dir(&odd)
            .args(["fit", "--view", "a=a.tsv", "-k", "2", "-q"])
            .args(extra)
            .output()
            .unwrap()
    };
    let output = fit(&["-o", "out"].map(OsStr::new));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: std::path::PathBuf| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let summary = read(odd.join("out/summary.json"));
    assert_eq!(summary["options"]["view"][0], "a=a.tsv");
    assert_eq!(summary["inputs"][0]["path"], "a.tsv");
    let output = fit(&[OsStr::new("-o"), OsStr::from_bytes(b"out\xfe")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = read(odd.join(OsStr::from_bytes(b"out\xfe")).join("summary.json"));
    assert_eq!(summary["options"]["clusters"], 2);
    // There, the report can be made again and the fit repeated.
    for arguments in [["report", "out"].as_slice(), &["fit", "--config", "out/summary.json", "-o", "again"]] {
        let output = program().args(arguments).current_dir(&odd).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn files_whose_names_are_not_utf_8_are_refused_before_the_work() {
    let folder = Folder::small();
    let odd = OsStr::from_bytes(b"odd\xff.csv");
    std::fs::copy(folder.path("truth.csv"), folder.path("").join(odd)).unwrap();
    for option in ["--truth", "--mask"] {
        let mut fit = program();
        fit.current_dir(folder.path("")).args(FIT.split(' ')).arg(option).arg(odd);
        let output = fit.output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("UTF-8") && message.contains(option), "{message}");
        assert!(!folder.path("out").exists());
    }
    let mut view = std::ffi::OsString::from("a=");
    view.push(odd);
    let output =
        program().arg("inspect").arg("--view").arg(view).current_dir(folder.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("UTF-8"));
}

#[test]
fn more_threads_than_make_sense_are_refused() {
    let folder = Folder::small();
    let message = folder.bad(2, &format!("{FIT} --threads 5000"));
    assert!(message.starts_with("--threads 5000: at most "), "{message}");
    assert!(!folder.path("out").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_a_sentence() {
    let folder = Folder::small();
    for (way, arguments) in [
        ("", "fit --view a=a.tsv -k 2 -o out --threads 250"),
        ("export RAYON_NUM_THREADS=250;", "fit --view a=a.tsv -k 2 -o out"),
        ("export RAYON_NUM_THREADS=250;", "simulate --view a=a.tsv --missing 0 -o out"),
    ] {
        // Not enough memory for the stacks.
        let output = shell(&folder, &format!("ulimit -v 400000; {way} $DAIMC {arguments}"));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.starts_with("daimc: threads cannot be started") && message.lines().count() == 1,
            "{message}"
        );
    }
}
