//! Clinical tables: results equal to those of scipy and lifelines, and error messages.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, python, skip};

/// Patients in three groups, with columns of every kind, some of them unknown.
fn patients() -> Folder {
    let folder = Folder::new();
    let (mut a, mut clinical) =
        (String::from("id,x,y,z\n"), String::from("id,age,sex,grade,rare,centre,note,months,died,pair\n"));
    // A linear congruential generator: sufficient here, and the same on all platforms.
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(u32::MAX >> 1)
    };
    for i in 0..90 {
        let group = i % 3;
        let of = |axis: usize| if axis == group { 6.0 } else { 1.0 };
        writeln!(a, "p{i},{},{},{}", of(0) + random(), of(1) + random(), of(2) + random()).unwrap();
        let age = if random() < 0.1 {
            "NA".into()
        } else {
            format!("{:.0}", 50.0 + 10.0 * random() + 4.0 * group as f64)
        };
        let sex = if random() < 0.5 { "f" } else { "m" };
        let grade = 1 + (3.0 * random()) as usize + usize::from(group == 2);
        let rare = if i % 17 == 0 { "yes" } else { "no" };
        let centre = ["A", "B", "C", "D", "E", "F", "G"][(7.0 * random() * random()) as usize % 7];
        let months = (1.0 + 60.0 * random() / (1 + group) as f64).round();
        let died = u8::from(random() < 0.6);
        writeln!(clinical, "p{i},{age},{sex},{grade},{rare},{centre},note {i},{months},{died},{}", i % 2)
            .unwrap();
    }
    folder.file("a.csv", a);
    folder.file("clinical.csv", clinical);
    folder
}

/// Runs the comparison with scipy and lifelines and returns its output.
fn compared(result: &Path, table: &Path, survival: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/clinical.py");
    let output = Command::new(python()?).arg(script).arg(result).arg(table).arg(survival).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tests_and_curves_are_those_of_scipy_and_lifelines() {
    let folder = patients();
    for k in [2, 3] {
        let out = format!("out{k}");
        let message = folder.good(&format!(
            "fit --view a=a.csv -k {k} -o {out} --no-assess --clinical clinical.csv --survival months,died"
        ));
        assert!(
            message.contains("clinical columns") && message.contains("Survival: log-rank χ²"),
            "{message}"
        );
        if let Some(message) = compared(&folder.path(&out), &folder.path("clinical.csv"), "months,died") {
            let kinds = if k == 2 {
                "chi-squared fisher kruskal-wallis"
            } else {
                "chi-squared kruskal-wallis permutation"
            };
            assert!(kinds.split(' ').all(|kind| message.contains(kind)), "{message}");
        }
    }
    let summary = folder.json("out3/summary.json");
    assert_eq!(summary["clinical"]["instances"], 90);
    let left_out = summary["clinical"]["left_out"].as_array().unwrap();
    assert!(
        left_out
            .iter()
            .any(|left| left["column"] == "note" && left["reason"].as_str().unwrap().starts_with("text"))
    );
    let page = folder.text("out3/report.html");
    assert!(page.contains("Kaplan–Meier") && page.contains("id=survival"));
    // The report can be made again, with or without them.
    folder.good("report out3");
    assert!(folder.text("out3/report.html").contains("id=survival"));
    folder.good("fit --view a=a.csv -k 3 -o bare --no-assess");
    assert!(!folder.text("bare/report.html").contains("id=survival"));
    folder.good("report bare --clinical clinical.csv --survival months,died -o again.html");
    assert!(folder.text("again.html").contains("id=survival"));
}

#[test]
fn patients_of_tcga_are_compared_with_their_clinical_table() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/omics/acc");
    if !data.exists() {
        skip(&format!("no {}", data.display()));
        return;
    }
    let folder = Folder::new();
    let view = |name: &str| format!("--view {}", data.join(format!("{name}.tsv.gz")).display());
    let views = ["RNASeq2GeneNorm", "miRNASeqGene", "RPPAArray"].map(view).join(" ");
    let (clinical, survival) =
        (data.join("clinical.tsv"), "days_to_death/days_to_last_followup,vital_status");
    let fit = format!("fit {views} -k 3 -o out --id-prefix 12 --no-assess --survival {survival}");
    folder.good(&format!("{fit} --clinical {}", clinical.display()));
    if let Some(message) = compared(&folder.path("out"), &clinical, survival) {
        assert!(message.starts_with("25 columns"), "{message}");
    }
}

#[test]
fn mistakes_with_clinical_tables_are_errors() {
    let folder = patients();
    let fit = "fit --view a=a.csv -k 3 -o out --no-assess";
    let message = |code: i32, rest: &str| folder.bad(code, &format!("{fit} {rest}"));
    assert_eq!(
        message(2, "--survival months,died"),
        "--survival names columns of a clinical table: add --clinical FILE"
    );
    assert!(message(2, "--clinical clinical.csv --survival months").contains("--survival TIME,EVENT"));
    assert!(message(2, "--clinical clinical.csv --survival died,died").contains("are the same column"));
    let unknown = message(3, "--clinical clinical.csv --survival days,died");
    assert!(unknown.starts_with("clinical.csv: has no column 'days'; it has 'age', 'sex'"), "{unknown}");
    assert!(
        message(3, "--clinical clinical.csv --survival months,sex")
            .contains("the event \"m\" of column \"sex\"")
    );
    assert!(message(3, "--clinical clinical.csv --survival sex,died").contains("the time \""));
    folder.file("other.csv", "id,age\nP-1,3\nP-2,4\n");
    assert!(
        message(3, "--clinical other.csv")
            .starts_with("other.csv: none of its IDs is among those of the views: 'P-1' here")
    );
    folder.file("twice.csv", "id,age\np1,3\np1,4\n");
    assert!(message(3, "--clinical twice.csv").contains("the IDs 'p1' and 'p1' are of the same instance"));
    folder.file("ragged.csv", "id,age,sex\np1,3,f\np2,4\n");
    assert_eq!(message(3, "--clinical ragged.csv"), "ragged.csv, line 3: 2 fields where 3 are expected");
    assert!(!folder.path("out").exists());
}
