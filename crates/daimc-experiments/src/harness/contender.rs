//! The methods by name, with their settings.

use crate::methods::{
    Concatenation, Img, Method, Mic, MultiNmf, Nemo, Omvc, Opimc, PcaSpectral, Pvc, SingleView,
    WeightedSemiNmf,
};
use daimc::text::quoted;
use daimc::{Daimc, Neighbours, Preset, Scale};

use super::setting::Setting;
use crate::harness::{Error, Result};

/// The names of the methods in the order of the tables, with their hyper-parameters in addition to `scale`. `daimc-plain` is
/// the default preset of DAIMC without neighbourhoods.
pub const METHODS: [(&str, &[&str]); 16] = [
    ("daimc", &["alpha", "beta"]),
    ("daimc-plain", &["alpha", "beta"]),
    ("daimc-paper", &["alpha", "beta"]),
    ("wsnmf", &[]),
    ("multinmf", &["lambda"]),
    ("pvc", &["lambda"]),
    ("img", &["lambda", "beta", "gamma"]),
    ("mic", &["alpha", "beta"]),
    ("omvc", &["alpha", "beta", "block", "passes"]),
    ("opimc", &["alpha", "block", "passes"]),
    ("single", &[]),
    ("concatenation", &[]),
    ("daimc-refine", &["alpha", "beta"]),
    ("daimc-embed", &["alpha", "beta"]),
    ("pca-spectral", &["components", "neighbours"]),
    ("nemo", &["neighbours"]),
];

/// Methods that run only if the user or the experiment names them.
const ON_DEMAND: [&str; 4] = ["daimc-refine", "daimc-embed", "pca-spectral", "nemo"];

/// A method with a setting.
pub struct Contender {
    pub method: &'static str,
    /// The views, if the method does not use all of them, and the hyper-parameters.
    pub setting: String,
    /// Whether the hyper-parameters come from a grid; otherwise they are the fixed ones, chosen without labels.
    pub searched: bool,
    pub fit: Box<dyn Method + Send>,
}

impl Contender {
    pub fn new(method: &'static str, setting: impl Into<String>, fit: impl Method + Send + 'static) -> Self {
        Self { method, setting: setting.into(), searched: false, fit: Box::new(fit) }
    }
}

/// Fails if a name is not one of `known`.
pub fn check<'a>(names: &[String], known: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    match names.iter().find(|name| !known.clone().any(|known| known == name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let known = known.collect::<Vec<_>>().join(", ");
            Err(Error::Usage(format!("there is no method {}; there are {known}", quoted(unknown))))
        }
    }
}

/// The scaling of the views for each kind of method.
#[derive(Clone, Copy, Debug)]
pub struct Scales {
    /// For the default preset of DAIMC, which can choose for itself.
    pub daimc: Scale,
    /// For methods that standardise features by their own definition.
    pub standard: Scale,
    /// For all others.
    pub others: Scale,
}

impl Scales {
    /// The given scaling for all methods, or a default for each.
    pub fn new(given: Option<Scale>, others: Scale) -> Self {
        Self {
            daimc: given.unwrap_or(Scale::Auto),
            standard: given.unwrap_or(Scale::ZScore),
            others: given.unwrap_or(others),
        }
    }
}

/// The names of all methods.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    METHODS.iter().map(|(name, _)| *name)
}

/// Whether a method is selected: it is one of `names`, or there are none and it does not have to be named.
pub fn wanted(names: &[String], method: &str) -> bool {
    if names.is_empty() { !ON_DEMAND.contains(&method) } else { names.iter().any(|name| name == method) }
}

/// A method with its hyper-parameters, on views of these names: a contender for each pair of views for two-view methods, and for
/// each view for single-view methods. A scale in the setting takes precedence over `scales`.
pub fn contenders(method: &'static str, setting: &Setting, views: &[&str], scales: Scales) -> Vec<Contender> {
    let scale = setting.scale(scales.others);
    let with = |choice: String| if setting.0.is_empty() { choice } else { format!("{choice}; {setting}") };
    let one = |fit: Box<dyn Method + Send>| {
        vec![Contender { method, setting: setting.to_string(), searched: false, fit }]
    };
    let number = |name, default| setting.number(name, default);
    let daimc = |preset, scale| {
        let fit = Daimc::new(1).preset(preset).scale(scale);
        let (alpha, beta) = (fit.options().alpha, fit.options().beta);
        fit.alpha(number("alpha", alpha)).beta(number("beta", beta))
    };
    match method {
        "daimc" => one(Box::new(daimc(Preset::Default, setting.scale(scales.daimc)))),
        "daimc-plain" | "daimc-refine" | "daimc-embed" => {
            let neighbours = match method {
                "daimc-plain" => Neighbours::Off,
                "daimc-refine" => Neighbours::Refine,
                _ => Neighbours::Embed,
            };
            one(Box::new(daimc(Preset::Default, setting.scale(scales.daimc)).neighbours(neighbours)))
        }
        "daimc-paper" => one(Box::new(daimc(Preset::Paper, scale))),
        "wsnmf" => one(Box::new(WeightedSemiNmf { fit: daimc(Preset::Paper, scale) })),
        "multinmf" => {
            let default = MultiNmf { scale, ..MultiNmf::default() };
            one(Box::new(MultiNmf { lambda: number("lambda", default.lambda), ..default }))
        }
        "mic" => {
            let default = Mic { scale, ..Mic::default() };
            let (alpha, beta) = (number("alpha", default.alpha), number("beta", default.beta));
            one(Box::new(Mic { alpha, beta, ..default }))
        }
        "omvc" => {
            let default = Omvc { scale, ..Omvc::default() };
            one(Box::new(Omvc {
                alpha: number("alpha", default.alpha),
                beta: number("beta", default.beta),
                block: setting.count("block", default.block),
                passes: setting.count("passes", default.passes),
                ..default
            }))
        }
        "opimc" => {
            let default = Opimc { scale, ..Opimc::default() };
            one(Box::new(Opimc {
                alpha: number("alpha", default.alpha),
                block: setting.count("block", default.block),
                passes: setting.count("passes", default.passes),
                ..default
            }))
        }
        "pvc" | "img" => {
            let pairs = (0..views.len()).flat_map(|a| (a + 1..views.len()).map(move |b| (a, b)));
            let of = |pair: (usize, usize)| {
                let choice = with(format!("{} + {}", views[pair.0], views[pair.1]));
                if method == "pvc" {
                    let default = Pvc { views: pair, scale, ..Pvc::default() };
                    Contender::new(
                        method,
                        choice,
                        Pvc { lambda: number("lambda", default.lambda), ..default },
                    )
                } else {
                    let default = Img { views: pair, scale, ..Img::default() };
                    let fit = Img {
                        lambda: number("lambda", default.lambda),
                        beta: number("beta", default.beta),
                        gamma: number("gamma", default.gamma),
                        ..default
                    };
                    Contender::new(method, choice, fit)
                }
            };
            pairs.map(of).collect()
        }
        "concatenation" => one(Box::new(Concatenation { scale })),
        "pca-spectral" => {
            let default = PcaSpectral { scale: setting.scale(scales.standard), ..PcaSpectral::default() };
            one(Box::new(PcaSpectral {
                components: setting.count("components", default.components),
                neighbours: setting.count("neighbours", default.neighbours),
                ..default
            }))
        }
        "nemo" => {
            // Zero is the published number.
            let neighbours = Some(setting.count("neighbours", 0)).filter(|count| *count > 0);
            one(Box::new(Nemo { scale: setting.scale(scales.standard), neighbours }))
        }
        _ => {
            let of = |(view, name): (usize, &&str)| {
                Contender::new(method, with((*name).to_owned()), SingleView { view, scale })
            };
            views.iter().enumerate().map(of).collect()
        }
    }
}
