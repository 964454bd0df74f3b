//! A fitted model: its file, new instances, what it fills in, and how the fit that made it is watched and stopped.

use std::ops::ControlFlow;
use std::path::PathBuf;

use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Ids, Iteration, Matrix, Model, Neighbours, Outcome, Preset, Scale, Solver, View, Views, metrics,
    simulate,
};

/// Two dense views and a sparse one of the same clusters, each with a third of the instances missing.
fn incomplete(data: &Synthetic, seed: u64) -> Views<'static> {
    let n = data.truth().len();
    let present = simulate::missing(n, &[0.3; 3], seed).unwrap();
    let views = vec![
        data.dense::<f64>("a", 12).unwrap(),
        data.dense::<f32>("b", 20).unwrap(),
        data.sparse::<f64>("c", 60, 0.1).unwrap(),
    ];
    let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
    Views::new(masked.collect()).unwrap()
}

fn easy(instances: usize) -> Synthetic {
    Synthetic::new(instances, 4).noise(0.5).seed(11)
}

/// A file of this test alone, which is gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("daimc-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The rows of a dense view, some of them.
fn rows_of(values: &[f64], features: usize, instances: impl Iterator<Item = usize>) -> Vec<f64> {
    instances.flat_map(|i| values[i * features..(i + 1) * features].to_vec()).collect()
}

/// Rows around centres that are known, `features` of them, in units that differ by feature.
fn planted(truth: &[usize], features: usize, seed: u64, unit: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(0.0..1.0)).collect();
    let row = |&cluster: &usize| centres[cluster * features..(cluster + 1) * features].to_vec();
    let centres = truth.iter().flat_map(row);
    centres.enumerate().map(|(at, x)| unit(at % features, x + rng.random_range(-0.05..0.05))).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum::<f64>();
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// Asserts that two matrices agree to a share of the largest entry.
#[track_caller]
fn assert_close(a: &Matrix, b: &Matrix, tolerance: f64) {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    let largest = b.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (x, y) in a.values().iter().zip(b.values()) {
        assert!((x - y).abs() <= tolerance * largest, "{x} and {y}, of at most {largest}");
    }
}

// The file.

#[test]
fn a_model_that_is_saved_and_loaded_is_equal_to_the_last_bit() {
    let data = easy(120);
    let ids = (0..120).map(|i| format!("instance {i} “ü\"\\")).collect();
    let names = (0..12).map(|f| format!("feature {f}\n")).collect();
    let named = data.dense::<f64>("a \"view\"", 12).unwrap();
    let named = named.ids(ids).unwrap().feature_names(names).unwrap();
    let named = Views::new(vec![named, data.sparse::<f32>("ü", 60, 0.1).unwrap()]).unwrap();
    for views in [named, incomplete(&data, 2)] {
        for (seed, scale) in
            [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit].iter().enumerate()
        {
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).scale(*scale).seed(u64::MAX - seed as u64);
                let model =
                    daimc.alpha(std::f64::consts::PI).beta(1.0 / 3.0).tolerance(0.0).fit(&views).unwrap();
                let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!(loaded.options, model.options);
                assert_eq!(loaded.views, model.views);
                assert_eq!(loaded.history, model.history);
                assert_eq!(loaded.timings, model.timings);
                assert_eq!(loaded, model);
            }
        }
    }
}

#[test]
fn a_model_has_the_same_bytes_every_time() {
    let views = incomplete(&easy(120), 2);
    let model = Daimc::new(4).fit(&views).unwrap();
    let bytes = model.to_bytes().unwrap();
    assert!(model.to_bytes().unwrap() == bytes, "two files of one model differ");
    assert!(model.clone().to_bytes().unwrap() == bytes, "the file of a copy differs");
    let file = Scratch::new("bytes");
    model.save(&file.0).unwrap();
    assert!(std::fs::read(&file.0).unwrap() == bytes, "what is saved is not what it said");
}

#[test]
fn a_model_that_is_loaded_has_the_bytes_of_its_file() {
    let bytes = Daimc::new(4).fit(&incomplete(&easy(120), 2)).unwrap().to_bytes().unwrap();
    assert!(
        Model::from_bytes(&bytes).unwrap().to_bytes().unwrap() == bytes,
        "the file changes when it is loaded"
    );
}

#[test]
fn a_model_is_saved_over_an_older_one_and_leaves_nothing_else() {
    let views = incomplete(&easy(120), 2);
    let file = Scratch::new("older");
    Daimc::new(2).max_iterations(2).fit(&views).unwrap().save(&file.0).unwrap();
    let model = Daimc::new(4).max_iterations(2).fit(&views).unwrap();
    model.save(&file.0).unwrap();
    assert_eq!(Model::load(&file.0).unwrap().labels, model.labels);
    let name = file.0.file_name().unwrap().to_str().unwrap();
    let folder = std::fs::read_dir(file.0.parent().unwrap()).unwrap();
    let left = folder.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with(name));
    assert_eq!(left.count(), 1);
}

#[test]
fn a_loaded_model_places_instances_as_the_fitted_one() {
    let (old, new) = (incomplete(&easy(200), 2), incomplete(&easy(77), 3));
    for preset in [Preset::Default, Preset::Paper] {
        for scale in [Scale::Auto, Scale::MinMaxUnit, Scale::ZScore, Scale::TfIdf] {
            let model = Daimc::new(4).preset(preset).scale(scale).fit(&old).unwrap();
            let file = Scratch::new(&format!("places-{preset:?}-{scale}"));
            model.save(&file.0).unwrap();
            let loaded = Model::load(&file.0).unwrap();
            for views in [&old, &new] {
                let (a, b) = (model.place(views).unwrap(), loaded.place(views).unwrap());
                assert_eq!(a.labels, b.labels);
                assert_close(&b.latent, &a.latent, 1e-12);
            }
        }
    }
}

#[test]
fn ids_and_feature_names_are_kept() {
    let ids: Vec<String> = (0..40).map(|i| format!("id {i}")).collect();
    let names: Vec<String> = (0..6).map(|f| format!("feature {f}")).collect();
    let data = easy(40);
    let a =
        data.dense::<f64>("a", 6).unwrap().ids(ids.clone()).unwrap().feature_names(names.clone()).unwrap();
    let views = Views::new(vec![a, data.dense::<f64>("b", 5).unwrap()]).unwrap();
    let model = Daimc::new(4).fit(&views).unwrap();
    for model in [&model, &Model::from_bytes(&model.to_bytes().unwrap()).unwrap()] {
        assert_eq!(model.ids, Ids::Names(ids.clone()));
        assert_eq!(model.views[0].feature_names.as_ref(), Some(&names));
        assert_eq!(model.views[1].feature_names, None);
        assert_eq!((&model.views[0].name[..], &model.views[1].name[..]), ("a", "b"));
    }
    let plain = Daimc::new(4).fit(&incomplete(&data, 1)).unwrap();
    assert_eq!(plain.ids, Ids::Numbers(40));
}

// New instances.

/// How many instances are placed in another cluster than the fit put them in, though not half way between two; and by
/// how much rows of V differ at most, as a share of the row's largest entry.
fn disagreement(daimc: &Daimc, views: &Views<'_>) -> (usize, f64) {
    let model = daimc.fit(views).unwrap();
    let place = model.place(views).unwrap();
    assert_eq!(model.predict(views).unwrap(), place.labels);
    let differ = (0..views.instances()).filter(|&i| place.labels[i] != model.labels[i]);
    let difference = place.latent.iter_rows().zip(model.latent.iter_rows()).map(|(a, b)| {
        let largest = b.iter().fold(f64::MIN_POSITIVE, |largest, value| largest.max(*value));
        a.iter().zip(b).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f64::max)
    });
    (differ.filter(|&i| model.confidence[i] > 1e-6).count(), difference.fold(0.0, f64::max))
}

/// A fit in which each instance is labelled by its own row of V alone, as new instances are.
fn alone(scale: Scale) -> Daimc {
    Daimc::new(4).scale(scale).neighbours(Neighbours::Off)
}

#[test]
fn the_instances_it_was_fitted_to_are_predicted_as_they_were_labelled() {
    for n in [50, 300, 6000] {
        for noise in [0.5, 2.0] {
            let views = incomplete(&easy(n).noise(noise), 5);
            for scale in [Scale::Auto, Scale::None, Scale::Unit] {
                let (differ, difference) = disagreement(&alone(scale), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
                // One of the views is in single precision.
                assert!(
                    difference < 1e-4,
                    "{scale}, {n} instances, noise {noise}: V differs by {difference:e}"
                );
            }
        }
    }
}

#[test]
fn instances_scaled_to_a_range_are_predicted_as_they_were_labelled() {
    for n in [50, 300, 2000] {
        for noise in [0.5, 2.0] {
            let views = incomplete(&easy(n).noise(noise), 5);
            for scale in [Scale::MinMax, Scale::MinMaxUnit] {
                let (differ, difference) = disagreement(&alone(scale), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
                assert!(
                    difference < 1e-2,
                    "{scale}, {n} instances, noise {noise}: V differs by {difference:e}"
                );
            }
        }
    }
}

#[test]
fn centred_instances_are_predicted_as_they_were_labelled() {
    // The means of the clusters of centred data are dependent: Σ n_k c_k = 0.
    for n in [50, 300, 2000] {
        for (noise, seed) in [(0.5, 0), (2.0, 1), (2.0, 2), (4.0, 3)] {
            let views = incomplete(&Synthetic::new(n, 4).noise(noise).seed(11 + seed), 5);
            for scale in [Scale::ZScore, Scale::ZScoreUnit] {
                let (differ, _) = disagreement(&alone(scale).seed(seed), &views);
                assert_eq!(differ, 0, "{scale}, {n} instances, noise {noise}");
            }
        }
    }
}

#[test]
fn the_order_of_the_views_does_not_matter_to_a_model() {
    let data = easy(150);
    let model = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let a = || data.dense::<f64>("a", 12).unwrap();
    let b = || data.dense::<f32>("b", 20).unwrap();
    let c = || data.sparse::<f64>("c", 60, 0.1).unwrap();
    let place = |views: Vec<View<'static>>| model.place(&Views::new(views).unwrap()).unwrap();
    let expected = place(vec![a(), b(), c()]);
    for views in [vec![c(), b(), a()], vec![b(), a(), c()], vec![c(), a(), b()]] {
        let place = place(views);
        assert_eq!(place.labels, expected.labels);
        assert_close(&place.latent, &expected.latent, 1e-8);
    }
}

#[test]
fn new_instances_are_placed_from_some_of_the_views() {
    let data = easy(300);
    let truth = data.truth();
    let model = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let a = || data.dense::<f64>("a", 12).unwrap();
    let b = || data.dense::<f32>("b", 20).unwrap();
    let c = || data.sparse::<f64>("c", 60, 0.1).unwrap();
    for views in [vec![a()], vec![b()], vec![c(), a()], vec![b(), c()], vec![c(), b()]] {
        let place = model.place(&Views::new(views).unwrap()).unwrap();
        assert!(metrics::accuracy(&truth, &place.labels).unwrap() > 0.95);
        assert_eq!((place.latent.rows(), place.latent.columns()), (300, 4));
        assert!(place.confidence.iter().all(|c| (0.0..=1.0).contains(c)));
    }
}

#[test]
fn each_new_instance_is_placed_by_itself() {
    let data = easy(300);
    let model = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    let all = incomplete(&easy(60), 9);
    let together = model.place(&all).unwrap();
    let ids = || (0..60).map(|i| i.to_string()).collect::<Vec<_>>();
    for i in [0, 17, 59] {
        let only: Vec<bool> = (0..60).map(|j| j == i).collect();
        let views = all.iter().enumerate().filter(|(view, _)| all.is_present(*view, i));
        let alone = views.map(|(_, view)| view.clone().mask(&only).unwrap().ids(ids()).unwrap());
        let (alone, account) = Views::join(alone.collect()).unwrap();
        assert_eq!(account.instances, 1);
        let alone = model.place(&alone).unwrap();
        assert_eq!(alone.labels[0], together.labels[i]);
        let row = Matrix::new(1, 4, together.latent.row(i).to_vec()).unwrap();
        // One view is in single precision, and products of a lone row are rounded otherwise.
        assert_close(&alone.latent, &row, 1e-6);
    }
}

#[test]
fn instances_held_out_and_seen_in_one_view_are_mostly_placed_right() {
    let n = 400;
    let truth = Synthetic::new(n, 4).seed(21).truth();
    let unit = |_: usize, x: f64| x;
    let values = [planted(&truth, 10, 1, unit), planted(&truth, 15, 2, unit)];
    let half = n / 2;
    let views = |range: std::ops::Range<usize>| {
        let of = |name, d, v: usize| View::dense(name, d, rows_of(&values[v], d, range.clone())).unwrap();
        [of("a", 10, 0), of("b", 15, 1)]
    };
    let [a, b] = views(0..half);
    let present = simulate::missing(half, &[0.3, 0.3], 4).unwrap();
    let fitted = Views::new(vec![a.mask(&present[0]).unwrap(), b.mask(&present[1]).unwrap()]).unwrap();
    let model = Daimc::new(4).fit(&fitted).unwrap();
    // Clusters have no names: they are told by the instances of the fit.
    let both: Vec<usize> = truth[..half].to_vec();
    assert!(metrics::accuracy(&both, &model.labels).unwrap() > 0.95);
    for view in views(half..n) {
        let labels = model.predict(&Views::new(vec![view]).unwrap()).unwrap();
        let joined: Vec<usize> = model.labels.iter().chain(&labels).copied().collect();
        assert!(metrics::accuracy(&truth, &joined).unwrap() > 0.95);
    }
}

// What the model fills in.

/// Rows with the mean of each feature of other rows taken away, and divided by its deviation there.
fn standard(rows: &[f64], other: &[f64], features: usize) -> Vec<f64> {
    let n = (other.len() / features) as f64;
    let column = |f: usize| other.iter().skip(f).step_by(features);
    let means: Vec<f64> = (0..features).map(|f| column(f).sum::<f64>() / n).collect();
    let deviation = |f: usize| (column(f).map(|x| (x - means[f]).powi(2)).sum::<f64>() / n).sqrt();
    let deviations: Vec<f64> = (0..features).map(deviation).collect();
    rows.iter().enumerate().map(|(i, x)| (x - means[i % features]) / deviations[i % features]).collect()
}

/// How held-out rows correlate with what a model makes of them, when each feature is taken around its mean and in its
/// deviation, and the ratio of their lengths.
fn filled_in(scale: Scale, unit: impl Fn(usize, f64) -> f64 + Copy) -> (f64, f64) {
    let (n, d) = (300, 10);
    let truth = Synthetic::new(n, 3).seed(8).truth();
    let (a, b) = (planted(&truth, 8, 3, unit), planted(&truth, d, 4, unit));
    let present = simulate::missing(n, &[0.0, 0.3], 6).unwrap();
    let mut shown = b.clone();
    for i in (0..n).filter(|&i| !present[1][i]) {
        shown[i * d..(i + 1) * d].fill(f64::NAN);
    }
    let views = Views::new(vec![
        View::dense("a", 8, a).unwrap(),
        View::dense("b", d, shown).unwrap().mask(&present[1]).unwrap(),
    ])
    .unwrap();
    let model = Daimc::new(3).scale(scale).fit(&views).unwrap();
    let rows = model.reconstruct("b", &model.latent).unwrap();
    assert_eq!((rows.rows(), rows.columns()), (n, d));
    let missing = || (0..n).filter(|&i| !present[1][i]);
    let (found, expected) = (rows_of(rows.values(), d, missing()), rows_of(&b, d, missing()));
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    (correlation(&standard(&found, &b, d), &standard(&expected, &b, d)), length(&found) / length(&expected))
}

#[test]
fn missing_rows_are_filled_in_in_the_units_of_the_data() {
    for scale in [Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
        let (correlation, length) = filled_in(scale, |_, x| 40.0 * x);
        assert!(correlation > 0.9, "{scale}: {correlation}");
        assert!((length - 1.0).abs() < 0.1, "{scale}: lengths differ by a factor {length}");
    }
}

#[test]
fn missing_rows_are_filled_in_where_features_differ_in_unit_and_origin() {
    for scale in [Scale::MinMax, Scale::ZScore] {
        let (correlation, length) =
            filled_in(scale, |f, x| [1.0, 10.0, 100.0, 1000.0][f % 4] * (x + f as f64));
        assert!(correlation > 0.9, "{scale}: {correlation}");
        assert!((length - 1.0).abs() < 0.1, "{scale}: lengths differ by a factor {length}");
    }
}

#[test]
fn what_is_filled_in_follows_the_present_rows_as_well() {
    let truth = Synthetic::new(200, 3).seed(8).truth();
    let values = planted(&truth, 10, 4, |_, x| x);
    let views = Views::new(vec![View::dense("b", 10, &values).unwrap()]).unwrap();
    for scale in [Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
        let model = Daimc::new(3).scale(scale).fit(&views).unwrap();
        let rows = model.reconstruct("b", &model.latent).unwrap();
        let correlation = correlation(&standard(rows.values(), &values, 10), &standard(&values, &values, 10));
        assert!(correlation > 0.9, "{scale}: {correlation}");
    }
}

#[test]
fn every_feature_has_a_relevance() {
    let data = easy(100);
    let model = Daimc::new(4).fit(&incomplete(&data, 2)).unwrap();
    for (name, features) in [("a", 12), ("b", 20), ("c", 60)] {
        let view = model.view(name).unwrap();
        let relevance = view.relevance();
        assert_eq!(relevance.len(), features);
        assert!(relevance.iter().all(|value| value.is_finite() && *value >= 0.0));
        for (relevance, row) in relevance.iter().zip(view.alignment.iter_rows()) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((relevance - norm).abs() <= 1e-5 + 1e-9 * norm);
        }
    }
}

#[test]
fn features_without_any_cluster_matter_less_than_the_others() {
    let truth = Synthetic::new(300, 3).seed(8).truth();
    // The last five features are the same for all clusters but for noise.
    let unit = |f: usize, x: f64| if f < 5 { x } else { 0.0 };
    let noise = planted(&vec![0; 300], 10, 9, |f, x| if f < 5 { 0.0 } else { x });
    let values: Vec<f64> = planted(&truth, 10, 4, unit).iter().zip(&noise).map(|(a, b)| a + b).collect();
    let views = Views::new(vec![View::dense("a", 10, values).unwrap()]).unwrap();
    let model = Daimc::new(3).scale(Scale::ZScore).fit(&views).unwrap();
    let relevance = model.views[0].relevance();
    let mean = |range: &[f64]| range.iter().sum::<f64>() / range.len() as f64;
    assert!(mean(&relevance[..5]) > 2.0 * mean(&relevance[5..]), "{relevance:?}");
}

// The fit.

#[test]
fn the_callback_is_called_once_after_each_iteration() {
    let views = incomplete(&easy(150), 2);
    for preset in [Preset::Default, Preset::Paper] {
        let mut seen: Vec<Iteration> = Vec::new();
        let daimc = Daimc::new(4).preset(preset);
        let model = daimc.fit_with(&views, |iteration| {
            seen.push(*iteration);
            ControlFlow::Continue(())
        });
        let model = model.unwrap();
        assert_eq!(seen.len(), model.history.len());
        assert_eq!(model.iterations(), model.history.len());
        assert!(seen.iter().enumerate().all(|(i, iteration)| iteration.number == i + 1));
        assert!(seen.iter().zip(&model.history).all(|(iteration, now)| iteration.objective == *now));
        assert!(seen.windows(2).all(|pair| pair[0].elapsed <= pair[1].elapsed));
        assert_eq!(seen[0].change, f64::INFINITY);
        for pair in seen.windows(2) {
            let change = (pair[0].objective.total - pair[1].objective.total).abs() / pair[0].objective.total;
            assert_eq!(pair[1].change, change);
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
            let model = daimc.fit_with(&views, |iteration| {
                if iteration.number == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let model = model.unwrap();
            assert_eq!(model.outcome, Outcome::Cancelled);
            assert_eq!((model.iterations(), model.history.len()), (stop, stop));
            assert_eq!(model.labels.len(), 150);
            assert_eq!(model.predict(&views).unwrap().len(), 150);
            assert_eq!(model.neighbours.used, Neighbours::Off);
            let short = daimc.max_iterations(stop).neighbours(Neighbours::Off).fit(&views).unwrap();
            assert_eq!(short.history, model.history);
            // What follows the iterations was left out; it changes little here.
            assert!(metrics::ari(&short.labels, &model.labels).unwrap() > 0.8);
        }
    }
}

#[test]
fn a_cancelled_model_is_the_same_from_a_file() {
    let views = incomplete(&easy(80), 2);
    let model = Daimc::new(4).fit_with(&views, |_| ControlFlow::Break(())).unwrap();
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((loaded.outcome, loaded.iterations()), (Outcome::Cancelled, 1));
}

#[test]
fn a_large_tolerance_ends_the_fit_early() {
    let views = incomplete(&easy(150), 2);
    for preset in [Preset::Default, Preset::Paper] {
        let daimc = Daimc::new(4).preset(preset);
        let model = daimc.clone().tolerance(1e6).fit(&views).unwrap();
        // The first iteration has nothing to compare with.
        assert_eq!((model.outcome, model.iterations()), (Outcome::Converged, 2));
        let model = daimc.tolerance(0.0).max_iterations(4).fit(&views).unwrap();
        assert_eq!((model.outcome, model.iterations()), (Outcome::IterationLimit, 4));
    }
}

#[test]
fn a_fit_ends_when_j_changes_by_less_than_the_tolerance() {
    let views = incomplete(&easy(150), 2);
    let model = Daimc::new(4).tolerance(1e-3).max_iterations(1000).fit(&views).unwrap();
    assert_eq!(model.outcome, Outcome::Converged);
    let changes: Vec<f64> =
        model.history.windows(2).map(|pair| (pair[0].total - pair[1].total).abs() / pair[0].total).collect();
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
                let model = daimc.fit(&views).unwrap();
                assert_eq!((model.options.clusters, model.options.latent), (4, latent));
                assert_eq!((model.latent.rows(), model.latent.columns()), (300, latent));
                assert_eq!((model.centres.rows(), model.centres.columns()), (latent, 4));
                let view = model.view("c").unwrap();
                assert_eq!((view.basis.rows(), view.basis.columns()), (60, latent));
                assert_eq!((view.alignment.rows(), view.alignment.columns()), (60, latent));
                assert!(model.labels.iter().all(|&label| label < 4));
                assert_eq!(model.transform(&views).unwrap().columns(), latent);
                if preset == Preset::Default {
                    assert_eq!(model.predict(&views).unwrap(), model.labels);
                    let enough = latent < 4 || metrics::accuracy(&data.truth(), &model.labels).unwrap() > 0.9;
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
                let model = Daimc::new(6).preset(preset).solver(solver).seed(seed).fit(&views).unwrap();
                (model.views, model.latent, model.labels, model.history)
            };
            let first = fit(1);
            assert_eq!(fit(1), first);
            assert!((2..6).any(|seed| fit(seed).1 != first.1));
        }
    }
}
