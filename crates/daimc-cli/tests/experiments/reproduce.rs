//! The experiments of the paper, on the embedded Digit data, and on 3Sources if it is available.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::common::{Folder, skip};

const HEADER: &str =
    "experiment\tdata\trate\tmethod\tsetting\tseed\tac\tnmi\tari\tseconds\titerations\tconfidence";

/// The rows of a results.tsv, each as its fields.
pub fn rows(folder: &Folder, name: &str) -> Vec<Vec<String>> {
    let text = folder.text(name);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    lines.map(|line| line.split('\t').map(String::from).collect()).collect()
}

/// The key of a run.
fn key(row: &[String]) -> String {
    row[..6].join("\t")
}

pub fn number(row: &[String], column: usize) -> f64 {
    row[column].parse().unwrap()
}

#[test]
fn figure_1_of_digit_has_a_row_per_run_a_table_plots_and_a_page() {
    let folder = Folder::new();
    let printed = folder.good("reproduce digit --methods daimc,opimc --seeds 2 -o out");
    let rows = rows(&folder, "out/results.tsv");
    assert_eq!(rows.len(), 6 * 2 * 2);
    assert_eq!(rows.iter().map(|row| key(row)).collect::<HashSet<_>>().len(), rows.len());
    for row in &rows {
        assert_eq!((row[0].as_str(), row[1].as_str(), row[4].as_str()), ("digit", "digit", "default"));
        assert!((6..=8).all(|score| (0.0..=1.0).contains(&number(row, score))), "{row:?}");
        assert!(number(row, 9) > 0.0 && number(row, 10) >= 1.0, "{row:?}");
    }
    let easy = rows.iter().filter(|row| row[2] == "0" && row[3] == "daimc");
    assert!(easy.map(|row| number(row, 6)).all(|ac| ac > 0.75), "{rows:?}");
    let table = folder.text("out/table.md");
    assert!(printed.starts_with(&table), "{printed}");
    for start in ["| missing | method | AC fixed | NMI fixed |", "| 0 | daimc |", "| 0.5 | opimc |"] {
        assert!(table.lines().any(|line| line.starts_with(start)), "{start}\n{table}");
    }
    // Without a search there is no best setting.
    assert!(!table.contains("best of grid | setting"), "{table}");
    let page = folder.text("out/reproduce.html");
    assert_eq!(page.matches("<figure ").count(), 2);
    assert!(!page.contains("http://") && !page.contains("https://"));
    let plot = folder.text("out/digit-nmi-fixed.svg");
    assert!(plot.contains("xmlns=") && plot.matches("<circle").count() == 12, "{plot}");
}

#[test]
fn fixed_and_best_of_grid_have_separate_columns() {
    let folder = Folder::new();
    folder.file("grid.toml", "[opimc]\nalpha = [1e-3, 10]\nblock = [250]\n");
    let search = "reproduce digit --methods opimc --seeds 1 --search --grid grid.toml -o out";
    folder.good(search);
    let rows = rows(&folder, "out/results.tsv");
    let settings: HashSet<&str> = rows.iter().map(|row| row[4].as_str()).collect();
    assert_eq!(settings, ["default", "alpha=0.001 block=250", "alpha=10 block=250"].into());
    let table = folder.text("out/table.md");
    let header =
        "| AC fixed | NMI fixed | ARI fixed | AC best of grid | NMI best of grid | setting, by the classes |";
    assert!(table.contains(header), "{table}");
    // At each share the fixed column is the run of the fixed setting, the other the better of the two of the grid.
    for rate in ["0", "0.1", "0.2", "0.3", "0.4", "0.5"] {
        let at = |grid: bool| {
            let own = rows.iter().filter(|row| row[2] == rate && (row[4] != "default") == grid);
            own.map(|row| number(row, 6)).fold(0.0, f64::max)
        };
        let line = table.lines().find(|line| line.starts_with(&format!("| {rate} | opimc"))).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(cells[3].starts_with(&format!("{:.3}", at(false))), "{line}");
        assert!(cells[6].starts_with(&format!("{:.3}", at(true))), "{line}");
        assert!(cells[8].ends_with("(best of 2)"), "{line}");
    }
}

#[test]
fn finished_runs_are_not_repeated() {
    let folder = Folder::new();
    let command = "reproduce beta --methods daimc-plain --seeds 1 -o out";
    folder.good(command);
    let before = folder.text("out/results.tsv");
    assert_eq!(before.lines().count(), 1 + 2 * 8);
    folder.good(command);
    assert_eq!(folder.text("out/results.tsv"), before);
    // After a kill while the last row was written, that run is repeated and the others are kept with their times.
    let end = before.trim_end().rfind('\n').unwrap();
    folder.file("out/results.tsv", &before[..end + 30]);
    folder.good(command);
    let after = folder.text("out/results.tsv");
    assert_eq!(&after[..=end], &before[..=end]);
    let without_time = |row: &str| row.trim_end().split('\t').take(9).collect::<Vec<_>>().join("\t");
    assert_eq!(without_time(&after[end + 1..]), without_time(&before[end + 1..]));
    // Another experiment, or another scaling, needs another folder.
    assert!(folder.bad(2, "reproduce alpha --seeds 1 -o out").contains("another folder"));
    assert!(folder.bad(2, &format!("{command} --scale unit")).contains("another folder"));
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let folder = Folder::new();
    let command = "reproduce alpha --methods daimc-paper --seeds 1";
    let found = |threads: usize| {
        folder.good(&format!("{command} --threads {threads} -o threads{threads}"));
        let mut rows = rows(&folder, &format!("threads{threads}/results.tsv"));
        rows.iter_mut().for_each(|row| drop(row.remove(9)));
        rows.sort();
        rows
    };
    assert_eq!(found(1), found(2));
}

#[test]
fn convergence_and_the_grid_have_their_tables() {
    let folder = Folder::new();
    folder.good("reproduce convergence --methods daimc-paper --seeds 1 -o convergence");
    let nmi = rows(&folder, "convergence/results.tsv");
    assert_eq!(nmi.len(), 50);
    assert!(nmi.iter().all(|row| row[2] == "0.4" && row[4] == format!("iteration {}", row[10])), "{nmi:?}");
    let objective = folder.text("convergence/objective.tsv");
    let values: Vec<f64> =
        objective.lines().skip(1).map(|line| line.split('\t').nth(3).unwrap().parse().unwrap()).collect();
    assert_eq!(values.len(), 50);
    assert!(values.iter().all(|value| value.is_finite() && *value > 0.0));

    folder.file("few.toml", "[daimc-plain]\nalpha = [1, 10]\nbeta = [0.1, 1]\n");
    folder.good("reproduce grid --methods daimc-plain --seeds 1 --grid few.toml -o grid");
    assert_eq!(rows(&folder, "grid/results.tsv").len(), 2 * 2 * 2);
    assert!(folder.text("grid/table.md").contains("highest NMI, by the classes"));
}

mod studies {
    use super::*;

    #[test]
    #[ignore = "a study: make test-all"]
    fn every_choice_of_views_has_a_row() {
        let folder = Folder::new();
        folder.good("reproduce views --methods daimc-plain --seeds 1 -o views");
        let chosen: HashSet<String> =
            rows(&folder, "views/results.tsv").into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(chosen.len(), 31);
        assert!(chosen.contains("digit:fac") && chosen.contains("digit:fac+fou+kar+pix+zer"), "{chosen:?}");
        let table = folder.text("views/table.md");
        assert!(
            ["| 1 | daimc-plain |", "| 5 | daimc-plain |"].iter().all(|line| table.contains(line)),
            "{table}"
        );
    }

    #[test]
    #[ignore = "a study: make test-all"]
    fn every_part_that_is_switched_has_a_row() {
        let folder = Folder::new();
        folder.good("reproduce ablation --methods daimc-plain --seeds 1 -o ablation");
        let switched: HashSet<String> =
            rows(&folder, "ablation/results.tsv").into_iter().map(|row| row[4].clone()).collect();
        assert_eq!(switched.len(), 13);
        for part in ["as it is", "no alignment of bases", "no alignment of instances", "start as published"] {
            assert!(switched.contains(part), "{switched:?}");
        }
    }
}

#[test]
fn inconsistent_options_are_errors() {
    let folder = Folder::new();
    let unknown = folder.bad(2, "reproduce digit --methods daimc,spectral -o out");
    assert!(unknown.contains("'spectral'") && unknown.contains("concatenation"), "{unknown}");
    assert!(
        folder.bad(2, "reproduce alpha --methods pvc -o out").contains("there are daimc-plain, daimc-paper")
    );
    assert!(folder.bad(2, "reproduce digit --seeds 0 -o out").contains("--seeds"));
    assert!(folder.bad(2, "reproduce alpha --search -o out").contains("--search is for 3sources"));
    assert!(folder.bad(2, "reproduce digit --grid grid.toml -o out").contains("--grid is for --search"));
    assert!(folder.bad(2, "reproduce ablation --scale unit -o out").contains("--scale"));
    assert!(folder.bad(2, "reproduce digit --sets digit -o out").contains("--sets is for panel"));
    folder.file("grid.toml", "[opimc]\nalfa = [1]\n");
    let wrong = folder.bad(2, "reproduce digit --search --grid grid.toml -o out");
    assert!(wrong.contains("grid.toml: opimc has no hyper-parameter 'alfa'"), "{wrong}");
    assert!(folder.list("out").is_empty());
}

#[test]
fn missing_data_are_named_with_the_expected_files() {
    let folder = Folder::new();
    let message = folder.bad(2, "reproduce 3sources -o out");
    assert!(message.contains("--data DIR") && message.contains("3sources.disjoint.clist"), "{message}");
    std::fs::create_dir_all(folder.path("data/wikipedia")).unwrap();
    for (experiment, file) in [
        ("3sources", "3sources/3sources_bbc.mtx"),
        ("wikipedia", "wikipedia/raw_features.mat"),
        ("flowers", "flowers17/flowers17_bow.npz"),
    ] {
        let message = folder.bad(3, &format!("reproduce {experiment} --data data -o out"));
        assert!(message.contains(file) && message.contains("must hold"), "{message}");
    }
    // Digit is part of the program; but a folder of that name must hold it.
    std::fs::create_dir_all(folder.path("data/digit")).unwrap();
    let message = folder.bad(3, "reproduce alpha --data data --seeds 1 -o out");
    assert!(message.contains("Handwritten.mat"), "{message}");
    assert!(folder.list("out").is_empty());
}

/// The folder of the data sets that are not part of the repository, if available.
pub fn shared() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !path.join("3sources").is_dir() {
        skip(&format!("{} is not there", path.join("3sources").display()));
        return None;
    }
    Some(path.canonicalize().unwrap())
}

#[test]
fn table_2_stands_beside_the_papers_figures() {
    let Some(data) = shared() else { return };
    let folder = Folder::new();
    let data = data.display();
    folder
        .good(&format!("reproduce 3sources --data {data} --methods daimc-paper,opimc,pvc --seeds 2 -o out"));
    let rows = rows(&folder, "out/results.tsv");
    let sets = ["bbc+guardian", "bbc+reuters", "guardian+reuters", "3sources"];
    for set in sets {
        let of = |method: &str| rows.iter().filter(|row| row[1] == set && row[3] == method).count();
        // The whole set has three pairs.
        assert_eq!(
            (of("daimc-paper"), of("opimc"), of("pvc")),
            (2, 2, if set == "3sources" { 6 } else { 2 })
        );
    }
    let table = folder.text("out/table.md");
    for figures in ["0.5399 | 0.4264", "0.5641 | 0.4482", "0.5124 | 0.3805", "0.5963 | 0.4733"] {
        assert!(table.contains(figures), "{figures}\n{table}");
    }
    assert!(table.contains("best of 3 †"), "{table}");
}

#[test]
fn the_files_of_digit_are_those_that_are_embedded() {
    let Some(data) = shared().filter(|data| data.join("digit").is_dir()) else { return };
    let folder = Folder::new();
    // At the fixed setting and with one scaling; with extreme settings, or between two scalings of
    // equal score, the last digits of the data change clusters.
    folder.file("grid.toml", "[daimc-plain]\nbeta = [0.1]\n");
    let command = "reproduce beta --methods daimc-plain --grid grid.toml --scale min-max-unit --seeds 2";
    folder.good(&format!("{command} -o embedded"));
    folder.good(&format!("{command} --data {} -o files", data.display()));
    let scores = |name: &str| -> Vec<f64> {
        let mut rows = rows(&folder, name);
        rows.sort_by_key(|row| key(row));
        assert_eq!(rows.len(), 4);
        rows.iter().map(|row| number(row, 7)).collect()
    };
    // The embedded values have fewer digits, so that single instances may change clusters.
    for (a, b) in scores("embedded/results.tsv").into_iter().zip(scores("files/results.tsv")) {
        assert!((a - b).abs() < 0.02, "{a} {b}");
    }
}

#[cfg(unix)]
mod stopped {
    use std::process::{Child, Command, ExitStatus, Stdio};
    use std::time::{Duration, Instant};

    use assert_cmd::cargo::CommandCargoExt;

    use super::*;

    const COMMAND: &str = "reproduce grid --methods daimc-paper --seeds 1 --grid grid.toml -o out";
    const RUNS: usize = 2 * 4 * 4;

    fn folder() -> Folder {
        let folder = Folder::new();
        let values = "[1e-2, 1e-1, 1, 10]";
        folder.file("grid.toml", format!("[daimc-paper]\nalpha = {values}\nbeta = {values}\n"));
        folder
    }

    /// Starts the experiment, waits until some runs are finished, and sends a signal.
    fn stop(folder: &Folder, signal: &str) -> (ExitStatus, String) {
        let mut command = Command::cargo_bin("daimc").unwrap();
        command.current_dir(folder.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.args(COMMAND.split(' ')).spawn().unwrap();
        let finished = || std::fs::read_to_string(folder.path("out/results.tsv")).unwrap_or_default();
        wait(&mut child, || finished().lines().count() > 3);
        let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(120), "the experiment goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        (child.wait().unwrap(), finished())
    }

    fn wait(child: &mut Child, ready: impl Fn() -> bool) {
        let start = Instant::now();
        while !ready() {
            assert!(child.try_wait().unwrap().is_none(), "the experiment ended too soon");
            assert!(start.elapsed() < Duration::from_secs(120), "nothing is finished");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Continues, and checks that no finished run was repeated: its row is present once, with its time.
    fn resume(folder: &Folder, before: &str) {
        let kept: Vec<&str> = before.lines().skip(1).filter(|line| line.split('\t').count() == 12).collect();
        assert!(kept.len() >= 3 && kept.len() < RUNS, "{} of {RUNS} runs were finished", kept.len());
        folder.good(COMMAND);
        let after = folder.text("out/results.tsv");
        // The last row may be truncated.
        for row in &kept[..kept.len() - 1] {
            assert_eq!(after.lines().filter(|line| line == row).count(), 1, "{row}");
        }
        let rows = rows(folder, "out/results.tsv");
        assert_eq!(rows.len(), RUNS);
        assert_eq!(rows.iter().map(|row| key(row)).collect::<HashSet<_>>().len(), RUNS);
    }

    #[test]
    fn ctrl_c_keeps_finished_runs_and_the_next_call_continues() {
        let folder = folder();
        let (status, before) = stop(&folder, "INT");
        assert_eq!(status.code(), Some(1));
        assert!(before.ends_with('\n'));
        assert!(folder.text("out/table.md").contains("| daimc-paper |"));
        resume(&folder, &before);
    }

    #[test]
    fn a_kill_in_the_middle_loses_no_finished_run() {
        let folder = folder();
        let (status, before) = stop(&folder, "KILL");
        assert_eq!(status.code(), None);
        resume(&folder, &before);
    }
}
