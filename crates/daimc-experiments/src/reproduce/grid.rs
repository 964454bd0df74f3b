//! The grid of hyper-parameters: a table of values for each method, from a file.

use std::path::Path;

use daimc::text::quoted;
use toml::Value as Toml;

use crate::harness::contender::METHODS;
use crate::harness::setting::{Setting, Value};
use crate::harness::{Error, Result};

/// The default grid.
const DEFAULT: &str = include_str!("../../grid.toml");

/// A hyper-parameter with its values.
type Parameter = (String, Vec<Value>);

/// For each method its hyper-parameters.
#[derive(Debug)]
pub struct Grid(Vec<(&'static str, Vec<Parameter>)>);

impl Grid {
    /// Reads a file, by default the grid of the program.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Self::parse(DEFAULT, "the grid of the program") };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Usage(format!("{name}: the grid cannot be read: {error}")))?;
        Self::parse(&text, &name)
    }

    fn parse(text: &str, file: &str) -> Result<Self> {
        let wrong = |reason: String| Error::Usage(format!("{file}: {reason}"));
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| wrong(error.to_string().trim().to_owned()))?;
        let mut methods = Vec::new();
        for (method, section) in &table {
            let Some((method, known)) = METHODS.iter().find(|(name, _)| name == method) else {
                let names: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
                return Err(wrong(format!(
                    "there is no method {}; there are {}",
                    quoted(method),
                    names.join(", ")
                )));
            };
            let section = section.as_table().ok_or_else(|| {
                wrong(format!(
                    "'{method}' must be a section, [{method}], with a list for each hyper-parameter"
                ))
            })?;
            let mut parameters = Vec::new();
            for (name, values) in section {
                if name != "scale" && !known.contains(&name.as_str()) {
                    let known = [known, &["scale"][..]].concat().join(", ");
                    return Err(wrong(format!(
                        "{method} has no hyper-parameter {}; it has {known}",
                        quoted(name)
                    )));
                }
                let list = values.as_array().filter(|list| !list.is_empty());
                let list = list.ok_or_else(|| wrong(format!("{method}.{name} must be a list of values")))?;
                let values = list.iter().map(|toml| value(name, toml));
                let values = values.collect::<Result<_, _>>();
                parameters.push((
                    name.clone(),
                    values.map_err(|reason| wrong(format!("{method}.{name}: {reason}")))?,
                ));
            }
            methods.push((*method, parameters));
        }
        Ok(Self(methods))
    }

    /// All combinations of the values of a method; none if it has no section.
    pub fn settings(&self, method: &str) -> Vec<Setting> {
        let Some((_, parameters)) = self.0.iter().find(|(name, _)| *name == method) else {
            return Vec::new();
        };
        let mut settings = vec![Setting::default()];
        for (name, values) in parameters {
            settings = settings
                .iter()
                .flat_map(|Setting(before)| {
                    values.iter().map(|value| Setting([&before[..], &[(name.clone(), *value)]].concat()))
                })
                .collect();
        }
        settings.retain(|setting| !setting.0.is_empty());
        settings
    }

    /// The values of one numeric hyper-parameter of a method.
    pub fn numbers(&self, method: &str, parameter: &str) -> Vec<f64> {
        let section = self.0.iter().find(|(name, _)| *name == method);
        let values = section.and_then(|(_, all)| all.iter().find(|(name, _)| name == parameter));
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            Value::Scale(_) => None,
        };
        values.map_or_else(Vec::new, |(_, values)| values.iter().filter_map(number).collect())
    }
}

fn value(name: &str, toml: &Toml) -> Result<Value, String> {
    if name == "scale" {
        let text = toml.as_str().ok_or("must be names of scalings, such as \"unit\"")?;
        return text.parse().map(Value::Scale).map_err(|error: daimc::Error| error.to_string());
    }
    let number = toml.as_float().or_else(|| toml.as_integer().map(|whole| whole as f64));
    let number = number.ok_or_else(|| format!("{toml} is not a number"))?;
    let whole = ["block", "passes", "components", "neighbours"].contains(&name);
    if !number.is_finite() || number < 0.0 || (whole && (number < 1.0 || number.fract() != 0.0)) {
        let wanted = if whole { "a whole number from 1" } else { "a finite number from 0" };
        return Err(format!("{number} is not {wanted}"));
    }
    Ok(Value::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_the_program_is_that_of_the_paper_for_daimc() {
        let grid = Grid::read(None).unwrap();
        assert_eq!(grid.settings("daimc-paper").len(), 64);
        let values = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];
        assert_eq!(grid.numbers("daimc-paper", "alpha"), values);
        assert_eq!(grid.numbers("daimc-plain", "beta"), values);
        assert!(grid.settings("wsnmf").is_empty());
    }

    #[test]
    fn every_combination_is_a_setting() {
        let grid = Grid::parse("[img]\nbeta = [1, 2.5]\nscale = [\"unit\", \"none\"]\n", "g").unwrap();
        let settings: Vec<String> = grid.settings("img").iter().map(Setting::to_string).collect();
        assert_eq!(
            settings,
            ["beta=1 scale=unit", "beta=1 scale=none", "beta=2.5 scale=unit", "beta=2.5 scale=none"]
        );
    }

    #[test]
    fn errors_name_the_method_and_the_parameter() {
        for (text, message) in [
            ("[spectral]\nk = [1]", "there is no method 'spectral'"),
            ("[pvc]\nalfa = [1]", "pvc has no hyper-parameter 'alfa'; it has lambda, scale"),
            ("[pvc]\nlambda = 1", "pvc.lambda must be a list"),
            ("[pvc]\nlambda = []", "pvc.lambda must be a list"),
            ("[pvc]\nlambda = [-1]", "-1 is not a finite number from 0"),
            ("[opimc]\nblock = [2.5]", "2.5 is not a whole number from 1"),
            ("[pvc]\nscale = [\"big\"]", "one of auto, none"),
            ("pvc = 1", "must be a section"),
            ("[pvc", "g: "),
        ] {
            let error = Grid::parse(text, "g").unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
