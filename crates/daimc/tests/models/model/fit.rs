//! The fit.

use super::*;

#[test]
fn the_callback_is_called_once_after_each_iteration() {
    let views = incomplete(&easy(150), 2);
    for preset in [Preset::Default, Preset::Paper] {
        let mut seen: Vec<Iteration> = Vec::new();
        let daimc = Daimc::new(4).preset(preset);
        let fitted = daimc.fit_with(&views, |iteration| {
            seen.push(*iteration);
            ControlFlow::Continue(())
        });
        let fitted = fitted.unwrap();
        assert_eq!(seen.len(), fitted.history.len());
        assert_eq!(fitted.iterations(), fitted.history.len());
        assert!(seen.iter().enumerate().all(|(i, iteration)| iteration.number == i + 1));
        assert!(seen.iter().zip(&fitted.history).all(|(iteration, now)| iteration.objective == *now));
        assert!(seen.windows(2).all(|pair| pair[0].elapsed <= pair[1].elapsed));
        assert_eq!(seen[0].change, None);
        for pair in seen.windows(2) {
            let change = (pair[0].objective.total - pair[1].objective.total).abs() / pair[0].objective.total;
            assert_eq!(pair[1].change, Some(change));
        }
    }
}

#[test]
fn a_fit_that_is_cancelled_gives_the_model_so_far() {
    let data = easy(150);
    let views = incomplete(&data, 2);
    for preset in [Preset::Default, Preset::Paper] {
        for stop in [1, 3] {
            let daimc = Daimc::new(4).preset(preset).tolerance(0.0).max_iterations(10);
            let fitted = daimc.fit_with(&views, |iteration| {
                if iteration.number == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let fitted = fitted.unwrap();
            assert_eq!(fitted.outcome, Outcome::Interrupted);
            assert_eq!((fitted.iterations(), fitted.history.len()), (stop, stop));
            assert_eq!(fitted.labels.len(), 150);
            assert_eq!(fitted.model.predict(&views).unwrap().len(), 150);
            assert_eq!(fitted.neighbours.used, Neighbours::Off);
            let short = daimc.max_iterations(stop).neighbours(Neighbours::Off).fit(&views).unwrap();
            assert_eq!(short.history, fitted.history);
            // The steps after the iterations were skipped; they change little here.
            assert!(metrics::ari(&short.labels, &fitted.labels).unwrap() > 0.8);
        }
    }
}

#[test]
fn a_cancelled_model_is_the_same_from_a_file() {
    let views = incomplete(&easy(80), 2);
    let fitted = Daimc::new(4).fit_with(&views, |_| ControlFlow::Break(())).unwrap();
    let loaded = Fit::from_bytes(&fitted.to_bytes().unwrap()).unwrap();
    assert_eq!((loaded.outcome, loaded.iterations()), (Outcome::Interrupted, 1));
    let earlier: Outcome = serde_json::from_str("\"cancelled\"").unwrap();
    assert_eq!(earlier, Outcome::Interrupted, "files of earlier versions can be read");
}

#[test]
fn a_large_tolerance_ends_the_fit_early() {
    let views = incomplete(&easy(150), 2);
    for preset in [Preset::Default, Preset::Paper] {
        let daimc = Daimc::new(4).preset(preset);
        let fitted = daimc.clone().tolerance(1e6).fit(&views).unwrap();
        // The first iteration has no previous objective.
        assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::Converged, 2));
        let fitted = daimc.tolerance(0.0).max_iterations(4).fit(&views).unwrap();
        assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::IterationLimit, 4));
    }
}

#[test]
fn what_is_not_assessed_has_the_same_clusters() {
    let views = incomplete(&easy(80), 2);
    let (with, without) =
        (Daimc::new(4).fit(&views).unwrap(), Daimc::new(4).assess(false).fit(&views).unwrap());
    assert_eq!(with.labels, without.labels);
    assert!(with.significance.is_some() && with.model.reproducibility.is_some());
    assert!(without.significance.is_none() && without.model.reproducibility.is_none());
    assert_ne!(with.confidence, without.confidence);
}

#[test]
fn the_published_algorithm_is_assessed_on_request() {
    let views = incomplete(&easy(80), 2);
    let fit = Daimc::new(4).preset(Preset::Paper);
    let (without, with) = (fit.fit(&views).unwrap(), fit.clone().assess(true).fit(&views).unwrap());
    assert_eq!((&with.labels, &with.latent), (&without.labels, &without.latent));
    assert!(with.significance.is_some() && with.model.reproducibility.is_some());
    assert!(without.significance.is_none() && without.model.reproducibility.is_none());
}

#[test]
fn a_limit_that_would_not_have_changed_the_clusters_has_its_own_outcome() {
    let views = incomplete(&easy(150), 2);
    let fit = |iterations: usize| {
        Daimc::new(4)
            .neighbours(Neighbours::Off)
            .tolerance(0.0)
            .max_iterations(iterations)
            .fit(&views)
            .unwrap()
    };
    let (settled, longer) = (fit(60), fit(300));
    assert_eq!((settled.outcome, settled.iterations()), (Outcome::Settled, 60));
    // Moved instances may change the order of sizes of two clusters, and so their numbers.
    let stayed = metrics::accuracy(&settled.labels, &longer.labels).unwrap();
    assert!(stayed >= 148.0 / 150.0, "{stayed}");
    assert!(settled.outcome.is_at_rest() && !Outcome::IterationLimit.is_at_rest());
    // The last fifth of these is too short to judge.
    assert_eq!(fit(49).outcome, Outcome::IterationLimit);
}

#[test]
fn a_fit_ends_when_j_changes_by_less_than_the_tolerance() {
    let views = incomplete(&easy(150), 2);
    let fitted = Daimc::new(4).tolerance(1e-3).max_iterations(1000).fit(&views).unwrap();
    assert_eq!(fitted.outcome, Outcome::Converged);
    let changes: Vec<f64> =
        fitted.history.windows(2).map(|pair| (pair[0].total - pair[1].total).abs() / pair[0].total).collect();
    let (last, before) = changes.split_last().unwrap();
    assert!(*last <= 1e-3 && before.iter().all(|change| *change > 1e-3), "{changes:?}");
}

#[test]
fn the_latent_dimension_can_differ_from_the_number_of_clusters() {
    let data = easy(300);
    let views = incomplete(&data, 2);
    for preset in [Preset::Default, Preset::Paper] {
        for latent in [2, 3, 7, 10] {
            for daimc in
                [Daimc::new(4).latent(latent).preset(preset), Daimc::new(4).preset(preset).latent(latent)]
            {
                let fitted = daimc.fit(&views).unwrap();
                assert_eq!((fitted.model.options.clusters, fitted.model.options.latent), (4, latent));
                assert_eq!((fitted.latent.rows(), fitted.latent.columns()), (300, latent));
                assert_eq!((fitted.model.centres.rows(), fitted.model.centres.columns()), (latent, 4));
                let view = fitted.model.view("c").unwrap();
                assert_eq!((view.basis.rows(), view.basis.columns()), (60, latent));
                assert_eq!((view.alignment.rows(), view.alignment.columns()), (60, latent));
                assert!(fitted.labels.iter().all(|&label| label < 4));
                assert_eq!(fitted.model.transform(&views).unwrap().columns(), latent);
                if preset == Preset::Default {
                    assert_eq!(fitted.model.predict(&views).unwrap(), fitted.labels);
                    let enough =
                        latent < 4 || metrics::accuracy(&data.truth(), &fitted.labels).unwrap() > 0.9;
                    assert!(enough, "latent {latent}");
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_model_and_another_may_not() {
    let views = incomplete(&Synthetic::new(300, 6).noise(3.0).seed(2), 2);
    for preset in [Preset::Default, Preset::Paper] {
        for solver in [Solver::Coordinate, Solver::Multiplicative] {
            let fit = |seed| {
                let fitted = Daimc::new(6).preset(preset).solver(solver).seed(seed).fit(&views).unwrap();
                (fitted.model.views, fitted.latent, fitted.labels, fitted.history)
            };
            let first = fit(1);
            assert_eq!(fit(1), first);
            assert!((2..6).any(|seed| fit(seed).1 != first.1));
        }
    }
}
