//! `daimc report`: regenerates the report of a fit.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use daimc_io::Column;
use serde_json::Value;

use crate::clinical::ClinicalOptions;
use crate::data::Input;
use crate::failure::{Failure, Result};
use crate::folder::{Destination, Folder, recover, spare_inputs};
use crate::options::Options;
use crate::paths::utf8;
use crate::progress::Level;
use crate::results::{self, Extras};
use crate::terminal::print_line;
use crate::truth::Truth;

#[derive(Args)]
pub struct Arguments {
    /// The folder of the fit; its input files must still be where they were
    folder: PathBuf,

    /// A table of IDs and true classes to compare with; `::COLUMN` names the column if there are several, as in
    /// `clinical.csv::stage` [default: that of the fit, if any]
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    truth: Option<String>,

    /// Title of the report [default: that of the fit]
    #[arg(long, value_name = "TEXT", value_parser = utf8())]
    title: Option<String>,

    #[command(flatten)]
    clinical: ClinicalOptions,

    /// File for the report [default: report.html in the folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { folder, truth, clinical, title, output } = arguments;
    crate::use_threads(None)?;
    recover(folder)?;
    // The lock keeps other processes from replacing the result meanwhile.
    let own = (output.is_none() && folder.is_dir()).then(|| Folder::begin(folder, true)).transpose()?;
    let path = folder.join("summary.json");
    let wrong = |reason: String| Failure::Data(format!("{}: {reason}", path.display()));
    if folder.is_file() {
        let reason = "is a file: name the folder of the fit";
        return Err(Failure::Usage(format!("{}: {reason}", folder.display())));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let summary: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if summary.get("memory_factor").is_some() || summary.get("batches").is_some() {
        let reason =
            "is of a model that has learnt batch by batch: a report needs all instances of a fit at once";
        return Err(wrong(reason.into()));
    }
    let options = summary.get("options").cloned().unwrap_or_default();
    let mut earlier: Options = serde_json::from_value(options).map_err(|error| wrong(error.to_string()))?;
    if earlier.data.view.is_empty() {
        return Err(wrong("was not made from files, so its report cannot be made again".into()));
    }
    let directory = summary.get("directory").and_then(Value::as_str).map(PathBuf::from).unwrap_or_default();
    earlier.in_folder(&directory)?;
    let inputs = summary.get("inputs").cloned().unwrap_or_default();
    let inputs: Vec<Input> = serde_json::from_value(inputs).map_err(|error| wrong(error.to_string()))?;
    if clinical.clinical.is_some() {
        earlier.clinical = clinical.clone();
    } else if clinical.survival.is_some() {
        earlier.clinical.survival.clone_from(&clinical.survival);
    }
    earlier.clinical.check(&earlier.data.paths()?)?;
    let output = output.clone().unwrap_or_else(|| folder.join("report.html"));
    let truths = truth.iter().chain(&earlier.truth).map(|truth| Ok(truth.parse::<Column>()?.path));
    let truths = truths.chain(earlier.clinical.path().map(Ok));
    let result = ["summary.json", "model.safetensors"].map(|file| folder.join(file));
    let read: Vec<PathBuf> =
        earlier.data.paths()?.into_iter().chain(result).map(Ok).chain(truths).collect::<Result<_>>()?;
    spare_inputs(&output, read.iter().map(PathBuf::as_path))?;
    let other_file = own.is_none().then(|| Destination::begin(Some(&output))).transpose()?;
    let fitted = results::fitted(&folder.join("model.safetensors"))?;
    let loaded = earlier.data.load(&std::env::temp_dir(), Level::Normal)?;
    for (now, then) in loaded.inputs.iter().zip(&inputs) {
        if now.sha256 != then.sha256 {
            let reason = "has changed since the fit: fit again";
            return Err(Failure::Data(format!("{}: {reason}", then.path.display())));
        }
    }
    let truth = truth
        .clone()
        .or(earlier.truth)
        .map(|path| Truth::read(&path, &loaded.views, &earlier.data.ids))
        .transpose()?;
    let findings = earlier.clinical.read(&loaded.views, &earlier.data.ids)?;
    let findings = findings.map(|clinical| clinical.test(&fitted.labels)).transpose()?;
    let title = title.as_deref().or(earlier.title.as_deref());
    let extras = Extras { truth: truth.as_ref(), clinical: findings.as_ref(), title, annotated: None };
    let page = results::report(&loaded.views, &fitted, None, extras, &summary)?;
    if let Some(mut own) = own {
        own.write("report.html", |out| out.write_all(page.as_bytes()))?;
        own.finish()?;
    }
    if let Some(mut out) = other_file {
        out.write(|out| out.write_all(page.as_bytes()))?;
        out.finish()?;
    }
    print_line(format!("The report is {}", output.display()));
    Ok(())
}
