//! One pass over a stream compared with OPIMC, the online method of the field, on the same batches.

use std::ops::ControlFlow;
use std::time::Instant;

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Online, StreamProgress, Views, metrics, simulate};
use daimc_experiments::methods::{Method, Opimc};

/// AC and seconds of a fit to all, of one pass, and of OPIMC with blocks of the same size; and the seconds that the second and
/// the last batch of the pass took.
fn race(views: &Views<'_>, truth: &[usize], clusters: usize, batches: usize, seed: u64) -> [f64; 8] {
    let timed = |work: &mut dyn FnMut() -> Vec<usize>| {
        let start = Instant::now();
        let labels = work();
        (metrics::accuracy(truth, &labels).unwrap(), start.elapsed().as_secs_f64())
    };
    let (size, mut ends) = (truth.len() / batches, Vec::new());
    let fit = Daimc::new(clusters).neighbours(Neighbours::Off).assess(false).seed(seed);
    let whole = timed(&mut || fit.fit(views).unwrap().labels);
    let begun = Instant::now();
    let online = timed(&mut || {
        let each = |progress: StreamProgress<'_>| {
            if !matches!(progress, StreamProgress::Placed(_)) {
                ends.push(begun.elapsed().as_secs_f64());
            }
            ControlFlow::Continue(())
        };
        Online::new().fit(&fit, views, size, each).unwrap().labels
    });
    let opimc = Opimc { block: size, ..Opimc::default() };
    let opimc = timed(&mut || {
        opimc.fit(views, clusters, seed, &mut |_, _| ControlFlow::Continue(())).unwrap().labels
    });
    let batch = |number: usize| ends[number] - ends[number - 1];
    let last = batch(ends.len() - 1);
    [whole.0, online.0, opimc.0, whole.1, online.1, opimc.1, batch(1), last]
}

#[track_caller]
fn compare(
    case: &str,
    clusters: usize,
    batches: usize,
    seeds: u64,
    data: impl Fn(u64) -> (Views<'static>, Vec<usize>),
) {
    let mut sums = [0.0; 8];
    for seed in 0..seeds {
        let (views, truth) = data(seed);
        let found = race(&views, &truth, clusters, batches, seed);
        sums.iter_mut().zip(found).for_each(|(sum, own)| *sum += own / seeds as f64);
    }
    let [whole, online, opimc, seconds, pass, theirs, second, last] = sums;
    println!(
        "{case}, {batches} batches: AC at once {whole:.3}, one pass {online:.3}, OPIMC {opimc:.3}; seconds {seconds:.2}, {pass:.2}, \
         {theirs:.2}; the second batch {second:.3}, the last {last:.3}"
    );
    assert!(online > whole - 0.03, "{case}");
}

fn digit(rate: f64, seed: u64) -> (Views<'static>, Vec<usize>) {
    let (views, truth) = daimc::datasets::digit();
    let present = simulate::missing(2000, &[rate; 5], seed).unwrap();
    let views = views.into_iter().filter(|view| view.name() != "mor").zip(&present);
    (Views::new(views.map(|(view, present)| view.mask(present).unwrap()).collect()).unwrap(), truth)
}

fn planted(instances: usize, seed: u64) -> (Views<'static>, Vec<usize>) {
    let data = Synthetic::new(instances, 20).noise(2.0).seed(seed);
    let present = simulate::missing(instances, &[0.3; 2], seed).unwrap();
    let views = ["a", "b"].iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f32>(name, 64).unwrap().mask(present).unwrap());
    (Views::new(views.collect()).unwrap(), data.truth())
}

mod studies {
    use super::*;

    #[test]
    #[ignore = "a study: make test-all"]
    fn digit_and_planted_streams() {
        for rate in [0.0, 0.5] {
            compare(&format!("Digit, {rate} missing"), 10, 10, 5, |seed| digit(rate, seed));
        }
        for batches in [10, 20, 50] {
            compare("planted, 100 000", 20, batches, 1, |seed| planted(100_000, seed));
        }
    }
}
