//! Matrix Market files are read with their companion files, and errors are reported.

use crate::common::{Folder, names, refused, shared, table, values};
use daimc_io::{Cells, Precision, Reading, read};

const TRANSPOSE: Reading =
    Reading { transpose: true, no_ids: false, precision: None, decimal_comma: false, drop: &[] };
const SPARSE: &str =
    "%%MatrixMarket matrix coordinate real general\n% a comment\n2 3 3\n2 3 1.5\n\n1 2 -2\n2 1 4e1\n";

#[test]
fn coordinates_become_sorted_rows() {
    let folder = Folder::new();
    let path = folder.file("m.mtx", SPARSE);
    let matrix = table(&path);
    assert_eq!(values(&matrix), [0.0, -2.0, 0.0, 40.0, 0.0, 1.5]);
    assert!(
        matches!(&matrix.cells, Cells::SparseF64(csr) if csr.columns == [1, 0, 2] && csr.offsets == [0, 1, 3])
    );
    let turned = read(&path, None, TRANSPOSE).unwrap();
    assert_eq!((turned.rows, turned.columns), (3, 2));
    assert_eq!(values(&turned), [0.0, 40.0, -2.0, 0.0, 0.0, 1.5]);
    let how = Reading { precision: Some(Precision::F32), ..Reading::default() };
    assert!(matches!(read(&path, None, how).unwrap().cells, Cells::SparseF32(_)));
}

#[test]
fn duplicate_entries_are_summed() {
    let folder = Folder::new();
    let text = "%%MatrixMarket matrix coordinate integer general\n1 2 3\n1 2 1\n1 1 5\n1 2 2\n";
    let matrix = table(&folder.file("m.mtx", text));
    assert!(
        matches!(&matrix.cells, Cells::SparseF64(csr) if csr.values == [5.0, 3.0] && csr.offsets == [0, 2])
    );
}

#[test]
fn patterns_and_symmetries_are_filled_in() {
    let folder = Folder::new();
    let read = |text: &str, how| values(&read(&folder.file("m.mtx", text), None, how).unwrap());
    let plain = Reading::default();
    let pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n";
    assert_eq!(read(pattern, plain), [1.0, 1.0, 1.0, 0.0]);
    let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n";
    assert_eq!(read(skew, plain), [0.0, -3.0, 3.0, 0.0]);
    assert_eq!(read(skew, TRANSPOSE), [0.0, 3.0, -3.0, 0.0]);
    let array = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n";
    assert_eq!(read(array, plain), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    assert_eq!(read(array, TRANSPOSE), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let array = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n";
    assert_eq!(read(array, plain), [1.0, 2.0, 2.0, 3.0]);
    let array = "%%MatrixMarket matrix array integer skew-symmetric\n2 2\n7\n";
    assert_eq!(read(array, plain), [0.0, -7.0, 7.0, 0.0]);
}

#[test]
fn names_are_read_from_companion_files() {
    let folder = Folder::new();
    let path = folder.file("m.mtx.gz", SPARSE);
    folder.file("m.ids", "x\tmore\ny\n");
    folder.file("m.terms", "a\r\nb\r\nc\r\n");
    let matrix = table(&path);
    assert_eq!((matrix.ids, matrix.features), (names(&["x", "y"]), names(&["a", "b", "c"])));
    let no_ids = Reading { no_ids: true, ..Reading::default() };
    assert_eq!(read(&path, None, no_ids).unwrap().ids, None);
}

#[test]
fn names_by_row_and_column_follow_the_transposition() {
    let folder = Folder::new();
    let path = folder.file("m.mtx", SPARSE);
    folder.file("m.rows", "x\ny\n");
    folder.file("m.cols", "a\nb\nc\n");
    assert_eq!(table(&path).ids, names(&["x", "y"]));
    let turned = read(&path, None, TRANSPOSE).unwrap();
    assert_eq!((turned.ids, turned.features), (names(&["a", "b", "c"]), names(&["x", "y"])));
}

#[test]
fn single_cell_folders_are_read() {
    let folder = Folder::new();
    let path = folder.file("s1_matrix.mtx", SPARSE);
    folder.file("s1_barcodes.tsv", "c1\nc2\nc3\n");
    folder.file("s1_features.tsv", "g1\tGene 1\ng2\tGene 2\n");
    let matrix = read(&path, None, TRANSPOSE).unwrap();
    assert_eq!((matrix.ids, matrix.features), (names(&["c1", "c2", "c3"]), names(&["g1", "g2"])));
}

#[test]
fn a_wrong_number_of_names_is_refused_with_both_files() {
    let folder = Folder::new();
    let path = folder.file("m.mtx", SPARSE);
    folder.file("m.docs", "x\ny\nz\n");
    assert_eq!(
        refused(&path, Reading::default()),
        "m.docs: 3 names, but m.mtx has 2 instances: rename the file if it belongs to another matrix, or say whether instances \
         are in columns (--transpose)"
    );
}

#[test]
fn sizes_in_the_header_are_checked() {
    let folder = Folder::new();
    let refused = |text: &str| refused(&folder.file("m.mtx", text), Reading::default());
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    let advice = "the file was cut off or its header is wrong";
    assert_eq!(
        refused(&format!("{banner}2 2 4000000000\n1 1 1\n")),
        format!("m.mtx, line 2: the header says 4000000000 entries, but there are fewer: {advice}")
    );
    assert_eq!(
        refused(&format!("{banner}2 2 3\n1 1 1.00000\n2 2 1.00000\n")),
        format!("m.mtx, line 2: the header says 3 entries, but there are only 2: {advice}")
    );
    assert_eq!(
        refused(&format!("{banner}2 2 1\n1 1 1\n2 2 1\n")),
        format!("m.mtx, line 2: the header says 1 entries, but there are more: {advice}")
    );
    assert_eq!(
        refused(&format!("{banner}4000000000 2 1\n1 1 1\n")),
        "m.mtx, line 2: 4000000000 instances, but only 1 entries: the header is wrong"
    );
    assert_eq!(
        refused("%%MatrixMarket matrix array real general\n100000 100000\n1\n"),
        format!("m.mtx, line 2: the header says 10000000000 entries, but there are fewer: {advice}")
    );
    assert_eq!(refused(banner), "m.mtx: the matrix has no size: the file is empty or was cut off");
    assert_eq!(
        refused(&format!("{banner}2 2\n")),
        "m.mtx, line 2: the size of the matrix should be here: rows columns entries"
    );
    assert_eq!(
        refused("a,b\n1,2\n"),
        "m.mtx, line 1: '%%MatrixMarket matrix …' should be here: this is not a Matrix Market file"
    );
    assert!(
        refused("%%MatrixMarket matrix coordinate complex general\n").contains("'complex' is not supported")
    );
}

#[test]
fn invalid_entries_are_refused_with_their_line() {
    let folder = Folder::new();
    let refused = |entry: &str| {
        let text = format!("%%MatrixMarket matrix coordinate real general\n%\n2 3 1\n{entry}\n");
        refused(&folder.file("m.mtx", text), Reading::default())
    };
    assert_eq!(refused("3 1 1"), "m.mtx, line 4: '3 1 1': the row should be a number from 1 to 2");
    assert_eq!(refused("1 0 1"), "m.mtx, line 4: '1 0 1': the column should be a number from 1 to 3");
    assert_eq!(refused("1 1 x"), "m.mtx, line 4: '1 1 x': the value should be a number");
    assert_eq!(refused("1 1    "), "m.mtx, line 4: '1 1': 3 numbers are expected, row, column and value");
    assert_eq!(refused("1 1 1 1"), "m.mtx, line 4: '1 1 1 1': 3 numbers are expected, row, column and value");
}

#[test]
fn three_sources_is_read_with_its_names() {
    let Some(folder) = shared("3sources") else { return };
    for (name, stories) in [("bbc", 352), ("guardian", 302), ("reuters", 294)] {
        let table = read(&folder.join(format!("3sources_{name}.mtx")), None, TRANSPOSE).unwrap();
        assert_eq!(table.rows, stories);
        assert_eq!(table.ids.unwrap().len(), stories);
        assert_eq!(table.features.unwrap().len(), table.columns);
    }
}
