//! Incomplete data: removal of more instances, and detection of IDs that never match.

use std::fmt::Write as _;

use crate::common::Folder;

/// Three views of forty instances in two groups: `a` is complete, `b` lacks every fourth, and every fifth row of `c` is empty.
fn gaps() -> Folder {
    let folder = Folder::new();
    let mut files = ["a", "b", "c"].map(|name| (name, String::from("id,x,y\n")));
    let mut truth = String::from("id,class\n");
    for i in 0..40_i32 {
        for (name, text) in &mut files {
            let (far, near) = (f64::from(i % 2) * 4.0 + f64::from(i) / 50.0, 1.0 + f64::from(i % 3) / 9.0);
            match *name {
                "b" if i % 4 == 0 => {}
                "c" if i % 5 == 0 => writeln!(text, "s{i},NA,NA").unwrap(),
                _ => writeln!(text, "s{i},{far},{near}").unwrap(),
            }
        }
        writeln!(truth, "s{i},{}", i % 2).unwrap();
    }
    files.iter().for_each(|(name, text)| folder.file(&format!("{name}.csv"), text));
    folder.file("truth.csv", truth);
    folder
}

const VIEWS: &str = "--view a=a.csv --view b=b.csv --view c=c.csv";

#[test]
fn simulate_removes_only_present_instances() {
    let folder = gaps();
    let message: serde_json::Value =
        serde_json::from_str(&folder.good(&format!("simulate {VIEWS} --missing 0.5 -o m --json"))).unwrap();
    // Of 40, 30 and 32.
    assert_eq!(message["kept"], serde_json::json!({"a": 20, "b": 15, "c": 16}));
    let mask = folder.text("m/mask.tsv");
    let rows: Vec<Vec<&str>> = mask.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 40);
    for (i, row) in rows.iter().enumerate() {
        assert!(row[1..].contains(&"1"), "s{i} is left without a view");
        assert!(i % 4 > 0 || row[2] == "0", "s{i} was not in b");
        assert!(i % 5 > 0 || row[3] == "0", "s{i} was not in c");
    }
    assert_eq!(folder.text("m/b.tsv").lines().count(), 16);
    assert_eq!(folder.text("m/c.tsv").lines().count(), 17);
    // The mask hides the same of the files it was made of, and can be the start of more.
    let inspect = |data: &str| -> serde_json::Value {
        serde_json::from_str(&folder.good(&format!("inspect {data} --json"))).unwrap()
    };
    let copies = inspect("--view a=m/a.tsv --view b=m/b.tsv --view c=m/c.tsv");
    assert_eq!(copies["combinations"], inspect(&format!("{VIEWS} --mask m/mask.tsv"))["combinations"]);
    let more = folder.good(&format!("simulate {VIEWS} --mask m/mask.tsv --missing a=0.2 -o n --json"));
    let more: serde_json::Value = serde_json::from_str(&more).unwrap();
    assert_eq!(more["kept"], serde_json::json!({"a": 16, "b": 15, "c": 16}));
    let message = folder.good(&format!("simulate {VIEWS} --missing 0.5 -o p"));
    assert!(message.contains("b: 15 of 30 instances kept"), "{message}");
}

#[test]
fn an_odd_number_of_instances_can_lose_half_and_nothing_then_relates_the_views() {
    let folder = Folder::new();
    let rows: Vec<String> = (0..61).map(|i| format!("s{i},{},{}", i % 2, i % 3)).collect();
    for file in ["a.csv", "b.csv"] {
        folder.file(file, format!("id,x,y\n{}\n", rows.join("\n")));
    }
    let simulate = "simulate --view a=a.csv --view b=b.csv";
    let message = folder.good(&format!("{simulate} --missing 0.5 -o half"));
    assert!(message.contains("a: 30 of 61 instances kept") && message.contains("b: 31 of 61"), "{message}");
    assert!(message.contains("No instance is in both views: nothing relates the clusters"), "{message}");
    let message = folder.good(&format!("{simulate} --missing 0.3 -o third"));
    assert!(
        message.contains("25 of 61 instances are in every view") && !message.contains("relates"),
        "{message}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&folder.good(&format!("{simulate} --missing 0.3 -o json --json"))).unwrap();
    assert_eq!(json["in_every_view"], 25);
    let message = folder.bad(2, &format!("{simulate} --missing 0.6 -o more"));
    assert!(message.starts_with("--missing: the shares, up to 0.6"), "{message}");
    assert!(message.ends_with("at most 0.5 works for 61 instances in 2 views"), "{message}");
}

#[test]
fn more_than_can_go_is_refused_before_the_work() {
    let folder = gaps();
    let message = folder.bad(2, "simulate --view a=a.csv --view b=b.csv --missing 0.6 -o m");
    assert!(message.contains("10 of 40 instances are present in one view only"), "{message}");
    let compare = "compare --view a=a.csv --view b=b.csv --truth truth.csv --methods wsnmf --seeds 1 -o c --missing 0,0.6";
    assert!(folder.bad(2, compare).contains("use a lower share"));
    assert!(!folder.path("c/results.tsv").exists());
}

#[test]
fn compare_removes_only_present_instances() {
    let folder = gaps();
    folder.good(&format!(
        "compare {VIEWS} --truth truth.csv --methods wsnmf,concatenation --seeds 3 --missing 0,0.5 -q -o c"
    ));
    assert_eq!(folder.text("c/results.tsv").lines().count(), 1 + 2 * 2 * 3);
}

#[test]
fn a_view_of_other_instances_is_refused_unless_that_is_meant() {
    let folder = Folder::small();
    folder.file("c.csv", "id,u,v\nS-0,1,2\nS-1,3,4\nS-2,8,9\n");
    let fit = "fit --view a=a.tsv --view b=b.csv --view c=c.csv -k 2 -o out";
    for command in [fit, "inspect --view a=a.tsv --view b=b.csv --view c=c.csv"] {
        let message = folder.bad(3, command);
        assert!(message.starts_with("c.csv: no common IDs: the view 'c'"), "{message}");
        assert!(
            message.contains("'S-0'") && message.contains("'s0'") && message.contains("--allow-disjoint"),
            "{message}"
        );
    }
    assert!(!folder.path("out").exists());
    folder.good(&format!("{fit} --allow-disjoint"));
    assert_eq!(folder.labels("out/labels.tsv").len(), 15);
    assert_eq!(folder.json("out/summary.json")["options"]["allow-disjoint"], true);
    folder.good("fit --config out/summary.json -o again");
    folder.file("fit.toml", "view = ['a=a.tsv', 'c=c.csv']\nk = 2\nallow-disjoint = true\n");
    folder.good("fit --config fit.toml -o third");
    // New instances may come from one view at a time, or from views that share none.
    folder.file("new.csv", "name,p,q\nn1,1,2\n");
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o two");
    folder.good("predict two/model.safetensors --view b=new.csv");
    folder.good("predict two/model.safetensors --view a=a.tsv --view b=new.csv");
}

#[test]
fn data_at_fault_have_the_exit_code_of_data() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv -k 2 -o out");
    // The model of the same instances in another order.
    let text = folder.text("a.tsv");
    let (header, rows) = text.split_once('\n').unwrap();
    let turned = rows.lines().rev().collect::<Vec<_>>().join("\n");
    folder.file("turned.tsv", format!("{header}\n{turned}"));
    folder.good("fit --view a=turned.tsv -k 2 -o turned");
    std::fs::copy(folder.path("turned/model.safetensors"), folder.path("out/model.safetensors")).unwrap();
    let message = folder.bad(3, "report out");
    assert!(message.contains("in the order of the fit"), "{message}");
}
