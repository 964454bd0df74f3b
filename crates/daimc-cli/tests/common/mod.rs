//! Helpers for the tests: the program, run in a temporary folder.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder in which the program is run.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder that holds Digit as files: fac.tsv, fou.tsv, kar.tsv, pix.tsv, zer.tsv, truth.tsv.
    pub fn digit() -> Self {
        let folder = Self::new();
        folder.good("demo --files .");
        folder
    }

    /// A folder with two small views of twelve instances in two obvious groups; b.csv lacks two of them.
    pub fn small() -> Self {
        let folder = Self::new();
        let (mut a, mut b, mut truth) =
            (String::from("id\tx\ty\tz\n"), String::from("name,p,q\n"), String::from("id,class\n"));
        for i in 0..12 {
            let (group, wobble) = (i % 2, f64::from(i) / 40.0);
            let (low, high) = (0.1 + wobble, 5.0 - wobble);
            let (x, y) = if group == 0 { (high, low) } else { (low, high) };
            writeln!(a, "s{i}\t{x}\t{y}\t{}", 1.0 + wobble).unwrap();
            if i > 1 {
                writeln!(b, "s{i},{},{}", 2.0 * x, y).unwrap();
            }
            writeln!(truth, "s{i},{group}").unwrap();
        }
        folder.file("a.tsv", a);
        folder.file("b.csv", b);
        folder.file("truth.csv", truth);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// All files and folders, including hidden ones.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program; arguments are separated by spaces.
    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::cargo_bin("daimc").unwrap();
        command.current_dir(self.0.path()).args(arguments.split_whitespace()).output().unwrap()
    }

    /// Runs the program, which must succeed, and returns its standard output.
    pub fn good(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "daimc {arguments}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program, which must fail with this exit code and one message; returns the message.
    pub fn bad(&self, code: i32, arguments: &str) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "daimc {arguments}\n{errors}");
        let message: Vec<&str> = errors.lines().filter(|line| line.starts_with("daimc: ")).collect();
        assert_eq!(message.len(), 1, "daimc {arguments}\n{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        message[0]["daimc: ".len()..].to_owned()
    }

    /// The clusters in a file of labels, by ID.
    pub fn labels(&self, name: &str) -> BTreeMap<String, usize> {
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 3, "{line}");
            let confidence: f64 = fields[2].parse().unwrap();
            assert!((0.0..=1.0).contains(&confidence), "{line}");
            (fields[0].to_owned(), fields[1].parse().unwrap())
        };
        let text = self.text(name);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("id\tcluster\tconfidence"));
        lines.map(row).collect()
    }
}

/// Reports that a test is skipped because something is missing; with `DAIMC_STRICT` that is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("DAIMC_STRICT").is_none_or(|strict| strict != "1"), "{reason}");
    println!("skipped: {reason}");
}

/// A Python with the libraries that write files of every format, if available.
pub fn python() -> Option<PathBuf> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("DAIMC_PYTHON").map(PathBuf::from);
    let python = python.unwrap_or_else(|| here.join("../../target/venv/bin/python"));
    if !python.exists() {
        skip(&format!("no Python at {}; `make test` sets it up, or set DAIMC_PYTHON", python.display()));
        return None;
    }
    Some(python)
}
