//! The progress line on a terminal of a given width.
#![cfg(unix)]

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use nix::pty::{Winsize, openpty};

use crate::common::Folder;

/// The program with a terminal as its standard error.
struct Terminal {
    program: Child,
    shown: File,
}

impl Terminal {
    fn run(folder: &Folder, columns: u16, arguments: &str) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        let program = Command::new(assert_cmd::cargo::cargo_bin!("daimc"))
            .args(arguments.split_whitespace())
            .current_dir(folder.path(""))
            .env("TERM", "xterm")
            .stdout(std::process::Stdio::null())
            .stderr::<OwnedFd>(pair.slave)
            .spawn()
            .unwrap();
        Self { program, shown: pair.master.into() }
    }

    /// The lines drawn until one contains all of these words or the program ends.
    fn lines_until(mut self, words: &[&str]) -> Vec<String> {
        let (mut text, mut some) = (String::new(), [0; 4096]);
        let found = |lines: &[String]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        // When the program ends, reading from the terminal fails.
        while let Ok(count @ 1..) = self.shown.read(&mut some) {
            text.push_str(&String::from_utf8_lossy(&some[..count]));
            if !words.is_empty() && found(&lines(&text)) {
                break;
            }
        }
        let _ = self.program.kill();
        self.program.wait().unwrap();
        lines(&text)
    }
}

/// The successive contents of the line, without cursor movements.
fn lines(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().skip(1).find(char::is_ascii_alphabetic);
            plain.push('\n');
        } else {
            plain.push(character);
        }
    }
    let lines = plain.split(['\r', '\n']).map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// A long fit of two views of Digit, one of them with this name.
fn endless(folder: &Folder, name: &str) -> String {
    std::fs::copy(folder.path("zer.tsv"), folder.path("other.tsv")).unwrap();
    format!("fit --view {name}=fou.tsv --view other.tsv -k 10 --tol 0 --max-iter 100000 --scale unit -o out")
}

#[test]
fn the_line_has_the_stage_the_share_done_and_the_time_left_in_eighty_columns() {
    let folder = Folder::digit();
    let fit = endless(&folder, "fou");
    let lines = Terminal::run(&folder, 80, &fit).lines_until(&[" %, ", " left  iteration ", "J = "]);
    let line = lines.last().unwrap();
    assert!(line.starts_with("00:") && line.contains('[') && line.contains("J = "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("starting")), "{lines:#?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
}

#[test]
fn the_line_is_truncated_on_a_narrow_terminal() {
    let folder = Folder::digit();
    let fit = endless(&folder, &"x".repeat(200)) + " --runs 1000";
    for columns in [60, 30] {
        let lines = Terminal::run(&folder, columns, &fit).lines_until(&["run "]);
        let lines: Vec<&String> = lines.iter().filter(|line| line.starts_with("00:")).collect();
        assert!(!lines.is_empty());
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:#?}");
    }
}

#[test]
fn the_neighbour_search_shows_its_share_and_the_line_is_removed() {
    let folder = Folder::digit();
    let fit = "fit --view fou.tsv --view zer.tsv -k 10 --max-iter 5 --no-assess -o out";
    let lines = Terminal::run(&folder, 80, fit).lines_until(&[]);
    assert!(lines.iter().all(|line| !line.starts_with("00:") || line.chars().count() <= 80), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("neighbours in view")), "{lines:#?}");
    // Later messages have lines of their own.
    assert!(lines.iter().any(|line| line.starts_with("neighbourhoods: ")), "{lines:#?}");
    assert!(lines.last().unwrap().ends_with("writing the results and the report"), "{lines:#?}");
}
