//! Coarsening of a graph: landmarks, each of which represents several instances.

use rayon::prelude::*;

use super::forces::{Links, Point};
use crate::neighbours::Graph;

/// The maximum number of links that attract a landmark: its strongest. Links that other landmarks keep to it come in addition.
const STRONGEST: usize = 15;

/// The owner of an instance that is linked with no landmark.
const UNOWNED: u32 = u32::MAX;

/// Some instances of a graph, and the assignment of every other instance to the most strongly linked one.
pub(super) struct Landmarks<'a> {
    graph: &'a Graph,
    /// The landmark of each instance, as an index into the landmarks.
    owners: Vec<u32>,
    /// The instances of landmark l are at `offsets[l]..offsets[l + 1]`.
    members: Vec<u32>,
    offsets: Vec<usize>,
    /// Whether every instance with links is a landmark.
    all: bool,
}

impl<'a> Landmarks<'a> {
    /// Landmarks represent themselves. Each other instance takes the landmark of its most strongly linked neighbour as soon as
    /// that neighbour has one; of equally strong links, the first decides.
    pub fn new(graph: &'a Graph, instances: &[u32]) -> Self {
        let mut owners = vec![UNOWNED; graph.instances()];
        (0..).zip(instances).for_each(|(place, &i)| owners[i as usize] = place);
        let waiting = |owners: &[u32]| -> Vec<u32> {
            let all = 0..owners.len();
            all.filter(|&i| owners[i] == UNOWNED && graph.row(i).next().is_some()).map(|i| i as u32).collect()
        };
        let mut left = waiting(&owners);
        let all = left.is_empty();
        while !left.is_empty() {
            let found: Vec<u32> = left
                .par_iter()
                .map(|&i| {
                    let known = graph.row(i as usize).filter(|(j, _)| owners[*j as usize] != UNOWNED);
                    let strongest = known.fold((UNOWNED, f32::MIN), |best, (j, weight)| {
                        if weight > best.1 { (owners[j as usize], weight) } else { best }
                    });
                    strongest.0
                })
                .collect();
            left.iter().zip(&found).for_each(|(&i, &owner)| owners[i as usize] = owner);
            let before = left.len();
            left.retain(|&i| owners[i as usize] == UNOWNED);
            if left.len() == before {
                break;
            }
        }
        let mut offsets = vec![0; instances.len() + 1];
        let owned = || owners.iter().enumerate().filter(|(_, owner)| **owner != UNOWNED);
        owned().for_each(|(_, &owner)| offsets[owner as usize + 1] += 1);
        (0..instances.len()).for_each(|l| offsets[l + 1] += offsets[l]);
        let mut members = vec![0; offsets[instances.len()]];
        let mut free = offsets.clone();
        for (i, &owner) in owned() {
            members[free[owner as usize]] = i as u32;
            free[owner as usize] += 1;
        }
        Self { graph, owners, members, offsets, all }
    }

    /// Links between landmarks: sums of the links between the instances that they represent, restricted to the strongest of each
    /// landmark. As in UMAP, the strongest link of a landmark has the weight 1, `a_ij = w_ij / max_l w_il`, and the two
    /// directions of a link are combined by `p = a + aᵀ − a ∘ aᵀ`.
    pub fn links(&self) -> Links {
        let landmarks = self.offsets.len() - 1;
        let rows: Vec<Vec<(u32, f64)>> = (0..landmarks).into_par_iter().map(|l| self.strongest(l)).collect();
        let largest: Vec<f64> =
            rows.iter().map(|row| row.iter().map(|link| link.1).fold(f64::MIN_POSITIVE, f64::max)).collect();
        // A link that either end keeps belongs to both.
        let mut both: Vec<Vec<(u32, f64)>> = rows.clone();
        for (l, row) in rows.iter().enumerate() {
            row.iter().for_each(|&(other, weight)| both[other as usize].push((l as u32, weight)));
        }
        let mut links = Links { offsets: vec![0], columns: Vec::new(), weights: Vec::new() };
        for (l, mut row) in both.into_iter().enumerate() {
            row.sort_unstable_by_key(|link| link.0);
            row.dedup_by_key(|link| link.0);
            for (other, weight) in row {
                let (a, b) = (weight / largest[l], weight / largest[other as usize]);
                // The other end may have stronger links than those it keeps here, but not weaker ones.
                let (a, b) = (a.min(1.0), b.min(1.0));
                links.columns.push(other);
                links.weights.push(a + b - a * b);
            }
            links.offsets.push(links.columns.len());
        }
        links
    }

    /// The strongest links of a landmark with others.
    fn strongest(&self, landmark: usize) -> Vec<(u32, f64)> {
        let members = &self.members[self.offsets[landmark]..self.offsets[landmark + 1]];
        let links = members.iter().flat_map(|&i| self.graph.row(i as usize));
        let mut links: Vec<(u32, f64)> =
            links.map(|(j, weight)| (self.owners[j as usize], f64::from(weight))).collect();
        links.retain(|link| link.0 != UNOWNED && link.0 as usize != landmark);
        links.sort_by_key(|link| link.0);
        links.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 += next.1;
            }
            same
        });
        links.sort_by(|a, b| b.1.total_cmp(&a.1));
        links.truncate(STRONGEST);
        links
    }

    /// The position of every instance: landmarks as given, others at the weighted mean of the landmarks of their linked
    /// neighbours; `None` for instances that no landmark represents.
    pub fn place(&self, instances: &[u32], at: &[Point]) -> Vec<Option<Point>> {
        let mean = |i: usize| {
            let mut sum = [0.0; 3];
            for (j, weight) in self.graph.row(i).filter(|(j, _)| self.owners[*j as usize] != UNOWNED) {
                let ([x, y], weight) = (at[self.owners[j as usize] as usize], f64::from(weight));
                sum = [sum[0] + weight * x, sum[1] + weight * y, sum[2] + weight];
            }
            (sum[2] > 0.0).then(|| [sum[0] / sum[2], sum[1] / sum[2]])
        };
        let mut places: Vec<Option<Point>> = if self.all {
            vec![None; self.owners.len()]
        } else {
            (0..self.owners.len()).into_par_iter().map(mean).collect()
        };
        instances.iter().zip(at).for_each(|(&i, at)| places[i as usize] = Some(*at));
        places
    }
}
