use super::*;
use crate::scaling::{Scale, Scaling};
use crate::synthetic::Synthetic;
use crate::{Views, simulate};

#[test]
fn the_size_of_a_tile_changes_no_bit() {
    let (n, latent) = (9000, 7);
    let data = Synthetic::new(n, latent).noise(1.0).seed(3);
    let present = simulate::missing(n, &[0.3, 0.4, 0.2], 5).unwrap();
    let views = Views::new(vec![
        data.dense::<f32>("single", 33).unwrap().mask(&present[0]).unwrap(),
        data.dense::<f64>("double", 20).unwrap().mask(&present[1]).unwrap(),
        data.sparse::<f64>("sparse", 60, 0.2).unwrap().mask(&present[2]).unwrap(),
    ])
    .unwrap();
    for scale in [Scale::Unit, Scale::MinMaxUnit] {
        for solver in [Solver::Coordinate, Solver::Multiplicative] {
            let run = |tile: usize| {
                let scan = Scan::of(&views);
                let lens = |view| Lens::fit(&scan, view, Scaling::fit(&scan, view, scale)?, true);
                let lenses = (0..3).map(lens).collect::<Result<Vec<_>>>().unwrap();
                let mut sweep = Sweep::new(scan, lenses, latent);
                sweep.tile = tile;
                let mut v = Matrix::from_fn(n, latent, |i, k| 0.1 + ((i * 7 + k * 3) % 11) as f64);
                let bases: Vec<Matrix> = [33, 20, 60]
                    .map(|d| Matrix::from_fn(d, latent, |f, k| ((f * 5 + k * 11) % 13) as f64 / 6.0 - 0.8))
                    .into();
                let (factors, stop) = (Factors { bases, scale: vec![0.7; latent] }, Stop::new());
                let update = VStep::Update { solver, passes: 2 };
                let first = sweep.run(&factors, update, &mut v, &stop).unwrap();
                let settle = VStep::Settle { after: Some(2) };
                let second = sweep.run(&factors, settle, &mut v, &stop).unwrap();
                let bits: Vec<u64> = v.values().iter().map(|value| value.to_bits()).collect();
                (bits, first, second)
            };
            let expected = run(128);
            for tile in [8, 40, 64, 512] {
                assert!(run(tile) == expected, "{scale}, {solver}, {tile}");
            }
        }
    }
}
