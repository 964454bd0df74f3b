//! Clinical tables: tests of association between clusters and clinical columns.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use daimc::Views;
use daimc::text::quoted;
use daimc_clinical::{Associations, Column, Followup, LeftOut, Survival};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::ids::{self, IdOptions};
use crate::paths::{in_folder, read_once, utf8};
use crate::summary;
use crate::tsv::field;

/// Maximum number of columns printed after a fit.
const PRINTED: usize = 10;
/// Columns with an adjusted p-value below this are printed.
const LEVEL: f64 = 0.05;

/// The options of the clinical table.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ClinicalOptions {
    /// A table of IDs and clinical columns of any kind, to test for association with the clusters; not used by the fit
    ///
    /// Adds clinical.tsv, and the tests to the report.
    #[arg(long, value_name = "FILE", value_parser = utf8())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clinical: Option<String>,

    /// Columns of the clinical table with the follow-up time and the event
    ///
    /// Adds survival.tsv, and Kaplan-Meier curves with the log-rank test to the report. An event is 1, dead or true; other
    /// instances are censored. Of several times, as in `days_to_death/days_to_last_followup,vital_status`, the first known
    /// one is used.
    #[arg(long, value_name = "TIME[/TIME],EVENT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival: Option<String>,
}

impl ClinicalOptions {
    /// The path of the table.
    pub fn path(&self) -> Option<PathBuf> {
        self.clinical.as_ref().map(PathBuf::from)
    }

    /// Fails if the options are inconsistent, or standard input is read twice; `others` are the other input files.
    pub fn check(&self, others: &[PathBuf]) -> Result<()> {
        if self.clinical.is_none() && self.survival.is_some() {
            let reason = "--survival names columns of a clinical table: add --clinical FILE";
            return Err(Failure::Usage(reason.into()));
        }
        read_once(others.iter().chain(&self.path()).map(PathBuf::as_path))
    }

    /// Resolves relative paths against a folder.
    pub fn in_folder(&mut self, folder: &Path) -> Result<()> {
        if let Some(path) = &mut self.clinical {
            *path = in_folder(folder, Path::new(path))?;
        }
        Ok(())
    }

    /// Reads the table, if there is one, and joins it to the instances by ID.
    pub fn read(&self, views: &Views<'_>, options: &IdOptions) -> Result<Option<Clinical>> {
        let Some(path) = self.path() else { return Ok(None) };
        let table = daimc_io::read_attributes(&path, &options.matching()?)?;
        let id = |i| views.ids().get(i);
        let rows: Vec<Option<usize>> = (0..views.instances()).map(|i| table.position(&id(i))).collect();
        let matched = rows.iter().flatten().count();
        if matched == 0 {
            return Err(ids::none_known(&path, &table.ids, views));
        }
        let column = |(title, values): (&String, &Vec<Option<String>>)| {
            let values = rows.iter().map(|row| values[(*row)?].clone()).collect();
            Column { name: title.clone(), values }.with_unknown()
        };
        let mut columns: Vec<Column> = table.titles.iter().zip(&table.columns).map(column).collect();
        let mut followup = None;
        let mut used = Vec::new();
        if let Some(survival) = &self.survival {
            let [times @ .., event] = &*survival_columns(survival, &path, &table)? else {
                unreachable!("there is an event in every survival")
            };
            let times_of: Vec<&Column> = times.iter().map(|at| &columns[*at]).collect();
            let wrong = |error| Failure::Data(format!("{}: {error}", path.display()));
            followup = Some(Followup::from_columns(&times_of, &columns[*event]).map_err(wrong)?);
            used = times.iter().chain([event]).copied().collect();
        }
        used.sort_unstable_by(|a, b| b.cmp(a));
        let used = used.into_iter().map(|at| columns.remove(at).name).collect();
        Ok(Some(Clinical { columns, followup, used, matched, sha256: table.sha256 }))
    }
}

/// The positions of the time columns, followed by that of the event column.
fn survival_columns(text: &str, path: &Path, table: &daimc_io::Attributes) -> Result<Vec<usize>> {
    let Some((times, event)) = text.rsplit_once(',') else {
        let reason = "write the column of the time and that of the event: --survival TIME,EVENT";
        return Err(Failure::Usage(format!("--survival {}: {reason}", quoted(text))));
    };
    // A column title may contain a slash.
    let times = match table.column(path, times) {
        Ok(time) => vec![time],
        Err(_) => times.split('/').map(|time| table.column(path, time.trim())).collect::<Result<_, _>>()?,
    };
    let event = table.column(path, event.trim())?;
    if times.contains(&event) {
        let reason = "the time and the event are the same column";
        return Err(Failure::Usage(format!("--survival {}: {reason}", quoted(text))));
    }
    Ok(times.into_iter().chain([event]).collect())
}

/// A clinical table, joined to the instances.
pub struct Clinical {
    columns: Vec<Column>,
    followup: Option<Followup>,
    /// Columns used by the survival analysis, which are not tested for association.
    used: Vec<String>,
    /// Number of instances in the table.
    pub matched: usize,
    sha256: String,
}

/// The results of the clinical tests.
pub struct Findings {
    pub associations: Associations,
    pub survival: Option<Survival>,
    matched: usize,
    sha256: String,
}

impl Clinical {
    /// Tests every column.
    pub fn test(&self, clusters: &[usize]) -> Result<Findings> {
        let wrong = |error: daimc_clinical::Error| Failure::Data(error.to_string());
        let mut associations = daimc_clinical::associations(&self.columns, clusters).map_err(wrong)?;
        let tested =
            |column: &String| LeftOut { column: column.clone(), reason: "tested as survival".into() };
        associations.left_out.extend(self.used.iter().rev().map(tested));
        let survival = |followup: &Followup| daimc_clinical::survival(followup, clusters).map_err(wrong);
        let survival = self.followup.as_ref().map(survival).transpose()?;
        Ok(Findings { associations, survival, matched: self.matched, sha256: self.sha256.clone() })
    }
}

impl Findings {
    /// For `summary.json`: everything except the survival curves, which are in `survival.tsv`.
    pub fn to_json(&self) -> Result<Value> {
        let survival = self.survival.as_ref().map(|own| {
            let curves = own.curves.iter().map(
                |curve| json!({"instances": curve.instances, "events": curve.events, "median": curve.median}),
            );
            json!({
                "clusters": curves.collect::<Vec<_>>(),
                "log_rank": {"statistic": own.statistic, "freedom": own.freedom, "p": own.p},
            })
        });
        let mut value = json!({
            "sha256": self.sha256, "instances": self.matched,
            "tests": summary::json(&self.associations.tests)?, "left_out": summary::json(&self.associations.left_out)?,
        });
        if let Some(survival) = survival {
            value["survival"] = survival;
        }
        Ok(value)
    }

    /// Writes `clinical.tsv`: every column with its test, or the reason why it was not tested.
    pub fn write(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writeln!(out, "column\ttest\tinstances\tstatistic\tdf\tp\tp_adjusted\teffect\tnote")?;
        for test in &self.associations.tests {
            let freedom = test.freedom.map_or_else(String::new, |freedom| freedom.to_string());
            let (column, kind) = (field(&test.column), test.test.key());
            writeln!(
                out,
                "{column}\t{kind}\t{}\t{:?}\t{freedom}\t{:?}\t{:?}\t{:?}\t",
                test.instances, test.statistic, test.p, test.p_adjusted, test.effect
            )?;
        }
        for left in &self.associations.left_out {
            writeln!(out, "{}\t\t\t\t\t\t\t\t{}", field(&left.column), field(&left.reason))?;
        }
        Ok(())
    }

    /// Writes `survival.tsv`: the steps of the survival curve of each cluster.
    pub fn write_survival(survival: &Survival, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writeln!(out, "cluster\ttime\tat_risk\tevents\tcensored\tsurvival\tlower\tupper")?;
        for (cluster, curve) in survival.curves.iter().enumerate() {
            for step in &curve.steps {
                let daimc_clinical::Step { time, at_risk, events, censored, survival, lower, upper } = step;
                writeln!(
                    out,
                    "{cluster}\t{time}\t{at_risk}\t{events}\t{censored}\t{survival}\t{lower}\t{upper}"
                )?;
            }
        }
        Ok(())
    }

    /// Prints the most significant columns.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let tests = &self.associations.tests;
        let mut significant: Vec<_> = tests.iter().filter(|test| test.p_adjusted < LEVEL).collect();
        significant.sort_by(|a, b| a.p.total_cmp(&b.p));
        let (found, all) = (significant.len(), tests.len());
        let verb = if found == 1 { "differs" } else { "differ" };
        writeln!(
            out,
            "\n{found} of {all} clinical columns {verb} between clusters (adjusted p below {LEVEL})"
        )?;
        for test in significant.iter().take(PRINTED) {
            let name = crate::terminal::clean(&test.column);
            writeln!(
                out,
                "  {name:<28} {:<16} p {:.2e}   effect {:.2}",
                test.test.name(),
                test.p_adjusted,
                test.effect
            )?;
        }
        if found > PRINTED {
            writeln!(out, "  and {} more: see clinical.tsv", found - PRINTED)?;
        }
        match self.survival.as_ref().map(|own| (own.statistic, own.freedom, own.p)) {
            Some((Some(statistic), freedom, Some(p))) => {
                writeln!(out, "Survival: log-rank χ² {statistic:.2}, df {freedom}, p {p:.2e}")
            }
            Some(_) => {
                writeln!(out, "Survival: no log-rank test, which takes events and two clusters at risk")
            }
            None => Ok(()),
        }
    }
}
