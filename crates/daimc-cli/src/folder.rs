//! Output folders: files appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// A folder in which files appear all at once: until then they are written to a hidden folder beside it.
pub struct Folder {
    target: PathBuf,
    staging: PathBuf,
    files: Vec<String>,
}

impl Folder {
    /// Checks that files can be put there: the folder is new or empty, unless `force` allows to replace files.
    pub fn check(target: &Path, force: bool) -> Result<()> {
        let full = |reason: &str| Err(Failure::Usage(format!("{}: {reason}", target.display())));
        match fs::read_dir(target).map(Iterator::count) {
            Ok(files) if files > 0 && !force => {
                full("the folder is not empty; choose another, or replace its files with --force")
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                full("there is a file where a folder is needed; choose another name")
            }
            Err(error) => full(&error.to_string()),
        }
    }

    /// Checks as [`Folder::check`], and that the folder can be written to: better now than after hours of work.
    pub fn probe(target: &Path, force: bool) -> Result<()> {
        Self::begin(target, force).map(drop)
    }

    /// Begins to write.
    pub fn begin(target: &Path, force: bool) -> Result<Self> {
        Self::check(target, force)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let hidden = format!(".{name}.partial-{}", std::process::id());
        let parent = target.parent().unwrap_or(Path::new(""));
        let staging = if name.is_empty() { target.join(&hidden) } else { parent.join(&hidden) };
        let folder = Self { target: target.into(), staging, files: Vec::new() };
        fs::create_dir_all(&folder.staging).map_err(|error| folder.failure("", &error))?;
        Ok(folder)
    }

    /// Writes a file.
    pub fn write(
        &mut self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<()> {
        let path = self.staging.join(name);
        let write = || {
            let mut out = BufWriter::with_capacity(1 << 18, File::create(&path)?);
            content(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        };
        write().map_err(|error| self.failure(name, &error))?;
        self.files.push(name.into());
        Ok(())
    }

    /// A path to which another writer writes a file.
    pub fn path(&mut self, name: &str) -> PathBuf {
        self.files.push(name.into());
        self.staging.join(name)
    }

    /// Lets the files appear.
    pub fn finish(self) -> Result<()> {
        fs::create_dir_all(&self.target).map_err(|error| self.failure("", &error))?;
        for name in &self.files {
            let moved = fs::rename(self.staging.join(name), self.target.join(name));
            moved.map_err(|error| self.failure(name, &error))?;
        }
        Ok(())
    }

    fn failure(&self, name: &str, error: &io::Error) -> Failure {
        let path = if name.is_empty() { self.target.clone() } else { self.target.join(name) };
        Failure::output(&path.display().to_string(), error)
    }
}

/// Fails if a file that is to be written is one that is read.
pub fn spare_inputs<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    for input in inputs {
        if fs::canonicalize(input).is_ok_and(|input| input == output) {
            let reason = "this file is read, so it cannot be written: choose another name for the output";
            return Err(Failure::Usage(format!("{}: {reason}", input.display())));
        }
    }
    Ok(())
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about what cannot be removed, and it does no harm.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// Writes one file that appears whole, or standard output where no file is named.
pub fn write_file(path: Option<&Path>, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let Some(path) = path else {
        let mut out = BufWriter::new(io::stdout().lock());
        content(&mut out)?;
        return Ok(out.flush()?);
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial-{}", std::process::id()));
    let write = || {
        let mut out = BufWriter::new(File::create(&partial)?);
        content(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&partial);
        Failure::output(&path.display().to_string(), &error)
    })
}
