//! Files of numpy, scipy, pandas and `PyArrow` and real data sets are read correctly.

use crate::common::{Formats, shared, turned, values};
use daimc_io::{Cells, Precision, Reading, Table, read};
use serde_json::Value;

/// The contents of a table.
fn precision(table: &Table) -> (&'static str, bool) {
    match table.cells {
        Cells::DenseF32(_) => ("f32", false),
        Cells::DenseF64(_) => ("f64", false),
        Cells::SparseF32(_) => ("f32", true),
        Cells::SparseF64(_) => ("f64", true),
        Cells::Stored(_) => panic!("the values are on disk"),
    }
}

fn same(found: &[f64], expected: &[f64], tolerance: f64) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + b.abs())
        })
}

fn names(list: &Value) -> Option<Vec<String>> {
    let list = list.as_array()?;
    Some(list.iter().map(|name| name.as_str().unwrap().to_owned()).collect())
}

#[test]
fn files_are_read_as_they_were_written() {
    let Some(formats) = Formats::make() else { return };
    for expected in &formats.tables {
        let path = formats.path(&expected["file"]);
        let variable = expected["variable"].as_str();
        let what = format!("{} {variable:?}", expected["file"]);
        let bytes = std::fs::read(formats.path(&expected["values"])).unwrap();
        let wanted: Vec<f64> = bytes.as_chunks().0.iter().map(|&chunk| f64::from_le_bytes(chunk)).collect();
        // Duplicate entries may be summed in another order.
        let tolerance = if what.contains("repeated") { 1e-12 } else { 0.0 };

        let how = Reading { no_ids: expected["no_ids"] == true, ..Reading::default() };
        let table = read(&path, variable, how).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((table.rows, table.columns), shape(expected), "{what}");
        let own = (expected["precision"].as_str().unwrap(), expected["sparse"].as_bool().unwrap());
        assert_eq!(precision(&table), own, "{what}");
        assert!(same(&values(&table), &wanted, tolerance), "{what}");
        assert_eq!(table.ids, names(&expected["ids"]), "{what}");
        assert_eq!(table.features, names(&expected["features"]), "{what}");
        assert_eq!((&*table.path, table.variable.as_deref()), (&*path, picked(&table, variable)), "{what}");

        let flipped = read(&path, variable, Reading { transpose: true, ..how }).unwrap();
        assert!(flipped.transposed && !table.transposed);
        if expected["directionless"] == true {
            assert_eq!(flipped.rows, table.rows, "{what}");
        } else {
            assert_eq!((flipped.columns, flipped.rows), shape(expected), "{what}");
            let turned = turned(&wanted, table.rows, table.columns);
            assert!(same(&values(&flipped), &turned, tolerance), "{what}");
            let ids = table.features.filter(|_| !how.no_ids);
            assert_eq!((flipped.ids, flipped.features), (ids, table.ids), "{what}");
        }

        for (name, precision_asked) in [("f32", Precision::F32), ("f64", Precision::F64)] {
            let how = Reading { precision: Some(precision_asked), ..how };
            let table = read(&path, variable, how).unwrap();
            assert_eq!(precision(&table), (name, own.1), "{what}");
            let rounded: Vec<f64> = wanted.iter().map(|&value| f64::from(value as f32)).collect();
            let wanted = if name == "f32" { &rounded } else { &wanted };
            assert!(same(&values(&table), wanted, tolerance * 1e7), "{what}");
        }
    }
}

fn shape(expected: &Value) -> (usize, usize) {
    let number = |name: &str| expected[name].as_u64().unwrap() as usize;
    (number("rows"), number("columns"))
}

/// The variable that a table names was chosen by default.
fn picked<'a>(table: &'a Table, asked: Option<&'a str>) -> Option<&'a str> {
    asked.or(table.variable.as_deref())
}

#[test]
fn errors_say_why_and_what_to_do() {
    let Some(formats) = Formats::make() else { return };
    for expected in &formats.errors {
        let path = formats.path(&expected["file"]);
        let variable = expected["variable"].as_str();
        let message = match read(&path, variable, Reading::default()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{expected} was read"),
        };
        assert!(message.starts_with(&path.display().to_string()), "{message}");
        for part in expected["parts"].as_array().unwrap() {
            assert!(message.contains(part.as_str().unwrap()), "{part} is not in: {message}");
        }
    }
}

#[test]
fn without_ids_the_first_column_holds_values() {
    let Some(formats) = Formats::make() else { return };
    let how = Reading { no_ids: true, ..Reading::default() };
    let table = read(&formats.path(&"arrow_v1.parquet".into()), None, how).unwrap();
    assert_eq!((table.rows, table.columns, table.ids), (200, 8, None));
    assert_eq!(table.features.unwrap()[0], "id");
    let error = read(&formats.path(&"named_zstd.parquet".into()), None, how).unwrap_err().to_string();
    assert!(error.contains("'sample'"), "{error}");
}

#[test]
fn digit_is_read() {
    let Some(path) = shared("digit/Handwritten.mat") else { return };
    for (cell, features) in [216, 76, 64, 6, 240, 47].into_iter().enumerate() {
        let name = format!("X{{{}}}", cell + 1);
        let table = read(&path, Some(&name), Reading::default()).unwrap();
        assert_eq!((table.rows, table.columns), (2000, features), "{name}");
        assert!(values(&table).iter().all(|value| value.is_finite()));
    }
    let first = values(&read(&path, Some("X{1}"), Reading::default()).unwrap());
    assert_eq!((first[0], first[2000 * 216 - 1], first.iter().sum()), (98.0, 20.0, 137_492_808.0));
    let truth = read(&path, Some("y"), Reading::default()).unwrap();
    let truth = values(&truth);
    assert!((0..2000).all(|i| truth[i] == (i / 200 + 1) as f64));
    let error = read(&path, None, Reading::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("{2} double 2000 × 76") && error.contains("y (double 2000 × 1)"), "{error}");
}

#[test]
fn wikipedia_is_read() {
    let Some(path) = shared("wikipedia/raw_features.mat") else { return };
    for (name, features) in [("I_te", 128), ("T_te", 10)] {
        let table = read(&path, Some(name), Reading::default()).unwrap();
        assert_eq!((table.rows, table.columns), (693, features), "{name}");
        // Both are histograms or mixtures of topics.
        let values = values(&table);
        let sums = values.chunks(features).map(|row| row.iter().sum::<f64>());
        assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-3), "{name}");
    }
}

#[test]
fn flowers_are_read() {
    let Some(path) = shared("flowers17/flowers17_bow.npz") else { return };
    for (name, features) in [("colour", 200), ("shape", 500), ("texture", 300), ("labels", 1)] {
        let table = read(&path, Some(name), Reading::default()).unwrap();
        assert_eq!((table.rows, table.columns), (1360, features), "{name}");
        assert!(values(&table).iter().all(|&value| value >= 0.0 && value.fract() == 0.0), "{name}");
    }
    let error = read(&path, None, Reading::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("'texture'") && error.contains("1360 × 300"), "{error}");
}
