//! Options with a fixed set of named values.

/// Defines the names of the values of an option: `ALL`, `name`, and the conversions between a value and its name.
#[macro_export]
macro_rules! choice {
    ($type:ident, $option:literal: $($value:ident = $name:literal),+) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The name of the value, as in files and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| $crate::Error::Option {
                    option: $option,
                    value: name.into(),
                    reason: format!("one of {}", Self::ALL.map(Self::name).join(", ")),
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use serde::Serialize;

    use crate::{Error, Scale, Solver};

    /// Display, serialisation and parsing use the same name.
    fn check<T>(all: impl IntoIterator<Item = T>)
    where
        T: Copy + Debug + PartialEq + Display + Serialize + FromStr<Err = Error>,
    {
        for one in all {
            assert_eq!(one.to_string().parse::<T>().unwrap(), one);
            assert_eq!(serde_json::to_value(one).unwrap(), one.to_string());
        }
    }

    #[test]
    fn every_name_leads_back_to_its_value_and_is_the_one_in_files() {
        check(Solver::ALL);
        check(Scale::ALL);
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let error = "best".parse::<Solver>().unwrap_err();
        assert_eq!(error.to_string(), "solver = best: one of coordinate, multiplicative");
    }
}
