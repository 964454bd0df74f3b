//! Annotated data at the command line.

use std::path::Path;

use crate::common::Folder;

/// A file of two modalities, of six and of four instances.
fn modalities() -> Folder {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../daimc-fuzz/corpus/hdf5/two.h5mu");
    folder.file("two.h5mu", std::fs::read(file).unwrap());
    folder
}

#[test]
fn a_file_of_modalities_is_as_many_views() {
    let folder = modalities();
    folder.good("fit --view two.h5mu -k 2 -o all --truth two.h5mu::rna/obs/kind");
    folder.good("fit --view two.h5mu::rna --view prot=two.h5mu::prot -k 2 -o each");
    let inputs = folder.json("all/summary.json")["inputs"].clone();
    assert_eq!(inputs, folder.json("each/summary.json")["inputs"]);
    let about = |at: usize| (inputs[at]["name"].as_str(), inputs[at]["shape"].clone());
    assert_eq!(about(0), (Some("rna"), serde_json::json!([6, 4])));
    assert_eq!(about(1), (Some("prot"), serde_json::json!([4, 2])));
    assert_eq!(folder.labels("all/labels.tsv"), folder.labels("each/labels.tsv"));
    assert_eq!(folder.labels("all/labels.tsv").len(), 6);
    // The options that were written down are those that were given.
    folder.good("predict all --view two.h5mu -o new.tsv");
    assert_eq!(folder.labels("new.tsv").len(), 6);
}

#[test]
fn a_name_for_several_views_is_refused() {
    let folder = modalities();
    let told = folder.bad(2, "fit --view a=two.h5mu -k 2 -o out");
    assert!(told.contains("it holds 'rna', 'prot': pick one with ::NAME after the path"), "{told}");
    let told = folder.bad(3, "evaluate two.h5mu::kind --truth two.h5mu::rna/obs/kind");
    assert!(told.contains("two.h5mu::kind: has no column 'kind' in obs"), "{told}");
}
