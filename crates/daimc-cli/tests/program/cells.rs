//! Values that are missing inside rows.

use std::fmt::Write;

use crate::common::Folder;

/// Two views of forty instances in two groups; a.tsv lacks single values, and feature `void` has none.
fn lacking() -> Folder {
    let folder = Folder::new();
    let (mut a, mut b) = (String::from("id\tx\tvoid\ty\tz\n"), String::from("id\tp\tq\tr\n"));
    for i in 0..40 {
        let (group, wobble) = (i % 2, f64::from(i) / 80.0);
        let (low, high) = (0.1 + wobble, 5.0 - wobble);
        let (x, y) = if group == 0 { (high, low) } else { (low, high) };
        let x = if i % 7 == 3 { "NA".to_owned() } else { x.to_string() };
        let z = if i % 10 == 1 { String::new() } else { (1.0 + wobble).to_string() };
        writeln!(a, "s{i}\t{x}\tNA\t{y}\t{z}").unwrap();
        writeln!(b, "s{i}\t{}\t{y}\t{wobble}", 5.0 - y).unwrap();
    }
    folder.file("a.tsv", a);
    folder.file("b.tsv", b);
    folder
}

const VIEWS: &str = "--view a=a.tsv --view b=b.tsv";

#[test]
fn a_fit_uses_the_present_values_and_reports_the_number_of_missing_ones() {
    let folder = lacking();
    let output = folder.run(&format!("fit {VIEWS} -k 2 -o out"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    // Forty of `void`, six of x, four of z.
    assert!(said.contains("a: 40 instances, 50 values missing inside 40 instances"), "{said}");
    assert!(said.contains("a: 1 feature has no value in any instance") && said.contains("'void'"), "{said}");
    let labels = folder.labels("out/labels.tsv");
    for (id, cluster) in &labels {
        let number: usize = id[1..].parse().unwrap();
        assert_eq!(*cluster == labels["s0"], number.is_multiple_of(2), "{id}");
    }
    let message = &folder.json("out/summary.json")["missing_cells"];
    assert_eq!(message.as_object().unwrap().keys().collect::<Vec<_>>(), ["a"]);
    let a = &message["a"];
    assert_eq!(
        (a["cells"].as_u64(), a["instances"].as_u64(), a["features"].as_u64()),
        (Some(50), Some(40), Some(3))
    );
    assert!((a["share"].as_f64().unwrap() - 50.0 / 160.0).abs() < 1e-12);
    assert_eq!(a["without_value"], serde_json::json!(["void"]));
    assert_eq!(a["most"][1], serde_json::json!({"feature": "x", "instances": 6}));
    let page = folder.text("out/report.html");
    assert!(page.contains("Cells missing inside rows") && page.contains("50 cells are missing"));

    // New instances with missing values.
    folder.file("new.tsv", "id\tx\tvoid\ty\tz\nn0\t4.9\tNA\t0.2\tNA\nn1\t0.2\tNA\t4.8\tNA\n");
    let found = folder.good("predict out --view a=new.tsv");
    let cluster = |line: usize| found.lines().nth(line).unwrap().split('\t').nth(1).unwrap().to_owned();
    assert_eq!(cluster(1), labels["s0"].to_string());
    assert_eq!(cluster(2), labels["s1"].to_string());
}

#[test]
fn other_commands_take_them_too() {
    let folder = lacking();
    let inspected = folder.good(&format!("inspect {VIEWS}"));
    assert!(inspected.contains("a: 50 values (31.2 %) are missing inside 40 instances"), "{inspected}");
    let message: serde_json::Value =
        serde_json::from_str(&folder.good(&format!("inspect {VIEWS} --json"))).unwrap();
    assert_eq!(message["views"][0]["missing_cells"], 50);
    assert_eq!(message["views"][1]["missing_cells"], 0);
    folder.good(&format!("select {VIEWS} -k 2..4 --resamples 2"));
    assert!(folder.bad(3, &format!("fit {VIEWS} -k 2 -o out --nan error")).contains("--nan model"));
    assert!(folder.bad(3, &format!("fit {VIEWS} -k 2 -o out --nan mean")).contains("'void'"));
}

#[test]
#[cfg(target_os = "linux")]
fn rows_on_disk_may_lack_values_too() {
    let folder = Folder::new();
    // 48 MB, in two clusters.
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (60000, 100), }";
    let mut bytes =
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    for (i, f) in (0..60_000_usize).flat_map(|i| (0..100).map(move |f| (i, f))) {
        let value = if f % 2 == i % 2 { 3.0 } else { ((7 * i + f) % 10) as f64 / 8.0 };
        let lacks = (11 * i + f) % 17 == 0;
        bytes.extend((if lacks { f64::NAN } else { value }).to_le_bytes());
    }
    folder.file("a.npy", bytes);
    let fit = "fit --view a=a.npy -k 2 --max-iter 5 --neighbours off --threads 2";
    folder.good(&format!("{fit} -o memory"));
    let output = folder.run(&format!("{fit} --memory 70MB -o disk"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("rows are read from disk"), "{said}");
    for file in ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv"] {
        assert!(folder.text(&format!("memory/{file}")) == folder.text(&format!("disk/{file}")), "{file}");
    }
    let (memory, disk) = (folder.json("memory/summary.json"), folder.json("disk/summary.json"));
    assert_eq!(memory["missing_cells"], disk["missing_cells"]);
    assert_eq!(memory["passes"], disk["passes"]);
    let predict = "predict memory --view a=a.npy --threads 2";
    assert_eq!(folder.good(predict), folder.good(&format!("{predict} --memory 70MB")));
}
