//! Updates of models, and fits in one pass.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::Folder;

/// `count` instances of two obvious groups as views a.tsv and b.tsv, with a prefix and a first index.
fn more(folder: &Folder, prefix: &str, from: usize, count: usize) {
    let (mut a, mut b) = (String::from("id\tx\ty\tz\n"), String::from("name\tp\tq\n"));
    for i in from..from + count {
        let (group, wobble) = (i % 2, (i % 9) as f64 / 40.0);
        let (low, high) = (0.1 + wobble, 5.0 - wobble);
        let (x, y) = if group == 0 { (high, low) } else { (low, high) };
        writeln!(a, "s{i}\t{x}\t{y}\t{}", 1.0 + wobble).unwrap();
        writeln!(b, "s{i}\t{}\t{y}", 2.0 * x).unwrap();
    }
    folder.file(&format!("{prefix}a.tsv"), a);
    folder.file(&format!("{prefix}b.tsv"), b);
}

/// A folder with a fit of 40 instances in `out`, and files of 20 new ones.
fn fitted() -> Folder {
    let folder = Folder::new();
    more(&folder, "", 0, 40);
    more(&folder, "new-", 40, 20);
    folder.good("fit --view a=a.tsv --view b=b.tsv -k 2 -o out -q");
    folder
}

#[test]
fn an_update_assigns_the_new_instances_and_writes_a_model_that_can_be_updated() {
    let folder = fitted();
    let text = folder.good("update out --view a=new-a.tsv --view b=new-b.tsv -o next");
    assert!(text.contains("View 'a' moved by") && text.contains("Results are in next"), "{text}");
    assert_eq!(folder.list("next"), ["features.tsv", "labels.tsv", "model.safetensors", "summary.json"]);
    let (before, after) = (folder.labels("out/labels.tsv"), folder.labels("next/labels.tsv"));
    assert_eq!(after.len(), 20);
    assert!(after.iter().all(|(id, cluster)| {
        let even = id[1..].parse::<usize>().unwrap() % 2;
        *cluster == before[&format!("s{even}")]
    }));
    let summary = folder.json("next/summary.json");
    assert_eq!((&summary["instances"], &summary["remembered"]), (&20.into(), &60.0.into()));
    assert!(summary["drift"]["a"]["total"].as_f64().unwrap() < 0.2, "{summary}");
    assert_eq!(summary["inputs"][0]["sha256"].as_str().unwrap().len(), 64, "{summary}");
    let message = folder.bad(3, "report next");
    assert!(message.contains("has learnt batch by batch"), "{message}");
    // Other commands and the next update accept the model.
    folder.good("predict next --view a=a.tsv -q -o again.tsv");
    assert_eq!(folder.labels("again.tsv").len(), 40);
    more(&folder, "third-", 60, 20);
    let json = folder
        .good("update next/model.safetensors --view b=third-b.tsv --memory-factor 0.5 -o third --json -q");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["remembered"], 50.0);
}

#[test]
fn an_update_in_place_leaves_no_file_of_other_instances() {
    let folder = fitted();
    let message = folder.bad(2, "update out --view a=new-a.tsv -o out");
    assert!(message.contains("--force"), "{message}");
    folder.good("update out --view a=new-a.tsv -o out --force -q");
    assert_eq!(folder.list("out"), ["features.tsv", "labels.tsv", "model.safetensors", "summary.json"]);
    let message = folder.bad(3, "update out --view a=new-a.tsv -o out --force");
    assert!(message.contains("already learnt from instance 's40'; 20 such"), "{message}");
    let message = folder.bad(3, "update out --view a=a.tsv -o out --force");
    assert!(message.contains("already learnt from instance 's0'; 40 such"), "{message}");
}

#[test]
fn invalid_updates_are_errors() {
    let folder = fitted();
    let bad = |code: i32, arguments: &str| folder.bad(code, &format!("update {arguments}"));
    let message = bad(2, "out --view a=new-a.tsv -o next --memory-factor 0");
    assert!(message.contains("--memory-factor 0: must be above 0"), "{message}");
    let message = bad(3, "out --view c=new-a.tsv -o next");
    assert!(
        message.contains("no view 'c'; its views are a, b; use --add-view c to add this one"),
        "{message}"
    );
    let message = bad(3, "out --view a=new-b.tsv -o next");
    assert!(message.contains("none of its features is one of view 'a'"), "{message}");
    folder.file("wide.tsv", "id\tx\ty\tz\tw\nn1\t1\t2\t3\t4\n");
    folder.file("narrow.tsv", "id\tx\ty\nn1\t1\t2\n");
    let message = bad(3, "out --view a=narrow.tsv -o next");
    assert!(message.contains("feature 'z' is missing"), "{message}");
    // An additional feature is ignored, as in `predict`.
    folder.good("update out --view a=wide.tsv -o wide -q");
    folder.file("empty.tsv", "id\tx\ty\tz\nn1\t\t\t\n");
    let message = bad(3, "out --view a=empty.tsv -o next");
    assert!(message.contains("no instance") || message.contains("no row"), "{message}");
    let message = bad(2, "out --view a=new-a.tsv --add-view a -o next");
    assert!(message.contains("the model already has this view"), "{message}");
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../daimc/tests/data/version-1.safetensors");
    folder.file("any.tsv", "id\tx\nn1\t1\n");
    let message = bad(3, &format!("{old} --view any=any.tsv --add-view any -o next"));
    assert!(message.contains("written by an earlier version"), "{message}");
    // A fit with damaged instances is not treated as a model without instances: their IDs could be repeated.
    let damaged = std::fs::read(folder.path("out/model.safetensors")).unwrap();
    let at = damaged.windows(8).position(|some| some == b"\"latent\"").unwrap();
    let damaged = [&damaged[..at], &b"\"latend\""[..], &damaged[at + 8..]].concat();
    folder.file("damaged.safetensors", damaged);
    let message = bad(3, "damaged.safetensors --view a=new-a.tsv -o next");
    assert!(message.contains("latent"), "{message}");
    assert!(folder.list("next").is_empty());
}

#[test]
fn a_new_view_is_added_with_leave_and_a_missing_instance_is_a_row_without_values() {
    let folder = fitted();
    let gap = folder
        .text("new-a.tsv")
        .replace("s41\t", "s41\t\t\t\n#")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .fold(String::new(), |text, line| text + line + "\n");
    folder.file("new-a.tsv", gap);
    folder.file("new-c.tsv", folder.text("new-b.tsv").replace("p\tq", "r\ts"));
    let text = folder.good("update out --view a=new-a.tsv --view c=new-c.tsv --add-view c -o next -q");
    assert!(text.contains("View 'c' was added"), "{text}");
    assert_eq!(folder.labels("next/labels.tsv").len(), 20);
    // Now this view is sufficient.
    folder.good("predict next --view c=new-c.tsv -o c.tsv -q");
    let (c, known) = (folder.labels("c.tsv"), folder.labels("out/labels.tsv"));
    assert!(c.iter().all(|(id, own)| *own == known[&format!("s{}", id[1..].parse::<usize>().unwrap() % 2)]));
}

#[test]
fn an_update_that_is_killed_leaves_the_old_model_or_the_new_one() {
    let folder = fitted();
    let arguments = "update out --view a=new-a.tsv --view b=new-b.tsv -o out --force -q";
    let old = std::fs::read(folder.path("out/model.safetensors")).unwrap();
    folder.good("update out --view a=new-a.tsv --view b=new-b.tsv -o new -q");
    let new = std::fs::read(folder.path("new/model.safetensors")).unwrap();
    let timings = |bytes: &[u8]| daimc::Fit::from_bytes(bytes).unwrap().model;
    let (mut before, mut after) = (0, 0);
    for kill in 0..24_u64 {
        std::fs::write(folder.path("out/model.safetensors"), &old).unwrap();
        let mut process = Command::new(assert_cmd::cargo::cargo_bin("daimc"))
            .current_dir(folder.path(""))
            .args(arguments.split(' '))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(7 * kill));
        // SIGKILL; it may have ended by itself.
        let _ = process.kill();
        process.wait().unwrap();
        folder.good("predict out --view a=a.tsv -q -o placed.tsv");
        let now = std::fs::read(folder.path("out/model.safetensors")).unwrap();
        if now == old {
            before += 1;
        } else {
            assert_eq!(timings(&now), timings(&new), "kill {kill}");
            after += 1;
        }
    }
    println!("{before} old, {after} new");
    assert!(before > 0);
}

#[test]
fn one_pass_in_batches_places_all_instances() {
    let folder = Folder::new();
    more(&folder, "", 0, 400);
    let mut truth = String::from("id\tclass\n");
    (0..400).for_each(|i| writeln!(truth, "s{i}\t{}", i % 2).unwrap());
    folder.file("truth.tsv", truth);
    let fit = "fit --view a=a.tsv --view b=b.tsv -k 2";
    let text = folder.good(&format!("{fit} --online --batch 100 --truth truth.tsv -o out"));
    assert!(text.contains("Learnt from 400 instances in 4 batches, and assigned all"), "{text}");
    assert!(text.contains("AC"), "{text}");
    assert_eq!(folder.list("out"), ["features.tsv", "labels.tsv", "model.safetensors", "summary.json"]);
    assert_eq!(folder.labels("out/labels.tsv").len(), 400);
    let summary = folder.json("out/summary.json");
    assert_eq!((&summary["batches"], &summary["metrics"]["ac"]), (&4.into(), &1.0.into()), "{summary}");
    // Rows on disk are read batch by batch, with the same result.
    folder.good(&format!("{fit} --online --batch 100 --memory 40KB -o disk -q"));
    assert_eq!(folder.text("disk/labels.tsv"), folder.text("out/labels.tsv"));
    let message = folder.bad(3, "report out");
    assert!(message.contains("has learnt batch by batch"), "{message}");
    // The model can be updated again.
    more(&folder, "new-", 400, 20);
    folder.good("update out --view a=new-a.tsv -o next -q");
    let message = folder.bad(2, &format!("{fit} --batch 100 -o x"));
    assert!(message.contains("--batch belongs to --online"), "{message}");
    let message = folder.bad(2, &format!("{fit} --online --embedding npy -o x"));
    assert!(message.contains("--online writes only labels.tsv"), "{message}");
    let message = folder.bad(2, &format!("{fit} --online --batch 1 -o x"));
    assert!(message.contains("--batch 1: must be at least the number of clusters, 2"), "{message}");
}
