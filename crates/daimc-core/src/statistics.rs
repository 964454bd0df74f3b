//! The statistics of a sweep, and how partial statistics are merged.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::blocks::Blocks;
use crate::forest::{Forest, Merge};
use crate::table::Partial;
use crate::{Error, Matrix, Result};

/// The parameters that a sweep needs; they are sent to every partition of the instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// U of each view, features × latent.
    pub bases: Vec<Matrix>,
    /// The pending factor of each column of V (Eq. 20): the next sweep reads `V · scale`.
    pub scale: Vec<f64>,
}

/// The statistics of sweeps over some of the instances. The statistics of disjoint sets of instances are
/// [merged](Self::merge); `Descent::absorb` takes the sum over all. Sums are added along a
/// tree that depends on the number of instances only, so that the result has the same bits for every partition of the
/// instances and every order of arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics(pub(crate) Forest<Totals>);

/// Sums over all instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Totals {
    /// `S_v = Σ_j w_vj v_j v_jᵀ`, K × K, for each view.
    pub gram: Vec<Matrix>,
    /// `C_v = Σ_j w_vj x_vj v_jᵀ`, d × K, for each view.
    pub cross: Vec<Matrix>,
    /// `Σ_j v_jk` for each k.
    pub column_sums: Vec<f64>,
    /// For each view, the sum over missing cells of the squared values that fill them in C: `(u_fᵀv_j)²` with the basis
    /// of the sweep or, before there is one, the mean of the feature. It corrects the loss to that of the observed
    /// cells.
    pub holes: Vec<f64>,
}

impl Merge for Totals {
    fn merge(&mut self, right: Self) {
        fn add(into: &mut [f64], from: &[f64]) {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        }
        for (own, right) in
            self.gram.iter_mut().zip(&right.gram).chain(self.cross.iter_mut().zip(&right.cross))
        {
            add(own.values_mut(), right.values());
        }
        add(&mut self.column_sums, &right.column_sums);
        add(&mut self.holes, &right.holes);
    }
}

impl Totals {
    /// S and C of each view, and the column sums of V, for rows without missing cells.
    #[must_use]
    pub fn new(gram: Vec<Matrix>, cross: Vec<Matrix>, column_sums: Vec<f64>) -> Self {
        let holes = vec![0.0; gram.len()];
        Self { gram, cross, column_sums, holes }
    }

    /// Adds the sums over other instances. For shards that add up their parts in an order of their own.
    ///
    /// # Panics
    /// If the views or the numbers of columns of V differ.
    pub fn add(&mut self, others: &Self) {
        assert_eq!(self.shape(), others.shape(), "totals of the same views");
        self.merge(others.clone());
    }

    /// The sizes of all matrices, of the column sums, and of the sums over missing cells.
    fn shape(&self) -> (Vec<(usize, usize)>, [usize; 3]) {
        let matrices = self.gram.iter().chain(&self.cross).map(|matrix| (matrix.rows(), matrix.columns()));
        (matrices.collect(), [self.gram.len(), self.column_sums.len(), self.holes.len()])
    }

    /// Fails unless the shapes match a V with `latent` columns.
    pub fn check(&self, latent: usize) -> Result<()> {
        let fits = self.gram.len() == self.cross.len()
            && self.gram.iter().all(|gram| (gram.rows(), gram.columns()) == (latent, latent))
            && self.cross.iter().all(|cross| cross.columns() == latent)
            && self.column_sums.len() == latent
            && self.holes.len() == self.gram.len();
        if fits { Ok(()) } else { Err(unfit("the matrices do not match the views and the columns of V")) }
    }
}

impl Partial for Statistics {
    fn merge(self, other: Self) -> Result<Self> {
        Self::merge(self, other)
    }
}

impl Statistics {
    /// The share of one of the [`leaves`](crate::leaves) of `total` instances.
    ///
    /// # Errors
    /// When the range is not a leaf.
    pub fn of_leaf(leaf: &Range<usize>, total: usize, totals: Totals) -> Result<Self> {
        let blocks = Blocks::some(leaf.clone(), total).filter(|blocks| blocks.leaf_ranges().count() == 1);
        let Some(blocks) = blocks else { return Err(unfit("the instances are not one of the leaves")) };
        let mut forest = Forest::new(blocks.leaves());
        forest.plant(0, blocks.first_leaf(), totals);
        Ok(Self(forest))
    }

    /// The sums over all instances, for a shard that adds them up in an order of its own. They cannot be merged with others.
    #[must_use]
    pub fn of_all(totals: Totals) -> Self {
        let mut forest = Forest::new(1);
        forest.plant(0, 0, totals);
        Self(forest)
    }

    /// Merges the statistics of disjoint sets of instances.
    ///
    /// # Errors
    /// When the instances or views do not match, or an instance is counted twice.
    pub fn merge(mut self, other: Self) -> Result<Self> {
        if !self.alike(&other) {
            return Err(unfit("the shares have different views or columns of V"));
        }
        if self.0.absorb(other.0) {
            Ok(self)
        } else {
            Err(unfit("the shares overlap or belong to different data"))
        }
    }

    /// Whether all sums of both have the same shapes.
    fn alike(&self, other: &Self) -> bool {
        let mut all = self.0.roots().chain(other.0.roots()).map(|(.., totals)| totals.shape());
        let first = all.next();
        all.all(|shape| Some(shape) == first)
    }

    /// The sums over all instances.
    ///
    /// # Errors
    /// When the share of some instances has not been merged.
    pub fn whole(self) -> Result<Totals> {
        self.0.whole().ok_or_else(|| unfit("the share of some instances has not been merged"))
    }

    /// Serialises the statistics (in the safetensors format).
    ///
    /// # Panics
    /// Never: names and shapes are generated here.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let mut tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
        for (height, number, totals) in self.0.roots() {
            let at = format!("{height}/{number}");
            for (kind, values) in [("sums", &totals.column_sums), ("holes", &totals.holes)] {
                tensors.insert(format!("{at}/{kind}"), (vec![values.len()], bytes(values)));
            }
            for (kind, matrices) in [("gram", &totals.gram), ("cross", &totals.cross)] {
                for (view, matrix) in matrices.iter().enumerate() {
                    let shape = vec![matrix.rows(), matrix.columns()];
                    tensors.insert(format!("{at}/{kind}/{view}"), (shape, bytes(matrix.values())));
                }
            }
        }
        let views = tensors.iter().map(|(name, (shape, bytes))| {
            let view =
                TensorView::new(Dtype::F64, shape.clone(), bytes).expect("as many bytes as the shape says");
            (name.clone(), view)
        });
        let about = HashMap::from([("leaves".to_string(), self.0.leaves().to_string())]);
        safetensors::serialize(views, Some(about)).expect("names and shapes are sound")
    }

    /// Reads the bytes of [`Statistics::to_bytes`].
    ///
    /// # Errors
    /// When the bytes are not valid statistics.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let broken = |_| unfit("the bytes are not valid statistics");
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let leaves = header.metadata().as_ref().and_then(|about| about.get("leaves")?.parse().ok());
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let none = || unfit("the bytes are not valid statistics");
        let mut all: BTreeMap<(u32, usize), BTreeMap<String, Matrix>> = BTreeMap::new();
        for (name, tensor) in file.iter() {
            let mut parts = name.splitn(3, '/');
            let height = parts
                .next()
                .and_then(|part| part.parse().ok())
                .filter(|height| *height < 32)
                .ok_or_else(none)?;
            let number = parts.next().and_then(|part| part.parse().ok()).ok_or_else(none)?;
            let values =
                tensor.data().as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect();
            let (rows, columns) = match *tensor.shape() {
                [columns] => (1, columns),
                [rows, columns] => (rows, columns),
                _ => return Err(none()),
            };
            if tensor.dtype() != Dtype::F64 {
                return Err(none());
            }
            let matrix = Matrix::new(rows, columns, values)?;
            all.entry((height, number))
                .or_default()
                .insert(parts.next().ok_or_else(none)?.to_string(), matrix);
        }
        let mut forest = Forest::new(leaves.ok_or_else(none)?);
        for ((height, number), mut tensors) in all {
            let column_sums = tensors.remove("sums").ok_or_else(none)?.into_values();
            let mut of = |kind: &str| -> Vec<Matrix> {
                (0..).map_while(|view| tensors.remove(&format!("{kind}/{view}"))).collect()
            };
            let (gram, cross) = (of("gram"), of("cross"));
            let holes = tensors.remove("holes").map_or_else(|| vec![0.0; gram.len()], Matrix::into_values);
            if !forest.plant(height, number, Totals { gram, cross, column_sums, holes }) {
                return Err(none());
            }
        }
        let read = Self(forest);
        if read.alike(&read) { Ok(read) } else { Err(none()) }
    }
}

fn unfit(reason: &str) -> Error {
    Error::Unsuitable { what: "statistics", value: "a share".into(), reason: reason.into() }
}
