//! Labels are found in whatever table they are.

mod common;

use common::{Folder, bare, names};
use daimc_io::{Labels, read_labels};

fn read(text: &str) -> Labels {
    read_labels(&Folder::new().file("l.tsv", text)).unwrap()
}

fn refused(text: &str) -> String {
    let folder = Folder::new();
    let path = folder.file("l.tsv", text);
    bare(read_labels(&path).unwrap_err(), &path)
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
fn a_title_tells_the_column_else_it_is_the_second() {
    assert_eq!(known(&read("sample,age,Class\nx,3,cat\ny,4,dog\n")), ["cat", "dog"]);
    assert_eq!(known(&read("x,cat,3\ny,dog,4\n")), ["cat", "dog"]);
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
fn labels_can_be_unknown() {
    let labels = read("id,label\nx,\ny,NA\nz,none\n");
    assert_eq!(labels.labels, [None, None, Some("none".into())]);
    assert_eq!((labels.get("x"), labels.position("x")), (None, Some(0)));
}

#[test]
fn what_is_wrong_with_labels_is_said() {
    assert_eq!(
        refused("id,label\nx,1\ny,2\nx,1\n"),
        "l.tsv, line 4, column 1: the ID 'x' occurs a second time: an instance has one label, delete the other"
    );
    assert_eq!(
        refused("id,label\nx,1\ny\nz,1\n"),
        "l.tsv, line 3: 1 fields where 2 are expected: an ID and a label in each row"
    );
    assert_eq!(
        refused("id,label\nx,1\n,2\n"),
        "l.tsv, line 3, column 1: the ID is empty: give the row an ID or delete it"
    );
    assert_eq!(refused("id,label\n"), "l.tsv: there is a header but no label below it");
    assert!(refused("").contains("the file is empty"));
    assert!(
        refused("label,id\n1,x\n2,y\n").contains("the labels are in the first column: put the IDs there")
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
        let labels = read_labels(&folder.file(name, text)).unwrap();
        assert_eq!((labels.get("S0"), labels.get("S1")), (Some("Luminal A"), Some("Luminal B")), "{name}");
    }
    // Where there is nothing else, blanks do.
    let labels = read_labels(&folder.file("d.txt", "id class\nS0 x\nS1 y\n")).unwrap();
    assert_eq!(labels.get("S1"), Some("y"));
}
