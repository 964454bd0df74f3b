//! Processes are killed at every system call and at random moments: what they leave is one whole result, old or new, and
//! nothing else after the next run.
#![cfg(unix)]

mod common;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::{Kind, New, Target, everything, replace, state};
use daimc_files::{Call, Disk, Error, Folder, recover};

/// Environment variables of the process that is killed: where to write, and at which call to end.
const TARGET: &str = "DAIMC_FILES_TEST_TARGET";
const CALL: &str = "DAIMC_FILES_TEST_CALL";

/// Starts this program again, as the process that is killed.
fn start(target: &Path, call: Option<usize>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process_that_is_killed"]).env(TARGET, target);
    if let Some(call) = call {
        command.env(CALL, call.to_string());
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn the_process_that_is_killed() {
    let Some(target) = std::env::var_os(TARGET) else { return };
    let target = Path::new(&target);
    let Ok(call) = std::env::var(CALL) else { replace_for_ever(target) };
    let (call, count) = (call.parse().unwrap(), AtomicUsize::new(0));
    let disk = Disk::with_hook(move |_, _| {
        if count.fetch_add(1, SeqCst) == call {
            kill(std::process::id());
        }
        Ok(())
    });
    replace(&disk, target).unwrap();
}

/// Ends a process as nothing can be caught.
fn kill(process: u32) {
    let status = Command::new("kill").args(["-s", "KILL", &process.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Writes results, each of which has a number of its own in all of its files.
fn replace_for_ever(target: &Path) -> ! {
    for number in 0_u64.. {
        let text = format!("{} {number}", std::process::id());
        let write = || {
            let mut folder = Folder::begin(target, true)?;
            for name in NAMES {
                folder.write(name, |out| out.write_all(text.as_bytes()))?;
            }
            folder.finish()
        };
        match write() {
            Ok(()) | Err(Error::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("there is always a next number")
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn a_kill_at_any_call_leaves_one_whole_result() {
    // The calls of a replacement, in order.
    let calls = |kind| {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = seen.clone();
        let disk = Disk::with_hook(move |call, _| -> io::Result<()> {
            kept.lock().unwrap().push(call);
            Ok(())
        });
        replace(&disk, &Target::new(kind).path()).unwrap();
        seen.lock().unwrap().clone()
    };
    for kind in Kind::ALL {
        let calls = calls(kind);
        let (mut before, mut after) = (0, 0);
        for (number, call) in calls.iter().enumerate() {
            let target = Target::new(kind);
            let status = start(&target.path(), Some(number)).wait().unwrap();
            assert!(status.code().is_none(), "{kind:?}: the process lived through call {number}, {call:?}");
            target.assert_no_mixture();
            recover(&target.path()).unwrap();
            let found = state(&target.path());
            assert!(found == target.before() || found == Some(New), "{kind:?}, call {number}, {call:?}");
            if found == Some(New) {
                after += 1;
            } else {
                before += 1;
            }
            replace(&Disk::default(), &target.path()).unwrap();
            assert_eq!(everything(&target.path()), target.expected(), "{kind:?}, call {number}, {call:?}");
        }
        let renames = calls.iter().filter(|call| **call == Call::Rename).count();
        println!(
            "{kind:?}: killed at each of {} calls, {renames} of them renames: {before} times the result was what was there \
             before, {after} times the new one",
            calls.len()
        );
        assert!(before > 10 && after > 10 && renames >= 9);
    }
}

/// Lets processes replace results, kills them at random moments, and looks at what is there.
fn kill_at_random(kills: u32, processes: usize) {
    let folder = common::scratch();
    let target = folder.path().join("out");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("notes.txt"), "mine").unwrap();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut unfinished = 0;
    for kill in 0..kills {
        let mut children: Vec<Child> = (0..processes).map(|_| start(&target, None)).collect();
        // Each has begun when there is something hidden; the moment is random from there on.
        let begin = Instant::now();
        while everything(&target).len() < 2 && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_micros(200));
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_micros(random % 20_000));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let texts = || -> Vec<String> {
            NAMES.iter().filter_map(|name| std::fs::read_to_string(target.join(name)).ok()).collect()
        };
        let seen = texts();
        assert!(seen.iter().all(|text| *text == seen[0]), "kill {kill}: {seen:?}");
        unfinished += u32::from(target.join(".daimc-partial/complete").exists());
        recover(&target).unwrap();
        let seen = texts();
        assert!(seen.is_empty() || seen.len() == NAMES.len(), "kill {kill}: {seen:?}");
        assert!(seen.iter().all(|text| *text == seen[0]), "kill {kill}: {seen:?}");
        // The next run leaves its result and nothing else.
        if kill % 5 == 0 {
            let mut next = Folder::begin(&target, true).unwrap();
            NAMES.iter().for_each(|name| next.write(name, |out| out.write_all(b"next")).unwrap());
            next.finish().unwrap();
            assert_eq!(everything(&target), ["a", "b", "c", "d", "notes.txt"], "kill {kill}");
            assert_eq!(texts(), ["next"; 4]);
        }
    }
    println!("{kills} kills, {processes} processes: {unfinished} between two renames");
}

#[test]
fn kills_at_random_moments_leave_one_whole_result() {
    kill_at_random(20, 1);
    kill_at_random(20, 2);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills_at_random_moments_leave_one_whole_result() {
    kill_at_random(500, 1);
    kill_at_random(500, 2);
}
