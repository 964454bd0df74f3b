//! Where files are written, and by which process.
#![cfg(unix)]

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

use common::{everything, scratch};
use daimc_files::{Error, Folder, OutputFile, recover, write};

#[test]
fn a_second_writer_is_refused_until_the_first_has_ended() {
    let scratch = scratch();
    let out = scratch.path().join("out");
    let mut first = Folder::begin(&out, false).unwrap();
    let error = Folder::begin(&out, true).err().unwrap();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    first.write("a", |out| out.write_all(b"1")).unwrap();
    first.finish().unwrap();
    Folder::begin(&out, true).unwrap();
    assert_eq!(everything(&out), ["a"]);
    let error = Folder::begin(&out, false).err().unwrap();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    assert_eq!(everything(&out), ["a"]);
}

#[test]
fn of_many_writers_that_begin_at_once_one_writes_at_a_time() {
    let scratch = scratch();
    let out = scratch.path().join("out");
    let write = |thread: usize| {
        let mut done = 0;
        for round in 0..200 {
            match Folder::begin(&out, true) {
                Ok(mut folder) => {
                    let text = format!("{thread} {round}");
                    for name in ["a", "b"] {
                        folder.write(name, |out| out.write_all(text.as_bytes())).unwrap();
                    }
                    folder.finish().unwrap();
                    done += 1;
                }
                Err(Error::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done
    };
    let done: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(done > 0);
    assert_eq!(everything(&out), ["a", "b"]);
    assert_eq!(fs::read(out.join("a")).unwrap(), fs::read(out.join("b")).unwrap());
}

#[test]
fn a_folder_without_a_result_is_removed() {
    let scratch = scratch();
    let out = scratch.path().join("not/there/yet");
    let mut folder = Folder::begin(&out, false).unwrap();
    folder.write("a", |out| out.write_all(b"1")).unwrap();
    drop(folder);
    assert!(everything(scratch.path()).is_empty());
}

#[test]
fn a_link_in_place_of_the_hidden_folder_is_not_followed() {
    let scratch = scratch();
    let (out, other) = (scratch.path().join("out"), scratch.path().join("other"));
    fs::create_dir(&out).unwrap();
    fs::create_dir_all(other.join("staged")).unwrap();
    symlink(&other, out.join(".daimc-partial")).unwrap();
    let error = Folder::begin(&out, true).err().unwrap().to_string();
    assert!(error.ends_with("out cannot be written: .daimc-partial in it is a link; remove it"), "{error}");
    assert_eq!(everything(&other), ["staged"]);
}

#[test]
fn several_commits_follow_each_other() {
    let scratch = scratch();
    let mut folder = Folder::begin(scratch.path(), false).unwrap();
    for text in ["1", "2"] {
        folder.write("a", |out| out.write_all(text.as_bytes())).unwrap();
        folder.commit().unwrap();
        assert_eq!(fs::read_to_string(scratch.path().join("a")).unwrap(), text);
    }
    drop(folder);
    assert_eq!(everything(scratch.path()), ["a"]);
}

#[test]
fn recovery_does_not_change_a_folder_without_an_unfinished_result() {
    let scratch = scratch();
    recover(scratch.path()).unwrap();
    recover(&scratch.path().join("nowhere")).unwrap();
    assert!(everything(scratch.path()).is_empty());
    // A writer at work does not disturb readers.
    let _folder = Folder::begin(scratch.path(), false).unwrap();
    recover(scratch.path()).unwrap();
}

#[test]
fn paths_that_are_not_regular_files_are_written_to() {
    let scratch = scratch();
    let pipe = scratch.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&pipe, |out| out.write_all(b"through")).unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    // Through a link as well.
    let link = scratch.path().join("link");
    symlink("pipe", &link).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&link, |out| out.write_all(b"again")).unwrap();
    assert_eq!(reader.join().unwrap(), "again");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(everything(scratch.path()), ["link", "pipe"]);
}

#[test]
fn a_link_is_kept_and_its_target_is_replaced() {
    let scratch = scratch();
    let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
    fs::create_dir(&real).unwrap();
    // Relative, through another link, to a file that is not there yet.
    symlink("second", &link).unwrap();
    symlink("real/x", scratch.path().join("second")).unwrap();
    for text in ["first", "second"] {
        write(&link, |out| out.write_all(text.as_bytes())).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(real.join("x")).unwrap(), text);
    }
    assert_eq!(everything(&real), ["x"]);
    assert_eq!(everything(scratch.path()), ["link", "real", "second"]);
    symlink("circle", scratch.path().join("circle")).unwrap();
    let error = write(&scratch.path().join("circle"), |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "its links lead in a circle");
}

#[test]
fn a_file_keeps_its_permissions() {
    let scratch = scratch();
    let file = scratch.path().join("secret");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    write(&file, |out| out.write_all(b"new")).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    let mut folder = Folder::begin(scratch.path(), true).unwrap();
    folder.write("secret", |out| out.write_all(b"newer")).unwrap();
    folder.finish().unwrap();
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn partial_files_of_ended_processes_are_removed_and_those_of_running_ones_are_not() {
    let scratch = scratch();
    let path = scratch.path().join("x.tsv");
    fs::write(scratch.path().join(".x.tsv.partial-1234567"), "dead").unwrap();
    fs::write(scratch.path().join(".y.tsv.partial-1234567"), "another's").unwrap();
    let mut living = OutputFile::begin(&path).unwrap();
    living.write(|out| out.write_all(b"living")).unwrap();
    write(&path, |out| out.write_all(b"meanwhile")).unwrap();
    assert_eq!(everything(scratch.path()).len(), 3);
    living.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "living");
    assert_eq!(everything(scratch.path()), [".y.tsv.partial-1234567", "x.tsv"]);
}

#[test]
fn a_long_name_can_be_written() {
    let scratch = scratch();
    let name = "x".repeat(255);
    write(&scratch.path().join(&name), |out| out.write_all(b"whole")).unwrap();
    assert_eq!(everything(scratch.path()), [name]);
}
