//! Additional missing instances in data that are already incomplete.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{check_rates, float, keep_all_but, missing, share};
use crate::Error;

/// Draws which instances each view keeps when a share of its present instances goes missing at random.
///
/// `present` has a list for each view, `true` for present instances. View `v` loses `round(rates[v] · shown)` of
/// its present instances, no instance is added, and every instance that is present in some view keeps at least one. A view loses
/// one less if its share was rounded up and an instance would be left without a view otherwise. For complete views the
/// result is that of [`missing`].
///
/// ```
/// let present = vec![vec![true, true, true, true], vec![false, true, true, true]];
/// let kept = daimc_core::simulate::missing_within(&present, &[0.25, 0.34], 7)?;
/// assert!(kept[0][0] && !kept[1][0]); // The first instance has but one view.
/// let count = |view: &Vec<bool>| view.iter().filter(|kept| **kept).count();
/// assert_eq!((count(&kept[0]), count(&kept[1])), (3, 2));
/// # Ok::<(), daimc_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyInput`] without instances or without views; [`Error::LengthMismatch`] if the lists differ in length or
/// there is not one rate for each; [`Error::Simulation`] if a rate is not between 0 and 1, would empty its view, or if
/// the rates together cannot leave a view to every instance.
pub fn missing_within(present: &[Vec<bool>], rates: &[f64], seed: u64) -> Result<Vec<Vec<bool>>, Error> {
    let wrong =
        |what: &str, expected, found| Err(Error::LengthMismatch { what: what.into(), expected, found });
    if rates.len() != present.len() {
        return wrong("rates, one for each view", present.len(), rates.len());
    }
    let instances = present.first().map_or(0, Vec::len);
    if let Some(other) = present.iter().find(|view| view.len() != instances) {
        return wrong("presence in a view", instances, other.len());
    }
    if instances == 0 || present.iter().flatten().all(|present| *present) {
        return missing(instances, rates, seed);
    }
    check_rates(rates)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kept = Vec::with_capacity(present.len());
    let mut rounded_up = Vec::with_capacity(present.len());
    for (view, (present, rate)) in present.iter().zip(rates).enumerate() {
        let shown: Vec<usize> = (0..instances).filter(|&i| present[i]).collect();
        let removed = share(*rate, shown.len());
        if removed == shown.len() {
            let reason = format!(
                "the share {rate:?} leaves none of the {} instances of view {}",
                shown.len(),
                view + 1
            );
            return Err(Error::Simulation { reason });
        }
        rounded_up.push(float(removed) > *rate * float(shown.len()));
        let mut own = vec![false; instances];
        let stay = keep_all_but(removed, shown.len(), &mut rng);
        shown.into_iter().zip(stay).for_each(|(i, stay)| own[i] = stay);
        kept.push(own);
    }
    Repair::new(present, kept, rounded_up, rng).run()
}

/// Gives a view to each instance that has lost all its views, without changing how many instances a view keeps.
///
/// Such an orphan takes the place of a *donor*, which keeps other views, in a view that it was present in originally.
/// If no instance of that view is a donor, one of them *moves* to another view that it was present in originally, in
/// the place of a donor there; and so on. These are augmenting paths: if none exists, no choice of removals leaves a
/// view to every instance.
struct Repair<'a> {
    present: &'a [Vec<bool>],
    kept: Vec<Vec<bool>>,
    /// Whether a view may lose one instance less, because its share was rounded up.
    rounded_up: Vec<bool>,
    /// The number of views that each instance keeps.
    coverage: Vec<usize>,
    /// For each view, instances that keep it and others. Outdated entries are dropped when they are drawn.
    donors: Vec<Vec<usize>>,
    /// For each view and each other one, instances that keep only the first and were originally present in the second.
    movers: Vec<Vec<Vec<usize>>>,
    rng: ChaCha8Rng,
}

impl<'a> Repair<'a> {
    fn new(present: &'a [Vec<bool>], kept: Vec<Vec<bool>>, rounded_up: Vec<bool>, rng: ChaCha8Rng) -> Self {
        let (views, instances) = (kept.len(), kept[0].len());
        let coverage = (0..instances).map(|i| kept.iter().filter(|view| view[i]).count()).collect();
        let movers = vec![vec![Vec::new(); views]; views];
        let donors = vec![Vec::new(); views];
        let mut repair = Self { present, kept, rounded_up, coverage, donors, movers, rng };
        (0..instances).for_each(|i| repair.list(i));
        repair
    }

    fn run(mut self) -> Result<Vec<Vec<bool>>, Error> {
        for orphan in 0..self.coverage.len() {
            let seen = || self.present.iter().any(|view| view[orphan]);
            if self.coverage[orphan] == 0 && seen() && !self.adopt(orphan) && !self.spare(orphan) {
                let alone =
                    (0..self.coverage.len()).filter(|&i| self.present.iter().filter(|v| v[i]).count() == 1);
                return Err(Error::Simulation {
                    reason: format!(
                        "these shares leave too few presences for every instance to keep a view; {} of {} instances are \
                         present in one view only, which they must keep: use a lower share",
                        alone.count(),
                        self.coverage.len()
                    ),
                });
            }
        }
        Ok(self.kept)
    }

    /// Registers an instance as a donor or for moves.
    fn list(&mut self, instance: usize) {
        for view in (0..self.kept.len()).filter(|&view| self.kept[view][instance]) {
            if self.coverage[instance] > 1 {
                self.donors[view].push(instance);
                continue;
            }
            for other in (0..self.kept.len()).filter(|&other| other != view && self.present[other][instance])
            {
                self.movers[view][other].push(instance);
            }
        }
    }

    /// Finds a view for an instance that has none; `false` if there cannot be one.
    fn adopt(&mut self, orphan: usize) -> bool {
        let views = self.kept.len();
        // For each view reached, the instance that would take a place in it, and the view that it comes from.
        let mut taker: Vec<Option<(usize, Option<usize>)>> = vec![None; views];
        let mut reached: Vec<usize> = (0..views).filter(|&view| self.present[view][orphan]).collect();
        // In random order.
        for last in (1..reached.len()).rev() {
            reached.swap(last, self.rng.random_range(0..=last));
        }
        reached.iter().for_each(|&view| taker[view] = Some((orphan, None)));
        let mut next = 0;
        while let Some(&view) = reached.get(next) {
            next += 1;
            let (kept, coverage) = (&self.kept[view], &self.coverage);
            if let Some(donor) = draw(&mut self.donors[view], &mut self.rng, |i| kept[i] && coverage[i] > 1) {
                self.pass_on(donor, view, &taker);
                return true;
            }
            for other in 0..views {
                if taker[other].is_some() {
                    continue;
                }
                let movers = &mut self.movers[view][other];
                if let Some(mover) = draw(movers, &mut self.rng, |i| kept[i] && coverage[i] == 1) {
                    taker[other] = Some((mover, Some(view)));
                    reached.push(other);
                }
            }
        }
        false
    }

    /// Lets an instance keep a view whose share was rounded up; `false` if it has none.
    fn spare(&mut self, orphan: usize) -> bool {
        let Some(view) =
            (0..self.kept.len()).find(|&view| self.rounded_up[view] && self.present[view][orphan])
        else {
            return false;
        };
        self.rounded_up[view] = false;
        self.kept[view][orphan] = true;
        self.coverage[orphan] = 1;
        self.list(orphan);
        true
    }

    /// The donor gives up its place in the view to the next instance of the path, which gives up its own place to the
    /// one before, down to the orphan.
    fn pass_on(&mut self, donor: usize, view: usize, taker: &[Option<(usize, Option<usize>)>]) {
        self.kept[view][donor] = false;
        self.coverage[donor] -= 1;
        let mut place = Some(view);
        while let Some((view, (instance, from))) = place.and_then(|view| Some((view, taker[view]?))) {
            self.kept[view][instance] = true;
            match from {
                Some(from) => self.kept[from][instance] = false,
                None => self.coverage[instance] = 1,
            }
            self.list(instance);
            place = from;
        }
        self.list(donor);
    }
}

/// A random entry of a list among those that are still valid; it stays in the list.
fn draw(list: &mut Vec<usize>, rng: &mut ChaCha8Rng, valid: impl Fn(usize) -> bool) -> Option<usize> {
    while !list.is_empty() {
        let at = rng.random_range(0..list.len());
        if valid(list[at]) {
            return Some(list[at]);
        }
        list.swap_remove(at);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(view: &[bool]) -> usize {
        view.iter().filter(|here| **here).count()
    }

    #[track_caller]
    fn check(present: &[Vec<bool>], rates: &[f64], kept: &[Vec<bool>]) {
        for (view, (before, after)) in present.iter().zip(kept).enumerate() {
            assert!(before.iter().zip(after).all(|(before, after)| *before || !after), "nothing appears");
            let (lost, exact) = (count(before) - count(after), rates[view] * float(count(before)));
            let rounded = share(rates[view], count(before));
            assert!(lost == rounded || lost + 1 == rounded && float(rounded) > exact, "view {view}: {lost}");
        }
        for i in 0..present[0].len() {
            assert_eq!(present.iter().any(|view| view[i]), kept.iter().any(|view| view[i]), "instance {i}");
        }
    }

    #[test]
    fn complete_views_lose_what_they_always_lost() {
        let rates = [0.3, 0.5, 0.6];
        let complete = vec![vec![true; 200]; 3];
        assert_eq!(missing_within(&complete, &rates, 5).unwrap(), missing(200, &rates, 5).unwrap());
    }

    #[test]
    fn the_only_view_of_an_instance_is_left_to_it() {
        // A quarter lacks the second view; half of the first can be removed, but only where the second is present.
        let present = vec![vec![true; 400], (0..400).map(|i| i % 4 > 0).collect()];
        for seed in 0..20 {
            let rates = [0.5, 0.3];
            check(&present, &rates, &missing_within(&present, &rates, seed).unwrap());
        }
    }

    #[test]
    fn places_are_passed_on_over_several_views_where_that_is_the_only_way() {
        // Each view contains its own instances and those of the next: a chain.
        let present: Vec<Vec<bool>> =
            (0..4).map(|view| (0..50).map(|i| i / 10 == view || i / 10 == view + 1).collect()).collect();
        for seed in 0..50 {
            let rates = [0.35, 0.35, 0.35, 0.35];
            check(&present, &rates, &missing_within(&present, &rates, seed).unwrap());
        }
    }

    #[test]
    fn an_odd_number_of_instances_can_lose_half_of_two_views() {
        // 61 instances, and one that is absent from both views.
        let present = vec![(0..62).map(|i| i != 7).collect::<Vec<bool>>(); 2];
        for seed in 0..20 {
            check(&present, &[0.5, 0.5], &missing_within(&present, &[0.5, 0.5], seed).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let present = vec![vec![true; 10], (0..10).map(|i| i < 2).collect()];
        let error = missing_within(&present, &[0.5, 0.0], 0).unwrap_err().to_string();
        assert!(error.contains("8 of 10 instances are present in one view only"), "{error}");
        assert!(missing_within(&present, &[0.2, 0.0], 0).is_ok());
        assert!(
            missing_within(&present, &[0.0, 0.9], 0)
                .unwrap_err()
                .to_string()
                .contains("leaves none of the 2")
        );
        assert!(missing_within(&present, &[0.0, 1.5], 0).is_err());
        assert!(missing_within(&present, &[0.1], 0).is_err());
        assert!(missing_within(&[vec![true], vec![]], &[0.1, 0.1], 0).is_err());
        assert!(missing_within(&[], &[], 0).is_err());
    }

    proptest! {
        #[test]
        fn it_succeeds_wherever_something_is_possible(
            present in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 6), 3),
            rates in proptest::collection::vec(0.0..0.9, 3),
            seed in 0_u64..1000,
        ) {
            match missing_within(&present, &rates, seed) {
                Ok(kept) => check(&present, &rates, &kept),
                // Every choice of removals leaves an instance without a view, or empties one.
                Err(_) => prop_assert!(!possible(&present, &rates)),
            }
        }
    }

    /// Tries every mask.
    fn possible(present: &[Vec<bool>], rates: &[f64]) -> bool {
        let choices = |view: usize| {
            let whole = (0..6).fold(0_u32, |bits, i| bits | u32::from(present[view][i]) << i);
            let stay = count(&present[view]) - share(rates[view], count(&present[view]));
            (0..64_u32)
                .filter(move |bits| bits & !whole == 0 && bits.count_ones() as usize == stay && stay > 0)
        };
        let seen =
            (0..6).filter(|&i| present.iter().any(|view| view[i])).fold(0_u32, |bits, i| bits | 1 << i);
        choices(0).any(|a| choices(1).any(|b| choices(2).any(|c| (a | b | c) == seen)))
    }
}
