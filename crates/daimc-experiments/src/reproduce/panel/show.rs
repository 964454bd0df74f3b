//! The tables of the panel: a row for each data set and share of missing instances, a column for each method.

use super::{DEFAULT, ROUTES, Trial};
use crate::harness::chart::{Chart, Drawing};
use crate::harness::ledger::Row;
use crate::harness::page::Section;
use crate::harness::table::{self, Line, Mean, Table};

/// A data set at one share of missing instances.
struct Task {
    data: &'static str,
    planted: bool,
    rate: f64,
    /// The result of each method, if it can handle the data.
    lines: Vec<Option<Line>>,
}

impl Task {
    /// Whether there are classes to score by.
    fn scored(&self) -> bool {
        self.lines.iter().flatten().any(|line| !line.nmi.mean.is_nan())
    }

    /// Its row: the data set, the share, `what` the row shows, and a cell for each method.
    fn row(&self, what: Option<&str>, cell: impl Fn(&Line) -> Option<String>) -> Vec<String> {
        let cell = |line: &Option<Line>| line.as_ref().and_then(&cell).unwrap_or_else(|| "–".into());
        let start = [self.data.to_owned(), self.rate.to_string()].into_iter();
        start.chain(what.map(String::from)).chain(self.lines.iter().map(cell)).collect()
    }
}

pub fn sections(trials: &[Trial<'_>], methods: &[&'static str], rows: &[Row]) -> Vec<Section> {
    let mut tasks = Vec::new();
    let mut sets = Table::new(&["data", "instances", "with a class", "clusters", "features of each view"]);
    for (i, trial) in trials.iter().enumerate() {
        // A data set that each seed generates has the same contenders for all seeds.
        if i > 0 && trials[i - 1].set.name == trial.set.name {
            continue;
        }
        sets.rows.push(size(trial));
        for &rate in trial.set.rates {
            let line = |method: &&'static str| {
                let own = trial.contenders.iter().filter(|contender| contender.method == *method);
                table::best(rows, trial.set.name, rate, own)
            };
            let lines = methods.iter().map(line).collect();
            tasks.push(Task { data: trial.set.name, planted: trial.set.planted, rate, lines });
        }
    }
    let (scored, others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(Task::scored);
    let mut sections = Vec::new();
    if !scored.is_empty() {
        sections.push(scores("NMI", &scored, methods, |line| line.nmi));
        sections.extend(regret(&scored, methods));
        sections.push(scores("AC", &scored, methods, |line| line.ac));
        sections.push(scores("ARI", &scored, methods, |line| line.ari));
        sections.push(seconds(&scored, methods));
    }
    if !others.is_empty() {
        sections.push(nothing(&others, methods));
    }
    sections.push(Section { title: "Data".into(), notes: Vec::new(), table: sets, charts: Vec::new() });
    if let Some(first) = sections.first_mut() {
        first.notes.extend(notes(methods));
    }
    sections
}

/// The size of a data set before instances are hidden.
fn size(trial: &Trial<'_>) -> Vec<String> {
    let data = trial.sample.data;
    let features: Vec<String> = data.views.iter().map(|view| view.features().to_string()).collect();
    let known = data.classes.iter().flatten().count();
    let numbers = [data.views.instances(), known, data.clusters].map(|number| number.to_string());
    [trial.set.name.to_owned()].into_iter().chain(numbers).chain([features.join(", ")]).collect()
}

/// The notes for all tables.
fn notes(methods: &[&str]) -> Vec<String> {
    let mut notes = vec![
        "Mean ± standard deviation over the seeds, each a mask and a start, and for planted data a data set; masks are the \
         same for all methods. No method has seen the classes; daimc and its routes (plain, refine, embed) choose their \
         scaling; concatenation and pca-spectral standardise features, and so does nemo unless the set is one of counts or \
         histograms; the others, and nemo there, have the scaling of the set."
            .to_owned(),
    ];
    if ["pvc", "img", "single"].iter().any(|method| methods.contains(method)) {
        notes.push(
            "A method for two views runs on every pair and k-means on every single view; the classes choose the one that \
             is shown."
                .into(),
        );
    }
    notes
}

fn header(methods: &[&str]) -> Table {
    Table::new(&[&["data", "missing"], methods].concat())
}

/// A score of every method, and its mean over the tasks that all methods can handle.
fn scores(title: &str, tasks: &[Task], methods: &[&str], score: fn(&Line) -> Mean) -> Section {
    let mut table = header(methods);
    table.rows.extend(tasks.iter().map(|task| task.row(None, |line| Some(score(line).to_string()))));
    let common: Vec<&Task> = tasks.iter().filter(|task| task.lines.iter().all(Option::is_some)).collect();
    let means = |of: &[&Task]| -> Vec<Mean> {
        let mean = |m: usize| {
            Mean::of(of.iter().filter_map(move |task| task.lines[m].as_ref()).map(|line| score(line).mean))
        };
        (0..methods.len()).map(mean).collect()
    };
    let mut summary = |name: &str, of: &[&Task]| {
        let cells = means(of).into_iter().map(|mean| format!("{:.3}", mean.mean));
        table.rows.push([name.to_owned(), format!("of {}", of.len())].into_iter().chain(cells).collect());
    };
    let (mut charts, mut notes) = (Vec::new(), Vec::new());
    // The difficulty of planted data is our choice.
    let (planted, real): (Vec<&Task>, Vec<&Task>) = common.iter().partition(|task| task.planted);
    if !planted.is_empty() && !real.is_empty() {
        summary("mean, real", &real);
        summary("mean, planted", &planted);
    }
    if !common.is_empty() {
        summary("mean", &common);
        let bars =
            methods.iter().zip(means(&common)).map(|(method, mean)| ((*method).to_owned(), mean)).collect();
        let name = format!("mean-{}", title.to_lowercase());
        let title = format!("{title}, mean and standard deviation over the rows of the table");
        charts.push(Chart { name, title, kind: Drawing::Bars(bars) });
    }
    if common.len() < tasks.len() {
        notes.push("The mean is over the rows in which every method has a value.".into());
    }
    Section { title: title.into(), notes, table, charts }
}

/// The difference between the best of the other routes and the default.
fn regret(tasks: &[Task], methods: &[&str]) -> Option<Section> {
    let place = |method: &str| methods.iter().position(|known| *known == method);
    let default = place(DEFAULT)?;
    let routes: Vec<usize> = ROUTES.iter().filter_map(|route| place(route)).collect();
    let mut table = Table::new(&["data", "missing", DEFAULT, "best route", "its NMI", "regret"]);
    let mut worst: Option<(f64, String)> = None;
    let mut all = Vec::new();
    for task in tasks {
        let Some(own) = &task.lines[default] else { continue };
        let others = routes.iter().filter_map(|&route| task.lines[route].as_ref());
        let Some(best) = others.max_by(|a, b| a.nmi.mean.total_cmp(&b.nmi.mean)) else { continue };
        let regret = best.nmi.mean - own.nmi.mean;
        let [data, rate] = [task.data.to_owned(), task.rate.to_string()];
        let (own, route, best_nmi) = (own.nmi.to_string(), best.method.clone(), best.nmi.to_string());
        table.rows.push(vec![data, rate, own, route, best_nmi, format!("{regret:+.3}")]);
        if worst.as_ref().is_none_or(|(most, _)| regret > *most) {
            worst = Some((
                regret,
                format!("{} with {} missing, where {} is best", task.data, task.rate, best.method),
            ));
        }
        all.push(regret);
    }
    let (most, place) = worst?;
    let mean = Mean::of(all.iter().copied()).mean;
    let empty = || String::new();
    let row =
        ["mean".to_owned(), format!("of {}", all.len()), empty(), empty(), empty(), format!("{mean:+.3}")];
    table.rows.push(row.into());
    let notes = vec![
        "Regret: the NMI of the best of the other routes of DAIMC, which the classes choose, less that of the default.".into(),
        format!("The worst set is {place}: {most:+.3}."),
    ];
    Some(Section { title: format!("Regret of {DEFAULT}"), notes, table, charts: Vec::new() })
}

fn seconds(tasks: &[Task], methods: &[&str]) -> Section {
    let mut table = header(methods);
    table.rows.extend(tasks.iter().map(|task| task.row(None, |line| Some(time(line)))));
    let notes = vec!["Seconds of one fit, on one thread where there are as many runs as threads.".into()];
    Section { title: "Seconds".into(), notes, table, charts: Vec::new() }
}

fn time(line: &Line) -> String {
    format!("{:.2}", line.seconds)
}

/// The table of data without clusters.
fn nothing(tasks: &[Task], methods: &[&str]) -> Section {
    let mut table = Table::new(&[&["data", "missing", "what"], methods].concat());
    for task in tasks {
        let sure = |line: &Line| line.confidence.map(|confidence| format!("{confidence:.3}"));
        table
            .rows
            .extend([task.row(Some("confidence"), sure), task.row(Some("seconds"), |line| Some(time(line)))]);
    }
    let notes = vec![
        "There is nothing to find and nothing to score. A method that tells how sure it is should not be sure here. Confidence is the margin of an instance; `daimc fit` tempers it by how far parts of the data lead to the same clusters.".into(),
    ];
    Section { title: "No clusters".into(), notes, table, charts: Vec::new() }
}
