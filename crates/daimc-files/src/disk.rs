//! The system calls by which files appear, all in one place, so that a test can let each of them fail.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A folder is made.
    CreateFolder,
    /// A file is made or opened.
    CreateFile,
    /// A file is locked.
    Lock,
    /// Bytes are written.
    Write,
    /// A file or folder is synchronised with the disk.
    Sync,
    /// A file or folder gets another name.
    Rename,
    /// A file is removed.
    RemoveFile,
    /// An empty folder is removed.
    RemoveFolder,
    /// A folder is listed.
    List,
    /// It is asked whether there is something of a name.
    Look,
}

/// What is asked before each call.
type Before = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

/// The file system.
#[derive(Clone, Default)]
pub struct Disk {
    before: Option<Arc<Before>>,
}

impl Disk {
    /// A file system that asks before each call: an error is what the call then fails with.
    pub fn asking(before: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { before: Some(Arc::new(before)) }
    }

    fn ask(&self, call: Call, path: &Path) -> io::Result<()> {
        self.before.as_ref().map_or(Ok(()), |before| before(call, path))
    }

    /// Makes a folder; the result says whether it is a new one.
    pub(crate) fn create_folder(&self, path: &Path) -> io::Result<bool> {
        self.ask(Call::CreateFolder, path)?;
        loop {
            match fs::create_dir(path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if path.is_dir() => return Ok(false),
                // Something else is there, or somebody has just removed what was there.
                Err(error) if fs::symlink_metadata(path).is_ok() => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, path: &Path, how: &OpenOptions) -> io::Result<Sink> {
        self.ask(Call::CreateFile, path)?;
        Ok(Sink { disk: self.clone(), file: how.open(path)?, path: path.to_owned() })
    }

    /// Locks a file until it is closed. `Some(false)` if another process has locked it, `None` if there are no locks.
    pub(crate) fn try_lock(&self, file: &Sink) -> Option<bool> {
        self.ask(Call::Lock, &file.path).ok()?;
        match file.file.try_lock() {
            Ok(()) => Some(true),
            Err(TryLockError::WouldBlock) => Some(false),
            // A file system without locks is no reason to lose a result.
            Err(TryLockError::Error(_)) => None,
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(Call::Rename, from)?;
        fs::rename(from, to)
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.ask(Call::RemoveFile, path)?;
        fs::remove_file(path)
    }

    pub(crate) fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.ask(Call::RemoveFolder, path)?;
        fs::remove_dir(path)
    }

    /// Removes a folder of files and of folders of files, if it is there.
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

    /// The names in a folder; none if it is not there.
    pub(crate) fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.ask(Call::List, folder)?;
        match fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether there is something of this name, be it a link to nowhere.
    pub(crate) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.ask(Call::Look, path)?;
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the names in a folder safe from a loss of power.
    pub(crate) fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.ask(Call::Sync, path)?;
        if cfg!(not(unix)) {
            return Ok(());
        }
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match File::open(path)?.sync_all() {
            // Some file systems have no such call for folders.
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
    /// Gives the file the permissions of the one whose place it takes: what was kept from others stays so.
    pub(crate) fn protect_as(&self, replaced: &Path) {
        if cfg!(unix)
            && let Ok(known) = fs::metadata(replaced)
        {
            // Where it cannot be done, the file is as protected as any new one.
            let _ = self.file.set_permissions(known.permissions());
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.ask(Call::Sync, &self.path)?;
        self.file.sync_all()
    }

    /// Whether this is still the file of its name: the name may have been removed since it was opened, and made again.
    #[cfg(unix)]
    pub(crate) fn is_named(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |known: fs::Metadata| (known.dev(), known.ino());
        let own = self.file.metadata().map(identity);
        own.is_ok_and(|own| fs::symlink_metadata(&self.path).is_ok_and(|named| identity(named) == own))
    }

    /// Whether this is still the file of its name: a file that is open keeps its name here.
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
        self.disk.ask(Call::Write, &self.path)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
