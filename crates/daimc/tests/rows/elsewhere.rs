//! Fits to rows that others hold: the same bits as if one held all, and a holder that is lost comes back.

mod neighbourhoods;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::made::*;
use daimc::estimate::{Distributed, Shape, Traffic};
use daimc::synthetic::Synthetic;
use daimc::{
    Ask, Daimc, Error, Fit, Initialisation, Neighbours, Penalty, Preset, Result, Scale, View, ViewWeights,
    Views, aligned, gather_place, merge_replies, metrics, serve, simulate,
};

const TOTAL: usize = 50_000;

struct Data {
    dense: Vec<f64>,
    sparse: Vec<f64>,
    present: Vec<Vec<bool>>,
    truth: Vec<usize>,
}

fn data(clusters: usize) -> Data {
    let truth = Synthetic::new(TOTAL, clusters).seed(3).truth();
    let mut dense = around(&truth, 6, 0.6, 1);
    // Single cells are missing, too, in instances of the first holder alone.
    (0..900).step_by(7).for_each(|cell| dense[cell] = f64::NAN);
    Data {
        dense,
        sparse: mostly_zero(&truth, 12, false, 2),
        present: simulate::missing(TOTAL, &[0.3, 0.4], 5).unwrap(),
        truth,
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

/// A request for a holder, and the line for its answer.
type Asked = (Vec<u8>, Sender<Result<Vec<u8>>>);

/// A holder at work; it ends when nobody can ask it any more.
fn hold(views: Views<'static>, range: Range<usize>, total: usize) -> Sender<Asked> {
    let (line, asked): (Sender<Asked>, Receiver<Asked>) = channel();
    std::thread::spawn(move || {
        let mut reply: Option<Sender<Result<Vec<u8>>>> = None;
        serve(&views, range, total, |answer| {
            if let (Some(reply), Some(answer)) = (reply.take(), answer) {
                reply.send(answer).unwrap();
            }
            let (request, line) = asked.recv().ok()?;
            reply = Some(line);
            Some(request)
        })
    });
    line
}

fn tell(holder: &Sender<Asked>, request: &[u8]) -> Result<Vec<u8>> {
    let (line, answer) = channel();
    holder.send((request.to_vec(), line)).unwrap();
    answer.recv().unwrap()
}

/// What a fit leaves: the model, and V, clusters and confidence of all instances.
type Found = (Fit, Vec<f64>, Vec<usize>, Vec<f64>);

/// A fit with several holders; before a request of this number the first holder is lost.
fn fit(fit: &Daimc, data: &Data, parts: usize, lost: Option<u64>) -> Result<Found> {
    fit_parts(fit, TOTAL, |range| data.views(range, true), parts, lost)
}

/// The same of any data, given the views of a range of the instances.
fn fit_parts(
    fit: &Daimc,
    total: usize,
    views: impl Fn(Range<usize>) -> Views<'static> + Sync,
    parts: usize,
    lost: Option<u64>,
) -> Result<Found> {
    let ranges = aligned(total, parts);
    let holder = |range: &Range<usize>| hold(views(range.clone()), range.clone(), total);
    let mut holders: Vec<Sender<Asked>> = ranges.iter().map(holder).collect();
    let mut sent: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let carry = |ask: &Ask<'_>| {
        sent.insert(ask.number, ask.request.to_vec());
        sent.retain(|number, _| ask.setup.contains(number) || *number == ask.number);
        if lost == Some(ask.number) {
            holders[0] = holder(&ranges[0]);
            for number in ask.setup {
                tell(&holders[0], &sent[number])?;
            }
        }
        let replies = holders.iter().rev().map(|holder| tell(holder, ask.request));
        let merged = replies.reduce(|all, reply| merge_replies(&all?, &reply?));
        merged.unwrap()
    };
    let (fit, last) = fit.fit_elsewhere(total, carry, |_| std::ops::ControlFlow::Continue(()))?;
    let (mut v, mut labels, mut confidence) = (Vec::new(), Vec::new(), Vec::new());
    for (holder, range) in holders.iter().zip(&ranges) {
        let place = gather_place(&last, range.len(), |request| tell(holder, request))?;
        v.extend(place.latent.into_values());
        labels.extend(place.labels);
        confidence.extend(place.confidence);
    }
    Ok((fit, v, labels, confidence))
}

/// Whether a fit elsewhere is the same to the last bit as one at one place.
fn assert_the_same((fit, v, labels, confidence): &Found, one: &Fit) {
    assert_eq!((&fit.neighbours, labels), (&one.neighbours, &one.labels));
    assert_eq!(bits(v), bits(one.latent.values()));
    assert_eq!(bits(confidence), bits(&one.confidence));
    assert_eq!(fit.model, one.model);
    assert_eq!((fit.objective, &fit.history, fit.outcome), (one.objective, &one.history, one.outcome));
    assert_eq!((&fit.missing_cells, fit.significance), (&one.missing_cells, one.significance));
    assert_eq!(fit.missingness, one.missingness);
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn holders_give_the_bits_of_a_fit_at_one_place() {
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

#[test]
fn many_clusters_start_from_the_columns_of_v_wherever_it_is() {
    let data = data(22);
    let options = Daimc::new(22).neighbours(Neighbours::Off).assess(false).max_iterations(3).restarts(2);
    let one = options.fit(&data.views(0..TOTAL, false)).unwrap();
    assert_the_same(&fit(&options, &data, 2, None).unwrap(), &one);
}

#[test]
fn a_holder_that_is_lost_at_any_time_comes_back() {
    let data = data(3);
    let options = Daimc::new(3).neighbours(Neighbours::Off).assess(false);
    let (undisturbed, _, labels, _) = fit(&options, &data, 3, None).unwrap();
    let expected = metrics::accuracy(&data.truth, &labels).unwrap();
    assert!(expected > 0.9, "{expected}");
    // From the first request to the last: before V, while it is made, between sweeps and after them.
    let requests = 20 + undisturbed.iterations() as u64;
    for lost in (1..requests).step_by(9) {
        let (_, v, labels, _) = fit(&options, &data, 3, Some(lost)).unwrap();
        let found = metrics::accuracy(&data.truth, &labels).unwrap();
        assert!((found - expected).abs() < 0.01, "{lost}: {found}, {expected} undisturbed");
        assert!(v.iter().all(|value| value.is_finite()));
    }
}

#[test]
fn what_needs_all_rows_at_one_place_is_refused() {
    let never = |_: &Ask<'_>| -> Result<Vec<u8>> { panic!("nobody is asked") };
    let refused = |fit: Daimc| {
        fit.fit_elsewhere(TOTAL, never, |_| std::ops::ControlFlow::Continue(())).unwrap_err().to_string()
    };
    for (fit, option) in [
        (Daimc::new(3).runs(2), "runs"),
        (Daimc::new(3).penalty(Penalty::Auto), "penalty"),
        (Daimc::new(3).view_weights(ViewWeights::Learned), "view_weights"),
    ] {
        let message = refused(fit);
        assert!(message.contains(option) && message.contains("several hold the rows"), "{message}");
    }
}

#[test]
fn parts_that_do_not_fit_together_are_told() {
    let data = data(3);
    let fitted = |holders: Vec<Sender<Asked>>| {
        let carry = |ask: &Ask<'_>| {
            let replies = holders.iter().map(|holder| tell(holder, ask.request));
            replies.reduce(|all, reply| merge_replies(&all?, &reply?)).unwrap()
        };
        let fit = Daimc::new(3).fit_elsewhere(TOTAL, carry, |_| std::ops::ControlFlow::Continue(()));
        fit.unwrap_err().to_string()
    };
    let ranges = aligned(TOTAL, 3);
    let hold_some =
        |which: usize| hold(data.views(ranges[which].clone(), true), ranges[which].clone(), TOTAL);
    assert!(fitted(vec![hold_some(0), hold_some(2)]).contains("nobody holds"));
    let double = View::dense("dense", 6, vec![1.0; ranges[1].len() * 6]).unwrap();
    let other = sparse("sparse", 12, &data.sparse[..ranges[1].len() * 12]);
    let other = hold(Views::part(vec![double, other]).unwrap(), ranges[1].clone(), TOTAL);
    let message = fitted(vec![hold_some(0), other, hold_some(2)]);
    assert!(message.contains("'dense'") && message.contains("precision"), "{message}");
    // Bytes that are no request, and requests that come too early.
    let holder = hold_some(0);
    assert!(tell(&holder, &[250, 1, 2]).is_err());
    assert!(
        merge_replies(&[], &[]).is_err() && gather_place(&[1], 1, |_| Ok::<_, Error>(Vec::new())).is_err()
    );
    assert!(serve(&data.views(0..100, true), 0..100, TOTAL, |_| None).is_err());
}

/// The bytes of an iteration with so many holders: the request, the largest reply, the merged one, and all that travel if
/// eight replies meet at one place, where one of them is already, and the last eight where the fit is driven; and the requests of the fit that are no iterations.
fn traffic(instances: usize, features: &[usize], clusters: usize, parts: usize) -> ([usize; 4], usize) {
    let truth = Synthetic::new(instances, clusters).seed(3).truth();
    let values: Vec<Vec<f32>> =
        features.iter().map(|d| narrow(&around(&truth, *d, 0.6, *d as u64))).collect();
    let ranges = aligned(instances, parts);
    let holder = |range: &std::ops::Range<usize>| {
        let view = |(number, (values, d)): (usize, (&Vec<f32>, &usize))| {
            View::dense(number.to_string(), *d, values[range.start * d..range.end * d].to_vec()).unwrap()
        };
        let views = Views::part(values.iter().zip(features).enumerate().map(view).collect()).unwrap();
        hold(views, range.clone(), instances)
    };
    let holders: Vec<Sender<Asked>> = ranges.iter().map(holder).collect();
    let last = std::sync::Mutex::new(([0; 4], 0));
    let carry = |ask: &Ask<'_>| {
        let mut replies: Vec<Vec<u8>> =
            holders.iter().map(|holder| tell(holder, ask.request)).collect::<Result<_>>()?;
        let largest = replies.iter().map(Vec::len).max().unwrap();
        let mut network = holders.len() * ask.request.len();
        let merged = |group: &[Vec<u8>]| {
            let (first, others) = group.split_first().unwrap();
            others.iter().try_fold(first.clone(), |all, reply| merge_replies(&all, reply))
        };
        while replies.len() > 8 {
            let groups = replies.chunks(8);
            network += groups.clone().flat_map(|group| &group[1..]).map(Vec::len).sum::<usize>();
            replies = groups.map(merged).collect::<Result<_>>()?;
        }
        network += replies.iter().map(Vec::len).sum::<usize>();
        let merged = merged(&replies)?;
        let mut last = last.lock().unwrap();
        *last = ([ask.request.len(), largest, merged.len(), network], last.1 + 1);
        Ok(merged)
    };
    let mut iterations = Vec::new();
    let fit = Daimc::new(clusters).max_iterations(3).neighbours(Neighbours::Off);
    fit.fit_elsewhere(instances, carry, |_| {
        iterations.push(last.lock().unwrap().0);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert!(iterations.iter().all(|own| *own == iterations[0]), "{iterations:?}");
    (iterations[0], last.into_inner().unwrap().1 - iterations.len())
}

#[test]
fn what_travels_is_what_the_estimate_says() {
    // Eight leaves: with three holders, some have leaves that cannot be added up yet.
    for (features, clusters, parts) in [(vec![24], 4, 1), (vec![24], 4, 3), (vec![40, 9, 3], 6, 8)] {
        let n = 8 * 16_384;
        let shape = |d: &usize| Shape { present: n, features: *d, entries: n * d, value: 4, sparse: false };
        let shapes: Vec<Shape> = features.iter().map(shape).collect();
        let Traffic { request, reply, merged, network, .. } =
            Distributed::new(n, &shapes, clusters, parts, 1).traffic;
        let (measured, others) = traffic(n, &features, clusters, parts);
        println!(
            "{features:?}, K = {clusters}, {parts} holders: {measured:?} bytes, {others} other requests"
        );
        for (told, measured) in [request, reply, merged, network].into_iter().zip(measured) {
            let measured = measured as f64;
            assert!((told / measured - 1.0).abs() < 0.1, "{features:?}: {told} bytes told, {measured} sent");
        }
    }
}
