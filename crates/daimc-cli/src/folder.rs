//! Output files and folders: written atomically by `daimc_files`, never over an input file.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub use daimc_files::Folder;
use daimc_files::OutputFile;

use crate::failure::{Failure, Result};

impl From<daimc_files::Error> for Failure {
    fn from(error: daimc_files::Error) -> Self {
        use daimc_files::Error as E;
        match &error {
            E::NotEmpty { .. } => {
                Self::Usage(format!("{error}; choose another, or replace its files with --force"))
            }
            E::NotAFolder { .. } => Self::Usage(error.to_string()),
            E::Io { path, source } => Self::output(&path.display().to_string(), source),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Completes the results that a killed process had finished but not put in place. Called before a result is read, from its folder
/// or from one of its files.
pub fn recover(result: &Path) -> Result<()> {
    let folder = if result.is_dir() { result } else { result.parent().unwrap_or(Path::new("")) };
    Ok(daimc_files::recover(folder)?)
}

/// Fails if an output file is an input file or a companion of one.
pub fn spare_inputs<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    for input in inputs {
        let all = std::iter::once(input.to_owned()).chain(daimc_io::companions(input));
        for read in all {
            if fs::canonicalize(&read).is_ok_and(|read| read == output && read.is_file()) {
                let reason = "this is an input file: choose another name for the output";
                return Err(Failure::Usage(format!("{}: {reason}", read.display())));
            }
        }
    }
    Ok(())
}

/// An output file, or standard output by default.
pub struct Destination {
    name: String,
    file: Option<OutputFile>,
}

impl Destination {
    /// Opens the file, to fail before the work if it cannot be written.
    pub fn begin(path: Option<&Path>) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("/dev/stdout"));
        let name = path.map_or_else(|| "standard output".into(), |path| path.display().to_string());
        let file = path.map(OutputFile::begin).transpose();
        Ok(Self { file: file.map_err(|error| Failure::output(&name, &error))?, name })
    }

    /// Writes the content.
    pub fn write(&mut self, content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
        let written = if let Some(file) = &mut self.file {
            file.write(content)
        } else {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
            content(&mut out).and_then(|()| out.flush())
        };
        written.map_err(|error| Failure::output(&self.name, &error))
    }

    /// Puts the file in place.
    pub fn finish(self) -> Result<()> {
        let finished = self.file.map_or(Ok(()), OutputFile::finish);
        finished.map_err(|error| Failure::output(&self.name, &error))
    }
}
