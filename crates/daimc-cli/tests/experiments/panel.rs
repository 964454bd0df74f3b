//! The panel: planted data, the embedded Digit data, small synthetic files, and the other data sets if they are available.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::Folder;
use crate::reproduce::{number, rows, shared};

#[test]
fn the_panel_has_a_table_for_each_score_and_names_the_worst_set_of_the_default() {
    let folder = Folder::new();
    let command =
        "reproduce panel --sets planted-unequal,planted-nothing --methods daimc,daimc-paper,concatenation";
    let printed = folder.good(&format!("{command} --seeds 2 -o out"));
    let found = rows(&folder, "out/results.tsv");
    assert_eq!(found.len(), 2 * 2 * 3 * 2);
    for row in &found {
        assert_eq!(row[0], "panel");
        let scored = row[1] == "planted-unequal";
        assert!((6..=8).all(|score| number(row, score).is_nan() != scored), "{row:?}");
        // DAIMC reports confidence, k-means does not.
        assert_eq!(row[11].is_empty(), row[3] == "concatenation", "{row:?}");
    }
    let table = folder.text("out/table.md");
    assert!(printed.starts_with(&table), "{printed}");
    for title in
        ["## NMI", "## AC", "## ARI", "## Seconds", "## Regret of daimc", "## No clusters", "## Data"]
    {
        assert!(table.contains(title), "{title}\n{table}");
    }
    for start in [
        "| data | missing | daimc | daimc-paper | concatenation |",
        "| planted-unequal | 0.3 | 0.",
        "| mean | of 2 | 0.",
        "| planted-nothing | 0 | confidence | 0.",
        "| planted-unequal | 250 | 250 | 4 | 80, 60, 40 |",
        "| planted-nothing | 250 | 0 | 4 |",
    ] {
        assert!(table.lines().any(|line| line.starts_with(start)), "{start}\n{table}");
    }
    assert!(table.contains("The worst set is planted-unequal with 0"), "{table}");
    // The regret is that of the means over the seeds.
    let mean = |method: &str, rate: &str| {
        let own: Vec<f64> = found
            .iter()
            .filter(|row| row[1] == "planted-unequal" && row[2] == rate && row[3] == method)
            .map(|row| number(row, 7))
            .collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    for rate in ["0", "0.3"] {
        let regret = format!("| {:+.3} |", mean("daimc-paper", rate) - mean("daimc", rate));
        let start = format!("| planted-unequal | {rate} | ");
        let line = table.lines().find(|line| line.starts_with(&start) && line.contains("| daimc-paper |"));
        assert!(line.unwrap().ends_with(&regret), "{regret}\n{table}");
    }
    let page = folder.text("out/reproduce.html");
    assert_eq!(page.matches("<figure ").count(), 3);
    assert!(!page.contains("http://") && !page.contains("https://"));

    // Finished runs are not repeated when seeds and methods are added.
    let before = folder.text("out/results.tsv");
    folder.good(&format!("{command},nemo --seeds 3 -o out"));
    let after = folder.text("out/results.tsv");
    assert!(after.starts_with(&before), "{after}");
    assert_eq!(after.lines().count(), 1 + 2 * 2 * 4 * 3);
    assert!(
        folder
            .bad(2, "reproduce panel --sets planted-unequal --seeds 1 -o out")
            .contains("choose another folder")
    );
}

#[test]
fn digit_is_part_of_the_panel_with_up_to_seventy_percent_missing() {
    let folder = Folder::new();
    folder.good("reproduce panel --sets digit --methods daimc-paper,concatenation --seeds 1 -o out");
    let found = rows(&folder, "out/results.tsv");
    let rates: HashSet<&str> = found.iter().map(|row| row[2].as_str()).collect();
    assert_eq!((found.len(), rates), (8, ["0", "0.3", "0.5", "0.7"].into()));
    // Without the default there is no regret.
    assert!(!folder.text("out/table.md").contains("Regret"));
}

/// A folder `data/omics/brca` of 24 patients in two groups, as barcodes with the same first 16 characters; the class of
/// two is unknown.
fn patients() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("data/omics/brca")).unwrap();
    let barcode = |i: usize, joint: &str, rest: &str| format!("TCGA{joint}A1{joint}A{i:03}{joint}01A{rest}");
    for (name, joint, rest) in
        [("expression", ".", ".11R.A084.07"), ("methylation", "-", ""), ("mirna", ".", ".11R")]
    {
        let mut text = String::from("id\ta\tb\tc\n");
        for i in 0..24 {
            let (group, wobble) = (i % 2, i as f64 / 100.0);
            let (low, high) = (wobble, 3.0 - wobble);
            let (a, b) = if group == 0 { (low, high) } else { (high, low) };
            writeln!(text, "{}\t{a}\t{b}\t{}", barcode(i, joint, rest), 1.0 + wobble * 2.0).unwrap();
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        folder.file(&format!("data/omics/brca/{name}.tsv.gz"), packed.finish().unwrap());
    }
    let mut truth = String::from("id\tcluster\n");
    for i in 0..24 {
        let class = if i < 2 { "NA".to_owned() } else { (1 + i % 2).to_string() };
        writeln!(truth, "{}\t{class}", barcode(i, ".", ".11R.A084.07")).unwrap();
    }
    folder.file("data/omics/brca/truth.tsv", truth);
    folder
}

#[test]
fn barcodes_are_joined_and_patients_without_a_class_are_not_scored() {
    let folder = patients();
    let command = "reproduce panel --data data --sets brca --methods daimc-paper,concatenation --seeds 1";
    folder.good(&format!("{command} -o out"));
    let found = rows(&folder, "out/results.tsv");
    assert_eq!(found.len(), 4);
    for row in found.iter().filter(|row| row[2] == "0") {
        assert_eq!((number(row, 6), number(row, 7)), (1.0, 1.0), "{row:?}");
    }
    assert!(folder.text("out/table.md").contains("| brca | 24 | 22 | 2 | 3, 3, 3 |"));
    // Missing files and classes of unknown instances are errors.
    folder.file("data/omics/brca/truth.tsv", "id\tcluster\nunknown\t1\n");
    let message = folder.bad(3, &format!("{command} -o other"));
    assert!(message.contains("there are 24 instances but 0 classes"), "{message}");
    std::fs::remove_file(folder.path("data/omics/brca/mirna.tsv.gz")).unwrap();
    let message = folder.bad(3, &format!("{command} -o other"));
    assert!(
        message.contains("mirna.tsv.gz is not there") && message.contains("omics/brca under --data"),
        "{message}"
    );
    assert!(folder.list("other").is_empty());
}

#[test]
fn missing_data_sets_are_skipped_with_a_message() {
    let folder = patients();
    let command = "reproduce panel --data data --methods concatenation --seeds 1 -o out";
    let output = folder.run(&format!("{command} --sets brca,reuters,nutrimouse,planted-few"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    for left_out in ["without reuters: ", "without nutrimouse-genotype: ", "without nutrimouse-diet: "] {
        assert_eq!(message.matches(left_out).count(), 1, "{message}");
    }
    let found = rows(&folder, "out/results.tsv");
    assert!(found.iter().all(|row| row[1] == "brca" || row[1] == "planted-few"), "{found:?}");
    let table = folder.text("out/table.md");
    for mean in ["| mean, real | of 2 |", "| mean, planted | of 2 |", "| mean | of 4 |"] {
        assert_eq!(table.matches(mean).count(), 3, "{mean}\n{table}");
    }
    let message = folder.bad(2, "reproduce panel --data data --sets reuters,acc -o other");
    assert!(message.contains("reuters, acc") && message.contains("--data DIR"), "{message}");
    let message = folder.bad(2, "reproduce panel --sets mnist -o other");
    assert!(message.contains("'mnist'") && message.contains("planted-junk"), "{message}");
    assert!(folder.list("other").is_empty());
}

#[test]
fn images_that_are_cut_off_or_of_another_kind_are_refused() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("data/fashion")).unwrap();
    let command = "reproduce panel --data data --sets fashion --methods concatenation --seeds 1 -o out";
    let message = folder.bad(3, command);
    assert!(message.contains("t10k-images-idx3-ubyte is not there"), "{message}");
    folder.file("data/fashion/t10k-images-idx3-ubyte", [0, 0, 8, 3, 0, 0]);
    assert!(folder.bad(3, command).contains("holds less than 5000 items"));
    folder.file("data/fashion/t10k-images-idx3-ubyte", vec![7; 16 + 5000 * 28 * 28]);
    assert!(folder.bad(3, command).contains("is no IDX file"));
    folder.file("data/fashion/t10k-images-idx3-ubyte.gz", "no archive");
    assert!(folder.bad(3, command).contains("t10k-images-idx3-ubyte.gz: "));
    assert!(folder.list("out").is_empty());
}

#[test]
fn small_sets_of_the_panel_are_read_if_available() {
    let Some(data) = shared().filter(|data| data.join("more/landuse").is_dir()) else { return };
    let folder = Folder::new();
    let sets = "wikipedia,nci60,nutrimouse,acc,newsgroups,landuse";
    let command = format!("reproduce panel --data {} --sets {sets} --seeds 1 -o out", data.display());
    folder.good(&format!("{command} --methods daimc-paper,concatenation"));
    let found = rows(&folder, "out/results.tsv");
    for set in
        ["wikipedia", "nci60", "nutrimouse-genotype", "nutrimouse-diet", "acc", "newsgroups", "landuse"]
    {
        let own: Vec<_> = found.iter().filter(|row| row[1] == set).collect();
        assert_eq!(own.len(), 4, "{set}");
        assert!(own.iter().all(|row| (0.0..=1.0).contains(&number(row, 7))), "{own:?}");
    }
    let table = folder.text("out/table.md");
    for size in [
        "| wikipedia | 693 | 693 | 10 | 128, 10 |",
        "| newsgroups | 500 | 500 | 5 | 2000, 2000, 2000 |",
        "| nci60 | 60 | 60 | 9 | 48, 1429 |",
        "| nutrimouse-diet | 40 | 40 | 5 | 120, 21 |",
        "| acc | 92 | 76 | 3 | 198, 198, 33, 97, 471 |",
        "| landuse | 2100 | 2100 | 21 | 20, 59, 40 |",
    ] {
        assert!(table.contains(size), "{size}\n{table}");
    }
}
