//! The program from outside.

use assert_cmd::Command;

fn daimc(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("daimc").unwrap().args(arguments).output().unwrap()
}

/// The number after a word in a text.
fn figure(text: &str, name: &str) -> f64 {
    let after = text.split(name).nth(1).unwrap();
    after.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn demo_clusters_digit_with_half_of_every_view_missing() {
    let output = daimc(&["demo"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(" 50.0 %").count(), 5, "{text}");
    assert!(figure(&text, "AC ") >= 0.80, "{text}");
    assert!(figure(&text, "NMI ") >= 0.68, "{text}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("iteration   1"));
}

#[test]
fn demo_says_what_is_wrong_with_its_options() {
    let output = daimc(&["demo", "--missing", "0.9"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("0.8"), "{text}");
    assert_eq!(daimc(&["demo", "--preset", "other"]).status.code(), Some(2));
}

#[test]
fn threads_do_not_change_the_figures() {
    let figures = |threads| {
        let text = String::from_utf8(daimc(&["demo", "--threads", threads]).stdout).unwrap();
        ["AC ", "NMI ", "ARI "].map(|name| figure(&text, name))
    };
    assert_eq!(figures("1"), figures("3"));
}
