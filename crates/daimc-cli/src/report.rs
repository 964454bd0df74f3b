//! `daimc report`: the report of a fit, made again.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::data::{self, Input};
use crate::failure::{Failure, Result};
use crate::fit::Options;
use crate::folder::{Destination, Folder, settle, spare_inputs};
use crate::results;
use crate::truth::Truth;

#[derive(Args)]
pub struct Arguments {
    /// The folder of the fit; its files of data must still be where they were
    folder: PathBuf,

    /// A table of IDs and true classes to compare with [default: that of the fit, if it had one]
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,

    /// File for the report [default: report.html in the folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { folder, truth, output } = arguments;
    settle(folder)?;
    // Nobody replaces the result while its report is made.
    let own = (output.is_none() && folder.is_dir()).then(|| Folder::begin(folder, true)).transpose()?;
    let path = folder.join("summary.json");
    let wrong = |reason: String| Failure::Data(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let summary: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let options = summary.get("options").cloned().unwrap_or_default();
    let mut earlier: Options = serde_json::from_value(options).map_err(|error| wrong(error.to_string()))?;
    if earlier.data.view.is_empty() {
        return Err(wrong("was not made from files, so its report cannot be made again".into()));
    }
    let directory = summary.get("directory").and_then(Value::as_str).map(PathBuf::from).unwrap_or_default();
    earlier.in_folder(&directory)?;
    let inputs = summary.get("inputs").cloned().unwrap_or_default();
    let inputs: Vec<Input> = serde_json::from_value(inputs).map_err(|error| wrong(error.to_string()))?;
    for input in &inputs {
        if data::sha256(&directory.join(&input.path))? != input.sha256 {
            let reason = "has changed since the fit: fit again";
            return Err(Failure::Data(format!("{}: {reason}", input.path.display())));
        }
    }
    let output = output.clone().unwrap_or_else(|| folder.join("report.html"));
    let read: Vec<PathBuf> =
        earlier.data.paths()?.into_iter().chain(truth.clone()).chain(earlier.truth.clone()).collect();
    spare_inputs(&output, read.iter().map(PathBuf::as_path))?;
    let elsewhere = own.is_none().then(|| Destination::begin(Some(&output))).transpose()?;
    let model = results::model(&folder.join("model.safetensors"))?;
    let loaded = earlier.data.load()?;
    let truth = truth.clone().or(earlier.truth).map(|path| Truth::read(&path, &loaded.views)).transpose()?;
    let page = results::report(&loaded.views, &model, truth.as_ref(), &summary)?;
    if let Some(mut own) = own {
        own.write("report.html", |out| out.write_all(page.as_bytes()))?;
        own.finish()?;
    }
    if let Some(mut out) = elsewhere {
        out.write(|out| out.write_all(page.as_bytes()))?;
        out.finish()?;
    }
    eprintln!("The report is {}", output.display());
    Ok(())
}
