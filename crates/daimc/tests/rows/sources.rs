//! The source, layout and order of rows and the number of threads do not change a model, in most cases not by one bit.

use std::ops::Range;

use daimc::source::{Buffer, RandomAccess, ReadError, Row, Rows, Source};
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Error, Ids, Layout, Matrix, Neighbours, Preset, Scale, Schema, Solver, View, ViewSchema, Views,
    metrics, simulate,
};

use crate::made::*;

// Threads.

/// Views of the same clusters in several layouts.
fn layouts(n: usize, missing: bool) -> Vec<(&'static str, Views<'static>)> {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.9, 1), around(&truth, 5, 0.9, 2));
    let (c, d) = (mostly_zero(&truth, 25, false, 3), mostly_zero(&truth, 33, true, 4));
    let rates = if missing { [0.3; 2] } else { [0.0; 2] };
    let present = simulate::missing(n, &rates, 5).unwrap();
    let views = |views: [View<'static>; 2]| {
        let masked = views.into_iter().zip(&present);
        let masked = masked.map(|(view, present)| if missing { view.mask(present).unwrap() } else { view });
        Views::new(masked.collect()).unwrap()
    };
    let dense = |name: &str, d: usize, values: &[f64]| View::dense(name, d, values.to_vec()).unwrap();
    let single = |name: &str, d: usize, values: &[f64]| View::dense(name, d, narrow(values)).unwrap();
    vec![
        ("dense f64", views([dense("a", 9, &a), dense("b", 5, &b)])),
        ("dense f32", views([single("a", 9, &a), single("b", 5, &b)])),
        ("sparse f64", views([sparse("c", 25, &c), sparse("d", 33, &d)])),
        ("sparse f32", views([sparse_f32("c", 25, &c), sparse_f32("d", 33, &d)])),
        ("mixed", views([single("a", 9, &a), sparse("d", 33, &d)])),
    ]
}

/// Fits with 1, 2 and 7 threads and compares every bit.
fn same_for_any_number_of_threads(n: usize, iterations: usize) {
    for missing in [false, true] {
        for (name, views) in layouts(n, missing) {
            for preset in [Preset::Default, Preset::Paper] {
                let fit = |threads| {
                    let daimc =
                        Daimc::new(4).preset(preset).max_iterations(iterations).restarts(4).threads(threads);
                    daimc.fit(&views).unwrap()
                };
                let one = fit(1);
                assert!(one.latent.values().iter().any(|value| *value > 0.0), "{name}");
                for threads in [2, 7] {
                    assert_same(&fit(threads), &one);
                }
                let place = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| one.model.place(&views).unwrap())
                };
                assert_eq!(place(7), place(1), "{name}");
            }
        }
    }
}

#[test]
fn few_instances_give_the_same_bits_for_any_number_of_threads() {
    same_for_any_number_of_threads(300, 20);
}

#[test]
fn many_instances_give_the_same_bits_for_any_number_of_threads() {
    same_for_any_number_of_threads(6000, 5);
}

// Layouts.

/// The same values as two sparse and as two dense views, with their clusters. No two rows have the same distance from a
/// third, as rows without common features would, so that k-means does not depend on rounding.
fn sparse_and_dense(n: usize) -> (Views<'static>, Views<'static>, Vec<usize>) {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let thinned =
        |values: Vec<f64>| values.iter().map(|&x| if x.abs() < 0.4 { 0.0 } else { x }).collect::<Vec<_>>();
    let (a, b) = (thinned(around(&truth, 25, 0.3, 3)), thinned(around(&truth, 33, 0.3, 4)));
    let present = simulate::missing(n, &[0.3, 0.3], 5).unwrap();
    let views = |pair: [View<'static>; 2]| {
        let masked = pair.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
        Views::new(masked.collect()).unwrap()
    };
    let dense = |name: &str, d: usize, values: &[f64]| View::dense(name, d, values.to_vec()).unwrap();
    let dense = views([dense("a", 25, &a), dense("b", 33, &b)]);
    (views([sparse("a", 25, &a), sparse("b", 33, &b)]), dense, truth)
}

const FOR_SPARSE: [Scale; 6] =
    [Scale::None, Scale::Unit, Scale::TfIdf, Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore];

#[test]
fn sparse_rows_give_the_v_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, truth) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            let daimc = Daimc::new(4).preset(Preset::Paper).scale(scale).max_iterations(iterations);
            let daimc = daimc.start(start(&truth, 4, 9)).tolerance(0.0);
            let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
            let difference = difference(&one.latent, &other.latent);
            assert!(difference < 1e-8, "{scale}: {difference:e}");
            assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
            if matches!(scale, Scale::MinMax | Scale::ZScore) {
                assert!(!one.model.views[0].scaling.shift.is_empty(), "this scale is to shift the view");
            }
        }
    }
}

#[test]
fn sparse_rows_give_the_clusters_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, _) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            let daimc = Daimc::new(4).scale(scale).max_iterations(iterations);
            let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
            assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
        }
    }
}

#[test]
fn sparse_rows_give_the_labels_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, _) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).scale(scale).max_iterations(iterations);
                let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
                // Not only the same clusters but the same numbers, whatever the rounding.
                assert!(one.labels == other.labels, "{scale} {preset:?}: labels differ");
                // The bases of centred data are dependent, and V is less accurate.
                let difference = difference(&one.latent, &other.latent);
                let exact = scale != Scale::ZScore;
                assert!(!exact || difference < 1e-8, "{scale} {preset:?}: {difference:e}");
            }
        }
    }
}

#[test]
fn zeros_that_are_stored_change_nothing() {
    let truth = Synthetic::new(300, 4).seed(3).truth();
    let values = mostly_zero(&truth, 25, true, 3);
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for _ in 0..300 {
        columns.extend(0..25_u32);
        offsets.push(columns.len());
    }
    let full = Views::new(vec![View::sparse("a", 25, offsets, columns, &values).unwrap()]).unwrap();
    let views = Views::new(vec![sparse("a", 25, &values)]).unwrap();
    for scale in FOR_SPARSE {
        let daimc =
            Daimc::new(4).preset(Preset::Paper).start(start(&truth, 4, 9)).scale(scale).max_iterations(10);
        let (one, other) = (daimc.fit(&full).unwrap(), daimc.fit(&views).unwrap());
        assert!(difference(&one.latent, &other.latent) < 1e-8, "{scale}");
        assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
    }
    let scale = |views| Daimc::new(4).fit(views).unwrap().model.views.remove(0).scaling.scale;
    assert_eq!(scale(&full), scale(&views));
}

#[test]
fn single_precision_gives_nearly_the_model_of_double_precision() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b) = (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4));
        let present = simulate::missing(n, &[0.3, 0.3], 5).unwrap();
        let views = |a: View<'static>, b: View<'static>| {
            Views::new(vec![a.mask(&present[0]).unwrap(), b.mask(&present[1]).unwrap()]).unwrap()
        };
        let double = views(View::dense("a", 9, a.clone()).unwrap(), sparse("b", 33, &b));
        let single = views(View::dense("a", 9, narrow(&a)).unwrap(), sparse_f32("b", 33, &b));
        let daimc = Daimc::new(4).preset(Preset::Paper).scale(Scale::Unit).start(start(&truth, 4, 9));
        for solver in [Solver::Multiplicative, Solver::Coordinate] {
            let daimc = daimc.clone().solver(solver).max_iterations(5).tolerance(0.0);
            let (one, other) = (daimc.fit(&single).unwrap(), daimc.fit(&double).unwrap());
            let difference = difference(&one.latent, &other.latent);
            assert!(difference < 1e-3, "{solver:?}: {difference:e}");
        }
    }
}

#[test]
fn borrowed_values_give_the_model_of_owned_ones() {
    let truth = Synthetic::new(200, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4));
    let (offsets, columns, stored) = compressed(33, &b);
    let borrowed = Views::new(vec![
        View::dense("a", 9, &a).unwrap(),
        View::sparse("b", 33, &offsets, &columns, &stored).unwrap(),
    ]);
    let owned = Views::new(vec![View::dense("a", 9, a.clone()).unwrap(), sparse("b", 33, &b)]).unwrap();
    assert_same(&Daimc::new(4).fit(&borrowed.unwrap()).unwrap(), &Daimc::new(4).fit(&owned).unwrap());
}

// Order.

fn names(order: &[usize]) -> Vec<String> {
    order.iter().map(|i| format!("instance {i}")).collect()
}

#[test]
fn views_that_are_joined_give_the_model_of_views_that_are_aligned() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b, c) =
            (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4), around(&truth, 4, 0.5, 2));
        // The first view lists the first instances in order, the second the rest, so that the order is kept.
        let known = n * 2 / 3;
        let present = simulate::missing(n, &[0.0, 0.5], 8).unwrap();
        let first: Vec<bool> = (0..n).map(|i| i < known).collect();
        let second: Vec<bool> = (0..n).map(|i| i >= known || i % 3 == 0).collect();
        let aligned = Views::new(vec![
            View::dense("a", 9, a.clone()).unwrap().mask(&first).unwrap(),
            sparse("b", 33, &b).mask(&second).unwrap(),
            View::dense("c", 4, narrow(&c)).unwrap().mask(&present[1]).unwrap(),
        ]);
        let aligned = aligned.unwrap();

        let all: Vec<usize> = (0..n).collect();
        let seconds: Vec<usize> =
            all[known..].iter().copied().chain(order(known, 3).into_iter().filter(|i| i % 3 == 0)).collect();
        let thirds: Vec<usize> = order(n, 4).into_iter().filter(|&i| present[1][i]).collect();
        let (joined, account) = Views::join(vec![
            View::dense("a", 9, reordered(&a, 9, &all[..known])).unwrap().ids(names(&all[..known])).unwrap(),
            sparse("b", 33, &reordered(&b, 33, &seconds)).ids(names(&seconds)).unwrap(),
            View::dense("c", 4, narrow(&reordered(&c, 4, &thirds))).unwrap().ids(names(&thirds)).unwrap(),
        ])
        .unwrap();
        assert_eq!(account.instances, n);
        assert_eq!(account.views[2].1, thirds.len());
        assert_eq!(account.dropped, Vec::<String>::new());
        let every = (0..known).filter(|&i| second[i] && present[1][i]).count();
        assert_eq!(account.in_every_view, every);
        for preset in [Preset::Default, Preset::Paper] {
            let daimc = Daimc::new(4).preset(preset).max_iterations(5);
            let (one, other) = (daimc.fit(&joined).unwrap(), daimc.fit(&aligned).unwrap());
            assert_same(&one, &other);
            assert_eq!(one.ids, daimc::Ids::Names(names(&all)));
            assert_eq!(one.model.predict(&joined).unwrap(), one.model.predict(&aligned).unwrap());
        }
    }
}

#[test]
fn joined_views_give_results_in_the_order_of_their_ids_also_where_rows_are_missing() {
    let n = 300;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), around(&truth, 6, 0.5, 2));
    let all: Vec<usize> = (0..n).collect();
    let mut present = simulate::missing(n, &[0.4, 0.4], 8).unwrap();
    let views = |present: &[Vec<bool>], with_ids: bool| {
        let views =
            [("a", 9, &a), ("b", 6, &b)].into_iter().zip(present).map(|((name, features, x), present)| {
                let view = View::dense(name, features, x.clone()).unwrap().mask(present).unwrap();
                if with_ids { view.ids(names(&all)).unwrap() } else { view }
            });
        views.collect::<Vec<_>>()
    };
    let (joined, _) = Views::join(views(&present, true)).unwrap();
    assert_eq!(joined.ids(), &daimc::Ids::Names(names(&all)));
    let aligned = Views::new(views(&present, false)).unwrap();
    assert_same(&Daimc::new(4).fit(&joined).unwrap(), &Daimc::new(4).fit(&aligned).unwrap());

    // Instances that are present in no view are dropped, and the others keep their order.
    for view in &mut present {
        (view[7], view[40]) = (false, false);
    }
    let (joined, account) = Views::join(views(&present, true)).unwrap();
    let others: Vec<usize> = all.iter().copied().filter(|i| ![7, 40].contains(i)).collect();
    assert_eq!(joined.ids(), &daimc::Ids::Names(names(&others)));
    let mut dropped = names(&[7, 40]);
    dropped.sort();
    assert_eq!(account.dropped, dropped);
}

#[test]
fn the_rows_of_a_joined_view_can_stand_in_any_order() {
    let n = 500;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), around(&truth, 6, 0.5, 2));
    let all: Vec<usize> = (0..n).collect();
    let fit = |order: &[usize]| {
        let a = View::dense("a", 9, a.clone()).unwrap().ids(names(&all)).unwrap();
        let b = View::dense("b", 6, reordered(&b, 6, order)).unwrap().ids(names(order)).unwrap();
        Daimc::new(4).fit(&Views::join(vec![a, b]).unwrap().0).unwrap()
    };
    let expected = fit(&all);
    for seed in 0..3 {
        assert_same(&fit(&order(n, seed)), &expected);
    }
}

#[test]
fn instances_in_another_order_give_the_same_v_in_that_order() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b) = (around(&truth, 9, 0.2, 1), around(&truth, 12, 0.2, 2));
        let present = simulate::missing(n, &[0.2, 0.2], 5).unwrap();
        let v = start(&truth, 4, 9);
        let fit = |daimc: &Daimc, order: &[usize]| {
            let mask = |view: usize| order.iter().map(|&i| present[view][i]).collect::<Vec<_>>();
            let views = Views::new(vec![
                View::dense("a", 9, reordered(&a, 9, order)).unwrap().mask(&mask(0)).unwrap(),
                sparse("b", 12, &reordered(&b, 12, order)).mask(&mask(1)).unwrap(),
            ]);
            let v = Matrix::new(n, 4, reordered(v.values(), 4, order)).unwrap();
            daimc.clone().start(v).fit(&views.unwrap()).unwrap()
        };
        let all: Vec<usize> = (0..n).collect();
        for seed in 0..2 {
            let order = order(n, seed);
            for solver in [Solver::Coordinate, Solver::Multiplicative] {
                let daimc =
                    Daimc::new(4).preset(Preset::Paper).solver(solver).max_iterations(10).tolerance(0.0);
                let (moved, kept) = (fit(&daimc, &order), fit(&daimc, &all));
                let expected = Matrix::new(n, 4, reordered(kept.latent.values(), 4, &order)).unwrap();
                let difference = difference(&moved.latent, &expected);
                assert!(difference < 1e-8, "{solver:?}: {difference:e}");
            }
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).max_iterations(10);
                let (moved, kept) = (fit(&daimc, &order), fit(&daimc, &all));
                let expected: Vec<usize> = order.iter().map(|&i| kept.labels[i]).collect();
                assert_eq!(metrics::ari(&expected, &moved.labels).unwrap(), 1.0, "{preset:?}");
            }
        }
    }
}

#[test]
fn views_in_another_order_give_the_same_clusters() {
    let n = 400;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.3, 1), mostly_zero(&truth, 33, true, 4));
    let present = simulate::missing(n, &[0.2, 0.2], 5).unwrap();
    let a = View::dense("a", 9, a).unwrap().mask(&present[0]).unwrap();
    let b = sparse("b", 33, &b).mask(&present[1]).unwrap();
    let one = Views::new(vec![a.clone(), b.clone()]).unwrap();
    let other = Views::new(vec![b, a]).unwrap();
    let daimc =
        Daimc::new(4).preset(Preset::Paper).start(start(&truth, 4, 9)).max_iterations(10).tolerance(0.0);
    let (one, other) = (daimc.fit(&one).unwrap(), daimc.fit(&other).unwrap());
    assert!(difference(&one.latent, &other.latent) < 1e-8);
    assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0);
}

#[test]
fn masking_views_is_making_them_with_the_mask() {
    let data = Synthetic::new(120, 3);
    let whole = Views::new(vec![
        data.dense::<f64>("a", 10).unwrap(),
        data.sparse::<f32>("b", 40, 0.2).unwrap(),
        data.dense::<f32>("c", 5).unwrap(),
    ])
    .unwrap();
    let present = simulate::missing(120, &[0.4, 0.3, 0.5], 1).unwrap();
    let made = Views::new(vec![
        data.dense::<f64>("a", 10).unwrap().mask(&present[0]).unwrap(),
        data.sparse::<f32>("b", 40, 0.2).unwrap().mask(&present[1]).unwrap(),
        data.dense::<f32>("c", 5).unwrap().mask(&present[2]).unwrap(),
    ])
    .unwrap();
    let masked = whole.masked(&present).unwrap();
    let fit = |views: &Views<'_>| Daimc::new(3).fit(views).unwrap();
    let (mut a, b) = (fit(&made), fit(&masked));
    a.timings = b.timings;
    assert_eq!(a, b);
    // Hidden instances stay hidden.
    let again = masked.masked(&vec![vec![true; 120]; 3]).unwrap();
    assert_eq!((again.present(0), again.present(2)), (72, 60));
    assert!(whole.masked(&present[..2]).is_err());
    assert!(whole.masked(&[vec![true; 120], vec![true; 119], vec![true; 120]]).is_err());
    assert!(whole.masked(&vec![vec![false; 120]; 3]).is_err());
}

/// A matrix in column order, and one with some of the columns of a wider matrix.
fn apart<T: daimc::Scalar>(values: &[T], features: usize) -> [(Vec<T>, [usize; 2]); 2] {
    let n = values.len() / features;
    let by_column = (0..values.len()).map(|at| values[at % n * features + at / n]).collect();
    let hole = T::from_f64(f64::NAN);
    let wider = values.chunks(features).flat_map(|row| [&[hole], row, &[hole; 2]].concat()).skip(1).collect();
    [(by_column, [1, n]), (wider, [features + 3, 1])]
}

#[test]
fn values_that_stand_apart_give_the_model_of_values_that_do_not() {
    let n = 700;
    let truth: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let present = simulate::missing(n, &[0.3, 0.2], 4).unwrap();
    let (mut a, b) = (around(&truth, 19, 0.6, 1), around(&truth, 33, 0.6, 2));
    // A row of NaN is a missing instance too.
    let gone = (0..n).find(|&i| present[0][i] && present[1][i]).unwrap();
    a[gone * 19..(gone + 1) * 19].fill(f64::NAN);
    let views = |a: View<'static>| {
        let a = a.mask(&present[0]).unwrap().missing_where_nan();
        let b = View::dense("b", 33, b.clone()).unwrap().mask(&present[1]).unwrap();
        Views::new(vec![a, b]).unwrap()
    };
    for scale in [Scale::Auto, Scale::ZScore] {
        let fit = Daimc::new(3).scale(scale).seed(5);
        let double = views(View::dense("a", 19, a.clone()).unwrap());
        let single = views(View::dense("a", 19, narrow(&a)).unwrap());
        let (in_double, in_single) = (fit.fit(&double).unwrap(), fit.fit(&single).unwrap());
        for (values, strides) in apart(&a, 19) {
            let other = views(View::strided("a", [n, 19], strides, values).unwrap());
            let fitted = fit.fit(&other).unwrap();
            assert_same(&fitted, &in_double);
            assert_eq!(fitted.model.transform(&other).unwrap(), in_double.model.transform(&double).unwrap());
            assert_eq!(fitted.misfit(&other, "a").unwrap(), in_double.misfit(&double, "a").unwrap());
            // Masking borrows.
            assert_same(&fit.fit(&other.masked(&present).unwrap()).unwrap(), &in_double);
        }
        for (values, strides) in apart(&narrow(&a), 19) {
            let other = views(View::strided("a", [n, 19], strides, values).unwrap());
            assert_same(&fit.fit(&other).unwrap(), &in_single);
        }
    }
}

#[test]
fn strides_that_reach_too_far_are_refused() {
    let view = |shape, strides| View::strided("a", shape, strides, vec![0.0; 12]);
    assert!(view([4, 3], [1, 4]).is_ok());
    assert!(view([4, 3], [3, 1]).is_ok());
    let message = view([4, 3], [4, 1]).unwrap_err().to_string();
    assert_eq!(message, "view 'a': values that the strides reach: expected 15, found 12");
    assert!(matches!(view([usize::MAX, 3], [usize::MAX, 1]), Err(Error::Shape { .. })));
    assert!(matches!(view([4, 0], [1, 1]), Err(Error::NoFeatures { .. })));
    let mut values = vec![0.0; 12];
    values[4 + 2] = f64::INFINITY;
    let views = Views::new(vec![View::strided("a", [4, 3], [1, 4], values).unwrap()]);
    assert!(matches!(views, Err(Error::NotFinite { row: 2, column: 1, .. })));
}

// Rows one by one.

/// Views whose rows are read one instance at a time.
struct Pushed<'a>(&'a Views<'a>);

impl Source for Pushed<'_> {
    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let schema = self.schema().view(view);
        let (d, mut scratch) = (schema.features(), Buffer::default());
        let block = self.0.block(view, instances.clone(), &mut scratch)?;
        buffer.clear();
        for i in 0..instances.len() {
            let row = block.index.row(i);
            match block.rows {
                Rows::DenseF32(x) => buffer.push(&schema, row.map(|row| &x[row * d..][..d]))?,
                Rows::DenseF64(x) => buffer.push(&schema, row.map(|row| &x[row * d..][..d]))?,
                Rows::SparseF32(csr) => buffer.push(&schema, row.map(|row| csr.row(row)))?,
                Rows::SparseF64(csr) => buffer.push(&schema, row.map(|row| csr.row(row)))?,
            }
        }
        Ok(())
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        Some(self.0)
    }
}

#[test]
fn rows_that_are_pushed_one_by_one_give_the_model_of_the_same_rows_in_memory() {
    for missing in [false, true] {
        for (name, views) in layouts(300, missing) {
            let fit = Daimc::new(4).neighbours(Neighbours::Off).max_iterations(10).restarts(4);
            let pushed = fit.fit(&Pushed(&views)).unwrap();
            assert!(pushed.latent.values().iter().any(|value| *value > 0.0), "{name}");
            assert_same(&pushed, &fit.fit(&views).unwrap());
        }
    }
}

#[test]
fn a_row_that_does_not_belong_to_its_view_is_refused() {
    let dense = ViewSchema::new("dense", 2, Layout::DenseF64);
    let sparse = ViewSchema::new("sparse", 2, Layout::SparseF32);
    let mut buffer = Buffer::default();
    buffer.push(&dense, Row::Missing).unwrap();
    for (view, row, fault) in [
        (&dense, Row::DenseF64(&[1.0]), "has 1 values instead of 2"),
        (&dense, Row::DenseF32(&[1.0, 2.0]), "is DenseF32, and the layout of the view is DenseF64"),
        (&dense, Row::SparseF64(&[0], &[1.0]), "is SparseF64, and the layout of the view is DenseF64"),
        (&sparse, Row::SparseF32(&[0, 1], &[1.0]), "has 2 columns but 1 values"),
        (&sparse, Row::SparseF32(&[2], &[1.0]), "has columns that are not in increasing order below 2"),
        (
            &sparse,
            Row::SparseF32(&[1, 0], &[1.0, 1.0]),
            "has columns that are not in increasing order below 2",
        ),
    ] {
        let message = buffer.push(view, row).unwrap_err().to_string();
        assert_eq!(message, format!("row 1 of those that were read {fault}"));
    }
    assert_eq!((buffer.index.len(), buffer.f64.len(), buffer.columns.len()), (1, 0, 0), "none was added");
}

/// Pushes `surplus` rows before those that are requested, and clears the buffer first or does not.
struct Careless {
    schema: Schema,
    clears: bool,
    surplus: usize,
}

impl Source for Careless {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        if self.clears {
            buffer.clear();
        }
        for i in (0..self.surplus).chain(instances) {
            let row: Vec<f64> = (0..600).map(|f| (i * f % 17) as f64).collect();
            buffer.push(&self.schema.view(view), &row)?;
        }
        Ok(())
    }
}

#[test]
fn rows_that_were_not_requested_are_refused() {
    let schema = || {
        let views = ["a", "b"].map(|name| ViewSchema::new(name, 600, Layout::DenseF64)).into();
        Schema::new(Ids::Numbers(9000), views).unwrap()
    };
    let fit = |clears, surplus| {
        let fit = Daimc::new(3).neighbours(Neighbours::Off).assess(false).max_iterations(5).restarts(1);
        fit.fit(&Careless { schema: schema(), clears, surplus })
    };
    assert!(fit(true, 0).is_ok());
    for (clears, surplus) in [(true, 1), (false, 0)] {
        let Err(error) = fit(clears, surplus) else {
            panic!("{surplus} rows too many, or a buffer that was not cleared")
        };
        let message = std::error::Error::source(&error).unwrap().to_string();
        assert!(message.contains("were read; is the buffer cleared"), "{message}");
    }
}

#[test]
fn views_of_iterators_are_those_of_arrays() {
    let truth = Synthetic::new(300, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.9, 1), mostly_zero(&truth, 25, false, 3));
    let ids = |shift: usize| (0..300).map(|i| (i + shift).to_string()).collect::<Vec<_>>();
    let arrays = [View::dense("a", 9, &a).unwrap().ids(ids(0)), sparse("b", 25, &b).ids(ids(40))];
    let (arrays, account) = Views::join(arrays.map(Result::unwrap).into()).unwrap();
    let entries = |row: &[f64]| (0..).zip(row.to_vec()).filter(|(_, x)| *x != 0.0).collect::<Vec<_>>();
    let iterators = vec![
        View::from_rows("a", 9, (0_u64..).zip(a.chunks(9))).unwrap(),
        View::from_sparse_rows("b", 25, (40_u16..).zip(b.chunks(25).map(entries))).unwrap(),
    ];
    let (iterators, same) = Views::join(iterators).unwrap();
    assert_eq!((iterators.ids(), &same), (arrays.ids(), &account));
    assert_same(&Daimc::new(4).fit(&iterators).unwrap(), &Daimc::new(4).fit(&arrays).unwrap());

    let message = View::from_rows("a", 2, [("x", vec![1.0, 2.0]), ("y", vec![1.0])]).unwrap_err().to_string();
    assert_eq!(message, "view 'a', row 1 (instance 'y'): the number of values should be 2, not 1");
    assert!(matches!(View::from_rows("a", 0, [("x", [0.0; 0])]), Err(Error::NoFeatures { .. })));
    let unordered = View::from_sparse_rows("a", 2, [("x", [(1, 1.0), (0, 1.0)])]);
    assert!(matches!(unordered, Err(Error::Sparse { row: 0, .. })));
}
