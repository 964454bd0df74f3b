//! Formats that are recognised but not read, with the command that converts them.

use std::path::Path;

use daimc_core::text::plain;

/// The first bytes of a format, its name, and how to convert it; `FILE` is replaced by the name of the file.
const SIGNATURES: [(&[u8], &str, &str); 10] = [
    (b"X\n\0\0\0", "an object of R", R_OBJECT),
    (b"RDX2\n", "a workspace of R", R_WORKSPACE),
    (b"RDX3\n", "a workspace of R", R_WORKSPACE),
    (b"\x80\x02", "a pickle of Python", PICKLE),
    (b"\x80\x03", "a pickle of Python", PICKLE),
    (b"\x80\x04", "a pickle of Python", PICKLE),
    (b"\x80\x05", "a pickle of Python", PICKLE),
    (
        b"FEA1",
        "a Feather file of version 1",
        "in Python, pandas.read_feather(\"FILE\").to_feather(\"FILE.feather\")",
    ),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an .xls file, or one with a password", SPREADSHEET),
    (
        b"SQLite format 3\0",
        "a database of SQLite",
        "sqlite3 -header -csv FILE 'select * from TABLE' > FILE.csv",
    ),
];

const R_OBJECT: &str = "in R, write.csv(readRDS(\"FILE\"), \"FILE.csv\")";
const R_WORKSPACE: &str = "in R, load(\"FILE\"), then write.csv(TABLE, \"FILE.csv\")";
const PICKLE: &str = "in Python, pandas.read_pickle(\"FILE\").to_csv(\"FILE.csv\")";
const SPREADSHEET: &str = "open it and save it as .xlsx, without a password";
const ZARR: &str = "in Python, anndata.read_zarr(\"FILE\").write(\"FILE.h5ad\")";

/// Enough bytes to recognise all of these.
pub(crate) const START: usize = 16;

/// The error for a text with such a start after decompression.
pub(crate) fn text(path: &Path, start: &[u8]) -> Option<String> {
    let (_, what, how) = SIGNATURES.iter().find(|(signature, ..)| start.starts_with(signature))?;
    Some(refused(path, what, how))
}

/// The error for a folder that is an array store.
pub(crate) fn folder(path: &Path) -> Option<String> {
    let marks = [".zgroup", ".zarray", "zarr.json"];
    let zarr = marks.iter().any(|mark| path.join(mark).is_file());
    zarr.then(|| refused(path, "a Zarr store", ZARR))
}

fn refused(path: &Path, what: &str, how: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let how = how.replace("FILE", &plain(&name).to_string());
    format!("is {what}, which is not read; convert it: {how}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use crate::{Reading, read};

    #[test]
    fn unsupported_formats_are_refused_with_the_command_that_converts_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"X\n\0\0\0\x03\0\x04").unwrap();
        let files: [(&str, Vec<u8>, &str); 5] = [
            ("a.rds", packed.finish().unwrap(), "write.csv(readRDS(\"a.rds\"), \"a.rds.csv\")"),
            ("a.RData", b"RDX3\nX\n\0".to_vec(), "load(\"a.RData\")"),
            ("a.pkl", b"\x80\x04\x95\0".to_vec(), "pandas.read_pickle(\"a.pkl\")"),
            ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0".to_vec(), "save it as .xlsx"),
            ("a.feather", b"FEA1\0\0\0\0".to_vec(), "read_feather(\"a.feather\").to_feather"),
        ];
        for (name, bytes, expected) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path, None, Reading::default()).unwrap_err().to_string();
            assert!(error.contains("is not read") && error.contains(expected), "{error}");
        }
        let store = folder.path().join("a.zarr");
        std::fs::create_dir(&store).unwrap();
        std::fs::write(store.join(".zgroup"), "{}").unwrap();
        let error = read(&store, None, Reading::default()).unwrap_err().to_string();
        assert!(error.contains("anndata.read_zarr(\"a.zarr\")"), "{error}");
        // A table whose first name only looks like one of these.
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "BZh9,ARROW1\na,1\nb,2\n").unwrap();
        assert_eq!(read(&path, None, Reading::default()).unwrap().rows, 2);
    }
}
