//! Different IDs are matched to the same instance by the options.

use std::path::PathBuf;

use crate::assemble::row;
use crate::common::{Folder, bare};
use daimc::Views;
use daimc_io::{
    Account, Assembly, Duplicates, IdMap, Matching, Reading, assemble, read, read_labels, read_stored,
};

fn joined(files: &[(&str, PathBuf)], matching: Matching) -> daimc_io::Result<(Views<'static>, Account)> {
    let table =
        |(name, path): &(&str, PathBuf)| ((*name).to_owned(), read(path, None, Reading::default()).unwrap());
    assemble(files.iter().map(table).collect(), &Assembly { matching, ..Assembly::default() })
}

fn refused(files: &[(&str, PathBuf)], matching: Matching) -> String {
    bare(joined(files, matching).unwrap_err(), &files[0].1)
}

fn ids(views: &Views<'_>) -> Vec<String> {
    (0..views.instances()).map(|i| views.ids().get(i)).collect()
}

fn prefix(count: usize) -> Matching {
    Matching { prefix: Some(count), ..Matching::default() }
}

/// Samples of three patients; one has two in the first view.
fn samples(folder: &Folder) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("rna", folder.file("rna.csv", "id,p,q\nP1-a1,1,2\nP2-a1,3,\nP2-a2,5,6\n")),
        ("dna", folder.file("dna.csv", "id,r\nP2-b,7\nP3-b,8\nP1-b,9\n")),
    ]
}

#[test]
fn the_error_names_the_option_that_joins() {
    let error = refused(&samples(&Folder::new()), Matching::default());
    assert!(
        error.ends_with("; add --id-prefix 2, with which 2 of its 3 instances are in others too"),
        "{error}"
    );
}

#[test]
fn two_rows_of_an_instance_are_an_error_or_one_row() {
    let folder = Folder::new();
    let files = samples(&folder);
    assert_eq!(
        refused(&files, prefix(2)),
        "rna.csv, line 4: the IDs 'P2-a1' and 'P2-a2' are both of the instance 'P2': keep more of the IDs, or choose one row \
         with --duplicates first, or their mean with --duplicates mean"
    );
    for (duplicates, expected) in [(Duplicates::First, [3.0, f64::NAN]), (Duplicates::Mean, [4.0, 6.0])] {
        let (views, account) = joined(&files, Matching { duplicates, ..prefix(2) }).unwrap();
        assert_eq!(ids(&views), ["P1", "P2", "P3"]);
        assert_eq!((account.in_every_view, account.views[0].present), (2, 2));
        let row = row(&views, 0, 1);
        assert!(row.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{row:?}");
    }
}

#[test]
fn rows_of_an_instance_are_merged_in_sparse_tables_too() {
    let folder = Folder::new();
    let a =
        folder.file("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 2\n2 2 3\n3 1 5\n");
    let merge = |duplicates| {
        let mut table = read(&a, None, Reading::default()).unwrap();
        table.ids = Some(["P1-a", "P1-b", "P2-a"].map(String::from).to_vec());
        let how = Assembly { matching: Matching { duplicates, ..prefix(2) }, ..Assembly::default() };
        assemble(vec![("a".into(), table)], &how).unwrap().0
    };
    let entries = |views: &Views<'_>| {
        use daimc::source::{Buffer, Rows};
        let mut buffer = Buffer::default();
        let block = views.block(0, 0..2, &mut buffer).unwrap();
        let Rows::SparseF64(csr) = block.rows else { panic!("not sparse f64") };
        (csr.offsets.to_vec(), csr.columns.to_vec(), csr.values.to_vec())
    };
    assert_eq!(entries(&merge(Duplicates::Mean)), (vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 1.5, 5.0]));
    assert_eq!(entries(&merge(Duplicates::First)), (vec![0, 1, 2], vec![0, 0], vec![2.0, 5.0]));
}

#[test]
fn rows_on_disk_are_not_merged_and_that_is_said() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id,p\nP1-a,1\nP1-b,2\n");
    let disk = daimc_io::Disk::new(folder.path());
    let (table, _) = read_stored(&path, None, Reading::default(), &disk).unwrap();
    let how =
        Assembly { matching: Matching { duplicates: Duplicates::First, ..prefix(2) }, ..Assembly::default() };
    let error = bare(assemble(vec![("a".into(), table)], &how).unwrap_err(), &path);
    assert!(
        error.starts_with("a.csv: several rows are of the same instance, and the values do not fit"),
        "{error}"
    );
}

#[test]
fn ids_that_differ_in_what_is_ignored_are_written_as_in_the_first_view() {
    let folder = Folder::new();
    let files = [
        ("a", folder.file("a.csv", "id,p\nTcga.1,1\nTcga.2,2\n")),
        ("b", folder.file("b.csv", "id,r\nTCGA-2,3\ntcga-3,4\n")),
    ];
    let matching = Matching { ignore_case: true, ignore_separators: true, ..Matching::default() };
    let (views, _) = joined(&files, matching.clone()).unwrap();
    assert_eq!(ids(&views), ["Tcga.1", "Tcga.2", "tcga-3"]);
    let labels = read_labels(&folder.file("t.csv", "id,class\ntcga_2,x\n"), None, &matching).unwrap();
    assert_eq!((labels.get("Tcga.2"), labels.get("Tcga.1")), (Some("x"), None));
}

#[test]
fn a_map_names_the_instance_of_each_id() {
    let folder = Folder::new();
    let files = samples(&folder);
    let map = |text: &str| IdMap::read(&folder.file("map.csv", text));
    let used = |text: &str| Matching { map: Some(map(text).unwrap()), ..Matching::default() };
    let rna = "view,id,instance\nrna,P1-a1,Ann\nrna,P2-a1,Bob\nrna,P2-a2,Cid\n";
    let (views, _) =
        joined(&files, used(&format!("{rna}dna,P2-b,Bob\ndna,P3-b,Dee\ndna,P1-b,Ann\n"))).unwrap();
    assert_eq!(ids(&views), ["Ann", "Bob", "Cid", "Dee"]);
    let error = |matching| refused(&files, matching);
    assert_eq!(
        error(used(&rna.replace("rna,P2-a2,Cid\n", ""))),
        "map.csv: has no line for the ID 'P2-a2' of view 'rna', of which it lists others: add one"
    );
    assert_eq!(
        error(used(&rna.replace("rna,", "x,"))),
        "map.csv: names the view 'x', but the views are 'dna', 'rna'"
    );
    let wrong = |text: &str| bare(map(text).unwrap_err(), &files[0].1);
    assert_eq!(wrong("view,id,instance\na,b\n"), "map.csv, line 2: 2 fields where 3 are expected");
    assert!(
        wrong("a,b,c\n1,2,3\n")
            .starts_with("map.csv: a map of IDs has the columns view, id, instance, but here are 'a'")
    );
    assert!(
        wrong("view,id,instance\na,b,c\na,b,d\n")
            .contains("line 3: the ID 'b' of view 'a' occurs a second time")
    );
}

#[test]
fn a_pattern_must_match_the_ids_of_views() {
    let folder = Folder::new();
    let pattern = |text: &str| Matching { pattern: Some(text.parse().unwrap()), ..Matching::default() };
    let error = refused(&samples(&folder), pattern("P.-a."));
    assert!(error.starts_with("dna.csv, line 2: --id-regex matches nothing in the ID 'P2-b'"), "{error}");
    let both = Matching { duplicates: Duplicates::First, ..pattern("^(P[0-9]+)-") };
    assert_eq!(ids(&joined(&samples(&folder), both).unwrap().0), ["P1", "P2", "P3"]);
}

#[test]
fn a_view_that_shares_few_instances_is_a_remark_with_examples_of_both_sides() {
    let folder = Folder::new();
    let rows = |end: &str| (0..20).map(|i| format!("s{i:02}{end},{i}\n")).collect::<Vec<_>>().concat();
    let files = [
        ("a", folder.file("a.csv", format!("id,p\n{}", rows("")))),
        ("b", folder.file("b.csv", format!("id,q\ns00,1\n{}", rows("-x")))),
    ];
    let (_, account) = joined(&files, Matching::default()).unwrap();
    assert_eq!(
        account.remarks,
        [
            "view 'a' has only 1 of its 20 instances in common with others: it alone has 's01', 's02', others have 's00-x', \
             's01-x'; with --id-prefix 3 there are 20"
        ]
    );
    assert!(account.to_string().contains("\nwarning: view 'a' has only 1"));
    let (_, account) = joined(&files, Matching { duplicates: Duplicates::First, ..prefix(3) }).unwrap();
    assert!(account.remarks.is_empty());
}

#[test]
fn a_mask_and_labels_are_matched_alike() {
    let folder = Folder::new();
    let mask = folder.file("m.csv", "id,rna,dna\nP1-x,1,1\nP2-x,1,0\nP3-x,0,1\n");
    let matching = Matching { duplicates: Duplicates::First, ..prefix(2) };
    let table =
        |(name, path): &(&str, PathBuf)| ((*name).to_owned(), read(path, None, Reading::default()).unwrap());
    let tables = samples(&folder).iter().map(table).collect();
    let (views, _) =
        assemble(tables, &Assembly { matching: matching.clone(), mask: Some(mask), ..Assembly::default() })
            .unwrap();
    assert_eq!((views.present(0), views.present(1)), (2, 2));
    let truth = folder.file("t.csv", "id,class\nP1-k,x\nP1-l,x\nP2-k,y\n");
    let labels = read_labels(&truth, None, &prefix(2)).unwrap();
    assert_eq!((labels.get("P1"), labels.get("P2"), labels.get("P3")), (Some("x"), Some("y"), None));
    let truth = folder.file("t.csv", "id,class\nP1-k,x\nP1-l,y\n");
    let error = bare(read_labels(&truth, None, &prefix(2)).unwrap_err(), &truth);
    assert!(
        error.starts_with("t.csv, line 3, column 1: the IDs 'P1-k' and 'P1-l' are of the same instance and"),
        "{error}"
    );
    assert_eq!(read_labels(&truth, None, &matching).unwrap().get("P1"), Some("x"));
}
