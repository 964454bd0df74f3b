//! Survival by cluster: the estimator of Kaplan and Meier, and the log-rank test.

use serde::Serialize;

use crate::column::Column;
use crate::gamma::chi_squared_tail;
use crate::{Error, Result};

/// The 97.5th percentile of the normal distribution: intervals are of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// How long each instance was observed, and whether it ended with an event (else it is censored); none where that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Followup(pub Vec<Option<(f64, bool)>>);

impl Followup {
    /// From columns of a table: the time is the first of several columns that is known, as the days to death or else to the last
    /// visit.
    ///
    /// # Errors
    /// When a time is not a number of at least 0, when an event is neither one nor none, and when no instance has both.
    pub fn from_columns(times: &[&Column], event: &Column) -> Result<Self> {
        let time = |i: usize| -> Result<Option<f64>> {
            let Some((column, text)) = times.iter().find_map(|own| Some((own, own.values[i].as_ref()?)))
            else {
                return Ok(None);
            };
            let number = text.trim().parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0);
            number.map(Some).ok_or_else(|| Error::Time { column: column.name.clone(), value: text.clone() })
        };
        let happened = |i: usize| -> Result<Option<bool>> {
            let Some(text) = &event.values[i] else { return Ok(None) };
            let known = is_event(text.trim());
            known.map(Some).ok_or_else(|| Error::Event { column: event.name.clone(), value: text.clone() })
        };
        let each = (0..event.values.len()).map(|i| Ok(time(i)?.zip(happened(i)?)));
        let followup = Self(each.collect::<Result<_>>()?);
        if followup.0.iter().flatten().next().is_none() {
            return Err(Error::NoFollowup);
        }
        Ok(followup)
    }
}

fn is_event(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "1" | "1.0" | "true" | "t" | "yes" | "y" | "dead" | "deceased" | "died" | "event" | "1:deceased" => {
            Some(true)
        }
        "0" | "0.0" | "false" | "f" | "no" | "n" | "alive" | "living" | "censored" | "0:living" => {
            Some(false)
        }
        _ => None,
    }
}

/// Survival by cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Survival {
    /// One for each cluster.
    pub curves: Vec<Curve>,
    /// The χ² of the log-rank test; none where there are not two clusters with instances at risk, or no event.
    pub statistic: Option<f64>,
    /// Its degrees of freedom.
    pub freedom: usize,
    /// The probability of differences as large by chance.
    pub p: Option<f64>,
}

/// The curve of Kaplan and Meier of one cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// Instances with a time and an event.
    pub instances: usize,
    /// Events among them.
    pub events: usize,
    /// The time at which half are left; none where more than half are.
    pub median: Option<f64>,
    /// One for each time at which somebody leaves, in increasing order.
    pub steps: Vec<Step>,
}

/// What happens at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The time.
    pub time: f64,
    /// Instances that are observed until then.
    pub at_risk: usize,
    /// Events at this time.
    pub events: usize,
    /// Instances that are censored at this time.
    pub censored: usize,
    /// The estimated share that survives this time.
    pub survival: f64,
    /// The lower end of its interval of 95 %, by Greenwood's variance of ln(-ln S).
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

/// Curves of Kaplan and Meier for each cluster, and the log-rank test of their difference.
///
/// # Errors
/// When there is not one follow-up for each instance.
pub fn survival(followup: &Followup, clusters: &[usize]) -> Result<Survival> {
    if followup.0.len() != clusters.len() {
        let (expected, found) = (clusters.len(), followup.0.len());
        return Err(Error::Length { what: "the follow-up".into(), expected, found });
    }
    let count = clusters.iter().max().map_or(0, |most| most + 1);
    let mut of_cluster: Vec<Vec<(f64, bool)>> = vec![Vec::new(); count];
    for (own, cluster) in followup.0.iter().zip(clusters) {
        of_cluster[*cluster].extend(own);
    }
    for own in &mut of_cluster {
        own.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let curves = of_cluster.iter().map(|own| kaplan_meier(own)).collect();
    let test = log_rank(&of_cluster);
    Ok(Survival {
        curves,
        statistic: test.map(|(statistic, _)| statistic),
        freedom: test.map_or(0, |(_, freedom)| freedom),
        p: test.map(|(statistic, freedom)| chi_squared_tail(statistic, freedom)),
    })
}

/// S(t) = Π (1 - d / n) over the times of events up to t; times come in increasing order.
fn kaplan_meier(times: &[(f64, bool)]) -> Curve {
    let (mut steps, mut survival, mut variance) = (Vec::new(), 1.0_f64, 0.0);
    let mut rest = times;
    while let Some(&(time, _)) = rest.first() {
        let at_risk = rest.len();
        let now = rest.iter().take_while(|(other, _)| *other == time).count();
        let events = rest[..now].iter().filter(|(_, event)| *event).count();
        let (n, d) = (at_risk as f64, events as f64);
        survival *= 1.0 - d / n;
        variance += d / (n * (n - d));
        // Where nobody is left, or nobody has gone, there is no interval.
        let bounds = |sign: f64| {
            let log = survival.ln();
            if log == 0.0 || !log.is_finite() {
                survival
            } else {
                (-((-log).ln() + sign * Z * variance.sqrt() / log).exp()).exp()
            }
        };
        let (lower, upper) = (bounds(-1.0), bounds(1.0));
        steps.push(Step { time, at_risk, events, censored: now - events, survival, lower, upper });
        rest = &rest[now..];
    }
    Curve {
        instances: times.len(),
        events: times.iter().filter(|(_, event)| *event).count(),
        // Products of fractions that should be a half may end just above it.
        median: steps.iter().find(|step| step.survival <= 0.5 + 1e-12).map(|step| step.time),
        steps,
    }
}

/// (O - E)ᵀ V⁻¹ (O - E) over all but one of the groups that are ever at risk, and how many those are.
fn log_rank(groups: &[Vec<(f64, bool)>]) -> Option<(f64, usize)> {
    let mut times: Vec<f64> =
        groups.iter().flatten().filter(|(_, event)| *event).map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let first = *times.first()?;
    let groups: Vec<&Vec<(f64, bool)>> =
        groups.iter().filter(|own| own.last().is_some_and(|(time, _)| *time >= first)).collect();
    let freedom = groups.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mut excess = vec![0.0; freedom];
    let mut variance = vec![vec![0.0; freedom]; freedom];
    for time in times {
        let at_risk = |own: &Vec<(f64, bool)>| own.len() - own.partition_point(|(other, _)| *other < time);
        let died = |own: &Vec<(f64, bool)>| {
            let start = own.partition_point(|(other, _)| *other < time);
            own[start..].iter().take_while(|(other, _)| *other == time).filter(|(_, event)| *event).count()
        };
        let n: Vec<f64> = groups.iter().map(|own| at_risk(own) as f64).collect();
        let d: Vec<f64> = groups.iter().map(|own| died(own) as f64).collect();
        let (all, events) = (n.iter().sum::<f64>(), d.iter().sum::<f64>());
        let spread = if all > 1.0 { events * (all - events) / (all - 1.0) } else { 0.0 };
        for i in 0..freedom {
            excess[i] += d[i] - events * n[i] / all;
            for j in 0..freedom {
                let same = if i == j { n[i] / all } else { 0.0 };
                variance[i][j] += spread * (same - n[i] * n[j] / (all * all));
            }
        }
    }
    let solved = solve(variance, excess.clone())?;
    Some((excess.iter().zip(solved).map(|(a, b)| a * b).sum(), freedom))
}

/// The solution of a small system of equations; none where it has no single one.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    let largest = matrix.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| matrix[a][k].abs().total_cmp(&matrix[b][k].abs()))?;
        if matrix[pivot][k].abs() <= 1e-12 * largest {
            return None;
        }
        matrix.swap(k, pivot);
        right.swap(k, pivot);
        for i in k + 1..n {
            let factor = matrix[i][k] / matrix[k][k];
            for j in k..n {
                matrix[i][j] -= factor * matrix[k][j];
            }
            right[i] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| matrix[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followup(of: &[(f64, bool)]) -> Followup {
        Followup(of.iter().copied().map(Some).collect())
    }

    #[test]
    fn a_curve_falls_at_events_only() {
        let own = followup(&[(1.0, true), (2.0, false), (3.0, true), (3.0, true), (5.0, false)]);
        let found = survival(&own, &[0; 5]).unwrap();
        let shares: Vec<f64> = found.curves[0].steps.iter().map(|step| step.survival).collect();
        let expected = [0.8, 0.8, 0.8 / 3.0, 0.8 / 3.0];
        assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{shares:?}");
        assert_eq!((found.curves[0].median, found.curves[0].events, found.p), (Some(3.0), 3, None));
    }

    #[test]
    fn clusters_that_die_alike_do_not_differ() {
        let own: Vec<(f64, bool)> = (0..20).map(|i| (f64::from(i / 2), true)).collect();
        let clusters: Vec<usize> = (0..20).map(|i| i % 2).collect();
        let found = survival(&followup(&own), &clusters).unwrap();
        assert!(found.statistic.unwrap() < 1e-20 && found.p.unwrap() > 0.999);
    }

    #[test]
    fn a_cluster_that_is_gone_before_the_first_event_takes_no_part() {
        let own = followup(&[(1.0, false), (2.0, true), (3.0, true), (2.5, true), (9.0, false)]);
        let found = survival(&own, &[2, 0, 0, 1, 1]).unwrap();
        assert_eq!((found.freedom, found.curves.len()), (1, 3));
        let none = survival(&followup(&[(1.0, false), (2.0, false)]), &[0, 1]).unwrap();
        assert_eq!((none.p, none.statistic), (None, None));
    }

    #[test]
    fn the_time_is_that_of_the_first_column_that_knows_one() {
        let (death, visit) =
            (Column::new("death", ["5", "NA", "NA"]), Column::new("visit", ["9", "7", "NA"]));
        let event = Column::new("status", ["Dead", "alive", "0"]);
        let found = Followup::from_columns(&[&death, &visit], &event).unwrap();
        assert_eq!(found.0, [Some((5.0, true)), Some((7.0, false)), None]);
        let refused =
            |times: &Column, event: &Column| Followup::from_columns(&[times], event).unwrap_err().to_string();
        assert_eq!(
            refused(&Column::new("t", ["-1"]), &Column::new("e", ["1"])),
            "the time \"-1\" of column \"t\" is not a number of at least 0"
        );
        assert!(
            refused(&Column::new("t", ["1"]), &Column::new("e", ["2"]))
                .starts_with("the event \"2\" of column \"e\" is not one of")
        );
        assert_eq!(
            refused(&Column::new("t", ["1"]), &Column::new("e", ["NA"])),
            "no instance has both a time and an event"
        );
    }
}
