//! The accuracy on Digit with missing cells.

use daimc::source::{Buffer, Rows};
use daimc::{Daimc, Neighbours, View, Views, metrics, simulate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Digit without `mor`, as in the paper, with three tenths of the instances of every view missing, and a share of the
/// cells of the others.
fn digit(cells: f64, seed: u64) -> (Views<'static>, Vec<usize>) {
    let (views, truth) = daimc::datasets::digit();
    let n = truth.len();
    let present = simulate::missing(n, &[0.3; 5], seed).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut lacking = Vec::new();
    for (view, present) in views.into_iter().filter(|view| view.name() != "mor").zip(&present) {
        let (name, features) = (view.name().to_string(), view.features());
        let whole = Views::new(vec![view]).unwrap();
        let mut buffer = Buffer::default();
        let Rows::DenseF32(values) = whole.block(0, 0..n, &mut buffer).unwrap().rows else { panic!("dense") };
        let mut values = values.to_vec();
        values.iter_mut().filter(|_| rng.random::<f64>() < cells).for_each(|x| *x = f32::NAN);
        lacking.push(View::dense(name, features, values).unwrap().mask(present).unwrap());
    }
    (Views::new(lacking).unwrap(), truth)
}

/// The mean accuracy over some seeds.
fn accuracy(fit: &Daimc, cells: f64, seeds: u64) -> f64 {
    let of = |seed: u64| {
        let (views, truth) = digit(cells, seed);
        metrics::accuracy(&truth, &fit.clone().seed(seed).fit(&views).unwrap().labels).unwrap()
    };
    (0..seeds).map(of).sum::<f64>() / seeds as f64
}

#[test]
fn digit_is_found_with_a_tenth_and_three_tenths_of_the_cells_gone() {
    for (name, fit, seeds) in [
        ("by V alone", Daimc::new(10).neighbours(Neighbours::Off), 4),
        ("with neighbourhoods", Daimc::new(10), 2),
    ] {
        let [whole, tenth, three] = [0.0, 0.1, 0.3].map(|cells| accuracy(&fit, cells, seeds));
        println!(
            "Digit, 30 % of the rows missing, {name}: {whole:.4} whole, {tenth:.4} at 10 %, {three:.4} at 30 %"
        );
        assert!(tenth > whole - 0.01, "{name}: {tenth}, not {whole}");
        assert!(three > whole - 0.03, "{name}: {three}, not {whole}");
    }
}
