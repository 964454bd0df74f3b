//! `daimc demo`: the main job on data that are part of the program.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use clap::Args;
use daimc::{Daimc, Model, Preset, Views, datasets, metrics, simulate};

#[derive(Args)]
pub struct Options {
    /// Share of the instances that is removed from every view, at random [0 to 0.8]
    #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
    missing: f64,

    /// Seed of the gaps and of the fit
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Options of the fit: `default`, or `paper` for the published algorithm
    #[arg(long, default_value = "default", value_parser = ["default", "paper"])]
    preset: String,

    /// Threads to use; the result does not depend on them [default: all]
    #[arg(long)]
    threads: Option<usize>,
}

/// What can go wrong in the demo.
pub enum Failure {
    /// The data or the options.
    Daimc(daimc::Error),
    /// Standard output.
    Output(io::Error),
}

impl From<daimc::Error> for Failure {
    fn from(error: daimc::Error) -> Self {
        Self::Daimc(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daimc(error) => error.fmt(f),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let (views, truth) = datasets::digit();
    // The five views of the paper; a sixth, `mor`, has but six features.
    let views: Vec<_> = views.into_iter().filter(|view| view.name() != "mor").collect();
    let present = simulate::missing(truth.len(), &vec![options.missing; views.len()], options.seed)?;
    let views = views.into_iter().zip(&present).map(|(view, present)| view.mask(present));
    let views = Views::new(views.collect::<Result<_, _>>()?)?;
    describe(&mut out, &views)?;

    let mut fit = Daimc::new(10).seed(options.seed);
    if options.preset == "paper" {
        fit = fit.preset(Preset::Paper);
    }
    if let Some(threads) = options.threads {
        fit = fit.threads(threads);
    }
    let start = Instant::now();
    let model = fit.fit_with(&views, |iteration| {
        if iteration.number == 1 || iteration.number % 10 == 0 {
            eprintln!("iteration {:>3}   J = {:.3}", iteration.number, iteration.objective.total);
        }
        ControlFlow::Continue(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    conclude(&mut out, &model, &truth, seconds)?;
    Ok(())
}

fn describe(out: &mut impl Write, views: &Views<'_>) -> io::Result<()> {
    let n = views.instances();
    writeln!(
        out,
        "Digit: {n} handwritten digits in {} views (UCI Multiple Features, CC BY 4.0)\n",
        views.len()
    )?;
    writeln!(out, "  view   features   present   missing")?;
    for (number, view) in views.iter().enumerate() {
        let present = views.present(number);
        let missing = 100.0 * (n - present) as f64 / n as f64;
        writeln!(out, "  {:<6} {:>8}   {present:>7}   {missing:>5.1} %", view.name(), view.features())?;
    }
    let everywhere = (0..n).filter(|&i| (0..views.len()).all(|view| views.is_present(view, i))).count();
    writeln!(out, "\n  seen in every view: {everywhere} of {n}\n")?;
    out.flush()
}

fn conclude(out: &mut impl Write, model: &Model, truth: &[usize], seconds: f64) -> Result<(), Failure> {
    let scores = metrics::scores(truth, &model.labels)?;
    let outcome = format!("{:?} after {} iterations", model.outcome, model.iterations());
    writeln!(out, "{outcome}, {:.0} ms from memory to labels\n", 1000.0 * seconds)?;
    writeln!(out, "  AC  {:.3}   share of digits in the right cluster", scores.ac)?;
    writeln!(out, "  NMI {:.3}   information that clusters and digits share", scores.nmi)?;
    writeln!(out, "  ARI {:.3}   pairs judged alike, corrected for chance", scores.ari)?;
    writeln!(out, "\nThe digits themselves were used for these three figures only, never for the fit.")?;
    Ok(())
}
