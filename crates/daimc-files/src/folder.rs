//! Atomic writes of several files.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::{Disk, Sink};
use crate::error::{Error, Result};
use crate::lock::Lock;

/// The folder of partial results.
const HIDDEN: &str = ".daimc-partial";

/// How long a reader waits for a writer that is moving files into place, which takes only a few renames.
const PATIENCE: Duration = Duration::from_secs(10);

/// A folder whose files are replaced all at once. It is locked: no other process can begin to write to it.
pub struct Folder {
    disk: Disk,
    target: PathBuf,
    lock: Option<Lock>,
    /// Folders that were created, the deepest last; they are removed again if no file is written.
    made: Vec<PathBuf>,
}

/// Completes the result of a process that was killed while it moved files into place. Call this before reading files of a folder
/// that belong together; it has no effect on other folders and paths.
///
/// # Errors
/// When the files cannot be moved into place.
pub fn recover(folder: &Path) -> Result<()> {
    let start = Instant::now();
    while hidden(folder).join("complete").exists() {
        match Folder::open(&Disk::default(), folder) {
            Ok(_) => return Ok(()),
            Err(Error::Busy { .. }) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(Error::Io { source, .. }) => return Err(Error::Unfinished { folder: folder.into(), source }),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn hidden(target: &Path) -> PathBuf {
    target.join(HIDDEN)
}

impl Folder {
    /// Begins to write to a folder that is new or empty, or whose files may be replaced. Results of killed processes are completed or
    /// removed first.
    ///
    /// # Errors
    /// When the folder is not empty and may not be replaced, when another process writes to it, or when it cannot be written to.
    pub fn begin(target: &Path, replace: bool) -> Result<Self> {
        Self::begin_on(&Disk::default(), target, replace)
    }

    /// As [`begin`](Self::begin), on the given file system.
    ///
    /// # Errors
    /// As for [`Folder::begin`].
    pub fn begin_on(disk: &Disk, target: &Path, replace: bool) -> Result<Self> {
        let folder = Self::open(disk, target)?;
        let names = disk.names(target).map_err(|error| folder.failure(error))?;
        if !replace && names.iter().any(|name| name != HIDDEN) {
            return Err(Error::NotEmpty { folder: target.into() });
        }
        Ok(folder)
    }

    fn open(disk: &Disk, target: &Path) -> Result<Self> {
        let mut folder = Self { disk: disk.clone(), target: target.into(), lock: None, made: Vec::new() };
        for attempt in 0.. {
            match folder.make().and_then(|()| Lock::take(disk, &folder.hidden("lock"))) {
                Ok(None) => return Err(Error::Busy { folder: target.into() }),
                Ok(lock) => folder.lock = lock,
                // The previous owner of the lock has just removed it with its folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < 100 => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(_) if fs::metadata(target).is_ok_and(|known| !known.is_dir()) => {
                    return Err(Error::NotAFolder { folder: target.into() });
                }
                Err(error) => return Err(folder.failure(error)),
            }
            break;
        }
        if disk.exists(&folder.hidden("complete")).map_err(|error| folder.failure(error))? {
            let unfinished = |source| Error::Unfinished { folder: target.into(), source };
            folder.put_in_place().map_err(unfinished)?;
            disk.remove_all(&folder.hidden("complete")).map_err(unfinished)?;
        }
        for left in ["staged", "replaced"] {
            disk.remove_all(&folder.hidden(left)).map_err(|error| folder.failure(error))?;
        }
        Ok(folder)
    }

    /// Creates the folder, its missing parents, and the hidden one.
    fn make(&mut self) -> io::Result<()> {
        let target = self.target.clone();
        let missing: Vec<&Path> = target
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err())
            .collect();
        for path in missing.into_iter().rev() {
            if self.disk.create_folder(path)? {
                self.made.push(path.to_owned());
            }
        }
        let hidden = hidden(&target);
        self.disk.create_folder(&hidden)?;
        // Files would be moved and removed at the target of a link.
        if fs::symlink_metadata(&hidden)?.is_symlink() {
            return Err(io::Error::other(format!("{HIDDEN} in it is a link; remove it")));
        }
        Ok(())
    }

    /// Writes a file, which appears with [`Folder::commit`]; one that fails never does.
    ///
    /// # Errors
    /// When it cannot be written, or `content` fails.
    pub fn write(
        &mut self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<Sink>) -> io::Result<()>,
    ) -> Result<()> {
        let (writing, target) = (self.hidden("staged/writing"), self.target.join(name));
        let write = || {
            self.stage("put")?;
            let out = self.disk.open(&writing, OpenOptions::new().write(true).create(true).truncate(true))?;
            let mut out = BufWriter::with_capacity(1 << 18, out);
            content(&mut out)?;
            let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            out.protect_as(&target);
            out.sync()?;
            self.disk.rename(&writing, &self.hidden("staged/put").join(name))
        };
        write().map_err(|error| {
            // The next file may need its space on the disk.
            let _ = self.disk.remove_file(&writing);
            Error::Io { path: target, source: error }
        })
    }

    /// Removes a file of an earlier result that the new one does not have.
    ///
    /// # Errors
    /// When the removal cannot be recorded.
    pub fn leave_out(&mut self, name: &str) -> Result<()> {
        let note = || {
            self.stage("drop")?;
            let note = self.hidden("staged/drop").join(name);
            self.disk.open(&note, OpenOptions::new().write(true).create(true).truncate(true))?.sync()
        };
        note().map_err(|source| Error::Io { path: self.target.join(name), source })
    }

    /// Moves all written files into place, or none. More files can be written afterwards.
    ///
    /// # Errors
    /// When the system refuses. The folder is then unchanged, unless the error is [`Error::Unfinished`].
    pub fn commit(&mut self) -> Result<()> {
        let names = self.check_and_sync()?;
        let (staged, complete) = (self.hidden("staged"), self.hidden("complete"));
        self.disk.rename(&staged, &complete).map_err(|error| self.failure(error))?;
        let put = self.disk.sync_folder(&hidden(&self.target)).and_then(|()| self.put_in_place());
        if let Err(source) = put {
            return Err(match self.take_back(&names) {
                Ok(()) => self.failure(source),
                Err(_) => Error::Unfinished { folder: self.target.clone(), source },
            });
        }
        // The new files are in place. Left-over files do no harm, and the next writer removes them.
        let _ = self.disk.remove_all(&complete).and_then(|()| self.disk.remove_all(&self.hidden("replaced")));
        Ok(())
    }

    /// Moves all written files into place and unlocks the folder.
    ///
    /// # Errors
    /// As for [`Folder::commit`].
    pub fn finish(mut self) -> Result<()> {
        self.commit()
    }

    /// The folder itself.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Creates the folders of staged files.
    fn stage(&self, part: &str) -> io::Result<()> {
        let staged = self.hidden("staged");
        self.disk.create_folder(&staged)?;
        self.disk.create_folder(&staged.join(part)).map(drop)
    }

    /// Checks that the staged files can be moved into place, flushes them to the disk, and returns their names.
    fn check_and_sync(&self) -> Result<Vec<OsString>> {
        let own = |error| self.failure(error);
        self.stage("put").map_err(own)?;
        let (put, drop) = (self.hidden("staged/put"), self.hidden("staged/drop"));
        let names = self.disk.names(&put).map_err(own)?;
        for name in names.iter().chain(&self.disk.names(&drop).map_err(own)?) {
            let path = self.target.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|known| known.is_dir()) {
                return Err(Error::Io { path, source: io::ErrorKind::IsADirectory.into() });
            }
        }
        for folder in [put, drop, self.hidden("staged")] {
            if self.disk.exists(&folder).map_err(own)? {
                self.disk.sync_folder(&folder).map_err(own)?;
            }
        }
        // New folders and their parents must not be lost either.
        for made in &self.made {
            let parent = made.parent().unwrap_or(Path::new(""));
            self.disk.sync_folder(parent).map_err(own)?;
        }
        Ok(names)
    }

    /// Moves a complete result into place. Continues if this was interrupted before.
    fn put_in_place(&self) -> io::Result<()> {
        let (put, replaced) = (self.hidden("complete/put"), self.hidden("replaced"));
        let new = self.disk.names(&put)?;
        self.disk.create_folder(&replaced)?;
        for name in new.iter().chain(&self.disk.names(&self.hidden("complete/drop"))?) {
            let old = self.target.join(name);
            if self.disk.exists(&old)? {
                self.disk.rename(&old, &replaced.join(name))?;
            }
        }
        for name in &new {
            self.disk.rename(&put.join(name), &self.target.join(name))?;
        }
        self.disk.sync_folder(&self.target)
    }

    /// Reverts [`Folder::put_in_place`] in reverse order, so that no file of either result is ever lost.
    fn take_back(&self, names: &[OsString]) -> io::Result<()> {
        let (put, replaced) = (self.hidden("complete/put"), self.hidden("replaced"));
        for name in names.iter().rev() {
            if !self.disk.exists(&put.join(name))? {
                self.disk.rename(&self.target.join(name), &put.join(name))?;
            }
        }
        for name in self.disk.names(&replaced)? {
            self.disk.rename(&replaced.join(&name), &self.target.join(&name))?;
        }
        self.disk.rename(&self.hidden("complete"), &self.hidden("staged"))
    }

    fn hidden(&self, path: &str) -> PathBuf {
        hidden(&self.target).join(path)
    }

    /// An error about the folder itself.
    fn failure(&self, source: io::Error) -> Error {
        Error::Io { path: self.target.clone(), source }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next writer removes files that cannot be removed now. An unfinished result is kept.
        let disk = &self.disk;
        if let Some(lock) = self.lock.take()
            && !disk.exists(&self.hidden("complete")).unwrap_or(true)
        {
            let _ = disk.remove_all(&self.hidden("staged"));
            let _ = disk.remove_all(&self.hidden("replaced"));
            let _ = lock.remove(disk);
        }
        let _ = disk.remove_folder(&hidden(&self.target));
        for made in self.made.iter().rev() {
            let _ = disk.remove_folder(made);
        }
    }
}
