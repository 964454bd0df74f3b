//! Clinical columns by cluster.

use daimc_clinical::{Breakdown, Test};

use super::marks::swatch;
use super::table::{Cell, Table};
use super::text::{count, counted, escape, name, number, p_value, percent, put, score};
use crate::Clinical;

/// Columns are broken down by cluster where their adjusted p-value is below this.
const LEVEL: f64 = 0.05;
/// The maximum number of columns that are broken down.
const BROKEN_DOWN: usize = 15;

pub(crate) fn section(clinical: Clinical<'_>) -> String {
    let mut out = String::new();
    if let Some(survival) = clinical.survival {
        put!(out, "<h3>Survival by cluster</h3>{}", super::survival::figure(survival));
    }
    let tests = &clinical.associations.tests;
    let mut differ: Vec<&Test> = tests.iter().filter(|test| test.p_adjusted < LEVEL).collect();
    differ.sort_by(|a, b| a.p.total_cmp(&b.p));
    if tests.is_empty() {
        out.push_str("<p class=empty>No column of the clinical table could be tested.</p>");
    } else {
        put!(
            out,
            "<p class=lead>{} of {} columns differ between clusters with an adjusted p-value below {LEVEL}. These tests describe \
             the clusters; they do not prove an effect. The fit did not use these columns.</p>",
            count(differ.len()),
            count(tests.len())
        );
    }
    if !differ.is_empty() {
        out.push_str(&breakdown(&differ));
    }
    out.push_str(&table(clinical));
    out
}

fn table(clinical: Clinical<'_>) -> String {
    let columns = [
        ("column", false),
        ("test", false),
        ("instances", true),
        ("statistic", true),
        ("df", true),
        ("p", true),
        ("adjusted p", true),
        ("effect", true),
    ];
    let mut table = Table::new("clinical-table", "Association with the clusters", &columns);
    let mut tests: Vec<&Test> = clinical.associations.tests.iter().collect();
    tests.sort_by(|a, b| a.p.total_cmp(&b.p));
    for test in tests {
        table.push(&[
            Cell::Text(test.column.clone()),
            Cell::Text(test.test.name().into()),
            Cell::Number(test.instances as f64, count(test.instances)),
            Cell::Number(test.statistic, number(test.statistic)),
            test.freedom.map_or(Cell::Empty, |df| Cell::Number(df as f64, df.to_string())),
            Cell::Number(test.p, p_value(test.p)),
            Cell::Number(test.p_adjusted, p_value(test.p_adjusted)),
            Cell::Number(test.effect, score(test.effect)),
        ]);
    }
    let mut out =
        table.finish("adjusted by the Benjamini–Hochberg procedure; effect is Cramér's V, or ε² for numbers");
    let left_out = &clinical.associations.left_out;
    if !left_out.is_empty() {
        put!(out, "<details><summary>{} not tested</summary><ul>", counted(left_out.len(), "column"));
        for left in left_out {
            put!(out, "<li>{}: {}</li>", name(&left.column), escape(&left.reason));
        }
        out.push_str("</ul></details>");
    }
    out
}

/// The values of columns by cluster: medians and quartiles, or counts and shares of categories.
fn breakdown(tests: &[&Test]) -> String {
    let clusters = tests.iter().map(|test| clusters(test)).max().unwrap_or(0);
    let mut out = String::from(
        "<h3 id=breakdown-title>What differs</h3><div class=scroll tabindex=0 role=region aria-labelledby=breakdown-title>\
         <table class=breakdown><thead><tr><th scope=col>column</th><th scope=col>value</th>",
    );
    (0..clusters).for_each(|c| put!(out, "<th scope=col class=n>{}{c}</th>", swatch(c)));
    out.push_str("</tr></thead><tbody>");
    for test in tests.iter().take(BROKEN_DOWN) {
        let column = name(&test.column);
        match &test.breakdown {
            Breakdown::Quartiles(quartiles) => {
                put!(out, "<tr><th scope=row>{column}</th><td>median (quartiles)</td>");
                for own in quartiles {
                    match own {
                        Some([low, median, high]) => put!(
                            out,
                            "<td class=n>{} <small>({}–{})</small></td>",
                            number(*median),
                            number(*low),
                            number(*high)
                        ),
                        None => out.push_str("<td class=n>–</td>"),
                    }
                }
                out.push_str("</tr>");
            }
            Breakdown::Counts { levels, counts } => {
                for (l, level) in levels.iter().enumerate() {
                    let column = if l == 0 { column.as_str() } else { "" };
                    put!(out, "<tr><th scope=row>{column}</th><td>{}</td>", name(level));
                    for own in counts {
                        let all: usize = own.iter().sum();
                        if all == 0 {
                            out.push_str("<td class=n>–</td>");
                            continue;
                        }
                        let share = percent(own[l] as f64 / all as f64);
                        put!(out, "<td class=n>{} <small>({share})</small></td>", count(own[l]));
                    }
                    out.push_str("</tr>");
                }
            }
        }
    }
    out.push_str("</tbody></table></div>");
    if tests.len() > BROKEN_DOWN {
        put!(out, "<p class=note>The {BROKEN_DOWN} with the smallest p-values of {}.</p>", tests.len());
    }
    out
}

fn clusters(test: &Test) -> usize {
    match &test.breakdown {
        Breakdown::Quartiles(quartiles) => quartiles.len(),
        Breakdown::Counts { counts, .. } => counts.len(),
    }
}
