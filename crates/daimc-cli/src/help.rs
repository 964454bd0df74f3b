//! Help in three lengths: `-h` has a line for each common option, `--help` explains the common options, `--help-all` explains all
//! options, grouped under headings.
//!
//! A common option is one without a heading.

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

/// Adds `--help-all` to the commands that have options under a heading. Unless `arguments` contain it, those options are left
/// out of the help.
pub fn for_arguments(program: Command, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let program = complete(program);
    if arguments.into_iter().any(|argument| argument == "--help-all") {
        return program;
    }
    map(program, |command| {
        let before = command.get_after_help().map_or_else(String::new, |text| format!("{text}\n\n"));
        let more = format!("{before}More options: daimc {} --{HELP_ALL}", command.get_name());
        let hide = |argument: Arg| {
            let rare = is_rare(&argument);
            argument.hide_short_help(rare).hide_long_help(rare)
        };
        command.mut_args(hide).after_help(more)
    })
}

/// Adds `--help-all` and shows all options in the help, as the completions and the manual need it.
pub fn complete(program: Command) -> Command {
    let help =
        Arg::new(HELP_ALL).long(HELP_ALL).action(ArgAction::HelpLong).help("Print help with all options");
    map(program, |command| command.arg(help.clone()))
}

/// Changes the commands that have options under a heading.
fn map(program: Command, change: impl Fn(Command) -> Command) -> Command {
    program.mut_subcommands(
        |command| if command.get_arguments().any(is_rare) { change(command) } else { command },
    )
}

fn is_rare(argument: &Arg) -> bool {
    argument.get_help_heading().is_some()
}
