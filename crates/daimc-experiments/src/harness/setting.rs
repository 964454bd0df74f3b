//! Hyper-parameters of a method, by name.

use std::fmt;

use daimc::Scale;

/// A value of a hyper-parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Scale(Scale),
}

/// Some hyper-parameters of a method; the others have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting(pub Vec<(String, Value)>);

impl Setting {
    /// A setting of numbers by name.
    pub fn of(numbers: &[(&str, f64)]) -> Self {
        Self(numbers.iter().map(|(name, value)| ((*name).into(), Value::Number(*value))).collect())
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// A number, by default `default`.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        match self.get(name) {
            Some(Value::Number(number)) => number,
            _ => default,
        }
    }

    /// A whole number, by default `default`.
    pub fn count(&self, name: &str, default: usize) -> usize {
        self.number(name, default as f64) as usize
    }

    /// The scaling of the views, by default `default`.
    pub fn scale(&self, default: Scale) -> Scale {
        match self.get("scale") {
            Some(Value::Scale(scale)) => scale,
            _ => default,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("default");
        }
        for (i, (name, value)) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            match value {
                Value::Number(number) => write!(f, "{space}{name}={number}")?,
                Value::Scale(scale) => write!(f, "{space}{name}={scale}")?,
            }
        }
        Ok(())
    }
}
