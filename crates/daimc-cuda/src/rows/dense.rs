//! Dense rows.

use daimc::Result;
use daimc::source::{Block, Rows as Given};

use super::{Basis, Source, threads};
use crate::Precision;
use crate::card::{Argument, Card, Memory, Value};
use crate::given::{self, Given as OnThisCard};
use crate::kernels;
use crate::latent::Latent;

/// A number of dense rows.
pub trait Real: Value {
    /// Bytes of a number, and numbers that are read together: rows begin at multiples of these.
    const TOGETHER: usize = 16 / size_of::<Self>();
    /// Features of a stage of the first product; half as many rows are in one of the second.
    const DEPTH: usize = 128 / size_of::<Self>();

    fn rows<'a>(given: &Given<'a>) -> &'a [Self];
    fn module(precision: Precision) -> (&'static str, usize);
}

impl Real for f32 {
    fn rows<'a>(given: &Given<'a>) -> &'a [Self] {
        if let Given::DenseF32(values) = given { values } else { &[] }
    }

    fn module(precision: Precision) -> (&'static str, usize) {
        match precision {
            Precision::Single => ("products_f32", 2),
            Precision::Tf32 => ("products_tf32", 1),
        }
    }
}

impl Real for f64 {
    fn rows<'a>(given: &Given<'a>) -> &'a [Self] {
        if let Given::DenseF64(values) = given { values } else { &[] }
    }

    fn module(_: Precision) -> (&'static str, usize) {
        ("products_f64", 1)
    }
}

/// Dense rows, one after the other.
pub struct Dense<T> {
    pub values: Values<T>,
    rows: usize,
    features: usize,
    /// Numbers from a row to the next.
    pub stride: usize,
    precision: Precision,
}

/// Numbers on the card: in memory of our own, or where they were given, which the load keeps.
pub struct Values<T> {
    address: u64,
    _own: Option<Memory<T>>,
}

impl<T> Values<T> {
    fn own(memory: Memory<T>) -> Self {
        Self { address: memory.address(), _own: Some(memory) }
    }

    /// The address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The address, for kernels.
    pub fn at(&self) -> Argument {
        Argument::Pointer(self.address)
    }
}

/// Rows of V as the second product takes them.
pub struct Packed<T>(pub Memory<T>);

/// Bytes of rows on their way at a time.
const STAGE: usize = 64 << 20;

/// Rows that one block of the first product takes, and features of the second.
const ROWS: usize = 128;
const FEATURES: usize = 256;
/// Stages of the first product and of the second.
const STAGES: usize = 3;
const DEEP: usize = 4;

/// Rows of a part of the second product, at most, and its parts if there are fewer rows.
const PART: usize = 8192;
const PARTS: usize = 1056;
/// Parts that can be numbered.
const MOST_PARTS: usize = 65_535;

impl<T: Real> Dense<T> {
    pub fn new(source: &Source<'_>, precision: Precision) -> Result<Self> {
        let features = source.scaled.features();
        let stride = features.next_multiple_of(T::TOGETHER);
        let values = match OnThisCard::new(source.card, source.load, source.view) {
            Some(given) if given.len() == source.count => Self::given(source, &given, stride)?,
            _ => Values::own(Self::carried(source, stride)?),
        };
        Ok(Self { values, rows: source.count, features, stride, precision })
    }

    /// Rows that lie on the card: where they are, or a copy if they are to be scaled or do not lie as they are needed.
    fn given(source: &Source<'_>, given: &OnThisCard, stride: usize) -> Result<Values<T>> {
        let (card, scaled) = (source.card, source.scaled);
        let features = scaled.features();
        let place = given.in_place(source.count, features, size_of::<T>());
        if let Some(address) = place.filter(|_| !source.scale) {
            return Ok(Values { address, _own: None });
        }
        let scale = source.scale.then(|| (scaled.store_terms(), |instance| scaled.store_factor(instance)));
        given.copy(card, features, stride, scale).map(Values::own)
    }

    /// Rows that are elsewhere.
    fn carried(source: &Source<'_>, stride: usize) -> Result<Memory<T>> {
        let card = source.card;
        let mut values = card.room::<T>(source.count * stride)?;
        let length = (STAGE / size_of::<T>()).max(stride);
        let mut stages = card.stages::<T>(length)?;
        // Rows that are to be scaled stop here on their way.
        let mut brought = card.room::<T>(if source.scale { length } else { 0 })?;
        let terms = source.scaled.store_terms();
        let mut done = 0;
        let mut turn = 0;
        source.each(STAGE - STAGE / 8, |range, block| {
            let present: Vec<(usize, usize)> = range
                .clone()
                .filter_map(|instance| Some((instance, block.index.row(instance - range.start)?)))
                .collect();
            for some in present.chunks((STAGE / size_of::<T>() / stride).max(1)) {
                let stage = &mut stages[turn];
                fill(source.scaled.features(), block, some, stride, stage.values(card)?);
                if source.scale {
                    card.send(stage, some.len() * stride, &mut brought, 0)?;
                    let factors = some.iter().map(|at| source.scaled.store_factor(at.0)).collect();
                    let (shape, to) = ((source.scaled.features(), stride), values.from(done * stride));
                    given::scale(card, &brought, shape, (terms.clone(), factors), to)?;
                } else {
                    card.send(stage, some.len() * stride, &mut values, done * stride)?;
                }
                done += some.len();
                turn = 1 - turn;
            }
            Ok(())
        })?;
        card.wait()?;
        card.keep(stages);
        Ok(values)
    }

    /// Parts of a number that are multiplied.
    pub fn parts(&self) -> usize {
        T::module(self.precision).1
    }

    pub fn project(
        &self,
        card: &Card,
        basis: &Basis,
        instances: Argument,
        right: &Memory<f64>,
        add: bool,
    ) -> Result<()> {
        let (tiles, groups) = kernels::tiles(basis.latent);
        let (module, parts) = T::module(self.precision);
        let module = format!("{module}_{tiles}");
        let size = self.features.next_multiple_of(T::DEPTH) * tiles * kernels::TILE;
        let laid_out = card.room::<T>(groups * size * parts)?;
        let arguments = [
            basis.values.at(),
            Argument::int(self.features),
            Argument::int(basis.latent),
            Argument::int(size),
            laid_out.at(),
        ];
        card.launch(
            &card.kernel(&module, "lay_out", 0)?,
            (size.div_ceil(256), groups, 1),
            (256, 1),
            &arguments,
        )?;
        let kernel = card.kernel(&module, "project", project_bytes::<T>(tiles, parts))?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            instances,
            Argument::long(self.rows),
            Argument::int(self.features),
            laid_out.at(),
            basis.offset(),
            Argument::int(basis.latent),
            right.at(),
            Argument::int(add.into()),
        ];
        card.launch(&kernel, (self.rows.div_ceil(ROWS), groups, 1), (256, 1), &arguments)
    }

    pub fn gather(
        &self,
        card: &Card,
        v: &Latent<'_>,
        packed: &mut Option<Packed<T>>,
        instances: Argument,
        sums: Argument,
    ) -> Result<()> {
        let latent = v.columns;
        let (tiles, groups) = kernels::tiles(latent);
        let (module, parts) = T::module(self.precision);
        let module = format!("{module}_{tiles}");
        let width = tiles * kernels::TILE;
        if packed.is_none() {
            let own = card.room::<T>(v.instances * groups * width * parts)?;
            let kernel = card.kernel(&module, "pack", 0)?;
            let arguments = [v.v.at(), Argument::long(v.instances), Argument::int(latent), own.at()];
            card.launch(&kernel, ((v.instances * width).div_ceil(256), groups, 1), (256, 1), &arguments)?;
            *packed = Some(Packed(own));
        }
        let packed = packed.as_ref().map_or(Argument::NULL, |packed| packed.0.at());
        let rows = T::DEPTH / 2;
        let kernel = card.kernel(&module, "gather", gather_bytes::<T>(tiles, parts))?;
        let across = self.features.div_ceil(FEATURES);
        let count = self
            .rows
            .div_ceil(PART)
            .max((PARTS / (across * groups)).max(1))
            .min(self.rows.div_ceil(PART / 8))
            .clamp(1, MOST_PARTS);
        // A part of the instances may have no row here.
        let part = self.rows.div_ceil(count).next_multiple_of(rows).max(rows);
        let count = self.rows.div_ceil(part);
        let size = self.features * latent;
        let partial = card.room::<f64>(count * size)?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            instances,
            Argument::long(self.rows),
            Argument::int(self.features),
            packed,
            Argument::int(latent),
            Argument::long(part),
            partial.at(),
        ];
        card.launch(&kernel, (across, count, groups), (256, 1), &arguments)?;
        crate::sums::add_parts(card, &partial, size, count, sums)
    }
}

impl<T: Real> Dense<T> {
    /// Writes the rows as they are compared.
    #[allow(clippy::too_many_arguments)] // They are the arguments of a kernel.
    pub fn centre(
        &self,
        card: &Card,
        kernel: &str,
        mean: &Memory<f64>,
        factor: &Memory<f64>,
        width: usize,
        out: &Memory<f32>,
        squares: &Memory<f32>,
    ) -> Result<()> {
        let kernel = card.kernel("nearest", kernel, 0)?;
        let arguments = [
            self.values.at(),
            Argument::long(self.stride),
            Argument::long(self.rows),
            Argument::int(self.features),
            mean.at(),
            factor.at(),
            Argument::long(width),
            out.at(),
            squares.at(),
        ];
        card.launch(&kernel, (self.rows.div_ceil(8), 1, 1), (256, 1), &arguments)
    }
}

/// Bytes of shared memory of the two products.
fn project_bytes<T: Real>(tiles: usize, parts: usize) -> usize {
    STAGES * (ROWS * (T::DEPTH + 4) + T::DEPTH / 8 * tiles * 64 * parts) * size_of::<T>()
}

fn gather_bytes<T: Real>(tiles: usize, parts: usize) -> usize {
    let (width, wide) = (tiles * kernels::TILE, size_of::<T>() == 8);
    let weights = if parts == 2 || wide { width + 4 } else { width + if tiles % 2 == 1 { 0 } else { 8 } };
    DEEP * T::DEPTH / 2 * (FEATURES + if wide { 4 } else { 8 } + weights * parts) * size_of::<T>()
}

/// Writes rows one after the other, with zeros between them.
fn fill<T: Real>(features: usize, block: &Block<'_>, rows: &[(usize, usize)], stride: usize, to: &mut [T]) {
    let given = T::rows(&block.rows);
    let some = rows.len().div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        for (rows, to) in rows.chunks(some).zip(to.chunks_mut(some * stride)) {
            scope.spawn(move || {
                for (&(_, row), to) in rows.iter().zip(to.chunks_exact_mut(stride)) {
                    let (own, rest) = to.split_at_mut(features);
                    rest.fill(T::default());
                    own.copy_from_slice(&given[row * features..(row + 1) * features]);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_have_the_same_sizes() {
        let source = include_str!("../../kernels/products.cu");
        let constant = |name| kernels::constant(source, name);
        assert_eq!(constant("STAGES"), STAGES as f64);
        assert_eq!(constant("DEEP"), DEEP as f64);
        assert_eq!(16.0 * constant("WARPS"), ROWS as f64);
        assert_eq!(16.0 * constant("ACROSS") * constant("WARPS"), FEATURES as f64);
    }

    #[test]
    fn blocks_find_room_on_every_card() {
        for latent in 1..=kernels::MOST_COLUMNS {
            let (tiles, _) = kernels::tiles(latent);
            for precision in [Precision::Single, Precision::Tf32] {
                let (_, parts) = f32::module(precision);
                assert!(
                    project_bytes::<f32>(tiles, parts).max(gather_bytes::<f32>(tiles, parts))
                        <= kernels::LEAST_SHARED
                );
            }
            assert!(
                project_bytes::<f64>(tiles, 1).max(gather_bytes::<f64>(tiles, 1)) <= kernels::LEAST_SHARED
            );
        }
    }
}
