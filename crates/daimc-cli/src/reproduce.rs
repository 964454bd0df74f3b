//! `daimc reproduce`: the tables and figures of the paper, and a panel of many data sets, every method on the same masks.

mod ablation;
mod convergence;
mod datasets;
mod files;
mod grid;
mod panel;
mod paper;
mod plan;
mod show;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use daimc::Scale;
use serde_json::json;

use crate::experiment::course::Course;
use crate::experiment::ledger::Ledger;
use crate::experiment::methods;
use crate::experiment::page::{self, Section};
use crate::experiment::runs::{self, Run};
use crate::failure::{Failure, Result};
use crate::progress::{self, Level};
use datasets::Loaded;
use grid::Grid;
use plan::{Experiment, Wishes};

#[derive(Args)]
#[command(
    after_help = "Example: daimc reproduce 3sources --data DIR --seeds 10 -o out",
    mut_arg("output", |own| own.value_name("OUT").help(
        "Folder for results.tsv (a row per run), table.md, plots and reproduce.html; runs recorded there are not repeated"
    )),
    mut_arg("threads", |own| own.help(
        "Number of threads, one fit on each; the results do not depend on it [default: all]"
    )),
    mut_arg("json", |own| own.help("Print the tables as JSON"))
)]
pub struct Arguments {
    /// The table or figure
    #[arg(value_enum)]
    experiment: Experiment,

    /// Folder with the data sets in the folders 3sources, digit, wikipedia and flowers17, for panel also newsgroups, reuters,
    /// omics/brca, omics/nci60, omics/nutrimouse, omics/acc and fashion; Digit is part of the program and need not be there, nor
    /// fashion where Debian's package dataset-fashion-mnist is installed
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Number of seeds, from 0; each determines a mask, the same for all methods, and a start
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    seeds: u64,

    /// Methods, separated by commas [default: all of the experiment but the last four; for panel daimc, its routes and the fast
    /// ones]: daimc-plain (the default without neighbourhoods), daimc-paper, and where methods are compared daimc, wsnmf, multinmf,
    /// pvc, img, mic, omvc, opimc, single, concatenation, daimc-refine, daimc-embed, pca-spectral, nemo. Two-view methods run on
    /// every pair; the best according to the true classes is shown
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Data sets of panel, separated by commas [default: all that are available]: digit, 3sources, wikipedia, flowers17,
    /// newsgroups, reuters, brca, nci60, nutrimouse, acc, fashion, planted, or one of planted, such as planted-junk
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sets: Vec<String>,

    /// In addition to the fixed settings, try the whole grid and show the best according to the true classes in separate columns,
    /// as in the paper
    #[arg(long)]
    search: bool,

    /// A TOML file with lists of hyper-parameters in a section for each method, for --search and for alpha, beta and grid
    /// [default: crates/daimc-cli/grid.toml, which is part of the program]
    #[arg(long, value_name = "FILE")]
    grid: Option<PathBuf>,

    /// Scaling of all views for all methods: none, unit, min-max, min-max-unit, z-score, z-score-unit, tf-idf, log or log-unit
    /// [default: rows scaled to length 1, after features are scaled to 0 … 1 for Digit and, in panel, for data other than counts;
    /// exceptions: the default preset of daimc chooses for itself, and pca-spectral, concatenation in panel, and nemo except for
    /// the counts of panel standardise features]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    #[command(flatten)]
    course: Course,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let level = arguments.course.begin()?;
    let scale = arguments.scale.as_deref().map(str::parse::<Scale>).transpose()?;
    check(arguments)?;
    let grid = Grid::read(arguments.grid.as_deref())?;
    let wishes = Wishes { methods: &arguments.methods, scale, grid: &grid, search: arguments.search };
    let mut sections = Vec::new();
    for part in arguments.experiment.parts() {
        if !part.methods().iter().any(|method| methods::wanted(&arguments.methods, method)) {
            continue;
        }
        let folder = if arguments.experiment == Experiment::All {
            level.tell(format!("{}:", part.name()));
            arguments.course.output.join(part.name())
        } else {
            arguments.course.output.clone()
        };
        sections.extend(if part == Experiment::Panel {
            panel::reproduce(arguments, scale, &folder, level)?
        } else {
            reproduce(part, arguments, &wishes, &folder, level)?
        });
        if progress::interrupted() {
            break;
        }
    }
    let mut out = io::stdout().lock();
    if arguments.course.json {
        let table = |section: &Section| {
            let Section { title, notes, table, .. } = section;
            json!({"title": title, "notes": notes, "header": table.header, "rows": table.rows})
        };
        writeln!(out, "{:#}", json!(sections.iter().map(table).collect::<Vec<_>>()))?;
    } else {
        write!(out, "{}", page::markdown(&sections))?;
        writeln!(out, "\nEvery run, the tables and the plots are in {}", arguments.course.output.display())?;
    }
    Course::end()
}

/// Fails if the options do not go together.
fn check(arguments: &Arguments) -> Result<()> {
    let Arguments { experiment, methods, sets, seeds, search, grid, scale, .. } = arguments;
    let refuse = |reason: String| Err(Failure::Usage(reason));
    if *seeds == 0 {
        return refuse("--seeds must be at least 1".into());
    }
    let parts = experiment.parts();
    let known = methods::names().filter(|name| parts.iter().any(|part| part.methods().contains(name)));
    methods::check(methods, known)?;
    let name = experiment.name();
    if *search && !parts.iter().any(|part| part.compares()) {
        return refuse(format!("--search is for 3sources, digit, wikipedia and flowers, not for {name}"));
    }
    if grid.is_some() && !search && !parts.iter().any(|part| part.varies()) {
        return refuse("--grid is for --search and for the experiments alpha, beta and grid".into());
    }
    if !sets.is_empty() && *experiment != Experiment::Panel {
        return refuse(format!("--sets is for panel, not for {name}"));
    }
    panel::check(sets)?;
    if scale.is_some() && *experiment == Experiment::Ablation {
        return refuse("--scale does not go with ablation, which switches the scaling itself".into());
    }
    Ok(())
}

/// Runs an experiment, writes what it found to its folder, and returns that.
fn reproduce(
    experiment: Experiment,
    arguments: &Arguments,
    wishes: &Wishes<'_>,
    folder: &Path,
    level: Level,
) -> Result<Vec<Section>> {
    let data = load(experiment, arguments.data.as_deref(), level)?;
    // What is finished counts only for the same data and scaling; settings, seeds and shares are in the rows.
    let inputs: Vec<_> = data.iter().map(|own| json!([own.name.text(), own.inputs])).collect();
    let key = json!({
        "version": env!("CARGO_PKG_VERSION"), "experiment": experiment.name(), "inputs": inputs, "scale": wishes.scale,
    });
    let ledger = Ledger::open(folder, "reproduce.json", &key)?;
    let cases = experiment.cases(&data, wishes);
    let mut cells = Vec::new();
    for case in &cases {
        for &rate in &case.rates {
            for contender in &case.contenders {
                let run = |seed| Run::new(&experiment.name(), &case.sample, rate, contender, seed);
                cells.extend((0..arguments.seeds).map(run));
            }
        }
    }
    for refusal in runs::work(cells, &ledger, level)? {
        level.tell(format!("{} was left out on {}: {}", refusal.method, refusal.data, refusal.reason));
    }
    let rows = ledger.rows(arguments.seeds);
    let mut traces = Vec::new();
    if experiment == Experiment::Convergence && !progress::interrupted() {
        traces = convergence::traces(&cases[0], arguments.seeds)?;
        let text = convergence::tsv(&traces);
        ledger.publish([("objective.tsv".to_owned(), text)])?;
    }
    let sections = show::sections(experiment, &cases, &rows, wishes, &traces);
    let title = format!("DAIMC, reproduced: {}", experiment.name());
    page::write(&ledger, "reproduce.html", &title, &sections, &key)?;
    Ok(sections)
}

/// The data sets of an experiment; one that it can do without is left out where it is not there.
fn load(experiment: Experiment, folder: Option<&Path>, level: Level) -> Result<Vec<Loaded>> {
    let (needed, further) = experiment.data();
    let mut data = vec![needed.load(folder)?];
    if let Some(further) = further {
        if folder.is_some_and(|folder| folder.join(further.text()).is_dir()) {
            data.push(further.load(folder)?);
        } else {
            level.tell(format!("without {}: --data names no folder that has it", further.text()));
        }
    }
    Ok(data)
}
