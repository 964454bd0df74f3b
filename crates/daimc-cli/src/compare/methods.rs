//! The methods by name.

use daimc::baselines::{
    Concatenation, Img, Method, Mic, MultiNmf, Omvc, Opimc, Pvc, SingleView, WeightedSemiNmf, pairs,
};
use daimc::{Daimc, Preset, Scale, View, Views};

use crate::failure::{Failure, Result};

/// The names, in the order of the table.
pub const NAMES: [&str; 11] = [
    "daimc",
    "daimc-paper",
    "wsnmf",
    "multinmf",
    "pvc",
    "img",
    "mic",
    "omvc",
    "opimc",
    "single",
    "concatenation",
];

/// A method with a setting. Where a method has several, which is best only the classes can tell.
pub struct Contender {
    pub method: &'static str,
    pub setting: String,
    pub fit: Box<dyn Method + Send>,
}

/// Fails if a name is not one of a method.
pub fn check(names: &[String]) -> Result<()> {
    match names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            Err(Failure::Usage(format!("there is no method '{unknown}'; there are {}", NAMES.join(", "))))
        }
    }
}

/// The methods of these names, or all, with `scale` where it is given.
pub fn contenders(names: &[String], views: &Views<'_>, scale: Option<Scale>) -> Vec<Contender> {
    let wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    NAMES.into_iter().filter(wanted).flat_map(|name| of(name, views, scale)).collect()
}

fn of(name: &'static str, views: &Views<'_>, given: Option<Scale>) -> Vec<Contender> {
    let scale = given.unwrap_or(Scale::Unit);
    // The number of clusters comes with the fit.
    let paper = || Daimc::new(1).preset(Preset::Paper).scale(scale);
    let one = |fit: Box<dyn Method + Send>| vec![Contender { method: name, setting: "default".into(), fit }];
    match name {
        "daimc" => one(Box::new(Daimc::new(1).scale(given.unwrap_or(Scale::Auto)))),
        "daimc-paper" => one(Box::new(paper())),
        "wsnmf" => one(Box::new(WeightedSemiNmf { fit: paper() })),
        "multinmf" => one(Box::new(MultiNmf { scale, ..MultiNmf::default() })),
        "mic" => one(Box::new(Mic { scale, ..Mic::default() })),
        "omvc" => one(Box::new(Omvc { scale, ..Omvc::default() })),
        "opimc" => one(Box::new(Opimc { scale, ..Opimc::default() })),
        "pvc" | "img" => {
            let names: Vec<&str> = views.iter().map(View::name).collect();
            let of = |pair: (usize, usize)| Contender {
                method: name,
                setting: format!("{} + {}", names[pair.0], names[pair.1]),
                fit: if name == "pvc" {
                    Box::new(Pvc { views: pair, scale, ..Pvc::default() })
                } else {
                    Box::new(Img { views: pair, scale, ..Img::default() })
                },
            };
            pairs(views).map(of).collect()
        }
        "concatenation" => one(Box::new(Concatenation { scale })),
        _ => {
            let of = |(view, own): (usize, &View<'_>)| Contender {
                method: name,
                setting: own.name().into(),
                fit: Box::new(SingleView { view, scale }),
            };
            views.iter().enumerate().map(of).collect()
        }
    }
}
