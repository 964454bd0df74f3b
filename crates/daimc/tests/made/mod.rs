//! Data that are made up, and how models of them are compared.
#![allow(dead_code)]

use daimc::{Fit, Matrix, View};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Values around the centres of clusters, row by row.
pub fn around(truth: &[usize], features: usize, noise: f64, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(-1.0..1.0)).collect();
    let row = |&cluster: &usize| centres[cluster * features..(cluster + 1) * features].to_vec();
    truth.iter().flat_map(row).map(|x| x + noise * rng.random_range(-1.0..1.0)).collect()
}

/// The same, with most values zero, each cluster having most of its values in features of its own.
pub fn mostly_zero(truth: &[usize], features: usize, negative: bool, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let value = |at: usize| {
        let own = at % features % clusters == truth[at / features];
        let stored = rng.random::<f64>() < if own { 0.6 } else { 0.04 };
        let size = f64::from(rng.random_range(1..6_u8));
        let sign = if negative && rng.random::<f64>() < 0.2 { -1.0 } else { 1.0 };
        if stored { sign * size } else { 0.0 }
    };
    (0..truth.len() * features).map(value).collect()
}

/// The rows as compressed rows, zeros left out.
pub fn compressed(features: usize, values: &[f64]) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    let (mut offsets, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks(features) {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            columns.push(column);
            stored.push(value);
        }
        offsets.push(columns.len());
    }
    (offsets, columns, stored)
}

pub fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

pub fn sparse(name: &str, features: usize, values: &[f64]) -> View<'static> {
    let (offsets, columns, stored) = compressed(features, values);
    View::sparse(name, features, offsets, columns, stored).unwrap()
}

pub fn sparse_f32(name: &str, features: usize, values: &[f64]) -> View<'static> {
    let (offsets, columns, stored) = compressed(features, values);
    View::sparse(name, features, offsets, columns, narrow(&stored)).unwrap()
}

/// A V to start from: nearly one cluster each, none of the entries zero.
pub fn start(truth: &[usize], latent: usize, seed: u64) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Matrix::from_fn(truth.len(), latent, |i, k| {
        rng.random_range(0.1..0.3) + f64::from(u8::from(truth[i] % latent == k))
    })
}

pub fn order(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    order
}

/// The rows of a matrix in another order.
pub fn reordered(values: &[f64], features: usize, order: &[usize]) -> Vec<f64> {
    order.iter().flat_map(|&i| values[i * features..(i + 1) * features].to_vec()).collect()
}

/// Asserts that two models are the same to the last bit, timings and names of instances aside.
#[track_caller]
pub fn assert_same(a: &Fit, b: &Fit) {
    assert_eq!(a.labels, b.labels);
    let bits = |matrix: &Matrix| matrix.values().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&a.latent) == bits(&b.latent), "V differs");
    for (a, b) in a.model.views.iter().zip(&b.model.views) {
        assert_eq!(a.scaling, b.scaling);
        assert!(bits(&a.basis) == bits(&b.basis), "U of view {} differs", a.name);
        assert!(bits(&a.alignment) == bits(&b.alignment), "B of view {} differs", a.name);
    }
    assert_eq!((&a.history, &a.objective, &a.outcome), (&b.history, &b.objective, &b.outcome));
    assert_eq!((&a.confidence, &a.model.centres), (&b.confidence, &b.model.centres));
    assert_eq!(a.model.views.len(), b.model.views.len());
}

/// By how much two matrices differ, as a share of the largest entry.
pub fn difference(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    let largest = b.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let pairs = a.values().iter().zip(b.values());
    pairs.map(|(x, y)| (x - y).abs() / largest).fold(0.0, f64::max)
}
