//! Tables of results as Parquet.

use std::process::Command;

use crate::common::{Folder, python};

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -k 2 --runs 3 -o";

/// Runs a script that fails unless the Parquet files equal the text files.
fn check(folder: &Folder, script: &str) {
    let Some(python) = python() else { return };
    let common = r#"
import numpy as np, pandas as pd, pyarrow.parquet as pq
def same(text, parquet, keys):
    table = pq.read_table(parquet)
    if table.num_rows: assert pq.ParquetFile(parquet).metadata.row_group(0).column(0).compression == "ZSTD"
    expected = pd.read_csv(text, sep="\t", dtype={key: str for key in keys})
    found = table.to_pandas()
    assert list(found) == list(expected), (list(found), list(expected))
    for column in expected:
        if column in keys:
            assert table.schema.field(column).type == "string" and list(found[column]) == list(expected[column])
        else:
            np.testing.assert_allclose(found[column].astype(float), expected[column].astype(float), rtol=1e-5, atol=6e-4)
    return table
"#;
    let output = Command::new(python)
        .arg("-c")
        .arg(format!("{common}{script}"))
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_fit_writes_the_same_tables_as_parquet() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} text"));
    folder.good(&format!("{FIT} out --format parquet"));
    let tables =
        ["contributions.parquet", "embedding.parquet", "features.parquet", "labels.parquet", "map.parquet"];
    let others = ["model.safetensors", "report.html", "summary.json"];
    let mut all = [&tables[..], &others].concat();
    all.sort_unstable();
    assert_eq!(folder.list("out"), all);
    check(
        &folder,
        r#"
same("text/map.tsv", "out/map.parquet", ["id"])
table = same("text/labels.tsv", "out/labels.parquet", ["id"])
assert [str(field.type) for field in table.schema] == ["string", "int32", "double"]
table = same("text/embedding.tsv", "out/embedding.parquet", ["id"])
assert [str(field.type) for field in table.schema] == ["string", "float", "float"]
table = same("text/contributions.tsv", "out/contributions.parquet", ["id"])
assert table["b"].null_count == 2, table["b"]
same("text/features.tsv", "out/features.parquet", ["view", "feature"])
"#,
    );
    // Commands that read clusters accept the folder, the file, and the file as truth.
    let message = folder.good("evaluate out --truth truth.csv");
    assert_eq!(message, folder.good("evaluate text --truth truth.csv"));
    assert_eq!(message, folder.good("evaluate out/labels.parquet --truth truth.csv"));
    folder.good("evaluate truth.csv --truth out/labels.parquet::cluster");
    folder.good("report out");
    // The options are recorded, so that the fit can be repeated.
    folder.good("fit --config out/summary.json -o again");
    assert_eq!(folder.list("again"), all);
}

#[test]
fn tables_of_the_other_format_do_not_stay() {
    let folder = Folder::small();
    for (format, ending, other) in [("parquet", ".parquet", ".tsv"), ("tsv", ".tsv", ".parquet")] {
        folder.good(&format!("{FIT} out --format {format} --force"));
        let files = folder.list("out");
        assert_eq!(files.iter().filter(|file| file.ends_with(ending)).count(), 5, "{files:?}");
        assert!(!files.iter().any(|file| file.ends_with(other)), "{files:?}");
    }
    folder.good(&format!("{FIT} out --format parquet --embedding npy --force"));
    assert!(folder.path("out/embedding.npy").exists() && !folder.path("out/embedding.parquet").exists());
}

#[test]
fn new_instances_are_placed_into_parquet_by_option_or_by_ending() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} out"));
    let predict = "predict out --view a=a.tsv --view b=b.csv";
    folder.good(&format!("{predict} -o new.tsv --contributions why.tsv"));
    folder.good(&format!("{predict} -o new.parquet --contributions why.parquet"));
    folder.good(&format!("{predict} -o other --format parquet"));
    let piped = folder.run(&format!("{predict} --format parquet"));
    folder.file("piped", &piped.stdout);
    check(
        &folder,
        r#"
for file in ["new.parquet", "other", "piped"]:
    same("new.tsv", file, ["id"])
same("why.tsv", "why.parquet", ["id"])
"#,
    );
    folder.good("evaluate new.parquet --truth truth.csv");
    let output = folder.run(&format!("{predict} --format parquet --json"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn imputed_parquet_has_the_precision_of_the_view() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} out"));
    let impute = "impute out --view a=a.tsv --view b=b.csv --precision f32";
    for (name, more) in [("text", ""), ("gaps", " --only-gaps")] {
        folder.good(&format!("{impute} -o {name}{more}"));
        folder.good(&format!("{impute} -o {name}_parquet --format parquet{more}"));
    }
    check(
        &folder,
        r#"
table = same("text/b.tsv", "text_parquet/b.parquet", ["id"])
assert [str(field.type) for field in table.schema] == ["string", "float", "float"]
same("gaps/b.tsv", "gaps_parquet/b.parquet", ["id", "feature"])
assert pq.read_table("gaps_parquet/a.parquet").num_rows == 0
"#,
    );
    // They are views again.
    folder.good("fit --view text_parquet/a.parquet --view text_parquet/b.parquet -k 2 -o again");
}

#[test]
fn a_result_that_is_read_is_not_taken_away() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} out --format parquet"));
    let message = folder.bad(2, "fit --view out/embedding.parquet -k 2 -o out --force");
    assert!(message.contains("this is an input file"), "{message}");
    assert!(folder.path("out/embedding.parquet").exists());
}
