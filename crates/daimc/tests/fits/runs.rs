//! Several runs, combined.

use std::ops::ControlFlow;

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Outcome, Views, metrics, simulate};

fn data(noise: f64) -> (Views<'static>, Vec<usize>) {
    let data = Synthetic::new(400, 5).noise(noise).seed(2);
    let present = simulate::missing(400, &[0.4, 0.4, 0.4], 2).unwrap();
    let views = [("a", 30), ("b", 20), ("c", 40)].into_iter().zip(&present);
    let views = views.map(|((name, d), present)| data.dense::<f64>(name, d).unwrap().mask(present).unwrap());
    (Views::new(views.collect()).unwrap(), data.truth())
}

#[test]
fn one_run_is_the_plain_fit() {
    let (views, _) = data(1.0);
    let plain = Daimc::new(5).seed(3).fit(&views).unwrap();
    let mut one = Daimc::new(5).seed(3).runs(1).fit(&views).unwrap();
    one.timings = plain.timings;
    assert_eq!(plain, one);
}

#[test]
fn runs_find_the_clusters_and_confidence_rises_with_their_agreement() {
    let (views, truth) = data(1.0);
    let fitted = Daimc::new(5).runs(4).fit(&views).unwrap();
    assert!(metrics::accuracy(&truth, &fitted.labels).unwrap() > 0.95);
    // Of four runs, 0 to 4 agree.
    let mut levels = fitted.confidence.clone();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    assert!(levels.len() <= 5 && levels.iter().all(|c| (0.0..=1.0).contains(c)), "{levels:?}");
    assert!(fitted.confidence.iter().sum::<f64>() / 400.0 > 0.9);
    assert_eq!(fitted.runs.len(), 4);
    assert!(fitted.runs.iter().all(|run| run.agreement > 0.8));
    assert_eq!(fitted.runs[0].seed, 0);
    assert!(fitted.runs[1..].iter().all(|run| run.seed > 1000 && run.iterations > 0 && run.objective > 0.0));
    let chosen = fitted.runs.iter().find(|run| run.iterations == fitted.iterations()).unwrap();
    assert_eq!(chosen.objective, fitted.history.last().unwrap().total);
    assert_eq!(Fit::from_bytes(&fitted.to_bytes().unwrap()).unwrap(), fitted);
    assert_eq!(fitted.model.predict(&views).unwrap(), fitted.labels);
}

#[test]
fn runs_have_the_same_bits_on_any_number_of_threads() {
    let (views, _) = data(2.0);
    let fit = |threads| Daimc::new(5).runs(3).threads(threads).fit(&views).unwrap();
    let one = fit(1);
    for threads in [2, 7] {
        let mut other = fit(threads);
        other.timings = one.timings;
        assert_eq!(one, other);
    }
}

#[test]
fn runs_start_from_different_seeds_and_are_all_reported() {
    let (views, _) = data(3.0);
    let mut seen: Vec<(usize, f64)> = Vec::new();
    let each = |iteration: &daimc::Iteration| {
        if iteration.number == 1 {
            seen.push((iteration.run, iteration.objective.total));
        }
        ControlFlow::Continue(())
    };
    Daimc::new(5).runs(3).restarts(1).fit_with(&views, each).unwrap();
    seen.sort_by_key(|(run, _)| *run);
    assert_eq!(seen.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(seen[0].1 != seen[1].1 && seen[1].1 != seen[2].1, "{seen:?}");
}

#[test]
fn a_cancelled_fit_combines_the_runs_so_far() {
    let (views, truth) = data(1.0);
    let each = |iteration: &daimc::Iteration| {
        if iteration.run == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fitted = Daimc::new(5).runs(9).fit_with(&views, each).unwrap();
    assert_eq!(fitted.outcome, Outcome::Interrupted);
    assert!(metrics::accuracy(&truth, &fitted.labels).unwrap() > 0.9);
}

#[test]
fn an_invalid_number_of_runs_is_an_error() {
    let (views, _) = data(1.0);
    assert!(Daimc::new(5).runs(0).fit(&views).unwrap_err().to_string().contains("runs"));
    let error = Daimc::new(5).latent(7).runs(2).fit(&views).unwrap_err().to_string();
    assert!(error.contains("latent dimension"), "{error}");
}
