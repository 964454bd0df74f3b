//! Labels and several views in annotated data and files of Cell Ranger.

use crate::common::{Folder, Formats, bare};
use daimc_io::{Matching, Reading, parts, read, read_labels};

#[test]
fn columns_of_obs_are_labels() {
    let Some(formats) = Formats::make() else { return };
    let path = formats.path(&"csr_gzip.h5ad".into());
    let label = |column: &str, row: usize| {
        let labels = read_labels(&path, Some(column), &Matching::default()).unwrap();
        assert_eq!((labels.len(), labels.position("cell 7")), (61, Some(7)), "{column}");
        labels.get(&format!("cell {row}")).map(String::from)
    };
    let some = |text: &str| Some(text.to_owned());
    // Every third has no category.
    assert_eq!([0, 1, 2, 3].map(|row| label("obs/cell_type", row)), [some("T"), some("B"), None, some("T")]);
    assert_eq!([0, 1].map(|row| label("batch", row)), [some("b0"), some("b1")]);
    assert_eq!([3, 4].map(|row| label("obs/number", row)), [some("3"), some("0")]);
    assert_eq!([0, 1].map(|row| label("obs/flag", row)), [some("True"), some("False")]);
    assert_eq!([1, 4].map(|row| label("obs/share", row)), [some("0.25"), some("1")]);
    assert_eq!([0, 1, 2].map(|row| label("obs/maybe", row)), [some("1"), some("2"), None]);
    let refused = |column| bare(read_labels(&path, column, &Matching::default()).unwrap_err(), &path);
    let known = "batch, cell_type, flag, maybe, number, share";
    assert_eq!(
        refused(None),
        format!("csr_gzip.h5ad: has the columns {known}; pick the one of the labels with ::obs/COLUMN")
    );
    assert_eq!(
        refused(Some("obs/age")),
        format!("csr_gzip.h5ad::obs/age: has no column 'age' in obs; it has {known}")
    );
}

#[test]
fn modalities_have_labels_of_their_own() {
    let Some(formats) = Formats::make() else { return };
    let path = formats.path(&"two.h5mu".into());
    let labels = read_labels(&path, Some("prot/obs/batch"), &Matching::default()).unwrap();
    assert_eq!((labels.len(), labels.get("cell 5"), labels.get("cell 4")), (35, Some("b1"), None));
    let labels = read_labels(&path, Some("rna/obs/cell_type"), &Matching::default()).unwrap();
    assert_eq!((labels.len(), labels.get("cell 4")), (61, Some("B")));
}

#[test]
fn the_views_of_a_file_are_listed() {
    let Some(formats) = Formats::make() else { return };
    let parts = |name: &str| parts(&formats.path(&name.into())).unwrap();
    assert_eq!(parts("two.h5mu"), ["rna", "prot"]);
    assert_eq!(parts("three.h5"), ["Gene Expression", "Antibody Capture"]);
    assert_eq!(parts("bundle"), ["Gene Expression", "Antibody Capture"]);
    for one in ["two.h5", "csr_gzip.h5ad", "late.mat", "tiny.npy", "is not there"] {
        assert!(parts(one).is_empty(), "{one}");
    }
}

#[test]
fn a_missing_file_of_a_folder_is_named() {
    let refused = |folder: &Folder| {
        let path = folder.path();
        bare(read(path, None, Reading::default()).unwrap_err(), path).replace(path.to_str().unwrap(), "")
    };
    let folder = Folder::new();
    assert!(refused(&folder).ends_with("is a folder without matrix.mtx or matrix.mtx.gz; name a file in it"));
    folder.file("matrix.mtx", "%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1 4\n2 3 5\n");
    assert!(refused(&folder).contains("has neither features.tsv nor genes.tsv next to its matrix"));
    folder.file("genes.tsv", "ENSG1\tCD3\nENSG2\tCD4\n");
    assert!(refused(&folder).contains("has no barcodes.tsv next to its matrix"));
    folder.file("barcodes.tsv", "a\nb\n");
    assert!(refused(&folder).contains("does not match the names next to it"));
    folder.file("barcodes.tsv", "a\nb\nc\n");
    let table = read(folder.path(), None, Reading::default()).unwrap();
    assert_eq!(crate::common::values(&table), [4.0, 0.0, 0.0, 0.0, 0.0, 5.0]);
    assert_eq!(table.ids.unwrap(), ["a", "b", "c"]);
    assert_eq!(table.features.unwrap(), ["CD3", "CD4"]);
}
