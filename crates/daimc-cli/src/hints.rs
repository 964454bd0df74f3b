//! Tips for common mistakes on the command line.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds a tip to an error, if there is one.
pub fn with_tip(mut error: clap::Error) -> clap::Error {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let Some(tip) = tip(&error, &arguments) {
        // The suggestion of clap is for another mistake.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let wrong = text(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::UnknownArgument if wrong == "--model" => {
            Some("the model comes without an option: `daimc predict FOLDER --view NAME=PATH`".into())
        }
        ErrorKind::UnknownArgument if !wrong.starts_with('-') => {
            let before = arguments.iter().position(|own| own == wrong).and_then(|at| at.checked_sub(1));
            match before.map(|at| arguments[at].as_str()) {
                Some(option @ ("--transpose" | "--no-ids")) => {
                    Some(format!("name views after an equals sign: {option}={wrong}"))
                }
                _ if Path::new(wrong).exists() => {
                    Some(format!("a file of data is a view: --view NAME={wrong}"))
                }
                _ => None,
            }
        }
        ErrorKind::ValueValidation if wrong.starts_with("--clusters") => {
            let value = text(ContextKind::InvalidValue).filter(|value| value.contains(".."))?;
            Some(format!("a fit has one number of clusters; `daimc select -k {value}` recommends one"))
        }
        _ => None,
    }
}
