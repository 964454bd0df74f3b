//! The choice of predictors: some of the observed rows, or cells of rows, are hidden and predicted.

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::blend::{Normal, PREDICTORS};
use super::donors::some_shown;
use super::near::{Near, Query, TILE};
use super::{Accuracy, ByScaling, Filler, Mean, Shares, write_row};
use crate::place::Place;
use daimc_core::index::index;
use daimc_core::scaled_view::Scratch;
use daimc_core::scan::Scan;
use daimc_core::source::{Block, Buffer, Source};
use daimc_core::subset::Subset;
use daimc_core::{Layout, Result, Stop};

/// The maximum and minimum number of instances with hidden values.
const MOST_HIDDEN: usize = 512;
const FEWEST_HIDDEN: usize = 8;

/// The target number of hidden cells, and the maximum number of rounds to reach it.
const WANTED_CELLS: usize = 1024;
const MOST_ROUNDS: usize = 8;

/// Candidate numbers of neighbours.
const COUNTS: [usize; 4] = [5, 10, 20, 40];

/// Candidate weights of the row's own view relative to each of the others, for missing cells.
const OWN_WEIGHTS: [f64; 2] = [1.0, 10.0];

/// The hidden values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hide {
    /// The rows of the view.
    Rows,
    /// This many cells of each row.
    Cells(usize),
}

/// A method of imputation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recipe {
    /// Index of the metric.
    pub metric: usize,
    /// The weight of the view itself among the views of the distance.
    pub own_weight: f64,
    /// The number of neighbours.
    pub count: usize,
    /// Whether means are of logarithms.
    pub logs: bool,
    /// The weights of neighbours, cluster and basis; the rest is the weight of the feature's mean.
    pub weights: [f64; 3],
}

impl Recipe {
    /// The default without a trial: the cluster and the basis, half each.
    fn untried(hide: Hide) -> Self {
        let own_weight = if hide == Hide::Rows { 0.0 } else { 1.0 };
        Self { metric: 0, own_weight, count: COUNTS[1], logs: false, weights: [0.0, 0.5, 0.5] }
    }
}

/// Evaluates all recipes on instances of the source, and returns the one with the least error.
pub(super) fn choose(
    filler: &Filler<'_>,
    source: &dyn Source,
    hide: Hide,
    seed: u64,
) -> Result<(Recipe, Option<Accuracy>)> {
    let untried = (Recipe::untried(hide), None);
    let (view, schema) = (filler.view, filler.scan.schema());
    let in_other_views =
        |i: usize| schema.views().enumerate().any(|(other, own)| other != view && own.shows(i));
    let wanted = |i: usize| hide != Hide::Rows || in_other_views(i);
    let chosen = some_shown(schema.view(view), source.instances(), MOST_HIDDEN, seed, wanted);
    if chosen.len() < FEWEST_HIDDEN {
        return Ok(untried);
    }
    let stop = Stop::default();
    let raw = Scan::new(source, &stop);
    let mut buffers = vec![Buffer::default(); source.views()];
    let some = Subset::pick(&raw, &chosen, &mut buffers)?;
    let recipes = recipes(filler, hide);
    let mut tried = vec![[Tried::default(); 2]; recipes.len()];
    let mut try_out = |rest: &Subset<'_>, cells: Option<&[Vec<u32>]>| {
        let prepared = filler.model.prepare(rest)?;
        let scan = Scan::new(&prepared, &stop);
        let by_scaling = ByScaling::new(filler.model, &scan, filler.metrics.len())?;
        let (some, place) = (Scan::new(&some, &stop), filler.model.place(rest)?);
        let hidden = Hidden {
            some: &some,
            rest: &scan,
            by_scaling: &by_scaling,
            place: &place,
            chosen: &chosen,
            cells,
        };
        let starts: Vec<usize> = (0..chosen.len()).step_by(TILE).collect();
        let tiles = starts.into_par_iter().map(|start| hidden.tile(filler, start, &recipes));
        for tile in tiles.collect::<Result<Vec<_>>>()? {
            for (own, other) in tried.iter_mut().flatten().zip(tile.iter().flatten()) {
                own.absorb(other);
            }
        }
        Result::Ok(())
    };
    match hide {
        Hide::Rows => {
            let all = |other: usize| if other == view { (0..chosen.len()).collect() } else { Vec::new() };
            try_out(&some.without(&(0..source.views()).map(all).collect::<Vec<_>>()), None)?;
        }
        Hide::Cells(cells) => {
            for round in 0..(WANTED_CELLS / (cells * chosen.len())).clamp(1, MOST_ROUNDS) {
                let mut buffer = Buffer::default();
                let hidden = punch(&some, view, cells, (seed, round), &mut buffer);
                try_out(&some.with_rows(view, &buffer), Some(&hidden))?;
            }
        }
    }
    let judged = recipes.iter().zip(&tried).filter_map(|(recipe, halves)| judge(*recipe, halves));
    let best = judged.min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.map_or(untried, |(_, recipe, accuracy)| (recipe, Some(accuracy))))
}

/// All candidates, without their weights.
fn recipes(filler: &Filler<'_>, hide: Hide) -> Vec<Recipe> {
    let logs = [false, true].into_iter().take(1 + usize::from(filler.own.preparation.log));
    let mut all = Vec::new();
    for metric in 0..filler.metrics.len() {
        for &own_weight in own_weights(hide != Hide::Rows) {
            for count in COUNTS {
                let of = |logs| Recipe { metric, own_weight, count, logs, weights: [0.0; 3] };
                all.extend(logs.clone().map(of));
            }
        }
    }
    all
}

/// The weights of the view itself: none if the rows are missing in it.
fn own_weights(shown: bool) -> &'static [f64] {
    if shown { &OWN_WEIGHTS } else { &[0.0] }
}

/// The errors of a recipe on some of the instances.
#[derive(Clone, Copy, Default)]
struct Tried {
    /// In standard deviations of all values, which limits the influence of outliers; the weights are fitted to these.
    all: Normal,
    /// In standard deviations of the other values, as a user would measure the error.
    others: Normal,
}

impl Tried {
    fn absorb(&mut self, other: &Self) {
        self.all.absorb(&other.all);
        self.others.absorb(&other.others);
    }
}

/// The error that recipes are compared by, the weights that are best for all instances, and the reported error. The errors of one
/// half use the weights that are best for the other half.
fn judge(recipe: Recipe, halves: &[Tried; 2]) -> Option<(f64, Recipe, Accuracy)> {
    let [one, other] = halves;
    let (weights_one, weights_other) = (one.all.weights(), other.all.weights());
    let mut both = *one;
    both.absorb(other);
    let compared = other.all.error(&weights_one) + one.all.error(&weights_other);
    let error = other.others.error(&weights_one) + one.others.error(&weights_other);
    let root = |error: f64| (error / both.others.count).sqrt();
    let of_mean = root(both.others.error(&[0.0; PREDICTORS]));
    // Weights that do not generalise from one half to the other are discarded.
    let mean = both.all.error(&[0.0; PREDICTORS]);
    let (better, compared) = (compared < mean, compared.min(mean));
    let (weights, error) =
        if better { (both.all.weights(), root(error)) } else { ([0.0; PREDICTORS], of_mean) };
    let [neighbours, cluster, basis] = weights;
    let shares = Shares { neighbours, cluster, basis };
    let values = both.others.count as usize;
    let accuracy = Accuracy { error, of_mean, values, neighbours: recipe.count, shares };
    (compared.is_finite() && error.is_finite()).then_some((compared, Recipe { weights, ..recipe }, accuracy))
}

/// Copies the rows of a view without some of their cells, this many of each row. Returns the hidden features of each row. No row
/// loses all.
fn punch(
    some: &Subset<'_>,
    view: usize,
    cells: usize,
    (seed, round): (u64, usize),
    buffer: &mut Buffer,
) -> Vec<Vec<u32>> {
    let (count, d, layout) = (some.instances(), some.features(view), some.schema().view(view).layout());
    // A subset is in memory, where reading does not fail; after a failure nothing would be hidden.
    if some.read(view, 0..count, buffer).is_err() || !layout.is_dense() {
        return vec![Vec::new(); count];
    }
    let mut hidden = vec![Vec::new(); count];
    for (i, hidden) in hidden.iter_mut().enumerate() {
        let Some(row) = buffer.block(layout, 0..count).index.row(i) else { continue };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream((round * MOST_HIDDEN + i) as u64);
        let own = row * d;
        let there: Vec<usize> = match layout {
            Layout::DenseF32 => (0..d).filter(|f| !buffer.f32[own + f].is_nan()).collect(),
            _ => (0..d).filter(|f| !buffer.f64[own + f].is_nan()).collect(),
        };
        let count = cells.min(there.len().saturating_sub(1));
        hidden.extend(sample(&mut rng, there.len(), count).iter().map(|at| index(there[at])));
        for f in hidden.iter().map(|&f| f as usize) {
            match layout {
                Layout::DenseF32 => buffer.f32[own + f] = f32::NAN,
                _ => buffer.f64[own + f] = f64::NAN,
            }
        }
    }
    hidden
}

/// Instances with hidden values.
struct Hidden<'h> {
    /// The instances with and without the hidden values.
    some: &'h Scan<'h>,
    rest: &'h Scan<'h>,
    by_scaling: &'h ByScaling,
    place: &'h Place,
    chosen: &'h [u32],
    /// The hidden features of each instance, if cells are hidden.
    cells: Option<&'h [Vec<u32>]>,
}

impl Hidden<'_> {
    /// The errors of each recipe on the even and on the odd instances of a tile.
    fn tile(&self, filler: &Filler<'_>, start: usize, recipes: &[Recipe]) -> Result<Vec<[Tried; 2]>> {
        let range = start..(start + TILE).min(self.chosen.len());
        let views = self.rest.schema().len();
        let mut buffers = vec![Buffer::default(); views];
        let blocks: Result<Vec<Block<'_>>> = buffers
            .iter_mut()
            .enumerate()
            .map(|(view, buffer)| self.rest.read(view, range.clone(), buffer))
            .collect();
        let blocks = blocks?;
        let mut buffer = Buffer::default();
        let whole = self.some.read(filler.view, range.clone(), &mut buffer)?;
        let query = |i: usize| {
            let donor = filler.donors.place(self.chosen[i] as usize);
            Query { place: i - start, instance: i, donor }
        };
        let queries: Vec<Query> = range.map(query).collect();
        let asked: Vec<Asked<'_>> = queries.iter().map(|query| self.ask(filler, query, &whole)).collect();
        let (mut mean, mut scratch) = (Mean::new(filler.own.basis.rows()), Scratch::default());
        let own_weights = own_weights(self.cells.is_some());
        let near: Vec<Vec<Vec<Near>>> = self
            .by_scaling
            .0
            .iter()
            .enumerate()
            .map(|(metric, scaled_views)| {
                filler.nearest((metric, own_weights), &blocks, scaled_views, &queries, &mut scratch)
            })
            .collect();
        let mut tried = vec![[Tried::default(); 2]; recipes.len()];
        for (recipe, tried) in recipes.iter().zip(&mut tried) {
            let Some(near) = near.get(recipe.metric) else { continue };
            let weight = own_weights.iter().position(|own| *own == recipe.own_weight).unwrap_or(0);
            for ((query, asked), near) in queries.iter().zip(&asked).zip(&near[weight]) {
                filler.mean(recipe, near, asked.some, &mut mean);
                let target = (self.place.labels[query.instance], query.donor);
                for cell in &asked.cells {
                    let predicted = filler.predictions(cell.feature, recipe.logs, &mean, target, cell.basis);
                    let standard = |x: f64| (x - cell.mean) / cell.deviation;
                    let (predicted, value) = (predicted.map(standard), standard(cell.value));
                    let half = &mut tried[query.instance % 2];
                    half.others.add(predicted, value);
                    half.all.add(predicted.map(|x| x * cell.ratio), value * cell.ratio);
                }
            }
        }
        Ok(tried)
    }

    /// The hidden values of an instance.
    fn ask(&self, filler: &Filler<'_>, query: &Query, whole: &Block<'_>) -> Asked<'_> {
        let (d, columns, i) = (filler.own.basis.rows(), &filler.donors.columns, query.instance);
        let mut truth = vec![f64::NAN; d];
        if let Some(row) = whole.index.row(query.place) {
            write_row(whole, row, d, &mut truth);
        }
        let some = self.cells.map(|cells| &cells[i][..]);
        let factor = match some {
            None => filler.row_factor(),
            Some(_) => self.by_scaling.0[0][filler.view].full_factor(i),
        };
        let v = self.place.latent.row(i);
        let leverage = filler.leverage.of(v);
        let cell = |feature: usize| {
            let value = truth[feature];
            let known = !value.is_nan() && columns.deviation[feature] > 0.0;
            let (mean, deviation) = match query.donor.filter(|_| known) {
                None => (columns.mean[feature], columns.deviation[feature]),
                Some(_) => columns.without(feature, value)?,
            };
            let mut basis = filler.basis(feature, v, factor);
            if query.donor.is_some() {
                basis = unlearnt(basis, value, leverage, filler.own.preparation.log);
            }
            let ratio = deviation / columns.deviation[feature];
            known.then_some(Cell { feature, value, mean, deviation, ratio, basis })
        };
        let cells = match some {
            None => (0..d).filter_map(cell).collect(),
            Some(some) => some.iter().filter_map(|&f| cell(f as usize)).collect(),
        };
        Asked { some, cells }
    }
}

/// The values of an instance that are to be predicted.
struct Asked<'a> {
    /// Their features; `None` for a row.
    some: Option<&'a [u32]>,
    cells: Vec<Cell>,
}

/// A hidden value, the mean and the standard deviation of the others, and the prediction of the basis.
struct Cell {
    feature: usize,
    value: f64,
    mean: f64,
    deviation: f64,
    /// That deviation divided by the one of all values.
    ratio: f64,
    basis: f64,
}

/// The prediction of a basis that was not fitted to the value: `(x̂ − h x) / (1 − h)`, with the leverage h.
fn unlearnt(fitted: f64, value: f64, leverage: f64, log: bool) -> f64 {
    let without = |fitted: f64, value: f64| (fitted - leverage * value) / (1.0 - leverage);
    if log { without(fitted.ln_1p(), value.ln_1p()).exp_m1() } else { without(fitted, value) }
}
