//! The map of the instances.

use std::sync::{Arc, Mutex};

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Matrix, Neighbours, Stage, Stop, View, Views, simulate};

/// The share of the ten nearest points that belong to the same cluster.
fn together(map: &Matrix, labels: &[usize]) -> f64 {
    let n = labels.len();
    let square =
        |i: usize, j: usize| (map[(i, 0)] - map[(j, 0)]).powi(2) + (map[(i, 1)] - map[(j, 1)]).powi(2);
    let of = |i: usize| {
        let mut others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
        others.sort_by(|&a, &b| square(i, a).total_cmp(&square(i, b)));
        others[..10].iter().filter(|&&j| labels[j] == labels[i]).count()
    };
    (0..n).map(of).sum::<usize>() as f64 / (10 * n) as f64
}

fn incomplete(n: usize, clusters: usize) -> Views<'static> {
    let data = Synthetic::new(n, clusters).noise(0.7).seed(4);
    let present = simulate::missing(n, &[0.3, 0.4], 4).unwrap();
    let views = ["a", "b"].iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f64>(name, 20).unwrap().mask(present).unwrap());
    Views::new(views.collect()).unwrap()
}

fn mapped(fit: &Fit) -> &Matrix {
    let map = fit.map.as_ref().unwrap();
    assert_eq!((map.rows(), map.columns()), (fit.labels.len(), 2));
    assert!(map.values().iter().all(|value| value.is_finite()), "{:?}", map.values());
    map
}

#[cfg(feature = "digit")]
#[test]
fn nine_in_ten_of_the_nearest_on_the_map_of_digit_are_of_the_same_cluster() {
    let (views, _) = crate::common::digit(0.5, 0);
    let fit = Daimc::new(10).assess(false).map(true).fit(&views).unwrap();
    let share = together(mapped(&fit), &fit.labels);
    println!("{share:.3}, map {:.3} s of {:?}", fit.timings.map, fit.timings);
    assert!(share >= 0.9, "{share}");
}

#[test]
fn the_map_shows_the_clusters_whether_they_are_those_of_a_graph_or_of_v() {
    let views = incomplete(600, 5);
    for neighbours in Neighbours::ALL {
        let fit = Daimc::new(5).neighbours(neighbours).assess(false).map(true).fit(&views).unwrap();
        let share = together(mapped(&fit), &fit.labels);
        assert!(share >= 0.9, "{neighbours}: {share}");
    }
}

#[test]
fn the_map_does_not_depend_on_the_threads() {
    let views = incomplete(700, 4);
    for neighbours in [Neighbours::Off, Neighbours::Refine] {
        let fit = Daimc::new(4).neighbours(neighbours).assess(false).map(true);
        let maps = [1, 2, 7].map(|threads| {
            let fit = fit.clone().threads(threads).fit(&views).unwrap();
            mapped(&fit).values().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        });
        assert!(maps[0] == maps[1] && maps[0] == maps[2], "{neighbours}");
    }
}

#[test]
fn clusters_do_not_depend_on_the_map_which_is_computed_on_request() {
    let views = incomplete(200, 3);
    let fit = Daimc::new(3);
    let (without, with) = (fit.fit(&views).unwrap(), fit.clone().map(true).fit(&views).unwrap());
    assert!(without.map.is_none());
    assert_eq!((&without.labels, &without.latent), (&with.labels, &with.latent));
    assert_eq!(Fit::from_bytes(&with.to_bytes().unwrap()).unwrap(), with);
    let of_latent = without.map_of_latent().unwrap();
    assert!(together(&of_latent, &without.labels) > 0.9);
    let by_v = fit.neighbours(Neighbours::Off).map(true).fit(&views).unwrap();
    assert_eq!(by_v.map_of_latent().unwrap(), *mapped(&by_v));
}

#[test]
fn a_map_that_is_left_for_later_is_that_of_the_fit() {
    let views = incomplete(200, 3);
    for neighbours in Neighbours::ALL {
        let fit = Daimc::new(3).neighbours(neighbours).assess(false).map(true);
        let (at_once, later) = (fit.fit(&views).unwrap(), fit.clone().map_later().fit(&views).unwrap());
        assert!(later.map.is_none());
        let stopped = Stop::new();
        stopped.set();
        assert!(matches!(later.with_map(&stopped), Err(daimc::Error::Interrupted)));
        let with_map = later.with_map(&Stop::new()).unwrap().unwrap();
        assert_eq!(mapped(&with_map), mapped(&at_once), "{neighbours}");
        for made in [&with_map, &at_once, &later.without_instances()] {
            assert!(made.with_map(&Stop::new()).unwrap().is_none());
        }
    }
    let unwanted = Daimc::new(3).map_later().fit(&views).unwrap();
    assert!(unwanted.with_map(&Stop::new()).unwrap().is_none());
}

#[test]
fn every_instance_has_a_position_whatever_the_data_are() {
    let fit = |clusters: usize, rows: Vec<f64>| {
        let views = Views::new(vec![View::dense("v", 2, rows).unwrap()]).unwrap();
        let fit = Daimc::new(clusters).map(true).fit(&views).unwrap();
        mapped(&fit).clone()
    };
    fit(1, vec![1.0, 2.0]);
    fit(2, vec![1.0, 2.0, 3.0, -1.0]);
    fit(3, vec![1.0, 2.0, 3.0, -1.0, 0.0, 0.0]);
    fit(1, (0..80).map(f64::from).collect());
    fit(1, vec![0.0; 60]);
    // Copies have different positions.
    let copies = fit(2, vec![1.0; 60]);
    assert!((1..30).all(|i| copies.row(i) != copies.row(0)), "{copies:?}");
    // Two groups, each of which is copies of one row.
    fit(2, (0..120).map(|at| f64::from(u8::from(at / 2 % 2 == at % 2))).collect());
}

#[test]
fn the_map_reports_progress_and_can_be_stopped() {
    let views = incomplete(300, 3);
    let (reported, stop) = (Arc::new(Mutex::new(Vec::new())), Stop::new());
    let (sink, own) = (reported.clone(), stop.clone());
    let fit = Daimc::new(3).assess(false).map(true).stop(&stop).stages(move |stage, _| {
        sink.lock().unwrap().push(stage.clone());
        if *stage == Stage::Map {
            own.set();
        }
    });
    let fit = fit.fit(&views).unwrap();
    assert_eq!(reported.lock().unwrap().iter().filter(|stage| **stage == Stage::Map).count(), 1);
    assert_eq!((fit.map, fit.outcome), (None, daimc::Outcome::Interrupted));
}
