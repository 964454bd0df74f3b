//! Atomic writes of one file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Sink};

/// The maximum length of a chain of links.
const LINKS: usize = 40;

/// A file that replaces its target when it is finished, or never.
pub struct OutputFile {
    disk: Disk,
    /// The partial file, until it is finished.
    out: Option<Sink>,
    /// The file that is replaced; `None` if the path is written to directly.
    target: Option<PathBuf>,
}

/// Writes a file atomically.
///
/// # Errors
/// When it cannot be written, or `content` fails.
pub fn write(path: &Path, content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut file = OutputFile::begin(path)?;
    file.write(content)?;
    file.finish()
}

impl OutputFile {
    /// Begins a file. Errors show before the work that it cannot be written.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Self::begin_on(&Disk::default(), path)
    }

    /// As [`begin`](Self::begin), on the given file system.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_on(disk: &Disk, path: &Path) -> io::Result<Self> {
        let disk = disk.clone();
        let Some(target) = replaceable(path)? else {
            // Append: a descriptor may refer to a file with earlier output.
            let out = disk.open(path, OpenOptions::new().append(true))?;
            return Ok(Self { disk, out: Some(out), target: None });
        };
        remove_left_overs(&disk, &target);
        let out = partial(&disk, &target)?;
        out.protect_as(&target);
        Ok(Self { disk, out: Some(out), target: Some(target) })
    }

    /// Writes more of the file.
    ///
    /// # Errors
    /// When it cannot be written, or `content` fails.
    pub fn write(
        &mut self,
        content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let mut out = BufWriter::with_capacity(1 << 18, out);
        content(&mut out)?;
        out.flush()
    }

    /// Replaces the target.
    ///
    /// # Errors
    /// When the system refuses; the target is then unchanged.
    pub fn finish(mut self) -> io::Result<()> {
        let (Some(out), Some(target)) = (&self.out, &self.target) else { return Ok(()) };
        out.sync()?;
        self.disk.rename(out.path(), target)?;
        self.out = None;
        self.disk.sync_folder(parent(target))
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let (Some(out), Some(_)) = (&self.out, &self.target) {
            // If this fails, the next writer removes the file.
            let _ = self.disk.remove_file(out.path());
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The file to replace, with all links followed; `None` if the path can only be written to.
fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let folder = fs::canonicalize(parent(&path)).unwrap_or_default();
        if folder.starts_with("/proc") || folder == Path::new("/dev/fd") {
            return Ok(None);
        }
        match fs::symlink_metadata(&path) {
            Ok(known) if known.is_symlink() => path = parent(&path).join(fs::read_link(&path)?),
            Ok(known) if known.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(known) => return Ok(known.is_file().then_some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// The prefix of the names of partial files of a target.
fn prefix(target: &Path) -> OsString {
    let name = target.file_name().unwrap_or_default();
    // A file's name has at most 255 bytes.
    let name = if name.len() > 200 { OsStr::new("daimc") } else { name };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".partial-");
    prefix
}

/// Creates and locks a new file next to the target.
fn partial(disk: &Disk, target: &Path) -> io::Result<Sink> {
    let process = std::process::id();
    for attempt in 0_u32.. {
        let mut name = prefix(target);
        name.push(if attempt == 0 { process.to_string() } else { format!("{process}-{attempt}") });
        let file =
            match disk.open(&target.with_file_name(name), OpenOptions::new().write(true).create_new(true)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            };
        // Another writer may have removed the file before it was locked.
        if disk.try_lock(&file) != Some(false) && file.is_named() {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the partial files of processes that have ended.
fn remove_left_overs(disk: &Disk, target: &Path) {
    let (folder, prefix) = (parent(target), prefix(target));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Left-over files that cannot be listed or removed do no harm.
    for name in disk.names(listed).unwrap_or_default() {
        if name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
            && let Ok(file) = disk.open(&folder.join(&name), OpenOptions::new().write(true))
            && disk.try_lock(&file) == Some(true)
        {
            let _ = disk.remove_file(file.path());
        }
    }
}
