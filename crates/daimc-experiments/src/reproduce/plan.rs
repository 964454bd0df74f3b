//! The runs of each experiment.

use daimc::{Daimc, Neighbours, Preset, Scale};

use super::datasets::{Loaded, Name};
use super::grid::Grid;
use super::{ablation, paper};
use crate::harness::contender::{self, Contender, Scales};
use crate::harness::sample::Sample;
use crate::harness::setting::Setting;

/// A table or figure of the paper, or the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Table 2.
    ThreeSources,
    /// Figure 1, Digit.
    Digit,
    /// Figure 1, Wikipedia.
    Wikipedia,
    /// Figure 1, Flowers.
    Flowers,
    /// The convergence study.
    Convergence,
    /// The view study.
    Views,
    /// α varied.
    Alpha,
    /// β varied.
    Beta,
    /// α and β varied together.
    Grid,
    /// DAIMC with one part switched at a time.
    Ablation,
    /// Many data sets, real and planted.
    Panel,
    /// All of them but the panel.
    All,
}

/// A sample of data, at some shares of missing instances, and the methods that are run on it.
pub struct Case<'a> {
    pub sample: Sample<'a>,
    pub rates: Vec<f64>,
    pub contenders: Vec<Contender>,
}

/// The options of an experiment.
pub struct Wishes<'a> {
    pub methods: &'a [String],
    pub scale: Option<Scale>,
    pub grid: &'a Grid,
    /// Whether the grid is searched in addition to the fixed settings.
    pub search: bool,
}

/// The presets whose parts and weights are studied, the published one first; without neighbourhoods, which would mask the effects.
const PRESETS: [&str; 2] = ["daimc-paper", "daimc-plain"];
/// α and β of the convergence study; in the view study β is 1.
const ALPHA: f64 = 10.0;
const BETA: f64 = 0.1;
/// Iterations of the convergence study.
pub const ITERATIONS: usize = 50;

impl Experiment {
    /// All of them, in the order of the program's help.
    pub const ALL: [Self; 12] = [
        Self::ThreeSources,
        Self::Digit,
        Self::Wikipedia,
        Self::Flowers,
        Self::Convergence,
        Self::Views,
        Self::Alpha,
        Self::Beta,
        Self::Grid,
        Self::Ablation,
        Self::Panel,
        Self::All,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreeSources => "3sources",
            Self::Digit => "digit",
            Self::Wikipedia => "wikipedia",
            Self::Flowers => "flowers",
            Self::Convergence => "convergence",
            Self::Views => "views",
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Grid => "grid",
            Self::Ablation => "ablation",
            Self::Panel => "panel",
            Self::All => "all",
        }
    }

    /// What it shows, in one sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Self::ThreeSources => "Table 2: pairs of newspapers and all three, every method",
            Self::Digit => "Figure 1, Digit: AC and NMI with 0 to 50 % missing, every method",
            Self::Wikipedia => "Figure 1, Wikipedia",
            Self::Flowers => {
                "Figure 1, Flowers; the distances are recomputed from counts, so the curves are not those of the paper"
            }
            Self::Convergence => "J and NMI after each iteration: Digit, 40 % missing, α = 10, β = 0.1",
            Self::Views => "1 to 5 views, every choice of them: Digit, 50 % missing, α = 10, β = 1",
            Self::Alpha => "α varied, β = 0.1: Digit, 30 and 50 % missing",
            Self::Beta => "β varied, α = 10: Digit, 30 and 50 % missing",
            Self::Grid => "All combinations of α and β: Digit, 30 and 50 % missing",
            Self::Ablation => "One part of DAIMC switched at a time: Digit, and 3Sources where it is there",
            Self::Panel => {
                "The default of DAIMC, its other routes and other methods on many data sets, real and planted: means, and where the default is worst"
            }
            Self::All => "All of them but panel, each in its own folder under OUT",
        }
    }

    /// The experiments that this one consists of.
    pub fn parts(self) -> Vec<Self> {
        if self == Self::All {
            let single = |part: &Self| !matches!(part, Self::All | Self::Panel);
            Self::ALL.into_iter().filter(single).collect()
        } else {
            vec![self]
        }
    }

    /// Whether it compares methods, each with its fixed setting and optionally with those of the grid.
    pub fn compares(self) -> bool {
        matches!(self, Self::ThreeSources | Self::Digit | Self::Wikipedia | Self::Flowers)
    }

    /// Whether its values come from the grid.
    pub fn varies(self) -> bool {
        matches!(self, Self::Alpha | Self::Beta | Self::Grid)
    }

    /// The methods that it can run.
    pub fn methods(self) -> Vec<&'static str> {
        if self.compares() || self == Self::Panel { contender::names().collect() } else { PRESETS.into() }
    }

    /// The data set that it needs, and an optional one.
    pub fn data(self) -> (Name, Option<Name>) {
        match self {
            Self::ThreeSources => (Name::ThreeSources, None),
            Self::Wikipedia => (Name::Wikipedia, None),
            Self::Flowers => (Name::Flowers, None),
            Self::Ablation => (Name::Digit, Some(Name::ThreeSources)),
            _ => (Name::Digit, None),
        }
    }

    /// The cases on its data sets; `panel` has its own.
    pub fn cases<'a>(self, data: &'a [Loaded], wishes: &Wishes<'_>) -> Vec<Case<'a>> {
        let whole = |own: &'a Loaded| Sample { name: own.name.text().into(), data: &own.data, views: None };
        let own = &data[0];
        let some =
            |rates: &[f64], contenders| vec![Case { sample: whole(own), rates: rates.into(), contenders }];
        match self {
            Self::ThreeSources => {
                let pairs = [Some(vec![0, 1]), Some(vec![0, 2]), Some(vec![1, 2]), None];
                let case = |views: Option<Vec<usize>>| {
                    let mut sample = Sample { views, ..whole(own) };
                    if sample.views.is_some() {
                        sample.name = sample.view_names().join("+");
                    }
                    let contenders = wishes.compared(&sample, own.scale);
                    Case { sample, rates: vec![0.0], contenders }
                };
                pairs.map(case).into()
            }
            Self::Digit | Self::Wikipedia | Self::Flowers => {
                some(&paper::RATES, wishes.compared(&whole(own), own.scale))
            }
            Self::Convergence => some(&[0.4], wishes.each(|method| iterations(method, wishes.scales(own)))),
            Self::Views => {
                let count = own.data.views.len();
                let chosen = |subset: usize| (0..count).filter(|view| subset >> view & 1 == 1).collect();
                let case = |views: Vec<usize>| {
                    let mut sample = Sample { views: Some(views), ..whole(own) };
                    sample.name = format!("digit:{}", sample.view_names().join("+"));
                    let setting = Setting::of(&[("alpha", ALPHA), ("beta", 1.0)]);
                    let names = sample.view_names();
                    let scales = wishes.scales(own);
                    let contenders =
                        wishes.each(|method| contender::contenders(method, &setting, &names, scales));
                    Case { sample, rates: vec![0.5], contenders }
                };
                let mut subsets: Vec<Vec<usize>> = (1..1 << count).map(chosen).collect();
                subsets.sort_by_key(Vec::len);
                subsets.into_iter().map(case).collect()
            }
            Self::Alpha | Self::Beta | Self::Grid => {
                let settings = |method: &'static str| {
                    let (alphas, betas) = self.weights(wishes.grid, method);
                    let both = alphas.iter().flat_map(|alpha| betas.iter().map(move |beta| (*alpha, *beta)));
                    both.flat_map(|(alpha, beta)| {
                        let setting = Setting::of(&[("alpha", alpha), ("beta", beta)]);
                        contender::contenders(method, &setting, &[], wishes.scales(own))
                    })
                    .collect()
                };
                some(&[0.3, 0.5], wishes.each(settings))
            }
            Self::Ablation => {
                let case = |own: &'a Loaded| Case {
                    sample: whole(own),
                    rates: if own.name == Name::Digit { vec![0.3, 0.5] } else { vec![0.0] },
                    contenders: wishes.each(ablation::variants),
                };
                data.iter().map(case).collect()
            }
            Self::Panel | Self::All => Vec::new(),
        }
    }

    /// The values of α and β that it tries.
    pub fn weights(self, grid: &Grid, method: &str) -> (Vec<f64>, Vec<f64>) {
        let (alphas, betas) = (grid.numbers(method, "alpha"), grid.numbers(method, "beta"));
        match self {
            Self::Alpha => (alphas, vec![BETA]),
            Self::Beta => (vec![ALPHA], betas),
            _ => (alphas, betas),
        }
    }
}

impl Wishes<'_> {
    fn scales(&self, own: &Loaded) -> Scales {
        Scales::new(self.scale, own.scale)
    }

    /// The selected methods with their fixed settings and with those of the grid.
    fn compared(&self, sample: &Sample<'_>, scale: Scale) -> Vec<Contender> {
        let (names, scales) = (sample.view_names(), Scales::new(self.scale, scale));
        let mut contenders = Vec::new();
        for method in contender::names().filter(|method| contender::wanted(self.methods, method)) {
            contenders.extend(contender::contenders(method, &Setting::default(), &names, scales));
            for setting in self.grid.settings(method).iter().filter(|_| self.search) {
                let searched = contender::contenders(method, setting, &names, scales).into_iter();
                contenders.extend(searched.map(|contender| Contender { searched: true, ..contender }));
            }
        }
        contenders
    }

    /// The contenders of each selected preset.
    fn each(&self, of: impl Fn(&'static str) -> Vec<Contender>) -> Vec<Contender> {
        PRESETS.into_iter().filter(|method| contender::wanted(self.methods, method)).flat_map(of).collect()
    }
}

/// A preset that stops after 1, 2, … iterations; with the same seed the iterations are the same.
fn iterations(method: &'static str, scales: Scales) -> Vec<Contender> {
    let of = |count| Contender::new(method, format!("iteration {count}"), stopped(method, scales, count));
    (1..=ITERATIONS).map(of).collect()
}

fn stopped(method: &str, scales: Scales, count: usize) -> Daimc {
    let (preset, scale) = match method {
        "daimc-plain" => (Preset::Default, scales.daimc),
        _ => (Preset::Paper, scales.others),
    };
    let fit = Daimc::new(1).preset(preset).scale(scale).alpha(ALPHA).beta(BETA);
    fit.max_iterations(count).tolerance(0.0).neighbours(Neighbours::Off)
}
