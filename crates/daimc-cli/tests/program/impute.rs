//! Imputation of missing rows and values.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::common::Folder;

/// Two views of sixty instances in two groups along a line; a.tsv lacks single values, b.tsv every fifth instance.
fn lacking() -> Folder {
    let folder = Folder::new();
    let (mut a, mut b) = (String::from("id\tx\ty\tz\n"), String::from("id\tp\tq\n"));
    for i in 0..60 {
        let (group, along) = (f64::from(i % 2), f64::from(i) / 60.0);
        let x = if i % 10 == 3 { "NA".to_owned() } else { (4.0 * group + along).to_string() };
        writeln!(a, "s{i}\t{x}\t{}\t{}", 5.0 - 4.0 * group + along, 1.0 + 2.0 * along).unwrap();
        if i % 5 != 2 {
            writeln!(b, "s{i}\t{}\t{}", truth(i).0, truth(i).1).unwrap();
        }
    }
    folder.file("a.tsv", a);
    folder.file("b.tsv", b);
    folder.good(&format!("fit {VIEWS} -k 2 -o out -q"));
    folder
}

/// The row of an instance in b.tsv.
fn truth(i: i32) -> (f64, f64) {
    let (group, along) = (f64::from(i % 2), f64::from(i) / 60.0);
    (10.0 * group + 3.0 * along, 7.0 - 6.0 * group + 2.0 * along)
}

const VIEWS: &str = "--view a=a.tsv --view b=b.tsv";

/// The rows of a table by ID, the header under `id`.
fn table(text: &str) -> BTreeMap<String, Vec<String>> {
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        (fields.next().unwrap(), fields.collect())
    };
    text.lines().map(row).collect()
}

#[test]
fn imputed_tables_are_complete_and_keep_present_values() {
    let folder = lacking();
    let said = folder.good(&format!("impute out {VIEWS} -o whole"));
    assert_eq!(folder.list("whole"), ["a.tsv", "b.tsv"]);
    assert!(said.contains("  a: 6 cells filled in; error 0."), "{said}");
    assert!(said.contains(" with means) on held-out cells\n"), "{said}");
    assert!(said.contains("  b: 12 rows filled in; error 0."), "{said}");
    assert!(said.contains(" with means) on held-out rows\n"), "{said}");
    for (name, features) in [("a", vec!["x", "y", "z"]), ("b", vec!["p", "q"])] {
        let (given, whole) =
            (table(&folder.text(&format!("{name}.tsv"))), table(&folder.text(&format!("whole/{name}.tsv"))));
        assert_eq!(whole.len(), 61);
        assert_eq!(whole["id"], features);
        for (id, row) in given {
            let same = row.iter().zip(&whole[&id]).all(|(given, made)| given == "NA" || given == made);
            assert!(same, "{id}: {row:?} {:?}", whole[&id]);
        }
    }
    let whole = table(&folder.text("whole/b.tsv"));
    for i in (0..60).filter(|i| i % 5 == 2) {
        let made: Vec<f64> = whole[&format!("s{i}")].iter().map(|x| x.parse().unwrap()).collect();
        assert!((made[0] - truth(i).0).abs() < 1.0 && (made[1] - truth(i).1).abs() < 1.0, "s{i}: {made:?}");
    }

    // Threads make no difference, and the tables can be fitted.
    folder.good(&format!("impute out {VIEWS} -o again --threads 1"));
    assert_eq!(folder.text("again/b.tsv"), folder.text("whole/b.tsv"));
    let said = folder.good("impute out/model.safetensors --view whole/a.tsv --view whole/b.tsv -o third -q");
    assert!(said.contains("a: nothing is missing") && said.contains("b: nothing is missing"), "{said}");
    assert_eq!(folder.text("third/a.tsv"), folder.text("whole/a.tsv"));
}

#[test]
fn only_gaps_writes_a_long_table_and_json_has_the_errors() {
    let folder = lacking();
    folder.good(&format!("impute out {VIEWS} -o whole"));
    let message = folder.good(&format!("impute out {VIEWS} -o gaps --only-gaps --json"));
    let message: serde_json::Value = serde_json::from_str(&message).unwrap();
    assert_eq!(
        (message["views"]["a"]["cells"].as_u64(), message["views"]["b"]["rows"].as_u64()),
        (Some(6), Some(12))
    );
    let error = message["views"]["b"]["held_out_rows"]["error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.5, "{message}");
    assert!(message["views"]["b"]["held_out_cells"].is_null());
    for (name, count) in [("a", 6), ("b", 24)] {
        let whole = table(&folder.text(&format!("whole/{name}.tsv")));
        let text = folder.text(&format!("gaps/{name}.tsv"));
        assert_eq!(text.lines().next(), Some("id\tfeature\tvalue"));
        assert_eq!(text.lines().count(), 1 + count);
        for line in text.lines().skip(1) {
            let [id, feature, value] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let column = whole["id"].iter().position(|name| name == feature).unwrap();
            assert_eq!(whole[id][column], value);
        }
    }
}

#[test]
fn a_missing_view_is_imputed_by_the_model() {
    let folder = lacking();
    let said = folder.good("impute out --view a=a.tsv -o whole");
    assert!(said.contains("b: not given: 60 rows made by the model alone"), "{said}");
    assert_eq!(folder.text("whole/b.tsv").lines().count(), 61);
}

#[test]
fn mistakes_are_errors() {
    let folder = lacking();
    assert!(folder.bad(2, "impute out -o whole").contains("give at least one view: --view NAME=PATH"));
    std::fs::create_dir(folder.path("full")).unwrap();
    folder.file("full/x.txt", "");
    assert!(folder.bad(2, &format!("impute out {VIEWS} -o full")).contains("--force"));
    folder.good(&format!("impute out {VIEWS} -o full --force"));
    assert!(folder.bad(3, "impute out --view c=a.tsv -o whole").contains("the model has no view 'c'"));
    assert!(folder.bad(3, "impute out --view a=b.tsv -o whole").contains("none of its features"));
    folder.file("short.tsv", "id\tx\ty\ns1\t1\t2\n");
    assert!(folder.bad(3, "impute out --view a=short.tsv -o whole").contains("'z'"));
    assert!(folder.bad(3, &format!("impute nowhere {VIEWS} -o whole")).contains("nowhere"));
    assert!(folder.bad(2, &format!("impute out {VIEWS} -o . --force")).contains("this is an input file"));
    assert!(folder.bad(2, &format!("impute out {VIEWS} -o a.tsv")).contains("a.tsv"));
    assert!(folder.list("whole").is_empty());
    assert!(folder.good("impute --help").contains("daimc impute out --view rna=rna.tsv"));
}

#[test]
#[cfg(target_os = "linux")]
fn rows_on_disk_are_filled_in_too() {
    let folder = Folder::new();
    // 12 MB in each view, in two clusters; a tenth of the rows of the first is missing, another lacks cells.
    let npy = |shift: usize, nan: bool| {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (30000, 50), }";
        let mut bytes =
            [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        for (i, f) in (0..30_000_usize).flat_map(|i| (0..50).map(move |f| (i, f))) {
            let value = if f % 2 == i % 2 { 3.0 } else { ((7 * i + f + shift) % 10) as f64 / 8.0 };
            let lacks = nan && (i % 10 == 4 || i % 10 == 7 && (11 * i + f) % 37 == 0);
            bytes.extend((if lacks { f64::NAN } else { value }).to_le_bytes());
        }
        bytes
    };
    folder.file("a.npy", npy(0, true));
    folder.file("b.npy", npy(3, false));
    let views = "--view a=a.npy --view b=b.npy --threads 2";
    folder.good(&format!("fit {views} -k 2 --max-iter 5 --neighbours off -o out"));
    folder.good(&format!("impute out {views} -o memory"));
    let output = folder.run(&format!("impute out {views} --memory 30MB -o disk"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("rows are read from disk"), "{said}");
    assert!(folder.text("memory/a.tsv") == folder.text("disk/a.tsv"));
}
