//! The search for the nearest neighbours of each instance in a view, among the instances with a row in it.
//!
//! Distances are those of the scaled rows, computed from the products of a [`ScaledView`], so that rows are neither copied nor made
//! dense. Up to [`EXACT`] instances, every pair is compared. Beyond, most neighbours are found by descent ([`super::descend`]).
//!
//! Descent compares rows of up to [`DIRECTIONS`] features directly, minus their mean, in single precision. Dense rows in memory
//! are scaled at each access, which takes one tenth more time than a copy and no memory. Wider rows are projected on their 128
//! leading directions, and the neighbours found are ranked by their true distances.
//!
//! Every search estimates its recall on 200 instances. In noise, neighbours of neighbours are not neighbours: if descent finds
//! too few, every pair is compared after all, if the budget permits. Up to 150 000 instances this takes no longer than descent
//! with sufficiently long lists.

mod truth;

use rayon::prelude::*;

use super::descend::{Arranged, KEPT};
use super::lists::{Lists, NONE, insert};
use super::project::{SAMPLE, each_block, longest};
use super::rows::{Held, Rows, Seen};
use daimc_core::accelerator::{NearestOthers, Resident};
use daimc_core::index::index;
use daimc_core::kmeans::Points;
use daimc_core::parallel::ordered;
use daimc_core::scaled_view::{MOST_QUERIES, Queries, ScaledView, Scratch};
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, MISSING};
use daimc_core::watch::Watch;
use daimc_core::{Error, Result, View, Views};
use truth::Truth;

/// The number of instances up to which every pair is compared, and up to which it is compared if descent finds too few
/// neighbours.
pub const EXACT: usize = 20_000;
const STILL_EXACT: usize = 150_000;

/// The number of points that one thread compares with some queries at a time.
const OTHERS: usize = 256;

/// The number of distances that are compared with a bound at once.
const LANES: usize = 16;

/// The number of features up to which descent compares complete rows; wider rows are projected on this many directions.
pub const DIRECTIONS: usize = 128;

/// The number of features up to which the results of descent are ranked by true distances, and the number of instances whose
/// lists one thread ranks at a time.
const RANKED: usize = 8192;
const TOGETHER: usize = 32;

/// The number of neighbours that are ranked: the nearest projections are not always the nearest rows.
const AMONG: usize = 36;

/// The required recall.
const ENOUGH: f64 = 0.95;

/// The approximate number of pairs that descent compares for each instance.
const DESCENDED: f64 = 4000.0;

/// The nearest neighbours of each instance, nearest first. Squared distances are in units of the sum of the squared lengths of all
/// rows, so that they are in range whatever the units of the data are.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    lists: Lists,
    /// The estimated recall; `None` if it is complete.
    recall: Option<f64>,
}

impl Nearest {
    /// The recall: the estimated share of the true neighbours that were found.
    pub fn recall(&self) -> Option<f64> {
        self.recall
    }

    /// The number of instances, present or not.
    pub fn instances(&self) -> usize {
        self.lists.len()
    }

    /// The maximum number of neighbours of an instance.
    pub fn most(&self) -> usize {
        self.lists.kept
    }

    /// Frees the distances, which are zero from now on; the neighbours stay.
    pub fn forget_distances(&mut self) {
        self.lists.squares = Vec::new();
    }

    /// The neighbours of an instance with their squared distances, nearest first; none if it has no row in the view.
    pub fn of(&self, instance: usize) -> impl Iterator<Item = (usize, f64)> {
        self.lists.of(instance).map(|(other, square)| (other as usize, f64::from(square)))
    }
}

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The number of neighbours of each instance, if there are as many.
    pub count: usize,
    /// The seed of the random trees.
    pub seed: u64,
    /// Whether every pair may be compared if descent finds too few neighbours.
    pub thorough: bool,
}

/// The nearest neighbours of every instance of a view.
pub fn nearest(
    scan: &Scan<'_>,
    view: usize,
    scaled_view: &ScaledView,
    search: Search,
    watch: &Watch,
) -> Result<Nearest> {
    let space = Space::new(scan, view, scaled_view, search.count);
    if space.present.len() <= EXACT && space.in_memory() {
        return space.exact(watch);
    }
    space.approximate(search, watch)
}

/// The same, by an accelerator that stores the rows; `None` if it does not support the search or finds too few neighbours.
pub fn by_accelerator(
    resident: &dyn Resident<'_>,
    scan: &Scan<'_>,
    view: usize,
    scaled_view: &ScaledView,
    Search { count, seed, .. }: Search,
    watch: &Watch,
) -> Result<Option<Nearest>> {
    let space = Space::new(scan, view, scaled_view, count);
    let (instances, kept) = (scan.instances(), space.count);
    let Some(NearestOthers { mut others, mut squares }) = resident.nearest(view, kept, &watch.stop)? else {
        return Ok(None);
    };
    let known = |other: u32| other == MISSING || (other as usize) < instances;
    if [others.len(), squares.len()] != [instances * kept; 2] || !others.iter().all(|&other| known(other)) {
        return Err(Error::Unsuitable {
            what: "neighbours",
            value: "those found by an accelerator".into(),
            reason: format!(
                "there must be {kept} for each of {instances} instances, all of them instance numbers"
            ),
        });
    }
    others.iter_mut().filter(|other| **other == MISSING).for_each(|other| *other = NONE);
    squares.iter_mut().for_each(|square| *square = (f64::from(*square) * unit(scaled_view)) as f32);
    let lists = Lists { kept, entries: others, squares };
    // It compares all pairs, but small distances between long rows may be lost in rounding.
    let recall = Truth::of(&space, seed)?.recall(&lists, true);
    let recall = (recall < 1.0).then_some(recall);
    Ok((recall.unwrap_or(1.0) >= ENOUGH).then_some(Nearest { lists, recall }))
}

/// The maximum number of neighbours among this many points.
fn at_most(count: usize, points: usize) -> usize {
    count.min(points.saturating_sub(1)).max(1)
}

/// The nearest neighbours of rows with `width` numbers, with squared distances in their own units.
pub(super) fn among(rows: &[f32], width: usize, count: usize, watch: &Watch) -> Result<Nearest> {
    let source = Views::new(vec![View::dense("rows", width, rows)?])?;
    let scan = Scan::new(&source, &watch.stop);
    let scaled_view = ScaledView::new(&scan, 0, Scaling::fit(&scan, 0, Scale::None)?)?;
    let mut found = Space::new(&scan, 0, &scaled_view, count).exact(watch)?;
    found
        .lists
        .squares
        .iter_mut()
        .for_each(|square| *square = (f64::from(*square) / unit(&scaled_view)) as f32);
    Ok(found)
}

/// The instances of a view and the parameters of the search among them.
struct Space<'a> {
    scan: &'a Scan<'a>,
    view: usize,
    scaled_view: &'a ScaledView,
    /// The instances that the view shows.
    present: Vec<u32>,
    /// The number of neighbours of each.
    count: usize,
}

impl<'a> Space<'a> {
    fn new(scan: &'a Scan<'a>, view: usize, scaled_view: &'a ScaledView, count: usize) -> Self {
        let schema = scan.schema().view(view);
        let present: Vec<u32> = (0..index(scan.instances())).filter(|&i| schema.shows(i as usize)).collect();
        let count = at_most(count, present.len());
        Self { scan, view, scaled_view, present, count }
    }

    fn in_memory(&self) -> bool {
        self.scan.source().memory().is_some()
    }

    /// The exact nearest neighbours.
    fn exact(&self, watch: &Watch) -> Result<Nearest> {
        let mut buffer = Buffer::default();
        let points = Points::new(self.scan, self.view, self.scaled_view, &self.present, &mut buffer)?;
        let found = within(&points, self.count, watch)?;
        let mut lists = Lists::empty(self.scan.instances(), self.count);
        for (point, &instance) in self.present.iter().enumerate() {
            for (other, square) in found.of(point) {
                lists.offer(instance as usize, self.present[other as usize], square);
            }
        }
        Ok(Nearest { lists, recall: None })
    }

    /// Most of the nearest neighbours, by descent on the rows or on their projections; the neighbours found are then ranked by
    /// their true distances.
    fn approximate(&self, Search { seed, thorough, .. }: Search, watch: &Watch) -> Result<Nearest> {
        let mut buffer = Buffer::default();
        let Some(rows) = self.rows(seed, &mut buffer, watch)? else {
            return Ok(Nearest { lists: Lists::empty(self.scan.instances(), self.count), recall: None });
        };
        let truth = Truth::of(self, seed)?;
        let arranged = Arranged::new(&rows, seed);
        let instances: Vec<u32> = arranged.order.iter().map(|point| self.present[*point as usize]).collect();
        let kept = if self.ranks() { AMONG } else { KEPT };
        let found = Lists::find(&arranged, kept, seed, watch)?;
        let lists = self.listed(&found, &instances, watch)?;
        let recall = truth.recall(&lists, self.has_true_distances());
        if recall >= ENOUGH {
            return Ok(Nearest { lists, recall: Some(recall) });
        }
        drop(lists);
        if thorough && self.present.len() <= STILL_EXACT && self.in_memory() {
            drop((found, arranged));
            drop(rows);
            return self.exact(watch);
        }
        let found = found.find_more(&arranged, seed, watch)?;
        drop(arranged);
        drop(rows);
        let lists = self.listed(&found, &instances, watch)?;
        let recall = Some(truth.recall(&lists, self.has_true_distances()));
        Ok(Nearest { lists, recall })
    }

    /// The rows that descent compares; `None` for a view without instances.
    fn rows<'b>(&'b self, seed: u64, buffer: &'b mut Buffer, watch: &Watch) -> Result<Option<Rows<'b>>> {
        let (space, points) = ((self.scan, self.view, self.scaled_view), self.present.len());
        let root = unit(self.scaled_view).sqrt();
        if points == 0 {
            return Ok(None);
        }
        let single = |row: &mut dyn Iterator<Item = f64>| row.map(|x| (root * x) as f32).collect::<Vec<_>>();
        if self.scaled_view.features() <= DIRECTIONS {
            if self.in_memory() {
                let block = self.scan.pick(self.view, &self.present, buffer)?;
                if let Some(seen) = Seen::new(self.scaled_view, block, &self.present, root) {
                    return Ok(Some(Rows::Seen(seen)));
                }
            }
            let mut rows = Held::new(points, self.scaled_view.features());
            let centre = |f: usize| self.scaled_view.centre().get(f).copied().unwrap_or(0.0);
            self.scan.pass_view(
                self.view,
                Vec::new,
                |piece, part: &mut Vec<Vec<f32>>| {
                    part.extend(piece.shown().into_iter().map(|at| {
                        let values = self.scaled_view.values(&piece.blocks[0], at);
                        single(&mut values.into_iter().enumerate().map(|(f, x)| x - centre(f)))
                    }));
                    Ok(())
                },
                |part| part.drain(..).for_each(|row| rows.push(&row)),
            )?;
            return Ok(Some(Rows::Held(rows)));
        }
        let Some(directions) = longest(space, DIRECTIONS, SAMPLE, seed, watch)? else { return Ok(None) };
        let mut rows = Held::new(points, directions.columns());
        each_block(
            space,
            &directions,
            std::iter::repeat(()),
            Vec::new,
            |seen, (), part: &mut Vec<f32>| {
                part.extend(seen.products.iter().map(|x| (root * x) as f32));
                Ok(())
            },
            |part| {
                part.chunks_exact(directions.columns()).for_each(|row| rows.push(row));
                part.clear();
            },
        )?;
        Ok(Some(Rows::Held(rows)))
    }

    /// Whether the neighbours found on projections are ranked by true distances.
    fn ranks(&self) -> bool {
        (DIRECTIONS + 1..=RANKED).contains(&self.scaled_view.features()) && self.in_memory()
    }

    /// Whether distances in lists are those of the rows, and not those of their projections.
    fn has_true_distances(&self) -> bool {
        self.scaled_view.features() <= DIRECTIONS || self.ranks()
    }

    /// The lists of these instances, by instances: as found, or ranked by true distances.
    fn listed(&self, found: &Lists, instances: &[u32], watch: &Watch) -> Result<Lists> {
        let mut all = Lists::empty(self.scan.instances(), self.count);
        if !self.ranks() {
            for (i, &instance) in instances.iter().enumerate() {
                let some = found.of(i).take(self.count);
                some.for_each(|(j, square)| all.offer(instance as usize, instances[j as usize], square));
            }
            return Ok(all);
        }
        let mut next = 0;
        ordered(
            (0..instances.len()).step_by(TOGETHER),
            || Lists::empty(0, self.count),
            |first, part| {
                watch.check()?;
                *part = self.ranked(found, instances, first..(first + TOGETHER).min(instances.len()))?;
                Ok(())
            },
            |part| {
                for i in 0..part.len() {
                    let instance = instances[next + i] as usize;
                    part.of(i).for_each(|(other, square)| all.offer(instance, other, square));
                }
                next += part.len();
            },
        )?;
        Ok(all)
    }

    /// The nearest entries of the lists of some points, by true distances.
    fn ranked(&self, found: &Lists, instances: &[u32], some: std::ops::Range<usize>) -> Result<Lists> {
        let unit = unit(self.scaled_view);
        let mut here: Vec<u32> = some.clone().map(|i| instances[i]).collect();
        here.extend(some.clone().flat_map(|i| found.of(i)).map(|(j, _)| instances[j as usize]));
        here.sort_unstable();
        here.dedup();
        let mut buffer = Buffer::default();
        let points = Points::new(self.scan, self.view, self.scaled_view, &here, &mut buffer)?;
        let rows: Vec<Vec<f64>> = (0..here.len()).map(|i| points.values(i)).collect();
        let row = |instance: u32| here.binary_search(&instance).map_or(&[][..], |at| &rows[at]);
        let mut lists = Lists::empty(some.len(), self.count);
        for (at, i) in some.enumerate() {
            let own = row(instances[i]);
            for (j, _) in found.of(i) {
                let other = instances[j as usize];
                lists.offer(at, other, (unit * square(own, row(other))) as f32);
            }
        }
        Ok(lists)
    }
}

/// The squared distance of two rows, in as many sums as vectors have lanes.
fn square(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        (0..LANES).for_each(|k| sums[k] += (a[k] - b[k]) * (a[k] - b[k]));
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b).powi(2)).sum();
    sums.iter().sum::<f64>() + rest
}

/// The unit of squared distances.
pub(super) fn unit(scaled_view: &ScaledView) -> f64 {
    if scaled_view.sum_squares > 0.0 { scaled_view.sum_squares.recip() } else { 1.0 }
}

/// The nearest neighbours of each point. The distance of a pair is computed once and offered to both.
fn within(points: &Points<'_>, count: usize, watch: &Watch) -> Result<Lists> {
    let n = points.rows.len();
    let unit = unit(points.scaled_view);
    let mut all = Lists::empty(n, count);
    let mut taken = Queries::new(points.scaled_view);
    let step = taken.count();
    for first in (0..n).step_by(step) {
        watch.check()?;
        let queries = step.min(n - first);
        let (operand, along) = taken.take(&points.block, &points.rows[first..first + queries]);
        let own = points.squares[first..first + queries].iter().zip(along);
        let query_squares: Vec<f64> = own.map(|(square, along)| square + 2.0 * along).collect();
        // A point beyond the last neighbour of a query so far can be skipped.
        let mut query_bars = [0.0; MOST_QUERIES];
        for (query, bar) in query_bars[..queries].iter_mut().enumerate() {
            *bar = all.bar(first + query);
        }
        let others = all.entries[first * count..].par_chunks_mut(OTHERS * count);
        let lists = others.zip(all.squares[first * count..].par_chunks_mut(OTHERS * count)).enumerate();
        let found = lists.map_init(Scratch::default, |scratch, (part, (others, squares))| {
            let start = first + part * OTHERS;
            let mut own = Lists::empty(queries, count);
            let mut own_bars = query_bars;
            let rows = &points.rows[start..(start + OTHERS).min(n)];
            points.scaled_view.project_each(&points.block, rows, operand, scratch, |i, products| {
                let point = start + i;
                let list = i * count..(i + 1) * count;
                let (others, squares) = (&mut others[list.clone()], &mut squares[list]);
                let mut bar = squares[count - 1];
                let pairs = products.len().min(point - first);
                for from in (0..pairs).step_by(LANES) {
                    let lanes = from..(from + LANES).min(pairs);
                    let mut near = [f32::INFINITY; LANES];
                    let given = products[lanes.clone()].iter().zip(&query_squares[lanes.clone()]);
                    for (near, (product, square)) in near.iter_mut().zip(given) {
                        *near = ((square + points.squares[point] - 2.0 * product) * unit).max(0.0) as f32;
                    }
                    // Most pairs are near to neither list, which is decided for several at once.
                    let own_bars = &mut own_bars[lanes.clone()];
                    let either = near.iter().zip(&*own_bars);
                    #[expect(
                        clippy::needless_bitwise_bool,
                        reason = "code without branches compiles to vector instructions"
                    )]
                    let any = either.fold(false, |any, (near, own)| any | (*near <= bar) | (*near <= *own));
                    if !any {
                        continue;
                    }
                    for ((query, &square), own_bar) in lanes.zip(&near).zip(own_bars) {
                        if square <= bar {
                            insert(others, squares, index(first + query), square);
                            bar = bar.min(squares[count - 1]);
                        }
                        if square <= *own_bar {
                            own.offer(query, index(point), square);
                            *own_bar = own_bar.min(own.bar(query));
                        }
                    }
                }
            });
            own
        });
        for own in found.collect::<Vec<_>>() {
            for query in 0..queries {
                own.of(query).for_each(|(other, square)| all.offer(first + query, other, square));
            }
        }
        // The remaining work is the pairs of two later points.
        watch.reach(1.0 - ((n - first - queries) as f64 / n as f64).powi(2));
    }
    Ok(all)
}

/// The additional pairs if descent finds too few neighbours.
pub fn all_pairs(instances: usize) -> f64 {
    let n = instances as f64;
    if (EXACT..=STILL_EXACT).contains(&instances) { n * n / 2.0 } else { 0.0 }
}

/// The approximate number of pairs compared among this many instances of a view.
pub fn pairs(instances: usize) -> f64 {
    let n = instances as f64;
    if instances <= EXACT { n * n / 2.0 } else { n * DESCENDED }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use daimc_core::Stop;
    use daimc_core::simulate;
    use daimc_core::source::Rows;
    use daimc_core::synthetic::Synthetic;

    const TEN: Search = Search { count: 10, seed: 3, thorough: true };

    fn views(n: usize, d: usize, seed: u64, missing: f64) -> Views<'static> {
        let data = Synthetic::new(n, 5).seed(seed);
        let view = data.dense::<f32>("x", d).unwrap();
        let other = data.dense::<f32>("y", 3).unwrap();
        let present = simulate::missing(n, &[missing, 0.0], seed).unwrap();
        Views::new(vec![view.mask(&present[0]).unwrap(), other]).unwrap()
    }

    fn rows(source: &Views<'_>, scaled_view: &ScaledView) -> Vec<Option<Vec<f64>>> {
        let row = |i: usize| {
            let mut buffer = Buffer::default();
            let scan = Scan::new(source, &Stop::default());
            Points::new(&scan, 0, scaled_view, &[index(i)], &mut buffer).unwrap().values(0)
        };
        (0..source.instances()).map(|i| source.is_present(0, i).then(|| row(i))).collect()
    }

    fn literal(rows: &[Option<Vec<f64>>], i: usize, count: usize) -> Vec<usize> {
        let Some(own) = &rows[i] else { return Vec::new() };
        let square = |other: &[f64]| own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let others = rows.iter().enumerate().filter(|(j, _)| *j != i);
        let mut others: Vec<_> = others.filter_map(|(j, row)| Some((square(row.as_ref()?), j))).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        others.into_iter().take(count).map(|(_, j)| j).collect()
    }

    /// The share of the true neighbours that were found.
    fn recall(source: &Views<'_>, scaled_view: &ScaledView, found: &Nearest, among: &[usize]) -> f64 {
        let rows = rows(source, scaled_view);
        let (mut hits, mut all) = (0, 0);
        for &i in among {
            let found: Vec<usize> = found.of(i).map(|(j, _)| j).collect();
            let expected = literal(&rows, i, 10);
            all += expected.len();
            hits += expected.iter().filter(|j| found.contains(j)).count();
        }
        hits as f64 / all as f64
    }

    #[test]
    fn every_pair_is_compared() {
        for (n, missing) in [(12, 0.0), (150, 0.3), (700, 0.5)] {
            let source = views(n, 9, 3, missing);
            let scaling = Scaling::fit(&Scan::new(&source, &Stop::default()), 0, Scale::Unit).unwrap();
            let scaled_view =
                ScaledView::fit(&Scan::new(&source, &Stop::default()), 0, scaling, true).unwrap();
            let found =
                nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default())
                    .unwrap();
            let rows = rows(&source, &scaled_view);
            for i in 0..n {
                let mut own: Vec<usize> = found.of(i).map(|(j, _)| j).collect();
                let mut expected = literal(&rows, i, 10);
                assert_eq!(own.len(), expected.len());
                own.sort_unstable();
                expected.sort_unstable();
                assert_eq!(own, expected, "instance {i} of {n}");
            }
        }
    }

    /// Clusters in single precision with a common offset of all values.
    fn offset_views(n: usize, offset: f32) -> Views<'static> {
        let data = Synthetic::new(n, 5).noise(1.0).seed(11);
        let plain = Views::new(vec![data.dense::<f32>("x", 20).unwrap()]).unwrap();
        let mut buffer = Buffer::default();
        let Rows::DenseF32(values) = plain.block(0, 0..n, &mut buffer).unwrap().rows else {
            panic!("dense rows")
        };
        let values: Vec<f32> = values.iter().map(|value| value + offset).collect();
        Views::new(vec![View::dense("x", 20, values).unwrap()]).unwrap()
    }

    #[test]
    fn an_offset_costs_no_neighbours() {
        for scale in [Scale::None, Scale::Unit, Scale::MinMax] {
            for offset in [0.0, 100.0, 3000.0, 1e4, 1e6] {
                let source = offset_views(500, offset);
                let scaling = Scaling::fit(&Scan::new(&source, &Stop::default()), 0, scale).unwrap();
                let scaled_view =
                    ScaledView::fit(&Scan::new(&source, &Stop::default()), 0, scaling, true).unwrap();
                let found =
                    nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default())
                        .unwrap();
                let share = recall(&source, &scaled_view, &found, &(0..500).collect::<Vec<_>>());
                assert!(share > 0.995, "{scale} at {offset}: {share}");
            }
        }
    }

    #[test]
    fn an_offset_costs_descent_no_neighbours() {
        let source = offset_views(EXACT + 1000, 1e5);
        let scaled_view = ScaledView::fit(
            &Scan::new(&source, &Stop::default()),
            0,
            Scaling::fit(&Scan::new(&source, &Stop::default()), 0, Scale::Unit).unwrap(),
            true,
        )
        .unwrap();
        let found =
            nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default()).unwrap();
        let plain = offset_views(EXACT + 1000, 0.0);
        let own = ScaledView::fit(
            &Scan::new(&plain, &Stop::default()),
            0,
            Scaling::fit(&Scan::new(&plain, &Stop::default()), 0, Scale::None).unwrap(),
            true,
        )
        .unwrap();
        let expected =
            nearest(&Scan::new(&plain, &Stop::default()), 0, &own, TEN, &Watch::default()).unwrap();
        let among: Vec<usize> = (0..EXACT).step_by(400).collect();
        let (share, without) =
            (recall(&source, &scaled_view, &found, &among), recall(&plain, &own, &expected, &among));
        assert!(share > without - 0.1, "{share}, {without} without the offset");
    }

    #[test]
    fn a_sparse_view_with_an_offset_keeps_most_neighbours() {
        // One column far from zero that every row stores, and few others.
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (n, d) = (400, 30_u32);
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::<f32>::new());
        for _ in 0..n {
            columns.push(0);
            values.push(20_000.0 + rng.random_range(-1.0..1.0_f32));
            for f in (1..d).filter(|_| rng.random_range(0..5) == 0).collect::<Vec<_>>() {
                columns.push(f);
                values.push(rng.random_range(0.5..1.5));
            }
            offsets.push(columns.len());
        }
        let view = View::sparse("x", d as usize, offsets, columns, values).unwrap();
        let source = Views::new(vec![view]).unwrap();
        for scale in [Scale::None, Scale::Unit] {
            let scaled_view = ScaledView::fit(
                &Scan::new(&source, &Stop::default()),
                0,
                Scaling::fit(&Scan::new(&source, &Stop::default()), 0, scale).unwrap(),
                true,
            )
            .unwrap();
            let found =
                nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default())
                    .unwrap();
            let share = recall(&source, &scaled_view, &found, &(0..n).collect::<Vec<_>>());
            assert!(share > 0.98, "{scale}: {share}");
        }
    }

    #[test]
    fn a_view_with_one_instance_has_no_neighbours() {
        let source = views(10, 4, 1, 0.9);
        let scaled_view = ScaledView::fit(
            &Scan::new(&source, &Stop::default()),
            0,
            Scaling::fit(&Scan::new(&source, &Stop::default()), 0, Scale::None).unwrap(),
            true,
        )
        .unwrap();
        let found =
            nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default()).unwrap();
        assert!((0..10).all(|i| found.of(i).next().is_none()));
    }

    /// The result of descent, for any number of instances.
    fn descend(source: &Views<'_>, scaled_view: &ScaledView) -> Nearest {
        Space::new(&Scan::new(source, &Stop::default()), 0, scaled_view, 10)
            .approximate(TEN, &Watch::default())
            .unwrap()
    }

    fn scaled_view(source: &Views<'_>, scale: Scale) -> ScaledView {
        ScaledView::fit(
            &Scan::new(source, &Stop::default()),
            0,
            Scaling::fit(&Scan::new(source, &Stop::default()), 0, scale).unwrap(),
            true,
        )
        .unwrap()
    }

    #[test]
    fn descent_finds_most_neighbours_and_reports_the_recall() {
        // Complete rows, and projections on leading directions; with and without missing rows.
        for (n, d, missing) in [(3000, 20, 0.0), (3000, 20, 0.4), (2000, 300, 0.2)] {
            let source = views(n, d, 7, missing);
            let scaled_view = scaled_view(&source, Scale::Unit);
            let found = descend(&source, &scaled_view);
            let share = recall(&source, &scaled_view, &found, &(0..n).step_by(25).collect::<Vec<_>>());
            let estimated = found.recall().unwrap_or(1.0);
            assert!(
                share > 0.95 && (estimated - share).abs() < 0.04,
                "{n} × {d}: {share}, estimated {estimated}"
            );
            assert!((0..n).all(|i| source.is_present(0, i) == found.of(i).next().is_some()));
            for threads in [1, 7] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert_eq!(pool.install(|| descend(&source, &scaled_view)), found);
            }
        }
    }

    #[test]
    fn copies_are_each_others_neighbours() {
        // A thousand rows, three copies each, and two thousand identical rows.
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let rows: Vec<f32> = (0..1000 * 12).map(|_| rng.random_range(-1.0..1.0)).collect();
        let values = [rows.clone(), rows.clone(), rows, [0.5_f32; 12].repeat(2000)].concat();
        let source = Views::new(vec![View::dense("x", 12, values).unwrap()]).unwrap();
        let found = descend(&source, &scaled_view(&source, Scale::None));
        let copies =
            |i: usize| found.of(i).take(2).filter(move |(j, square)| j % 1000 == i % 1000 && *square == 0.0);
        let all = (0..3000).map(|i| copies(i).count()).sum::<usize>();
        assert!(all > 5900, "{all}");
        assert!((3000..5000).all(|i| found.of(i).all(|(j, square)| j >= 3000 && square == 0.0)));
        // All rows are equal.
        let source = Views::new(vec![View::dense("x", 3, vec![2.0; 3 * 3000]).unwrap()]).unwrap();
        let found = descend(&source, &scaled_view(&source, Scale::MinMax));
        assert!((0..3000).all(|i| found.of(i).count() == 10 && found.of(i).all(|(j, _)| j != i)));
        assert_eq!(found.recall(), Some(1.0));
    }

    #[test]
    fn where_descent_finds_too_few_every_pair_is_compared() {
        // In noise, neighbours of neighbours are not neighbours.
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let (n, d) = (12_000, 100);
        let values: Vec<f32> =
            (0..n * d).map(|_| (0..4).map(|_| rng.random_range(-1.0..1.0_f32)).sum()).collect();
        let source = Views::new(vec![View::dense("x", d, values).unwrap()]).unwrap();
        let scaled_view = scaled_view(&source, Scale::None);
        let found = descend(&source, &scaled_view);
        assert_eq!(found.recall(), None);
        assert_eq!(
            found,
            nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default()).unwrap()
        );
    }

    #[test]
    fn many_instances_are_not_compared_pair_by_pair() {
        let n = EXACT + 5000;
        let source = views(n, 20, 7, 0.0);
        let scaled_view = scaled_view(&source, Scale::Unit);
        let found =
            nearest(&Scan::new(&source, &Stop::default()), 0, &scaled_view, TEN, &Watch::default()).unwrap();
        let share = recall(&source, &scaled_view, &found, &(0..n).step_by(500).collect::<Vec<_>>());
        assert!(share > 0.95 && found.recall().is_some_and(|estimated| estimated > 0.95), "{share}");
    }
}
