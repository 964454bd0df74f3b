//! Presence patterns: which instances are seen in the same set of views.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

use crate::Matrix;
use crate::source::Source;
use crate::steps::latent::{Parts, Solver};

/// The presence patterns of the instances, and the order in which a block takes its instances so that those of
/// one pattern stand together.
#[derive(Debug)]
pub(crate) struct Patterns {
    /// The pattern of each instance; empty if there is only one.
    ids: Vec<u32>,
    /// The views of each pattern.
    views: Vec<Vec<usize>>,
    /// How many instances have the pattern.
    counts: Vec<usize>,
    /// Within each block, the instances sorted by pattern, counted from the start of the block; empty if there
    /// is only one pattern.
    order: Vec<u16>,
}

impl Patterns {
    /// Finds the patterns; `block` is the number of instances per block. Patterns are numbered by which views they have and
    /// not by who comes first, so that instances stand in the same order whoever else is there.
    pub fn new(source: &dyn Source, block: usize) -> Self {
        let schema = source.schema();
        let (instances, views) = (schema.instances(), schema.len());
        if schema.views().all(|view| view.is_complete()) {
            let views = vec![(0..views).collect()];
            return Self { ids: Vec::new(), views, counts: vec![instances], order: Vec::new() };
        }
        let key_of = |i: usize, key: &mut Vec<u64>| {
            key.clear();
            key.resize(views.div_ceil(64), 0);
            for v in (0..views).filter(|&v| schema.view(v).shows(i)) {
                key[v / 64] |= 1 << (v % 64);
            }
        };
        let starts = (0..instances.div_ceil(block)).into_par_iter().map(|number| number * block);
        let distinct = |start: usize| {
            let (mut seen, mut key) = (BTreeSet::new(), Vec::new());
            for i in start..(start + block).min(instances) {
                key_of(i, &mut key);
                if !seen.contains(&key) {
                    seen.insert(key.clone());
                }
            }
            seen
        };
        let keys = starts.map(distinct).reduce(BTreeSet::new, |mut all, more| {
            all.extend(more);
            all
        });
        let keys: Vec<Vec<u64>> = keys.into_iter().collect();
        let shown = keys.iter().map(|key| (0..views).filter(|v| key[v / 64] >> (v % 64) & 1 == 1).collect());
        let shown: Vec<Vec<usize>> = shown.collect();
        if shown.len() == 1 {
            return Self { ids: Vec::new(), views: shown, counts: vec![instances], order: Vec::new() };
        }
        let (mut ids, mut order) = (vec![0; instances], vec![0; instances]);
        let parts = ids.par_chunks_mut(block).zip(order.par_chunks_mut(block)).enumerate();
        parts.for_each(|(number, (ids, order))| {
            let mut key = Vec::new();
            for (i, id) in ids.iter_mut().enumerate() {
                key_of(number * block + i, &mut key);
                *id = keys.binary_search(&key).map_or(0, crate::views::index);
            }
            order.iter_mut().zip(0..).for_each(|(own, i)| *own = i);
            order.sort_by_key(|&i: &u16| ids[i as usize]);
        });
        let mut counts = vec![0; keys.len()];
        ids.iter().for_each(|id| counts[*id as usize] += 1);
        Self { ids, views: shown, counts, order }
    }

    /// The pattern of an instance.
    #[inline]
    pub fn of(&self, instance: usize) -> usize {
        if self.ids.is_empty() { 0 } else { self.ids[instance] as usize }
    }

    /// The `i`-th instance that the block from `start` on takes.
    #[inline]
    pub fn nth(&self, start: usize, i: usize) -> usize {
        if self.order.is_empty() { start + i } else { start + self.order[start + i] as usize }
    }

    /// The views in which instances of a pattern are seen.
    pub fn views(&self, pattern: usize) -> &[usize] {
        &self.views[pattern]
    }

    /// How many patterns there are.
    pub fn len(&self) -> usize {
        self.views.len()
    }
}

/// Numbers that the cache of Gram matrices may hold.
const CACHE: usize = 4 << 20;

/// `G = Σ_v w_v U_vᵀU_v` of each pattern. When there are too many patterns, those that most instances have are
/// kept and the others are added up when they are met.
#[derive(Debug)]
pub(crate) struct Grams<'a> {
    patterns: &'a Patterns,
    /// `U_vᵀU_v` of each view: as it is, or its positive and negative part.
    plus: Vec<Matrix>,
    minus: Vec<Matrix>,
    /// Where the parts of a pattern stand in `cache`.
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
        frequent.sort_by_key(|&pattern| std::cmp::Reverse(patterns.counts[pattern]));
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

    /// The parts of G for a pattern; `own` is room for one that is not kept.
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
