//! Out of memory: an error message instead of an abort.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Output};

use crate::common::{Folder, skip};

/// Runs the program under `ulimit -v` with this many KiB.
fn limited(folder: &Folder, kib: u64, arguments: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin("daimc");
    let script = format!("ulimit -v {kib}; exec {} {arguments}", program.display());
    Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap()
}

/// A `.npy` of doubles, of which the header is written.
fn npy(folder: &Folder, name: &str, rows: u64, columns: u64) -> File {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let mut file = File::create(folder.path(name)).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file
}

/// A `.npy` of zeros, most of which are holes in the file.
fn zeros(folder: &Folder, name: &str, rows: u64, columns: u64) {
    let file = npy(folder, name, rows, columns);
    let header = file.metadata().unwrap().len();
    file.set_len(header + 8 * rows * columns).unwrap();
}

fn message(output: &Output, code: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(errors.lines().filter(|line| line.starts_with("daimc: ")).count(), 1, "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    errors
}

#[test]
fn a_limit_is_checked_before_files_are_read_and_before_a_fit_begins() {
    let folder = Folder::small();
    let fit = "fit --view a=a.tsv --view b=b.csv -k 2 -o out --threads 1";
    assert!(folder.bad(1, &format!("{fit} --memory 1MB")).contains("the fit needs about"));
    assert!(folder.list("out").is_empty());
    assert!(folder.bad(2, &format!("{fit} --memory much")).contains("500MB"));
    folder.good(&format!("{fit} --memory 2GB"));
}

#[test]
fn neighbourhoods_without_enough_memory_are_skipped_and_the_summary_has_the_reason() {
    let folder = Folder::new();
    let mut file = npy(&folder, "a.npy", 12_000, 40);
    for i in 0..12_000 {
        let row = (0..40).map(|f| if f % 3 == i % 3 { 3.0 } else { f64::from((7 * i + f) % 10) / 8.0 });
        let row: Vec<u8> = row.flat_map(f64::to_le_bytes).collect();
        file.write_all(&row).unwrap();
    }
    // Just enough for a fit; neighbourhoods would need several MB more.
    let fits = |megabytes: u32| {
        let arguments =
            format!("fit --view a=a.npy -k 3 --no-assess --threads 1 --memory {megabytes}MB -o little -q");
        let mut program = Command::new(assert_cmd::cargo::cargo_bin("daimc"));
        let output = program.args(arguments.split(' ')).current_dir(folder.path("")).output().unwrap();
        output.status.success()
    };
    assert!((10..200).step_by(2).any(fits));
    let neighbours = &folder.json("little/summary.json")["neighbours"];
    assert_eq!(neighbours["used"], "off");
    let reason = neighbours["reason"].as_str().unwrap();
    assert!(
        reason.contains("neighbourhoods would take") && reason.contains("of memory, more than the available"),
        "{reason}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn what_does_not_fit_is_read_from_disk_with_the_same_results() {
    let folder = Folder::new();
    // 48 MB, in two clusters.
    let value = |i: usize, f: usize| if f % 2 == i % 2 { 3.0 } else { ((7 * i + f) % 10) as f64 / 8.0 };
    let mut file = npy(&folder, "a.npy", 60_000, 100);
    for i in 0..60_000 {
        let row: Vec<u8> = (0..100).flat_map(|f| value(i, f).to_le_bytes()).collect();
        file.write_all(&row).unwrap();
    }
    drop(file);
    let fit = "fit --view a=a.npy -k 2 --max-iter 5 --neighbours off --threads 2";
    folder.good(&format!("{fit} -o memory"));
    let output = folder.run(&format!("{fit} -v --memory 70MB -o disk"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("rows are read from disk"), "{said}");
    assert!(said.contains("passes over the data"), "{said}");
    for file in ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv"] {
        assert!(folder.text(&format!("memory/{file}")) == folder.text(&format!("disk/{file}")), "{file}");
    }
    assert_eq!(folder.list("memory"), folder.list("disk"));
    let (memory, disk) = (folder.json("memory/summary.json"), folder.json("disk/summary.json"));
    assert_eq!(memory["inputs"][0]["sha256"], disk["inputs"][0]["sha256"]);
    assert_eq!(memory["passes"], disk["passes"]);
    let predict = "predict memory --view a=a.npy --threads 2";
    assert_eq!(folder.good(predict), folder.good(&format!("{predict} --memory 70MB")));
}

/// A table of two clusters that takes 48 MB in memory, as text; through a pipe, its size is not known before.
#[cfg(target_os = "linux")]
fn text() -> Folder {
    let folder = Folder::new();
    let mut file = std::io::BufWriter::new(File::create(folder.path("a.csv")).unwrap());
    for i in 0..60_000 {
        write!(file, "s{i}").unwrap();
        for f in 0..100 {
            let value = if f % 2 == i % 2 { 3.0 } else { f64::from((7 * i + f) % 10) / 8.0 };
            write!(file, ",{value}").unwrap();
        }
        writeln!(file).unwrap();
    }
    file.flush().unwrap();
    folder
}

#[cfg(target_os = "linux")]
fn shell(folder: &Folder, command: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin("daimc");
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).current_dir(folder.path("")).env("DAIMC", program).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn what_comes_through_a_pipe_goes_to_disk_where_it_does_not_fit() {
    let folder = text();
    let fit = "fit -k 2 --max-iter 3 --neighbours off --threads 2";
    folder.good(&format!("{fit} --view a=a.csv -o memory"));
    let output = shell(&folder, &format!("cat a.csv | $DAIMC {fit} --view a=- -v --memory 70MB -o disk"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("rows are read from disk"), "{said}");
    assert!(said.contains("view 'a': 48 MB read"), "{said}");
    for file in ["labels.tsv", "map.tsv", "embedding.tsv", "contributions.tsv", "features.tsv"] {
        assert!(folder.text(&format!("memory/{file}")) == folder.text(&format!("disk/{file}")), "{file}");
    }
    assert_eq!(folder.list("memory"), folder.list("disk"));
    let hash = |name: &str| folder.json(&format!("{name}/summary.json"))["inputs"][0]["sha256"].clone();
    assert_eq!(hash("memory"), hash("disk"));
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_is_heard_while_data_go_to_disk() {
    let folder = Folder::new();
    // Data without an end, in few lines, of which each takes some memory; the signal comes once there is a spool file, which
    // has no name.
    let script = "yes $(seq -s , 1000) | $DAIMC fit --view a=- -k 2 --no-ids -o out --memory 60MB --threads 2 & \
                  until ls -l /proc/$!/fd | grep -q deleted; do sleep 0.1; done; sleep 1; kill -s INT $!; wait $!";
    let output = shell(&folder, script);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("daimc: stopping") && said.lines().last().unwrap().contains("interrupted"),
        "{said}"
    );
    assert!(folder.list(".").is_empty(), "{:?}", folder.list("."));
}

#[test]
#[cfg(target_os = "linux")]
fn a_spool_file_that_finds_no_room_is_one_sentence_and_leaves_nothing() {
    let folder = text();
    let fit = "fit --view a=a.csv -k 2 --memory 60MB -o out/fit --threads 2";
    // A process that writes more is killed by a signal unless it checks the limit.
    let output = shell(&folder, &format!("ulimit -f 10000; $DAIMC {fit}"));
    let said = message(&output, 1);
    assert!(said.contains("the spool file in out/fit") && said.contains("too large"), "{said}");
    assert!(folder.list("out").is_empty());
    std::fs::create_dir_all(folder.path("out")).unwrap();
    let mounted = shell(&folder, "mount -t tmpfs -o size=10m tmpfs out");
    if !mounted.status.success() {
        skip(&format!("no file system can be mounted: {}", String::from_utf8_lossy(&mounted.stderr)));
        return;
    }
    let output = shell(&folder, &format!("$DAIMC {fit}"));
    let left = folder.list("out");
    assert!(shell(&folder, "umount out").status.success());
    let said = message(&output, 1);
    assert!(said.contains("the spool file in out/fit") && said.contains("No space left"), "{said}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn under_a_limit_of_the_system_a_sentence_is_said() {
    let folder = Folder::new();
    zeros(&folder, "a.npy", 400_000, 1000);
    let output = limited(&folder, 1_000_000, "inspect --view a=a.npy --threads 1");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("the data take 3.2 GB") && said.contains("rows are read from disk"), "{said}");
    let output = limited(&folder, 1_000_000, "select --view a=a.npy -k 2..3 --threads 1");
    assert!(message(&output, 1).contains("a.npy: 3200 MB of memory is needed"));
    // V alone does not fit, which is known before reading.
    zeros(&folder, "many.npy", 80_000_000, 1);
    let output = limited(&folder, 1_000_000, "fit --view a=many.npy -k 20 -o out --threads 1");
    assert!(message(&output, 1).contains("V, 80000000 instances × 20, takes 12.8 GB"));
    assert!(folder.list("out").is_empty());

    // Few values, but many features and clusters.
    let entries: Vec<String> = (1..=200).map(|i| format!("{i} {} 1", i * 4000)).collect();
    let entries = entries.join("\n");
    folder.file("b.mtx", format!("%%MatrixMarket matrix coordinate real general\n200 800000 200\n{entries}"));
    let output = limited(&folder, 1_000_000, "fit --view b=b.mtx -k 100 -o out --threads 1");
    assert!(message(&output, 1).contains("the fit needs about"));
}

#[test]
#[cfg(unix)]
fn files_that_claim_or_have_no_end_are_refused() {
    let folder = Folder::new();
    folder.file("a.mtx", "%%MatrixMarket matrix array real general\n4294967295 0\n");
    assert!(folder.bad(3, "inspect --view a=a.mtx").contains("the matrix is empty"));
    folder.file("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 4294967295 1\n1 1 1\n");
    assert!(folder.bad(3, "fit --view a=b.mtx -k 2 -o out").contains("4294967295 features"));
    assert!(folder.bad(3, "inspect --view a=/dev/zero").contains("is a device"));
}
