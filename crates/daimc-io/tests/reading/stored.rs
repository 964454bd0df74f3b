//! Tables that stay on disk have the rows of the same tables in memory, and give the same models.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::common::{Folder, Formats, values};
use daimc::source::Buffer;
use daimc::{Daimc, Error, Fit, Layout, Neighbours, Views};
use daimc_io::{
    Assembly, Cells, Disk, Nan, Precision, Reading, Stored, Table, assemble, expected, read, read_hashed,
    read_stored,
};

fn stored(table: &Table) -> &Stored {
    match &table.cells {
        Cells::Stored(stored) => stored,
        _ => panic!("the values are in memory"),
    }
}

/// The values of rows that were read, dense.
fn dense(stored: &Stored, rows: usize, buffer: &Buffer) -> Vec<f64> {
    let columns = stored.rows().shape().1;
    let wide = || buffer.f32.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    let all = match stored.layout() {
        Layout::DenseF32 | Layout::SparseF32 => wide(),
        Layout::DenseF64 | Layout::SparseF64 => buffer.f64.clone(),
    };
    if stored.layout().is_dense() {
        assert_eq!(all.len(), rows * columns);
        return all;
    }
    let mut out = vec![0.0; rows * columns];
    assert_eq!(buffer.offsets.len(), rows + 1);
    for (row, bounds) in buffer.offsets.windows(2).enumerate() {
        for at in bounds[0]..bounds[1] {
            out[row * columns + buffer.columns[at] as usize] = all[at];
        }
    }
    out
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_file_has_the_same_rows_on_disk_and_in_memory() {
    let Some(formats) = Formats::make() else { return };
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let mut buffer = Buffer::default();
    for given in &formats.tables {
        let path = formats.path(&given["file"]);
        let variable = given["variable"].as_str();
        for transpose in [false, true] {
            for precision in [None, Some(Precision::F32)] {
                let how =
                    Reading { no_ids: given["no_ids"] == true, transpose, precision, ..Reading::default() };
                let what = format!("{} {variable:?}, {how:?}", given["file"]);
                let Ok((table, hash)) = read_hashed(&path, variable, how) else { continue };
                let (own, own_hash) = read_stored(&path, variable, how, &disk).unwrap();
                assert_eq!(
                    (&own.ids, &own.features, &own.lines),
                    (&table.ids, &table.features, &table.lines),
                    "{what}"
                );
                assert_eq!((own.rows, own.columns, own_hash), (table.rows, table.columns, hash), "{what}");
                let (rows, wanted) = (stored(&own).rows(), values(&table));
                let line = |row: usize| &wanted[row * table.columns..(row + 1) * table.columns];
                for range in [0..table.rows, 0..1, table.rows / 2..table.rows, table.rows - 1..table.rows] {
                    rows.read(range.clone(), &mut buffer).unwrap();
                    let expected: Vec<f64> = range.clone().flat_map(line).copied().collect();
                    assert_eq!(
                        bits(&dense(stored(&own), range.len(), &buffer)),
                        bits(&expected),
                        "{what}, {range:?}"
                    );
                }
                let some: Vec<u32> = (0..table.rows as u32).filter(|row| row % 3 != 1).collect();
                rows.pick(&some, &mut buffer).unwrap();
                let expected: Vec<f64> = some.iter().flat_map(|&row| line(row as usize)).copied().collect();
                assert_eq!(
                    bits(&dense(stored(&own), some.len(), &buffer)),
                    bits(&expected),
                    "{what}, picked"
                );
            }
        }
    }
    // No spool file is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn errors_in_memory_and_on_disk_are_the_same() {
    let Some(formats) = Formats::make() else { return };
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    for given in &formats.errors {
        let (path, variable) = (formats.path(&given["file"]), given["variable"].as_str());
        let memory = read(&path, variable, Reading::default()).unwrap_err().to_string();
        let message = read_stored(&path, variable, Reading::default(), &disk).unwrap_err().to_string();
        assert_eq!(message, memory);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A matrix of three clusters as numpy writes it, by row or by column.
fn npy(rows: usize, columns: usize, fortran: bool) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({rows}, {columns}), }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    let value =
        |i: usize, f: usize| if f % 3 == i % 3 { 3.0 } else { 0.4 + 0.1 * ((7 * i + 3 * f) % 11) as f32 };
    let lines = if fortran { columns } else { rows };
    let length = if fortran { rows } else { columns };
    for line in 0..lines {
        for at in 0..length {
            let (i, f) = if fortran { (at, line) } else { (line, at) };
            bytes.extend(value(i, f).to_le_bytes());
        }
    }
    bytes
}

/// The same with IDs, every fifth row missing, in another order.
fn csv(rows: usize, columns: usize) -> String {
    let value = |i: usize, f: usize| if f % 3 == i % 3 { 2.5 } else { 0.1 * ((5 * i + f) % 7) as f64 };
    let line = |i: usize| (0..columns).fold(format!("\n{i}"), |line, f| line + &format!(",{}", value(i, f)));
    let names = (0..columns).fold(String::from("id"), |line, f| line + &format!(",f{f}"));
    (0..rows).rev().filter(|i| i % 5 != 2).fold(names, |text, i| text + &line(i))
}

fn views(paths: [&Path; 2], on_disk: Option<&Path>) -> Views<'static> {
    let table = |path: &Path| match on_disk {
        Some(folder) => read_stored(path, None, Reading::default(), &Disk::new(folder)).unwrap().0,
        None => read(path, None, Reading::default()).unwrap(),
    };
    let tables = vec![("a".to_string(), table(paths[0])), ("b".to_string(), table(paths[1]))];
    assemble(tables, &Assembly::default()).unwrap().0
}

fn same(a: &Fit, b: &Fit) {
    assert_eq!(bits(a.latent.values()), bits(b.latent.values()));
    assert_eq!((&a.labels, &a.ids, &a.history), (&b.labels, &b.ids, &b.history));
    for (a, b) in a.model.views.iter().zip(&b.model.views) {
        assert_eq!(a, b);
    }
}

#[test]
fn models_of_views_on_disk_are_those_of_views_in_memory() {
    let folder = Folder::new();
    let spool = tempfile::tempdir().unwrap();
    let b = folder.file("b.csv", csv(6000, 9));
    for fortran in [false, true] {
        let a = folder.file("a.npy", npy(6000, 12, fortran));
        let (memory, disk) = (views([&a, &b], None), views([&a, &b], Some(spool.path())));
        for threads in [1, 2, 7] {
            let fit = Daimc::new(3).neighbours(Neighbours::Off).max_iterations(5).threads(threads);
            let (in_memory, on_disk) = (fit.fit(&memory).unwrap(), fit.fit(&disk).unwrap());
            same(&in_memory, &on_disk);
            assert_eq!(on_disk.model.predict(&disk).unwrap(), on_disk.model.predict(&memory).unwrap());
        }
    }
}

#[test]
fn a_file_that_changes_or_shrinks_while_it_is_read_ends_the_fit() {
    let folder = Folder::new();
    for shrink in [false, true] {
        let a = folder.file("a.npy", npy(5000, 12, false));
        let table = read_stored(&a, None, Reading::default(), &Disk::new(std::env::temp_dir())).unwrap().0;
        let views = assemble(vec![("a".into(), table)], &Assembly::default()).unwrap().0;
        let fit = Daimc::new(3).neighbours(Neighbours::Off).tolerance(0.0).max_iterations(20);
        let error = fit.fit_with(&views, |iteration| {
            if iteration.number == 2 {
                let mut file = OpenOptions::new().append(true).open(&a).unwrap();
                if shrink { file.set_len(4000).unwrap() } else { file.write_all(b"more").unwrap() }
            }
            std::ops::ControlFlow::Continue(())
        });
        let error = error.unwrap_err();
        assert!(matches!(&error, Error::Read { view, .. } if view == "a"), "{error}");
        let message = error.to_string();
        let why =
            if shrink { "has become shorter while it was read" } else { "was changed while it was read" };
        assert!(message.contains("a.npy") && message.contains(why) && !message.contains('\n'), "{message}");
    }
}

#[test]
fn missing_values_on_disk_are_found() {
    let folder = Folder::new();
    let whole = folder.file("whole.csv", "id,x,y\na,1,2\nb,NA,NA\nc,3,4\nd,5,6");
    let spool = tempfile::tempdir().unwrap();
    let stored =
        |path: &Path| read_stored(path, None, Reading::default(), &Disk::new(spool.path())).unwrap().0;
    let (views, account) = assemble(vec![("v".into(), stored(&whole))], &Assembly::default()).unwrap();
    assert_eq!((views.instances(), account.views[0].empty), (3, 1));
    let part = folder.file("part.csv", "id,x,y\na,1,2\nb,NA,7\nc,3,4");
    let in_memory = || read(&part, None, Reading::default()).unwrap();
    let error = Assembly { nan: Nan::Error, ..Assembly::default() };
    let refused = assemble(vec![("v".into(), stored(&part))], &error).unwrap_err().to_string();
    let expected = assemble(vec![("v".into(), in_memory())], &error).unwrap_err().to_string();
    assert_eq!(refused, expected);
    // Values that are missing inside rows stay missing, on disk as in memory.
    let model = Assembly::default();
    let (there, account) = assemble(vec![("v".into(), stored(&part))], &model).unwrap();
    let (here, expected) = assemble(vec![("v".into(), in_memory())], &model).unwrap();
    assert_eq!(account, expected);
    assert_eq!((there.missing_cells(0), here.missing_cells(0)), (Some(1), Some(1)));
    let mean = Assembly { nan: Nan::Mean, ..Assembly::default() };
    let refused = assemble(vec![("v".into(), stored(&part))], &mean).unwrap_err().to_string();
    assert!(refused.contains("do not fit into memory"), "{refused}");
}

#[test]
fn a_spool_file_that_cannot_be_written_is_one_sentence() {
    let folder = Folder::new();
    let path = folder.file("a.csv", csv(50, 4));
    let nowhere = path.with_file_name("nowhere");
    let error = read_stored(&path, None, Reading::default(), &Disk::new(&nowhere)).unwrap_err();
    assert_eq!(error.kind(), daimc::ErrorKind::Failed);
    let message = error.to_string();
    assert!(
        message.contains("nowhere") && message.contains("--memory") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn the_memory_of_a_table_is_estimated_from_its_header() {
    let folder = Folder::new();
    let a = folder.file("a.npy", npy(500, 12, true));
    let size = expected(&a, None, Reading::default()).unwrap();
    assert_eq!((size.bytes, size.rows), (500 * 12 * 4, Some(500)));
    let wide = Reading { precision: Some(Precision::F64), transpose: true, ..Reading::default() };
    let size = expected(&a, None, wide).unwrap();
    assert_eq!((size.bytes, size.rows), (500 * 12 * 8, Some(12)));
    let text = folder.file("b.csv", csv(4000, 20));
    let guess = expected(&text, None, Reading::default()).unwrap().bytes as f64;
    let own = 3200.0 * 20.0 * 8.0;
    assert!(guess > own / 4.0 && guess < own * 4.0, "{guess} for {own}");
    assert_eq!(expected(Path::new("/dev/null"), None, Reading::default()).unwrap().bytes, 0);
    assert!(File::open(&a).is_ok());
}
