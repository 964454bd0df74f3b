//! Simulated missing views: which instances an experiment hides.

mod within;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Error;

pub use within::missing_within;

/// Draws which instances each view keeps when a share of them goes missing at random.
///
/// Returns one presence vector per view, `true` where the instance is present. View `v` loses `round(rates[v] · instances)`
/// instances, with equal probability, and every instance keeps at least one view; a view loses one less if only the rounding
/// leaves too few presences for that, as with half of 61 instances in each of two views. The same seed always gives the
/// same mask.
///
/// ```
/// let presence = daimc_core::simulate::missing(10, &[0.3, 0.5], 42)?;
/// assert_eq!(presence[0].iter().filter(|&&present| present).count(), 7);
/// assert_eq!(presence[1].iter().filter(|&&present| present).count(), 5);
/// assert!((0..10).all(|instance| presence[0][instance] || presence[1][instance]));
/// # Ok::<(), daimc_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyInput`] without instances or without rates; [`Error::Simulation`] if a rate is not between 0 and 1,
/// would empty its view, or if the rates together leave too few presences for every instance to keep one.
pub fn missing(instances: usize, rates: &[f64], seed: u64) -> Result<Vec<Vec<bool>>, Error> {
    let removals = removals(instances, rates)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut presence: Vec<Vec<bool>> =
        removals.into_iter().map(|removed| keep_all_but(removed, instances, &mut rng)).collect();
    repair(&mut presence, instances, &mut rng);
    Ok(presence)
}

/// The number of instances that each view loses, after checking that this is possible.
fn removals(instances: usize, rates: &[f64]) -> Result<Vec<usize>, Error> {
    let empty = |what: &str| Error::EmptyInput { what: what.into() };
    let impossible = |reason| Error::Simulation { reason };
    if instances == 0 {
        return Err(empty("instances"));
    }
    let Some((highest, rate)) = rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else {
        return Err(empty("rates"));
    };
    check_rates(rates)?;
    let mut removals: Vec<usize> = rates.iter().map(|rate| share(*rate, instances)).collect();
    let remedy = || {
        format!(
            "a common share of at most {:?} works for {instances} instances in {} views",
            largest_common_rate(instances, rates.len()),
            rates.len()
        )
    };
    if removals[highest] == instances {
        return Err(impossible(format!(
            "the share {rate:?} leaves no instance in view {}; {}",
            highest + 1,
            remedy()
        )));
    }
    let kept = |removals: &[usize]| {
        removals.iter().fold(0_usize, |kept, removed| kept.saturating_add(instances - removed))
    };
    // Without rounding.
    let possible = rates.iter().map(|rate| 1.0 - rate).sum::<f64>() >= 1.0 - ROUNDING;
    for view in (0..rates.len()).rev().filter(|_| possible) {
        if kept(&removals) < instances && float(removals[view]) > rates[view] * float(instances) {
            removals[view] -= 1;
        }
    }
    let kept = kept(&removals);
    if kept < instances {
        return Err(impossible(format!(
            "the shares, up to {rate:?} in view {}, keep {kept} presences over all views, \
             too few for each of {instances} instances to keep one; {}",
            highest + 1,
            remedy()
        )));
    }
    Ok(removals)
}

/// The error that sums of rates may have.
const ROUNDING: f64 = 1e-12;

/// Fails if a rate is not between 0 and 1.
fn check_rates(rates: &[f64]) -> Result<(), Error> {
    // `contains` is false for NaN.
    let outside = |rate: &f64| !(0.0..=1.0).contains(rate);
    let Some(view) = rates.iter().position(outside) else { return Ok(()) };
    let reason = format!("the share {:?} of view {} is not between 0 and 1", rates[view], view + 1);
    Err(Error::Simulation { reason })
}

/// The largest rate that is possible for all views: `1 − 1 / views` or, if that would empty a view, the rate with which each keeps
/// `⌈instances / views⌉`.
fn largest_common_rate(instances: usize, views: usize) -> f64 {
    let whole = 1.0 - 1.0 / float(views);
    if share(whole, instances) < instances {
        return whole;
    }
    float(instances - instances.div_ceil(views)) / float(instances)
}

/// `round(rate · instances)`, as the largest count with `count − ½ ≤ rate · instances`.
fn share(rate: f64, instances: usize) -> usize {
    let target = rate * float(instances);
    let (mut low, mut high) = (0, instances);
    while low < high {
        let middle = high - (high - low) / 2;
        if float(middle) - 0.5 <= target {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The nearest `f64`, exact up to 2^53.
fn float(integer: usize) -> f64 {
    integer.to_be_bytes().into_iter().fold(0.0, |value, byte| value * 256.0 + f64::from(byte))
}

/// A view without `removed` instances; every subset of that size has the same probability.
fn keep_all_but(mut removed: usize, instances: usize, rng: &mut ChaCha8Rng) -> Vec<bool> {
    // Selection sampling (Knuth 3.4.2 S): the remaining removals are equally likely to be any of the remaining instances.
    (0..instances)
        .map(|instance| {
            let present = rng.random_range(0..instances - instance) >= removed;
            removed -= usize::from(!present);
            present
        })
        .collect()
}

/// Moves a presence from an instance with several views to each instance without any, in the same view, so that the
/// count of each view does not change.
///
/// The presence moved is drawn uniformly from those of instances with several. There always is one: the number of
/// presences `kept ≥ instances` does not change, so while one instance has none the other `instances − 1` share them,
/// and some have two.
fn repair(presence: &mut [Vec<bool>], instances: usize, rng: &mut ChaCha8Rng) {
    let mut coverage = vec![0_usize; instances];
    for view in presence.iter() {
        for (views, present) in coverage.iter_mut().zip(view) {
            *views += usize::from(*present);
        }
    }
    if !coverage.contains(&0) {
        return;
    }

    // All presences that can be moved, as `view · instances + instance`. None is added later: a recipient has one view,
    // and the coverage of other instances only decreases. Drawing without replacement and skipping instances with one
    // view left is thus a uniform draw among the rest, in linear total time.
    let mut candidates: Vec<usize> = (0..presence.len() * instances)
        .filter(|at| presence[at / instances][at % instances] && coverage[at % instances] >= 2)
        .collect();
    for orphan in 0..instances {
        while coverage[orphan] == 0 {
            let drawn = candidates.swap_remove(rng.random_range(0..candidates.len()));
            let (view, donor) = (drawn / instances, drawn % instances);
            if coverage[donor] >= 2 {
                presence[view][donor] = false;
                presence[view][orphan] = true;
                coverage[donor] -= 1;
                coverage[orphan] = 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn absent(view: &[bool]) -> usize {
        view.iter().filter(|&&present| !present).count()
    }

    fn coverage(presence: &[Vec<bool>], instance: usize) -> usize {
        presence.iter().filter(|view| view[instance]).count()
    }

    #[track_caller]
    fn reason(instances: usize, rates: &[f64]) -> String {
        match missing(instances, rates, 0) {
            Err(Error::Simulation { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn views_lose_exactly_their_share() {
        let presence = missing(1001, &[0.0, 0.1, 0.5, 0.9], 3).unwrap();
        let lost: Vec<usize> = presence.iter().map(|view| absent(view)).collect();
        assert_eq!(lost, [0, 100, 501, 901]);
    }

    #[test]
    fn every_instance_keeps_a_view() {
        for seed in 0..50 {
            let presence = missing(200, &[0.7, 0.6, 0.65], seed).unwrap();
            assert!((0..200).all(|instance| coverage(&presence, instance) >= 1));
        }
    }

    #[test]
    fn the_tightest_rates_leave_each_instance_one_view() {
        for seed in 0..50 {
            let presence = missing(10, &[0.8; 5], seed).unwrap();
            assert!(presence.iter().all(|view| absent(view) == 8));
            assert!((0..10).all(|instance| coverage(&presence, instance) == 1));
        }
    }

    #[test]
    fn the_seed_decides_the_mask() {
        let mask = |seed| missing(100, &[0.3, 0.5], seed).unwrap();
        assert_eq!(mask(1), mask(1));
        assert_ne!(mask(1), mask(2));
    }

    // Published experiments name a seed: its mask must not change with the version.
    #[test]
    fn the_mask_of_a_seed_stays_the_same() {
        let drawn: Vec<String> = missing(12, &[0.5, 0.75, 0.75], 7)
            .unwrap()
            .iter()
            .map(|view| view.iter().map(|&p| if p { '1' } else { '.' }).collect())
            .collect();
        assert_eq!(drawn, [".1..111..1.1", "1..1...1....", "..1.....1.1."]);
    }

    #[test]
    fn no_instance_is_favoured() {
        let (instances, rates, seeds) = (20, [0.5, 0.6, 0.7], 4000_u32);
        let mut lost = vec![[0_u32; 3]; instances];
        for seed in 0..seeds {
            let presence = missing(instances, &rates, seed.into()).unwrap();
            for (view, present) in presence.iter().enumerate() {
                for (instance, present) in present.iter().enumerate() {
                    lost[instance][view] += u32::from(!present);
                }
            }
        }
        // Five standard deviations of a count of 4000 draws at probability `rate`.
        for counts in lost {
            for (count, rate) in counts.into_iter().zip(rates) {
                let tolerance = 5.0 * (f64::from(seeds) * rate * (1.0 - rate)).sqrt();
                assert!((f64::from(count) - f64::from(seeds) * rate).abs() < tolerance);
            }
        }
    }

    #[test]
    fn shares_round_half_up() {
        let shares = [0.0, 0.049, 0.05, 0.25, 0.949, 0.95, 1.0].map(|rate| share(rate, 10));
        assert_eq!(shares, [0, 0, 1, 3, 9, 10, 10]);
    }

    #[test]
    fn rates_outside_zero_to_one_are_named() {
        assert_eq!(reason(10, &[0.1, 1.5]), "the share 1.5 of view 2 is not between 0 and 1");
        assert_eq!(reason(10, &[-0.1, 0.2]), "the share -0.1 of view 1 is not between 0 and 1");
        assert_eq!(reason(10, &[f64::NAN]), "the share NaN of view 1 is not between 0 and 1");
    }

    #[test]
    fn an_emptied_view_is_named_with_a_rate_that_works() {
        assert_eq!(
            reason(10, &[0.0, 0.97]),
            "the share 0.97 leaves no instance in view 2; \
             a common share of at most 0.5 works for 10 instances in 2 views"
        );
    }

    #[test]
    fn too_few_presences_are_counted_with_a_rate_that_works() {
        assert_eq!(
            reason(10, &[0.6, 0.8]),
            "the shares, up to 0.8 in view 2, keep 6 presences over all views, \
             too few for each of 10 instances to keep one; \
             a common share of at most 0.5 works for 10 instances in 2 views"
        );
    }

    #[test]
    fn rounding_leaves_no_instance_without_a_view() {
        for (instances, rates, lost) in [
            (61, vec![0.5, 0.5], vec![31, 30]),
            (61, vec![0.3, 0.7], vec![18, 43]),
            (61, vec![0.5, 0.5, 0.5], vec![31, 31, 31]),
            (7, vec![2.0 / 3.0; 3], vec![5, 5, 4]),
        ] {
            let presence = missing(instances, &rates, 3).unwrap();
            assert_eq!(presence.iter().map(|view| absent(view)).collect::<Vec<_>>(), lost);
            assert!((0..instances).all(|instance| coverage(&presence, instance) >= 1));
        }
        assert!(missing(61, &[0.51, 0.5], 0).is_err());
    }

    #[test]
    fn nothing_to_simulate_is_an_error() {
        assert!(matches!(missing(0, &[0.1], 0), Err(Error::EmptyInput { .. })));
        assert!(matches!(missing(10, &[], 0), Err(Error::EmptyInput { .. })));
    }

    proptest! {
        #[test]
        fn any_sizes_and_rates_give_a_valid_mask_or_an_error(
            instances in 0_usize..60,
            rates in proptest::collection::vec(
                prop_oneof![8 => 0.0..=1.0, 1 => any::<f64>()], 0..6),
            seed: u64,
        ) {
            if let Ok(presence) = missing(instances, &rates, seed) {
                prop_assert_eq!(presence.len(), rates.len());
                for (view, rate) in presence.iter().zip(&rates) {
                    let removed = rate * float(instances);
                    prop_assert!((float(absent(view)) - removed).abs() < 1.0);
                    prop_assert!(absent(view) < instances);
                }
                for instance in 0..instances {
                    prop_assert!(coverage(&presence, instance) >= 1);
                }
            }
        }

        #[test]
        fn the_largest_common_rate_works_and_one_more_removal_does_not(
            instances in 1_usize..500,
            views in 1_usize..8,
        ) {
            let rate = largest_common_rate(instances, views);
            prop_assert!(missing(instances, &vec![rate; views], 0).is_ok());
            let more = rate + 1.0 / float(instances);
            prop_assert!(missing(instances, &vec![more; views], 0).is_err());
        }
    }
}
