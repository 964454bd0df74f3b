//! Several files that belong together.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::{Disk, Sink};
use crate::error::{Error, Result};
use crate::lock::Lock;

/// The folder in which all is kept that is not a result yet.
const HIDDEN: &str = ".daimc-partial";

/// How long a reader waits for a writer that is letting files appear, which takes no longer than some renames.
const PATIENCE: Duration = Duration::from_secs(10);

/// A folder in which files appear all at once. Nobody else can begin to write to it while this is held.
pub struct Folder {
    disk: Disk,
    target: PathBuf,
    lock: Option<Lock>,
    /// Folders that were made for this one, the deepest last; they are removed again if nothing comes of it.
    made: Vec<PathBuf>,
}

/// Puts in place what a process that was killed had finished but not put in place. To be called before files of a folder are
/// read that belong together; it does nothing to a folder, or to what is none, in which there is no such thing.
///
/// # Errors
/// When the files cannot be put in place.
pub fn settle(folder: &Path) -> Result<()> {
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
    /// Begins to write to a folder that is new or empty, or whose files may be replaced; what others have left there unfinished
    /// is finished or removed first.
    ///
    /// # Errors
    /// When the folder is not empty and may not be replaced, when another process writes to it, or when it cannot be written to.
    pub fn begin(target: &Path, replace: bool) -> Result<Self> {
        Self::begin_on(&Disk::default(), target, replace)
    }

    /// The same on a file system that is told.
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
                // Who had the lock has just removed it, with its folder.
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

    /// Makes the folder, those that it is in, and the hidden one.
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
        // Somebody else's link would lead what is moved and removed astray.
        if fs::symlink_metadata(&hidden)?.is_symlink() {
            return Err(io::Error::other(format!("{HIDDEN} in it is a link; remove it")));
        }
        Ok(())
    }

    /// Writes a file. It is not seen before [`Folder::commit`]; one that fails never is.
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
            // The room that it took may be what the next file needs.
            let _ = self.disk.remove_file(&writing);
            Error::Io { path: target, source: error }
        })
    }

    /// Says that the result has no file of this name: one of an earlier result does not stay beside it.
    ///
    /// # Errors
    /// When this cannot be noted.
    pub fn leave_out(&mut self, name: &str) -> Result<()> {
        let note = || {
            self.stage("drop")?;
            let note = self.hidden("staged/drop").join(name);
            self.disk.open(&note, OpenOptions::new().write(true).create(true).truncate(true))?.sync()
        };
        note().map_err(|source| Error::Io { path: self.target.join(name), source })
    }

    /// Lets the files that were written appear, all of them or none. More can be written after it.
    ///
    /// # Errors
    /// When that is refused. Then the folder holds what it held before, unless the error is [`Error::Unfinished`].
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
        // The new files are in place: what is left now does no harm, and the next writer removes it.
        let _ = self.disk.remove_all(&complete).and_then(|()| self.disk.remove_all(&self.hidden("replaced")));
        Ok(())
    }

    /// Lets the files appear, and ends.
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

    /// Makes the folders for what is staged.
    fn stage(&self, part: &str) -> io::Result<()> {
        let staged = self.hidden("staged");
        self.disk.create_folder(&staged)?;
        self.disk.create_folder(&staged.join(part)).map(drop)
    }

    /// The names of the staged files, which can all be put in place as far as can be told, and are safe from a loss of power.
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
        // A new folder must not be lost either, nor those that it is in.
        for made in &self.made {
            let parent = made.parent().unwrap_or(Path::new(""));
            self.disk.sync_folder(parent).map_err(own)?;
        }
        Ok(names)
    }

    /// Puts a complete result in place. If this was begun before, only what is left to do is done.
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

    /// Undoes [`Folder::put_in_place`], in reverse: at no moment is a file of either result lost.
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
        // What cannot be removed now, the next writer removes; what could not be put in place is still needed.
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
