//! Results are neither lost nor mixed, whatever the target.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, skip};

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -q";
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
const HIDDEN: &str = ".daimc-partial";

fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin("daimc")
}

/// Runs a script of the shell in the folder; `$daimc` is the program.
fn shell(folder: &Folder, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.current_dir(folder.path("")).env("daimc", program()).args(["-ec", script]).output().unwrap()
}

/// The same with permission to mount file systems for the duration of the script; `None` without this permission.
fn mounting(folder: &Folder, script: &str) -> Option<Output> {
    let may = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !may.is_ok_and(|may| may.status.success()) {
        skip("no file system can be mounted here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.current_dir(folder.path("")).env("daimc", program()).args(["-rm", "sh", "-ec", script]);
    Some(command.output().unwrap())
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_folder_on_another_file_system_takes_the_results() {
    let folder = Folder::small();
    // In memory, which is a file system of its own on most machines.
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        symlink(memory.path(), folder.path("out")).unwrap();
        folder.good(&format!("{FIT} -k 2 -o out"));
        folder.good(&format!("{FIT} -k 3 -o out --force"));
        assert_eq!(folder.list("out"), FILES);
        assert!(fs::symlink_metadata(folder.path("out")).unwrap().is_symlink());
        assert_eq!(folder.json("out/summary.json")["clusters"], 3);
    }
    let script =
        format!("mkdir mounted; mount -t tmpfs none mounted; $daimc {FIT} -k 2 -o mounted; ls -A mounted");
    if let Some(output) = mounting(&folder, &script) {
        assert!(output.status.success(), "{}", message(&output));
        let listed = String::from_utf8(output.stdout).unwrap();
        assert!(FILES.iter().all(|file| listed.contains(file)) && !listed.contains(HIDDEN), "{listed}");
    }
}

#[test]
fn the_folder_itself_is_asked_whether_it_can_be_written() {
    let folder = Folder::small();
    // The folder can be written to, the one that it is in cannot.
    let script = format!(
        "mkdir shut; mount -t tmpfs none shut; mkdir shut/out; mount -t tmpfs none shut/out; \
         mount -o remount,ro shut; $daimc {FIT} -k 2 -o shut/out; ls shut/out"
    );
    let Some(output) = mounting(&folder, &script) else { return };
    assert!(output.status.success(), "{}", message(&output));
    // The other way round; the data are not read.
    let script = "mkdir open; mount -t tmpfs none open; mount -o remount,ro open; \
                  $daimc fit --view a=nowhere.tsv -k 2 -o open --force";
    let output = mounting(&folder, script).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(message(&output), "daimc: open cannot be written: Read-only file system (os error 30)\n");
}

#[test]
fn inputs_are_not_overwritten_by_the_results() {
    let folder = Folder::small();
    fs::create_dir(folder.path("out")).unwrap();
    fs::copy(folder.path("a.tsv"), folder.path("out/features.tsv")).unwrap();
    fs::copy(folder.path("truth.csv"), folder.path("out/labels.tsv")).unwrap();
    folder.file("out/embedding.tsv", "id\ta\n");
    folder.file("out/summary.json", r#"{"options": {"view": ["a=a.tsv"], "clusters": 2}}"#);
    symlink("out/features.tsv", folder.path("link.tsv")).unwrap();
    // As single-cell software names its files: the names of the features are read too.
    let matrix = "%%MatrixMarket matrix coordinate real general\n4 2 4\n1 1 1\n2 1 2\n3 2 1\n4 2 2\n";
    fs::create_dir(folder.path("cells")).unwrap();
    folder.file("cells/matrix.mtx", matrix);
    folder.file("cells/features.tsv", "g1\ng2\n");
    let inputs = [
        ("--view a=out/features.tsv -k 2 -o out", "out/features.tsv"),
        ("--view a=link.tsv -k 2 -o ./out/", "link.tsv"),
        ("--view a=a.tsv --truth out/labels.tsv -k 2 -o out", "out/labels.tsv"),
        ("--view a=a.tsv --mask out/embedding.tsv -k 2 -o out", "out/embedding.tsv"),
        ("--config out/summary.json -o out", "out/summary.json"),
        ("--view cells/matrix.mtx -k 2 -o cells", "cells/features.tsv"),
    ];
    for (arguments, input) in inputs {
        let before = folder.list("out");
        let message = folder.bad(2, &format!("fit {arguments} --force"));
        assert!(message.starts_with(&format!("{input}: this is an input file")), "{message}");
        assert_eq!(folder.list("out"), before);
    }
    assert_eq!(folder.text("out/features.tsv"), folder.text("a.tsv"));
    assert_eq!(folder.text("cells/features.tsv"), "g1\ng2\n");
    // Inputs next to the results are kept.
    fs::copy(folder.path("a.tsv"), folder.path("out/mine.tsv")).unwrap();
    folder.good("fit --view a=out/mine.tsv -k 2 -o out --force -q");
    assert_eq!(folder.text("out/mine.tsv"), folder.text("a.tsv"));
}

#[test]
fn a_report_does_not_replace_the_result_that_it_is_about() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    for file in ["summary.json", "model.safetensors"] {
        let before = std::fs::read(folder.path("out").join(file)).unwrap();
        let message = folder.bad(2, &format!("report out -o out/{file}"));
        assert!(message.contains("is an input file"), "{message}");
        assert_eq!(std::fs::read(folder.path("out").join(file)).unwrap(), before);
    }
}

#[test]
fn special_files_are_written_to_and_links_are_kept() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} -k 2 -o out"));
    let predict = "predict out --view a=a.tsv -q";
    let expected = folder.good(predict);
    // Through descriptors; the previous content of the file is kept.
    assert_eq!(folder.good(&format!("{predict} -o /dev/fd/1")), expected);
    let script = format!(
        "echo before > all; $daimc {predict} -o /dev/fd/3 3>> all; $daimc {predict} -o /dev/fd/1 >> all"
    );
    assert!(shell(&folder, &script).status.success());
    assert_eq!(folder.text("all"), format!("before\n{expected}{expected}"));

    let script = format!("mkfifo pipe; cat pipe > piped & $daimc {predict} -o pipe; wait");
    assert!(shell(&folder, &script).status.success());
    assert_eq!(folder.text("piped"), expected);
    assert!(fs::metadata(folder.path("pipe")).unwrap().file_type().is_fifo());

    fs::create_dir(folder.path("real")).unwrap();
    symlink("real/labels.tsv", folder.path("link")).unwrap();
    for _ in 0..2 {
        folder.good(&format!("{predict} -o link"));
        assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
        assert_eq!(folder.text("real/labels.tsv"), expected);
    }
    assert_eq!(folder.list("real"), ["labels.tsv"]);
    // Whether a file can be written is known before the work.
    let message = folder.bad(1, "predict nowhere --view a=nowhere.tsv -o nowhere/x.tsv");
    assert!(message.starts_with("nowhere/x.tsv cannot be written"), "{message}");
}

#[test]
fn devices_are_written_to() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} -k 2 -o out"));
    // In a private /dev: a program that replaces its nodes would damage that of the machine.
    let script = "touch null; mount --bind /dev/null null; mount -t tmpfs none /dev; ln -s /proc/self/fd/1 /dev/stdout; \
                  touch /dev/null; mount --bind null /dev/null; predict='predict out --view a=a.tsv -q'; \
                  $daimc $predict > expected; echo before > all; $daimc $predict -o /dev/stdout >> all; \
                  ln -s /dev/stdout link; $daimc $predict -o link >> all; \
                  $daimc $predict -o /dev/null; $daimc $predict -o null; \
                  test -c /dev/null; test -c null; test -L /dev/stdout; test -L link; ls -A /dev";
    let Some(output) = mounting(&folder, script) else { return };
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "null\nstdout\n");
    let expected = folder.text("expected");
    assert_eq!(folder.text("all"), format!("before\n{expected}{expected}"));
}

#[test]
fn on_a_full_disk_the_results_appear_without_the_model() {
    let folder = Folder::digit();
    let fit = "fit --view fac.tsv --view zer.tsv -k 10 --max-iter 3 -q";
    folder.good(&format!("{fit} -o out"));
    let pages =
        |file: &str| fs::metadata(folder.path(&format!("out/{file}"))).unwrap().len().div_ceil(4096) + 1;
    let others: u64 = FILES.iter().filter(|file| **file != "model.safetensors").map(|file| pages(file)).sum();
    // The folders and the lock need some space as well; replaced files are moved, not copied.
    let size = 4 * (others + 12);
    let model = 4 * pages("model.safetensors");
    assert!(model > 100, "{model}");
    let script = format!(
        "mkdir small; mount -t tmpfs -o size={size}k none small; echo old > small/model.safetensors; set +e; \
         $daimc {fit} -o small --force; code=$?; mkdir copy; cp small/* copy; ls -A small > list; exit $code"
    );
    let Some(output) = mounting(&folder, &script) else { return };
    let message = message(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let expected = "daimc: small/model.safetensors cannot be written: No space left on device (os error 28); all other \
                    results are in small\n";
    assert_eq!(message, expected);
    let others: Vec<&str> = FILES.into_iter().filter(|file| *file != "model.safetensors").collect();
    assert_eq!(folder.text("list").lines().collect::<Vec<_>>(), others);
    assert_eq!(folder.text("copy/labels.tsv"), folder.text("out/labels.tsv"));
}

#[test]
fn a_second_fit_into_a_folder_is_refused_at_once() {
    let folder = Folder::digit();
    let mut first =
        start(&folder, "fit --view fac.tsv --view pix.tsv -k 10 -o out --tol 0 --max-iter 1000000 --force");
    let begin = Instant::now();
    while folder.list("out") != [HIDDEN] {
        assert!(begin.elapsed() < Duration::from_secs(60), "the fit does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
    // The data are not read.
    let message = folder.bad(1, "fit --view a=nowhere.tsv -k 2 -o out --force");
    assert!(message.starts_with("out: another process is writing to this folder"), "{message}");
    assert!(first.try_wait().unwrap().is_none());
    first.kill().unwrap();
    first.wait().unwrap();
    // A killed process holds no lock, and the folder counts as empty.
    folder.good("fit --view zer.tsv -k 2 -o out --max-iter 2 -q");
    assert_eq!(folder.list("out"), FILES);
}

#[test]
fn two_comparisons_do_not_share_a_folder() {
    let folder = Folder::small();
    let _held = daimc_files::Folder::begin(&folder.path("out"), false).unwrap();
    let message = folder.bad(1, "compare --view a=a.tsv --truth truth.csv --methods single --seeds 1 -o out");
    assert!(message.starts_with("out: another process"), "{message}");
}

/// The state of a folder after a kill between finishing the result and putting it in place.
fn unfinish(folder: &Folder) {
    let put = folder.path("out").join(HIDDEN).join("complete/put");
    fs::create_dir_all(&put).unwrap();
    for file in &FILES[..5] {
        fs::rename(folder.path("out").join(file), put.join(file)).unwrap();
    }
}

#[test]
fn readers_complete_the_result_of_a_killed_fit() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} -k 2 -o out"));
    for reader in [
        "predict out --view a=a.tsv",
        "predict out/model.safetensors --view a=a.tsv",
        "evaluate out/labels.tsv --truth truth.csv",
        "report out",
        "report out -o again.html",
        "fit --config out/summary.json -o other --force",
    ] {
        unfinish(&folder);
        folder.good(reader);
        assert_eq!(folder.list("out"), FILES, "{reader}");
    }
    unfinish(&folder);
    assert!(folder.bad(2, &format!("{FIT} -k 2 -o out")).contains("--force"));
    assert_eq!(folder.list("out"), FILES);
}

/// The number of clusters of the complete result; `None` if there are no files.
fn whole(folder: &Folder, references: &[(u64, Folder)]) -> Option<u64> {
    let names: Vec<String> = folder.list("out").into_iter().filter(|name| name != HIDDEN).collect();
    if names.is_empty() {
        return None;
    }
    assert_eq!(names, FILES);
    let clusters = folder.json("out/summary.json")["clusters"].as_u64().unwrap();
    let (_, reference) = references.iter().find(|(known, _)| *known == clusters).unwrap();
    for file in ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv"] {
        assert_eq!(folder.text(&format!("out/{file}")), reference.text(&format!("out/{file}")), "{file}");
    }
    let model = fs::read(folder.path("out/model.safetensors")).unwrap();
    let model = String::from_utf8_lossy(&model).into_owned();
    assert!(model.contains(&format!(r#"\"clusters\":{clusters}"#)));
    let report = folder.text("out/report.html");
    assert!(report.ends_with("</html>\n") || report.ends_with("</html>"), "{}", &report[report.len() - 40..]);
    Some(clusters)
}

fn fit(clusters: u64) -> String {
    format!("{FIT} -k {clusters} --threads 1 -o out")
}

/// The same fits, undisturbed, in folders of their own.
fn references() -> Vec<(u64, Folder)> {
    let made = (2..=4).map(|clusters| {
        let folder = Folder::small();
        folder.good(&fit(clusters));
        (clusters, folder)
    });
    made.collect()
}

/// Starts a fit.
fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = Command::new(program());
    command.current_dir(folder.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    command.args(arguments.split(' ')).spawn().unwrap()
}

/// Waits until one of these fits begins to write its files, or all have ended.
fn wait_for_writing(folder: &Folder, fits: &mut [Child]) {
    let staged = folder.path("out").join(HIDDEN).join("staged");
    while !staged.exists() && fits.iter_mut().any(|fit| fit.try_wait().unwrap().is_none()) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Kills fits at random moments. One process at a time, or two that want the same folder.
fn kill_at_random(kills: u64, force: bool, processes: usize) {
    let references = references();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ kills;
    let (mut folder, mut old, mut new, mut none, mut between) = (Folder::small(), 0, 0, 0, 0);
    // The time of writing depends on the machine and its load.
    let mut writing = 0;
    for kill in 0..kills {
        if kill % 20 == 0 {
            let folder = Folder::small();
            let mut fit = [start(&folder, &fit(4))];
            wait_for_writing(&folder, &mut fit);
            let began = Instant::now();
            fit[0].wait().unwrap();
            writing = u64::try_from(began.elapsed().as_micros()).unwrap();
        }
        if !force {
            folder = Folder::small();
        }
        let before = whole(&folder, &references);
        let clusters = 2 + kill % 3;
        let arguments = format!("{}{}", fit(clusters), if force { " --force" } else { "" });
        let mut fits: Vec<Child> = (0..processes).map(|_| start(&folder, &arguments)).collect();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Three of four kills fall into the time when files are written, which is what matters most.
        if !random.is_multiple_of(4) {
            wait_for_writing(&folder, &mut fits);
        }
        std::thread::sleep(Duration::from_micros(random / 4 % (writing + writing / 4)));
        for fit in &mut fits {
            fit.kill().unwrap();
            fit.wait().unwrap();
        }
        if folder.path("out").join(HIDDEN).join("complete").exists() {
            between += 1;
            folder.good("evaluate out/labels.tsv --truth truth.csv");
        }
        match whole(&folder, &references) {
            Some(found) if found == clusters => new += 1,
            None if before.is_none() => none += 1,
            found => {
                assert_eq!(found, before, "kill {kill}");
                old += 1;
            }
        }
        if kill % 4 == 3 || !force {
            folder.good(&format!("{} --force", fit(4)));
            assert_eq!(whole(&folder, &references), Some(4));
            assert_eq!(folder.list("out"), FILES);
            assert_eq!(folder.list("."), ["a.tsv", "b.csv", "out", "truth.csv"]);
        }
    }
    println!(
        "{kills} kills, force {force}, {processes} process(es): {old} times the old result, {new} times the new one, {none} \
         times none; {between} kills between two renames"
    );
}

#[test]
fn kills_at_random_moments_leave_one_whole_result() {
    for (force, processes) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        kill_at_random(10, force, processes);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills_at_random_moments_leave_one_whole_result() {
    for (force, processes) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        kill_at_random(250, force, processes);
    }
}

/// Runs a fit that is killed at its n-th call of `rename`; returns whether it was killed.
fn kill_at_rename(folder: &Folder, number: usize, arguments: &str) -> bool {
    let inject = format!("inject=rename,renameat,renameat2:signal=KILL:when={number}");
    let mut command = Command::new("strace");
    command.current_dir(folder.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    command.args(["-f", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2", "-e", &inject]);
    let status = command.arg(program()).args(arguments.split(' ')).status().unwrap();
    !status.success()
}

#[test]
fn a_kill_at_any_rename_leaves_one_whole_result() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        skip("no strace here to kill processes at their system calls");
        return;
    }
    let references = references();
    for force in [false, true] {
        let (mut kills, mut states) = (0, std::collections::BTreeSet::new());
        for number in 1.. {
            let folder = Folder::small();
            if force {
                folder.good(&fit(2));
                folder.file("out/notes.txt", "mine");
            }
            let mut arguments = fit(3);
            if force {
                arguments.push_str(" --force");
            }
            if !kill_at_rename(&folder, number, &arguments) {
                break;
            }
            kills += 1;
            folder.run("evaluate out/labels.tsv --truth truth.csv");
            if force {
                assert_eq!(folder.text("out/notes.txt"), "mine");
                fs::remove_file(folder.path("out/notes.txt")).unwrap();
            }
            let found = whole(&folder, &references);
            assert!(found == force.then_some(2) || found == Some(3), "{found:?}");
            states.insert(found);
            folder.good(&format!("{} --force", fit(4)));
            assert_eq!(whole(&folder, &references), Some(4));
            assert_eq!(folder.list("out"), FILES);
        }
        println!("force {force}: killed at each of {kills} renames, found {states:?}");
        assert!(kills >= 15 && states.len() == 2);
    }
}

#[test]
fn a_report_is_not_written_while_its_result_is_being_replaced() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} -k 2 -o out"));
    let held = daimc_files::Folder::begin(&folder.path("out"), true).unwrap();
    assert!(folder.bad(1, "report out").starts_with("out: another process"));
    drop(held);
    folder.good("report out");
    assert_eq!(folder.list("out"), FILES);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_sentence_and_leaves_nothing() {
    let folder = Folder::small();
    let before = folder.list(".");
    let mut shell = Command::new("bash");
    // Blocks of 1024 bytes: no report is so small.
    shell.arg("-c").arg("ulimit -f 8; $DAIMC fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    shell.env("DAIMC", assert_cmd::cargo::cargo_bin!("daimc")).current_dir(folder.path(""));
    let output = shell.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let last = message.lines().last().unwrap();
    assert!(
        last.starts_with("daimc: out/") && last.contains("cannot be written: File too large"),
        "{message}"
    );
    assert_eq!(folder.list("."), before);
}
