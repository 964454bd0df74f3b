//! The warning for clusters that are associated with the missing views.

use std::fmt::Write as _;

use crate::common::Folder;

/// Two groups in two views, the second of which lacks instances of the first group or the same number of both.
fn groups(by_group: bool) -> Folder {
    let folder = Folder::new();
    let (mut a, mut b) = (String::from("id\tx\ty\n"), String::from("id\tp\tq\n"));
    for i in 0..120_u32 {
        let wobble = f64::from(i * 37 % 41) / 40.0;
        let (x, y) = if i % 2 == 0 { (9.0 + wobble, wobble) } else { (wobble, 9.0 - wobble) };
        writeln!(a, "s{i}\t{x}\t{y}").unwrap();
        let lacks = if by_group { i % 2 == 0 && !i.is_multiple_of(5) } else { (i / 2) % 5 < 2 };
        if !lacks {
            writeln!(b, "s{i}\t{y}\t{x}").unwrap();
        }
    }
    folder.file("a.tsv", a);
    folder.file("b.tsv", b);
    folder
}

#[test]
fn a_fit_warns_in_the_terminal_the_summary_and_the_report() {
    let fit = "fit --view a=a.tsv --view b=b.tsv -k 2 -o out";
    let (by_group, at_random) = (groups(true), groups(false));
    let message = String::from_utf8(by_group.run(fit).stderr).unwrap();
    assert!(message.contains("warning: clusters are associated with missing views"), "{message}");
    assert!(message.contains("80 % of cluster") && message.contains("lack view 'b'"), "{message}");
    let summary = by_group.json("out/summary.json");
    assert!(summary["missingness"]["p_value"].as_f64().unwrap() < 0.01, "{summary}");
    assert_eq!(summary["missingness"]["most"]["view"], "b");
    assert!(by_group.text("out/report.html").contains("<p class=warning"));

    let message = String::from_utf8(at_random.run(fit).stderr).unwrap();
    assert!(!message.contains("warning"), "{message}");
    assert!(!at_random.text("out/report.html").contains("<p class=warning"));
}
