//! Every system call fails in turn: the folder then holds the old result or the new one, whole, and the error is a sentence.

mod common;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::{Kind, New, Target, everything, replace, state};
use daimc_files::{Call, Disk, Error, Folder, OutputFile, recover};

/// A disk whose calls number `from` to `to` fail, and the count of all calls.
fn failing(from: usize, to: usize) -> (Disk, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let disk = Disk::with_hook(move |call, path| {
        let number = counted.fetch_add(1, SeqCst);
        if (from..to).contains(&number) {
            return Err(io::Error::other(format!("{call:?} of {} fails", path.display())));
        }
        Ok(())
    });
    (disk, count)
}

/// How long a disturbance lasts: one call, two, or until the process ends.
const LENGTHS: [usize; 3] = [1, 2, usize::MAX / 2];

#[test]
fn if_any_call_fails_the_folder_has_one_whole_result() {
    for kind in Kind::ALL {
        for length in LENGTHS {
            let (mut old, mut new, mut unfinished) = (0, 0, 0);
            for number in 0.. {
                let target = Target::new(kind);
                let (disk, count) = failing(number, number + length);
                let outcome = replace(&disk, &target.path());
                // Even before a recovery, files of two results are not mixed.
                target.assert_no_mixture();
                match &outcome {
                    Ok(()) => assert_eq!(state(&target.path()), Some(New), "{kind:?}, call {number}"),
                    Err(Error::Unfinished { .. }) => {
                        unfinished += 1;
                        recover(&target.path()).unwrap();
                        assert_eq!(state(&target.path()), Some(New), "{kind:?}, call {number}");
                    }
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.contains("fails") && !message.contains('\n'), "{message}");
                        assert_eq!(
                            state(&target.path()),
                            target.before(),
                            "{kind:?}, call {number}: {message}"
                        );
                    }
                }
                if outcome.is_ok() {
                    new += 1;
                } else {
                    old += 1;
                }
                // The next run cleans up.
                replace(&Disk::default(), &target.path()).unwrap();
                assert_eq!(state(&target.path()), Some(New));
                assert_eq!(everything(&target.path()), target.expected(), "{kind:?}, call {number}");
                if count.load(SeqCst) <= number {
                    break;
                }
            }
            println!(
                "{kind:?}, faults of length {length}: {old} refused ({unfinished} unfinished), {new} done"
            );
            assert!(old > 10 && new > 0);
        }
    }
}

#[test]
fn if_any_call_fails_a_file_is_the_old_or_the_new_one() {
    for length in LENGTHS {
        for number in 0.. {
            let folder = common::scratch();
            let path = folder.path().join("x.tsv");
            std::fs::write(&path, "old").unwrap();
            let (disk, count) = failing(number, number + length);
            let write = || {
                let mut file = OutputFile::begin_on(&disk, &path)?;
                file.write(|out| out.write_all(b"new"))?;
                file.finish()
            };
            let outcome = write();
            let text = std::fs::read_to_string(&path).unwrap();
            match &outcome {
                Ok(()) => assert_eq!(text, "new"),
                // It has appeared, but it is not known whether it would survive a loss of power.
                Err(error) if error.to_string().starts_with("Sync") => {
                    assert!(text == "old" || text == "new");
                }
                Err(error) => assert_eq!(text, "old", "{error}"),
            }
            daimc_files::write(&path, |out| out.write_all(b"next")).unwrap();
            assert_eq!(everything(folder.path()), ["x.tsv"], "call {number}");
            if count.load(SeqCst) <= number {
                break;
            }
        }
    }
}

#[test]
fn a_file_whose_write_fails_does_not_appear() {
    let target = Target::new(Kind::Old);
    let mut folder = Folder::begin(&target.path(), true).unwrap();
    folder.write("a", |out| io::Write::write_all(out, b"new")).unwrap();
    let error = folder.write("b", |_| Err(io::Error::other("disk full"))).unwrap_err().to_string();
    assert!(error.ends_with("b cannot be written: disk full"), "{error}");
    folder.leave_out("b").unwrap();
    folder.finish().unwrap();
    assert_eq!(everything(&target.path()), ["a", "c", "gone", "kept", "notes.txt"]);
}

#[test]
fn a_folder_in_place_of_a_file_is_found_before_anything_is_moved() {
    let target = Target::new(Kind::Old);
    std::fs::remove_file(target.path().join("b")).unwrap();
    std::fs::create_dir(target.path().join("b")).unwrap();
    let error = replace(&Disk::default(), &target.path()).unwrap_err().to_string();
    assert!(error.contains("b cannot be written: "), "{error}");
    assert_eq!(std::fs::read_to_string(target.path().join("a")).unwrap(), "old");
    assert_eq!(everything(&target.path()), ["a", "b", "c", "gone", "kept", "notes.txt"]);
}

#[test]
fn results_are_written_without_locks_too() {
    let target = Target::new(Kind::Old);
    let disk =
        Disk::with_hook(
            |call, _: &Path| {
                if call == Call::Lock { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
            },
        );
    replace(&disk, &target.path()).unwrap();
    assert_eq!(everything(&target.path()), target.expected());
}
