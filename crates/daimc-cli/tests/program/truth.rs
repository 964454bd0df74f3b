//! Classes come from the named column; no column is guessed.

use std::fmt::Write as _;

use crate::common::Folder;

/// Two small views, a fit of them in `out`, and a table of several columns in which `stage` holds the classes.
fn clinical() -> Folder {
    let folder = Folder::small();
    let mut table = String::from("patient,age,stage,note\n");
    for i in 0..12 {
        writeln!(table, "s{i},{},{},n", 40 + i, if i % 2 == 0 { "I" } else { "II" }).unwrap();
    }
    folder.file("clinical.csv", table);
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    folder
}

#[test]
fn a_table_of_several_columns_is_refused_until_one_is_named() {
    let folder = clinical();
    for arguments in [
        "evaluate out/labels.tsv --truth clinical.csv",
        "fit --view a=a.tsv -k 2 -o again --truth clinical.csv",
        "compare --view a=a.tsv --truth clinical.csv --methods daimc --seeds 1 -o compared",
        "report out --truth clinical.csv",
    ] {
        let message = folder.bad(3, arguments);
        assert!(
            message.starts_with("clinical.csv: has 3 columns in addition to the IDs: 'age', 'stage', 'note'"),
            "{message}"
        );
        assert!(message.contains("::COLUMN"), "{message}");
    }
    let message = folder.bad(3, "evaluate out/labels.tsv --truth clinical.csv::grade");
    assert_eq!(message, "clinical.csv: has no column 'grade'; it has 'age', 'stage', 'note'");
    assert!(folder.bad(2, "evaluate out/labels.tsv --truth clinical.csv::").contains("::COLUMN"));
}

#[test]
fn the_named_column_is_compared_with() {
    let folder = clinical();
    let scores = |truth: &str| -> serde_json::Value {
        let message = folder.good(&format!("evaluate out/labels.tsv --truth {truth} --json"));
        serde_json::from_str(&message).unwrap()
    };
    assert_eq!(scores("clinical.csv::stage")["ari"], 1.0);
    assert!(scores("clinical.csv::age")["ari"].as_f64().unwrap() < 0.5);
    assert_eq!(scores("out/labels.tsv")["ari"], 1.0);
    assert_eq!(scores("out/labels.tsv::cluster")["ari"], 1.0);

    folder.good("fit --view a=a.tsv -k 2 -o again --truth clinical.csv::stage");
    assert_eq!(folder.json("again/summary.json")["metrics"]["ac"], 1.0);
    assert_eq!(folder.json("again/summary.json")["options"]["truth"], "clinical.csv::stage");
    // It is found from another folder, and when the fit is repeated.
    folder.good("fit --config again/summary.json -o third");
    assert_eq!(folder.json("third/summary.json")["metrics"]["ac"], 1.0);
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let mut command = assert_cmd::Command::cargo_bin("daimc").unwrap();
    command.current_dir(folder.path("elsewhere")).args(["report", "../again"]).assert().success();
    folder.good("report out --truth clinical.csv::stage -o with.html");
    assert!(folder.text("with.html").contains("II"));
    folder.good("compare --view a=a.tsv --truth clinical.csv::stage --methods wsnmf --seeds 1 -o compared");
}

#[test]
fn a_report_has_the_title_that_it_is_given_or_that_of_the_fit() {
    let folder = clinical();
    folder.good("fit --view a=a.tsv -k 2 -o titled --title Patients");
    assert!(folder.text("titled/report.html").contains("<h1>Patients</h1>"));
    folder.good("report titled -o again.html");
    assert!(folder.text("again.html").contains("<h1>Patients</h1>"));
    folder.good("report titled -o other.html --title <Others>");
    assert!(folder.text("other.html").contains("<h1>&lt;Others&gt;</h1>"));
}

#[test]
fn long_lists_of_columns_are_cut() {
    let folder = clinical();
    let wide = (0..5000).map(|i| format!(",gene{i}")).collect::<Vec<_>>().concat();
    folder.file("wide.csv", format!("id{wide}\ns0{wide}\n"));
    let message = folder.bad(3, "evaluate out/labels.tsv --truth wide.csv");
    assert!(message.contains("'gene9', and 4990 more") && message.len() < 500, "{message}");
}
