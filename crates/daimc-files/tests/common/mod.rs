//! A folder with an old result, which a new one is to replace.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use State::{New, Old};
use daimc_files::{Disk, Folder, Result};
use tempfile::TempDir;

/// What a folder is before it is written to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It is not there, nor is the folder that it is in.
    None,
    /// It is empty.
    Empty,
    /// It holds an old result and something of the user's.
    Old,
    /// The same, through a symbolic link.
    Link,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::None, Self::Empty, Self::Old, Self::Link];
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Old,
    New,
}

/// Files of which both results have one each.
const BOTH: [&str; 3] = ["a", "b", "c"];
/// The old result alone has this one.
const OLD: &str = "gone";
/// The new result alone has this one.
const NEW: &str = "more";

/// A folder in memory, where there is one: files are synchronised thousands of times.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub struct Target {
    scratch: TempDir,
    kind: Kind,
}

impl Target {
    pub fn new(kind: Kind) -> Self {
        let target = Self { scratch: scratch(), kind };
        let path = target.path();
        let real = target.scratch.path().join("real");
        match kind {
            Kind::None => return target,
            Kind::Link => {
                fs::create_dir(&real).unwrap();
                #[cfg(unix)]
                std::os::unix::fs::symlink(&real, &path).unwrap();
                #[cfg(not(unix))]
                fs::create_dir(&path).unwrap();
            }
            Kind::Empty | Kind::Old => fs::create_dir(&path).unwrap(),
        }
        if kind != Kind::Empty {
            BOTH.iter().chain(&[OLD]).for_each(|name| fs::write(path.join(name), "old").unwrap());
            fs::write(path.join("notes.txt"), "mine").unwrap();
            fs::create_dir(path.join("kept")).unwrap();
            fs::write(path.join("kept/notes.txt"), "mine").unwrap();
        }
        target
    }

    pub fn path(&self) -> PathBuf {
        self.scratch.path().join(if self.kind == Kind::None { "deep/out" } else { "out" })
    }

    /// The result before.
    pub fn before(&self) -> Option<State> {
        matches!(self.kind, Kind::Old | Kind::Link).then_some(Old)
    }

    /// The names after.
    pub fn expected(&self) -> Vec<&'static str> {
        match self.before() {
            Some(_) => vec!["a", "b", "c", "kept", "more", "notes.txt"],
            None => vec!["a", "b", "c", "more"],
        }
    }

    /// Fails if files of two results can be seen at once, or if something of the user's is gone.
    pub fn assert_no_mixture(&self) {
        let text = |name: &str| fs::read_to_string(self.path().join(name)).ok();
        let seen: Vec<String> = BOTH.iter().chain(&[OLD, NEW]).filter_map(|name| text(name)).collect();
        assert!(seen.iter().all(|own| own == &seen[0]), "{seen:?} in {:?}", everything(&self.path()));
        if self.before().is_some() {
            assert_eq!(text("notes.txt").as_deref(), Some("mine"));
            assert_eq!(text("kept/notes.txt").as_deref(), Some("mine"));
        }
    }
}

/// Writes the new result.
pub fn replace(disk: &Disk, path: &Path) -> Result<()> {
    let mut folder = Folder::begin_on(disk, path, true)?;
    for name in BOTH.iter().chain(&[NEW]) {
        folder.write(name, |out| out.write_all(b"new"))?;
    }
    folder.leave_out(OLD)?;
    folder.finish()
}

/// The result that a folder holds, which is whole.
pub fn state(path: &Path) -> Option<State> {
    let text = |name: &str| fs::read_to_string(path.join(name)).ok();
    let texts: Vec<Option<String>> = BOTH.iter().map(|name| text(name)).collect();
    let all = |own: &str| texts.iter().all(|text| text.as_deref() == Some(own));
    match (text(OLD).as_deref(), text(NEW).as_deref()) {
        (Some("old"), None) if all("old") => Some(Old),
        (None, Some("new")) if all("new") => Some(New),
        (None, None) if texts.iter().all(Option::is_none) => None,
        _ => panic!("no whole result: {:?}", everything(path)),
    }
}

/// The names in a folder, hidden ones too.
pub fn everything(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
