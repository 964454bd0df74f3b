//! The system calls of this crate in one place, so that a test can make each of them fail.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A folder is created.
    CreateFolder,
    /// A file is created or opened.
    CreateFile,
    /// A file is locked.
    Lock,
    /// Bytes are written.
    Write,
    /// A file or folder is flushed to the disk.
    Sync,
    /// A file or folder is renamed.
    Rename,
    /// A file is removed.
    RemoveFile,
    /// An empty folder is removed.
    RemoveFolder,
    /// A folder is listed.
    List,
    /// A path is checked for existence.
    Look,
}

/// A hook that runs before each call.
type Before = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

/// The file system.
#[derive(Clone, Default)]
pub struct Disk {
    before: Option<Arc<Before>>,
}

impl Disk {
    /// A file system with a hook before each call, whose errors replace the call.
    pub fn with_hook(before: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { before: Some(Arc::new(before)) }
    }

    fn check(&self, call: Call, path: &Path) -> io::Result<()> {
        self.before.as_ref().map_or(Ok(()), |before| before(call, path))
    }

    /// Creates a folder; returns whether it is new.
    pub(crate) fn create_folder(&self, path: &Path) -> io::Result<bool> {
        self.check(Call::CreateFolder, path)?;
        loop {
            match fs::create_dir(path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if path.is_dir() => return Ok(false),
                // The path is something else, or the folder was removed in the meantime.
                Err(error) if fs::symlink_metadata(path).is_ok() => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, path: &Path, how: &OpenOptions) -> io::Result<Sink> {
        self.check(Call::CreateFile, path)?;
        Ok(Sink { disk: self.clone(), file: how.open(path)?, path: path.to_owned() })
    }

    /// Locks a file until it is closed. `Some(false)` if another process has locked it, `None` if locks are not supported.
    pub(crate) fn try_lock(&self, file: &Sink) -> Option<bool> {
        self.check(Call::Lock, &file.path).ok()?;
        match file.file.try_lock() {
            Ok(()) => Some(true),
            Err(TryLockError::WouldBlock) => Some(false),
            // Without locks, the result is still written.
            Err(TryLockError::Error(_)) => None,
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Call::Rename, from)?;
        fs::rename(from, to)
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check(Call::RemoveFile, path)?;
        fs::remove_file(path)
    }

    pub(crate) fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.check(Call::RemoveFolder, path)?;
        fs::remove_dir(path)
    }

    /// Removes a folder and its contents, if it exists.
    pub(crate) fn remove_all(&self, folder: &Path) -> io::Result<()> {
        for name in self.names(folder)? {
            let path = folder.join(name);
            if fs::symlink_metadata(&path)?.is_dir() {
                self.remove_all(&path)?;
            } else {
                self.remove_file(&path)?;
            }
        }
        match self.remove_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The names in a folder; none if it does not exist.
    pub(crate) fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.check(Call::List, folder)?;
        match fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether a path exists, also as a dangling link.
    pub(crate) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check(Call::Look, path)?;
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Flushes the names in a folder to the disk.
    pub(crate) fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.check(Call::Sync, path)?;
        if cfg!(not(unix)) {
            return Ok(());
        }
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match File::open(path)?.sync_all() {
            // Some file systems do not support this for folders.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

/// A file that is written.
pub struct Sink {
    disk: Disk,
    file: File,
    path: PathBuf,
}

impl Sink {
    /// Copies the permissions of the file that will be replaced, so that a private file stays private.
    pub(crate) fn protect_as(&self, replaced: &Path) {
        if cfg!(unix)
            && let Ok(known) = fs::metadata(replaced)
        {
            // If that fails, the file has the permissions of a new one.
            let _ = self.file.set_permissions(known.permissions());
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.check(Call::Sync, &self.path)?;
        self.file.sync_all()
    }

    /// Whether the path still refers to this file: it may have been removed and created again since it was opened.
    #[cfg(unix)]
    pub(crate) fn is_named(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |known: fs::Metadata| (known.dev(), known.ino());
        let own = self.file.metadata().map(identity);
        own.is_ok_and(|own| fs::symlink_metadata(&self.path).is_ok_and(|named| identity(named) == own))
    }

    /// Whether the path still refers to this file, which keeps its name while it is open on this system.
    #[cfg(not(unix))]
    pub(crate) fn is_named(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.check(Call::Write, &self.path)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
