//! The data of the charts, for inputs with known results.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Fit, Matrix, View, Views, metrics, simulate};
use daimc_report::Report;
use daimc_report::figures::{Combination, Plane, Spread, silhouettes};

fn incomplete(instances: usize, clusters: usize) -> (Views<'static>, Vec<usize>) {
    let data = Synthetic::new(instances, clusters).noise(0.6).seed(8);
    let present = simulate::missing(instances, &[0.3, 0.5], 4).unwrap();
    let views = ["a", "b"].iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f64>(name, 12).unwrap().mask(present).unwrap());
    (Views::new(views.collect()).unwrap(), data.truth())
}

fn fitted(views: &Views<'_>, clusters: usize) -> Fit {
    Daimc::new(clusters).max_iterations(20).fit(views).unwrap()
}

#[test]
fn the_plane_finds_the_directions_of_largest_variance_in_order() {
    // Variances 25, 9 and 1 along three orthogonal directions, around (1, 2, 3).
    let axes = [[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]];
    let mut rows = Vec::new();
    for (axis, size) in axes.iter().zip([5.0, 3.0, 1.0]) {
        for sign in [-1.0, 1.0] {
            let factor = sign * size * 3.0_f64.sqrt();
            rows.extend((0..3).map(|i| (i + 1) as f64 + factor * axis[i]));
        }
    }
    let plane = Plane::of(&Matrix::new(6, 3, rows.clone()).unwrap());
    assert!((plane.variance[0] - 25.0).abs() < 1e-9 && (plane.variance[1] - 9.0).abs() < 1e-6, "{plane:?}");
    assert!((plane.total - 35.0).abs() < 1e-9);
    let end = plane.project(&rows[3..6]);
    assert!((end[0].abs() - 5.0 * 3.0_f64.sqrt()).abs() < 1e-4 && end[1].abs() < 1e-3, "{end:?}");
}

#[test]
fn the_plane_exists_for_one_column_and_without_variance() {
    let line = Plane::of(&Matrix::new(3, 1, vec![1.0, 2.0, 6.0]).unwrap());
    assert!((line.shares()[0] - 1.0).abs() < 1e-12 && line.shares()[1] == 0.0);
    assert_eq!(line.project(&[3.0]), [0.0, 0.0]);
    let nothing = Plane::of(&Matrix::new(2, 2, vec![1.0; 4]).unwrap());
    assert_eq!((nothing.shares(), nothing.project(&[1.0, 1.0])), ([0.0, 0.0], [0.0, 0.0]));
}

/// Silhouettes from the definition, over all pairs of rows.
fn naive_silhouette(rows: &Matrix, labels: &[usize], i: usize) -> f64 {
    let distance =
        |j: usize| rows.row(i).iter().zip(rows.row(j)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
    let mean = |cluster: usize| {
        let of: Vec<f64> =
            (0..labels.len()).filter(|&j| j != i && labels[j] == cluster).map(distance).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    };
    let others = (0..=*labels.iter().max().unwrap()).filter(|&cluster| cluster != labels[i]).filter_map(mean);
    let b = others.fold(f64::INFINITY, f64::min);
    mean(labels[i]).map_or(0.0, |a| (b - a) / a.max(b))
}

#[test]
fn silhouettes_match_the_definition() {
    let rows = Matrix::from_fn(40, 3, |i, j| ((i * 7 + j * 13) % 11) as f64 + (i % 3 * 5) as f64);
    let mut labels: Vec<usize> = (0..40).map(|i| i % 3).collect();
    labels[39] = 3;
    for (i, found) in silhouettes(&rows, &labels, 5).into_iter().enumerate() {
        let expected = naive_silhouette(&rows, &labels, i);
        assert!((found - expected).abs() < 1e-12, "{i}: {found}, not {expected}");
    }
    assert_eq!(silhouettes(&rows, &[0; 40], 1), [0.0; 40]);
}

#[test]
fn combinations_are_counted_and_tiles_show_them() {
    let present = [
        [true, true, true, false, true, true, true, false],
        [true, false, true, true, false, true, false, true],
        [false, false, false, false, false, true, false, false],
    ];
    let view = |v: usize| View::dense(format!("v{v}"), 1, vec![1.0; 8]).unwrap().mask(&present[v]).unwrap();
    let views = Views::new((0..3).map(view).collect()).unwrap();
    let fit = fitted(&views, 2);
    let presence = Report::new(&views, &fit).figures().unwrap().presence;
    let combination = |views: &[usize], instances| Combination { views: views.to_vec(), instances };
    // Of two equally frequent combinations, the one with the earlier views is first.
    let expected =
        [combination(&[0], 3), combination(&[0, 1], 2), combination(&[1], 2), combination(&[0, 1, 2], 1)];
    assert_eq!(presence.combinations, expected);
    assert_eq!((presence.rest, presence.complete, presence.bins), ((0, 0), 1, 8));
    assert!((presence.missing - 12.0 / 24.0).abs() < 1e-12);
    let expected: [[f32; 8]; 3] = [
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ];
    assert_eq!(presence.tiles, expected);
}

#[test]
fn tiles_sum_to_the_present_instances_for_any_bins() {
    let (views, _) = incomplete(1000, 3);
    let fit = fitted(&views, 3);
    let presence = Report::new(&views, &fit).figures().unwrap().presence;
    assert_eq!(presence.bins, 240);
    for (row, view) in presence.tiles.iter().zip(&presence.views) {
        let sum: f32 = row.iter().sum::<f32>() * 1000.0 / 240.0;
        assert!((sum - view.present as f32).abs() < 0.1, "{sum}, not {}", view.present);
    }
}

#[test]
fn agreement_counts_the_known_and_matches_clusters_to_classes() {
    let (views, truth) = incomplete(300, 3);
    let fit = fitted(&views, 3);
    let classes: Vec<Option<&str>> = truth
        .iter()
        .enumerate()
        .map(|(i, &class)| (i % 5 != 0).then_some(["10", "x12", "x9"][class]))
        .collect();
    let agreement = Report::new(&views, &fit).truth(&classes).figures().unwrap().agreement.unwrap();
    assert_eq!(agreement.known, 240);
    assert_eq!(agreement.classes, ["10", "x9", "x12"], "numbers are sorted by value");
    let known =
        |values: &[usize]| -> Vec<usize> { (0..300).filter(|i| i % 5 != 0).map(|i| values[i]).collect() };
    assert_eq!(agreement.scores, metrics::scores(&known(&truth), &known(&fit.labels)).unwrap());
    for (row, &cluster) in agreement.clusters.iter().enumerate() {
        for (column, class) in agreement.classes.iter().enumerate() {
            let here = |i: &usize| classes[*i] == Some(class) && fit.labels[*i] == cluster;
            assert_eq!(agreement.counts[row][column], (0..300).filter(here).count());
        }
    }
    let matched =
        agreement.matched.iter().zip(&agreement.counts).filter_map(|(column, row)| Some(row[(*column)?]));
    assert!((matched.sum::<usize>() as f64 / 240.0 - agreement.scores.ac).abs() < 1e-12);
    let nothing: [Option<&str>; 300] = [None; 300];
    assert!(Report::new(&views, &fit).truth(&nothing).figures().unwrap().agreement.is_none());
}

#[test]
fn clusters_have_their_sizes_and_the_spread_of_their_confidence() {
    let (views, _) = incomplete(300, 3);
    let fit = fitted(&views, 3);
    let figures = Report::new(&views, &fit).figures().unwrap();
    for cluster in &figures.clusters.clusters {
        let members: Vec<usize> = (0..300).filter(|&i| fit.labels[i] == cluster.number).collect();
        assert_eq!(cluster.size, members.len());
        let mean = members.iter().map(|&i| fit.confidence[i]).sum::<f64>() / members.len() as f64;
        assert!((cluster.confidence.unwrap().mean - mean).abs() < 1e-12);
    }
    assert_eq!(figures.clusters.silhouettes_from, 300);
    let spread = Spread::of(vec![4.0, 0.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!((spread.mean, spread.quantiles), (2.0, [0.2, 1.0, 2.0, 3.0, 3.8]));
    assert_eq!(Spread::of(Vec::new()), None);
}

#[test]
fn errors_are_relative_to_the_present_values() {
    let (views, _) = incomplete(300, 3);
    let fit = fitted(&views, 3);
    let errors = Report::new(&views, &fit).figures().unwrap().reconstruction.views;
    for error in &errors {
        let misfit = fit.misfit(&views, &error.name).unwrap();
        let of = |values: &[f64]| (0..300).filter(|&i| fit.labels[i] == 1).map(|i| values[i]).sum::<f64>();
        assert!((error.by_cluster[1].unwrap() - of(&misfit.error) / of(&misfit.square)).abs() < 1e-12);
        let overall = misfit.error.iter().sum::<f64>() / misfit.square.iter().sum::<f64>();
        let explained = error.explained.unwrap();
        assert!(explained < 1.0 - overall && explained > 0.0, "{explained}: the mean explains something too");
        assert!((error.overall.unwrap() - overall).abs() < 1e-12);
    }
}

#[test]
fn features_that_determine_a_cluster_come_first() {
    // Feature 3 determines the clusters, the others are noise.
    let values: Vec<f64> = (0..600)
        .map(|at| if at % 6 == 3 { f64::from(at / 6 % 2) * 5.0 } else { f64::from(at * at % 7) / 7.0 })
        .collect();
    let views = Views::new(vec![View::dense("v", 6, values).unwrap()]).unwrap();
    let fit = fitted(&views, 2);
    let features = Report::new(&views, &fit).figures().unwrap().features;
    let view = &features.views[0];
    assert_eq!(view.names[view.overall[0].0], "feature 3");
    let relevance = fit.model.views[0].relevance();
    assert!((view.overall[0].1 - relevance[3]).abs() < 1e-12);
    assert!(view.overall.is_sorted_by(|a, b| a.1 >= b.1));
    // Its weight is positive for the cluster with large values.
    let label = fit.labels[1];
    let of = |cluster: usize| {
        let mut leaders = view.by_cluster[cluster].iter();
        *leaders.find(|leader| view.names[leader.place] == "feature 3").unwrap()
    };
    let weights = |cluster: usize| of(cluster).weight;
    assert!(weights(label) > weights(1 - label));
    assert_eq!((of(label).stability, features.runs), (None, None));
    // It leads the cluster with large values in every run.
    let fit = Daimc::new(2).runs(3).fit(&views).unwrap();
    let features = Report::new(&views, &fit).figures().unwrap().features;
    let view = &features.views[0];
    assert_eq!((features.runs, view.leading), (Some(3), 3));
    let mut leaders = view.by_cluster[fit.labels[1]].iter();
    let leader = leaders.find(|leader| view.names[leader.place] == "feature 3").unwrap();
    assert_eq!(leader.stability, Some(1.0));
}

#[test]
fn evidence_is_the_mean_contribution_over_the_instances_present_in_a_view() {
    let (views, _) = incomplete(300, 3);
    let fit = fitted(&views, 3);
    let figures = Report::new(&views, &fit).figures().unwrap();
    let contributions = fit.contributions(&views).unwrap();
    for (v, view) in figures.evidence.views.iter().enumerate() {
        let of = |keep: &dyn Fn(usize) -> bool| -> Vec<f64> {
            (0..300).filter(|&i| keep(i)).filter_map(|i| contributions.shares(i).nth(v).unwrap()).collect()
        };
        let check = |found: daimc_report::figures::Contribution, shares: &[f64]| {
            let count = shares.len() as f64;
            assert!((found.mean - shares.iter().sum::<f64>() / count).abs() < 1e-12);
            let against = shares.iter().filter(|share| **share < 0.0).count() as f64;
            assert!((found.against - against / count).abs() < 1e-12);
        };
        check(view.overall.unwrap(), &of(&|_| true));
        for (cluster, found) in view.by_cluster.iter().enumerate() {
            check(found.unwrap(), &of(&|i| fit.labels[i] == cluster));
        }
    }
    let known = &figures.instances;
    assert_eq!(known.ids.len(), 300);
    for (id, shares) in known.ids.iter().zip(&known.contributions) {
        let instance = id.parse().unwrap();
        assert_eq!(*shares, contributions.shares(instance).collect::<Vec<_>>());
    }
}

#[test]
fn data_of_other_sizes_are_refused() {
    let (views, _) = incomplete(100, 2);
    let fit = fitted(&views, 2);
    let (others, _) = incomplete(90, 2);
    assert!(Report::new(&others, &fit).render().is_err());
    let error = Report::new(&views, &fit).truth(&[Some("x")]).render().unwrap_err();
    assert_eq!(error.to_string(), "classes (one per instance): expected 100 values, found 1");
}

#[test]
fn values_are_those_of_the_data_of_instances_sorted_by_cluster() {
    let mut rows: Vec<f64> =
        (0..1200).map(|at| f64::from(at % 4 + at / 4 % 2 * 10) + f64::from(at * 7 % 11) / 50.0).collect();
    rows[4 * 17 + 2] = f64::NAN;
    let present: Vec<bool> = (0..300).map(|i| i % 10 != 3).collect();
    let view = View::dense("v", 4, rows.clone()).unwrap().mask(&present).unwrap();
    let other =
        View::dense("w", 2, (0..600).map(|at| f64::from(at / 2 % 2 * 3 + at % 2)).collect::<Vec<_>>())
            .unwrap();
    let views = Views::new(vec![view, other]).unwrap();
    let fit = fitted(&views, 2);
    let figures = Report::new(&views, &fit).figures().unwrap();
    let values = &figures.values;
    assert_eq!(values.instances.len(), 300);
    let keys = values.instances.iter().map(|&i| (fit.labels[i], -fit.confidence[i]));
    assert!(keys.collect::<Vec<_>>().is_sorted(), "by cluster, then by confidence");
    let own = &values.views[0];
    assert_eq!(own.features.len(), 4);
    assert!(!own.rows.is_empty() && own.rows.len() <= 4);
    for feature in &own.features {
        let number = figures.features.views[0].mentioned[feature.place];
        for (at, &instance) in values.instances.iter().enumerate() {
            assert_eq!(own.shown[at], present[instance]);
            let expected =
                Some(rows[4 * instance + number]).filter(|value| present[instance] && !value.is_nan());
            match (feature.value(at), expected) {
                (Some(found), Some(expected)) => {
                    let step = (feature.range.1 - feature.range.0) / f64::from(daimc_report::figures::STEPS);
                    assert!((found - expected).abs() <= step, "{found}, not {expected}");
                }
                (found, expected) => assert_eq!(found, expected),
            }
        }
    }
}

#[test]
fn every_cluster_has_its_silhouettes_in_descending_order() {
    let (views, _) = incomplete(300, 3);
    let figures = Report::new(&views, &fitted(&views, 3)).figures().unwrap();
    let all: usize = figures.clusters.clusters.iter().map(|cluster| cluster.silhouettes.len()).sum();
    assert_eq!(all, 300);
    for cluster in &figures.clusters.clusters {
        assert!(cluster.silhouettes.is_sorted_by(|a, b| a >= b));
        let mean = cluster.silhouettes.iter().sum::<f64>() / cluster.size as f64;
        assert!((mean - cluster.silhouette.unwrap().mean).abs() < 1e-12);
    }
}

#[test]
fn instances_on_the_map_can_be_looked_up_for_any_number_of_instances() {
    let data = Synthetic::new(30_000, 3).noise(0.6).seed(8);
    let views = Views::new(vec![data.dense::<f32>("a", 4).unwrap()]).unwrap();
    let fit =
        Daimc::new(3).max_iterations(1).restarts(1).neighbours(daimc::Neighbours::Off).fit(&views).unwrap();
    let figures = Report::new(&views, &fit).figures().unwrap();
    let (map, known) = (&figures.map, &figures.instances);
    assert_eq!((map.layout.points.len(), map.plane.points.len()), (map.instances.len(), map.instances.len()));
    assert!(known.ids.len() <= 24_000 && known.ids.len() >= map.instances.len());
    for (&at, &cluster) in map.instances.iter().zip(&map.clusters) {
        assert_eq!(known.clusters[at], cluster);
        assert_eq!(fit.labels[known.numbers[at]], cluster);
    }
}

#[test]
fn the_map_is_that_of_the_fit_and_of_v_where_it_has_none() {
    let (views, _) = incomplete(300, 3);
    let fit = Daimc::new(3).neighbours(daimc::Neighbours::Refine).map(true).fit(&views).unwrap();
    let own = fit.map.clone().unwrap();
    let map = Report::new(&views, &fit).figures().unwrap().map;
    assert!(map.of_views);
    let without = Daimc::new(3).fit(&views).unwrap();
    let by_v = Report::new(&views, &without).figures().unwrap();
    assert!(!by_v.map.of_views);
    let laid_out = without.map_of_latent().unwrap();
    for (map, expected) in [(&map, &own), (&by_v.map, &laid_out)] {
        for (&at, point) in map.instances.iter().zip(&map.layout.points) {
            assert_eq!(point[..], *expected.row(by_v.instances.numbers[at]));
        }
    }
}
