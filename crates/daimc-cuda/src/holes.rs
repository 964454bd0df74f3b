//! Rows that lack cells.

use daimc::accelerator::Load;
use daimc::source::Buffer;
use daimc::{Matrix, Result};

use crate::card::{Argument, Card, Memory, maybe};
use crate::latent::Latent;

/// The missing cells of all views. Features of the views that lack cells are numbered one after the other.
pub struct Holes {
    /// The first number of each view that lacks cells.
    firsts: Vec<Option<usize>>,
    /// The same on the card, with the end of each.
    views: Memory<i32>,
    features: usize,
    /// Which views the instances of each presence pattern are seen in.
    shown: Memory<i32>,
    /// The instances that lack cells, where their cells begin, and the feature and what stands there of each.
    instances: Memory<i32>,
    offsets: Memory<i64>,
    cells: Memory<i32>,
    stored: Memory<f64>,
    by_feature: ByFeature,
    /// For each view the sum of the squares of what stands in its missing cells.
    squares: Vec<f64>,
}

/// The cells by feature: where stretches begin, the feature of each, the first of each feature, and of each cell the row (among those
/// that lack any) and what stands there.
struct ByFeature {
    stretches: Memory<i64>,
    stretch_features: Memory<i32>,
    firsts: Memory<i32>,
    rows: Memory<i32>,
    stored: Memory<f64>,
}

/// A missing cell.
#[derive(Clone, Copy)]
struct Cell {
    instance: i32,
    feature: i32,
    stored: f64,
}

/// Cells that are added up at a time, instances that are read at a time, and bytes of Gram matrices of single rows, at most.
const STRETCH: usize = 512;
const READ: usize = 16_384;
const ROOM: usize = 256 << 20;
const MOST_WARPS: usize = 8448;

impl Holes {
    /// The missing cells; `None` if there are none.
    pub fn new(card: &Card, load: &Load<'_>) -> Result<Option<Self>> {
        let schema = load.schema();
        let (mut features, mut firsts, mut ends) = (0, Vec::new(), Vec::new());
        let (mut cells, mut squares) = (Vec::new(), vec![0.0; schema.len()]);
        for (view, square) in squares.iter_mut().enumerate() {
            let scaled = load.view(view);
            if !scaled.lacks_cells() {
                firsts.push(None);
                ends.extend([-1, -1]);
                continue;
            }
            let mut buffer = Buffer::default();
            for start in (0..load.instances()).step_by(READ) {
                load.stop().check()?;
                let range = start..(start + READ).min(load.instances());
                let block = load.read(view, range.clone(), &mut buffer)?;
                for instance in range.clone() {
                    let Some(row) = block.index.row(instance - range.start) else { continue };
                    for (feature, stored) in scaled.missing_cells(&block, (instance, row)) {
                        let (instance, feature) = (instance as i32, features as i32 + feature as i32);
                        cells.push(Cell { instance, feature, stored });
                        *square += stored * stored;
                    }
                }
            }
            firsts.push(Some(features));
            ends.extend([features as i32, (features + scaled.features()) as i32]);
            features += scaled.features();
        }
        if cells.is_empty() {
            return Ok(None);
        }
        cells.sort_by_key(|cell| (cell.instance, cell.feature));
        let shown = load.patterns().flat_map(|views| {
            let mut shown = vec![0; schema.len()];
            views.iter().for_each(|&view| shown[view] = 1);
            shown
        });
        let shown: Vec<i32> = shown.collect();
        let (mut instances, mut offsets, mut rows) =
            (Vec::new(), Vec::new(), Vec::with_capacity(cells.len()));
        for (at, cell) in cells.iter().enumerate() {
            if instances.last() != Some(&cell.instance) {
                instances.push(cell.instance);
                offsets.push(at as i64);
            }
            rows.push(instances.len() as i32 - 1);
        }
        offsets.push(cells.len() as i64);
        Ok(Some(Self {
            firsts,
            views: card.copy(&ends)?,
            features,
            shown: card.copy(&shown)?,
            instances: card.copy(&instances)?,
            offsets: card.copy(&offsets)?,
            cells: card.copy(&cells.iter().map(|cell| cell.feature).collect::<Vec<_>>())?,
            stored: card.copy(&cells.iter().map(|cell| cell.stored).collect::<Vec<_>>())?,
            by_feature: ByFeature::new(card, &cells, &rows, features)?,
            squares,
        }))
    }

    /// The bases of the views that lack cells, on the card.
    pub fn bases(&self, card: &Card, bases: &[Matrix]) -> Result<Memory<f64>> {
        let lacking = bases.iter().zip(&self.firsts).filter(|(_, first)| first.is_some());
        let all: Vec<f64> = lacking.flat_map(|(basis, _)| basis.values()).copied().collect();
        card.copy(&all)
    }

    /// Adds to r `made` times what the model makes of missing cells, and takes away `stood` times what stands there.
    pub fn pull(
        &self,
        card: &Card,
        bases: &Memory<f64>,
        (v, scale): (&Latent<'_>, &[f64]),
        (made, stood): (f64, f64),
        right: &Memory<f64>,
    ) -> Result<()> {
        let scale = card.copy(scale)?;
        let kernel = card.kernel("holes", &format!("pull_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cells.at(),
            self.stored.at(),
            bases.at(),
            v.v.at(),
            scale.at(),
            Argument::int(v.columns),
            Argument::Double(made),
            Argument::Double(stood),
            right.at(),
        ];
        card.launch(&kernel, (self.instances.len().div_ceil(4), 1, 1), (128, 1), &arguments)
    }

    /// Makes the rows that lack cells optimal for the cells that are there.
    #[allow(clippy::too_many_arguments)] // They are the arguments of a kernel.
    pub fn settle(
        &self,
        card: &Card,
        bases: &Memory<f64>,
        view_grams: &[f64],
        patterns: Option<&Memory<i32>>,
        (passes, tolerance, relaxation): (usize, f64, f64),
        right: &Memory<f64>,
        v: &Latent<'_>,
    ) -> Result<()> {
        let size = v.columns * v.columns;
        let warps = (ROOM / (8 * size)).clamp(4, MOST_WARPS).min(self.instances.len().next_multiple_of(4));
        let blocks = warps / 4;
        let room = card.room::<f64>(blocks * 4 * size)?;
        let view_grams = card.copy(view_grams)?;
        let kernel = card.kernel("holes", &format!("settle_{}", chunks(v.columns)), 0)?;
        let arguments = [
            self.instances.at(),
            self.offsets.at(),
            Argument::long(self.instances.len()),
            self.cells.at(),
            bases.at(),
            view_grams.at(),
            self.views.at(),
            Argument::int(self.firsts.len()),
            self.shown.at(),
            maybe(patterns),
            right.at(),
            Argument::int(v.columns),
            Argument::int(passes),
            Argument::Double(tolerance),
            Argument::Double(relaxation),
            room.at(),
            v.v.at(),
        ];
        card.launch(&kernel, (blocks, 1, 1), (128, 1), &arguments)
    }

    /// Adds what missing cells contribute to C of each view, and returns for each view the sum of the squares of what the model makes
    /// of them; without bases they stay as they are.
    pub fn push(
        &self,
        card: &Card,
        bases: Option<&Memory<f64>>,
        v: &Latent<'_>,
        cross: &mut [Matrix],
    ) -> Result<Vec<f64>> {
        let Some(bases) = bases else { return Ok(self.squares.clone()) };
        let (own, width) = (&self.by_feature, v.columns + 1);
        let count = own.stretches.len() - 1;
        let partial = card.room::<f64>(count * width)?;
        let kernel = card.kernel("holes", &format!("push_{}", chunks(v.columns)), 0)?;
        let arguments = [
            own.stretches.at(),
            Argument::long(count),
            own.stretch_features.at(),
            self.instances.at(),
            own.rows.at(),
            own.stored.at(),
            bases.at(),
            v.v.at(),
            Argument::int(v.columns),
            partial.at(),
        ];
        card.launch(&kernel, (count.div_ceil(4), 1, 1), (128, 1), &arguments)?;
        let out = card.room::<f64>(self.features * width)?;
        let kernel = card.kernel("sums", "add_stretches", 0)?;
        let arguments =
            [partial.at(), own.firsts.at(), Argument::int(self.features), Argument::int(width), out.at()];
        card.launch(&kernel, ((self.features * width).div_ceil(256), 1, 1), (256, 1), &arguments)?;
        let sums = card.read(&out)?;
        let squares = self.firsts.iter().zip(cross).map(|(first, cross)| {
            let Some(first) = *first else { return 0.0 };
            let mut square = 0.0;
            for (f, sums) in sums.chunks_exact(width).skip(first).take(cross.rows()).enumerate() {
                cross.row_mut(f).iter_mut().zip(sums).for_each(|(cross, sum)| *cross += sum);
                square += sums[width - 1];
            }
            square
        });
        Ok(squares.collect())
    }
}

impl ByFeature {
    fn new(card: &Card, cells: &[Cell], rows: &[i32], features: usize) -> Result<Self> {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&i| (cells[i].feature, i));
        let (mut stretches, mut stretch_features, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        for feature in 0..features as i32 {
            firsts.push(stretches.len() as i32);
            let end = at + order[at..].iter().take_while(|&&i| cells[i].feature == feature).count();
            for start in (at..end).step_by(STRETCH) {
                stretches.push(start as i64);
                stretch_features.push(feature);
            }
            at = end;
        }
        firsts.push(stretches.len() as i32);
        stretches.push(cells.len() as i64);
        Ok(Self {
            stretches: card.copy(&stretches)?,
            stretch_features: card.copy(&stretch_features)?,
            firsts: card.copy(&firsts)?,
            rows: card.copy(&order.iter().map(|&i| rows[i]).collect::<Vec<_>>())?,
            stored: card.copy(&order.iter().map(|&i| cells[i].stored).collect::<Vec<_>>())?,
        })
    }
}

/// Kernels take up to 32 columns of V, or up to 256.
fn chunks(latent: usize) -> usize {
    if latent <= 32 { 1 } else { 8 }
}
