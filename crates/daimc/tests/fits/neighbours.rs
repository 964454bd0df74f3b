//! Fits that use the nearest neighbours in each view.

use std::sync::{Arc, Mutex};

use daimc::estimate::Effort;
use daimc::metrics::accuracy;
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Fit, Neighbours, Options, Outcome, Penalty, Preset, Scale, Source, Stage, Stop, View, ViewWeights,
    Views, simulate,
};

use crate::common::digit;

const USED: [Neighbours; 3] = [Neighbours::Refine, Neighbours::Embed, Neighbours::Auto];

fn incomplete(n: usize, clusters: usize, noise: f64) -> (Views<'static>, Vec<usize>) {
    let data = Synthetic::new(n, clusters).noise(noise).seed(4);
    let present = simulate::missing(n, &[0.3, 0.4, 0.2], 4).unwrap();
    let views = vec![
        data.dense::<f64>("dense", 20).unwrap().mask(&present[0]).unwrap(),
        data.dense::<f32>("single", 30).unwrap().mask(&present[1]).unwrap(),
        data.sparse::<f64>("sparse", 40, 0.3).unwrap().mask(&present[2]).unwrap(),
    ];
    (Views::new(views).unwrap(), data.truth())
}

/// Some of the instances, in increasing order.
fn some_of(views: &Views<'_>, some: &[u32]) -> Views<'static> {
    let view = |(number, view): (usize, &View<'_>)| {
        let features = view.features();
        let rows = daimc_core::scan::values(views, number, some, &(0..features).collect::<Vec<_>>()).unwrap();
        let present: Vec<bool> = some.iter().map(|&i| views.is_present(number, i as usize)).collect();
        let values =
            rows.into_values().into_iter().map(|x| if x.is_nan() { 0.0 } else { x }).collect::<Vec<_>>();
        View::dense(view.name(), features, values).unwrap().mask(&present).unwrap()
    };
    Views::new(views.iter().enumerate().map(view).collect()).unwrap()
}

fn bits(fitted: &Fit) -> (Vec<usize>, Vec<u64>) {
    let (labels, mut values) = found(fitted);
    values.extend(fitted.confidence.iter().map(|value| value.to_bits()));
    (labels, values)
}

/// The same without confidence, which a fit that was stopped leaves as the margin.
fn found(fitted: &Fit) -> (Vec<usize>, Vec<u64>) {
    let values = fitted.latent.values().iter().chain(fitted.model.centres.values());
    (fitted.labels.clone(), values.map(|value| value.to_bits()).collect())
}

#[test]
fn the_result_does_not_depend_on_the_threads() {
    let (views, _) = incomplete(900, 4, 1.0);
    for used in USED {
        let fit = Daimc::new(4).neighbours(used);
        let one = fit.clone().threads(1).fit(&views).unwrap();
        let three = fit.threads(3).fit(&views).unwrap();
        assert_eq!(bits(&one), bits(&three), "{used}");
    }
}

#[test]
fn every_route_finds_planted_clusters_and_reports_the_decision() {
    let (views, truth) = incomplete(400, 4, 0.5);
    for used in USED {
        let fitted = Daimc::new(4).neighbours(used).fit(&views).unwrap();
        let found = accuracy(&truth, &fitted.labels).unwrap();
        assert!(found > 0.95, "{used}: {found}");
        assert_eq!(fitted.neighbours.used, used, "{}", fitted.neighbours.reason);
        assert!(fitted.confidence.iter().all(|share| (0.0..=1.0).contains(share)));
        // They are references, each nearest to itself.
        assert_eq!(fitted.model.predict(&views).unwrap(), fitted.labels, "{used}");
    }
}

#[test]
fn a_budget_leaves_out_what_takes_longer() {
    let (views, _) = incomplete(400, 4, 0.5);
    let effort = Effort::new(views.schema(), 4);
    let fit = |budget: f64| Daimc::new(4).neighbours_budget(budget).fit(&views).unwrap().neighbours;
    let all = fit(effort.auto);
    assert!(all.used == Neighbours::Auto && !all.reason.contains("budget"), "{all:?}");
    let some = fit(effort.refine);
    assert!(some.reason.contains("refine") && some.reason.contains("embed was left out"), "{some:?}");
    let none = fit(0.0);
    assert!(none.used == Neighbours::Off && none.reason.contains("the budget of"), "{none:?}");
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let error = Daimc::new(4).neighbours_budget(wrong).fit(&views).unwrap_err().to_string();
        assert!(error.contains("neighbours_budget"), "{error}");
    }
}

#[test]
fn instances_that_were_held_out_are_placed_as_well_as_fitted_ones() {
    let (views, truth) = digit(0.5, 0);
    let mut order: Vec<u32> = (0..2000).collect();
    order.sort_by_key(|i| i.wrapping_mul(2_654_435_761));
    let (mut held_out, mut kept) = (order[..400].to_vec(), order[400..].to_vec());
    held_out.sort_unstable();
    kept.sort_unstable();
    let of = |some: &[u32]| some.iter().map(|&i| truth[i as usize]).collect::<Vec<_>>();
    let fitted = Daimc::new(10).assess(false).fit(&some_of(&views, &kept)).unwrap();
    let found = accuracy(&of(&kept), &fitted.labels).unwrap();
    let new = some_of(&views, &held_out);
    let placed = accuracy(&of(&held_out), &fitted.model.predict(&new).unwrap()).unwrap();
    let mut by_latent = fitted.model.clone();
    by_latent.references = None;
    let without = accuracy(&of(&held_out), &by_latent.predict(&new).unwrap()).unwrap();
    println!("AC {found:.3} fitted, {placed:.3} held out, {without:.3} by V alone");
    assert!(placed > found - 0.03 && placed > without, "{found} {placed} {without}");
}

/// Fits, and stops as soon as a stage begins; also returns the stages that began.
fn stopped_at(fit: Daimc, views: &Views<'_>, at: &Stage) -> (Fit, Vec<Stage>) {
    let stop = Stop::new();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let (stop, reported, at) = (stop.clone(), Arc::clone(&reported), at.clone());
        move |stage: &Stage, share: f64| {
            if share == 0.0 {
                reported.lock().unwrap().push(stage.clone());
            }
            if *stage == at {
                stop.set();
            }
        }
    };
    let fitted = fit.stop(&stop).stages(listener).fit(views).unwrap();
    let reported = reported.lock().unwrap().clone();
    (fitted, reported)
}

fn search(view: &str) -> Stage {
    Stage::Search { view: view.into() }
}

#[test]
fn a_fit_stopped_during_neighbourhoods_equals_one_without_them() {
    let (views, _) = incomplete(900, 4, 1.0);
    let fit = Daimc::new(4).scale(Scale::Unit);
    let alone = fit.clone().neighbours(Neighbours::Off).fit(&views).unwrap();
    let stages = [Stage::Consolidate, search("dense"), search("single"), search("sparse"), Stage::Cut];
    for used in USED {
        for (at, stage) in stages.iter().enumerate().skip(1) {
            if used == Neighbours::Embed && *stage == Stage::Cut {
                continue;
            }
            let (fitted, reported) = stopped_at(fit.clone().neighbours(used), &views, stage);
            assert_eq!(reported, stages[..=at], "{used}");
            assert_eq!(fitted.outcome, Outcome::Interrupted);
            assert_eq!(fitted.neighbours.used, Neighbours::Off);
            assert_eq!(fitted.neighbours.reason, "the fit was interrupted");
            assert_eq!(found(&fitted), found(&alone), "{used}, {stage}");
            assert_eq!((fitted.significance, fitted.model.reproducibility), (None, None));
        }
    }
}

#[test]
fn stages_of_known_length_report_their_progress() {
    let (views, _) = incomplete(300, 3, 1.0);
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    let fit = Daimc::new(3).scale(Scale::Unit).penalty(Penalty::Auto).view_weights(ViewWeights::Learned);
    let listener = move |stage: &Stage, share: f64| sink.lock().unwrap().push((stage.clone(), share));
    fit.stages(listener).fit(&views).unwrap();
    let reported = reported.lock().unwrap();
    let counted =
        [Stage::Penalty, Stage::ViewWeights, search("dense"), Stage::Significance, Stage::Reproducibility];
    for stage in counted {
        let shares: Vec<f64> =
            reported.iter().filter(|(own, _)| *own == stage).map(|(_, share)| *share).collect();
        assert_eq!(
            (shares.first(), shares.iter().copied().reduce(f64::max)),
            (Some(&0.0), Some(1.0)),
            "{stage}"
        );
        assert!(
            shares.len() > 2 && shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "{stage}: {shares:?}"
        );
    }
}

#[test]
fn a_fit_that_is_stopped_before_its_iterations_has_no_result() {
    let (views, _) = incomplete(300, 3, 1.0);
    let fit = Daimc::new(3).scale(Scale::Unit);
    for (fit, stage) in [
        (Daimc::new(3), Stage::Scaling),
        (fit.clone().penalty(Penalty::Auto), Stage::Penalty),
        (fit.view_weights(ViewWeights::Learned), Stage::ViewWeights),
    ] {
        let (stop, reported) = (Stop::new(), Arc::new(Mutex::new(Vec::new())));
        let (own, sink) = (stop.clone(), Arc::clone(&reported));
        let listener = move |stage: &Stage, _: f64| {
            sink.lock().unwrap().push(stage.clone());
            own.set();
        };
        let error = fit.stop(&stop).stages(listener).fit(&views).unwrap_err();
        assert!(matches!(error, daimc::Error::Interrupted), "{error}");
        assert_eq!(*reported.lock().unwrap(), [stage]);
    }
}

#[test]
fn a_fit_that_is_stopped_after_its_iterations_keeps_what_they_found() {
    for clusters in [4, 30] {
        let (views, _) = incomplete(900, clusters, 1.0);
        let fit = Daimc::new(clusters).scale(Scale::Unit).neighbours(Neighbours::Off);
        let (fitted, reported) = stopped_at(fit.clone(), &views, &Stage::Consolidate);
        assert_eq!((reported, fitted.outcome), (vec![Stage::Consolidate], Outcome::Interrupted));
        let mut options = serde_json::to_value(fit.options()).unwrap();
        (options["consolidate"], options["settle"]) = (false.into(), false.into());
        let options: Options = serde_json::from_value(options).unwrap();
        let iterated = Daimc::from(options).fit(&views).unwrap();
        assert_eq!(found(&fitted), found(&iterated));
        assert_eq!(fitted.history, iterated.history);
        assert_ne!(found(&fitted), found(&fit.fit(&views).unwrap()));
    }
}

#[test]
fn several_runs_are_stopped_too() {
    let (views, _) = incomplete(300, 3, 1.0);
    let stop = Stop::new();
    let own = stop.clone();
    let set = move |_: &daimc::Iteration| {
        own.set();
        std::ops::ControlFlow::Continue(())
    };
    let fitted = Daimc::new(3).runs(4).stop(&stop).threads(1).fit_with(&views, set).unwrap();
    assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::Interrupted, 1));
    // The switch is still set: another fit does not begin.
    let none = Daimc::new(3).runs(4).stop(&stop).fit(&views).unwrap_err();
    assert!(matches!(none, daimc::Error::Interrupted), "{none}");
}

#[test]
fn the_published_algorithm_uses_none() {
    let (views, _) = incomplete(200, 3, 1.0);
    let fitted = Daimc::new(3).preset(Preset::Paper).fit(&views).unwrap();
    assert_eq!(fitted.neighbours.used, Neighbours::Off);
    assert_eq!(fitted.model.options.neighbours, Neighbours::Off);
}

#[test]
fn points_without_near_neighbours_have_an_outcome() {
    // Points on different axes have no near neighbours: all distances are equal.
    let identity = |n: usize| (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect::<Vec<_>>();
    let views = Views::new(vec![View::dense("x", 60, identity(60)).unwrap()]).unwrap();
    let fitted = Daimc::new(3).scale(Scale::None).fit(&views).unwrap();
    assert!(fitted.labels.iter().all(|label| *label < 3), "{}", fitted.neighbours.reason);
}

#[test]
fn one_cluster_and_as_many_as_instances_have_an_outcome() {
    let (views, _) = incomplete(12, 2, 1.0);
    for clusters in [1, 2, 11, 12] {
        for used in USED {
            let fitted = Daimc::new(clusters).neighbours(used).fit(&views).unwrap();
            assert!(fitted.labels.iter().all(|label| *label < clusters));
            assert!(
                fitted
                    .latent
                    .values()
                    .iter()
                    .chain(fitted.model.centres.values())
                    .all(|value| value.is_finite())
            );
        }
    }
}

#[test]
fn a_latent_dimension_of_its_own_is_refused_or_left_alone() {
    let (views, _) = incomplete(60, 3, 1.0);
    let fitted = Daimc::new(3).latent(5).fit(&views).unwrap();
    assert_eq!(fitted.neighbours.used, Neighbours::Off);
    let error = Daimc::new(3).latent(5).neighbours(Neighbours::Refine).fit(&views).unwrap_err().to_string();
    assert!(error.contains("neighbours") && error.contains("latent dimension"), "{error}");
}

#[test]
fn the_pairs_of_many_instances_are_not_all_compared() {
    let all = |n: usize| (n * n / 2) as f64;
    assert!((Neighbours::pairs(1000) - all(1000)).abs() < 1.0);
    assert!((Neighbours::pairs(Neighbours::EXACT) - all(Neighbours::EXACT)).abs() < 1.0);
    assert!(Neighbours::pairs(1_000_000) < 0.01 * all(1_000_000));
    // Twice as many instances are about twice the work.
    assert!(Neighbours::pairs(2_000_000) < 2.1 * Neighbours::pairs(1_000_000));
}

#[test]
fn names_are_read_as_they_are_written() {
    for one in Neighbours::ALL {
        assert_eq!(one.to_string().parse::<Neighbours>().unwrap(), one);
    }
    let error = "near".parse::<Neighbours>().unwrap_err().to_string();
    assert!(error.contains("near") && error.contains("refine"), "{error}");
}
