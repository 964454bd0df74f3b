//! The results of a fit, and its reproducibility.

use crate::common::{Folder, python};

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -k 2 -o out";
const FILES: [&str; 8] = [
    "contributions.tsv",
    "embedding.tsv",
    "features.tsv",
    "labels.tsv",
    "map.tsv",
    "model.safetensors",
    "report.html",
    "summary.json",
];

#[test]
fn a_fit_writes_the_promised_files_and_nothing_else() {
    let folder = Folder::small();
    let output = folder.run(&format!("{FIT} --truth truth.csv"));
    assert!(output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("12 instances in 2 views, 10 in every view"), "{message}");
    assert_eq!(folder.list("out"), FILES);
    assert_eq!(folder.list("."), ["a.tsv", "b.csv", "out", "truth.csv"]);

    let labels = folder.labels("out/labels.tsv");
    assert_eq!(labels.len(), 12);
    assert!((0..12).all(|i| labels[&format!("s{i}")] == labels[&format!("s{}", i % 2)]), "{labels:?}");

    let embedding = folder.text("out/embedding.tsv");
    assert_eq!(embedding.lines().next(), Some("id\tv1\tv2"));
    assert_eq!(embedding.lines().count(), 13);
    let map = folder.text("out/map.tsv");
    assert_eq!(map.lines().next(), Some("id\tx\ty"));
    let ids = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&map), ids(&embedding));
    let features = folder.text("out/features.tsv");
    assert_eq!(features.lines().next(), Some("view\tfeature\tcluster\tweight\tstability"));
    assert_eq!(features.lines().count(), 1 + 2 * (3 + 2));
    assert!(features.lines().any(|line| line.starts_with("b\tq\t1\t")), "{features}");
    assert!(features.lines().skip(1).all(|line| line.ends_with('\t')), "one run has no stability");
    assert!(folder.text("out/report.html").contains("s11"));

    let contributions = folder.text("out/contributions.tsv");
    let rows: Vec<Vec<&str>> = contributions.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["id", "cluster", "rival", "a", "b"]);
    assert_eq!(rows.len(), 13);
    for row in &rows[1..] {
        assert_eq!(row[1].parse::<usize>().unwrap(), labels[row[0]]);
        assert_eq!(row[2].parse::<usize>().unwrap(), 1 - labels[row[0]]);
        // The groups are obvious in both views; b.csv lacks the first two instances.
        assert!((0.0..=1.0).contains(&row[3].parse::<f64>().unwrap()), "{row:?}");
        assert_eq!(row[4].is_empty(), ["s0", "s1"].contains(&row[0]), "{row:?}");
        assert!(row[4].is_empty() || row[4].parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
}

#[test]
fn several_runs_report_the_stability_of_features() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} --runs 4"));
    let features = folder.text("out/features.tsv");
    let rows: Vec<Vec<&str>> = features.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let stability = |view: &str, feature: &str, cluster: &str| -> f64 {
        let row = rows.iter().find(|row| row[..3] == [view, feature, cluster]).unwrap();
        row[4].parse().unwrap()
    };
    // Of x, y and z two lead; z is the same in both groups.
    for cluster in ["0", "1"] {
        let [x, y, z] = ["x", "y", "z"].map(|feature| stability("a", feature, cluster));
        assert!(x + y + z <= 2.0 && x > z && y > z, "{features}");
    }
    assert!(folder.text("out/report.html").contains("of the 4 runs"));
}

#[test]
fn the_summary_reproduces_the_fit() {
    let folder = Folder::small();
    let printed =
        folder.good(&format!("{FIT} --truth truth.csv --seed 5 --alpha 1 --scale a=min-max --json"));
    let summary = folder.json("out/summary.json");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), summary);
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&summary["seed"], &summary["options"]["alpha"]), (&5.into(), &1.0.into()));
    assert_eq!(summary["inputs"][1]["shape"], serde_json::json!([10, 2]));
    assert_eq!(summary["inputs"][0]["path"], "a.tsv");
    assert_eq!(summary["inputs"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(summary["converged"], true);
    assert_eq!(summary["interrupted"], false);
    assert!(summary["iterations"].as_u64().unwrap() > 0 && summary["objective"].as_f64().unwrap() > 0.0);
    for part in ["read", "prepare", "initialise", "iterate", "assign", "neighbours", "map", "assess", "write"]
    {
        assert!(summary["timings"][part].as_f64().unwrap() >= 0.0, "{part}");
    }
    for name in ["ac", "nmi", "nmi_max", "nmi_sqrt", "ari", "purity", "f"] {
        assert_eq!(summary["metrics"][name].as_f64().unwrap(), 1.0, "{name}");
    }
    assert_eq!(summary["scaling"]["a"]["scale"], "min-max");
    if cfg!(target_os = "linux") {
        assert!(summary["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn a_configuration_or_a_summary_repeats_a_fit() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} --seed 5 --beta 2 --max-iter 7 --scale unit --scale b=none --runs 2"));
    folder.file(
        "run.toml",
        "view = ['a=a.tsv', 'b=b.csv']\nk = 2\nseed = 5\nbeta = 2\nmax-iter = 7\nscale = ['unit', 'b=none']\nruns = 2\n",
    );
    folder.good("fit --config run.toml -o again");
    folder.good("fit --config out/summary.json -o third");
    for file in ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv"] {
        assert_eq!(folder.text(&format!("again/{file}")), folder.text(&format!("out/{file}")));
        assert_eq!(folder.text(&format!("third/{file}")), folder.text(&format!("out/{file}")));
    }
    // The command line comes first.
    folder.good("fit --config run.toml --max-iter 3 --tol 0 -o fourth");
    assert_eq!(folder.json("fourth/summary.json")["iterations"], 3);
    assert_eq!(folder.json("fourth/summary.json")["options"]["beta"], 2.0);

    folder.good("fit --config run.toml --preset paper -o plain");
    assert!(folder.json("plain/summary.json")["reproducibility"].is_null());
    folder.good("fit --config plain/summary.json --assess -o assessed");
    assert!(folder.json("assessed/summary.json")["reproducibility"].is_number());
    assert_eq!(folder.text("assessed/embedding.tsv"), folder.text("plain/embedding.tsv"));
    folder.good("fit --config assessed/summary.json --no-assess -o again --force");
    assert!(folder.json("again/summary.json")["reproducibility"].is_null());

    folder.file("wrong.toml", "k = 2\nalhpa = 3\n");
    assert!(folder.bad(2, "fit --config wrong.toml -o x").contains("no option 'alhpa'"));
    folder.file("wrong.toml", "k = 'two'\n");
    assert!(folder.bad(2, "fit --config wrong.toml -o x").contains("wrong.toml"));
    folder.file("wrong.toml", "output = 'x'\n");
    assert!(folder.bad(2, "fit --config wrong.toml -o x").contains("command line"));
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone_unless_forced() {
    let folder = Folder::small();
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.good(FIT);
    folder.file("out/mine.txt", "keep");
    assert!(folder.bad(2, FIT).contains("--force"));
    folder.good(&format!("{FIT} --force --seed 3"));
    assert_eq!(folder.text("out/mine.txt"), "keep");
    assert_eq!(folder.json("out/summary.json")["seed"], 3);
    assert!(folder.bad(2, "fit --view a=a.tsv -k 2 -o a.tsv").contains("where a folder is needed"));
}

#[test]
fn quiet_is_quiet_and_a_pipe_gets_data_only() {
    let folder = Folder::small();
    let output = folder.run(&format!("{FIT} -q --json"));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());
    let output = folder.run(&format!("{FIT} --force -v"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("iteration 1: J = ") && message.contains("a: scaled by"), "{message}");
}

#[test]
fn threads_do_not_change_the_labels() {
    let folder = Folder::digit();
    folder.good("simulate --view fac.tsv --view zer.tsv --view kar.tsv --missing 0.4 -o m");
    let fit = "fit --view m/fac.tsv --view m/zer.tsv --view m/kar.tsv -k 10 -q";
    folder.good(&format!("{fit} -o one --threads 1"));
    folder.good(&format!("{fit} -o four --threads 4"));
    for file in
        ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv", "model.safetensors"]
    {
        let read = |run: &str| std::fs::read(folder.path(&format!("{run}/{file}"))).unwrap();
        // The model also holds its timings.
        assert!(file == "model.safetensors" || read("one") == read("four"), "{file}");
    }
}

#[test]
fn a_mask_hides_what_copies_lack() {
    let folder = Folder::digit();
    let views = "--view fac.tsv --view fou.tsv --view pix.tsv";
    folder.good(&format!("simulate {views} --missing 0.3 --seed 4 -o m"));
    let mask = folder.text("m/mask.tsv");
    assert_eq!(mask.lines().next(), Some("id\tfac\tfou\tpix"));
    assert_eq!(mask.lines().skip(1).filter(|line| line.split('\t').nth(2) == Some("0")).count(), 600);
    assert_eq!(folder.text("m/fou.tsv").lines().count(), 1401);
    let masked: serde_json::Value =
        serde_json::from_str(&folder.good(&format!("inspect {views} --mask m/mask.tsv --json"))).unwrap();
    let copied: serde_json::Value = serde_json::from_str(
        &folder.good("inspect --view m/fac.tsv --view m/fou.tsv --view m/pix.tsv --json"),
    )
    .unwrap();
    assert_eq!(masked["combinations"], copied["combinations"]);
    assert_eq!(masked["instances"], 2000);
    let estimate = &masked["estimate"];
    let [all, neighbours] =
        [&estimate["seconds"], &estimate["neighbours"]["seconds"]].map(|s| s.as_f64().unwrap());
    assert_eq!(estimate["neighbours"]["included"], true);
    assert!(all > neighbours && neighbours > 0.0, "{estimate}");
    // The same seed removes the same instances.
    folder.good(&format!("simulate {views} --missing 0.3 --seed 4 -o n"));
    assert_eq!(folder.text("n/mask.tsv"), mask);
}

#[test]
fn every_format_gives_the_same_labels_byte_for_byte() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/round_trip.py");
    let status = std::process::Command::new(python).arg(script).arg(folder.path("")).status().unwrap();
    assert!(status.success());
    let views = |end: &str| format!("--view a=a{end} --view b=b{end}");
    let forms = [
        ("csv", views(".csv")),
        ("tsv", views(".tsv.gz")),
        ("zst", views(".csv.zst")),
        ("npy", views(".npy")),
        ("npz", "--view a=both.npz::a --view b=both.npz::b".into()),
        ("mat", "--view a=both.mat::X{1} --view b=both.mat::X{2}".into()),
        ("mtx", views(".mtx")),
        ("parquet", views(".parquet")),
        ("sparse", "--view a=a.sparse.npz --view b=b.sparse.mtx".into()),
    ];
    let mut first: Option<String> = None;
    for (name, views) in forms {
        folder.good(&format!("fit {views} -k 3 --scale unit -o out-{name} -q"));
        let labels = folder.text(&format!("out-{name}/labels.tsv"));
        // A sparse view adds up its products in another order: the clusters are the same, not the last digits.
        if name == "sparse" {
            let clusters = |text: &str| {
                text.lines().map(|line| line.split('\t').take(2).collect::<String>()).collect::<Vec<_>>()
            };
            assert_eq!(first.as_deref().map(clusters), Some(clusters(&labels)));
        } else {
            assert_eq!(*first.get_or_insert_with(|| labels.clone()), labels, "{name}");
        }
    }
}

#[test]
fn oddities_of_a_result_are_reported() {
    let folder = Folder::small();
    let message = |arguments: &str| {
        let output = folder.run(arguments);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    folder.file("flat.csv", "id,x,y\na,1,1\nb,1,1\nc,1,1\nd,1,1\ne,1,1\n");
    assert!(message("fit --view flat.csv -k 3 -o flat").contains("2 of 3 clusters are empty"));
    folder.file("some.csv", "id,class\ns0,a\ns1,b\ns2,a\n");
    assert!(message(&format!("{FIT} --truth some.csv")).contains("9 of 12 instances have no class"));
    // A single feature is not scaled to rows of length 1.
    folder.file("one.csv", "id,x\na,1\nb,1.1\nc,9\nd,9.1\n");
    folder.good("fit --view one.csv -k 2 -o one");
    let labels = folder.labels("one/labels.tsv");
    assert!(
        labels["a"] == labels["b"] && labels["c"] == labels["d"] && labels["a"] != labels["c"],
        "{labels:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_found_before_the_work() {
    let folder = Folder::small();
    // The folder cannot be created; the data are not read.
    let message = folder.bad(1, "fit --view a=nowhere.tsv -k 2 -o /proc/out");
    assert!(message.starts_with("/proc/out cannot be written"), "{message}");
}
