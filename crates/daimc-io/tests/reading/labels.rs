//! Labels are read from all kinds of tables.

use crate::common::{Folder, Formats, bare, names};
use daimc_io::{Labels, Matching, read_labels};

fn read(text: &str) -> Labels {
    read_labels(&Folder::new().file("l.tsv", text), None, &Matching::default()).unwrap()
}

fn column(text: &str, column: &str) -> Labels {
    read_labels(&Folder::new().file("l.tsv", text), Some(column), &Matching::default()).unwrap()
}

fn refused(text: &str, column: Option<&str>) -> String {
    let folder = Folder::new();
    let path = folder.file("l.tsv", text);
    bare(read_labels(&path, column, &Matching::default()).unwrap_err(), &path)
}

fn known(labels: &Labels) -> Vec<&str> {
    labels.labels.iter().map(|label| label.as_deref().unwrap_or("?")).collect()
}

#[test]
fn labels_of_a_fit_are_its_clusters() {
    let labels = read("id\tcluster\tconfidence\nx\t0\t0.9\ny\t1\t0.8\n");
    assert_eq!(Some(labels.ids.clone()), names(&["x", "y"]));
    assert_eq!(known(&labels), ["0", "1"]);
    assert_eq!((labels.get("y"), labels.get("z"), labels.position("y")), (Some("1"), None, Some(1)));
}

#[test]
fn of_several_columns_one_is_named() {
    let text = "sample,age,Class,age 2\nx,3,cat,4\ny,4,dog,NA\n";
    assert_eq!(known(&column(text, "Class")), ["cat", "dog"]);
    assert_eq!(known(&column(text, "class")), ["cat", "dog"]);
    assert_eq!(known(&column(text, "age")), ["3", "4"]);
    assert_eq!(known(&column(text, "age 2")), ["4", "?"]);
    // R writes no title above row names.
    let of_r = "\"age\",\"class\"\n\"x\",3,\"cat\"\n\"y\",4,\"dog\"\n";
    assert_eq!(known(&column(of_r, "class")), ["cat", "dog"]);
    assert_eq!(known(&column("who,what\nx,cat\ny,dog\n", "what")), ["cat", "dog"]);
    assert_eq!(known(&column("what\ncat\ndog\n", "what")), ["cat", "dog"]);
    assert_eq!(known(&column("id\tcluster\tconfidence\nx\t0\t0.9\n", "confidence")), ["0.9"]);
}

#[test]
fn of_several_columns_none_is_guessed() {
    let several = "l.tsv: has 2 columns in addition to the IDs: 'age', 'Class'; pick the one of the labels with ::COLUMN after the \
                   path";
    assert_eq!(refused("sample,age,Class\nx,3,cat\ny,4,dog\n", None), several);
    assert_eq!(refused("age,Class\nx,3,cat\ny,4,dog\n", None), several);
    assert_eq!(
        refused("sample,age,Class\nx,3,cat\n", Some("stage")),
        "l.tsv: has no column 'stage'; it has 'age', 'Class'"
    );
    assert!(refused("sample,age\nx,3\n", Some("sample")).contains("put the IDs there"));
    let wide = (0..500).map(|i| format!(",f{i}")).collect::<Vec<_>>().concat();
    let error = refused(&format!("id{wide}\nx{wide}\n"), None);
    assert!(error.contains("'f9', and 490 more"), "{error}");
    // A file with more columns is not labels.tsv of a fit.
    assert!(refused("id\tcluster\tconfidence\tage\nx\t0\t0.9\t3\n", None).contains("'cluster'"));
}

#[test]
fn the_second_of_two_columns_holds_the_labels() {
    assert_eq!(known(&read("x cat\ny dog\n")), ["cat", "dog"]);
    assert_eq!(known(&read("who\twhat\nx\t1\ny\t2\n")), ["1", "2"]);
    assert_eq!(known(&read("\"truth\"\n\"x\",1\n\"y\",2\n")), ["1", "2"]);
}

#[test]
fn one_column_has_row_numbers_for_ids() {
    let labels = read("cat\ndog\ncat\n");
    assert_eq!(Some(labels.ids.clone()), names(&["0", "1", "2"]));
    assert_eq!(known(&labels), ["cat", "dog", "cat"]);
    assert_eq!(known(&read("label\n1\n2\n")), ["1", "2"]);
    assert_eq!(known(&read("3\n1\n")), ["3", "1"]);
}

#[test]
fn labels_are_columns_of_data_frames() {
    let Some(formats) = Formats::make() else { return };
    for file in ["labels.feather", "labels.parquet"] {
        let path = formats.path(&file.into());
        let labels = read_labels(&path, Some("kind"), &Matching::default()).unwrap();
        assert_eq!(Some(labels.ids.clone()), names(&["x", "y", "z"]));
        assert_eq!(known(&labels), ["p", "?", "q"], "{file}");
        assert_eq!(
            known(&read_labels(&path, Some("age"), &Matching::default()).unwrap()),
            ["1.5", "?", "3"],
            "{file}"
        );
        assert!(
            read_labels(&path, None, &Matching::default()).unwrap_err().to_string().contains("'age', 'kind'"),
            "{file}"
        );
    }
}

#[test]
fn labels_are_columns_of_sheets() {
    let Some(formats) = Formats::make() else { return };
    for file in ["labels.xlsx", "labels.ods"] {
        let labels = read_labels(&formats.path(&file.into()), None, &Matching::default()).unwrap();
        assert_eq!(known(&labels), ["p", "?", "q"], "{file}");
    }
}

#[test]
fn labels_can_be_unknown() {
    let labels = read("id,label\nx,\ny,NA\nz,none\n");
    assert_eq!(labels.labels, [None, None, Some("none".into())]);
    assert_eq!((labels.get("x"), labels.position("x")), (None, Some(0)));
}

#[test]
fn errors_in_labels_are_reported() {
    assert_eq!(
        refused("id,label\nx,1\ny,2\nx,1\n", None),
        "l.tsv, line 4, column 1: the ID 'x' occurs a second time: an instance has one label, delete the other"
    );
    assert_eq!(
        refused("id,label\nx,1\ny\nz,1\n", None),
        "l.tsv, line 3: 1 fields where 2 are expected: an ID and a label in each row"
    );
    assert_eq!(
        refused("id,label\nx,1\n,2\n", None),
        "l.tsv, line 3, column 1: the ID is empty: give the row an ID or delete it"
    );
    assert_eq!(refused("id,label\n", None), "l.tsv: there is a header but no label below it");
    assert!(refused("", None).contains("the file is empty"));
    assert!(
        refused("label,id\n1,x\n2,y\n", None)
            .contains("the labels are in the first column: put the IDs there")
    );
}

#[test]
fn blanks_within_labels_and_titles_do_not_separate() {
    let folder = Folder::new();
    let forms = [
        ("a.tsv", "id\tkind\nS0\tLuminal A\nS1\tLuminal B\n"),
        ("b.csv", "Sample ID,Sub type\nS0,Luminal A\nS1,Luminal B\n"),
        ("c.csv", "id;class\nS0;Luminal A\nS1;Luminal B\n"),
    ];
    for (name, text) in forms {
        let labels = read_labels(&folder.file(name, text), None, &Matching::default()).unwrap();
        assert_eq!((labels.get("S0"), labels.get("S1")), (Some("Luminal A"), Some("Luminal B")), "{name}");
    }
    // Without another separator, blanks do.
    let labels =
        read_labels(&folder.file("d.txt", "id class\nS0 x\nS1 y\n"), None, &Matching::default()).unwrap();
    assert_eq!(labels.get("S1"), Some("y"));
}
