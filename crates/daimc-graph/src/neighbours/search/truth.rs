//! The recall of a search, estimated on a sample.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Lists, Points, Scratch, Space, square, unit};
use daimc_core::index::index;
use daimc_core::source::Buffer;
use daimc_core::{Matrix, Result};

/// The number of instances whose true neighbours are computed.
const ASKED: usize = 200;

/// The true neighbours of a sample of instances.
pub(super) struct Truth {
    asked: Vec<u32>,
    nearest: Lists,
}

impl Truth {
    /// Computes them in one pass over the rows.
    pub fn of(space: &Space<'_>, seed: u64) -> Result<Self> {
        let Space { scan, view, scaled_view, present, count } = space;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX / 11);
        let mut asked: Vec<u32> = (0..ASKED).map(|_| present[rng.random_range(0..present.len())]).collect();
        asked.sort_unstable();
        asked.dedup();
        let mut buffer = Buffer::default();
        let points = Points::new(scan, *view, scaled_view, &asked, &mut buffer)?;
        let own: Vec<Vec<f64>> = (0..asked.len()).map(|i| points.values(i)).collect();
        let rows = Matrix::from_fn(scaled_view.features(), asked.len(), |f, q| own[q][f]);
        let none = || Lists::empty(asked.len(), *count);
        let mut nearest = none();
        scan.pass_view(
            *view,
            || (none(), Scratch::default()),
            |piece, (own, scratch)| {
                let points = Points::in_block(scaled_view, piece.blocks[0], piece.shown());
                points.distances(0..points.rows.len(), &rows, scratch, |i, squares| {
                    let other = index(points.rows[i].0);
                    for (q, square) in squares.iter().enumerate().filter(|(q, _)| asked[*q] != other) {
                        own.offer(q, other, (square * unit(scaled_view)) as f32);
                    }
                });
                Ok(())
            },
            |(own, _)| {
                for q in 0..asked.len() {
                    own.of(q).for_each(|(other, square)| nearest.offer(q, other, square));
                }
                *own = none();
            },
        )?;
        // Distances computed from products lose digits if rows are long compared with them.
        let mut others: Vec<u32> =
            (0..asked.len()).flat_map(|q| nearest.of(q).map(|(other, _)| other)).collect();
        others.sort_unstable();
        others.dedup();
        let mut buffer = Buffer::default();
        let points = Points::new(scan, *view, scaled_view, &others, &mut buffer)?;
        let mut exact = none();
        for (q, own) in own.iter().enumerate() {
            for (other, _) in nearest.of(q) {
                let other_row = points.values(others.partition_point(|&before| before < other));
                exact.offer(q, other, (square(own, &other_row) * unit(scaled_view)) as f32);
            }
        }
        Ok(Self { asked, nearest: exact })
    }

    /// The share of them in the lists of the instances, whose distances are those of rows or of projections.
    pub fn recall(&self, lists: &Lists, true_distances: bool) -> f64 {
        let (mut found, mut all) = (0, 0);
        for (q, &i) in self.asked.iter().enumerate() {
            // Another neighbour at the distance of the last one is equally good.
            let last = self.nearest.of(q).last().map_or(0.0, |(_, square)| square);
            // Projections are shorter, so their distances cannot be compared.
            let near = lists.of(i as usize).filter(|(other, square)| {
                if true_distances {
                    *square <= last * (1.0 + 1e-4)
                } else {
                    self.nearest.of(q).any(|(own, _)| own == *other)
                }
            });
            let expected = self.nearest.of(q).count();
            found += near.count().min(expected);
            all += expected;
        }
        f64::from(index(found)) / f64::from(index(all.max(1)))
    }
}
