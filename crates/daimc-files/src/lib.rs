//! Lets results appear whole or not at all: one file ([`OutputFile`], [`write()`]) or several that belong together
//! ([`Folder`]). Everything that `daimc` writes for its users goes through here.
//!
//! # One file
//! It is written beside its target as `.NAME.partial-PID`, synchronised with the disk, and renamed. The partial file is
//! locked while its process lives, so that the next writer can tell what the dead have left, and removes it. A symbolic link is
//! kept, and what it points at is replaced. What is no regular file (a terminal, a pipe, `/dev/null`) or is reached through a
//! descriptor (`/dev/stdout`) cannot be replaced and is written to.
//!
//! # A folder
//! The target may be a mount point, a symbolic link, the working directory or a folder in which others keep their notes; so it is
//! never itself replaced. All that is not a result yet is in one hidden folder inside of it, on the same file system:
//!
//! ```text
//! .daimc-partial/lock        locked by the one process that may write to the target
//! .daimc-partial/staged/     put/NAME: files that are whole; drop/NAME: files that shall be gone; writing: the one in work
//! .daimc-partial/complete/   the same, once it is a whole result: `staged` becomes `complete` by one rename
//! .daimc-partial/replaced/   the files that the new ones take the place of
//! ```
//!
//! That one rename decides. Before it, the result of the folder is the old one; after it, the new one, and what is left to do is
//! to move every old file to `replaced` and then every new one to its place. At no moment are there files of two results side by
//! side. Should a move fail, all moves are taken back, and the old result is there as before. Should the process be
//! killed between two moves, whoever comes next makes the remaining ones: the next writer, or a reader who calls
//! [`settle`]. A process that was killed before the rename leaves what the next writer removes.
//!
//! Files that are no part of the new result are not touched. Where the file system knows no locks, there is none, and two writers at
//! once are not told apart.

mod disk;
mod error;
mod file;
mod folder;
mod lock;

pub use disk::{Call, Disk, Sink};
pub use error::{Error, Result};
pub use file::{OutputFile, write};
pub use folder::{Folder, settle};
