//! Several shards: the descent has the same bits as with one.

use crate::made::*;
use daimc::synthetic::Synthetic;
use daimc::{
    Bases, Cpu, Daimc, Descent, Error, Factors, Matrix, Neighbours, Scaling, Shard, Shards, Statistics, Stop,
    VStep, View, Views, aligned, simulate,
};

const LATENT: usize = 5;
const TOTAL: usize = 100_000;

struct Data {
    dense: Vec<f64>,
    sparse: Vec<f64>,
    present: Vec<Vec<bool>>,
    v: Matrix,
}

fn data() -> Data {
    let truth = Synthetic::new(TOTAL, LATENT).seed(3).truth();
    Data {
        dense: around(&truth, 11, 0.8, 1),
        sparse: mostly_zero(&truth, 30, false, 2),
        present: simulate::missing(TOTAL, &[0.3, 0.4], 5).unwrap(),
        v: start(&truth, LATENT, 4),
    }
}

impl Data {
    /// The instances of a range.
    fn views(&self, range: std::ops::Range<usize>) -> Views<'static> {
        let some = |values: &[f64], d: usize| values[range.start * d..range.end * d].to_vec();
        let views = vec![
            View::dense("dense", 11, narrow(&some(&self.dense, 11)))
                .unwrap()
                .mask(&self.present[0][range.clone()])
                .unwrap(),
            sparse("sparse", 30, &some(&self.sparse, 30)).mask(&self.present[1][range.clone()]).unwrap(),
        ];
        Views::new(views).unwrap()
    }
}

fn update() -> VStep {
    VStep::Update { solver: daimc::Solver::Coordinate, passes: 2 }
}

/// Some iterations; V and the bases to the last bit.
fn descend(shard: &mut dyn Shard, squares: &[f64], v: &Matrix) -> (Vec<u64>, Vec<u64>) {
    let stop = Stop::new();
    let fit = Daimc::new(LATENT);
    let first = shard.start(v.clone(), &stop).unwrap();
    let mut descent = Descent::new(fit.options(), squares.to_vec(), Bases::Fitted, first).unwrap();
    for _ in 0..4 {
        let factors = descent.solve().unwrap();
        let statistics = shard.sweep(factors, update(), &stop).unwrap();
        descent.absorb(statistics).unwrap();
    }
    let last = shard.sweep(descent.factors(), VStep::Solve { after: None }, &stop).unwrap();
    descent.finish(last).unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    let bases = descent.factors().bases.iter().flat_map(|basis| bits(basis.values())).collect();
    (bits(shard.latent().values()), bases)
}

/// The scalings of a fit to all rows.
fn scalings(views: &Views<'_>) -> Vec<Scaling> {
    let fitted =
        Daimc::new(LATENT).neighbours(Neighbours::Off).max_iterations(1).restarts(1).fit(views).unwrap();
    fitted.model.views.into_iter().map(|view| view.scaling).collect()
}

#[test]
fn aligned_shards_give_the_bits_of_one() {
    let data = data();
    let whole = data.views(0..TOTAL);
    let scalings = scalings(&whole);
    let mut one = Cpu::new(&whole, &scalings, LATENT).unwrap();
    let squares = one.squares();
    let expected = descend(&mut one, &squares, &data.v);
    for parts in [2, 3, 5] {
        let ranges = aligned(TOTAL, parts);
        assert_eq!(ranges.len(), parts);
        let sources: Vec<Views<'_>> = ranges.iter().map(|range| data.views(range.clone())).collect();
        let parts_of = sources.iter().zip(&ranges);
        let parts_of = parts_of
            .map(|(source, range)| Cpu::part(source, range.clone(), TOTAL, &scalings, LATENT).unwrap());
        let mut shards = Shards::new(parts_of.collect());
        for threads in [1, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| descend(&mut shards, &squares, &data.v));
            assert!(found == expected, "{parts} shards, {threads} threads");
        }
    }
}

#[test]
fn shares_are_merged_in_any_order_and_travel_as_bytes() {
    let data = data();
    let whole = data.views(0..TOTAL);
    let scalings = scalings(&whole);
    let stop = Stop::new();
    let expected = Cpu::new(&whole, &scalings, LATENT).unwrap().start(data.v.clone(), &stop).unwrap();
    let ranges = aligned(TOTAL, 5);
    let share = |range: &std::ops::Range<usize>| {
        let source = data.views(range.clone());
        let mut shard = Cpu::part(&source, range.clone(), TOTAL, &scalings, LATENT).unwrap();
        let v = Matrix::from_fn(range.len(), LATENT, |i, k| data.v[(range.start + i, k)]);
        let share = shard.start(v, &stop).unwrap();
        let travelled = Statistics::from_bytes(&share.to_bytes()).unwrap();
        assert_eq!(travelled, share);
        travelled
    };
    let shares: Vec<Statistics> = ranges.iter().map(share).collect();
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1], [1, 3, 0, 4, 2]] {
        let mut some = order.iter().map(|&part| shares[part].clone());
        let first = some.next().unwrap();
        let merged = some.fold(first, |all, share| all.merge(share).unwrap());
        assert_eq!(merged, expected, "{order:?}");
        assert_eq!(merged.whole().unwrap(), expected.clone().whole().unwrap());
    }
    // A part is not all, and nothing may be counted twice.
    assert!(shares[0].clone().merge(shares[2].clone()).unwrap().whole().is_err());
    assert!(shares[0].clone().merge(shares[0].clone()).is_err());
    assert!(Statistics::from_bytes(b"no statistics").is_err());
    let bytes = shares[1].to_bytes();
    assert!((0..bytes.len()).step_by(97).all(|end| Statistics::from_bytes(&bytes[..end]).is_err()));
    let factors: Factors =
        serde_json::from_str(&serde_json::to_string(&Factors::default()).unwrap()).unwrap();
    assert_eq!(factors, Factors::default());
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    let data = data();
    let some = data.views(0..32_768);
    let scalings = scalings(&some);
    let refused = |range, total| Cpu::part(&some, range, total, &scalings, LATENT).err().unwrap();
    assert!(matches!(refused(1..32_769, TOTAL), Error::Unsuitable { what: "range", .. }));
    assert!(matches!(refused(0..16_384, TOTAL), Error::Unsuitable { what: "range", .. }));
    assert!(matches!(Cpu::new(&some, &scalings[..1], LATENT), Err(Error::LengthMismatch { .. })));
    let mut shard = Cpu::new(&some, &scalings, LATENT).unwrap();
    assert!(shard.start(Matrix::zeros(3, LATENT), &Stop::new()).is_err());
    let none: Shards<Cpu<'_>> = Shards::new(Vec::new());
    assert_eq!(none.instances(), 0);
}

#[test]
fn factors_and_statistics_of_other_views_are_refused() {
    let data = data();
    let (views, stop) = (data.views(0..1000), Stop::new());
    let scalings = scalings(&views);
    let mut shard = Cpu::new(&views, &scalings, LATENT).unwrap();
    let squares = shard.squares();
    let options = |clusters: usize| Daimc::new(clusters).options().clone();
    let v = Matrix::from_fn(1000, LATENT, |i, k| data.v[(i, k)]);
    let factors = |rows: [usize; 2], latent: usize, scale: usize| {
        let bases = rows.map(|rows| Matrix::from_fn(rows, latent, |i, k| ((i + k) % 4) as f64)).into();
        Factors { bases, scale: vec![1.0; scale] }
    };
    // A sweep needs a start.
    let early = shard.sweep(&factors([11, 30], LATENT, LATENT), update(), &stop);
    assert!(matches!(early, Err(Error::LengthMismatch { .. })));
    let statistics = shard.start(v, &stop).unwrap();
    let mut few = factors([11, 30], LATENT, LATENT);
    few.bases.pop();
    for wrong in [
        few,
        factors([11, 30], LATENT, LATENT + 1),
        factors([11, 30], LATENT - 1, LATENT),
        factors([30, 11], LATENT, LATENT),
    ] {
        assert!(matches!(shard.sweep(&wrong, update(), &stop), Err(Error::LengthMismatch { .. })));
    }

    let new = |clusters, squares: &[f64], bases| {
        Descent::new(&options(clusters), squares.to_vec(), bases, statistics.clone()).map(|_| ())
    };
    assert!(new(LATENT, &squares, Bases::Fitted).is_ok());
    assert!(matches!(new(0, &squares, Bases::Fitted), Err(Error::Option { option: "clusters", .. })));
    assert!(matches!(new(LATENT + 1, &squares, Bases::Fitted), Err(Error::Unsuitable { .. })));
    assert!(matches!(new(LATENT, &squares[..1], Bases::Fitted), Err(Error::LengthMismatch { .. })));
    let turned = factors([30, 11], LATENT, LATENT).bases;
    assert!(matches!(new(LATENT, &squares, Bases::Given(turned)), Err(Error::LengthMismatch { .. })));

    // Statistics of other views can be neither merged nor absorbed.
    let other = Views::new(vec![View::dense("dense", 3, vec![1.0; 3000]).unwrap()]).unwrap();
    let mut alone = Cpu::new(&other, &self::scalings(&other), LATENT).unwrap();
    let share = alone.start(Matrix::from_fn(1000, LATENT, |_, _| 1.0), &stop).unwrap();
    assert!(matches!(statistics.clone().merge(share.clone()), Err(Error::Unsuitable { .. })));
    let mut descent =
        Descent::new(&options(LATENT), squares.clone(), Bases::Fitted, statistics.clone()).unwrap();
    assert!(matches!(descent.absorb(share), Err(Error::LengthMismatch { .. })));
}

#[test]
fn a_sweep_that_is_stopped_leaves_v_scaled() {
    let data = data();
    let views = data.views(0..TOTAL);
    let scalings = scalings(&views);
    let mut shard = Cpu::new(&views, &scalings, LATENT).unwrap();
    let stop = Stop::new();
    shard.start(data.v.clone(), &stop).unwrap();
    let bases = vec![
        Matrix::from_fn(11, LATENT, |i, k| ((i * k) % 3) as f64),
        Matrix::from_fn(30, LATENT, |i, k| ((i + k) % 4) as f64),
    ];
    let factors = Factors { bases, scale: vec![2.0; LATENT] };
    stop.set();
    assert!(matches!(shard.sweep(&factors, update(), &stop), Err(Error::Interrupted)));
    let expected: Vec<f64> = data.v.values().iter().map(|value| 2.0 * value).collect();
    assert_eq!(shard.latent().values(), expected);
}
