//! Output: files appear whole or not at all, as `daimc_files` lets them; none that is read is overwritten.

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

/// Before a result is read, from its folder or from one of its files: puts in place what a process that was killed had finished.
pub fn settle(result: &Path) -> Result<()> {
    let folder = if result.is_dir() { result } else { result.parent().unwrap_or(Path::new("")) };
    Ok(daimc_files::recover(folder)?)
}

/// Fails if a file that is to be written is one that is read, or is read with one.
pub fn spare_inputs<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    for input in inputs {
        let all = std::iter::once(input.to_owned()).chain(daimc_io::companions(input));
        for read in all {
            if fs::canonicalize(&read).is_ok_and(|read| read == output && read.is_file()) {
                let reason = "this file is read, so it cannot be written: choose another name for the output";
                return Err(Failure::Usage(format!("{}: {reason}", read.display())));
            }
        }
    }
    Ok(())
}

/// One file, or standard output where none is named.
pub struct Destination {
    name: String,
    file: Option<OutputFile>,
}

impl Destination {
    /// Begins a file, so that it is known before the work whether it can be written.
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

    /// Lets the file appear.
    pub fn finish(self) -> Result<()> {
        let finished = self.file.map_or(Ok(()), OutputFile::finish);
        finished.map_err(|error| Failure::output(&self.name, &error))
    }
}
