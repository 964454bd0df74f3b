//! `daimc completions` and `daimc man`.

use std::io::{self, Write};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Failure, Result};
use crate::help;

#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

pub fn completions(arguments: &Completions, program: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut help::with_help_all(program), "daimc", &mut text);
    Ok(io::stdout().write_all(&text)?)
}

#[derive(Args)]
pub struct Man {
    /// The command to describe [default: the program]
    command: Option<String>,
}

pub fn man(arguments: &Man, program: Command) -> Result<()> {
    let mut program = help::with_help_all(program);
    program.build();
    let page = match &arguments.command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                return Err(Failure::Usage(format!("there is no command {}", daimc::text::quoted(name))));
            }
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(io::stdout().write_all(&text)?)
}
