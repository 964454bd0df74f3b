//! Tests of association between columns and clusters.

use serde::Serialize;

use crate::adjust::benjamini_hochberg;
use crate::column::{Column, Values};
use crate::contingency::Contingency;
use crate::ranks::kruskal_wallis;
use crate::{Error, Result};

/// The maximum number of categories. A column with more is free text.
const LEVELS: usize = 20;
/// The minimum number of instances with a known value.
const LEAST: usize = 5;

/// The associations of the columns of a table with the clusters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Associations {
    /// A test for each column that could be tested, in the order of the table.
    pub tests: Vec<Test>,
    /// The columns that could not be tested.
    pub left_out: Vec<LeftOut>,
}

/// A column and its association with the clusters.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    /// The name of the column.
    pub column: String,
    /// The test.
    pub test: TestKind,
    /// The number of instances with a known value.
    pub instances: usize,
    /// χ² or H.
    pub statistic: f64,
    /// The degrees of freedom of the statistic; none for tests that do not use its distribution.
    pub freedom: Option<usize>,
    /// The p-value: the probability of an association at least as strong under independence.
    pub p: f64,
    /// The p-value adjusted for the number of columns by the Benjamini–Hochberg procedure.
    pub p_adjusted: f64,
    /// The effect size, from 0 to 1: Cramér's V for categories, ε² = H / (n - 1) for numbers.
    pub effect: f64,
    /// The values by cluster.
    pub breakdown: Breakdown,
}

/// The kinds of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// Pearson's χ² test, for categories.
    ChiSquared,
    /// Fisher's exact test, for two categories and two clusters with small counts.
    Fisher,
    /// A permutation test of χ², for categories with small counts.
    Permutation,
    /// The Kruskal–Wallis test, for numbers.
    KruskalWallis,
}

impl TestKind {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChiSquared => "χ²",
            Self::Fisher => "Fisher",
            Self::Permutation => "χ², permutation",
            Self::KruskalWallis => "Kruskal–Wallis",
        }
    }

    /// Its name in output files.
    pub fn key(self) -> &'static str {
        match self {
            Self::ChiSquared => "chi-squared",
            Self::Fisher => "fisher",
            Self::Permutation => "permutation",
            Self::KruskalWallis => "kruskal-wallis",
        }
    }
}

/// The values of a column by cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Breakdown {
    /// For each cluster the lower quartile, the median and the upper quartile; none if no value is known.
    Quartiles(Vec<Option<[f64; 3]>>),
    /// The number of instances of each cluster with each level.
    Counts {
        /// The names of the levels.
        levels: Vec<String>,
        /// The counts by cluster, then by level.
        counts: Vec<Vec<usize>>,
    },
}

/// A column that was not tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The name of the column.
    pub column: String,
    /// The reason.
    pub reason: String,
}

/// Tests each column for an association with the clusters, over the instances whose value is known.
///
/// # Errors
/// If the number of values of a column is not the number of instances.
pub fn associations(columns: &[Column], clusters: &[usize]) -> Result<Associations> {
    let mut found = Associations::default();
    let count = clusters.iter().max().map_or(0, |most| most + 1);
    for column in columns {
        if column.values.len() != clusters.len() {
            return Err(Error::Length {
                what: format!("column {:?}", column.name),
                expected: clusters.len(),
                found: column.values.len(),
            });
        }
        match test(column, clusters, count) {
            Ok(test) => found.tests.push(test),
            Err(reason) => found.left_out.push(LeftOut { column: column.name.clone(), reason }),
        }
    }
    let p: Vec<f64> = found.tests.iter().map(|test| test.p).collect();
    for (test, adjusted) in found.tests.iter_mut().zip(benjamini_hochberg(&p)) {
        test.p_adjusted = adjusted;
    }
    Ok(found)
}

fn test(column: &Column, clusters: &[usize], count: usize) -> Result<Test, String> {
    let column_name = column.name.clone();
    match column.parse() {
        Values::Numbers(numbers) => {
            let known: Vec<(f64, usize)> = numbers
                .into_iter()
                .zip(clusters.iter().copied())
                .filter(|(number, _)| !number.is_nan())
                .collect();
            enough(known.len())?;
            let (numbers, groups): (Vec<f64>, Vec<usize>) = known.into_iter().unzip();
            let (statistic, freedom, p) = kruskal_wallis(&numbers, &groups)
                .ok_or("the same value in all instances, or known in one cluster only")?;
            Ok(Test {
                column: column_name,
                test: TestKind::KruskalWallis,
                instances: numbers.len(),
                statistic,
                freedom: Some(freedom),
                p,
                p_adjusted: p,
                effect: statistic / (numbers.len() - 1) as f64,
                breakdown: Breakdown::Quartiles(quartiles(&numbers, &groups, count)),
            })
        }
        Values::Categories { levels, of } => {
            let pairs: Vec<(usize, usize)> = of
                .into_iter()
                .zip(clusters.iter().copied())
                .filter_map(|(level, c)| Some((level?, c)))
                .collect();
            enough(pairs.len())?;
            if levels.len() == 1 {
                return Err(format!("'{}' in all {} instances", levels[0], pairs.len()));
            }
            if levels.len() > LEVELS || 2 * levels.len() > pairs.len() {
                return Err(format!("text: {} different values in {} instances", levels.len(), pairs.len()));
            }
            let table = Contingency::of(&pairs);
            if table.shape().1 < 2 {
                return Err("known in one cluster only".into());
            }
            let (statistic, freedom, by_distribution) = table.chi_squared();
            let (test, freedom, p) = match table.shape() {
                _ if !table.is_sparse() => (TestKind::ChiSquared, Some(freedom), by_distribution),
                (2, 2) => (TestKind::Fisher, None, table.fisher()),
                _ => (TestKind::Permutation, None, table.permutation()),
            };
            let mut counts = vec![vec![0; levels.len()]; count];
            pairs.iter().for_each(|(level, cluster)| counts[*cluster][*level] += 1);
            Ok(Test {
                column: column_name,
                test,
                instances: pairs.len(),
                statistic,
                freedom,
                p,
                p_adjusted: p,
                effect: table.cramers_v(),
                breakdown: Breakdown::Counts { levels, counts },
            })
        }
    }
}

fn enough(known: usize) -> Result<(), String> {
    if known < LEAST { Err(format!("known for {known} instances only")) } else { Ok(()) }
}

fn quartiles(numbers: &[f64], groups: &[usize], count: usize) -> Vec<Option<[f64; 3]>> {
    let mut of_group: Vec<Vec<f64>> = vec![Vec::new(); count];
    numbers.iter().zip(groups).for_each(|(number, group)| of_group[*group].push(*number));
    let quartiles = |mut own: Vec<f64>| {
        own.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let position = share * (own.len() - 1) as f64;
            let (low, part) = (position.floor() as usize, position.fract());
            own[low] + part * (own[(low + 1).min(own.len() - 1)] - own[low])
        };
        (!own.is_empty()).then(|| [at(0.25), at(0.5), at(0.75)])
    };
    of_group.into_iter().map(quartiles).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_are_left_out_with_a_reason() {
        let clusters = [0, 0, 0, 1, 1, 1];
        let columns = [
            Column::new("constant", ["a"; 6]),
            Column::new("id", ["p1", "p2", "p3", "p4", "p5", "p6"]),
            Column::new("rare", ["1", "NA", "NA", "2", "NA", ""]),
            Column::new("one side", ["1.5", "2.5", "3.5", "NA", "NA", "NA"]),
            Column::new("sex", ["f", "f", "m", "m", "m", "f"]),
        ];
        let found = associations(&columns, &clusters).unwrap();
        let reasons: Vec<&str> = found.left_out.iter().map(|left| left.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "'a' in all 6 instances",
                "text: 6 different values in 6 instances",
                "known for 2 instances only",
                "known for 3 instances only",
            ]
        );
        assert_eq!((found.tests.len(), found.tests[0].test), (1, TestKind::Fisher));
        let short = Column::new("x", ["1"]);
        assert!(associations(&[short], &clusters).unwrap_err().to_string().contains("6 instances"));
    }

    #[test]
    fn the_breakdown_is_by_cluster() {
        let clusters = [0, 0, 0, 2, 2, 2];
        let columns = [
            Column::new("age", ["1.5", "2", "4", "8", "9", "NA"]),
            Column::new("sex", ["f", "f", "m", "m", "m", "m"]),
        ];
        let found = associations(&columns, &clusters).unwrap();
        assert_eq!(
            found.tests[0].breakdown,
            Breakdown::Quartiles(vec![Some([1.75, 2.0, 3.0]), None, Some([8.25, 8.5, 8.75])])
        );
        assert_eq!(
            found.tests[1].breakdown,
            Breakdown::Counts {
                levels: vec!["f".into(), "m".into()],
                counts: vec![vec![2, 1], vec![0, 0], vec![0, 3]]
            }
        );
    }
}
