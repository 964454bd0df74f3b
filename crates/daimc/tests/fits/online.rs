//! Batches of a stream: updates with instances that the model sees once.

use std::ops::{ControlFlow, Range};

use daimc::synthetic::Synthetic;
use daimc::synthetic::planted::{Field, Planted};
use daimc::{
    Daimc, Error, Fit, Model, Neighbours, Online, Preset, Source, Streamed, Update, View, Views, metrics,
};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Dense views with their presence, from which instances can be selected in any order.
struct Data {
    views: Vec<(String, usize, Vec<f32>)>,
    present: Vec<Vec<bool>>,
    truth: Vec<usize>,
}

impl Data {
    fn new(views: Vec<View<'static>>, truth: Vec<usize>, rate: f64, seed: u64) -> Self {
        Self::of(&Views::new(views).unwrap(), truth, rate, seed)
    }

    fn of(all: &Views<'_>, truth: Vec<usize>, rate: f64, seed: u64) -> Self {
        let present = daimc::simulate::missing(truth.len(), &vec![rate; all.len()], seed).unwrap();
        let rows = |view: usize| {
            let mut buffer = daimc::source::Buffer::default();
            all.read(view, 0..truth.len(), &mut buffer).unwrap();
            let doubles = buffer.f64.iter().map(|value| *value as f32);
            let values: Vec<f32> = buffer.f32.iter().copied().chain(doubles).collect();
            (all.name(view).to_owned(), values.len() / truth.len(), values)
        };
        Self { views: (0..all.len()).map(rows).collect(), present, truth }
    }

    /// Four subtypes in four views, 30 % of whose rows are missing.
    fn cohort(instances: usize, seed: u64) -> Self {
        let planted = Planted::new(Field::Omics, instances, 4).rates(vec![0.0; 4]).seed(seed);
        let (views, truth) = planted.make().unwrap();
        Self::of(&views, truth, 0.3, seed)
    }

    #[cfg(feature = "digit")]
    fn digit(rate: f64, seed: u64) -> Self {
        let (views, truth) = daimc::datasets::digit();
        Self::new(views.into_iter().filter(|view| view.name() != "mor").collect(), truth, rate, seed)
    }

    fn planted(instances: usize, clusters: usize, features: [usize; 2], rate: f64, seed: u64) -> Self {
        let data = Synthetic::new(instances, clusters).noise(2.0).seed(seed);
        let views =
            vec![data.dense::<f32>("a", features[0]).unwrap(), data.dense::<f32>("b", features[1]).unwrap()];
        Self::new(views, data.truth(), rate, seed)
    }

    fn some(&self, chosen: &[usize]) -> Views<'static> {
        self.seen(chosen, 0..self.views.len())
    }

    /// Some instances in those of these views that show at least one of them.
    fn seen(&self, chosen: &[usize], views: Range<usize>) -> Views<'static> {
        let shown = |view: &usize| chosen.iter().any(|&i| self.present[*view][i]);
        let views = views.filter(shown).map(|view| {
            let ((name, d, values), present) = (&self.views[view], &self.present[view]);
            let rows: Vec<f32> =
                chosen.iter().flat_map(|&i| values[i * d..(i + 1) * d].iter().copied()).collect();
            let present: Vec<bool> = chosen.iter().map(|&i| present[i]).collect();
            View::dense(name.clone(), *d, rows).unwrap().mask(&present).unwrap()
        });
        Views::new(views.collect()).unwrap()
    }

    fn ari(&self, chosen: &[usize], labels: &[usize]) -> f64 {
        let truth: Vec<usize> = chosen.iter().map(|&i| self.truth[i]).collect();
        metrics::ari(&truth, labels).unwrap()
    }

    fn accuracy(&self, chosen: &[usize], labels: &[usize]) -> f64 {
        let truth: Vec<usize> = chosen.iter().map(|&i| self.truth[i]).collect();
        metrics::accuracy(&truth, labels).unwrap()
    }
}

/// All instances in a random order.
fn order(instances: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..instances).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order
}

/// A fit to the first batch, and an update for each of the others.
fn stream(fit: &Daimc, online: &Online, batches: impl IntoIterator<Item = Views<'static>>) -> Fit {
    let mut batches = batches.into_iter();
    let mut first = fit.fit(&batches.next().unwrap()).unwrap();
    first.model.begin_stream();
    batches.fold(first, |fit, batch| online.update(&fit, &batch).unwrap().fit)
}

fn alone(clusters: usize) -> Daimc {
    Daimc::new(clusters).neighbours(Neighbours::Off).assess(false)
}

/// AC of a fit to all, of a fit to the first half, and of a stream of batches, each on all instances in the order of one seed.
fn compare(data: &Data, clusters: usize, batches: usize, seed: u64) -> [f64; 3] {
    let order = order(data.truth.len(), 100 + seed);
    let (all, fit) = (data.some(&order), alone(clusters).seed(seed));
    let size = order.len().div_ceil(batches);
    let whole = fit.fit(&all).unwrap();
    let half = fit.fit(&data.some(&order[..order.len() / 2])).unwrap();
    let streamed = stream(&fit, &Online::new(), order.chunks(size).map(|batch| data.some(batch)));
    let ac = |model: &Model| data.accuracy(&order, &model.predict(&all).unwrap());
    [data.accuracy(&order, &whole.labels), ac(&half.model), ac(&streamed.model)]
}

/// The mean of [`compare`] over some seeds, each with data of its own.
fn mean(data: impl Fn(u64) -> Data, clusters: usize, batches: usize, seeds: u64, case: &str) -> [f64; 3] {
    let mut sums = [0.0; 3];
    let mut each = Vec::new();
    for seed in 0..seeds {
        let found = compare(&data(seed), clusters, batches, seed);
        sums.iter_mut().zip(found).for_each(|(sum, own)| *sum += own / seeds as f64);
        each.push(format!("{:.3}", found[2]));
    }
    let [whole, half, streamed] = sums;
    let each = each.join(" ");
    println!(
        "{case}, {batches} batches: all {whole:.4}, first half {half:.4}, stream {streamed:.4} ({each})"
    );
    sums
}

#[cfg(feature = "digit")]
#[test]
fn digit_in_ten_batches_is_as_good_as_at_once() {
    let [whole, half, streamed] = mean(|seed| Data::digit(0.0, seed), 10, 10, 2, "Digit");
    assert!(streamed >= whole - 0.03 && streamed >= half - 0.02, "{whole} {half} {streamed}");
}

#[test]
fn planted_clusters_in_ten_batches_are_as_good_as_at_once() {
    let planted = |seed| Data::planted(4000, 5, [20, 30], 0.3, seed);
    let [whole, half, streamed] = mean(planted, 5, 10, 2, "planted");
    assert!(streamed >= whole - 0.01 && streamed >= half - 0.01, "{whole} {half} {streamed}");
}

/// The share of equal labels.
fn agreement(one: &[usize], other: &[usize]) -> f64 {
    one.iter().zip(other).filter(|(a, b)| a == b).count() as f64 / one.len() as f64
}

/// The effect of some batches on the model of a fit.
#[derive(Debug)]
struct Effect {
    /// The share of the instances of the fit that the model places as before.
    kept: f64,
    /// ARI of the instances of the fit, before and after.
    ari: [f64; 2],
    /// The share of the new instances whose cluster is that of their class in the fit, by `predict` before and by the updates.
    right: [f64; 2],
}

/// Updates the model of a fit to the first `size` instances of a random order with batches of the others: twenty of 1, eight of 8,
/// one of 64, one of 1000, one in the last view alone, and one of a single class. `begin` changes the model of the fit before.
fn effects(
    data: &Data,
    fit: &Daimc,
    size: usize,
    seed: u64,
    begin: impl Fn(&mut Model),
) -> Vec<(&'static str, Effect)> {
    let order = order(data.truth.len(), 100 + seed);
    let (train, rest) = order.split_at(size);
    let all = data.some(train);
    let mut fit = fit.clone().seed(seed).fit(&all).unwrap();
    begin(&mut fit.model);
    let before = fit.model.predict(&all).unwrap();
    let class = |label: usize| {
        let own = train.iter().zip(&before).filter(|(_, own)| **own == label).map(|(&i, _)| data.truth[i]);
        let own: Vec<usize> = own.collect();
        own.iter().copied().max_by_key(|class| own.iter().filter(|other| *other == class).count())
    };
    let classes: Vec<Option<usize>> = (0..fit.model.options.clusters).map(class).collect();
    let last = data.views.len() - 1;
    let one_view = rest.iter().copied().filter(|&i| data.present[last][i]).take(64).collect();
    let one_class = rest.iter().copied().filter(|&i| data.truth[i] == 0).take(64).collect();
    let chunks = |count: usize, size: usize| -> Vec<Vec<usize>> {
        rest.chunks(size).take(count).map(<[usize]>::to_vec).collect()
    };
    let cases = [
        ("20 × 1", chunks(20, 1), 0),
        ("8 × 8", chunks(8, 8), 0),
        ("64", chunks(1, 64), 0),
        ("1000", chunks(1, 1000), 0),
        ("64 in one view", vec![one_view], last),
        ("64 of one class", vec![one_class], 0),
    ];
    let effect = |(case, batches, first): (&'static str, Vec<Vec<usize>>, usize)| {
        let (mut updated, mut right, mut count) = (fit.clone(), [0; 2], 0);
        for batch in &batches {
            let views = data.seen(batch, first..data.views.len());
            updated = Online::new().update(&updated, &views).unwrap().fit;
            for (right, labels) in
                right.iter_mut().zip([&fit.model.predict(&views).unwrap(), &updated.labels])
            {
                *right += batch
                    .iter()
                    .zip(labels)
                    .filter(|(i, own)| classes[**own] == Some(data.truth[**i]))
                    .count();
            }
            count += batch.len();
        }
        let after = updated.model.predict(&all).unwrap();
        let ari = [&before, &after].map(|labels| data.ari(train, labels));
        let effect = Effect {
            kept: agreement(&before, &after),
            ari,
            right: right.map(|own| own as f64 / count as f64),
        };
        println!("seed {seed}, {case}: {effect:?}");
        (case, effect)
    };
    cases.into_iter().map(effect).collect()
}

/// Fails unless an update leaves the clusters of a fit as they are, and new instances are placed as well as without it.
#[track_caller]
fn assert_harmless(effects: &[(&str, Effect)], kept: f64, margin: f64) {
    for (case, effect) in effects {
        let Effect { kept: own, ari: [before, after], right: [predicted, updated] } = effect;
        assert!(*own >= kept && *after >= before - margin, "{case}: {effect:?}");
        assert!(*updated >= predicted - margin, "{case}: {effect:?}");
    }
}

#[test]
fn a_cohort_is_placed_as_before_after_updates_and_new_instances_as_by_predict() {
    for seed in 0..2 {
        let data = Data::cohort(1400, seed);
        let fit = Daimc::new(4).assess(false);
        assert_harmless(&effects(&data, &fit, 256, seed, |_| ()), 1.0, 0.0);
        assert_harmless(&effects(&data, &alone(4), 256, seed, |_| ()), 0.98, 0.01);
    }
}

#[test]
fn a_young_stream_revises_its_clusters_only_if_that_explains_them_better() {
    for seed in 0..2 {
        let data = Data::cohort(1400, seed);
        let effects = effects(&data, &alone(4), 256, seed, Model::begin_stream);
        for (case, Effect { kept, ari: [before, after], .. }) in effects {
            assert!(kept >= 0.98 && after >= before - 0.01, "{case}: {kept} {before} {after}");
        }
    }
}

#[cfg(feature = "digit")]
#[test]
fn digit_is_placed_as_before_after_updates_and_new_instances_as_by_predict() {
    let data = Data::digit(0.3, 0);
    assert_harmless(&effects(&data, &Daimc::new(10).assess(false), 600, 0, |_| ()), 1.0, 0.0);
    assert_harmless(&effects(&data, &alone(10), 600, 0, |_| ()), 0.94, 0.01);
}

#[test]
fn references_stay_unless_the_past_is_forgotten_and_do_not_need_an_added_view() {
    let data = Data::cohort(500, 3);
    let mut order = order(500, 3);
    order.retain(|&i| data.present[..3].iter().any(|present| present[i]));
    let (train, rest) = order.split_at(300);
    let first = data.seen(train, 0..3);
    let fit = Daimc::new(4).assess(false).fit(&first).unwrap();
    assert!(fit.model.references.is_some());
    let update = Online::new().add_view("proteins").update(&fit, &data.some(rest)).unwrap();
    assert_eq!(update.added, ["proteins"]);
    assert_eq!(update.fit.labels, fit.model.predict(&data.seen(rest, 0..3)).unwrap());
    let read = Fit::from_bytes(&update.fit.to_bytes().unwrap()).unwrap();
    assert_eq!(read, update.fit);
    assert_eq!(read.model.predict(&first).unwrap(), fit.labels);
    let shown: Vec<usize> = train.iter().copied().filter(|&i| data.present[3][i]).collect();
    let found = read.model.predict(&data.seen(&shown, 3..4)).unwrap();
    assert!(data.accuracy(&shown, &found) > 0.6, "{}", data.accuracy(&shown, &found));
    let forgetting = Online::new().memory_factor(0.9).update(&fit, &data.seen(rest, 0..3)).unwrap().fit;
    assert!(forgetting.model.references.is_none());
    assert!(agreement(&forgetting.model.predict(&first).unwrap(), &fit.labels) > 0.97);
}

#[test]
fn a_batch_by_which_a_cluster_would_be_lost_is_refused() {
    let centres = [0, 2].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(8);
    let (first, _) = moving.batch(&["a"], &centres, 30);
    let fit = alone(2).fit(&first).unwrap();
    let (other, _) = moving.batch(&["a"], &[between(6, 6, 0.0)], 5000);
    let error = Online::new().update(&fit, &other).unwrap_err();
    assert!(matches!(error, Error::ClusterLost { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("the batch was not learnt: the model would place instances of its own cluster")
    );
    // A few of them are learnt.
    let (few, _) = moving.batch(&["a"], &[between(6, 6, 0.0)], 10);
    let update = Online::new().update(&fit, &few).unwrap();
    assert_eq!((update.unexplained.len(), update.fit.model.predict(&first).unwrap()), (10, fit.labels));
}

mod studies {
    use super::*;

    #[cfg(feature = "digit")]
    #[test]
    #[ignore = "a study: make test-all"]
    fn digit_in_batches_is_as_good_as_at_once() {
        for (rate, batches) in [(0.0, 10), (0.0, 20), (0.3, 10), (0.5, 10)] {
            let case = format!("Digit, {rate} missing");
            let [whole, half, streamed] = mean(|seed| Data::digit(rate, seed), 10, batches, 5, &case);
            assert!(streamed >= whole - 0.03, "{case}: {whole} {half} {streamed}");
        }
    }

    #[test]
    #[ignore = "a study: make test-all"]
    fn many_planted_clusters_in_batches_are_as_good_as_at_once() {
        for batches in [10, 20] {
            let planted = |seed| Data::planted(100_000, 20, [64, 64], 0.3, seed);
            let [whole, half, streamed] = mean(planted, 20, batches, 2, "100 000 planted");
            assert!(streamed >= whole - 0.01 && streamed >= half - 0.001, "{whole} {half} {streamed}");
        }
    }
}

/// Instances around centres, with standard deviation `spread`: the centre of cluster k at time t is `at(k, t)`, in two views.
struct Moving {
    rng: ChaCha8Rng,
}

const D: usize = 8;

impl Moving {
    fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// This many instances of each cluster, given by the directions of the centres (with weights), as views `names`.
    fn batch(&mut self, names: &[&str], centres: &[[f64; D]], each: usize) -> (Views<'static>, Vec<usize>) {
        let truth: Vec<usize> = (0..centres.len() * each).map(|i| i % centres.len()).collect();
        let views =
            names.iter().enumerate().map(|(view, name)| {
                let mut rows = Vec::new();
                for &cluster in &truth {
                    // Views differ in the order of their features.
                    rows.extend((0..D).map(|f| {
                        centres[cluster][(f + 3 * view) % D] + 0.15 * (self.rng.random::<f64>() - 0.5)
                    }));
                }
                View::dense(*name, D, rows).unwrap()
            });
        (Views::new(views.collect::<Vec<_>>()).unwrap(), truth)
    }
}

/// A centre between two axes: at the first for 0, at the second for 1.
fn between(from: usize, to: usize, share: f64) -> [f64; D] {
    let mut centre = [0.1; D];
    centre[from] += 1.0 - share;
    centre[to] += share;
    centre
}

/// The share of instances that are still in the cluster that their kind had at the start.
fn kept(truth: &[usize], labels: &[usize], known: &[usize]) -> f64 {
    let right = truth.iter().zip(labels).filter(|(kind, label)| known[**kind] == **label).count();
    right as f64 / truth.len() as f64
}

/// The cluster of each kind.
fn cluster_of(truth: &[usize], labels: &[usize], kinds: usize) -> Vec<usize> {
    (0..kinds).map(|kind| labels[truth.iter().position(|own| *own == kind).unwrap()]).collect()
}

#[test]
fn clusters_that_move_are_followed_if_the_past_is_forgotten_and_not_otherwise() {
    // Each of three kinds moves to the start of another one.
    let centres = |share: f64| [between(0, 1, share), between(1, 2, share), between(2, 0, share)];
    let follow = |factor: f64| {
        let mut moving = Moving::new(1);
        let (first, truth) = moving.batch(&["a", "b"], &centres(0.0), 300);
        let mut fit = alone(3).fit(&first).unwrap();
        let known = cluster_of(&truth, &fit.labels, 3);
        let mut last = 0.0;
        for step in 1..=30 {
            let (batch, truth) = moving.batch(&["a", "b"], &centres(f64::from(step) / 30.0), 40);
            fit = Online::new().memory_factor(factor).update(&fit, &batch).unwrap().fit;
            last = kept(&truth, &fit.labels, &known);
        }
        last
    };
    let (forgetting, remembering) = (follow(0.5), follow(1.0));
    println!("kept at the end: {forgetting:.3} with a memory factor of 0.5, {remembering:.3} with 1");
    assert!(forgetting > 0.95 && remembering < 0.7, "{forgetting} {remembering}");
}

#[test]
fn the_numbers_of_the_clusters_stay() {
    let centres = [0, 2, 4, 6].map(|axis| between(axis, axis, 0.0));
    for first in [30, 400] {
        let mut moving = Moving::new(2);
        let (batch, truth) = moving.batch(&["a", "b"], &centres, first);
        let mut fit = alone(4).fit(&batch).unwrap();
        let known = cluster_of(&truth, &fit.labels, 4);
        for _ in 0..4 {
            let (batch, truth) = moving.batch(&["a", "b"], &centres, 25);
            fit = Online::new().update(&fit, &batch).unwrap().fit;
            assert_eq!(kept(&truth, &fit.labels, &known), 1.0, "a first batch of {first}");
        }
        assert_eq!(fit.model.sizes.iter().sum::<usize>(), 4 * (first + 100));
        let retained = fit.model.retained.as_ref().unwrap();
        assert!((retained.instances() - 4.0 * (first as f64 + 100.0)).abs() < 1e-6);
    }
}

#[test]
fn a_batch_of_known_clusters_causes_no_drift_and_a_new_group_is_reported() {
    let centres = [0, 2, 4].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(3);
    let (batch, _) = moving.batch(&["a", "b"], &centres, 300);
    let fit = alone(3).fit(&batch).unwrap();
    let (same, _) = moving.batch(&["a", "b"], &centres, 200);
    let Update { drift, unexplained, emerging, died, .. } = Online::new().update(&fit, &same).unwrap();
    assert!(drift.iter().all(|view| view.total < 0.02), "{drift:?}");
    assert!(
        unexplained.len() <= 12 && emerging.is_empty() && died.is_empty(),
        "{unexplained:?} {emerging:?}"
    );

    // A fourth kind, and a few outliers.
    let (more, truth) =
        moving.batch(&["a", "b"], &[centres[0], centres[1], centres[2], between(6, 6, 0.0)], 50);
    let update = Online::new().update(&fit, &more).unwrap();
    let new: Vec<usize> = (0..200).filter(|i| truth[*i] == 3).collect();
    assert!(new.iter().all(|i| update.unexplained.contains(i)), "{:?}", update.unexplained);
    assert!(update.unexplained.len() <= 55, "{:?}", update.unexplained);
    let group = update.emerging.first().expect("they are near each other");
    assert!(group.len() >= 45 && group.iter().all(|i| truth[*i] == 3), "{:?}", update.emerging);
}

#[test]
fn a_cluster_without_new_instances_dies_if_the_past_is_forgotten() {
    let centres = [0, 2, 4].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(4);
    let (first, truth) = moving.batch(&["a"], &centres, 300);
    let mut fit = alone(3).fit(&first).unwrap();
    let gone = fit.labels[truth.iter().position(|kind| *kind == 2).unwrap()];
    let (mut when, mut remembering) = (None, fit.clone());
    for number in 0..12 {
        let (batch, _) = moving.batch(&["a"], &centres[..2], 40);
        let update = Online::new().memory_factor(0.5).update(&fit, &batch).unwrap();
        if update.died == [gone] {
            when.get_or_insert(number);
        }
        fit = update.fit;
        let update = Online::new().update(&remembering, &batch).unwrap();
        assert!(update.died.is_empty());
        remembering = update.fit;
    }
    assert!(when.is_some_and(|number| (4..12).contains(&number)), "{when:?}");
}

#[test]
fn a_batch_may_lack_views_and_what_it_does_not_show_stays_as_it_is() {
    let centres = [0, 2, 4].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(5);
    let (first, truth) = moving.batch(&["a", "b"], &centres, 300);
    let fit = alone(3).fit(&first).unwrap();
    let known = cluster_of(&truth, &fit.labels, 3);
    let (both, truth) = moving.batch(&["b", "a"], &centres, 30);
    let rows = |view: usize| {
        let mut buffer = daimc::source::Buffer::default();
        both.read(view, 0..90, &mut buffer).unwrap();
        buffer.f64
    };
    // Features of "a" in their original order: the batch was made with the views swapped.
    let alone_b = Views::new(vec![View::dense("b", D, turned(&rows(0), 3)).unwrap()]).unwrap();
    let update = Online::new().memory_factor(0.1).update(&fit, &alone_b).unwrap();
    assert_eq!(kept(&truth, &update.fit.labels, &known), 1.0);
    assert_eq!(update.fit.model.view("a").unwrap(), fit.model.view("a").unwrap());
    assert_ne!(update.fit.model.view("b").unwrap(), fit.model.view("b").unwrap());
    // The expected rows there change with the mean rows of V alone.
    assert!(update.drift[0].total < 0.05, "{:?}", update.drift);
}

/// Rows whose features are shifted by some places.
fn turned(rows: &[f64], places: usize) -> Vec<f64> {
    rows.chunks(D).flat_map(|row| (0..D).map(move |f| row[(f + places) % D])).collect()
}

#[test]
fn a_new_view_is_learnt_if_allowed() {
    let centres = [0, 2, 4].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(6);
    let (first, truth) = moving.batch(&["a"], &centres, 300);
    let fit = alone(3).fit(&first).unwrap();
    let known = cluster_of(&truth, &fit.labels, 3);
    let (batch, truth) = moving.batch(&["a", "new"], &centres, 100);
    let refused = Online::new().update(&fit, &batch).unwrap_err().to_string();
    assert!(refused.starts_with("view = new: the model has a; allow"), "{refused}");
    let update = Online::new().add_view("new").update(&fit, &batch).unwrap();
    assert_eq!(update.added, ["new"]);
    assert_eq!(kept(&truth, &update.fit.labels, &known), 1.0);
    // The new view alone is sufficient now, and the file contains all of it.
    let read = Fit::from_bytes(&update.fit.to_bytes().unwrap()).unwrap();
    assert_eq!(read, update.fit);
    let (both, truth) = moving.batch(&["a", "new"], &centres, 50);
    let mut buffer = daimc::source::Buffer::default();
    both.read(1, 0..150, &mut buffer).unwrap();
    let new = Views::new(vec![View::dense("new", D, buffer.f64).unwrap()]).unwrap();
    assert_eq!(kept(&truth, &read.model.predict(&new).unwrap(), &known), 1.0);
    assert_eq!(kept(&truth, &Online::new().update(&read, &new).unwrap().fit.labels, &known), 1.0);
}

#[test]
fn invalid_batches_are_errors_with_a_reason() {
    let centres = [0, 2].map(|axis| between(axis, axis, 0.0));
    let mut moving = Moving::new(7);
    let named = |views: &Views<'_>, first: usize| {
        let mut buffer = daimc::source::Buffer::default();
        views.read(0, 0..views.instances(), &mut buffer).unwrap();
        let ids = (first..first + views.instances()).map(|i| format!("p{i}")).collect();
        Views::new(vec![View::dense("a", D, buffer.f64).unwrap().ids(ids).unwrap()]).unwrap()
    };
    let fit = alone(2).fit(&named(&moving.batch(&["a"], &centres, 30).0, 0)).unwrap();
    let error = |online: Online, views: &Views<'_>| online.update(&fit, views).unwrap_err().to_string();
    let (batch, _) = moving.batch(&["a"], &centres, 10);
    for factor in [0.0, -1.0, 1.5, f64::NAN] {
        let message = error(Online::new().memory_factor(factor), &batch);
        assert!(message.contains("memory_factor") && message.contains("at most 1"), "{message}");
    }
    let narrow = Views::new(vec![View::dense("a", 3, vec![1.0; 30]).unwrap()]).unwrap();
    assert!(error(Online::new(), &narrow).contains("expected 8, found 3"));
    let other = Views::new(vec![View::dense("b", 3, vec![1.0; 30]).unwrap()]).unwrap();
    let message = error(Online::new().add_view("b"), &other);
    assert!(
        message.contains("no instance of the batch is present in any view of the model, which has a"),
        "{message}"
    );
    assert!(error(Online::new().add_view("a"), &batch).contains("the model already has this view"));
    assert!(error(Online::new().add_view("c"), &batch).contains("the views of the batch are a"));
    let message = error(Online::new(), &named(&batch, 50));
    assert!(message.contains("already learnt from instance 'p50'; 10 such"), "{message}");
    // Also those of the batch before the last.
    let next = Online::new().update(&fit, &named(&batch, 100)).unwrap().fit;
    let message = Online::new().update(&next, &named(&batch, 59)).unwrap_err().to_string();
    assert!(message.contains("'p59'; 1 such"), "{message}");
    let read = Fit::from_bytes(&next.to_bytes().unwrap()).unwrap();
    assert_eq!((read.learnt.len(), read.learnt.contains("p3")), (60, true));
    assert!(Online::new().update(&read, &named(&batch, 59)).is_err());

    let mut old = fit.clone();
    old.model.retained = None;
    let message = Online::new().update(&old, &batch).unwrap_err();
    assert!(matches!(message, Error::NotUpdatable) && message.to_string().contains("fit again"));
    let stop = daimc::Stop::new();
    stop.set();
    assert!(matches!(Online::new().stop(&stop).update(&fit, &batch), Err(Error::Interrupted)));
}

#[test]
fn an_update_has_the_same_bits_on_any_number_of_threads_and_after_a_file() {
    let data = Data::planted(900, 3, [10, 12], 0.4, 1);
    let parts: Vec<Views<'static>> = order(900, 1).chunks(300).map(|batch| data.some(batch)).collect();
    for preset in [Preset::Default, Preset::Paper] {
        let run = |threads: usize, by_file: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut fit = Daimc::new(3).preset(preset).assess(false).fit(&parts[0]).unwrap();
                for batch in &parts[1..] {
                    if by_file {
                        fit = Fit::from_bytes(&fit.to_bytes().unwrap()).unwrap();
                    }
                    fit = Online::new().memory_factor(0.9).update(&fit, batch).unwrap().fit;
                }
                (fit.model, fit.labels, fit.latent)
            })
        };
        let one = run(1, false);
        assert_eq!(one, run(4, false));
        assert_eq!(one, run(2, true));
    }
}

#[test]
fn one_pass_over_sorted_data_ends_with_the_clusters_of_all() {
    let data = Data::planted(3000, 4, [16, 20], 0.3, 4);
    let mut sorted: Vec<usize> = (0..3000).collect();
    sorted.sort_by_key(|&i| data.truth[i]);
    let views = data.some(&sorted);
    let (fit, mut events) = (alone(4), Vec::new());
    let pass = |batch: usize, events: &mut Vec<String>| {
        Online::new().fit(&fit, &views, batch, |progress| {
            events.push(format!("{progress:?}").split('(').next().unwrap().to_owned());
            ControlFlow::Continue(())
        })
    };
    let Streamed { labels, confidence, batches, .. } = pass(450, &mut events).unwrap();
    assert_eq!((labels.len(), confidence.len(), batches), (3000, 3000, 6));
    let (own, whole) =
        (data.accuracy(&sorted, &labels), data.accuracy(&sorted, &fit.fit(&views).unwrap().labels));
    assert!(own > whole - 0.02, "{own} {whole}");
    assert_eq!(events[..6], ["Fitted", "Updated", "Updated", "Updated", "Updated", "Updated"]);
    assert!(events[6..].iter().all(|own| own == "Placed"));
    // All in one batch is a fit.
    let once = pass(5000, &mut events).unwrap();
    assert_eq!((once.batches, once.labels), (1, fit.fit(&views).unwrap().model.predict(&views).unwrap()));
    assert!(pass(3, &mut events).unwrap_err().to_string().contains("at least the number of clusters, 4"));
    let ended = Online::new().fit(&fit, &views, 500, |_| ControlFlow::Break(()));
    assert!(matches!(ended, Err(Error::Interrupted)));
}
