//! Every method on the same data.

use std::fmt::Write;

use crate::common::Folder;

/// Two views of 60 instances in three groups, without negative values.
fn data() -> Folder {
    let folder = Folder::new();
    let (mut a, mut b, mut truth) = (String::from("id"), String::from("id"), String::from("id,class\n"));
    (0..6).for_each(|f| write!(a, "\tf{f}").unwrap());
    (0..4).for_each(|f| write!(b, "\tg{f}").unwrap());
    for i in 0..60_usize {
        let group = i % 3;
        let value = |f: usize, d: usize| {
            let own = if f * 3 / d == group { 5.0 } else { 0.5 };
            own + ((i * 7 + f * 13) % 10) as f64 / 10.0
        };
        write!(a, "\ni{i}").unwrap();
        (0..6).for_each(|f| write!(a, "\t{}", value(f, 6)).unwrap());
        write!(b, "\ni{i}").unwrap();
        (0..4).for_each(|f| write!(b, "\t{}", value(f, 4)).unwrap());
        writeln!(truth, "i{i},{group}").unwrap();
    }
    folder.file("a.tsv", a + "\n");
    folder.file("b.tsv", b + "\n");
    folder.file("truth.csv", truth);
    folder
}

const COMPARE: &str = "compare --view a.tsv --view b.tsv --truth truth.csv --missing 0,0.3 --seeds 2 -o out";
const METHODS: [&str; 12] = [
    "daimc",
    "daimc-plain",
    "daimc-paper",
    "wsnmf",
    "multinmf",
    "pvc",
    "img",
    "mic",
    "omvc",
    "opimc",
    "single",
    "concatenation",
];

#[test]
fn every_method_is_compared_on_the_same_data() {
    let folder = data();
    let printed = folder.good(COMPARE);
    let rows = folder.text("out/results.tsv");
    assert_eq!(
        rows.lines().next(),
        Some("experiment\tdata\trate\tmethod\tsetting\tseed\tac\tnmi\tari\tseconds\titerations\tconfidence")
    );
    for method in METHODS {
        let own = rows.lines().filter(|row| row.split('\t').nth(3) == Some(method)).count();
        // Two shares, two seeds; single views are two settings.
        assert_eq!(own, if method == "single" { 8 } else { 4 }, "{method}\n{rows}");
    }
    assert!(printed.contains("| 0.3 | daimc |"), "{printed}");
    assert!(printed.contains("best of 2, by the classes"), "{printed}");
    let ac = |row: &str| row.split('\t').nth(6).unwrap().parse::<f64>().unwrap();
    let easy = rows.lines().filter(|row| row.starts_with("compare\ta+b\t0\tdaimc\t"));
    assert!(easy.map(ac).all(|ac| ac > 0.95), "{rows}");
    let page = folder.text("out/compare.html");
    assert_eq!(page.matches("<figure ").count(), 3);
    assert!(!page.contains("http://") && !page.contains("https://"));
    let table = folder.text("out/table.md");
    assert_eq!(table.lines().filter(|line| line.starts_with("| 0")).count(), 2 * METHODS.len());
    assert!(folder.text("out/nmi.svg").starts_with("<?xml"));
}

#[test]
fn finished_runs_are_not_repeated() {
    let folder = data();
    let few = format!("{COMPARE} --methods daimc,concatenation");
    folder.good(&few);
    let rows = folder.text("out/results.tsv");
    // The state after a kill while the last row was written.
    let end = rows.trim_end().rfind('\n').unwrap();
    folder.file("out/results.tsv", &rows[..end + 20]);
    folder.good(&few);
    let again = folder.text("out/results.tsv");
    let (kept, last) = again.split_at(end + 1);
    assert_eq!(kept, &rows[..=end]);
    let without_time = |row: &str| row.trim_end().split('\t').take(9).collect::<Vec<_>>().join("\t");
    assert_eq!(without_time(last), without_time(&rows[end + 1..]));
    // More seeds add rows; other data or options need another folder.
    folder.good(&few.replace("--seeds 2", "--seeds 3"));
    assert_eq!(folder.text("out/results.tsv").lines().count(), 1 + 2 * 2 * 3);
    assert!(folder.bad(2, &format!("{few} -k 4")).contains("another folder"));
}

#[test]
fn methods_that_cannot_handle_the_data_are_skipped_with_a_message() {
    let folder = data();
    folder.file("a.tsv", folder.text("a.tsv").replace("\ti0\t", "\ti0\t-").replacen("i0\t", "i0\t-", 1));
    let output = folder.run(&format!("{COMPARE} --methods daimc,mic,pvc"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    assert!(message.contains("mic was left out") && message.contains("min-max"), "{message}");
    let rows = folder.text("out/results.tsv");
    assert!(rows.contains("\tdaimc\t") && !rows.contains("\tmic\t"), "{rows}");
    folder.good(&COMPARE.replace("-o out", "-o scaled --scale min-max --methods mic"));
    assert!(folder.bad(2, &format!("{COMPARE} --methods spectral")).contains("concatenation"));
}
