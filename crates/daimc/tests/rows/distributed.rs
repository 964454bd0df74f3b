//! Fits to rows in partitions have the bits of a fit to all rows, also if a partition is lost and replaced.

mod neighbourhoods;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::made::*;
use daimc::estimate::{Distributed, Shape};
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Executor, Fit, Initialisation, Matrix, Neighbours, Partition, Penalty, Place, Preset, Result,
    Scale, Task, View, ViewWeights, Views, aligned, merge, metrics, reset, simulate,
};

const TOTAL: usize = 50_000;

struct Data {
    dense: Vec<f64>,
    sparse: Vec<f64>,
    present: Vec<Vec<bool>>,
}

fn data(clusters: usize) -> Data {
    let truth = Synthetic::new(TOTAL, clusters).seed(3).truth();
    let mut dense = around(&truth, 6, 0.6, 1);
    // Single cells are missing too, in instances of the first partition only.
    (0..900).step_by(7).for_each(|cell| dense[cell] = f64::NAN);
    Data {
        dense,
        sparse: mostly_zero(&truth, 12, false, 2),
        present: simulate::missing(TOTAL, &[0.3, 0.4], 5).unwrap(),
    }
}

impl Data {
    /// The instances of a range.
    fn views(&self, range: Range<usize>, part: bool) -> Views<'static> {
        let some = |values: &[f64], d: usize| values[range.start * d..range.end * d].to_vec();
        let present = |view: usize| &self.present[view][range.clone()];
        let views = vec![
            View::dense("dense", 6, narrow(&some(&self.dense, 6))).unwrap().mask(present(0)).unwrap(),
            sparse("sparse", 12, &some(&self.sparse, 12)).mask(present(1)).unwrap(),
        ];
        if part { Views::part(views) } else { Views::new(views) }.unwrap()
    }
}

/// Partitions in this process; the last one answers first.
struct InProcess<'a> {
    views: &'a [Views<'static>],
    ranges: Vec<Range<usize>>,
    partitions: Vec<Partition<'a>>,
    total: usize,
    sent: BTreeMap<u64, Vec<u8>>,
    /// The partition that is lost and replaced before a task of this number.
    lost: Option<u64>,
    last: u64,
}

/// The views of each of at most `parts` partitions.
fn split(total: usize, parts: usize, views: impl Fn(Range<usize>) -> Views<'static>) -> Vec<Views<'static>> {
    aligned(total, parts).into_iter().map(views).collect()
}

impl<'a> InProcess<'a> {
    fn new(views: &'a [Views<'static>], total: usize, lost: Option<u64>) -> Result<Self> {
        let ranges = aligned(total, views.len());
        let all = views.iter().zip(&ranges);
        let partitions = all.map(|(views, range)| Partition::new(views, range.clone(), total));
        let partitions = partitions.collect::<Result<_>>()?;
        Ok(Self { views, ranges, partitions, total, sent: BTreeMap::new(), lost, last: 0 })
    }

    /// V, clusters and confidence of all instances.
    fn place(&mut self) -> Result<(Vec<f64>, Vec<usize>, Vec<f64>)> {
        let (mut v, mut labels, mut confidence) = (Vec::new(), Vec::new(), Vec::new());
        for partition in &mut self.partitions {
            let place: Place = partition.place()?;
            v.extend(place.latent.into_values());
            labels.extend(place.labels);
            confidence.extend(place.confidence);
        }
        Ok((v, labels, confidence))
    }
}

impl Executor for InProcess<'_> {
    fn instances(&self) -> usize {
        self.total
    }

    fn run(&mut self, task: &Task<'_>) -> Result<Vec<u8>> {
        self.last = task.number;
        self.sent.retain(|number, _| task.setup.contains(number));
        assert!(task.setup.iter().eq(self.sent.keys()), "{:?} of {:?}", task.setup, self.sent.keys());
        if self.lost == Some(task.number) {
            let mut replaced = Partition::new(&self.views[0], self.ranges[0].clone(), self.total)?;
            // The earlier state is lost.
            let _ = replaced.answer(task.request);
            replaced.answer(&reset())?;
            for request in self.sent.values() {
                replaced.answer(request)?;
            }
            self.partitions[0] = replaced;
        }
        self.sent.insert(task.number, task.request.to_vec());
        let answers = self.partitions.iter_mut().rev().map(|partition| partition.answer(task.request));
        answers.reduce(|one, other| merge(&one?, &other?)).expect("there is a partition")
    }
}

/// The result of a fit: the model, and V, clusters and confidence of all instances from the partitions.
type Found = (Fit, Vec<f64>, Vec<usize>, Vec<f64>);

fn go_on(_: &daimc::Iteration) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

/// A fit to partitions, the first of which is lost before the task of this number. Also returns the number of tasks.
fn fit_parts(
    options: &Daimc,
    total: usize,
    views: &[Views<'static>],
    lost: Option<u64>,
) -> Result<(Found, u64)> {
    let mut partitions = InProcess::new(views, total, lost)?;
    let fit = options.fit_on(&mut partitions, go_on)?;
    let last = partitions.last;
    let (v, labels, confidence) = partitions.place()?;
    Ok(((fit, v, labels, confidence), last))
}

/// The results of these partitions.
fn fit(options: &Daimc, data: &Data, parts: usize, lost: Option<u64>) -> Result<Found> {
    let views = split(TOTAL, parts, |range| data.views(range, true));
    fit_parts(options, TOTAL, &views, lost).map(|(found, _)| found)
}

/// Whether a distributed fit equals a fit in one process to the last bit.
fn assert_the_same((fit, v, labels, confidence): &Found, one: &Fit) {
    assert_eq!((&fit.neighbours, labels), (&one.neighbours, &one.labels));
    assert_eq!(bits(v), bits(one.latent.values()));
    assert_eq!(bits(confidence), bits(&one.confidence));
    // The result includes the instances.
    assert_eq!((&fit.latent, &fit.labels, &fit.confidence), (&one.latent, &one.labels, &one.confidence));
    assert_eq!(fit.model, one.model);
    assert_eq!((fit.objective, &fit.history, fit.outcome), (one.objective, &one.history, one.outcome));
    assert_eq!((&fit.missing_cells, fit.significance), (&one.missing_cells, one.significance));
    assert_eq!((&fit.missingness, &fit.runs), (&one.missingness, &one.runs));
    let map = |fit: &Fit| fit.map.as_ref().map(|map| bits(map.values()));
    assert_eq!(map(fit), map(one));
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn partitions_give_the_bits_of_a_fit_in_one_process() {
    let data = data(3);
    let whole = data.views(0..TOTAL, false);
    let off = || Daimc::new(3).neighbours(Neighbours::Off).seed(5);
    let options = [
        off(),
        off().preset(Preset::Paper).max_iterations(5),
        off().scale(Scale::None).latent(2).assess(false).max_iterations(12),
        off().scale(Scale::ZScore).initialisation(Initialisation::Paper).assess(false),
    ];
    for options in options {
        let one = options.fit(&whole).unwrap();
        for parts in [1, 3] {
            assert_the_same(&fit(&options, &data, parts, None).unwrap(), &one);
        }
    }
}

/// A start that no initialisation would give.
fn start() -> Matrix {
    Matrix::from_fn(TOTAL, 3, |i, k| if i * (k + 2) % 7 < 3 { 1.0 + k as f64 } else { 0.01 })
}

/// Options that need more reductions than a default fit.
fn demanding() -> Vec<(&'static str, Daimc)> {
    let off = || Daimc::new(3).neighbours(Neighbours::Off).assess(false).seed(5).max_iterations(8);
    vec![
        ("runs", off().runs(3)),
        ("learned weights", off().view_weights(ViewWeights::Learned)),
        ("automatic penalty", off().penalty(Penalty::Auto).max_iterations(3)),
        ("start", off().start(start())),
        ("map", off().map(true)),
        ("top features", off().top_features(4)),
        ("graph, map, runs", off().neighbours(Neighbours::Refine).map(true).runs(2)),
    ]
}

#[test]
fn every_option_works_on_partitions() {
    let data = data(3);
    let whole = data.views(0..TOTAL, false);
    for (name, options) in demanding() {
        println!("{name}");
        let one = options.fit(&whole).unwrap();
        let found = fit(&options, &data, 3, None).unwrap();
        assert_the_same(&found, &one);
    }
}

#[test]
fn many_clusters_start_from_the_columns_of_v() {
    let data = data(22);
    let options = Daimc::new(22).neighbours(Neighbours::Off).assess(false).max_iterations(3).restarts(2);
    let one = options.fit(&data.views(0..TOTAL, false)).unwrap();
    assert_the_same(&fit(&options, &data, 2, None).unwrap(), &one);
}

#[test]
fn a_partition_that_is_replaced_at_any_time_gives_the_same_bits() {
    let data = data(3);
    let views = split(TOTAL, 3, |range| data.views(range, true));
    let options = [
        (Daimc::new(3).neighbours(Neighbours::Off).assess(false).max_iterations(12), 9),
        (Daimc::new(3).neighbours(Neighbours::Off).assess(false).max_iterations(5).runs(2).map(true), 17),
        (Daimc::new(3).preset(Preset::Paper).assess(true).max_iterations(5), 11),
    ];
    for (options, step) in options {
        let ((undisturbed, ..), tasks) = fit_parts(&options, TOTAL, &views, None).unwrap();
        // From the first task to the last: before V, while it is made, between sweeps and after them.
        for lost in (1..=tasks).step_by(step).chain([tasks]) {
            let (found, _) = fit_parts(&options, TOTAL, &views, Some(lost)).unwrap();
            println!("{lost} of {tasks}");
            assert_the_same(&found, &undisturbed);
        }
    }
}

#[test]
fn a_result_that_does_not_fit_into_memory_stays_in_the_partitions() {
    let data = data(3);
    let options = Daimc::new(3).neighbours(Neighbours::Off).assess(false).max_iterations(3).memory(100_000);
    let (fit, v, labels, _) = fit(&options, &data, 2, None).unwrap();
    assert_eq!((fit.labels.len(), fit.latent.rows(), fit.ids.len()), (0, 0, 0));
    assert_eq!((labels.len(), v.len()), (TOTAL, 3 * TOTAL));
}

#[test]
fn partitions_that_do_not_fit_together_are_an_error() {
    let data = data(3);
    let ranges = aligned(TOTAL, 3);
    let views = split(TOTAL, 3, |range| data.views(range, true));
    let fitted = |views: &[Views<'static>], ranges: &[Range<usize>]| {
        let both = views.iter().zip(ranges);
        let partitions = both.map(|(views, range)| Partition::new(views, range.clone(), TOTAL).unwrap());
        let partitions = partitions.collect();
        let (sent, ranges) = (BTreeMap::new(), ranges.to_vec());
        let mut all = InProcess { views, ranges, partitions, total: TOTAL, sent, lost: None, last: 0 };
        Daimc::new(3).fit_on(&mut all, go_on).unwrap_err().to_string()
    };
    let two = [views[0].clone(), views[2].clone()];
    let message = fitted(&two, &[ranges[0].clone(), ranges[2].clone()]);
    assert!(message.contains("in no partition"), "{message}");
    let double = View::dense("dense", 6, vec![1.0; ranges[1].len() * 6]).unwrap();
    let other = sparse("sparse", 12, &data.sparse[..ranges[1].len() * 12]);
    let other = Views::part(vec![double, other]).unwrap();
    let message = fitted(&[views[0].clone(), other, views[2].clone()], &ranges);
    assert!(message.contains("'dense'") && message.contains("precision"), "{message}");
    // Bytes that are not a request, and requests that come too early.
    let mut partition = Partition::new(&views[0], ranges[0].clone(), TOTAL).unwrap();
    assert!(
        partition.answer(&[250, 1, 2]).is_err() && partition.place().is_err() && merge(&[], &[]).is_err()
    );
    let few = data.views(0..100, true);
    assert!(Partition::new(&few, 0..100, TOTAL).is_err() && Partition::new(&few, 0..200, 200).is_err());
}

/// The largest request and answer of the iterations of a fit with this number of partitions, in bytes.
fn messages(instances: usize, features: &[usize], clusters: usize, parts: usize) -> [usize; 2] {
    struct Counting<'a> {
        partitions: Vec<Partition<'a>>,
        instances: usize,
        last: std::sync::Arc<std::sync::Mutex<[usize; 2]>>,
    }
    impl Executor for Counting<'_> {
        fn instances(&self) -> usize {
            self.instances
        }

        fn run(&mut self, task: &Task<'_>) -> Result<Vec<u8>> {
            let answers = self.partitions.iter_mut().map(|partition| partition.answer(task.request));
            let answers: Vec<Vec<u8>> = answers.collect::<Result<_>>()?;
            *self.last.lock().unwrap() = [task.request.len(), answers.iter().map(Vec::len).max().unwrap()];
            answers.into_iter().map(Ok).reduce(|one, other| merge(&one?, &other?)).unwrap()
        }
    }
    let truth = Synthetic::new(instances, clusters).seed(3).truth();
    let values: Vec<Vec<f32>> =
        features.iter().map(|d| narrow(&around(&truth, *d, 0.6, *d as u64))).collect();
    let ranges = aligned(instances, parts);
    let views = |range: &Range<usize>| {
        let view = |(number, (values, d)): (usize, (&Vec<f32>, &usize))| {
            View::dense(number.to_string(), *d, values[range.start * d..range.end * d].to_vec()).unwrap()
        };
        Views::part(values.iter().zip(features).enumerate().map(view).collect()).unwrap()
    };
    let views: Vec<Views<'static>> = ranges.iter().map(views).collect();
    let all = views.iter().zip(&ranges);
    let partitions =
        all.map(|(views, range)| Partition::new(views, range.clone(), instances).unwrap()).collect();
    let last = std::sync::Arc::default();
    let mut counting = Counting { partitions, instances, last: std::sync::Arc::clone(&last) };
    let mut iterations = Vec::new();
    let fit = Daimc::new(clusters).max_iterations(3).neighbours(Neighbours::Off).assess(false);
    fit.fit_on(&mut counting, |_| {
        iterations.push(*last.lock().unwrap());
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert!(iterations.iter().all(|own| *own == iterations[0]), "{iterations:?}");
    iterations[0]
}

#[test]
fn messages_are_as_large_as_the_estimate_says() {
    // Eight leaves: with three partitions, some have leaves that cannot be merged yet.
    for (features, clusters, parts) in [(vec![24], 4, 1), (vec![24], 4, 3), (vec![40, 9, 3], 6, 8)] {
        let n = 8 * 16_384;
        let shape = |d: &usize| Shape { present: n, features: *d, entries: n * d, value: 4, sparse: false };
        let shapes: Vec<Shape> = features.iter().map(shape).collect();
        let cost = Distributed::new(n, &shapes, clusters, parts, 1);
        let measured = messages(n, &features, clusters, parts);
        for (estimated, measured) in [cost.request, cost.reply].into_iter().zip(measured) {
            let measured = measured as f64;
            assert!(
                (estimated / measured - 1.0).abs() < 0.1,
                "{features:?}: {estimated} bytes estimated, {measured} sent"
            );
        }
    }
}
