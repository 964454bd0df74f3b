//! Neighbour search over the rows of several partitions: rows are gathered, and clusters are sent back.

use super::*;
use daimc::Model;

#[test]
fn of_short_rows_give_the_bits_of_a_fit_in_one_process() {
    let data = data(3);
    let options = Daimc::new(3).seed(5).assess(false).neighbours(Neighbours::Refine);
    let one = options.fit(&data.views(0..TOTAL, false)).unwrap();
    assert_eq!(one.neighbours.used, Neighbours::Refine, "{}", one.neighbours.reason);
    assert!(one.model.references.is_some() && one.model.retained.is_some());
    for parts in [2, 4] {
        assert_the_same(&fit(&options, &data, parts, None).unwrap(), &one);
    }
}

fn nmi(truth: &[usize], labels: &[usize]) -> f64 {
    metrics::nmi(truth, labels, metrics::Normalisation::Max).unwrap()
}

/// A few more instances than one leaf, in a wide dense view and in a wide sparse view with few stored values.
struct Wide {
    dense: Vec<f32>,
    sparse: Vec<f64>,
    present: Vec<Vec<bool>>,
    truth: Vec<usize>,
}

const SOME: usize = 16_384 + 700;
const FEATURES: usize = 140;

impl Wide {
    fn new() -> Self {
        let truth = Synthetic::new(SOME, 4).seed(2).truth();
        let dense = narrow(&around(&truth, FEATURES, 6.0, 1));
        let sparse = mostly_zero(&truth, FEATURES, false, 3);
        Self { dense, sparse, present: simulate::missing(SOME, &[0.2, 0.7], 5).unwrap(), truth }
    }

    fn views(&self, range: Range<usize>, part: bool) -> Views<'static> {
        let cells = range.start * FEATURES..range.end * FEATURES;
        let dense = View::dense("dense", FEATURES, self.dense[cells.clone()].to_vec()).unwrap();
        let views = vec![
            dense.mask(&self.present[0][range.clone()]).unwrap(),
            sparse("sparse", FEATURES, &self.sparse[cells]).mask(&self.present[1][range]).unwrap(),
        ];
        if part { Views::part(views) } else { Views::new(views) }.unwrap()
    }

    fn fit(&self, options: &Daimc, parts: usize, lost: Option<u64>) -> (Found, u64) {
        let views = split(SOME, parts, |range| self.views(range, true));
        fit_parts(options, SOME, &views, lost).unwrap()
    }
}

#[test]
fn of_long_rows_are_those_of_their_projections() {
    let data = Wide::new();
    let options = Daimc::new(4).seed(1).neighbours(Neighbours::Refine).assess(false).max_iterations(15);
    let one = options.fit(&data.views(0..SOME, false)).unwrap();
    let (first, tasks) = data.fit(&options, 1, None);
    assert_eq!((first.0.neighbours.used, one.neighbours.used), (Neighbours::Refine, Neighbours::Refine));
    let (expected, found) = (nmi(&data.truth, &one.labels), nmi(&data.truth, &first.2));
    assert!(expected > 0.5 && found > expected - 0.01, "{found}, {expected} in one process");
    let ((fit, v, labels, confidence), _) = data.fit(&options, 2, None);
    assert_eq!((bits(&v), &labels, bits(&confidence)), (bits(&first.1), &first.2, bits(&first.3)));
    assert_eq!(fit.model, first.0.model);
    // New instances are compared with references, whose projections were gathered, as in one process.
    let kept = |model: &Model, labels: &[usize]| {
        let again = model.predict(&data.views(0..2000, false)).unwrap();
        again.iter().zip(labels).filter(|(again, own)| again == own).count()
    };
    let (again, expected) = (kept(&first.0.model, &first.2), kept(&one.model, &one.labels));
    assert!(again.abs_diff(expected) < 20, "{again}, {expected} in one process");
    // A partition that is replaced receives the clusters again, also while they are sent and while bases are fitted to them.
    for lost in tasks - 14..=tasks {
        let ((fit, v, labels, confidence), _) = data.fit(&options, 2, Some(lost));
        assert_eq!(
            (bits(&v), &labels, bits(&confidence)),
            (bits(&first.1), &first.2, bits(&first.3)),
            "{lost}"
        );
        assert_eq!(fit.model, first.0.model);
    }
}

#[cfg(feature = "digit")]
#[test]
fn of_digit_are_as_good_as_in_one_process() {
    let (views, truth) = daimc::datasets::digit();
    let present = simulate::missing(truth.len(), &[0.5; 6], 0).unwrap();
    let masked = views.iter().zip(&present).map(|(view, present)| view.clone().mask(present).unwrap());
    let views = Views::new(masked.collect()).unwrap();
    let options = Daimc::new(10).assess(false).seed(1);
    let one = options.fit(&views).unwrap();
    let (found, _) = fit_parts(&options, truth.len(), std::slice::from_ref(&views), None).unwrap();
    assert_eq!((found.0.neighbours.used, one.neighbours.used), (Neighbours::Auto, Neighbours::Auto));
    let (expected, found) = (nmi(&truth, &one.labels), nmi(&truth, &found.2));
    assert!(found > expected - 0.01, "{found}, {expected} in one process");
}

#[test]
fn are_off_without_the_memory_and_say_so() {
    let data = data(3);
    let options = Daimc::new(3).assess(false).max_iterations(5).memory(10_000_000);
    let (found, _, labels, _) = fit(&options, &data, 2, None).unwrap();
    let off = options.clone().neighbours(Neighbours::Off).fit(&data.views(0..TOTAL, false)).unwrap();
    assert_eq!((found.neighbours.used, labels), (Neighbours::Off, off.labels));
    let reason = found.neighbours.reason;
    assert!(
        reason.starts_with("neighbourhoods would take ") && reason.ends_with("available 10 MB"),
        "{reason}"
    );
    let asked = fit(&options.neighbours(Neighbours::Refine), &data, 2, None).unwrap_err().to_string();
    assert!(asked.contains("neighbours = refine: it would take "), "{asked}");
}
