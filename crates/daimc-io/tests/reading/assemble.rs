//! Tables become views: joined by ID or by row, masked, imputed, and accounted for.

use std::path::{Path, PathBuf};

use crate::common::{Folder, bare, shared};
use daimc::Views;
use daimc_io::{Account, Assembly, Cells, Csr, Nan, Reading, Result, Table, assemble, read};

const TRANSPOSE: Reading =
    Reading { transpose: true, no_ids: false, precision: None, decimal_comma: false, drop: &[] };
const NO_IDS: Reading =
    Reading { transpose: false, no_ids: true, precision: None, decimal_comma: false, drop: &[] };

/// Two views with two instances in common.
fn pair(folder: &Folder) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("a", folder.file("a.csv", "id,p,q\nx,1,2\ny,3,4\nz,5,6\n")),
        ("b", folder.file("b.csv", "id,r\nz,7\nw,8\ny,9\n")),
    ]
}

fn joined_as(
    files: &[(&str, PathBuf)],
    reading: Reading,
    how: &Assembly,
) -> Result<(Views<'static>, Account)> {
    let tables = files.iter().map(|(name, path)| ((*name).to_string(), read(path, None, reading).unwrap()));
    assemble(tables.collect(), how)
}

fn joined(files: &[(&str, PathBuf)]) -> (Views<'static>, Account) {
    joined_as(files, Reading::default(), &Assembly::default()).unwrap()
}

fn refused_as(files: &[(&str, PathBuf)], reading: Reading, how: &Assembly) -> String {
    bare(joined_as(files, reading, how).unwrap_err(), &files[0].1)
}

fn refused(files: &[(&str, PathBuf)]) -> String {
    refused_as(files, Reading::default(), &Assembly::default())
}

fn masked(mask: &Path) -> Assembly {
    Assembly { mask: Some(mask.into()), ..Assembly::default() }
}

fn mean() -> Assembly {
    Assembly { nan: Nan::Mean, ..Assembly::default() }
}

fn error() -> Assembly {
    Assembly { nan: Nan::Error, ..Assembly::default() }
}

fn ids(views: &Views) -> Vec<String> {
    (0..views.instances()).map(|i| views.ids().get(i)).collect()
}

fn presence(views: &Views, view: usize) -> Vec<bool> {
    (0..views.instances()).map(|i| views.is_present(view, i)).collect()
}

/// A row of a view, which must be dense and `f64`.
pub fn row(views: &Views, view: usize, instance: usize) -> Vec<f64> {
    use daimc::Source;
    use daimc::source::{Buffer, Index, Rows};
    let mut buffer = Buffer::default();
    let block = views.block(view, instance..instance + 1, &mut buffer).unwrap();
    let at = match block.index {
        Index::From(start) => start,
        Index::Rows(rows) => rows[0] as usize,
    };
    let width = Source::features(views, view);
    let Rows::DenseF64(values) = block.rows else { panic!("not dense f64") };
    values[at * width..(at + 1) * width].to_vec()
}

#[test]
fn tables_are_joined_by_id() {
    let (views, account) = joined(&pair(&Folder::new()));
    assert_eq!(ids(&views), ["x", "y", "z", "w"]);
    assert_eq!(presence(&views, 1), [false, true, true, true]);
    assert_eq!((row(&views, 0, 1), row(&views, 1, 1)), (vec![3.0, 4.0], vec![9.0]));
    assert_eq!((account.instances, account.in_every_view), (4, 2));
    assert_eq!(
        account.to_string(),
        "4 instances in 2 views, 2 in every view\n  a: 3 instances, 1 in no other view\n  b: 3 instances, 1 in no other \
         view"
    );
}

#[test]
fn tables_without_ids_are_joined_by_row() {
    let folder = Folder::new();
    let a = folder.file("a.csv", "1,2\n3,4\nNA,NA\n");
    let b = folder.file("b.csv", "7\n8\n9\n");
    let (views, account) = joined_as(&[("a", a), ("b", b)], NO_IDS, &Assembly::default()).unwrap();
    assert_eq!(ids(&views), ["0", "1", "2"]);
    assert_eq!(presence(&views, 0), [true, true, false]);
    assert_eq!((account.in_every_view, account.views[0].empty), (2, 1));
}

#[test]
fn row_numbers_are_ids_where_only_some_tables_have_ids() {
    let folder = Folder::new();
    let table =
        |name, text, how| (String::from("v") + name, read(&folder.file(name, text), None, how).unwrap());
    let a = table("a.csv", "id,p\n2,5\n0,6\n", Reading::default());
    let b = table("b.csv", "7\n8\n9\n", NO_IDS);
    let (views, _) = assemble(vec![a, b], &Assembly::default()).unwrap();
    assert_eq!(ids(&views), ["2", "0", "1"]);
    assert_eq!(row(&views, 1, 0), [9.0]);
}

#[test]
fn tables_without_ids_must_have_the_same_rows() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "1,2\n3,4\n")), ("b", folder.file("b.csv", "7\n8\n9\n"))];
    assert_eq!(
        refused_as(&files, NO_IDS, &Assembly::default()),
        "b.csv: 3 rows, but a.csv has 2: without IDs, views must have the same rows; check --transpose, or use files that \
         have IDs"
    );
}

#[test]
fn views_without_a_common_id_are_refused_with_examples() {
    let folder = Folder::new();
    let a = folder.file("a.csv", "id,p\nx,1\ny,3\nz,5\nw,6\n");
    let b = folder.file("b.csv", "gene,x,y\ng1,7,8\n");
    assert_eq!(
        refused(&[("a", a), ("b", b)]),
        "a.csv: no common IDs: the view 'a' has no instance in common with another; here IDs are like 'x', 'y', 'z', in \
         b.csv like 'g1'; 2 columns of b.csv have the IDs of instances for titles: add --transpose=b"
    );
    let (a, d) = (folder.file("a.csv", "id,p\nx,1\ny,3\n"), folder.file("d.csv", "gene,x,y\np,7,8\n"));
    assert!(
        refused(&[("a", a), ("d", d)])
            .ends_with("2 columns of d.csv have the IDs of instances for titles: add --transpose=d")
    );
    let (a, c) = (folder.file("a.csv", "id,p\nx,1\n"), folder.file("c.csv", "id,r\nu,7\n"));
    assert_eq!(
        refused(&[("a", a), ("c", c)]),
        "a.csv: no common IDs: the view 'a' has no instance in common with another; here IDs are like 'x', in c.csv like \
         'u'; if instances are in columns, use --transpose, if there are no IDs, --no-ids, and if they are meant to be other \
         instances, --allow-disjoint"
    );
}

#[test]
fn a_view_that_shares_nothing_is_refused_unless_it_may_stand_apart() {
    let folder = Folder::new();
    let mut files = pair(&folder);
    files.push(("c", folder.file("c.csv", "id,s\nu,1\nv,2\n")));
    let error = refused(&files);
    assert!(
        error.starts_with("c.csv: no common IDs: the view 'c'") && error.contains("'u', 'v', in a.csv like"),
        "{error}"
    );
    let apart = Assembly { apart: true, ..Assembly::default() };
    let (_, account) = joined_as(&files, Reading::default(), &apart).unwrap();
    assert!(
        account.to_string().contains("c: 2 instances, 2 in no other view (shares no instance"),
        "{account}"
    );
}

#[test]
fn an_id_that_occurs_twice_is_refused_with_both_lines() {
    let folder = Folder::new();
    let mut files = pair(&folder);
    files[1].1 = folder.file("b.csv", "id,r\n\"z\",7\nw,8\nz,9\n");
    assert_eq!(
        refused(&files),
        "b.csv, line 4: the ID 'z' is also that of line 2: an instance has one row in a view, so rename or delete one of \
         the two"
    );
    let files = [("b", folder.file("b.csv", "gene,x,y,x\ng,1,2,3\n"))];
    assert_eq!(
        refused_as(&files, TRANSPOSE, &Assembly::default()),
        "b.csv, column 4: the ID 'x' is also that of column 2: an instance has one row in a view, so rename or delete one \
         of the two"
    );
}

#[test]
fn a_row_without_values_is_a_missing_instance() {
    let folder = Folder::new();
    let mut files = pair(&folder);
    files[0].1 = folder.file("a.csv", "id,p,q\nx,NA,NA\ny,3,4\nz,,\n");
    let (views, account) = joined(&files);
    assert_eq!(ids(&views), ["y", "z", "w"]);
    assert_eq!(presence(&views, 0), [true, false, false]);
    assert_eq!((account.views[0].empty, account.dropped.clone()), (2, vec!["x".to_string()]));
    assert!(account.to_string().ends_with("dropped 1 instance that no view shows: x"), "{account}");
}

#[test]
fn rows_that_no_view_shows_are_dropped_also_without_ids() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "1,2\nNA,NA\n5,6\n")), ("b", folder.file("b.csv", "7\nNA\n9\n"))];
    let (views, account) = joined_as(&files, NO_IDS, &Assembly::default()).unwrap();
    assert_eq!((ids(&views), account.dropped), (vec!["0".to_string(), "2".into()], vec!["1".to_string()]));
}

#[test]
fn a_partly_missing_row_is_refused_with_its_place() {
    let folder = Folder::new();
    let advice = "is missing, but others of that row are not: fill it in, make the whole row NA, or leave it missing (--nan model)";
    let files = [("a", folder.file("a.csv", "id,p,q\nx,1,2\n\"y\n1\",3,4\nz,5,NA\n"))];
    assert_eq!(
        refused_as(&files, Reading::default(), &error()),
        format!("a.csv, line 5, column 3: feature 'q' of instance 'z' {advice}")
    );
    let files = [("a", folder.file("a.csv", "gene,x,y\ng1,1,2\ng2,3,\n"))];
    assert_eq!(
        refused_as(&files, TRANSPOSE, &error()),
        format!("a.csv, line 3, column 3: feature 'g2' of instance 'y' {advice}")
    );
}

#[test]
fn missing_values_stay_missing_and_are_counted() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "id,p,q\nx,1,2\ny,NA,5\nz,4,NA\nw,NA,NA\n"))];
    let (views, account) = joined_as(&files, Reading::default(), &Assembly::default()).unwrap();
    assert_eq!((views.instances(), views.missing_cells(0)), (3, Some(2)));
    let found = &account.views[0];
    assert_eq!((found.missing, found.partial, found.empty, found.imputed), (2, 2, 1, 0));
    assert!(account.to_string().contains("2 values missing inside 2 instances"), "{account}");
    let stored = row(&views, 0, 1);
    assert!(stored[0].is_nan() && stored[1] == 5.0);
}

#[test]
fn missing_values_are_imputed_by_the_mean_of_present_rows() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "id,p,q\nx,1,2\ny,NA,5\nz,4,NA\nw,NA,NA\n"))];
    let (views, account) = joined_as(&files, Reading::default(), &mean()).unwrap();
    assert_eq!((row(&views, 0, 1), row(&views, 0, 2)), (vec![2.5, 5.0], vec![4.0, 3.5]));
    assert_eq!((account.views[0].imputed, account.views[0].empty), (2, 1));
    assert!(account.to_string().contains("2 values imputed by the mean"), "{account}");
    let files = [("a", folder.file("a.csv", "id,p,q\nx,1,NA\ny,2,NA\n"))];
    assert_eq!(
        refused_as(&files, Reading::default(), &mean()),
        "a.csv: feature 'q' has no value in any instance that the view shows, so it has no mean: leave it out"
    );
}

fn sparse(values: Vec<f64>) -> (String, Table) {
    let csr = Csr { offsets: vec![0, 2, 3, 3], columns: vec![0, 1, 0], values };
    let table = Table {
        path: "s.mtx".into(),
        variable: None,
        ids: None,
        features: None,
        rows: 3,
        columns: 2,
        cells: Cells::SparseF64(csr),
        lines: None,
        transposed: false,
        dropped: Vec::new(),
        remarks: Vec::new(),
    };
    ("s".into(), table)
}

#[test]
fn sparse_rows_are_present_when_empty_and_missing_when_all_nan() {
    let (views, _) = assemble(vec![sparse(vec![f64::NAN, f64::NAN, 3.0])], &Assembly::default()).unwrap();
    assert_eq!(ids(&views), ["1", "2"]);
    let error = assemble(vec![sparse(vec![1.0, 2.0, f64::NAN])], &Assembly::default()).unwrap_err();
    assert!(error.to_string().starts_with("s.mtx: feature '0' of instance '1' is missing"), "{error}");
    // Zeros that are not stored count.
    let (views, account) = assemble(vec![sparse(vec![1.0, 2.0, f64::NAN])], &mean()).unwrap();
    assert_eq!((views.instances(), account.views[0].imputed), (3, 1));
}

#[test]
fn infinite_values_are_refused_with_their_place() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "id,p,q\nx,1,2\ny,3,inf\n"))];
    assert_eq!(
        refused(&files),
        "a.csv, line 3, column 3: the value of feature 'q' of instance 'y' is inf: write NA in the whole row if the \
         instance is missing, or a finite value"
    );
}

#[test]
fn a_mask_hides_instances_and_adds_none() {
    let folder = Folder::new();
    let mut files = pair(&folder);
    // Values that the mask hides may be invalid.
    files[0].1 = folder.file("a.csv", "id,p,q\nx,1,2\ny,NA,4\nz,5,6\n");
    let mask = folder.file("mask.tsv", "id\tb\ta\nw\t0\t1\nx\t1\t1\ny\t1\t0\nz\t1\t1\n");
    let (views, account) = joined_as(&files, Reading::default(), &masked(&mask)).unwrap();
    assert_eq!(ids(&views), ["x", "y", "z"]);
    assert_eq!(
        (presence(&views, 0), presence(&views, 1)),
        (vec![true, false, true], vec![false, true, true])
    );
    assert_eq!((account.views[0].masked, account.views[1].masked), (1, 1));
    assert_eq!(account.dropped, ["w"]);
}

#[test]
fn a_mask_for_tables_without_ids_has_row_numbers() {
    let folder = Folder::new();
    let files = [("a", folder.file("a.csv", "1,2\n3,4\n")), ("b", folder.file("b.csv", "7\n8\n"))];
    let mask = folder.file("mask.tsv", "id\ta\tb\n1\t0\t1\n0\t1\t1\n");
    let (views, _) = joined_as(&files, NO_IDS, &masked(&mask)).unwrap();
    assert_eq!(presence(&views, 0), [true, false]);
}

#[test]
fn a_mask_may_be_in_the_words_of_r_and_pandas() {
    let folder = Folder::new();
    let files = pair(&folder);
    for (yes, no) in [("TRUE", "FALSE"), ("True", "False"), ("1.0", "0.0"), ("yes", "no")] {
        let rows = format!("w,{no},{yes}\nx,{yes},{no}\ny,{yes},{no}\nz,{yes},{yes}\n");
        // R writes no title above row names.
        for header in ["id,a,b", "a,b"] {
            let mask = folder.file("mask.csv", format!("{header}\n{rows}"));
            let (views, _) = joined_as(&files, Reading::default(), &masked(&mask)).unwrap();
            assert_eq!((views.present(0), views.present(1)), (3, 2), "{yes}");
        }
    }
}

#[test]
fn a_mask_that_does_not_fit_is_refused() {
    let folder = Folder::new();
    let files = pair(&folder);
    let refused = |text: &str| {
        let mask = folder.file("mask.csv", text);
        refused_as(&files, Reading::default(), &masked(&mask))
    };
    let rows = "w,1,1\nx,1,1\ny,1,1\nz,1,1\n";
    assert_eq!(
        refused("id,a\nw,1\nx,1\ny,1\nz,1\n"),
        "mask.csv: the mask has no column for the view 'b': add one of 0 and 1"
    );
    assert_eq!(
        refused(&format!("id,a,c\n{rows}")),
        "mask.csv: the mask has a column 'c', but there is no such view: 'a', 'b' are there"
    );
    assert_eq!(
        refused(&format!("id,a,a\n{rows}")),
        "mask.csv: the mask has two columns 'a': leave one per view"
    );
    assert_eq!(refused(rows), "mask.csv: the mask has no header: name the columns, id first, then the views");
    assert_eq!(
        refused("id,a,b\nw,1,1\nx,1,2\ny,1,1\nz,1,1\n"),
        "mask.csv, line 3, column 3: the mask of view 'b' for instance 'x' is '2': write 1 (shown) or 0 (missing)"
    );
    assert!(
        refused("id,a,b\nw,1,1\nx,NA,1\n")
            .contains("line 3, column 2: the mask of view 'a' for instance 'x' is 'NA'")
    );
    assert_eq!(
        refused(&format!("id,a,b\n{rows}v,1,1\n")),
        "mask.csv, line 6, column 1: the instance 'v' is in no view: delete its row from the mask, or check the IDs"
    );
    assert_eq!(
        refused("id,a,b\nx,1,1\ny,1,1\nz,1,1\n"),
        "mask.csv: the mask has no row for the instance 'w' of view 'b' (1 such row(s) in all): add one"
    );
    assert!(
        refused(&format!("id,a,b\n{rows}w,1,1\n"))
            .starts_with("mask.csv, line 6, column 1: the ID 'w' is also that of line 2")
    );
    assert!(refused("id,a,b\nw,1\nx,1,1\n").starts_with("mask.csv, line 2: 2 fields where 3 are expected"));
}

#[test]
fn views_that_show_nothing_are_refused() {
    let folder = Folder::new();
    let mut files = pair(&folder);
    files[1].1 = folder.file("b.csv", "id,r\nz,NA\nw,NA\n");
    assert_eq!(refused(&files), "view 'b' has no instances: every row is missing; leave the view out");
    assert_eq!(
        assemble(Vec::new(), &Assembly::default()).unwrap_err().to_string(),
        "no view was given: at least one is needed"
    );
}

#[test]
fn three_sources_is_joined_by_story() {
    let Some(folder) = shared("3sources") else { return };
    let files =
        ["bbc", "guardian", "reuters"].map(|name| (name, folder.join(format!("3sources_{name}.mtx"))));
    let (views, account) = joined_as(&files, TRANSPOSE, &Assembly::default()).unwrap();
    assert_eq!((views.instances(), account.in_every_view), (416, 169));
}
