//! The tables and figures of the paper, and a panel of many data sets, every method on the same masks: `daimc reproduce`.

mod ablation;
mod convergence;
mod datasets;
mod files;
mod grid;
mod panel;
mod paper;
mod plan;
mod show;

use std::path::Path;

use daimc::Scale;
use serde_json::json;

use crate::harness::contender;
use crate::harness::ledger::Ledger;
use crate::harness::page::{self, Section};
use crate::harness::runs::{self, Run};
use crate::harness::{Error, Monitor, Result};
use datasets::Loaded;
use grid::Grid;
use plan::Wishes;

pub use plan::Experiment;

/// An experiment and its options.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The table or figure.
    pub experiment: Experiment,
    /// The folder with the data sets, a folder for each; Digit and the planted data need none.
    pub data: Option<&'a Path>,
    /// The number of seeds, from 0; each determines a mask and a start.
    pub seeds: u64,
    /// The methods; none: those of the experiment that do not have to be named.
    pub methods: &'a [String],
    /// The data sets of the panel; none: all that are available.
    pub sets: &'a [String],
    /// Whether the grid is searched in addition to the fixed settings.
    pub search: bool,
    /// A TOML file with the grid of hyper-parameters; `None`: `grid.toml` of this crate.
    pub grid: Option<&'a Path>,
    /// The scaling of all views for all methods; `None`: what suits the data set and the method.
    pub scale: Option<Scale>,
    /// The folder for `results.tsv`, `table.md`, the plots and `reproduce.html`; for [`Experiment::All`] a folder for each
    /// experiment in it.
    pub folder: &'a Path,
}

impl Request<'_> {
    /// Executes the runs that the folder does not have, writes the results to it and returns them. If the monitor interrupts
    /// the runs, these are the results of the finished ones.
    ///
    /// # Errors
    /// When options are inconsistent, data sets are missing or incomplete, or the folder holds other results or cannot be
    /// written. A method that cannot handle the data is reported to the monitor and skipped.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Vec<Section>> {
        self.check()?;
        let grid = Grid::read(self.grid)?;
        let wishes = Wishes { methods: self.methods, scale: self.scale, grid: &grid, search: self.search };
        let mut sections = Vec::new();
        for part in self.experiment.parts() {
            if !part.methods().iter().any(|method| contender::wanted(self.methods, method)) {
                continue;
            }
            let folder = if self.experiment == Experiment::All {
                monitor.note(&format!("{}:", part.name()));
                self.folder.join(part.name())
            } else {
                self.folder.to_owned()
            };
            sections.extend(if part == Experiment::Panel {
                panel::reproduce(self, &folder, monitor)?
            } else {
                self.reproduce(part, &wishes, &folder, monitor)?
            });
            if monitor.interrupted() {
                break;
            }
        }
        Ok(sections)
    }

    /// Fails if the options are inconsistent.
    fn check(&self) -> Result<()> {
        let &Self { experiment, methods, sets, seeds, search, grid, scale, .. } = self;
        let refuse = |reason: String| Err(Error::Usage(reason));
        if seeds == 0 {
            return refuse("--seeds must be at least 1".into());
        }
        let parts = experiment.parts();
        let known = contender::names().filter(|name| parts.iter().any(|part| part.methods().contains(name)));
        contender::check(methods, known)?;
        let name = experiment.name();
        if search && !parts.iter().any(|part| part.compares()) {
            return refuse(format!("--search is for 3sources, digit, wikipedia and flowers, not for {name}"));
        }
        if grid.is_some() && !search && !parts.iter().any(|part| part.varies()) {
            return refuse("--grid is for --search and for the experiments alpha, beta and grid".into());
        }
        if !sets.is_empty() && experiment != Experiment::Panel {
            return refuse(format!("--sets is for panel, not for {name}"));
        }
        panel::check(sets)?;
        if scale.is_some() && experiment == Experiment::Ablation {
            return refuse("--scale does not go with ablation, which switches the scaling itself".into());
        }
        Ok(())
    }

    /// Runs one experiment, writes the results to its folder and returns them.
    fn reproduce(
        &self,
        experiment: Experiment,
        wishes: &Wishes<'_>,
        folder: &Path,
        monitor: &dyn Monitor,
    ) -> Result<Vec<Section>> {
        let data = load(experiment, self.data, monitor)?;
        // Rows are valid only for the same data and scaling; settings, seeds and shares are in the rows.
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
                    let run = |seed| Run::new(experiment.name(), &case.sample, rate, contender, seed);
                    cells.extend((0..self.seeds).map(run));
                }
            }
        }
        for refusal in runs::work(cells, &ledger, monitor)? {
            monitor.note(&refusal.to_string());
        }
        let rows = ledger.rows(self.seeds);
        let mut traces = Vec::new();
        if experiment == Experiment::Convergence && !monitor.interrupted() {
            traces = convergence::traces(&cases[0], self.seeds)?;
            let text = convergence::tsv(&traces);
            ledger.publish([("objective.tsv".to_owned(), text)])?;
        }
        let sections = show::sections(experiment, &cases, &rows, wishes, &traces);
        let title = format!("DAIMC, reproduced: {}", experiment.name());
        page::write(&ledger, "reproduce.html", &title, &sections, &key)?;
        Ok(sections)
    }
}

/// Loads the data sets of an experiment; an optional one is skipped if it is missing.
fn load(experiment: Experiment, folder: Option<&Path>, monitor: &dyn Monitor) -> Result<Vec<Loaded>> {
    let (needed, further) = experiment.data();
    let mut data = vec![needed.load(folder)?];
    if let Some(further) = further {
        if folder.is_some_and(|folder| folder.join(further.text()).is_dir()) {
            data.push(further.load(folder)?);
        } else {
            monitor.note(&format!("without {}: --data names no folder that has it", further.text()));
        }
    }
    Ok(data)
}
