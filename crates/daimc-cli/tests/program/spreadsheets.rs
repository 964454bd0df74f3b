//! Tables exported from spreadsheets and other programs.

use std::fmt::Write as _;
use std::process::Command;

use crate::common::{Folder, python};

/// The standard error of a command that must succeed.
fn message(folder: &Folder, arguments: &str) -> String {
    let output = folder.run(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "daimc {arguments}\n{message}");
    message
}

/// Twelve instances in two groups, with a separator, a decimal sign, and a column of words.
fn exported(separator: char, decimal: char) -> String {
    let mut text = format!("id{separator}name{separator}x{separator}y\n");
    for i in 0..12 {
        let (x, y) = if i % 2 == 0 { (5, 1) } else { (1, 5) };
        writeln!(text, "s{i}{separator}n{i}{separator}{x}{decimal}{i}{separator}{y}{decimal}{i}").unwrap();
    }
    text
}

#[test]
fn errors_about_words_and_decimal_commas_name_the_option_that_reads_them() {
    let folder = Folder::new();
    folder.file("a.csv", exported(';', ','));
    let fit = "fit --view a=a.csv -k 2 -o out --no-assess";
    let words = folder.bad(3, fit);
    assert!(words.contains("--drop name"), "{words}");
    let commas = folder.bad(3, &format!("{fit} --drop name"));
    assert!(commas.contains("--decimal ,"), "{commas}");
    folder.good(&format!("{fit} --drop name --decimal ,"));
    assert_eq!(folder.json("out/summary.json")["inputs"][0]["shape"], serde_json::json!([12, 2]));
    // The dropped columns are recorded.
    folder.good("fit --config out/summary.json -o again");
    assert_eq!(folder.labels("out/labels.tsv"), folder.labels("again/labels.tsv"));
    let unknown = folder.bad(2, "fit --view a=a.csv -k 2 -o third --drop name,nme --decimal ,");
    assert!(unknown.starts_with("--drop names 'nme', but no view has"), "{unknown}");
}

#[test]
fn trailing_separators_and_repeated_titles_are_taken_as_they_are_meant() {
    let folder = Folder::new();
    let mut text = String::from("id;x;x;;\n");
    (0..12).for_each(|i| writeln!(text, "s{i};{};{};;", i % 2, (i + 1) % 2).unwrap());
    folder.file("a.csv", text + ";;;;\n;;;;\n");
    let warned = message(&folder, "fit --view a=a.csv -k 2 -o out --no-assess");
    assert!(warned.contains("warning: view a") && warned.contains("'x'"), "{warned}");
    assert!(folder.text("out/features.tsv").contains("a\tx.1\t"));
}

#[test]
fn counts_of_genes_are_read_with_their_genes_in_rows() {
    let folder = Folder::new();
    let samples: Vec<String> = (0..12).map(|i| format!("s{i}.bam")).collect();
    let mut text = format!(
        "# Program:featureCounts v2.0.3; Command:\"featureCounts\"\nGeneid\tChr\tStart\tEnd\tStrand\tLength\t{}\n",
        samples.join("\t")
    );
    for gene in 0..6 {
        let counts: Vec<String> =
            (0..12).map(|i| (if i % 2 == gene % 2 { 90 + i } else { 3 + gene }).to_string()).collect();
        writeln!(text, "g{gene}\tchr1\t1\t9\t+\t9\t{}", counts.join("\t")).unwrap();
    }
    folder.file("counts.txt", text);
    let warned = message(&folder, "fit --view counts.txt -k 2 -o out --no-assess");
    assert!(warned.contains("featureCounts"), "{warned}");
    assert_eq!(folder.json("out/summary.json")["inputs"][0]["shape"], serde_json::json!([12, 6]));
    assert!(folder.labels("out/labels.tsv").contains_key("s0.bam"));
}

#[test]
fn every_format_of_the_same_table_gives_the_same_clusters() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    folder.file("a.csv", exported(',', '.'));
    let script = "import pandas as pd\n\
                  t = pd.read_csv('a.csv', index_col='id').drop(columns='name')\n\
                  t.to_csv('plain.csv'); t.to_csv('plain.csv.bz2'); t.to_csv('plain.csv.xz'); t.to_csv('packed.zip')\n\
                  t.to_parquet('plain.parquet'); t.reset_index().to_feather('plain.feather')\n\
                  t.to_excel('plain.xlsx', sheet_name='rna'); t.to_excel('plain.ods', sheet_name='rna')\n\
                  with pd.ExcelWriter('two.xlsx') as out:\n    t.to_excel(out, sheet_name='rna'); t.to_excel(out, sheet_name='b')\n";
    let output = Command::new(python).current_dir(folder.path("")).args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let labels = |file: &str| {
        folder.good(&format!("fit --view a={file} -k 2 -o out --no-assess --force"));
        folder.text("out/labels.tsv")
    };
    let expected = labels("plain.csv");
    let files =
        ["plain.csv.bz2", "plain.csv.xz", "packed.zip", "plain.parquet", "plain.feather", "plain.xlsx"];
    for file in files.into_iter().chain(["plain.ods", "plain.xlsx::rna", "two.xlsx::b"]) {
        assert_eq!(labels(file), expected, "{file}");
    }
    let several = folder.bad(3, "fit --view a=two.xlsx -k 2 -o out --force");
    assert!(several.contains("rna") && several.contains("::"), "{several}");
    folder.good("fit --view a=plain.csv -k 2 -o out --no-assess --force --truth a.csv::name");
}
