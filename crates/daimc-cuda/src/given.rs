//! Rows that lie on a card before a fit, because another library has put them there.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use daimc::accelerator::{Device, Load};
use daimc::source::{Buffer, DeviceRows, Index, ReadError, RowStore};
use daimc::{Layout, Result};

use crate::card::{Argument, Card, Memory, Value, card_of, maybe};

/// Dense rows in the memory of a card, which are read from there and taken where they are by a fit on that card: the rows of a
/// [`View::stored`](daimc::View::stored).
pub struct OnCard {
    card: Arc<Card>,
    address: u64,
    shape: (usize, usize),
    stride: usize,
    layout: Layout,
    /// What keeps the memory.
    _owner: Box<dyn Any + Send + Sync>,
}

impl OnCard {
    /// Rows that begin at an address, `stride` values from each to the next, in memory that `owner` keeps and nobody changes. Waits
    /// until all work on the card is done, so that they are there. They are only read: an address that is wrong is an error of the
    /// driver, or other numbers.
    ///
    /// # Errors
    /// A sentence that says why they cannot be read.
    pub fn new(
        address: u64,
        (rows, columns): (usize, usize),
        stride: usize,
        layout: Layout,
        owner: impl Any + Send + Sync,
    ) -> Result<Self, String> {
        let aligned = address.is_multiple_of(layout.bytes() as u64);
        if !layout.is_dense() || stride < columns || !aligned || i32::try_from(stride).is_err() {
            return Err(format!(
                "these are no dense rows: {layout:?} of {columns} columns at {address:#x}, {stride} values from each to the next"
            ));
        }
        let card = apart(|| {
            let card = kept(card_of(address)?)?;
            card.wait_for_all().map_err(|error| error.to_string())?;
            Ok::<_, String>(card)
        })?;
        Ok(Self { card, address, shape: (rows, columns), stride, layout, _owner: Box::new(owner) })
    }

    /// The number of the card.
    pub fn card(&self) -> usize {
        self.card.number
    }

    /// How many values of each row are missing: NaN.
    ///
    /// # Errors
    /// When the card fails.
    pub fn missing(&self) -> Result<Vec<u32>> {
        self.count(false)
    }

    /// How many values of each row are infinite.
    ///
    /// # Errors
    /// When the card fails.
    pub fn infinite(&self) -> Result<Vec<u32>> {
        self.count(true)
    }

    fn count(&self, infinite: bool) -> Result<Vec<u32>> {
        apart(|| {
            let (rows, columns) = self.shape;
            let out = self.card.room::<u32>(rows)?;
            let kernel = self.card.kernel("given", &named("count", self.layout.bytes()), 0)?;
            let arguments = [
                Argument::Pointer(self.address),
                Argument::long(self.stride),
                Argument::long(rows),
                Argument::int(columns),
                Argument::int(infinite.into()),
                out.at(),
            ];
            self.card.launch(&kernel, (rows.div_ceil(WARPS), 1, 1), (256, 1), &arguments)?;
            self.card.read(&out)
        })
    }

    fn read_as<T: Value>(&self, rows: Range<usize>, values: &mut Vec<T>) -> Result<()> {
        let columns = self.shape.1;
        let from = self.address + (rows.start * self.stride * size_of::<T>()) as u64;
        if self.stride > columns {
            *values =
                self.card.read(&take(&self.card, &Taken::of(from, self.stride, rows.len(), columns))?)?;
            return Ok(());
        }
        values.resize(rows.len() * columns, T::default());
        self.card.fetch(from, values)
    }

    fn pick_as<T: Value>(&self, rows: &[u32], values: &mut Vec<T>) -> Result<()> {
        let columns = self.shape.1;
        let taken = Taken { rows: Some(rows), ..Taken::of(self.address, self.stride, rows.len(), columns) };
        *values = self.card.read(&take(&self.card, &taken)?)?;
        Ok(())
    }
}

impl RowStore for OnCard {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        match self.layout {
            Layout::DenseF32 => self.read_as(rows, &mut buffer.f32)?,
            _ => self.read_as(rows, &mut buffer.f64)?,
        }
        Ok(())
    }

    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        match self.layout {
            Layout::DenseF32 => self.pick_as(rows, &mut buffer.f32)?,
            _ => self.pick_as(rows, &mut buffer.f64)?,
        }
        Ok(())
    }

    fn device_rows(&self) -> Option<DeviceRows> {
        let device = Device::Cuda(vec![self.card.number]);
        Some(DeviceRows { device, address: self.address, rows: self.shape.0, stride: self.stride })
    }
}

/// A copy of the bytes from an address on in the memory of a card, which somebody else holds, once all work on it is done.
///
/// # Errors
/// A sentence that says why they cannot be read.
pub fn fetch(address: u64, length: usize) -> Result<Vec<u8>, String> {
    apart(|| {
        let card = kept(card_of(address)?)?;
        let mut bytes = vec![0; length];
        card.wait_for_all()
            .and_then(|()| card.fetch(address, &mut bytes))
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    })
}

/// Cards on which other libraries have put rows, by number. These keep them open, so we may as well.
static KEPT: Mutex<BTreeMap<usize, Arc<Card>>> = Mutex::new(BTreeMap::new());

/// A card that is kept, or will be.
fn kept(number: usize) -> Result<Arc<Card>, String> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(card) = kept.get(&number) {
        return Ok(card.clone());
    }
    let card = Arc::new(Card::open(number)?);
    kept.insert(number, card.clone());
    Ok(card)
}

/// A card, which is opened unless it is kept.
pub(crate) fn opened(number: usize) -> Result<Arc<Card>, String> {
    let known = KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
    known.map_or_else(|| Card::open(number).map(Arc::new), Ok)
}

/// Works on a thread apart: a card becomes the current one of the thread that calls the driver, and which card is that of the
/// caller is for other libraries to say.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Rows that a block of the kernels takes.
const WARPS: usize = 8;

/// The name of a kernel for numbers of so many bytes.
fn named(kernel: &str, bytes: usize) -> String {
    format!("{kernel}_{}", if bytes == 4 { "f32" } else { "f64" })
}

/// Rows to be copied on their card.
pub struct Taken<'a> {
    from: u64,
    /// Values from a row to the next.
    stride: usize,
    /// Which rows; `None`: all from the first on.
    rows: Option<&'a [u32]>,
    count: usize,
    features: usize,
    /// Values from a row of the copy to the next; those behind the features are zero.
    to_stride: usize,
    /// The terms of each feature and the factor of each row, if rows are scaled.
    scale: Option<(Vec<[f64; 3]>, Vec<f64>)>,
}

impl Taken<'_> {
    /// So many rows, without a gap between them.
    fn of(from: u64, stride: usize, count: usize, features: usize) -> Self {
        Self { from, stride, rows: None, count, features, to_stride: features, scale: None }
    }
}

/// Copies rows on their card.
pub fn take<T: Value>(card: &Card, taken: &Taken<'_>) -> Result<Memory<T>> {
    let to = card.room::<T>(taken.count * taken.to_stride)?;
    take_to::<T>(card, taken, to.at())?;
    Ok(to)
}

/// The same to where there is room for them.
fn take_to<T: Value>(card: &Card, taken: &Taken<'_>, to: Argument) -> Result<()> {
    let rows = taken.rows.map(|rows| card.copy(rows)).transpose()?;
    let (terms, factors) = match &taken.scale {
        Some((terms, factors)) => (Some(card.copy(terms.as_flattened())?), Some(card.copy(factors)?)),
        None => (None, None),
    };
    let kernel = card.kernel("given", &named("take", size_of::<T>()), 0)?;
    let arguments = [
        Argument::Pointer(taken.from),
        Argument::long(taken.stride),
        maybe(rows.as_ref()),
        Argument::long(taken.count),
        Argument::int(taken.features),
        maybe(terms.as_ref()),
        maybe(factors.as_ref()),
        to,
        Argument::int(taken.to_stride),
    ];
    card.launch(&kernel, (taken.count.div_ceil(WARPS), 1, 1), (256, 1), &arguments)
}

/// Scales rows that were brought to the card, with the terms of each feature and the factor of each row, to where they are to lie.
pub fn scale<T: Value>(
    card: &Card,
    brought: &Memory<T>,
    (features, stride): (usize, usize),
    (terms, factors): (Vec<[f64; 3]>, Vec<f64>),
    to: Argument,
) -> Result<()> {
    let whole = Taken::of(brought.address(), stride, factors.len(), features);
    take_to::<T>(card, &Taken { to_stride: stride, scale: Some((terms, factors)), ..whole }, to)
}

/// The rows of a view that lie on this card.
pub struct Given {
    there: DeviceRows,
    /// The instances that the view shows.
    instances: Vec<usize>,
    /// The row of each of them.
    rows: Vec<u32>,
}

impl Given {
    /// Those of a view, if they lie on this card.
    pub fn new(card: &Card, load: &Load<'_>, view: usize) -> Option<Self> {
        let (there, index) = load.device_rows(view)?;
        let here = there.device == Device::Cuda(vec![card.number]);
        Self::shown(there, index, load, view).filter(|_| here)
    }

    fn shown(there: DeviceRows, index: Index<'_>, load: &Load<'_>, view: usize) -> Option<Self> {
        if !load.schema().view(view).layout().is_dense() {
            return None;
        }
        let instances: Vec<usize> = (0..load.instances()).filter(|&i| load.shows(view, i)).collect();
        let row = |&i: &usize| u32::try_from(index.row(i).filter(|&row| row < there.rows)?).ok();
        let rows: Vec<u32> = instances.iter().map(row).collect::<Option<_>>()?;
        Some(Self { there, instances, rows })
    }

    /// Where they can be used as they lie, so many rows of numbers of so many bytes: one after the other with nothing between them,
    /// each at a multiple of 16 bytes.
    pub fn in_place(&self, count: usize, features: usize, bytes: usize) -> Option<u64> {
        let DeviceRows { address, stride, .. } = self.there;
        let first = self.rows.first().copied()?;
        let in_order = self.rows.len() == count && self.rows.iter().zip(first..).all(|(row, i)| *row == i);
        let address = address + u64::from(first) * (stride * bytes) as u64;
        let aligned = address.is_multiple_of(16) && (stride * bytes).is_multiple_of(16) && stride == features;
        (in_order && aligned).then_some(address)
    }

    /// A copy of them, scaled if `scale` tells the terms of each feature and the factor of an instance.
    pub fn copy<T: Value>(
        &self,
        card: &Card,
        features: usize,
        to_stride: usize,
        scale: Option<(Vec<[f64; 3]>, impl Fn(usize) -> f64)>,
    ) -> Result<Memory<T>> {
        let scale = scale.map(|(terms, factor)| (terms, self.instances.iter().map(|&i| factor(i)).collect()));
        let rows = Some(&self.rows[..]);
        let whole = Taken::of(self.there.address, self.there.stride, self.rows.len(), features);
        take(card, &Taken { rows, to_stride, scale, ..whole })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use daimc::{Daimc, Neighbours, Scale, View, Views};

    use super::*;

    /// Rows of 4 values that tell a place.
    struct Lent(DeviceRows);

    impl RowStore for Lent {
        fn shape(&self) -> (usize, usize) {
            (self.0.rows, 4)
        }

        fn layout(&self) -> Layout {
            Layout::DenseF32
        }

        fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
            let rows: Vec<u32> = rows.map(|row| row as u32).collect();
            self.pick(&rows, buffer)
        }

        fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
            buffer.f32.clear();
            rows.iter().for_each(|row| buffer.f32.extend((0..4).map(|f| (row % 3 * 2 + f) as f32)));
            Ok(())
        }

        fn device_rows(&self) -> Option<DeviceRows> {
            Some(self.0.clone())
        }
    }

    /// What a load of 60 such rows gives, of which some are there.
    fn given(there: DeviceRows, shown: impl Fn(usize) -> bool) -> Option<Given> {
        given_of(there, shown, 0..60)
    }

    /// The same of some of the instances.
    fn given_of(there: DeviceRows, shown: impl Fn(usize) -> bool, some: Range<usize>) -> Option<Given> {
        let present: Vec<bool> = (0..60).map(shown).collect();
        let lent = View::stored("lent", Arc::new(Lent(there)) as Arc<dyn RowStore>).unwrap();
        let views =
            vec![lent.mask(&present).unwrap().holes(0), View::dense("own", 1, vec![1.0; 60]).unwrap()];
        let views = Views::new(views).unwrap();
        let fit = Daimc::new(2).scale(Scale::None).neighbours(Neighbours::Off).assess(false);
        let model = fit.fit(&views).unwrap().model;
        let scalings: Vec<_> = model.views.into_iter().map(|view| view.scaling).collect();
        let load = Load::new(&views, &scalings, 2).unwrap().some(some);
        assert!(load.device_rows(1).is_none());
        let (there, index) = load.device_rows(0)?;
        Given::shown(there, index, &load, 0)
    }

    #[test]
    fn rows_stay_where_kernels_can_read_them() {
        let there = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let place = |there: DeviceRows, shown: fn(usize) -> bool| {
            let given = given(there, shown).unwrap();
            given.in_place(given.len(), 4, 4)
        };
        assert_eq!(place(there.clone(), |_| true), Some(4096));
        assert_eq!(place(DeviceRows { address: 4100, ..there.clone() }, |_| true), None);
        // What is behind a row is not zero.
        assert_eq!(place(DeviceRows { stride: 8, ..there.clone() }, |_| true), None);
        assert_eq!(place(there.clone(), |i| i != 7), None);
        assert_eq!(place(there.clone(), |i| i < 59), Some(4096));
        assert_eq!(place(there.clone(), |i| i > 1), Some(4096 + 2 * 16));
        let whole = given(there, |_| true).unwrap();
        assert_eq!((whole.in_place(60, 3, 4), whole.in_place(59, 4, 4)), (None, None));
    }

    #[test]
    fn rows_are_those_of_the_instances_that_are_there() {
        let there = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let some = given(there, |i| i % 4 != 1).unwrap();
        assert_eq!(some.len(), 45);
        assert!(some.instances.iter().zip(&some.rows).all(|(&i, &row)| i % 4 != 1 && row as usize == i));
    }

    #[test]
    fn a_part_of_the_instances_has_its_own_rows() {
        let there = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let whole = given_of(there.clone(), |_| true, 20..50).unwrap();
        assert_eq!((whole.len(), whole.in_place(30, 4, 4)), (30, Some(4096 + 20 * 16)));
        let some = given_of(there, |i| i % 4 != 1, 20..50).unwrap();
        assert!(some.instances.iter().zip(&some.rows).all(|(&i, &row)| row as usize == i + 20));
        assert!(some.len() < 30 && some.rows.iter().all(|row| row % 4 != 1));
    }

    #[test]
    fn what_is_not_rows_on_a_card_is_refused() {
        for (address, stride, layout) in
            [(4096, 3, Layout::DenseF32), (4098, 4, Layout::DenseF32), (4096, 4, Layout::SparseF32)]
        {
            let refused = OnCard::new(address, (60, 4), stride, layout, ()).err().unwrap();
            assert!(refused.starts_with("these are no dense rows"), "{refused}");
        }
        assert!(OnCard::new(8, (60, 4), 4, Layout::DenseF32, ()).is_err());
    }
}
