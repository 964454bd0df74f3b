//! The evidence of the views for the clusters.

use daimc::synthetic::Synthetic;
use daimc::{
    Contributions, Daimc, Fit, Matrix, Neighbours, Preset, Scale, Scaling, View, Views, metrics, simulate,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A row, scaled as in the model.
fn scaled(row: &[f64], scaling: &Scaling) -> Vec<f64> {
    let value = |(f, x): (usize, &f64)| {
        let (m, c) = (scaling.shift.get(f).unwrap_or(&0.0), scaling.factor.get(f).unwrap_or(&1.0));
        let x = if scaling.scale.is_log() { x.ln_1p() } else { *x };
        (x - m) * c
    };
    let row: Vec<f64> = row.iter().enumerate().map(value).collect();
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    let unit = if scaling.unit_rows() && length > 0.0 { 1.0 / length } else { 1.0 };
    row.iter().map(|x| x * unit * scaling.weight).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn distance(a: &[f64], b: &[f64], factor: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - factor * b).powi(2)).sum()
}

/// The evidence and the rival of one instance, by definition, from its stored rows by view.
fn naive(fitted: &Fit, rows: &[Option<Vec<f64>>], own: usize) -> (Vec<Option<f64>>, usize) {
    let clusters = fitted.model.options.clusters;
    let members = |c: usize| (0..fitted.labels.len()).filter(move |&i| fitted.labels[i] == c);
    let prototype = |view: usize, c: usize| -> Vec<f64> {
        let count = members(c).count() as f64;
        let mean: Vec<f64> = (0..fitted.model.options.latent)
            .map(|k| members(c).map(|i| fitted.latent[(i, k)]).sum::<f64>() / count)
            .collect();
        fitted.model.views[view].basis.iter_rows().map(|u| dot(u, &mean)).collect()
    };
    let alive: Vec<usize> = (0..clusters).filter(|&c| members(c).count() > 0).collect();
    let shown: Vec<(usize, Vec<f64>)> = rows
        .iter()
        .enumerate()
        .filter_map(|(view, row)| Some((view, scaled(row.as_ref()?, &fitted.model.views[view].scaling))))
        .collect();
    // All views as one long row.
    let whole: Vec<f64> = shown.iter().flat_map(|(_, row)| row.clone()).collect();
    let long = |c: usize| -> Vec<f64> { shown.iter().flat_map(|(view, _)| prototype(*view, c)).collect() };
    let best_factor = |c: usize| (dot(&whole, &long(c)) / dot(&long(c), &long(c))).max(0.0);
    let nearest = |a: &&usize, b: &&usize| {
        let to = |c: usize| distance(&whole, &long(c), best_factor(c));
        to(**a).total_cmp(&to(**b))
    };
    let factor = best_factor(*alive.iter().min_by(nearest).unwrap());
    let others = alive.iter().copied().filter(|&c| c != own);
    let to = |c: usize| distance(&whole, &long(c), factor);
    let rival = others.min_by(|&a, &b| to(a).total_cmp(&to(b))).unwrap();
    let mut evidence = vec![None; rows.len()];
    for (view, row) in &shown {
        let to = |c: usize| distance(row, &prototype(*view, c), factor);
        evidence[*view] = Some(to(rival) - to(own));
    }
    (evidence, rival)
}

fn compare(
    fitted: &Fit,
    found: &Contributions,
    labels: &[usize],
    row: impl Fn(usize, usize) -> Option<Vec<f64>>,
) {
    for (i, &own) in labels.iter().enumerate() {
        let rows: Vec<_> = (0..fitted.model.views.len()).map(|view| row(view, i)).collect();
        let (evidence, rival) = naive(fitted, &rows, own);
        assert_eq!(found.rival(i), Some(rival), "instance {i}");
        let total: f64 = evidence.iter().flatten().map(|e| e.abs()).sum();
        for (view, share) in found.shares(i).enumerate() {
            assert_eq!(share.is_some(), evidence[view].is_some());
            if let (Some(expected), Some(share)) = (evidence[view], share) {
                assert!(
                    (found.evidence(i)[view].unwrap() - expected).abs() < 1e-5,
                    "instance {i}, view {view}"
                );
                assert!((share - expected / total).abs() < 1e-4, "instance {i}, view {view}");
            }
        }
        assert!((found.margin(i) - evidence.iter().flatten().sum::<f64>()).abs() < 1e-5);
    }
}

/// Pseudorandom numbers, each row with its own length.
fn numbers(rows: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..rows * columns)
        .map(|at| {
            let kind = (at / columns % 4) as f64;
            let length = 1.0 + (at / columns % 7) as f64;
            length * (rng.random::<f64>() + if at % 4 == at / columns % 4 { kind } else { 0.2 })
        })
        .collect()
}

#[test]
fn contributions_are_those_of_the_definition_under_every_scaling() {
    let n = 90;
    let present = simulate::missing(n, &[0.3; 3], 5).unwrap();
    let columns = [12, 20, 33];
    let values: Vec<Vec<f64>> = columns.iter().enumerate().map(|(v, &d)| numbers(n, d, v as u64)).collect();
    // The third view is sparse: small values are not stored.
    let (mut offsets, mut stored, mut kept) = (vec![0], Vec::new(), Vec::new());
    let mut sparse = values[2].clone();
    for row in sparse.chunks_mut(33) {
        for (column, value) in row.iter_mut().enumerate() {
            if *value < 1.0 {
                *value = 0.0;
            } else {
                stored.push(column as u32);
                kept.push(*value);
            }
        }
        offsets.push(stored.len());
    }
    let single: Vec<f32> = values[1].iter().map(|&x| x as f32).collect();
    let views = vec![
        View::dense("a", 12, &values[0]).unwrap(),
        View::dense("b", 20, &single).unwrap(),
        View::sparse("c", 33, offsets, stored, kept).unwrap(),
    ];
    let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
    let views = Views::new(masked.collect()).unwrap();
    let data = [&values[0], &values[1], &sparse];
    let row = |view: usize, i: usize| {
        let d = columns[view];
        present[view][i].then(|| data[view][i * d..(i + 1) * d].to_vec())
    };
    for scale in Scale::ALL {
        let fitted = Daimc::new(4).scale(scale).max_iterations(5).fit(&views).unwrap();
        compare(&fitted, &fitted.contributions(&views).unwrap(), &fitted.labels, row);
    }
    for fit in [Daimc::new(4).preset(Preset::Paper), Daimc::new(3).latent(6)] {
        let fitted = fit.max_iterations(5).fit(&views).unwrap();
        compare(&fitted, &fitted.contributions(&views).unwrap(), &fitted.labels, row);
    }
    // New instances with the model's views in another order, one of them missing.
    let fitted = Daimc::new(4).fit(&views).unwrap();
    let new = [numbers(9, 33, 7), numbers(9, 12, 8)];
    let given = vec![View::dense("c", 33, &new[0]).unwrap(), View::dense("a", 12, &new[1]).unwrap()];
    let given = Views::new(given).unwrap();
    let labels = fitted.model.predict(&given).unwrap();
    let found = fitted.model.contributions_of(&given, &labels).unwrap();
    compare(&fitted, &found, &labels, |view, i| match view {
        0 => Some(new[1][12 * i..12 * (i + 1)].to_vec()),
        1 => None,
        _ => Some(new[0][33 * i..33 * (i + 1)].to_vec()),
    });
}

/// Three clusters in three views of 30 features, each row the centre of its cluster plus noise. View b has the same centre for
/// clusters 0 and 1. View c shows pure noise for every fifth instance, and the centre of the next cluster for the
/// instances after those.
fn planted() -> (Views<'static>, Vec<usize>) {
    let (n, d) = (600, 30);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut draw = |count: usize, size: f64| -> Vec<f64> {
        // The sum of twelve uniform numbers is nearly normal.
        (0..count).map(|_| size * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0)).collect()
    };
    let truth: Vec<usize> = (0..n).map(|i| i / 5 % 3).collect();
    let views = ["a", "b", "c"].map(|name| {
        let centres = draw(3 * d, 1.0);
        let mut values = draw(n * d, 0.5);
        for (i, row) in values.chunks_mut(d).enumerate() {
            let shown = match (name, truth[i], i % 5) {
                ("b", 1, _) => Some(0),
                ("c", _, 0) => None,
                ("c", cluster, 1) => Some((cluster + 1) % 3),
                (_, cluster, _) => Some(cluster),
            };
            match shown {
                Some(c) => row.iter_mut().zip(&centres[c * d..]).for_each(|(x, centre)| *x += centre),
                // As long as other rows.
                None => row.iter_mut().for_each(|x| *x *= 5.0_f64.sqrt()),
            }
        }
        View::dense(name, d, values).unwrap()
    });
    (Views::new(views.into()).unwrap(), truth)
}

#[test]
fn evidence_distinguishes_supporting_views_from_noise_contradicting_and_blind_ones() {
    let (views, truth) = planted();
    for scale in [Scale::Unit, Scale::ZScore, Scale::None, Scale::MinMaxUnit] {
        let fitted = Daimc::new(3).scale(scale).fit(&views).unwrap();
        assert_eq!(metrics::accuracy(&truth, &fitted.labels).unwrap(), 1.0, "{scale}");
        let found = fitted.contributions(&views).unwrap();
        let of = |view: usize, of_instance: &dyn Fn(usize) -> bool| -> Vec<f64> {
            (0..600)
                .filter(|&i| of_instance(i))
                .map(|i| found.shares(i).nth(view).unwrap().unwrap())
                .collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let cluster_of = |class: usize| fitted.labels[5 * class];
        let rival_is = |i: usize, class: usize| found.rival(i) == Some(cluster_of(class % 3));

        let usual = of(2, &|i| i % 5 > 1);
        assert!(usual.iter().all(|&share| share > 0.0), "{scale}");
        let noise = mean(&of(2, &|i| i % 5 == 0));
        assert!(noise.abs() < 0.1 * mean(&usual), "{scale}: {noise} compared with {}", mean(&usual));
        // View c supports the next cluster: against the own one, if the next one is the rival.
        let against = of(2, &|i| i % 5 == 1 && rival_is(i, truth[i] + 1));
        assert!(against.len() > 20 && against.iter().all(|&share| share < 0.0), "{scale}: {against:?}");
        let blind = of(1, &|i| truth[i] < 2 && rival_is(i, 1 - truth[i]));
        assert!(blind.len() > 200 && blind.iter().all(|share| share.abs() < 0.1), "{scale}: {blind:?}");
        let sighted = of(1, &|i| truth[i] == 2);
        assert!(sighted.iter().all(|&share| share > 0.1), "{scale}: {sighted:?}");
    }
}

#[test]
fn the_length_of_an_instance_is_no_evidence() {
    let values = numbers(80, 10, 1);
    let other = numbers(80, 15, 2);
    let fit = |longer: bool| {
        // Powers of two preserve all digits.
        let factor = |i: usize| if longer { [0.25, 1.0, 64.0][i % 3] } else { 1.0 };
        let stretch = |values: &[f64], d: usize| -> Vec<f64> {
            values.iter().enumerate().map(|(at, x)| x * factor(at / d)).collect()
        };
        let views = vec![
            View::dense("a", 10, stretch(&values, 10)).unwrap(),
            View::dense("b", 15, stretch(&other, 15)).unwrap(),
        ];
        Views::new(views).unwrap()
    };
    let fitted = Daimc::new(4).scale(Scale::None).fit(&fit(false)).unwrap();
    let plain = fitted.contributions(&fit(false)).unwrap();
    let longer = fitted.contributions(&fit(true)).unwrap();
    for i in 0..80 {
        assert_eq!(plain.rival(i), longer.rival(i));
        for (plain, longer) in plain.shares(i).zip(longer.shares(i)) {
            assert!((plain.unwrap() - longer.unwrap()).abs() < 1e-12, "{i}: {plain:?}, {longer:?}");
        }
    }
}

fn incomplete(instances: usize, clusters: usize) -> Views<'static> {
    let data = Synthetic::new(instances, clusters).seed(4);
    let present = simulate::missing(instances, &[0.3, 0.3], 1).unwrap();
    let a = data.dense::<f32>("a", 9).unwrap().mask(&present[0]).unwrap();
    let b = data.sparse::<f64>("b", 40, 0.2).unwrap().mask(&present[1]).unwrap();
    Views::new(vec![a, b]).unwrap()
}

#[test]
fn contributions_have_the_same_bits_on_any_number_of_threads() {
    let views = incomplete(3000, 5);
    let fitted = Daimc::new(5).max_iterations(3).fit(&views).unwrap();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fitted.contributions(&views).unwrap())
    };
    let one = with(1);
    assert_eq!((one.instances(), one.views()), (3000, 2));
    assert_eq!(one, with(2));
    assert_eq!(one, with(7));
}

#[test]
fn shares_without_their_signs_sum_to_one() {
    let views = incomplete(200, 3);
    let fitted = Daimc::new(3).fit(&views).unwrap();
    let found = fitted.contributions(&views).unwrap();
    for i in 0..200 {
        let sum: f64 = found.shares(i).flatten().map(f64::abs).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{i}: {sum}");
        for (view, share) in found.shares(i).enumerate() {
            assert_eq!(share.is_some(), views.is_present(view, i));
        }
    }
}

#[test]
fn with_one_cluster_there_is_nothing_to_decide() {
    let views = incomplete(60, 2);
    let fitted = Daimc::new(1).fit(&views).unwrap();
    let found = fitted.contributions(&views).unwrap();
    for i in 0..60 {
        assert_eq!((found.rival(i), found.margin(i)), (None, 0.0));
        assert!(found.shares(i).flatten().all(|share| share == 0.0));
    }
}

#[test]
fn a_row_of_zeros_has_no_evidence() {
    let mut values = numbers(40, 6, 3);
    values[..6].fill(0.0);
    let views = Views::new(vec![View::dense("a", 6, values).unwrap()]).unwrap();
    let fitted = Daimc::new(4).scale(Scale::Unit).fit(&views).unwrap();
    let found = fitted.contributions(&views).unwrap();
    assert_eq!(found.shares(0).collect::<Vec<_>>(), [Some(0.0)]);
}

#[test]
fn an_empty_cluster_is_never_a_rival() {
    // Two kinds of rows for three clusters.
    let values: Vec<f64> = (0..40).flat_map(|i| if i % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
    let views = Views::new(vec![View::dense("a", 2, values).unwrap()]).unwrap();
    let fitted = Daimc::new(3).fit(&views).unwrap();
    let empty = (0..3).find(|cluster| !fitted.labels.contains(cluster)).unwrap();
    let found = fitted.contributions(&views).unwrap();
    assert!((0..40).all(|i| found.rival(i).is_some_and(|rival| rival != empty)));
    // Assigned labels do not produce invalid values either.
    let there = fitted.model.contributions_of(&views, &[empty; 40]).unwrap();
    assert!((0..40).all(|i| there.margin(i) < 0.0));
}

#[test]
fn what_does_not_belong_to_the_model_is_refused() {
    let named = |first: &str| {
        let ids = (0..30).map(|i| if i == 0 { first.to_string() } else { format!("i{i}") }).collect();
        let view = Synthetic::new(30, 2).dense::<f64>("a", 5).unwrap().ids(ids).unwrap();
        Views::new(vec![view]).unwrap()
    };
    let fitted = Daimc::new(2).fit(&named("i0")).unwrap();
    let error = |views: &Views<'_>| fitted.contributions(views).unwrap_err().to_string();
    let other = |instances: usize, name: &str, features: usize| {
        Views::new(vec![Synthetic::new(instances, 2).dense::<f64>(name, features).unwrap()]).unwrap()
    };
    assert_eq!(error(&other(29, "a", 5)), "instances: expected 30 values, found 29");
    assert!(error(&other(30, "z", 5)).contains("not part of the model"));
    assert!(error(&other(30, "a", 6)).contains("as many as the model was fitted to"));
    let message = error(&named("x"));
    assert!(message.contains("instance 0 of the fit is 'i0'") && message.contains('x'), "{message}");
    let labels =
        |labels: &[usize]| fitted.model.contributions_of(&named("x"), labels).unwrap_err().to_string();
    assert_eq!(labels(&[0; 29]), "labels: expected 30 values, found 29");
    assert!(labels(&[2; 30]).contains("the clusters of the model are 0 to 1"));
}

/// Two views of which ten features distinguish the clusters: as many as lead a cluster.
fn with_noise_features(threads: usize) -> (Synthetic, Fit) {
    let data = Synthetic::new(600, 4).informative(10).noise(1.0).seed(3);
    let present = simulate::missing(600, &[0.3, 0.3], 2).unwrap();
    let views = [("a", 200), ("b", 120)].into_iter().zip(&present);
    let views = views.map(|((name, d), present)| data.dense::<f64>(name, d).unwrap().mask(present).unwrap());
    let views = Views::new(views.collect()).unwrap();
    // Most features are noise, which features scaled to one range would amplify.
    (data, Daimc::new(4).scale(Scale::Unit).runs(6).threads(threads).fit(&views).unwrap())
}

#[test]
fn informative_features_lead_in_every_run_and_the_others_as_often_as_chance_has_it() {
    let (data, fitted) = with_noise_features(2);
    for view in &fitted.model.views {
        let (d, leading) = (view.basis.rows(), view.leading());
        assert_eq!(leading, 10);
        let informative = data.informative_features(&view.name, d);
        let stability = view.stability.as_ref().unwrap();
        assert_eq!((stability.rows(), stability.columns()), (d, 4));
        assert!(stability.values().iter().all(|share| (share * 6.0 - (share * 6.0).round()).abs() < 1e-12));
        // Each distinguishes some cluster from the others, though not every cluster.
        for &feature in &informative {
            assert!(stability.row(feature).contains(&1.0), "{}: feature {feature}", view.name);
        }
        let others = (0..d).filter(|feature| informative.binary_search(feature).is_err());
        let sum: f64 = others.flat_map(|feature| stability.row(feature)).sum();
        let (mean, chance) = (sum / (4 * (d - 10)) as f64, leading as f64 / d as f64);
        assert!(mean < 0.5 * chance, "{}: {mean} with {chance} by chance", view.name);
        // No run has more leaders than the limit.
        for cluster in 0..4 {
            let sum: f64 = stability.iter_rows().map(|row| row[cluster]).sum();
            assert!(sum <= leading as f64 + 1e-9, "{}: {sum}", view.name);
        }
    }
}

#[test]
fn without_a_signal_stability_is_that_of_chance_and_not_of_the_order_of_features() {
    // All 400 features are noise: those that lead do so by chance.
    let data = Synthetic::new(300, 5).informative(0).noise(1.0).seed(8);
    let views = Views::new(vec![data.dense::<f64>("a", 400).unwrap()]).unwrap();
    let fitted = Daimc::new(5).runs(8).neighbours(Neighbours::Off).fit(&views).unwrap();
    let stability = fitted.model.views[0].stability.as_ref().unwrap();
    assert_eq!(fitted.model.views[0].leading(), 20);
    let mean = |rows: std::ops::Range<usize>| {
        let count = rows.len();
        rows.flat_map(|row| stability.row(row)).sum::<f64>() / (5 * count) as f64
    };
    // Twenty of 400 lead; those with another sign than in the result do not count.
    assert!((0.04..=0.05 + 1e-12).contains(&mean(0..400)), "{}", mean(0..400));
    assert!((mean(0..200) - mean(200..400)).abs() < 0.02, "{} {}", mean(0..200), mean(200..400));
}

#[test]
fn stability_does_not_depend_on_threads() {
    let stability =
        |threads| with_noise_features(threads).1.model.views.into_iter().map(|view| view.stability);
    assert!(stability(1).eq(stability(3)));
}

#[test]
fn stability_is_kept_in_the_file_and_older_files_have_none() {
    let (_, fitted) = with_noise_features(2);
    let bytes = fitted.to_bytes().unwrap();
    assert_eq!(Fit::from_bytes(&bytes).unwrap(), fitted);
    // A file of an earlier version, or of a single run, has no such matrix.
    let mut older = fitted.clone();
    older.model.views.iter_mut().for_each(|view| view.stability = None);
    let bytes = older.to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("stability"));
    assert_eq!(Fit::from_bytes(&bytes).unwrap(), older);
    let views = incomplete(60, 2);
    let one = Daimc::new(2).fit(&views).unwrap();
    assert!(one.model.views.iter().all(|view| view.stability.is_none()));
    // A manipulated file is rejected.
    for wrong in [Matrix::zeros(200, 3), Matrix::from_fn(200, 4, |_, _| 1.5)] {
        let mut broken = fitted.clone();
        broken.model.views[0].stability = Some(wrong);
        let error = Fit::from_bytes(&broken.to_bytes().unwrap()).unwrap_err().to_string();
        assert!(error.contains("parts are inconsistent"), "{error}");
    }
}

#[test]
fn a_fit_stopped_in_its_first_run_has_no_stability() {
    let views = incomplete(200, 3);
    let stop = |_: &daimc::Iteration| std::ops::ControlFlow::Break(());
    let fitted = Daimc::new(3).runs(4).threads(1).fit_with(&views, stop).unwrap();
    assert!(fitted.model.views.iter().all(|view| view.stability.is_none()));
}

#[test]
fn one_pass_explains_what_two_do() {
    for missing in [0.0, 0.4] {
        let data = Synthetic::new(1500, 4).noise(0.4);
        let present = simulate::missing(1500, &[missing, missing], 3).unwrap();
        let views = [data.dense::<f64>("a", 20).unwrap(), data.dense::<f32>("b", 12).unwrap()];
        let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
        let views = Views::new(masked.collect()).unwrap();
        let fitted = Daimc::new(4).fit(&views).unwrap();
        let explanation = fitted.explain(&views).unwrap();
        assert_eq!(explanation.contributions, fitted.contributions(&views).unwrap());
        for (view, residuals) in fitted.model.views.iter().zip(&explanation.residuals) {
            let misfit = fitted.misfit(&views, &view.name).unwrap();
            assert_eq!(residuals.len(), 4);
            for (cluster, found) in residuals.iter().enumerate() {
                let own = |values: &[f64]| -> f64 {
                    let members = values.iter().zip(&fitted.labels).filter(|(_, label)| **label == cluster);
                    members.map(|(value, _)| value).sum()
                };
                let (error, square) = (own(&misfit.error), own(&misfit.square));
                assert!((found.error - error).abs() <= 1e-9 * square, "{} for {error}", found.error);
                assert!((found.square - square).abs() <= 1e-9 * square, "{} for {square}", found.square);
            }
        }
    }
}

#[test]
fn variations_are_sums_of_squares_about_the_mean_of_the_cells_that_are_there() {
    let mut values = numbers(40, 5, 3);
    [7, 31, 112].into_iter().for_each(|at| values[at] = f64::NAN);
    let present: Vec<bool> = (0..40).map(|i| i % 7 != 2).collect();
    let view = View::dense("a", 5, values.clone()).unwrap().mask(&present).unwrap();
    let views = Views::new(vec![view, View::dense("b", 5, numbers(40, 5, 4)).unwrap()]).unwrap();
    for scale in [Scale::None, Scale::ZScore, Scale::MinMax] {
        let fit = Daimc::new(2).scale(scale).equal_weight(false).fit(&views).unwrap();
        let scaling = &fit.model.views[0].scaling;
        let mut expected = 0.0;
        for f in 0..5 {
            let here = (0..40).filter(|&i| present[i] && !values[5 * i + f].is_nan());
            let shift = scaling.shift.get(f).copied().unwrap_or(0.0);
            let factor = scaling.factor.get(f).copied().unwrap_or(1.0) * scaling.weight;
            let own: Vec<f64> = here.map(|i| (values[5 * i + f] - shift) * factor).collect();
            let mean = own.iter().sum::<f64>() / own.len() as f64;
            expected += own.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        }
        let found = fit.explain(&views).unwrap().variations[0];
        assert!((found - expected).abs() < 1e-9 * expected, "{scale}: {found}, not {expected}");
    }
}
