//! The views of an instance must not determine its cluster: planted clusters as in several fields, with instances missing
//! completely at random and by cluster.

use daimc::synthetic::planted::{Field, Missing, Planted};
use daimc::{Daimc, Fit, Neighbours, Views, metrics};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// A set, the number of its clusters, and what it is.
fn set(number: usize) -> (Planted, usize, String) {
    let field = [Field::Cells, Field::Omics, Field::Text][number % 3];
    let views = 2 + number / 3 % 4;
    let rate = [0.1, 0.25, 0.4, 0.55, 0.7][number % 5];
    let mut rates = vec![rate; views];
    if views == 2 && (rate > 0.45 || number.is_multiple_of(2)) {
        rates[0] = 0.0;
    }
    if views == 3 && rate > 0.6 {
        rates[0] = 0.2;
    }
    let (instances, clusters) = size(field);
    let what = format!("{number:2} {field:?} {rates:?}");
    (Planted::new(field, instances, clusters).rates(rates).seed(500 + number as u64), clusters, what)
}

fn size(field: Field) -> (usize, usize) {
    match field {
        Field::Cells => (1000, 8),
        Field::Omics => (400, 4),
        _ => (600, 6),
    }
}

/// The number of each instance's presence pattern.
fn patterns(views: &Views<'_>) -> Vec<usize> {
    let key =
        |i: usize| (0..views.len()).fold(0, |key, view| 2 * key + usize::from(views.is_present(view, i)));
    (0..views.instances()).map(key).collect()
}

fn information(a: &[usize], b: &[usize]) -> f64 {
    let width = b.iter().max().unwrap() + 1;
    let mut table = vec![0.0; (a.iter().max().unwrap() + 1) * width];
    a.iter().zip(b).for_each(|(a, b)| table[a * width + b] += 1.0);
    let n = a.len() as f64;
    let rows: Vec<f64> = table.chunks_exact(width).map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> = (0..width).map(|b| table.iter().skip(b).step_by(width).sum()).collect();
    let cells = table.iter().enumerate().filter(|(_, cell)| **cell > 0.0);
    cells.map(|(at, cell)| cell / n * (cell * n / (rows[at / width] * columns[at % width])).ln()).sum()
}

/// The share of the permutations of the patterns, including the data, for which clusters have at least as much more information
/// about them than the classes have.
fn chance(labels: &[usize], truth: &[usize], patterns: &[usize]) -> f64 {
    const PERMUTATIONS: usize = 1999;
    let beyond = |patterns: &[usize]| information(labels, patterns) - information(truth, patterns);
    let own = beyond(patterns);
    let as_large = |seed: &usize| {
        let mut permuted = patterns.to_vec();
        permuted.shuffle(&mut ChaCha8Rng::seed_from_u64(*seed as u64));
        beyond(&permuted) >= own - 1e-12
    };
    let as_large = (0..PERMUTATIONS).into_par_iter().filter(as_large).count();
    (1 + as_large) as f64 / (1 + PERMUTATIONS) as f64
}

fn fit(views: &Views<'_>, clusters: usize, neighbours: Neighbours) -> Fit {
    Daimc::new(clusters).seed(3).neighbours(neighbours).fit(views).unwrap()
}

const SETS: usize = 40;
/// One in twenty of forty sets, by chance.
const UNLIKELY: f64 = 0.05 / SETS as f64;

/// The gain in ARI from neighbourhoods for each set, and the sets whose clusters depend on the patterns.
fn at_random(sets: impl Iterator<Item = usize>) -> (Vec<f64>, Vec<String>) {
    let (mut gains, mut follow) = (Vec::new(), Vec::new());
    for number in sets {
        let (planted, clusters, what) = set(number);
        let (views, truth) = planted.make().unwrap();
        let patterns = patterns(&views);
        let of = |neighbours| {
            let fitted = fit(&views, clusters, neighbours);
            let ari = metrics::ari(&truth, &fitted.labels).unwrap();
            let p = chance(&fitted.labels, &truth, &patterns);
            (fitted, ari, p)
        };
        let ((alone, before, p_alone), (fitted, after, p)) = (of(Neighbours::Off), of(Neighbours::Auto));
        let (known_alone, known) = (alone.missingness.information, fitted.missingness.information);
        println!(
            "{what}: without neighbourhoods ARI {before:.3}, p = {p_alone:.4}, {known_alone:.4} nats; {} ARI {after:.3}, \
             p = {p:.4}, {known:.4} nats",
            fitted.neighbours.used
        );
        assert!(after >= before - 0.02, "{what}: {before:.3}, then {after:.3}");
        assert_eq!(fitted.missingness.warning(), None, "{what}");
        // Instances with few views have more errors, which favour some clusters: V alone may have a little information about the
        // patterns. Neighbourhoods must not have more.
        assert!(
            p >= UNLIKELY || p_alone < UNLIKELY && known < known_alone + 0.01,
            "{what}: {p_alone}, then {p}"
        );
        gains.push(after - before);
        if p < UNLIKELY {
            follow.push(what);
        }
    }
    (gains, follow)
}

#[test]
fn where_views_are_missing_at_random_clusters_do_not_follow_them() {
    at_random((0..SETS).step_by(7));
}

mod studies {
    use super::*;

    #[test]
    #[ignore = "a study: make test-all"]
    fn where_views_are_missing_at_random_clusters_do_not_follow_them() {
        let (gains, follow) = at_random(0..SETS);
        let mean = gains.iter().sum::<f64>() / SETS as f64;
        println!("ARI {mean:+.4} in the mean; above chance: {follow:?}");
        assert!(mean > 0.0 && follow.len() <= 2, "{mean} {follow:?}");
    }
}

#[test]
fn cells_without_protein_are_clustered_with_their_type() {
    for seed in 0..3 {
        let planted = Planted::new(Field::Cells, 2000, 8).rates(vec![0.0, 0.25]).seed(seed);
        let (views, truth) = planted.make().unwrap();
        let alone = metrics::ari(&truth, &fit(&views, 8, Neighbours::Off).labels).unwrap();
        for neighbours in [Neighbours::Auto, Neighbours::Refine] {
            let fitted = fit(&views, 8, neighbours);
            let found = metrics::ari(&truth, &fitted.labels).unwrap();
            let lacking: Vec<usize> = (0..2000).filter(|&i| !views.is_present(1, i)).collect();
            let of = |all: &[usize]| lacking.iter().map(|&i| all[i]).collect::<Vec<_>>();
            let among = metrics::ari(&of(&truth), &of(&fitted.labels)).unwrap();
            let most = fitted.missingness.most.as_ref().unwrap();
            println!("{seed} {neighbours}: ARI {alone:.3}, {found:.3}; without protein {among:.3}; {most:?}");
            assert_eq!(fitted.neighbours.used, neighbours, "{}", fitted.neighbours.reason);
            assert!(found > alone - 0.02 && among > 0.4, "{alone} {found} {among}");
            assert!(!fitted.missingness.notable() && most.in_cluster < 0.4, "{:?}", fitted.missingness);
        }
    }
}

#[test]
fn where_missingness_depends_on_the_class_the_classes_are_found_with_a_warning() {
    for (number, field) in [Field::Cells, Field::Omics, Field::Text].into_iter().enumerate() {
        let (instances, clusters) = size(field);
        let planted =
            Planted::new(field, instances, clusters).rates(vec![0.4; 3]).missing(Missing::ByCluster);
        let (views, truth) = planted.seed(40 + number as u64).make().unwrap();
        let alone = metrics::ari(&truth, &fit(&views, clusters, Neighbours::Off).labels).unwrap();
        let fitted = fit(&views, clusters, Neighbours::Auto);
        let found = metrics::ari(&truth, &fitted.labels).unwrap();
        println!("{field:?}: ARI {alone:.3}, {found:.3}; {:?}", fitted.missingness);
        assert!(found > alone - 0.02 && found > 0.5, "{field:?}: {alone:.3}, {found:.3}");
        let warning = fitted.missingness.warning().unwrap();
        assert!(warning.contains("lack view"), "{warning}");
    }
}
