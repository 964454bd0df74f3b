//! How well real data are clustered: means over fixed seeds and masks, each seed being that of the mask and of the fit.

use daimc::{Daimc, Neighbours, Preset, Views, metrics};

use crate::common::{digit, three_sources};

/// The mean AC and NMI of five seeds.
fn mean(fit: &Daimc, data: impl Fn(u64) -> (Views<'static>, Vec<usize>)) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for seed in 0..5 {
        let (views, truth) = data(seed);
        let fitted = fit.clone().seed(seed).fit(&views).unwrap();
        let scores = metrics::scores(&truth, &fitted.labels).unwrap();
        sum = (sum.0 + scores.ac / 5.0, sum.1 + scores.nmi / 5.0);
    }
    sum
}

#[track_caller]
fn assert_reaches((ac, nmi): (f64, f64), floor: (f64, f64), case: &str) {
    println!("{case}: AC {ac:.4}, NMI {nmi:.4}; at least {} and {}", floor.0, floor.1);
    assert!(ac >= floor.0 && nmi >= floor.1, "{case}: AC {ac:.4}, NMI {nmi:.4}, needed {floor:?}");
}

type Floors<'a> = &'a [(f64, (f64, f64))];

/// Every share of missing instances, with what has to be reached.
const PAPER: Floors<'static> = &[(0.0, (0.82, 0.76)), (0.3, (0.78, 0.71)), (0.5, (0.75, 0.64))];
const ALONE: Floors<'static> = &[(0.0, (0.84, 0.76)), (0.3, (0.83, 0.73)), (0.5, (0.81, 0.68))];
const NEIGHBOURHOODS: Floors<'static> =
    &[(0.0, (0.93, 0.88)), (0.3, (0.91, 0.87)), (0.5, (0.91, 0.84)), (0.7, (0.85, 0.75))];

fn paper() -> Daimc {
    Daimc::new(10).preset(Preset::Paper).alpha(10.0).beta(0.1)
}

fn alone() -> Daimc {
    Daimc::new(10).neighbours(Neighbours::Off)
}

#[track_caller]
fn assert_digit(fit: &Daimc, floors: Floors<'_>) {
    for &(rate, floor) in floors {
        assert_reaches(mean(fit, |seed| digit(rate, seed)), floor, &format!("rate {rate}"));
    }
}

#[test]
fn paper_preset_reaches_the_authors_code_on_digit() {
    assert_digit(&paper(), &PAPER[1..2]);
}

#[test]
fn default_preset_is_better_on_the_same_masks() {
    assert_digit(&alone(), &ALONE[1..2]);
}

#[test]
fn neighbourhoods_make_it_better_still() {
    assert_digit(&Daimc::new(10), &NEIGHBOURHOODS[1..2]);
}

/// The same for every share.
mod studies {
    use super::*;

    #[test]
    #[ignore = "a study: make test-all"]
    fn paper_preset_reaches_the_authors_code_on_digit() {
        assert_digit(&paper(), PAPER);
    }

    #[test]
    #[ignore = "a study: make test-all"]
    fn default_preset_is_better_on_the_same_masks() {
        assert_digit(&alone(), ALONE);
    }

    #[test]
    #[ignore = "a study: make test-all"]
    fn neighbourhoods_make_it_better_still() {
        assert_digit(&Daimc::new(10), NEIGHBOURHOODS);
    }
}

#[test]
fn three_sources_is_clustered_as_it_is_incomplete_by_nature() {
    let Some((views, truth)) = three_sources() else { return };
    let data = |_| (views.clone(), truth.clone());
    assert_reaches(mean(&Daimc::new(6).preset(Preset::Paper), data), (0.59, 0.0), "paper preset");
    assert_reaches(mean(&Daimc::new(6), data), (0.88, 0.75), "default preset");
}
