//! The file of V: its format and digits; and files that do not depend on the threads.

use std::collections::BTreeMap;
use std::fs;

use crate::common::Folder;

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -k 2 -q -o out --force";

/// The rows of embedding.tsv, in its order.
fn text(folder: &Folder) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        (fields.next().unwrap(), fields.collect())
    };
    folder.text("out/embedding.tsv").lines().skip(1).map(row).collect()
}

/// The shape and the values of embedding.npy.
fn array(folder: &Folder) -> (String, Vec<f32>) {
    let bytes = fs::read(folder.path("out/embedding.npy")).unwrap();
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    assert_eq!((end % 64, header.ends_with('\n')), (0, true), "{header:?}");
    assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, "), "{header}");
    let shape = header[header.find('(').unwrap()..=header.find(')').unwrap()].to_owned();
    let (values, rest) = bytes[end..].as_chunks();
    assert!(rest.is_empty());
    (shape, values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

#[test]
fn text_has_six_significant_digits_and_the_order_of_the_labels() {
    let folder = Folder::small();
    folder.good(FIT);
    let rows = text(&folder);
    let labels = folder.text("out/labels.tsv");
    let ids: Vec<&str> = labels.lines().skip(1).map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(rows.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ids);
    let digits = |number: &str| {
        let mantissa = number.split('e').next().unwrap();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_start_matches('0').len()
    };
    let numbers: Vec<&String> = rows.iter().flat_map(|(_, values)| values).collect();
    assert!(numbers.iter().all(|number| digits(number) <= 6), "{numbers:?}");
    assert!(numbers.iter().any(|number| digits(number) == 6), "{numbers:?}");
}

#[test]
fn an_array_equals_the_text() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} --embedding tsv"));
    let rows = text(&folder);
    folder.good(&format!("{FIT} --embedding npy"));
    let (shape, values) = array(&folder);
    assert_eq!(shape, format!("({}, {})", rows.len(), rows[0].1.len()));
    let expected: Vec<&String> = rows.iter().flat_map(|(_, values)| values).collect();
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        let expected: f64 = expected.parse().unwrap();
        assert!((f64::from(*value) - expected).abs() <= 5.1e-6 * expected.abs(), "{value} for {expected}");
    }
}

#[test]
fn of_the_formats_the_result_has_the_one_that_was_asked_for() {
    let folder = Folder::small();
    let files = || {
        let names = folder.list("out").into_iter();
        names.filter(|name| name.starts_with("embedding")).collect::<Vec<_>>()
    };
    for (option, expected) in [
        ("", vec!["embedding.tsv"]),
        ("--embedding npy", vec!["embedding.npy"]),
        ("--embedding auto", vec!["embedding.tsv"]),
        ("--embedding none", vec![]),
    ] {
        folder.good(&format!("{FIT} {option}"));
        assert_eq!(files(), expected, "{option}");
    }
    folder.file("fit.toml", "view = ['a=a.tsv', 'b=b.csv']\nk = 2\nembedding = 'npy'\n");
    folder.good("fit --config fit.toml -q -o out --force");
    assert_eq!(files(), ["embedding.npy"]);
    assert_eq!(folder.json("out/summary.json")["options"]["embedding"], "npy");

    let message = folder.run(&format!("{FIT} --embedding csv"));
    assert_eq!(message.status.code(), Some(2));
    assert!(String::from_utf8(message.stderr).unwrap().contains("--embedding"));
    folder.file("fit.toml", "view = ['a=a.tsv', 'b=b.csv']\nk = 2\nembedding = 'csv'\n");
    assert!(folder.bad(2, "fit --config fit.toml -q -o out --force").contains("fit.toml"));
}

#[test]
fn an_array_that_is_read_is_not_replaced() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} --embedding npy"));
    let message = folder.bad(2, "fit --view out/embedding.npy -k 2 -o out --force");
    assert!(message.contains("out/embedding.npy"), "{message}");
}

#[test]
fn no_byte_of_a_result_depends_on_the_threads() {
    let folder = Folder::digit();
    folder.good("simulate --view fac.tsv --view zer.tsv --missing 0.4 -o m");
    let fit = "fit --view m/fac.tsv --view m/zer.tsv -k 10 -q --force -o out";
    let files = |threads: usize, format: &str| -> BTreeMap<String, Vec<u8>> {
        folder.good(&format!("{fit} --embedding {format} --threads {threads}"));
        let read = |name: String| (fs::read(folder.path(&format!("out/{name}"))).unwrap(), name);
        let files = folder.list("out").into_iter().map(read);
        // These files contain timings.
        let timed = ["model.safetensors", "summary.json", "report.html"];
        files.filter(|(_, name)| !timed.contains(&name.as_str())).map(|(bytes, name)| (name, bytes)).collect()
    };
    for format in ["tsv", "npy"] {
        let expected = files(1, format);
        assert_eq!(expected.len(), 5);
        for threads in [2, 7] {
            let found = files(threads, format);
            assert!(found == expected, "{format} on {threads} threads");
        }
    }
}
