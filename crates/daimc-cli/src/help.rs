//! Help in three lengths: `-h` has a line for each common option, `--help` explains the common options, `--help-all` explains all
//! options, grouped under headings.
//!
//! A common option has no heading; an option under a heading is a rare one.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// The heading of options about the content of files.
pub const READING: &str = "Reading files";
/// The heading of options about IDs.
pub const IDS: &str = "Matching IDs";
/// The heading of options that change the model.
pub const MODEL: &str = "Model";
/// The heading of options about memory and accelerators.
pub const RESOURCES: &str = "Large data and devices";
/// The heading of options about results.
pub const OUTPUT: &str = "Output";

const HELP_ALL: &str = "help-all";

/// Adds `--help-all` to the commands with rare options, and hides these options from their help unless `--help-all` is among
/// the arguments.
pub fn for_arguments(program: Command, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let program = with_help_all(program);
    let flag = format!("--{HELP_ALL}");
    if arguments.into_iter().any(|argument| argument == flag.as_str()) {
        return program;
    }
    change_commands(program, |command| {
        let existing = command.get_after_help().map_or_else(String::new, |text| format!("{text}\n\n"));
        let after = format!("{existing}More options: daimc {} {flag}", command.get_name());
        let hide_if_rare = |argument: Arg| {
            let rare = is_rare(&argument);
            argument.hide_short_help(rare).hide_long_help(rare)
        };
        command.mut_args(hide_if_rare).after_help(after)
    })
}

/// Adds `--help-all` to the commands with rare options and hides none, as for the shell completions and the manual.
pub fn with_help_all(program: Command) -> Command {
    let help =
        Arg::new(HELP_ALL).long(HELP_ALL).action(ArgAction::HelpLong).help("Print help with all options");
    change_commands(program, |command| command.arg(help.clone()))
}

/// Changes the commands with rare options.
fn change_commands(program: Command, change: impl Fn(Command) -> Command) -> Command {
    program.mut_subcommands(
        |command| if command.get_arguments().any(is_rare) { change(command) } else { command },
    )
}

fn is_rare(argument: &Arg) -> bool {
    argument.get_help_heading().is_some()
}
