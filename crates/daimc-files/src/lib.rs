//! Atomic writes of one file ([`OutputFile`], [`write()`]) or of several files that belong together ([`Folder`]). `daimc` writes
//! all files for its users through this crate.
//!
//! # One file
//! The file is written next to its target as `.NAME.partial-PID`, flushed to the disk, and renamed. The partial file is locked
//! while its process runs, so that the next writer can recognise and remove the partial files of processes that have ended. A
//! symbolic link is kept, and its target is replaced. Paths that are not regular files (a terminal, a pipe, `/dev/null`) or that
//! name a descriptor (`/dev/stdout`) cannot be replaced and are written to directly.
//!
//! # A folder
//! The target may be a mount point, a symbolic link, the working directory or a folder with other files; so it is never itself
//! replaced. Partial results are in one hidden folder inside of it, on the same file system:
//!
//! ```text
//! .daimc-partial/lock        locked by the one process that may write to the target
//! .daimc-partial/staged/     put/NAME: complete files; drop/NAME: files to remove; writing: the current file
//! .daimc-partial/complete/   the same for a complete result: `staged` is renamed to `complete`
//! .daimc-partial/replaced/   the files that the new ones replace
//! ```
//!
//! That rename is the commit. Before it, the folder has the old result; after it, the new one, and all that remains is to move every
//! old file to `replaced` and then every new one to its place. Files of two results are never mixed. If a move fails, all moves are
//! reverted, and the old result is unchanged. If the process is killed between two moves, the next writer, or a reader that calls
//! [`recover`], makes the remaining ones. The next writer removes the files of a process that was killed before the rename.
//!
//! Files that are not part of the new result are not touched. On a file system without locks, two writers at the same time are not
//! detected.

mod disk;
mod error;
mod file;
mod folder;
mod lock;

pub use disk::{Call, Disk, Sink};
pub use error::{Error, Result};
pub use file::{OutputFile, write};
pub use folder::{Folder, recover};
