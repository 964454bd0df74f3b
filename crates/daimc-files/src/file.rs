//! One file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Sink};

/// How many links to links are followed.
const LINKS: usize = 40;

/// A file that appears whole when it is finished, or not at all.
pub struct OutputFile {
    disk: Disk,
    /// Where it is written to, until it is finished.
    out: Option<Sink>,
    /// What it then replaces; nothing where it is written through.
    target: Option<PathBuf>,
}

/// Writes a file that appears whole or not at all.
///
/// # Errors
/// When it cannot be written, or `content` fails.
pub fn write(path: &Path, content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut file = OutputFile::begin(path)?;
    file.write(content)?;
    file.finish()
}

impl OutputFile {
    /// Begins a file, so that it is known before the work whether it can be written.
    ///
    /// # Errors
    /// When it cannot.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Self::begin_on(&Disk::default(), path)
    }

    /// The same on a file system that is told.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_on(disk: &Disk, path: &Path) -> io::Result<Self> {
        let disk = disk.clone();
        let Some(target) = replaceable(path)? else {
            // To the end: a descriptor may be that of a file to which others have written before.
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

    /// Lets the file appear.
    ///
    /// # Errors
    /// When that is refused; then what was there before is there still.
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
            // What cannot be removed now, the next writer removes.
            let _ = self.disk.remove_file(out.path());
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The file that is replaced in the end, all links followed; none if it can only be written to.
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

/// What the names of the partial files of a target begin with.
fn prefix(target: &Path) -> OsString {
    let name = target.file_name().unwrap_or_default();
    // A file's name has at most 255 bytes.
    let name = if name.len() > 200 { OsStr::new("daimc") } else { name };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".partial-");
    prefix
}

/// A new file beside the target, locked.
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
        // Somebody who removes left-overs may have come between making and locking.
        if disk.try_lock(&file) != Some(false) && file.is_named() {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the partial files of processes that have died.
fn remove_left_overs(disk: &Disk, target: &Path) {
    let (folder, prefix) = (parent(target), prefix(target));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // What cannot be listed or removed does no harm.
    for name in disk.names(listed).unwrap_or_default() {
        if name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
            && let Ok(file) = disk.open(&folder.join(&name), OpenOptions::new().write(true))
            && disk.try_lock(&file) == Some(true)
        {
            let _ = disk.remove_file(file.path());
        }
    }
}
