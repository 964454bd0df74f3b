//! `daimc compare`: every method on the same data and masks.

use std::io::{self, Write};

use clap::Args;
use daimc::{Scale, View};
use serde_json::json;

use crate::data::Data;
use crate::experiment::chart::{Chart, Drawing, Lines};
use crate::experiment::course::Course;
use crate::experiment::ledger::Ledger;
use crate::experiment::methods::{self, Contender, Scales};
use crate::experiment::page::{self, Section};
use crate::experiment::runs::{self, Run};
use crate::experiment::sample::{Dataset, Sample};
use crate::experiment::setting::Setting;
use crate::experiment::table::{self, Line, Mean};
use crate::failure::{Failure, Result};
use crate::paths::utf8;
use crate::terminal::clean;
use crate::truth::{Truth, numbers};

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// A table of IDs and true classes; `::COLUMN` names the column if there are several, as in `clinical.csv::stage`. Not used by
    /// any method
    #[arg(long, value_name = "FILE[::COLUMN]", value_parser = utf8())]
    truth: String,

    /// Number of clusters [default: the number of classes]
    #[arg(short = 'k', long, value_name = "K")]
    clusters: Option<usize>,

    /// Methods, separated by commas [default: all but the last four]: daimc, daimc-plain (without neighbourhoods), daimc-paper,
    /// wsnmf, multinmf, pvc, img, mic, omvc, opimc, single, concatenation, daimc-refine, daimc-embed (a single neighbourhood method
    /// each), pca-spectral, nemo. Two-view methods run on every pair; where a method has several settings, the table shows the best
    /// according to the true classes and says so
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Shares of instances to remove from each view, one experiment each, separated by commas; 0 leaves the data as they are, and
    /// every instance keeps at least one view
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0")]
    missing: Vec<f64>,

    /// Number of seeds, from 0; each determines a mask and a start
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    seeds: u64,

    /// Scaling of all views for all methods: none, unit, min-max, min-max-unit, z-score, z-score-unit,
    /// tf-idf, log or log-unit
    /// [default: unit; daimc chooses for itself]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    #[command(flatten)]
    course: Course,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let level = arguments.course.begin()?;
    let scale = arguments.scale.as_deref().map(str::parse::<Scale>).transpose()?;
    if arguments.seeds == 0 {
        return Err(Failure::Usage("--seeds must be at least 1".into()));
    }
    methods::check(&arguments.methods, methods::names())?;
    arguments.data.check_truth(&arguments.truth)?;
    let loaded = arguments.data.load_whole()?;
    level.tell(&loaded.account);
    let truth = Truth::read(&arguments.truth, &loaded.views, &arguments.data.ids)?;
    let data = dataset(arguments, loaded.views, &truth);
    for &rate in &arguments.missing {
        // Whether so much can go does not depend on the seed.
        data.present(rate, 0)?;
    }

    // What is finished counts only for the same data and options.
    let inputs: Vec<_> = loaded.inputs.iter().map(|input| json!([input.name, input.sha256])).collect();
    let key = json!({
        "version": env!("CARGO_PKG_VERSION"), "inputs": inputs, "data": arguments.data,
        "clusters": data.clusters, "truth": truth.sha256, "scale": scale,
    });
    let ledger = Ledger::open(&arguments.course.output, "compare.json", &key)?;
    let names: Vec<&str> = data.views.iter().map(View::name).collect();
    let sample = Sample { name: names.join("+"), data: &data, views: None };
    let scales = Scales::new(scale, Scale::Unit);
    let contenders: Vec<Contender> = methods::names()
        .filter(|method| methods::wanted(&arguments.methods, method))
        .flat_map(|method| methods::contenders(method, &Setting::default(), &names, scales))
        .collect();
    let mut cells = Vec::new();
    for &rate in &arguments.missing {
        for contender in &contenders {
            cells
                .extend((0..arguments.seeds).map(|seed| Run::new("compare", &sample, rate, contender, seed)));
        }
    }
    let refused = runs::work(cells, &ledger, level)?;

    let rows = ledger.rows(arguments.seeds);
    let mut lines = Vec::new();
    for &rate in &arguments.missing {
        for method in methods::names() {
            let own = contenders.iter().filter(|contender| contender.method == method);
            lines.extend(table::best(&rows, &sample.name, rate, own));
        }
    }
    let sections = [section(&lines)];
    page::write(&ledger, "compare.html", "Methods compared", &sections, &key)?;
    for refusal in refused {
        level.tell(format!("{} was left out: {}", refusal.method, refusal.reason));
    }
    let mut out = io::stdout().lock();
    if arguments.course.json {
        writeln!(out, "{:#}", json!(lines))?;
    } else {
        write!(out, "{}", clean(&sections[0].table.markdown()))?;
        writeln!(out, "\nEvery run is in {}", arguments.course.output.join("results.tsv").display())?;
    }
    Course::end()
}

fn dataset(arguments: &Arguments, views: daimc::Views<'static>, truth: &Truth) -> Dataset {
    let known: Vec<&str> = truth.classes.iter().flatten().map(String::as_str).collect();
    let mut numbers = numbers(&known).into_iter();
    let classes: Vec<Option<usize>> =
        truth.classes.iter().map(|class| class.as_ref().and_then(|_| numbers.next())).collect();
    let count = classes.iter().flatten().max().map_or(0, |most| most + 1);
    Dataset { views, classes, clusters: arguments.clusters.unwrap_or(count) }
}

/// The table, and for each score a line for each method, or a bar where there is but one share of missing instances.
fn section(lines: &[Line]) -> Section {
    let scores =
        [("AC", (|line| line.ac) as fn(&Line) -> Mean), ("NMI", |line| line.nmi), ("ARI", |line| line.ari)];
    let mut rates: Vec<f64> = lines.iter().map(|line| line.missing).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let chart = |(name, score): (&str, fn(&Line) -> Mean)| Chart {
        name: name.to_lowercase(),
        title: name.into(),
        kind: if rates.len() > 1 {
            Drawing::Lines(Lines::by_rate(lines, score))
        } else {
            Drawing::Bars(lines.iter().map(|line| (line.method.clone(), score(line))).collect())
        },
    };
    Section {
        title: "Methods".into(),
        notes: vec![
            "Means over the seeds with standard deviations. No method has seen the classes; where a method has \
             several settings, the classes chose the best."
                .into(),
        ],
        table: table::comparison(lines),
        charts: scores.map(chart).into(),
    }
}
