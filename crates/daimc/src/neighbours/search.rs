//! Who is near whom in a view: the nearest instances of each instance among those that the view shows.
//!
//! Distances are those of the scaled rows, taken from the products of a [`Lens`], so that nothing is copied or made dense.
//! Up to [`EXACT`] instances every pair is compared. Beyond, most neighbours are found by descent ([`descend`]), and how many is
//! estimated on a sample.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::descend::{self, Lists, NONE};
use super::project::{each_block, longest};
use crate::kmeans::Points;
use crate::lens::{Lens, MOST_QUERIES, Queries, Scratch};
use crate::scan::Scan;
use crate::source::Buffer;
use crate::views::index;
use crate::watch::Watch;
use crate::{Matrix, Result};

/// Instances up to which every pair is compared.
pub(crate) const EXACT: usize = 20_000;

/// Others that one thread compares with some points at a time.
const OTHERS: usize = 256;

/// Distances that are compared with what has been found at once.
const LANES: usize = 16;

/// Features up to which descent sees the rows as they are; else along so many directions.
const WHOLE: usize = 256;
const DIRECTIONS: usize = 192;

/// Features up to which what descent has found is put into the true order.
const RANKED: usize = 8192;

/// The share of the true neighbours that is enough; else descent goes on with longer lists.
const ENOUGH: f64 = 0.95;

/// Pairs that descent compares for each instance, roughly.
const DESCENDED: f64 = 4000.0;

/// Instances whose true neighbours are looked for, to see how many were found, and those that one thread compares them with.
const ASKED: usize = 200;
const ROWS: usize = 4096;

/// The nearest others of each instance, nearest first. Squared distances are in units of the squared lengths of all rows
/// together, so that they are in range whatever the data are measured in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nearest {
    count: usize,
    others: Vec<u32>,
    squares: Vec<f32>,
    /// The share of the true neighbours that are among them, estimated; `None`: all are.
    recall: Option<f64>,
}

impl Nearest {
    fn new(instances: usize, count: usize) -> Self {
        Self {
            count,
            others: vec![NONE; instances * count],
            squares: vec![f32::INFINITY; instances * count],
            recall: None,
        }
    }

    /// The share of the true neighbours that are among them, as far as can be told.
    pub fn recall(&self) -> Option<f64> {
        self.recall
    }

    /// The instances that are looked at, present or not.
    pub fn instances(&self) -> usize {
        self.others.len() / self.count
    }

    /// Neighbours that an instance has at most.
    pub fn most(&self) -> usize {
        self.count
    }

    /// The neighbours of an instance with their squared distances, nearest first: none if the view does not show it.
    pub fn of(&self, instance: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = instance * self.count..(instance + 1) * self.count;
        let others = self.others[range.clone()].iter().zip(&self.squares[range]);
        others
            .take_while(|(other, _)| **other != NONE)
            .map(|(other, square)| (*other as usize, f64::from(*square)))
    }

    /// The squared distance of the last in an instance's list; what is farther is of no interest.
    fn bar(&self, instance: usize) -> f32 {
        self.squares[(instance + 1) * self.count - 1]
    }

    fn offer(&mut self, instance: usize, other: u32, square: f32) {
        let range = instance * self.count..(instance + 1) * self.count;
        offer(&mut self.others[range.clone()], &mut self.squares[range], other, square);
    }
}

/// Takes another into a list if it is nearer than the last; of two at the same distance the one with the smaller number.
#[inline]
fn offer(others: &mut [u32], squares: &mut [f32], other: u32, square: f32) {
    let before = |i: usize, others: &[u32], squares: &[f32]| (square, other) < (squares[i], others[i]);
    let mut at = others.len() - 1;
    if !before(at, others, squares) || others.contains(&other) {
        return;
    }
    while at > 0 && before(at - 1, others, squares) {
        others[at] = others[at - 1];
        squares[at] = squares[at - 1];
        at -= 1;
    }
    others[at] = other;
    squares[at] = square;
}

/// The `count` nearest others of every instance of a view, or as many as there are.
pub(crate) fn nearest(
    scan: &Scan<'_>,
    view: usize,
    lens: &Lens,
    count: usize,
    seed: u64,
    watch: &Watch,
) -> Result<Nearest> {
    let (instances, schema) = (scan.instances(), scan.schema().view(view));
    let present: Vec<u32> = (0..index(instances)).filter(|&i| schema.shows(i as usize)).collect();
    let count = count.min(present.len().saturating_sub(1)).max(1);
    let mut all = Nearest::new(instances, count);
    if present.len() > EXACT {
        return approximate((scan, view, lens), &present, all, seed, watch);
    }
    let mut buffer = Buffer::default();
    let points = Points::new(scan, view, lens, &present, &mut buffer)?;
    merge(&mut all, &present, &within(&points, count, watch)?);
    Ok(all)
}

/// Most of the nearest, by descent on the rows, or on what they are along the directions in which they are longest; those that it
/// finds are then put in the order of their true distances.
fn approximate(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    present: &[u32],
    all: Nearest,
    seed: u64,
    watch: &Watch,
) -> Result<Nearest> {
    let whole = lens.features() <= WHOLE;
    let most = if whole { WHOLE } else { DIRECTIONS };
    let Some(directions) = longest((scan, view, lens), most, seed, watch)? else { return Ok(all) };
    let root = unit(lens).sqrt();
    let mut rows = descend::Rows::new(directions.columns());
    let width = descend::Rows::new(directions.columns());
    each_block(
        (scan, view, lens),
        &directions,
        Vec::new,
        |_, products, part: &mut Vec<f32>| {
            let row = |row: &[f64]| row.iter().map(|x| (root * x) as f32).collect::<Vec<f32>>();
            products.iter_rows().for_each(|own| width.pad(row(own).into_iter(), part));
            Ok(())
        },
        |part| rows.append(part),
    )?;
    let lists = Lists::find(&rows, seed, watch)?;
    let space = (scan, view, lens);
    let found = listed(space, present, &lists, all.count, watch)?;
    let share = recall(space, present, &found, seed, watch)?;
    if share >= ENOUGH {
        return Ok(Nearest { recall: Some(share), ..found });
    }
    drop(found);
    let lists = lists.find_more(&rows, seed, watch)?;
    drop(rows);
    let found = listed(space, present, &lists, all.count, watch)?;
    let share = recall(space, present, &found, seed, watch)?;
    Ok(Nearest { recall: Some(share), ..found })
}

/// What is in the lists of points, by instances: as it was found, or in the order of the true distances.
fn listed(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    present: &[u32],
    lists: &Lists,
    count: usize,
    watch: &Watch,
) -> Result<Nearest> {
    let mut all = Nearest::new(scan.instances(), count);
    if lens.features() <= WHOLE || lens.features() > RANKED {
        for (i, &instance) in present.iter().enumerate() {
            let found = lists.of(i).take(count);
            found.for_each(|(j, square)| all.offer(instance as usize, present[j as usize], square));
        }
        return Ok(all);
    }
    let order: Vec<usize> = (0..present.len()).collect();
    let ranked = order.par_chunks(OTHERS).map(|some| {
        watch.check()?;
        ranked((scan, view, lens), present, lists, some)
    });
    for (i, j, square) in ranked.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        all.offer(i as usize, j, square);
    }
    Ok(all)
}

/// The true distances of some points from those in their lists.
fn ranked(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    present: &[u32],
    lists: &Lists,
    some: &[usize],
) -> Result<Vec<(u32, u32, f32)>> {
    let unit = unit(lens);
    let mut here: Vec<u32> = some.iter().map(|&i| present[i]).collect();
    here.extend(some.iter().flat_map(|&i| lists.of(i)).map(|(j, _)| present[j as usize]));
    here.sort_unstable();
    here.dedup();
    let mut buffer = Buffer::default();
    let points = Points::new(scan, view, lens, &here, &mut buffer)?;
    let rows: Vec<Vec<f64>> = (0..here.len()).map(|i| points.values(i)).collect();
    let row = |instance: u32| here.binary_search(&instance).map_or(&[][..], |at| &rows[at]);
    let mut found = Vec::new();
    for &i in some {
        for (j, _) in lists.of(i) {
            let (i, j) = (present[i], present[j as usize]);
            let square: f64 = row(i).iter().zip(row(j)).map(|(a, b)| (a - b).powi(2)).sum();
            found.push((i, j, (unit * square) as f32));
        }
    }
    Ok(found)
}

/// The share of the true neighbours of a sample of instances that are in their lists.
fn recall(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    present: &[u32],
    all: &Nearest,
    seed: u64,
    watch: &Watch,
) -> Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX / 11);
    let mut asked: Vec<u32> = (0..ASKED).map(|_| present[rng.random_range(0..present.len())]).collect();
    asked.sort_unstable();
    asked.dedup();
    let mut buffer = Buffer::default();
    let points = Points::new(scan, view, lens, &asked, &mut buffer)?;
    let rows: Vec<Vec<f64>> = (0..asked.len()).map(|i| points.values(i)).collect();
    let rows = Matrix::from_fn(lens.features(), asked.len(), |f, q| rows[q][f]);
    let parts = present.par_chunks(ROWS).map(|some| {
        watch.check()?;
        let mut buffer = Buffer::default();
        let points = Points::new(scan, view, lens, some, &mut buffer)?;
        let mut own = Nearest::new(asked.len(), all.count);
        points.distances(0..some.len(), &rows, &mut Scratch::default(), |i, squares| {
            for (q, square) in squares.iter().enumerate().filter(|(q, _)| asked[*q] != some[i]) {
                own.offer(q, some[i], (square * unit(lens)) as f32);
            }
        });
        Ok(own)
    });
    let mut exact = Nearest::new(asked.len(), all.count);
    for part in parts.collect::<Result<Vec<_>>>()? {
        for q in 0..asked.len() {
            part.of(q).for_each(|(j, square)| exact.offer(q, index(j), square as f32));
        }
    }
    let (mut found, mut true_ones) = (0, 0);
    for (q, &i) in asked.iter().enumerate() {
        // As near as the last of them is as good: which of several at the same distance is found means nothing.
        let last = exact.of(q).last().map_or(0.0, |(_, square)| square);
        let near = all.of(i as usize).filter(|(_, square)| *square <= last * (1.0 + 1e-4));
        found += near.count().min(exact.of(q).count());
        true_ones += exact.of(q).count();
    }
    Ok(found as f64 / f64::from(index(true_ones.max(1))))
}

/// What squared distances are divided by.
fn unit(lens: &Lens) -> f64 {
    if lens.sum_squares > 0.0 { lens.sum_squares.recip() } else { 1.0 }
}

/// Offers what was found among some instances to all.
fn merge(all: &mut Nearest, instances: &[u32], found: &Nearest) {
    for (point, &instance) in instances.iter().enumerate() {
        for (other, square) in found.of(point) {
            all.offer(instance as usize, instances[other], square as f32);
        }
    }
}

/// The nearest of each point. The distance of a pair is worked out once and offered to both.
fn within(points: &Points<'_>, count: usize, watch: &Watch) -> Result<Nearest> {
    let n = points.rows.len();
    let unit = unit(points.lens);
    let mut all = Nearest::new(n, count);
    let mut taken = Queries::new(points.lens);
    let step = taken.count();
    for first in (0..n).step_by(step) {
        watch.check()?;
        let queries = step.min(n - first);
        let (operand, along) = taken.take(&points.block, &points.rows[first..first + queries]);
        let own = points.squares[first..first + queries].iter().zip(along);
        let query_squares: Vec<f64> = own.map(|(square, along)| square + 2.0 * along).collect();
        // What is farther than the last that a query has found so far need not be looked at.
        let mut query_bars = [0.0; MOST_QUERIES];
        for (query, bar) in query_bars[..queries].iter_mut().enumerate() {
            *bar = all.bar(first + query);
        }
        let others = all.others[first * count..].par_chunks_mut(OTHERS * count);
        let lists = others.zip(all.squares[first * count..].par_chunks_mut(OTHERS * count)).enumerate();
        let found = lists.map_init(Scratch::default, |scratch, (part, (others, squares))| {
            let start = first + part * OTHERS;
            let mut own = Nearest::new(queries, count);
            let mut own_bars = query_bars;
            let rows = &points.rows[start..(start + OTHERS).min(n)];
            points.lens.project_each(&points.block, rows, operand, scratch, |i, products| {
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
                    // Most pairs are near to neither, and that is found out for several at once.
                    let own_bars = &mut own_bars[lanes.clone()];
                    let either = near.iter().zip(&*own_bars);
                    #[expect(
                        clippy::needless_bitwise_bool,
                        reason = "without branches it is vector instructions"
                    )]
                    let any = either.fold(false, |any, (near, own)| any | (*near <= bar) | (*near <= *own));
                    if !any {
                        continue;
                    }
                    for ((query, &square), own_bar) in lanes.zip(&near).zip(own_bars) {
                        if square <= bar {
                            offer(others, squares, index(first + query), square);
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
                own.of(query)
                    .for_each(|(other, square)| all.offer(first + query, index(other), square as f32));
            }
        }
    }
    Ok(all)
}

/// Pairs that are compared among so many instances of a view, roughly.
pub(crate) fn pairs(instances: usize) -> f64 {
    let n = instances as f64;
    if instances <= EXACT { n * n / 2.0 } else { n * DESCENDED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Scale, Scaling};
    use crate::source::Rows;
    use crate::synthetic::Synthetic;
    use crate::{View, Views, simulate};

    fn views(n: usize, d: usize, seed: u64, missing: f64) -> Views<'static> {
        let data = Synthetic::new(n, 5).seed(seed);
        let view = data.dense::<f32>("x", d).unwrap();
        let other = data.dense::<f32>("y", 3).unwrap();
        let present = simulate::missing(n, &[missing, 0.0], seed).unwrap();
        Views::new(vec![view.mask(&present[0]).unwrap(), other]).unwrap()
    }

    fn rows(source: &Views<'_>, lens: &Lens) -> Vec<Option<Vec<f64>>> {
        let row = |i: usize| {
            let mut buffer = Buffer::default();
            let scan = Scan::of(source);
            Points::new(&scan, 0, lens, &[index(i)], &mut buffer).unwrap().values(0)
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

    /// As many of the true neighbours as are found, as a share.
    fn recall(source: &Views<'_>, lens: &Lens, found: &Nearest, among: &[usize]) -> f64 {
        let rows = rows(source, lens);
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
            let scaling = Scaling::fit(&Scan::of(&source), 0, Scale::Unit).unwrap();
            let lens = Lens::fit(&Scan::of(&source), 0, scaling, true).unwrap();
            let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
            let rows = rows(&source, &lens);
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

    /// Clusters in single precision with an offset that all values share.
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
                let scaling = Scaling::fit(&Scan::of(&source), 0, scale).unwrap();
                let lens = Lens::fit(&Scan::of(&source), 0, scaling, true).unwrap();
                let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
                let share = recall(&source, &lens, &found, &(0..500).collect::<Vec<_>>());
                assert!(share > 0.995, "{scale} at {offset}: {share}");
            }
        }
    }

    #[test]
    fn an_offset_costs_descent_no_neighbours() {
        let source = offset_views(EXACT + 1000, 1e5);
        let lens =
            Lens::fit(&Scan::of(&source), 0, Scaling::fit(&Scan::of(&source), 0, Scale::Unit).unwrap(), true)
                .unwrap();
        let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
        let plain = offset_views(EXACT + 1000, 0.0);
        let own =
            Lens::fit(&Scan::of(&plain), 0, Scaling::fit(&Scan::of(&plain), 0, Scale::None).unwrap(), true)
                .unwrap();
        let expected = nearest(&Scan::of(&plain), 0, &own, 10, 0, &Watch::default()).unwrap();
        let among: Vec<usize> = (0..EXACT).step_by(400).collect();
        let (share, without) =
            (recall(&source, &lens, &found, &among), recall(&plain, &own, &expected, &among));
        assert!(share > without - 0.1, "{share}, {without} without the offset");
    }

    #[test]
    fn a_sparse_view_with_an_offset_keeps_most_neighbours() {
        // One column that every row stores, far from zero, among few others.
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
            let lens =
                Lens::fit(&Scan::of(&source), 0, Scaling::fit(&Scan::of(&source), 0, scale).unwrap(), true)
                    .unwrap();
            let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
            let share = recall(&source, &lens, &found, &(0..n).collect::<Vec<_>>());
            assert!(share > 0.98, "{scale}: {share}");
        }
    }

    #[test]
    fn a_view_with_one_instance_has_no_neighbours() {
        let source = views(10, 4, 1, 0.9);
        let lens =
            Lens::fit(&Scan::of(&source), 0, Scaling::fit(&Scan::of(&source), 0, Scale::None).unwrap(), true)
                .unwrap();
        let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
        assert!((0..10).all(|i| found.of(i).next().is_none()));
    }

    /// What descent finds, whatever the number of instances.
    fn descend(source: &Views<'_>, lens: &Lens) -> Nearest {
        let present: Vec<u32> =
            (0..index(source.instances())).filter(|&i| source.is_present(0, i as usize)).collect();
        let none = Nearest::new(source.instances(), 10);
        approximate((&Scan::of(source), 0, lens), &present, none, 3, &Watch::default()).unwrap()
    }

    fn lens(source: &Views<'_>, scale: Scale) -> Lens {
        Lens::fit(&Scan::of(source), 0, Scaling::fit(&Scan::of(source), 0, scale).unwrap(), true).unwrap()
    }

    #[test]
    fn descent_finds_most_neighbours_and_tells_how_many() {
        // Rows as they are, and along the directions in which they are longest; all there, and some missing.
        for (n, d, missing) in [(3000, 20, 0.0), (3000, 20, 0.4), (2000, 300, 0.2)] {
            let source = views(n, d, 7, missing);
            let lens = lens(&source, Scale::Unit);
            let found = descend(&source, &lens);
            let share = recall(&source, &lens, &found, &(0..n).step_by(25).collect::<Vec<_>>());
            let told = found.recall().unwrap();
            assert!(share > 0.95 && (told - share).abs() < 0.04, "{n} × {d}: {share}, told {told}");
            assert!((0..n).all(|i| source.is_present(0, i) == found.of(i).next().is_some()));
            for threads in [1, 7] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert_eq!(pool.install(|| descend(&source, &lens)), found);
            }
        }
    }

    #[test]
    fn copies_are_each_others_neighbours() {
        // A thousand rows, each three times, and two thousand that are all the same.
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let rows: Vec<f32> = (0..1000 * 12).map(|_| rng.random_range(-1.0..1.0)).collect();
        let values = [rows.clone(), rows.clone(), rows, [0.5_f32; 12].repeat(2000)].concat();
        let source = Views::new(vec![View::dense("x", 12, values).unwrap()]).unwrap();
        let found = descend(&source, &lens(&source, Scale::None));
        let copies =
            |i: usize| found.of(i).take(2).filter(move |(j, square)| j % 1000 == i % 1000 && *square == 0.0);
        let all = (0..3000).map(|i| copies(i).count()).sum::<usize>();
        assert!(all > 5900, "{all}");
        assert!((3000..5000).all(|i| found.of(i).all(|(j, square)| j >= 3000 && square == 0.0)));
        // Nobody differs from anybody.
        let source = Views::new(vec![View::dense("x", 3, vec![2.0; 3 * 3000]).unwrap()]).unwrap();
        let found = descend(&source, &lens(&source, Scale::MinMax));
        assert!((0..3000).all(|i| found.of(i).count() == 10 && found.of(i).all(|(j, _)| j != i)));
        assert_eq!(found.recall(), Some(1.0));
    }

    #[test]
    fn many_instances_are_not_compared_pair_by_pair() {
        let n = EXACT + 5000;
        let source = views(n, 20, 7, 0.0);
        let lens = lens(&source, Scale::Unit);
        let found = nearest(&Scan::of(&source), 0, &lens, 10, 0, &Watch::default()).unwrap();
        let share = recall(&source, &lens, &found, &(0..n).step_by(500).collect::<Vec<_>>());
        assert!(share > 0.95 && found.recall().unwrap() > 0.95, "{share}");
    }
}
