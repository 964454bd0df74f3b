//! The Gram matrices of the V step, one for each presence pattern.

use std::collections::HashMap;

use crate::Matrix;
use crate::patterns::Patterns;
use crate::steps::latent::{Parts, Solver};

/// The capacity of the cache of Gram matrices, in numbers.
const CACHE: usize = 4 << 20;

/// `G = Σ_v w_v U_vᵀU_v` of each pattern. If there are too many patterns, the most frequent ones are cached and the others are
/// summed each time.
#[derive(Debug)]
pub(crate) struct Grams<'a> {
    patterns: &'a Patterns,
    /// `U_vᵀU_v` of each view, or its positive and negative parts.
    plus: Vec<Matrix>,
    minus: Vec<Matrix>,
    /// The position of each cached pattern in `cache`.
    place: HashMap<usize, usize>,
    cache: Vec<f64>,
    size: usize,
}

impl<'a> Grams<'a> {
    pub fn new(patterns: &'a Patterns, view_grams: Vec<Matrix>, solver: Solver) -> Self {
        let split = |sign: f64| {
            view_grams.iter().map(move |gram| {
                Matrix::from_fn(gram.rows(), gram.columns(), |i, j| (sign * gram[(i, j)]).max(0.0))
            })
        };
        let (plus, minus) = match solver {
            Solver::Coordinate => (view_grams, Vec::new()),
            Solver::Multiplicative => (split(1.0).collect(), split(-1.0).collect()),
        };
        let latent = plus.first().map_or(0, Matrix::rows);
        let parts = if minus.is_empty() { 1 } else { 2 };
        let size = latent * latent * parts;
        let mut grams = Self { patterns, plus, minus, place: HashMap::new(), cache: Vec::new(), size };
        let mut frequent: Vec<usize> = (0..patterns.len()).collect();
        frequent.sort_by_key(|&pattern| std::cmp::Reverse(patterns.count(pattern)));
        frequent.truncate((CACHE / size.max(1)).max(1));
        let mut sum = Vec::new();
        for (place, pattern) in frequent.into_iter().enumerate() {
            grams.add_up(pattern, &mut sum);
            grams.cache.extend_from_slice(&sum);
            grams.place.insert(pattern, place);
        }
        grams
    }

    fn add_up(&self, pattern: usize, sum: &mut Vec<f64>) {
        sum.clear();
        sum.resize(self.size, 0.0);
        for &view in self.patterns.views(pattern) {
            let minus = self.minus.get(view).map_or(&[][..], Matrix::values);
            let parts = self.plus[view].values().iter().chain(minus);
            for (sum, value) in sum.iter_mut().zip(parts) {
                *sum += value;
            }
        }
    }

    /// `U_vᵀU_v` of a view, or its positive part.
    pub fn of_view(&self, view: usize) -> &[f64] {
        self.plus[view].values()
    }

    /// The parts of G for a pattern; `own` is scratch for a pattern that is not cached.
    pub fn of<'b>(&'b self, pattern: usize, own: &'b mut Vec<f64>) -> Parts<'b> {
        let gram = if let Some(place) = self.place.get(&pattern) {
            &self.cache[place * self.size..(place + 1) * self.size]
        } else {
            self.add_up(pattern, own);
            &own[..]
        };
        let half = if self.minus.is_empty() { self.size } else { self.size / 2 };
        let (plus, minus) = gram.split_at(half);
        Parts { plus, minus }
    }
}
