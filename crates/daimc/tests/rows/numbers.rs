//! Clusters depend neither on the origin nor on the unit of a view.

use daimc::{Daimc, Error, Neighbours, Preset, Scale, View, Views, metrics};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CLUSTERS: usize = 4;
const FEATURES: [usize; 2] = [12, 20];

/// An approximately normal number.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random_range(-0.5..0.5)).sum()
}

/// Clusters whose means differ by a few times the noise, one view after another.
fn data(instances: usize, seed: u64) -> ([Vec<f64>; 2], Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let truth: Vec<usize> = (0..instances).map(|i| i % CLUSTERS).collect();
    let views = FEATURES.map(|features| {
        let means: Vec<f64> = (0..CLUSTERS * features).map(|_| 1.2 * normal(&mut rng)).collect();
        let values = truth.iter().flat_map(|&k| means[k * features..(k + 1) * features].to_vec());
        values.collect::<Vec<_>>().into_iter().map(|mean| mean + normal(&mut rng)).collect()
    });
    (views, truth)
}

fn views(values: impl Fn(usize) -> View<'static>) -> Views<'static> {
    Views::new((0..2).map(values).collect()).unwrap()
}

fn ari(a: &[usize], b: &[usize]) -> f64 {
    metrics::scores(a, b).unwrap().ari
}

#[test]
fn single_precision_finds_the_clusters_of_double_precision_under_an_offset() {
    let (values, truth) = data(600, 1);
    for scale in [Scale::None, Scale::Auto] {
        for offset in [0.0, 100.0, 3000.0, 1e4, 1e5] {
            let rounded = |view: usize| values[view].iter().map(move |value| (value + offset) as f32);
            let single = views(|view| {
                View::dense(format!("v{view}"), FEATURES[view], rounded(view).collect::<Vec<f32>>()).unwrap()
            });
            let wide = |view| rounded(view).map(f64::from).collect::<Vec<f64>>();
            let double = views(|view| View::dense(format!("v{view}"), FEATURES[view], wide(view)).unwrap());
            for neighbours in [Neighbours::Off, Neighbours::Auto] {
                let fit = Daimc::new(CLUSTERS).scale(scale).neighbours(neighbours);
                let (found, expected) = (fit.fit(&single).unwrap(), fit.fit(&double).unwrap());
                let same = ari(&found.labels, &expected.labels);
                println!(
                    "{scale} {neighbours} {offset}: {same:.4}; truth {:.4}, {:.4} in double precision; {}",
                    ari(&found.labels, &truth),
                    ari(&expected.labels, &truth),
                    found.neighbours.reason
                );
                assert!(same > 0.98, "{scale}, {neighbours}, offset {offset}: {same}");
            }
        }
    }
}

#[test]
fn the_unit_of_a_view_does_not_change_its_clusters() {
    let (values, truth) = data(200, 2);
    let scales = [
        Scale::Auto,
        Scale::None,
        Scale::Unit,
        Scale::MinMax,
        Scale::MinMaxUnit,
        Scale::ZScore,
        Scale::ZScoreUnit,
    ];
    for scale in scales {
        let fit = Daimc::new(CLUSTERS).scale(scale);
        let in_unit = |power: i32| {
            let unit = 2.0_f64.powi(power);
            let first = |view: usize| if view == 0 { unit } else { 1.0 };
            views(|view| {
                let values = values[view].iter().map(|value| value * first(view)).collect::<Vec<f64>>();
                View::dense(format!("v{view}"), FEATURES[view], values).unwrap()
            })
        };
        let expected = fit.fit(&in_unit(0)).unwrap();
        assert!(ari(&expected.labels, &truth) > 0.8, "{scale}");
        for power in [-900, -600, -548, -400, -100, -30, 30, 100, 400, 508, 512, 600, 1000] {
            let found = fit.fit(&in_unit(power)).unwrap();
            assert_eq!(
                found.model.views[0].scaling.scale, expected.model.views[0].scaling.scale,
                "{scale}, 2^{power}"
            );
            assert_eq!(found.labels, expected.labels, "{scale}, 2^{power}");
        }
    }
}

#[test]
fn the_unit_of_a_single_precision_view_does_not_change_its_clusters() {
    let (values, truth) = data(200, 3);
    for scale in [Scale::Auto, Scale::None, Scale::MinMax, Scale::ZScore] {
        let fit = Daimc::new(CLUSTERS).scale(scale);
        let in_unit = |power: i32| {
            views(|view| {
                let unit = if view == 0 { 2.0_f32.powi(power) } else { 1.0 };
                let values = values[view].iter().map(|value| *value as f32 * unit).collect::<Vec<f32>>();
                View::dense(format!("v{view}"), FEATURES[view], values).unwrap()
            })
        };
        let expected = fit.fit(&in_unit(0)).unwrap();
        assert!(ari(&expected.labels, &truth) > 0.8, "{scale}");
        // Below 2^-100 the smallest values begin to lose digits themselves.
        for power in [-100, -60, -20, 20, 60, 120] {
            let found = fit.fit(&in_unit(power)).unwrap();
            assert!(ari(&found.labels, &expected.labels) > 0.99, "{scale}, 2^{power}");
        }
    }
}

#[test]
fn a_sparse_view_in_any_unit_gives_the_same_clusters_or_is_refused() {
    let (values, _) = data(200, 4);
    let in_unit = |power: i32| {
        let unit = 2.0_f64.powi(power);
        let (mut offsets, mut columns, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values[1].chunks(FEATURES[1]) {
            for (f, value) in (0..).zip(row).filter(|(_, value)| **value > 0.3) {
                columns.push(f);
                kept.push(value * unit);
            }
            offsets.push(columns.len());
        }
        Views::new(vec![View::sparse("v", FEATURES[1], offsets, columns, kept).unwrap()]).unwrap()
    };
    for scale in [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScore] {
        let fit = Daimc::new(CLUSTERS).scale(scale);
        let expected = fit.fit(&in_unit(0)).unwrap().labels;
        for power in [-600, -300, -30, 30, 300, 600] {
            match fit.fit(&in_unit(power)) {
                Ok(fitted) => assert_eq!(fitted.labels, expected, "{scale}, 2^{power}"),
                Err(error) => assert!(matches!(error, Error::TooLarge { .. }), "{scale}, 2^{power}: {error}"),
            }
        }
    }
}

#[test]
fn values_that_differ_by_more_than_the_largest_number_are_refused() {
    let (values, _) = data(60, 5);
    let largest = values[0].iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let with = |unit: f64| {
        let values = values[0].iter().map(|value| value / largest * unit).collect::<Vec<f64>>();
        Views::new(vec![View::dense("v", FEATURES[0], values).unwrap()]).unwrap()
    };
    for scale in [Scale::MinMax, Scale::ZScore] {
        let refused = Daimc::new(2).scale(scale).fit(&with(f64::MAX));
        assert!(matches!(refused, Err(Error::Scaling { .. })), "{scale}: {refused:?}");
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("view 'v'") && message.contains("constant"), "{message}");
    }
    // The published method has an absolute alpha and beta: the fit changes with the unit, but it succeeds.
    Daimc::new(2).preset(Preset::Paper).assess(true).fit(&with(1e-100)).unwrap();
}
