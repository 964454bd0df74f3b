//! Tables and plots of the results, next to the values of the paper.

use super::ablation::AS_IT_IS;
use super::convergence::Trace;
use super::paper::{CLAIMS, COMPARED, Claim, Score, TABLE_2};
use super::plan::{Case, Experiment, ITERATIONS, Wishes};
use crate::harness::chart::{self, Chart, Drawing, Heat, Lines, Series};
use crate::harness::contender;
use crate::harness::ledger::Row;
use crate::harness::page::Section;
use crate::harness::table::{self, Line, Mean, Table};

/// A score by name.
type Named = (&'static str, fn(&Line) -> Mean);
const SCORES: [Named; 2] = [("AC", |line| line.ac), ("NMI", |line| line.nmi)];

/// The sections of an experiment.
pub fn sections(
    experiment: Experiment,
    cases: &[Case<'_>],
    rows: &[Row],
    wishes: &Wishes<'_>,
    traces: &[Trace],
) -> Vec<Section> {
    match experiment {
        Experiment::Convergence => cases.iter().map(|case| convergence(case, rows, traces)).collect(),
        Experiment::Views => vec![views(cases, rows)],
        Experiment::Alpha | Experiment::Beta => {
            cases.iter().map(|case| varied(experiment, case, rows, wishes)).collect()
        }
        Experiment::Grid => cases.iter().map(|case| grid(case, rows, wishes)).collect(),
        Experiment::Ablation => cases.iter().flat_map(|case| ablation(case, rows)).collect(),
        _ => compared(cases, rows),
    }
}

/// The methods of a case, in order.
fn methods_of(case: &Case<'_>) -> Vec<&'static str> {
    let mut methods: Vec<&'static str> = case.contenders.iter().map(|contender| contender.method).collect();
    methods.dedup();
    methods
}

/// The line of one setting.
fn line(rows: &[Row], case: &Case<'_>, rate: f64, method: &str, setting: &str) -> Option<Line> {
    let own = |contender: &&contender::Contender| contender.method == method && contender.setting == setting;
    table::best(rows, &case.sample.name, rate, case.contenders.iter().filter(own))
}

/// A method with its fixed setting, and with the best of the grid.
struct Pair {
    fixed: Line,
    best: Option<Line>,
}

fn pairs(case: &Case<'_>, rows: &[Row], rate: f64) -> Vec<Pair> {
    let pair = |method| {
        let own = |searched| {
            let own = case.contenders.iter().filter(move |c| c.method == method && c.searched == searched);
            table::best(rows, &case.sample.name, rate, own)
        };
        Some(Pair { fixed: own(false)?, best: own(true) })
    };
    methods_of(case).into_iter().filter_map(pair).collect()
}

/// Table 2 and Figure 1.
fn compared(cases: &[Case<'_>], rows: &[Row]) -> Vec<Section> {
    let mut sections = Vec::new();
    for case in cases {
        let name = &case.sample.name;
        let by_rate: Vec<Vec<Pair>> = case.rates.iter().map(|rate| pairs(case, rows, *rate)).collect();
        let all: Vec<&Pair> = by_rate.iter().flatten().collect();
        let published: Vec<_> = TABLE_2.iter().filter(|(data, ..)| data == name).collect();
        sections.push(comparison(name, &all, &published));
        let claims: Vec<&Claim> = CLAIMS.iter().filter(|claim| claim.data == name).collect();
        if !claims.is_empty() {
            sections.push(lead(name, &by_rate, &claims));
        }
    }
    // Common notes appear once.
    let said = sections.first().map_or_else(Vec::new, |section| section.notes.clone());
    sections.iter_mut().skip(1).for_each(|section| section.notes.retain(|note| !said.contains(note)));
    sections
}

fn comparison(name: &str, pairs: &[&Pair], published: &[&(&str, &str, f64, f64)]) -> Section {
    let searched = pairs.iter().any(|pair| pair.best.is_some());
    let mut header = vec!["missing", "method", "AC fixed", "NMI fixed", "ARI fixed"];
    if searched {
        header.extend(["AC best of grid", "NMI best of grid", "setting, by the classes"]);
    }
    if !published.is_empty() {
        header.extend(["AC paper", "NMI paper"]);
    }
    header.extend(["seconds", "iterations", "runs"]);
    let mut table = Table::new(&header);
    let score = |mean: Option<Mean>| mean.map_or_else(|| "–".to_owned(), |mean| mean.to_string());
    for Pair { fixed, best } in pairs {
        let chosen = match fixed.settings {
            1 => String::new(),
            count => format!(" ({}, best of {count} †)", fixed.setting),
        };
        let mut row = vec![fixed.missing.to_string(), format!("{}{chosen}", fixed.method)];
        row.extend([fixed.ac, fixed.nmi, fixed.ari].map(|mean| mean.to_string()));
        if searched {
            let best = best.as_ref();
            row.extend([score(best.map(|best| best.ac)), score(best.map(|best| best.nmi))]);
            row.push(best.map_or_else(
                || "–".to_owned(),
                |best| format!("{} (best of {})", best.setting, best.settings),
            ));
        }
        if !published.is_empty() {
            let paper = published.iter().find(|(_, method, ..)| *method == fixed.method);
            row.push(paper.map_or_else(|| "–".to_owned(), |(.., ac)| format!("{ac:.4}")));
            row.push(paper.map_or_else(|| "–".to_owned(), |(_, _, nmi, _)| format!("{nmi:.4}")));
        }
        row.push(format!("{:.2}", fixed.seconds));
        row.push(format!("{:.0}", fixed.iterations));
        row.push(fixed.runs.to_string());
        table.rows.push(row);
    }
    let mut notes = vec![
        "Mean ± standard deviation over the seeds, each a mask and a start; masks are the same for all methods. \
         Fixed: one setting for all data, no labels seen. Seconds are those of one thread."
            .to_owned(),
    ];
    if pairs.iter().any(|pair| pair.fixed.settings > 1) {
        notes.push(
            "† A method for two views runs on every pair and k-means on every single view; the one of the highest \
             mean AC is shown, as in the paper. The classes choose it."
                .into(),
        );
    }
    if searched {
        notes.push(
            "Best of grid: of all settings of the grid that of the highest mean AC, at each share of missing \
             instances, as in the paper. The classes choose it, so it is not what anybody gets who does not \
             know them."
                .into(),
        );
    }
    let mut charts = Vec::new();
    for (title, score) in SCORES {
        let fixed: Vec<Line> = pairs.iter().map(|pair| pair.fixed.clone()).collect();
        charts.push(by_rate(&fixed, score, title, name, "fixed"));
        let best: Vec<Line> = pairs.iter().filter_map(|pair| pair.best.clone()).collect();
        if searched {
            charts.push(by_rate(&best, score, title, name, "best of grid"));
        }
    }
    Section { title: name.into(), notes, table, charts }
}

/// A line for each method over the shares of missing instances, or a bar if there is only one share.
fn by_rate(lines: &[Line], score: fn(&Line) -> Mean, title: &str, data: &str, which: &str) -> Chart {
    let several = lines.iter().any(|line| line.missing != lines[0].missing);
    let kind = if several {
        Drawing::Lines(Lines::by_rate(lines, score))
    } else {
        Drawing::Bars(lines.iter().map(|line| (line.method.clone(), score(line))).collect())
    };
    let name = format!("{data}-{}-{}", title.to_lowercase(), which.replace(' ', "-"));
    Chart { name, title: format!("{title}, {which}: {data}"), kind }
}

/// The improvement by DAIMC over the methods that the paper compares it with.
fn lead(name: &str, by_rate: &[Vec<Pair>], claims: &[&Claim]) -> Section {
    let mut table = Table::new(&["score", "missing", "DAIMC", "over", "fixed", "best of grid", "paper"]);
    for claim in claims {
        let score: fn(&Line) -> f64 = match claim.score {
            Score::Ac => |line| line.ac.mean,
            Score::Nmi => |line| line.nmi.mean,
        };
        let title = if claim.score == Score::Ac { "AC" } else { "NMI" };
        let lines = |method: &str, best: bool| -> Vec<f64> {
            let at = by_rate
                .iter()
                .flatten()
                .filter(|pair| pair.fixed.method == method && claim.rates.contains(&pair.fixed.missing));
            at.filter_map(|pair| if best { pair.best.as_ref() } else { Some(&pair.fixed) })
                .map(score)
                .collect()
        };
        let rates = claim.rates.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        for daimc in ["daimc-paper", "daimc-plain", "daimc"] {
            // The mean over the shares of the ratio of means; at each share over one method, the best or the mean of all.
            let ratio = |best: bool, over: &dyn Fn(usize) -> Option<f64>| {
                let own = lines(daimc, best);
                let ratios: Option<Vec<f64>> =
                    own.iter().enumerate().map(|(i, own)| Some(own / over(i)? - 1.0)).collect();
                let ratios = ratios.filter(|ratios| !ratios.is_empty())?;
                Some(100.0 * ratios.iter().sum::<f64>() / ratios.len() as f64)
            };
            let percent =
                |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:+.1} %"));
            let of = |best: bool, i: usize| -> Vec<f64> {
                COMPARED.iter().filter_map(|method| lines(method, best).get(i).copied()).collect()
            };
            let mut row = |over: &str, with: &dyn Fn(bool) -> Option<f64>| {
                let (fixed, best) = (with(false), with(true));
                if fixed.is_some() || best.is_some() {
                    let paper = format!("+{:.2} %", claim.percent);
                    let text = [title, &rates, daimc, over, &percent(fixed), &percent(best), &paper];
                    table.rows.push(text.map(String::from).into());
                }
            };
            for method in COMPARED {
                row(method, &|best| ratio(best, &|i| lines(method, best).get(i).copied()));
            }
            row("the best of these", &|best| ratio(best, &|i| of(best, i).into_iter().reduce(f64::max)));
            row("their mean", &|best| {
                ratio(best, &|i| {
                    let all = of(best, i);
                    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
                })
            });
        }
    }
    let notes = vec![
        "By how much DAIMC raises a score, as the mean over the shares missing of the ratio of means. The paper gives one \
         figure and does not say over which method."
            .into(),
    ];
    Section { title: format!("{name}: the lead of DAIMC"), notes, table, charts: Vec::new() }
}

/// J and NMI after each iteration.
fn convergence(case: &Case<'_>, rows: &[Row], traces: &[Trace]) -> Section {
    let methods = methods_of(case);
    // The presets scale differently, so each fit is shown relative to its own last J.
    let relative = |method: &str, i: usize| {
        let own = traces.iter().filter(|trace| trace.method == method);
        let values: Vec<f64> =
            own.filter_map(|trace| Some(trace.objective.get(i - 1)? / trace.objective.last()?)).collect();
        (!values.is_empty()).then(|| Mean::of(values.iter().copied()))
    };
    let found = |method: &str, i: usize| line(rows, case, case.rates[0], method, &format!("iteration {i}"));
    let mut header = vec!["iteration".to_owned()];
    for method in &methods {
        header.extend([
            format!("J / J{ITERATIONS}, {method}"),
            format!("NMI, {method}"),
            format!("AC, {method}"),
        ]);
    }
    let mut table = Table { header, rows: Vec::new() };
    for i in [1, 2, 3, 5, 10, 15, 20, 30, 40, ITERATIONS] {
        let mut row = vec![i.to_string()];
        for method in &methods {
            let line = found(method, i);
            row.push(
                relative(method, i)
                    .map_or_else(|| "–".into(), |mean| format!("{:.5} ± {:.5}", mean.mean, mean.sd)),
            );
            for (_, score) in SCORES.iter().rev() {
                row.push(line.as_ref().map_or_else(|| "–".into(), |line| score(line).to_string()));
            }
        }
        table.rows.push(row);
    }
    let ticks: Vec<(f64, String)> =
        [1, 10, 20, 30, 40, ITERATIONS].iter().map(|i| (*i as f64, i.to_string())).collect();
    let chart = |name: &str, title: &str, value: &dyn Fn(&str, usize) -> Option<Mean>, range| {
        let points = |method: &&str| {
            let points = (1..=ITERATIONS).filter_map(|i| Some((i as f64, value(method, i)?)));
            ((*method).to_owned(), points.collect::<Vec<_>>())
        };
        let series: Vec<_> = methods.iter().map(points).filter(|(_, points)| !points.is_empty()).collect();
        let kind = Drawing::Lines(Lines { across: "iteration".into(), ticks: ticks.clone(), series, range });
        Chart { name: name.into(), title: title.into(), kind }
    };
    let nmi = |method: &str, i: usize| found(method, i).map(|line| line.nmi);
    Section {
        title: "Convergence: Digit, 40 % missing, α = 10, β = 0.1".into(),
        notes: vec![
            "A fit that stops after 1, 2, … iterations, and what its clusters are then; a seed goes the same way each \
             time. J is relative to that of the last iteration; objective.tsv has its values. The paper: \
             “converged just after 30 iterations”."
                .into(),
        ],
        table,
        charts: vec![
            chart("objective", "J relative to the last iteration, up to 1.3 times", &relative, (1.0, 1.3)),
            chart("nmi", "NMI", &nmi, (0.0, 1.0)),
        ],
    }
}

/// The view study.
fn views(cases: &[Case<'_>], rows: &[Row]) -> Section {
    let most = cases.iter().map(|case| case.sample.view_names().len()).max().unwrap_or(0);
    let mut table = Table::new(&["views", "method", "AC", "NMI", "ARI", "choices of views", "runs"]);
    let mut lines: Vec<(usize, Line)> = Vec::new();
    for count in 1..=most {
        let group: Vec<&Case<'_>> =
            cases.iter().filter(|case| case.sample.view_names().len() == count).collect();
        for method in group.first().map_or_else(Vec::new, |case| methods_of(case)) {
            let own = rows.iter().filter(|row| {
                row.cell.method == method && group.iter().any(|case| case.sample.name == row.cell.data)
            });
            let Some(line) = Line::of(own) else { continue };
            let mut row = vec![count.to_string(), method.to_owned()];
            row.extend([line.ac, line.nmi, line.ari].map(|mean| mean.to_string()));
            row.extend([group.len().to_string(), line.runs.to_string()]);
            table.rows.push(row);
            lines.push((count, line));
        }
    }
    let chart = |(title, score): Named| {
        let mut series: Vec<Series> = Vec::new();
        for (count, line) in &lines {
            chart::add(&mut series, &line.method, (*count as f64, score(line)));
        }
        let ticks = (1..=most).map(|count| (count as f64, count.to_string())).collect();
        let lines = Lines { across: "views".into(), ticks, series, range: (0.0, 1.0) };
        Chart { name: title.to_lowercase(), title: title.into(), kind: Drawing::Lines(lines) }
    };
    Section {
        title: "Number of views: Digit, 50 % missing, α = 10, β = 1".into(),
        notes: vec![
            "Mean ± standard deviation over every choice of this number of the five views and over the seeds. The mask is that \
             of the five views. Instances that none of the chosen views shows (half of them where there is one view) \
             are neither clustered nor scored; the paper does not say what became of them, nor which views it took."
                .into(),
        ],
        table,
        charts: SCORES.map(chart).into(),
    }
}

/// One weight varied.
fn varied(experiment: Experiment, case: &Case<'_>, rows: &[Row], wishes: &Wishes<'_>) -> Section {
    let (letter, title) = match experiment {
        Experiment::Alpha => ("α", "α varied, β = 0.1: Digit"),
        _ => ("β", "β varied, α = 10: Digit"),
    };
    let mut table = Table::new(&["method", "missing", letter, "AC", "NMI", "ARI", "runs"]);
    let mut series: [Vec<Series>; 2] = [Vec::new(), Vec::new()];
    let mut ticks = Vec::new();
    let mut notes = vec!["Mean ± standard deviation over the seeds, each a mask and a start.".to_owned()];
    for method in methods_of(case) {
        let (alphas, betas) = experiment.weights(wishes.grid, method);
        for &rate in &case.rates {
            let mut lines = Vec::new();
            for &alpha in &alphas {
                for &beta in &betas {
                    let setting = format!("alpha={alpha} beta={beta}");
                    let value = if experiment == Experiment::Alpha { alpha } else { beta };
                    lines.extend(line(rows, case, rate, method, &setting).map(|line| (value, line)));
                }
            }
            for (value, line) in &lines {
                let mut row = vec![method.to_owned(), rate.to_string(), format!("{value:e}")];
                row.extend([line.ac, line.nmi, line.ari].map(|mean| mean.to_string()));
                row.push(line.runs.to_string());
                table.rows.push(row);
            }
            let place = |value: f64| value.max(1e-12).log10();
            if ticks.is_empty() {
                ticks = lines.iter().map(|(value, _)| (place(*value), format!("{value:e}"))).collect();
            }
            for ((_, score), series) in SCORES.iter().zip(&mut series) {
                let points = lines.iter().map(|(value, line)| (place(*value), score(line))).collect();
                series.push((format!("{method}, {rate} missing"), points));
            }
            let means = || lines.iter().map(|(_, line)| line.nmi.mean);
            let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
            if !lines.is_empty() {
                notes.push(format!(
                    "{method}, {rate} missing: over all values of {letter} the mean NMI lies between {low:.3} and {high:.3}."
                ));
            }
        }
    }
    let charts = SCORES.iter().zip(series).map(|((title, _), series)| Chart {
        name: title.to_lowercase(),
        title: format!("{title} by {letter}"),
        kind: Drawing::Lines(Lines {
            across: letter.into(),
            ticks: ticks.clone(),
            series,
            range: (0.0, 1.0),
        }),
    });
    Section { title: title.into(), notes, table, charts: charts.collect() }
}

/// Both weights varied.
fn grid(case: &Case<'_>, rows: &[Row], wishes: &Wishes<'_>) -> Section {
    let mut table = Table::new(&["method", "missing", "which", "α", "β", "AC", "NMI", "ARI", "runs"]);
    let mut charts = Vec::new();
    for method in methods_of(case) {
        let (alphas, betas) = Experiment::Grid.weights(wishes.grid, method);
        for &rate in &case.rates {
            let at =
                |alpha: f64, beta: f64| line(rows, case, rate, method, &format!("alpha={alpha} beta={beta}"));
            let both = || alphas.iter().flat_map(|alpha| betas.iter().map(move |beta| (*alpha, *beta)));
            let lines: Vec<(f64, f64, Line)> =
                both().filter_map(|(alpha, beta)| Some((alpha, beta, at(alpha, beta)?))).collect();
            let by_nmi = |a: &&(f64, f64, Line), b: &&(f64, f64, Line)| a.2.nmi.mean.total_cmp(&b.2.nmi.mean);
            let fixed = lines.iter().find(|(alpha, beta, _)| (*alpha, *beta) == (10.0, 0.1));
            for (which, found) in [
                ("highest NMI, by the classes", lines.iter().max_by(by_nmi)),
                ("fixed", fixed),
                ("lowest NMI", lines.iter().min_by(by_nmi)),
            ] {
                let Some((alpha, beta, line)) = found else { continue };
                let mut row = vec![method.to_owned(), rate.to_string(), which.to_owned()];
                row.extend([format!("{alpha:e}"), format!("{beta:e}")]);
                row.extend([line.ac, line.nmi, line.ari].map(|mean| mean.to_string()));
                row.push(line.runs.to_string());
                table.rows.push(row);
            }
            let nmi = |alpha: f64, beta: f64| at(alpha, beta).map_or(f64::NAN, |line| line.nmi.mean);
            let labels = |values: &[f64]| values.iter().map(|value| format!("{value:e}")).collect();
            let heat = Heat {
                across: "β".into(),
                down: "α".into(),
                columns: labels(&betas),
                rows: labels(&alphas),
                values: alphas
                    .iter()
                    .map(|alpha| betas.iter().map(|beta| nmi(*alpha, *beta)).collect())
                    .collect(),
            };
            charts.push(Chart {
                name: format!("{method}-nmi-{rate}"),
                title: format!("Mean NMI of {method}, {rate} missing"),
                kind: Drawing::Heat(heat),
            });
        }
    }
    Section {
        title: "All combinations of α and β: Digit".into(),
        notes: vec![
            "Mean ± standard deviation over the seeds, each a mask and a start. The highest is chosen by the classes among \
             all combinations; fixed is α = 10, β = 0.1."
                .into(),
        ],
        table,
        charts,
    }
}

/// One part switched at a time.
fn ablation(case: &Case<'_>, rows: &[Row]) -> Vec<Section> {
    let name = &case.sample.name;
    let section = |rate: f64| {
        let mut table = Table::new(&["preset", "switched", "AC", "NMI", "ΔAC", "ΔNMI", "seconds", "runs"]);
        let mut bars = Vec::new();
        for contender in &case.contenders {
            let (method, setting) = (contender.method, &contender.setting);
            let Some(line) = line(rows, case, rate, method, setting) else { continue };
            // Paired with the preset itself by seed.
            let of = |setting: &str, seed: u64| {
                rows.iter().find(|row| {
                    let cell = &row.cell;
                    let same = cell.method == method && cell.setting == setting && cell.seed == seed;
                    same && cell.data == *name && cell.rate == rate
                })
            };
            let own = rows.iter().filter(|row| {
                let cell = &row.cell;
                cell.method == method && cell.setting == *setting && cell.data == *name && cell.rate == rate
            });
            let both: Vec<(&Row, &Row)> =
                own.filter_map(|row| Some((row, of(AS_IT_IS, row.cell.seed)?))).collect();
            let difference = |score: fn(&Row) -> f64| {
                let mean = Mean::of(both.iter().map(|(row, base)| score(row) - score(base)));
                if setting == AS_IT_IS {
                    "–".into()
                } else {
                    format!("{:+.3} ± {:.3}", mean.mean, mean.sd)
                }
            };
            table.rows.push(vec![
                method.into(),
                setting.clone(),
                line.ac.to_string(),
                line.nmi.to_string(),
                difference(|row| row.ac),
                difference(|row| row.nmi),
                format!("{:.2}", line.seconds),
                line.runs.to_string(),
            ]);
            bars.push((method, setting.clone(), line.nmi));
        }
        let charts = methods_of(case).into_iter().map(|preset| Chart {
            name: format!("{name}-{rate}-{preset}"),
            title: format!("NMI of {preset}, one part switched: {name}, {rate} missing"),
            kind: Drawing::Bars(
                bars.iter()
                    .filter(|(method, ..)| *method == preset)
                    .map(|(_, setting, nmi)| (setting.clone(), *nmi))
                    .collect(),
            ),
        });
        Section {
            title: if rate > 0.0 { format!("{name}, {rate} missing") } else { format!("{name}, as it is incomplete") },
            notes: vec![
                "One part of a preset switched at a time; differences are taken seed by seed. Without the alignment of \
                 instances each view has a V of its own, and these are clustered side by side."
                    .into(),
            ],
            table,
            charts: charts.collect(),
        }
    };
    case.rates.iter().map(|rate| section(*rate)).collect()
}
