//! What both commands are told about how they run, in the words of `compare`; `reproduce` has some of its own.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::progress::{self, Level};

#[derive(Args)]
pub struct Course {
    /// Folder for results.tsv (a row per run), table.md, plots and compare.html; runs recorded there are not repeated
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// Number of threads; the results do not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,

    /// Print nothing but errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl Course {
    /// Sets up what was asked for; the result says how much to tell.
    pub fn begin(&self) -> Result<Level> {
        crate::use_threads(self.threads)?;
        Ok(Level::new(self.quiet, false))
    }

    /// Fails if the runs were interrupted.
    pub fn end() -> Result<()> {
        if progress::interrupted() {
            return Err(Failure::Failed("interrupted; the same command goes on where it stopped".into()));
        }
        Ok(())
    }
}
