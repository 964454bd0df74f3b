//! Survival by cluster: the Kaplan–Meier estimator and the log-rank test.

use serde::Serialize;

use crate::column::Column;
use crate::gamma::chi_squared_tail;
use crate::{Error, Result};

/// The 97.5th percentile of the normal distribution, for 95 % confidence intervals.
const Z: f64 = 1.959_963_984_540_054;

/// The follow-up time of each instance, and whether it ended with an event (otherwise it is censored); none if unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Followup(pub Vec<Option<(f64, bool)>>);

impl Followup {
    /// Reads follow-up data from columns of a table. The time is the first known value among several columns, such as the days to
    /// death or else to the last visit.
    ///
    /// # Errors
    /// If a time is not a number of at least 0, if an event indicator has an unknown value, or if no instance has both.
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
    /// The curve of each cluster.
    pub curves: Vec<Curve>,
    /// The χ² of the log-rank test; none without events, or with fewer than two clusters with instances at risk.
    pub statistic: Option<f64>,
    /// Its degrees of freedom.
    pub freedom: usize,
    /// Its p-value.
    pub p: Option<f64>,
}

/// The Kaplan–Meier curve of a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The number of instances with follow-up data.
    pub instances: usize,
    /// The number of events.
    pub events: usize,
    /// The median survival time; none if it is not reached.
    pub median: Option<f64>,
    /// A step for each time with an event or a censored instance, in increasing order.
    pub steps: Vec<Step>,
}

/// A step of a Kaplan–Meier curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The time.
    pub time: f64,
    /// The number of instances at risk just before this time.
    pub at_risk: usize,
    /// The number of events at this time.
    pub events: usize,
    /// The number of instances censored at this time.
    pub censored: usize,
    /// The estimated probability of surviving this time.
    pub survival: f64,
    /// The lower end of its 95 % confidence interval, from Greenwood's variance of ln(-ln S).
    pub lower: f64,
    /// The upper end of the interval.
    pub upper: f64,
}

/// Estimates a Kaplan–Meier curve for each cluster, and tests their difference with the log-rank test.
///
/// # Errors
/// If the number of follow-ups is not the number of instances.
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

/// S(t) = Π (1 - d / n) over the times of events up to t; times are in increasing order.
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
        // The interval is undefined for S = 0 and S = 1.
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
        // By rounding, a product that is exactly a half may be slightly larger.
        median: steps.iter().find(|step| step.survival <= 0.5 + 1e-12).map(|step| step.time),
        steps,
    }
}

/// (O - E)ᵀ V⁻¹ (O - E) over all but one of the groups with instances at risk, and the number of these, the degrees of freedom.
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

/// Solves a small system of linear equations; `None` if it is singular.
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
    fn the_time_is_the_first_known_value() {
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
