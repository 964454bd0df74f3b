//! The program from outside.

use assert_cmd::Command;

/// Runs the demo in an empty folder.
fn demo(arguments: &[&str]) -> (std::process::Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("daimc").unwrap();
    let output = command.current_dir(folder.path()).arg("demo").args(arguments).output().unwrap();
    (output, folder)
}

/// The number after a word in a text.
fn figure(text: &str, name: &str) -> f64 {
    let after = text.split(name).nth(1).unwrap();
    after.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn demo_clusters_digit_with_half_of_every_view_missing() {
    let (output, folder) = demo(&[]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(" 50.0 %").count(), 5, "{text}");
    assert!(figure(&text, "AC ") >= 0.91, "{text}");
    assert!(figure(&text, "NMI ") >= 0.84, "{text}");
    let report = text.split("The report is ").nth(1).unwrap().trim();
    let page = std::fs::read_to_string(folder.path().join(report)).unwrap();
    assert!(page.starts_with("<!doctype html>"));
}

#[test]
fn demo_rejects_invalid_options() {
    let (output, _) = demo(&["--missing", "0.9"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("0.8"), "{text}");
    assert_eq!(demo(&["--preset", "other"]).0.status.code(), Some(2));
    assert_eq!(demo(&["--files", "digit", "--missing", "0.3"]).0.status.code(), Some(2));
}

#[test]
fn demo_can_be_repeated_and_threads_do_not_change_the_figures() {
    let figures = |threads| {
        let text = String::from_utf8(demo(&["--threads", threads]).0.stdout).unwrap();
        ["AC ", "NMI ", "ARI "].map(|name| figure(&text, name))
    };
    assert_eq!(figures("1"), figures("3"));
}
