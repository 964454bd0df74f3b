//! Arbitrary input.

use super::*;

/// Kinds of values, so that most views have one kind and pass the checks.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let odd = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        5e-324,
        1e-310,
        1e-300,
        1e-160,
        1e-45,
        1e-30,
        1e-9,
        1e9,
        1e30,
        3e38,
        1e60,
        1e120,
        1e150,
        -1e150,
        1e154,
        -1e154,
        1e200,
        f64::MAX,
        f64::MIN,
    ]);
    let invalid = prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let usual = || -3.0..3.0_f64;
    let vec = |one: BoxedStrategy<f64>| prop::collection::vec(one, 60);
    prop_oneof![
        6 => vec(usual().boxed()),
        3 => vec((0_u8..4).prop_map(f64::from).boxed()),
        2 => vec(prop_oneof![Just(0.0), usual()].boxed()),
        2 => (vec(usual().boxed()), odd.clone()).prop_map(|(values, by)| values.iter().map(|x| x * by).collect()),
        2 => vec(prop_oneof![8 => usual(), 1 => odd.clone()].boxed()),
        2 => vec(odd.clone().boxed()),
        1 => vec(prop_oneof![40 => usual(), 1 => invalid].boxed()),
        3 => vec(prop_oneof![3 => usual(), 1 => Just(f64::NAN)].boxed()),
        1 => vec(prop_oneof![6 => usual(), 1 => Just(f64::NAN), 1 => odd.clone()].boxed()),
        1 => odd.prop_map(|value| vec![value; 60]),
    ]
}

/// The parts of a view, which may not fit together.
#[derive(Clone, Debug)]
struct Pieces {
    name: String,
    features: usize,
    values: Vec<f64>,
    sparse: bool,
    single: bool,
    mask: Option<Vec<bool>>,
    /// Used when views are joined.
    ids: Vec<usize>,
    /// A position in the arrays of a sparse view and a number to add there.
    broken: Option<(usize, usize)>,
}

fn pieces(rows: usize) -> impl Strategy<Value = Pieces> {
    let length = prop_oneof![30 => Just(rows), 1 => 0..8_usize];
    (
        prop::char::range('a', 'z'),
        prop_oneof![30 => 1..=4_usize, 1 => Just(0_usize)],
        values(),
        any::<[bool; 2]>(),
        prop::option::of(
            length.clone().prop_flat_map(|length| prop::collection::vec(prop::bool::weighted(0.85), length)),
        ),
        prop_oneof![
            20 => Just((0..rows).collect::<Vec<_>>()).prop_shuffle(),
            1 => length.prop_flat_map(|length| prop::collection::vec(0..40_usize, length)),
        ],
        prop::option::weighted(0.05, (0..100_usize, 1..4_usize)),
        prop_oneof![20 => Just(0_usize), 1 => 1..5_usize],
    )
        .prop_map(move |(name, features, mut values, [sparse, single], mask, ids, broken, extra)| {
            values.truncate(rows * features + extra);
            let name = name.to_string();
            Pieces { name, features, values, sparse, single, mask, ids, broken }
        })
}

impl Pieces {
    fn view(&self, with_ids: bool) -> daimc::Result<View<'static>> {
        let Self { features, sparse, single, .. } = *self;
        let name = &self.name;
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
        let mut view = if sparse {
            let (mut offsets, mut columns, stored) = compressed(features.max(1), &self.values);
            if let Some((at, more)) = self.broken {
                let (from, count) = (offsets.len(), offsets.len() + columns.len());
                match at % count {
                    at if at < from => offsets[at] += more,
                    at => columns[at - from] += more as u32,
                }
            }
            if single {
                View::sparse(name, features, offsets, columns, narrow(&stored))?
            } else {
                View::sparse(name, features, offsets, columns, stored)?
            }
        } else if single {
            View::dense(name, features, narrow(&self.values))?
        } else {
            View::dense(name, features, self.values.clone())?
        };
        if let Some(mask) = &self.mask {
            view = view.mask(mask)?;
        }
        if with_ids { view.ids(strings(&self.ids)) } else { Ok(view) }
    }
}

#[derive(Clone, Debug)]
struct Asked {
    clusters: usize,
    latent: Option<usize>,
    preset: Preset,
    solver: Option<Solver>,
    scale: Option<Scale>,
    equal_weight: Option<bool>,
    alpha: f64,
    beta: f64,
    tolerance: f64,
    counts: [usize; 3],
    start: Option<f64>,
    seed: u64,
}

fn asked() -> impl Strategy<Value = Asked> {
    let weight = || {
        prop_oneof![
            20 => prop::sample::select(vec![0.0, 1e-9, 0.1, 1.0, 10.0, 1e6]),
            1 => prop::sample::select(vec![1e-300, -1.0, f64::NAN, f64::INFINITY]),
        ]
    };
    let count = |most: usize| prop_oneof![40 => 1..=most, 1 => Just(0_usize)];
    (
        (
            prop_oneof![30 => 1..4_usize, 1 => 0..20_usize],
            prop::option::weighted(0.3, prop_oneof![1 => 0..9_usize, 3 => 1..4_usize]),
        ),
        prop::sample::select(vec![Preset::Default, Preset::Paper]),
        prop::option::of(prop::sample::select(vec![Solver::Coordinate, Solver::Multiplicative])),
        prop::option::weighted(0.8, prop::sample::select(Scale::ALL.to_vec())),
        prop::option::of(any::<bool>()),
        (weight(), weight(), prop_oneof![30 => Just(1e-4), 1 => Just(0.0), 1 => Just(-1.0)]),
        (count(10), count(15), count(5)),
        prop::option::weighted(0.2, prop::sample::select(vec![0.0, 1.0, 1e-9, 1e9, -1.0, f64::NAN])),
        any::<u64>(),
    )
        .prop_map(|(sizes, preset, solver, scale, equal_weight, weights, counts, start, seed)| Asked {
            clusters: sizes.0,
            latent: sizes.1,
            preset,
            solver,
            scale,
            equal_weight,
            alpha: weights.0,
            beta: weights.1,
            tolerance: weights.2,
            counts: counts.into(),
            start,
            seed,
        })
}

impl Asked {
    fn daimc(&self, rows: usize) -> Daimc {
        let mut daimc = Daimc::new(self.clusters).preset(self.preset).assess(true).seed(self.seed);
        if let Some(latent) = self.latent {
            daimc = daimc.latent(latent);
        }
        if let Some(solver) = self.solver {
            daimc = daimc.solver(solver);
        }
        if let Some(scale) = self.scale {
            daimc = daimc.scale(scale);
        }
        if let Some(equal) = self.equal_weight {
            daimc = daimc.equal_weight(equal);
        }
        if let Some(start) = self.start {
            let latent = self.latent.unwrap_or(self.clusters);
            daimc = daimc.start(Matrix::from_fn(rows, latent, |i, k| start * ((i + k) % 3) as f64));
        }
        let [passes, iterations, restarts] = self.counts;
        daimc
            .alpha(self.alpha)
            .beta(self.beta)
            .tolerance(self.tolerance)
            .passes(passes)
            .max_iterations(iterations)
            .restarts(restarts)
    }
}

/// The view that an error names.
fn culprit(error: &Error) -> Option<&str> {
    match error {
        Error::NoFeatures { view }
        | Error::EmptyView { view }
        | Error::Shape { view, .. }
        | Error::Sparse { view, .. }
        | Error::NotFinite { view, .. }
        | Error::TooLarge { view, .. }
        | Error::Scaling { view, .. } => Some(view),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0),
        ..ProptestConfig::default()
    })]

    #[test]
    fn anything_is_refused_or_gives_a_model_of_finite_numbers(
        pieces in (1..15_usize).prop_flat_map(|rows| prop::collection::vec(pieces(rows), 1..4)),
        asked in asked(),
    ) {
        for join in [false, true] {
            let views = pieces.iter().map(|view| view.view(join)).collect::<daimc::Result<Vec<_>>>();
            let views = views.and_then(|views| {
                if join { Views::join(views).map(|(views, _)| views) } else { Views::new(views) }
            });
            match views.and_then(|views| Ok((asked.daimc(views.instances()).fit(&views)?, views))) {
                Ok((fitted, views)) => prop_assert_eq!(unsound(&fitted, &views), None),
                Err(error) => {
                    let known = culprit(&error).is_none_or(|name| pieces.iter().any(|view| view.name == name));
                    prop_assert!(known, "{error}");
                }
            }
        }
    }
}

#[test]
fn of_many_values_that_are_not_finite_the_first_is_named() {
    let (n, d) = (50_000, 3);
    let mut values = vec![1.0_f32; n * d];
    for i in [7 * 4096 + 5, 7 * 4096 + 6, 40_000, n * d - 1] {
        values[i] = f32::INFINITY;
    }
    let view = |values: Vec<f32>| View::dense("a", d, values).unwrap();
    let (row, column) = ((7 * 4096 + 5) / d, (7 * 4096 + 5) % d);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let error = pool.install(|| Views::new(vec![view(values.clone())])).unwrap_err();
        assert!(
            matches!(&error, Error::NotFinite { row: r, column: c, .. } if (*r, *c) == (row, column)),
            "{error}"
        );
    }
}
