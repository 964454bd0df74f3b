//! New instances, and commands on a finished fit.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::common::Folder;

const VIEWS: [&str; 5] = ["fac", "fou", "kar", "pix", "zer"];

/// A table without the rows for which `keep` is false.
fn rows(table: &str, mut keep: impl FnMut(usize) -> bool) -> String {
    let mut lines = table.lines();
    let mut out = format!("{}\n", lines.next().unwrap());
    for line in lines {
        if keep(line.split('\t').next().unwrap().parse().unwrap()) {
            writeln!(out, "{line}").unwrap();
        }
    }
    out
}

/// The share of instances in the majority cluster of their digit.
fn accuracy(labels: &BTreeMap<String, usize>, of_cluster: &BTreeMap<usize, usize>) -> f64 {
    let right = |(id, cluster): (&String, &usize)| {
        of_cluster.get(cluster) == Some(&(id.parse::<usize>().unwrap() / 200))
    };
    labels.iter().filter(|(id, cluster)| right((id, cluster))).count() as f64 / labels.len() as f64
}

fn is_held_out(id: usize) -> bool {
    id.is_multiple_of(5)
}

#[test]
fn held_out_instances_with_one_view_are_assigned_as_well_as_fitted_ones_with_one_view() {
    let folder = Folder::digit();
    let mut args = String::new();
    for view in VIEWS {
        let table = folder.text(&format!("{view}.tsv"));
        folder.file(&format!("train-{view}.tsv"), rows(&table, |id| !is_held_out(id)));
        write!(args, " --view {view}=train-{view}.tsv").unwrap();
    }
    folder.good(&format!("simulate{args} --missing 0.5 --seed 1 -o gaps"));
    let args: String =
        VIEWS.iter().fold(String::new(), |args, view| args + &format!(" --view gaps/{view}.tsv"));
    // Labels from rows of V are equally accurate for both.
    let (fitted, alone) = one_view(&folder, &format!("fit{args} -k 10 --neighbours off -o off -q"), "off");
    assert!((fitted - alone).abs() <= 0.05 || alone > fitted, "{fitted} {alone}");
    // Neighbourhoods improve the fitted instances; new ones, assigned by their own values, must not get worse.
    let (_, held_out) = one_view(&folder, &format!("fit{args} -k 10 -o out -q"), "out");
    assert!(held_out > alone - 0.02, "{held_out} {alone}");
}

/// Fits, and returns the accuracy of fitted instances present in one view only, and of held-out ones with one view.
fn one_view(folder: &Folder, fit: &str, out: &str) -> (f64, f64) {
    folder.good(fit);
    let fitted = folder.labels(&format!("{out}/labels.tsv"));
    assert_eq!(fitted.len(), 1600);

    // The digit of each cluster, by majority among the fitted.
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (id, cluster) in &fitted {
        *counts.entry((*cluster, id.parse::<usize>().unwrap() / 200)).or_default() += 1;
    }
    let majority = |cluster: usize| {
        let own = counts.iter().filter(|((of, _), _)| *of == cluster);
        own.max_by_key(|(_, count)| **count).map(|((_, digit), _)| *digit)
    };
    let of_cluster: BTreeMap<usize, usize> = (0..10).filter_map(|c| Some((c, majority(c)?))).collect();

    // Fitted instances present in one view only, and held-out instances with one view, view by view.
    let mask = folder.text("gaps/mask.tsv");
    let (mut fitted_right, mut fitted_count, mut held_right, mut held_count) = (0.0, 0.0, 0.0, 0.0);
    for (v, view) in VIEWS.iter().enumerate() {
        let alone: BTreeMap<String, usize> = mask
            .lines()
            .skip(1)
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .filter(|line| (0..5).all(|other| (line[other + 1] == "1") == (other == v)))
            .map(|line| (line[0].to_owned(), fitted[line[0]]))
            .collect();
        let table = folder.text(&format!("{view}.tsv"));
        folder.file("new.tsv", rows(&table, is_held_out));
        folder.good(&format!("predict {out}/model.safetensors --view {view}=new.tsv -o {out}-{view}.tsv"));
        let new = folder.labels(&format!("{out}-{view}.tsv"));
        assert_eq!(new.len(), 400);
        // All views have equal weight.
        (fitted_right, fitted_count) = (fitted_right + accuracy(&alone, &of_cluster), fitted_count + 1.0);
        (held_right, held_count) = (held_right + accuracy(&new, &of_cluster), held_count + 1.0);
    }
    let (fitted, held_out) = (fitted_right / fitted_count, held_right / held_count);
    println!("one view: fitted AC {fitted:.3}, held out {held_out:.3}");
    (fitted, held_out)
}

#[test]
fn predicting_the_fitted_instances_gives_their_clusters() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    let text = folder.good("predict out/model.safetensors --view a=a.tsv --view b=b.csv");
    folder.file("again.tsv", &text);
    assert_eq!(folder.labels("again.tsv"), folder.labels("out/labels.tsv"));
    let json = folder.good("predict out/model.safetensors --view b=b.csv --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 10);
    assert_eq!(json[0]["id"], "s2");
}

#[test]
fn predict_writes_the_contribution_of_each_view() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    // Fitted instances get their labels of the fit.
    folder.good("predict out --view b=b.csv --view a=a.tsv --contributions again.tsv -o labels.tsv");
    let sorted = |name: &str| {
        let mut lines: Vec<String> = folder.text(name).lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("again.tsv"), sorted("out/contributions.tsv"));
    folder.good("predict out --view b=b.csv --contributions one.tsv -o labels.tsv");
    let one = folder.text("one.tsv");
    assert!(one.starts_with("id\tcluster\trival\ta\tb\n"), "{one}");
    assert!(one.lines().skip(1).all(|line| line.ends_with("\t\t1.0000")), "{one}");
    let message = folder.bad(2, "predict out --view b=b.csv --contributions b.csv");
    assert!(message.contains("this is an input file"), "{message}");
    let message = folder.bad(2, "predict out --view b=b.csv --contributions x.tsv -o x.tsv");
    assert!(message.contains("the same file"), "{message}");
}

#[test]
fn new_instances_may_be_in_one_view_only() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    folder.file("new.csv", "name,p,q\nn1,9.8,0.2\nn2,0.3,4.9\n");
    let text = folder.good("predict out --view a=a.tsv --view b=new.csv -q");
    folder.file("found.tsv", &text);
    let (found, fitted) = (folder.labels("found.tsv"), folder.labels("out/labels.tsv"));
    assert_eq!(found.len(), 14);
    assert_eq!((found["n1"], found["n2"]), (fitted["s0"], fitted["s1"]));
}

#[test]
fn features_are_put_into_the_order_of_the_model_by_name() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv -k 2 -o out");
    let table = folder.text("a.tsv");
    let turned = table.lines().enumerate().map(|(i, line)| {
        let f: Vec<&str> = line.split('\t').collect();
        format!("{}\t{}\t{}\t{}\t{}\n", f[0], f[3], if i == 0 { "more" } else { "7" }, f[1], f[2])
    });
    folder.file("turned.tsv", turned.collect::<String>());
    let plain = folder.good("predict out --view a=a.tsv -q");
    assert_eq!(folder.good("predict out --view a=turned.tsv -q"), plain);
}

#[test]
fn results_can_be_used_from_another_folder_and_changed_files_are_noticed() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out --truth truth.csv");
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let there = |arguments: &str| {
        let mut command = assert_cmd::Command::cargo_bin("daimc").unwrap();
        command.current_dir(folder.path("elsewhere")).args(arguments.split(' ')).output().unwrap()
    };
    assert!(there("report ../out").status.success());
    assert!(there("fit --config ../out/summary.json -o again").status.success());
    assert_eq!(folder.text("elsewhere/again/labels.tsv"), folder.text("out/labels.tsv"));
    folder.file("a.tsv", folder.text("a.tsv").replace("s0\t", "s00\t"));
    let output = there("fit --config ../out/summary.json -o third");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("a.tsv has changed since"));
}

#[test]
fn evaluation_joins_by_id_and_reports_instances_without_a_class() {
    let folder = Folder::new();
    folder.file("labels.tsv", "id\tcluster\tconfidence\na\t0\t1\nb\t0\t1\nc\t1\t1\nd\t1\t0.5\n");
    folder.file("truth.csv", "name,kind\nd,cat\na,dog\nc,cat\nb,dog\n");
    let text = folder.good("evaluate labels.tsv --truth truth.csv");
    assert_eq!(text.matches("1.0000").count(), 7, "{text}");
    folder.file("truth.csv", "name,kind\nd,cat\na,dog\nc,NA\n");
    let output = folder.run("evaluate labels.tsv --truth truth.csv --json");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["instances"].as_u64(), json["ac"].as_f64()), (Some(2), Some(1.0)));
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 of 4 instances have no class"));
}

#[test]
fn a_report_can_be_made_again_with_a_truth() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    let before = folder.text("out/report.html");
    folder.good("report out -o same.html");
    // Only the provenance, which holds the time it took to write, may differ.
    let charts = |page: &str| page.split("<section id=provenance").next().unwrap().to_owned();
    assert!(charts(&folder.text("same.html")) == charts(&before));
    folder.good("report out --truth truth.csv");
    assert!(charts(&folder.text("out/report.html")) != charts(&before));
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(folder.good(&format!("completions {shell}")).contains("simulate"));
    }
    let manual = folder.good("man");
    for command in ["demo", "fit", "inspect", "predict", "impute", "evaluate", "simulate", "report"] {
        assert!(manual.contains(command), "{command}");
    }
    assert!(folder.good("man fit").contains("max\\-iter"));
}
