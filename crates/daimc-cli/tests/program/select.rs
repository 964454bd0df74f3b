//! `select`, noise views and the selection of features.

use std::fmt::Write;

use crate::common::Folder;

/// Two views of 90 instances in three groups; b.tsv lacks every fifth. noise.tsv is complete and uninformative.
fn data() -> Folder {
    let folder = Folder::new();
    let mut texts = [String::from("id"), String::from("id"), String::from("id")];
    for (text, features) in texts.iter_mut().zip([6, 4, 8]) {
        (0..features).for_each(|f| write!(text, "\tf{f}").unwrap());
    }
    // A linear congruential generator: the same noise on all platforms.
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    for i in 0..90_usize {
        let group = i % 3;
        for (v, (text, features)) in texts.iter_mut().zip([6, 4, 8]).enumerate() {
            if v == 1 && i % 5 == 0 {
                continue;
            }
            write!(text, "\ni{i}").unwrap();
            for f in 0..features {
                let centre = if f * 3 / features == group { 4.0 } else { 0.5 };
                let value = if v == 2 { noise() - 0.5 } else { centre + noise() };
                write!(text, "\t{value}").unwrap();
            }
        }
    }
    for (name, text) in ["a.tsv", "b.tsv", "noise.tsv"].into_iter().zip(texts) {
        folder.file(name, text + "\n");
    }
    folder
}

const VIEWS: &str = "--view a.tsv --view b.tsv";

#[test]
fn select_recommends_a_number_with_a_table_and_plots() {
    let folder = data();
    let printed = folder.good(&format!("select {VIEWS} -k 2..5 --resamples 4 -o out"));
    assert!(printed.contains("Recommended: 3 clusters"), "{printed}");
    assert_eq!(folder.list("out"), ["select.html", "selection.tsv"]);
    let table = folder.text("out/selection.tsv");
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.lines().all(|line| line.split('\t').count() == 8), "{table}");
    let page = folder.text("out/select.html");
    assert_eq!(page.matches("<figure ").count(), 3);
    assert!(page.contains("<h1>3 clusters</h1>") && !page.contains("http://") && !page.contains("NaN"));
    assert!(folder.bad(2, &format!("select {VIEWS} -k 2..5 -o out")).contains("out"));
}

#[test]
fn a_recommendation_at_the_end_of_the_range_says_so() {
    let folder = data();
    let printed = folder.good("select --view a.tsv --view b.tsv -k 2..3 --resamples 3 --json -q");
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(found["recommended"], 3);
    assert!(found["reason"].as_str().unwrap().contains("try more"), "{printed}");
}

#[test]
fn select_prints_json_and_works_with_one_view() {
    let folder = data();
    let printed = folder.good("select --view a.tsv -k 2..4 --resamples 3 --json -q");
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(found["recommended"], 3);
    assert_eq!(found["candidates"].as_array().unwrap().len(), 3);
    assert!(found["candidates"][0]["explained"].is_null(), "{printed}");
    assert!(found["reason"].as_str().unwrap().contains("stability alone"), "{printed}");
}

#[test]
fn select_rejects_invalid_options() {
    let folder = data();
    for (k, message) in [("5", "2..12"), ("1..4", "at least 2"), ("4..3", "larger"), ("2..x", "not a number")]
    {
        let output = folder.run(&format!("select {VIEWS} -k {k}"));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(message), "{k}: {errors}");
    }
    assert!(folder.bad(3, &format!("select {VIEWS} -k 2..200")).contains("90"));
    assert!(folder.bad(2, &format!("select {VIEWS} -k 2..4 --resamples 1")).contains("resamples"));
    assert!(folder.bad(2, &format!("select {VIEWS} -k 2..4 --hidden 7")).contains("hidden"));
}

#[test]
fn a_view_of_noise_is_reported_and_has_little_weight() {
    let folder = data();
    let fit = format!("fit {VIEWS} --view noise.tsv -k 3 -o out --view-weights learned");
    let output = folder.run(&fit);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("noise: weight 1.0e-6"), "{message}");
    assert_eq!(folder.json("out/summary.json")["resolved"]["view_weights"], "learned");
}

#[test]
fn a_relative_penalty_leaves_features_out_and_auto_takes_no_weights() {
    let folder = data();
    let fit = format!("fit {VIEWS} -k 3 -o out --penalty");
    let output = folder.run(&format!("{fit} relative --beta 1"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("a: 0 of 6"), "{message}");
    assert!(folder.bad(2, &format!("{fit} auto --alpha 1 --force")).contains("--alpha"));
    folder.good(&format!("{fit} auto --force"));
    let resolved = &folder.json("out/summary.json")["resolved"];
    assert_eq!(resolved["penalty"], "relative");
}
