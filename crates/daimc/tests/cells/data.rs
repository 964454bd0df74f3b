//! Views with missing rows and missing cells, and their scaling in plain loops.

use daimc::{Scaling, View, Views};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One view: NaN is a missing cell, and rows that are not present are missing.
#[derive(Clone, Debug)]
pub struct Table {
    pub features: usize,
    pub values: Vec<f64>,
    pub present: Vec<bool>,
    pub single: bool,
}

impl Table {
    /// Whether an instance has any cell in a view.
    pub fn shows(&self, i: usize) -> bool {
        self.present[i] && self.row(i).iter().any(|x| !x.is_nan())
    }

    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.features..(i + 1) * self.features]
    }

    pub fn is_there(&self, i: usize, f: usize) -> bool {
        self.present[i] && !self.row(i)[f].is_nan()
    }

    pub fn view(&self, name: &str) -> View<'static> {
        let view = if self.single {
            View::dense(name, self.features, crate::made::narrow(&self.values)).unwrap()
        } else {
            View::dense(name, self.features, self.values.clone()).unwrap()
        };
        view.mask(&self.present).unwrap()
    }

    /// The scaled values, row by row, by the definition of the scaling: NaN for missing cells and for features that the
    /// scaling drops.
    pub fn scaled(&self, scaling: &Scaling) -> Vec<Vec<f64>> {
        let d = self.features;
        let by_feature = |f: usize, x: f64| {
            let factor = scaling.factor.get(f).copied().unwrap_or(1.0);
            if factor == 0.0 { 0.0 } else { (x - scaling.shift.get(f).copied().unwrap_or(0.0)) * factor }
        };
        let row = |i: usize| {
            let values: Vec<f64> = (0..d).map(|f| by_feature(f, self.row(i)[f])).collect();
            let square = |f: usize| scaling.squares.get(f).copied().unwrap_or(1.0);
            let (mut length, mut here, mut all) = (0.0, 0.0, 0.0);
            for (f, x) in values.iter().enumerate() {
                all += square(f);
                if !x.is_nan() {
                    here += square(f);
                    length += x * x;
                }
            }
            let whole = (length * all / here).sqrt();
            let unit = if scaling.unit_rows() && whole > 0.0 { 1.0 / whole } else { 1.0 };
            values.iter().map(|x| x * unit * scaling.weight).collect()
        };
        (0..self.present.len()).map(row).collect()
    }
}

/// Tables of the same instances with clustered values. Every instance is in some view, and every view and feature has
/// some value.
pub fn tables(n: usize, shapes: &[(usize, bool)], clusters: usize, gone: [f64; 2], seed: u64) -> Vec<Table> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let truth: Vec<usize> = (0..n).map(|i| i % clusters).collect();
    let mut tables: Vec<Table> = Vec::new();
    for (number, &(features, single)) in shapes.iter().enumerate() {
        let values = crate::made::around(&truth, features, 0.5, seed.wrapping_add(number as u64));
        // Positive, so that every scaling is possible.
        let mut values: Vec<f64> = values.iter().map(|x| f64::from((x + 2.0) as f32)).collect();
        let mut present: Vec<bool> = (0..n).map(|_| rng.random::<f64>() >= gone[0]).collect();
        for (at, x) in values.iter_mut().enumerate() {
            // Each feature has a value in one instance.
            if rng.random::<f64>() < gone[1] && at / features != at % features % n {
                *x = f64::NAN;
            }
        }
        for f in 0..features {
            present[f % n] = true;
        }
        tables.push(Table { features, values, present, single });
    }
    for i in 0..n {
        if !tables.iter().any(|table| table.shows(i)) {
            let table = &mut tables[i % shapes.len()];
            table.present[i] = true;
            let at = i * table.features;
            table.values[at] = 1.5;
        }
    }
    tables
}

pub fn views(tables: &[Table]) -> Views<'static> {
    let views = tables.iter().enumerate().map(|(number, table)| table.view(&format!("view {number}")));
    Views::new(views.collect()).unwrap()
}
