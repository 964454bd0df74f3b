//! Why an instance is where it is: what each view says for its cluster. (Which features make a cluster, and how sure that is,
//! is worked out in `leaders`.)
//!
//! The prototype of cluster c in view v is `p = U_v m_c`, where `m_c` is the mean row of V of the cluster's instances: the
//! row that the model expects of them. An instance j in cluster c is compared with it and with the prototype of its rival
//! r, the strongest other cluster:
//!
//! ```text
//! e_v = ‖x_vj − a_j U_v m_r‖² − ‖x_vj − a_j U_v m_c‖²,      contribution = e_v / Σ_u |e_u|
//! ```
//!
//! Lengths are no evidence: rows of V are clustered by their direction, and an instance that is twice as long as others
//! belongs where they belong. So both prototypes are made longer by `a_j`, the factor at which the prototype that is
//! nearest to the instance, in all its views together, fits best. The factor is one for all views and clusters. One for each
//! view would blow up the prototypes of a view in which a cluster cannot be seen, whose direction is noise; one
//! for each cluster would let a view that cannot tell two clusters apart seem to.
//!
//! The rival is one for all views, so that their evidence adds up: to the margin by which the instance is nearer to its own
//! cluster. `‖x‖²` drops out, and what is left are the products of the row with the prototypes: one pass over the data.
//!
//! Rows are scaled as in the fit, so views count as they do there: one whose rows are all nearly parallel moves V
//! little, and its evidence is small.

pub(crate) mod leaders;

use crate::lens::{Lens, Operand, Scratch};
use crate::linalg::product;
use crate::model::Model;
use crate::scan::{Piece, Scan, off_the_pool};
use crate::source::Source;
use crate::text::quoted;
use crate::{Error, Ids, Matrix, Result, Stop};

/// What each view says for the cluster of each instance.
///
/// The evidence of a view is how much nearer (in squared distance, scaled as in the fit) the instance's row is to the
/// prototype of its own cluster than to that of its rival. Views are those of the model, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributions {
    views: usize,
    /// Instances × views.
    evidence: Vec<Option<f64>>,
    rivals: Vec<Option<usize>>,
}

impl Contributions {
    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.rivals.len()
    }

    /// The number of views of the model.
    #[must_use]
    pub fn views(&self) -> usize {
        self.views
    }

    /// The cluster that an instance was compared with: of all others, the one that its views together put nearest. `None`
    /// if there is no other.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn rival(&self, instance: usize) -> Option<usize> {
        self.rivals[instance]
    }

    /// How much nearer the row of an instance in each view is to its own cluster than to its rival; `None` where the view
    /// does not show the instance. Without a rival there is nothing to decide, and the evidence is zero.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn evidence(&self, instance: usize) -> &[Option<f64>] {
        &self.evidence[instance * self.views..(instance + 1) * self.views]
    }

    /// The sum of the evidence: below zero, the rival is nearer.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn margin(&self, instance: usize) -> f64 {
        self.evidence(instance).iter().flatten().sum()
    }

    /// The share of each view in the evidence, from −1 to 1; below zero, the view speaks against the cluster. Without their
    /// signs the shares of an instance sum to 1, unless no view says anything: then they are zero. `None` where the view
    /// does not show the instance.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn shares(&self, instance: usize) -> impl ExactSizeIterator<Item = Option<f64>> {
        let evidence = self.evidence(instance);
        let total: f64 = evidence.iter().flatten().map(|evidence| evidence.abs()).sum();
        let share = move |evidence: f64| if total > 0.0 { (evidence / total).clamp(-1.0, 1.0) } else { 0.0 };
        evidence.iter().map(move |evidence| evidence.map(share))
    }
}

impl Model {
    /// What each view says for the cluster of each instance that the model was fitted to.
    ///
    /// ```
    /// use daimc::{Daimc, Views, synthetic::Synthetic};
    ///
    /// let data = Synthetic::new(100, 3);
    /// let views = Views::new(vec![data.dense::<f64>("a", 20)?, data.dense::<f64>("b", 10)?])?;
    /// let model = Daimc::new(3).fit(&views)?;
    /// let contributions = model.contributions(&views)?;
    /// let sum: f64 = contributions.shares(0).flatten().map(f64::abs).sum();
    /// assert!((sum - 1.0).abs() < 1e-12);
    /// # Ok::<(), daimc::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not the instances of the model, a view is unknown, or its features are not those of the model.
    pub fn contributions(&self, source: &dyn Source) -> Result<Contributions> {
        let (expected, found) = (self.labels.len(), source.instances());
        if expected != found {
            return Err(Error::LengthMismatch { what: "instances".into(), expected, found });
        }
        if let (Ids::Names(own), Ids::Names(given)) = (&self.ids, source.schema().ids())
            && let Some(row) = own.iter().zip(given).position(|(own, given)| own != given)
        {
            return Err(Error::Unsuitable {
                what: "views",
                value: given[row].clone(),
                reason: format!(
                    "instance {row} of the fit is {}: give the instances in the order of the fit",
                    quoted(&own[row])
                ),
            });
        }
        self.contributions_of(source, &self.labels)
    }

    /// What each view says for the clusters of instances, such as those in which [`Model::place`] has put new ones, from
    /// whichever of the model's views they have.
    ///
    /// # Errors
    /// When there is not one label per instance, a label is not that of a cluster, a view is unknown, or its features are
    /// not those of the model.
    pub fn contributions_of(&self, source: &dyn Source, labels: &[usize]) -> Result<Contributions> {
        let (expected, clusters) = (source.instances(), self.options.clusters);
        if labels.len() != expected {
            return Err(Error::LengthMismatch { what: "labels".into(), expected, found: labels.len() });
        }
        if let Some(label) = labels.iter().find(|label| **label >= clusters) {
            let reason = format!("the clusters of the model are 0 to {}", clusters - 1);
            return Err(Error::Unsuitable { what: "labels", value: label.to_string(), reason });
        }
        off_the_pool(source, || {
            let scan = Scan::new(source, &Stop::default());
            let prototypes = Prototypes::of(self, &scan)?;
            let mut total = total_of(self.views.len());
            total.evidence.reserve_exact(scan.instances() * self.views.len());
            total.rivals.reserve_exact(scan.instances());
            scan.pass(
                0..source.views(),
                std::iter::repeat(()),
                || (total_of(self.views.len()), Room::default()),
                |piece, (), (part, room)| {
                    prototypes.judge(&piece, labels, room, part);
                    Ok(())
                },
                |_, (part, _)| {
                    total.evidence.append(&mut part.evidence);
                    total.rivals.append(&mut part.rivals);
                },
            )?;
            Ok(total)
        })
    }

    /// The mean row of V of each cluster, one per column, and whether the cluster has any.
    fn mean_rows(&self) -> (Matrix, Vec<bool>) {
        let clusters = self.options.clusters;
        let mut means = Matrix::zeros(self.options.latent, clusters);
        let mut sizes = vec![0.0; clusters];
        for (&label, row) in self.labels.iter().zip(self.latent.iter_rows()) {
            sizes[label] += 1.0;
            for (k, value) in row.iter().enumerate() {
                means[(k, label)] += value;
            }
        }
        let factors: Vec<f64> = sizes.iter().map(|size: &f64| 1.0 / size.max(1.0)).collect();
        means.scale_columns(&factors);
        (means, sizes.into_iter().map(|size| size > 0.0).collect())
    }
}

fn total_of(views: usize) -> Contributions {
    Contributions { views, evidence: Vec::new(), rivals: Vec::new() }
}

/// The prototypes of all clusters, ready to be compared with the rows of some views.
struct Prototypes {
    /// Clusters that have instances.
    alive: Vec<bool>,
    views: Vec<Seen>,
}

/// The prototypes in one of the views that are given.
struct Seen {
    /// The view's place in the model.
    place: usize,
    lens: Lens,
    operand: Operand,
    /// `‖p‖²` of each cluster.
    squares: Vec<f64>,
}

/// Room for the products of a block.
#[derive(Default)]
struct Room {
    /// Views × instances × clusters: `xᵀp`.
    products: Vec<f64>,
    /// Views × instances.
    shown: Vec<bool>,
    scratch: Scratch,
}

/// Rows whose products are taken together.
const TILE: usize = 120;

impl Prototypes {
    fn of(model: &Model, scan: &Scan<'_>) -> Result<Self> {
        let (means, alive) = model.mean_rows();
        let (places, lenses) = model.lenses(scan)?;
        let seen = places.into_iter().zip(lenses).map(|(place, lens)| {
            let prototypes = product(&model.views[place].basis, &means);
            let mut squares = vec![0.0; means.columns()];
            for row in prototypes.iter_rows() {
                squares.iter_mut().zip(row).for_each(|(square, p)| *square += p * p);
            }
            Seen { place, operand: lens.operand(&prototypes), lens, squares }
        });
        Ok(Self { views: seen.collect(), alive })
    }

    /// The evidence for the instances of a block.
    fn judge(&self, piece: &Piece<'_>, labels: &[usize], room: &mut Room, part: &mut Contributions) {
        self.multiply(piece, room);
        let (size, clusters) = (piece.instances.len(), self.alive.len());
        let Room { products, shown, .. } = room;
        part.evidence.clear();
        part.evidence.resize(size * part.views, None);
        part.rivals.clear();
        let (mut sums, mut squares) = (vec![0.0; clusters], vec![0.0; clusters]);
        for (i, &own) in labels[piece.instances.clone()].iter().enumerate() {
            let here = || {
                let views = self.views.iter().enumerate().filter(|(v, _)| shown[v * size + i]);
                views.map(|(v, seen)| (seen, &products[(v * size + i) * clusters..][..clusters]))
            };
            sums.fill(0.0);
            squares.fill(0.0);
            for (seen, products) in here() {
                sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
                squares.iter_mut().zip(&seen.squares).for_each(|(sum, square)| *sum += square);
            }
            let factor = self.factor(&sums, &squares);
            // Squared distances, but for ‖x‖².
            let distance = |product: f64, square: f64| factor * (factor * square - 2.0 * product);
            let others = (0..clusters).filter(|&cluster| cluster != own && self.alive[cluster]);
            let rival = others.reduce(|best, other| {
                let nearer = distance(sums[other], squares[other]) < distance(sums[best], squares[best]);
                if nearer { other } else { best }
            });
            part.rivals.push(rival);
            for (seen, products) in here() {
                let to = |cluster: usize| distance(products[cluster], seen.squares[cluster]);
                part.evidence[i * part.views + seen.place] =
                    Some(rival.map_or(0.0, |rival| to(rival) - to(own)));
            }
        }
    }

    /// The factor at which the prototype that comes nearest to an instance does so, from `xᵀp` and `‖p‖²` over its views;
    /// zero for an instance that is like no cluster.
    fn factor(&self, sums: &[f64], squares: &[f64]) -> f64 {
        let mut best = (0.0, 0.0);
        for ((&sum, &square), alive) in sums.iter().zip(squares).zip(&self.alive) {
            // ‖x − a p‖² is least at a = xᵀp / ‖p‖², where it is ‖x‖² − (xᵀp)² / ‖p‖².
            let (factor, gain) = (sum / square, sum * sum / square);
            if *alive && factor > 0.0 && gain.is_finite() && gain > best.1 {
                best = (factor, gain);
            }
        }
        best.0
    }

    /// The products of the rows of a block with the prototypes of all clusters.
    fn multiply(&self, piece: &Piece<'_>, room: &mut Room) {
        let (size, clusters) = (piece.instances.len(), self.alive.len());
        let Room { products, shown, scratch } = room;
        shown.clear();
        shown.resize(self.views.len() * size, false);
        products.clear();
        products.resize(self.views.len() * size * clusters, 0.0);
        for (number, seen) in self.views.iter().enumerate() {
            for rows in piece.shown_in(number).chunks(TILE) {
                seen.lens.project_each(&piece.blocks[number], rows, &seen.operand, scratch, |i, found| {
                    let at = number * size + rows[i].0 - piece.instances.start;
                    shown[at] = true;
                    products[at * clusters..(at + 1) * clusters].copy_from_slice(found);
                });
            }
        }
    }
}
