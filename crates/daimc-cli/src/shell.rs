//! Completions for shells, and the manual.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Result;

#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

pub fn completions(arguments: &Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "daimc", &mut text);
    Ok(io::stdout().write_all(&text)?)
}

#[derive(Args)]
pub struct Man {
    /// The command to describe [default: the program]
    command: Option<String>,
}

pub fn man(arguments: &Man) -> Result<()> {
    let mut program = crate::Arguments::command();
    program.build();
    let page = match &arguments.command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                return Err(crate::failure::Failure::Usage(format!(
                    "there is no command {}",
                    daimc::text::quoted(name)
                )));
            }
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(io::stdout().write_all(&text)?)
}
