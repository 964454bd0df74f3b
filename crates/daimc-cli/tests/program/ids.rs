//! IDs of sequencing platforms: the error names the option that joins them.

use std::fmt::Write as _;

use crate::common::{Folder, skip};

/// Two views of twelve patients with the IDs of samples, and their classes by patient.
fn samples() -> Folder {
    let folder = Folder::new();
    let (mut a, mut b, mut truth) =
        (String::from("id\tx\ty\n"), String::from("id,p,q\n"), String::from("id,class\n"));
    for i in 0..12 {
        let (x, y) = if i % 2 == 0 { (5, 1) } else { (1, 5) };
        writeln!(a, "TCGA-OR-A{i:03}-01A-11R\t{x}\t{y}.{i}").unwrap();
        writeln!(b, "TCGA-OR-A{i:03}-01A-21D,{x}.{i},{y}").unwrap();
        writeln!(truth, "TCGA-OR-A{i:03},{}", i % 2).unwrap();
    }
    folder.file("a.tsv", a);
    folder.file("b.csv", b);
    folder.file("truth.csv", truth);
    folder
}

#[test]
fn barcodes_are_joined_by_the_option_that_the_error_names() {
    let folder = samples();
    let fit = "fit --view a=a.tsv --view b=b.csv -k 2 -o out";
    let message = folder.bad(3, fit);
    let option = message.split("add ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert_eq!(option, "--id-prefix 12");
    folder.good(&format!("{fit} {option} --truth truth.csv"));
    assert_eq!(folder.labels("out/labels.tsv").keys().next().unwrap(), "TCGA-OR-A000");
    assert_eq!(folder.json("out/summary.json")["options"]["id-prefix"], 12);
    assert_eq!(folder.json("out/summary.json")["metrics"]["ac"], 1.0);
    // The option is recorded.
    folder.good("fit --config out/summary.json -o again");
    assert_eq!(folder.labels("out/labels.tsv"), folder.labels("again/labels.tsv"));
    folder.good("report again");
    let placed = folder.good("predict out/model.safetensors --view a=a.tsv --id-prefix 12");
    assert!(placed.lines().nth(1).unwrap().starts_with("TCGA-OR-A000\t"), "{placed}");
}

#[test]
fn classes_of_samples_and_of_patients_are_joined_alike() {
    let folder = samples();
    folder.good("fit --view a=a.tsv -k 2 -o out");
    let message = folder.bad(3, "evaluate out/labels.tsv --truth truth.csv");
    assert!(message.ends_with("; --id-prefix 12 would match about 12 IDs"), "{message}");
    let message = folder.good("evaluate out/labels.tsv --truth truth.csv --id-prefix 12 --json");
    assert!(message.contains("\"instances\": 12"), "{message}");
    let message = folder.bad(3, "fit --view a=a.tsv -k 2 -o again --truth truth.csv");
    assert!(message.ends_with("; with --id-prefix 12, 12 are"), "{message}");
}

#[test]
fn options_that_make_no_sense_are_refused_before_anything_is_read() {
    let folder = samples();
    let fit = "fit --view a=a.tsv --view b=b.csv -k 2 -o out";
    assert_eq!(folder.bad(2, &format!("{fit} --id-prefix 0")), "--id-prefix must be at least 1");
    let message = folder.bad(2, &format!("{fit} --id-regex (a"));
    assert!(message.starts_with("--id-regex is not a regular expression: "), "{message}");
    let message = folder.bad(3, &format!("{fit} --ids none.tsv"));
    assert!(message.starts_with("none.tsv"), "{message}");
}

/// The original TCGA tables, if available.
#[test]
fn tables_of_tcga_are_clustered_by_the_command_that_the_first_error_suggests() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/omics");
    if !data.exists() {
        skip(&format!("no {}", data.display()));
        return;
    }
    let folder = Folder::new();
    let sets = [
        ("acc", ["RNASeq2GeneNorm", "gistict", "RPPAArray", "Mutations", "miRNASeqGene"].as_slice(), 92),
        ("brca", &["expression", "methylation", "mirna"], 348),
    ];
    for (set, names, instances) in sets {
        let view =
            |name: &&str| format!("--view {}", data.join(set).join(format!("{name}.tsv.gz")).display());
        let views = names.iter().map(view).collect::<Vec<_>>().join(" ");
        let fit = format!("fit {views} -k 3 -o {set} --no-assess");
        let message = folder.bad(3, &fit);
        let option = message.split("; add ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        folder.good(&format!("{fit} {option}"));
        assert_eq!(folder.labels(&format!("{set}/labels.tsv")).len(), instances);
    }
}
