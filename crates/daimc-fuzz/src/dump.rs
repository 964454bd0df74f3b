//! Readable mutants with their values, for a comparison with reference libraries.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::target::{How, Target, values};
use daimc_io::Table;

/// The maximum number of values of a table in the dump, which limits disk use.
const LARGEST: usize = 1 << 16;

/// A folder of mutants with a list of their values.
pub struct Dump {
    folder: PathBuf,
    list: BufWriter<File>,
    count: usize,
}

impl Dump {
    pub fn begin(folder: &Path) -> Result<Self, String> {
        let begun = || {
            fs::create_dir_all(folder)?;
            let list = BufWriter::new(File::create(folder.join("list.jsonl"))?);
            Ok(Self { folder: folder.to_owned(), list, count: 0 })
        };
        begun().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))
    }

    /// Adds a mutant that was read with the default options.
    pub fn add(&mut self, target: &Target, bytes: &[u8], how: How, table: &Table) -> Result<(), String> {
        let size = table.rows.saturating_mul(table.columns);
        if target.name == "names" || size > LARGEST {
            return Ok(());
        }
        let mut added = || {
            let ending = target.path().to_string_lossy();
            let ending = ending.rsplit_once("case").map_or("", |(_, ending)| ending);
            let file = format!("{}{ending}", self.count);
            fs::write(self.folder.join(&file), bytes)?;
            // As bits, since JSON has neither NaN nor infinity.
            let bits: Vec<String> =
                values(table).iter().map(|value| format!("{:016x}", value.to_bits())).collect();
            let line = json!({
                "reader": target.name, "file": file, "variable": table.variable, "no_ids": how.reading.no_ids,
                "rows": table.rows, "columns": table.columns, "ids": table.ids, "features": table.features,
                "bits": bits.concat(),
            });
            self.count += 1;
            writeln!(self.list, "{line}")
        };
        added().map_err(|error| format!("{}: {error}", self.folder.display()))
    }
}
