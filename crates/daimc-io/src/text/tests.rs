//! The table of a text does not depend on the cuts between pieces or on the number of threads.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;

use crate::disk::Keep;
use crate::input::Opened;
use crate::{Cells, Reading, Result, Table};

/// A table, and the format in which it is written.
#[derive(Clone, Debug)]
struct Sheet {
    ids: Vec<String>,
    features: Vec<String>,
    values: Vec<f64>,
    separator: char,
    line_end: &'static str,
    last_line_ends: bool,
    /// Which fields are put in quotes though they need not be.
    quoted: Vec<bool>,
}

impl Sheet {
    fn text(&self) -> String {
        let mut quoted = self.quoted.iter().cycle();
        let mut field = |content: &str| {
            let special = content.is_empty() && self.separator == ' ';
            let must = special || content.contains(['"', '\n', '\r', ' ', '#', self.separator]);
            if must || *quoted.next().unwrap() {
                format!("\"{}\"", content.replace('"', "\"\""))
            } else {
                content.into()
            }
        };
        let mut text = field("id");
        for feature in &self.features {
            write!(text, "{}{}", self.separator, field(feature)).unwrap();
        }
        for (id, row) in self.ids.iter().zip(self.values.chunks(self.features.len())) {
            text += self.line_end;
            text += &field(id);
            for value in row {
                let value = if value.is_nan() { "NA".into() } else { format!("{value:?}") };
                write!(text, "{}{}", self.separator, field(&value)).unwrap();
            }
        }
        text + if self.last_line_ends { self.line_end } else { "" }
    }

    fn check(&self, table: &Table) {
        assert_eq!(table.ids.as_deref(), Some(&self.ids[..]));
        assert_eq!(table.features.as_deref(), Some(&self.features[..]));
        assert_eq!((table.rows, table.columns), (self.ids.len(), self.features.len()));
        let Cells::DenseF64(values) = &table.cells else { panic!("not f64") };
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(values), bits(&self.values));
    }

    /// The line on which each record starts.
    fn lines(&self) -> Vec<u32> {
        let text = self.text();
        let (mut lines, mut line, mut inside) = (Vec::new(), 1, false);
        let mut starts = true;
        for byte in text.bytes() {
            if std::mem::take(&mut starts) {
                lines.push(line);
            }
            inside ^= byte == b'"';
            if byte == b'\n' {
                line += 1;
                starts = !inside;
            }
        }
        lines[1..].to_vec()
    }
}

fn sheets() -> impl Strategy<Value = Sheet> {
    let name = prop_oneof![
        "[a-z][a-z0-9]{0,8}",
        Just("it's 5\" wide".to_string()),
        Just("a,b;c|d\te f".to_string()),
        Just("two\nlines".to_string()),
        Just("\"\"".to_string()),
        Just("Größe".to_string()),
    ];
    let value = prop_oneof![
        4 => any::<f64>().prop_filter("one NaN is enough", |value| !value.is_nan()),
        2 => (-1000_i32..1000).prop_map(f64::from),
        1 => Just(f64::NAN),
    ];
    (1_usize..8, 2_usize..6).prop_flat_map(move |(rows, columns)| {
        (
            proptest::collection::vec(name.clone(), rows),
            proptest::collection::vec(name.clone(), columns),
            proptest::collection::vec(value.clone(), rows * columns),
            proptest::sample::select(vec![',', '\t', ';', '|', ' ']),
            proptest::sample::select(vec!["\n", "\r\n"]),
            any::<bool>(),
            proptest::collection::vec(proptest::bool::weighted(0.2), 1..20),
        )
            .prop_map(|(ids, features, values, separator, line_end, last_line_ends, quoted)| Sheet {
                ids,
                features,
                values,
                separator,
                line_end,
                last_line_ends,
                quoted,
            })
    })
}

/// Reads a text in pieces of about `chunk` bytes.
fn read_in(path: &Path, how: Reading, chunk: usize) -> Result<Table> {
    super::read_as::<f64>(path, Opened::new(path, false)?.text()?, how, chunk, Keep::Memory)
}

fn stored(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    file
}

proptest! {
    #[test]
    fn a_table_is_read_back_from_any_pieces(sheet in sheets(), chunk in 1_usize..200) {
        let file = stored(sheet.text().as_bytes());
        let table = read_in(file.path(), Reading::default(), chunk).unwrap();
        sheet.check(&table);
        prop_assert_eq!(table.lines.unwrap(), sheet.lines());
    }

    #[test]
    fn a_transposed_text_is_read_as_its_transpose(sheet in sheets(), chunk in 1_usize..200) {
        let file = stored(sheet.text().as_bytes());
        let how = Reading { transpose: true, ..Reading::default() };
        let table = read_in(file.path(), how, chunk).unwrap();
        let (n, d) = (sheet.features.len(), sheet.ids.len());
        let values = (0..n).flat_map(|i| (0..d).map(move |j| (i, j))).map(|(i, j)| sheet.values[j * n + i]);
        let transposed = Sheet {
            ids: sheet.features.clone(),
            features: sheet.ids.clone(),
            values: values.collect(),
            ..sheet.clone()
        };
        transposed.check(&table);
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "([a-c0-9.,\"\n\r \t;#-]|NA|\u{feff}){0,60}",
        chunk in 1_usize..20,
        transpose: bool,
        no_ids: bool,
    ) {
        let file = stored(text.as_bytes());
        let how = Reading { transpose, no_ids, ..Reading::default() };
        let small = read_in(file.path(), how, chunk).map_err(|error| error.to_string());
        let large = read_in(file.path(), how, 1 << 20).map_err(|error| error.to_string());
        prop_assert_eq!(format!("{small:?}"), format!("{large:?}"));
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let mut text = String::from("id,a,b,c\n");
    for i in 0..5000 {
        writeln!(text, "i{i},{},{},{}", f64::from(i).sqrt(), f64::from(i).sin(), i).unwrap();
    }
    let file = stored(text.as_bytes());
    let read = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read_in(file.path(), Reading::default(), 512)).unwrap()
    };
    let (one, four) = (read(1), read(4));
    assert_eq!(format!("{one:?}"), format!("{four:?}"));
    assert_eq!(one.rows, 5000);
}

#[test]
fn the_first_error_in_the_file_is_reported_with_any_number_of_threads() {
    let mut text = String::from("id,a\n");
    for i in 0..2000 {
        writeln!(text, "i{i},{}", if i % 100 == 77 { "x" } else { "1" }).unwrap();
    }
    let file = stored(text.as_bytes());
    for (threads, chunk) in [(1, 7), (2, 64), (4, 512), (3, 1 << 20)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let error = pool.install(|| read_in(file.path(), Reading::default(), chunk)).unwrap_err();
        assert!(error.to_string().contains("line 79, column 2: 'x' is not a number"), "{error}");
    }
}
