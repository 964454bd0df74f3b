//! Data that another library has stored in GPU memory.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use daimc::accelerator::{Device, Load};
use daimc::source::{Buffer, DeviceRows, Index, ReadError, RowStore};
use daimc::{Layout, Result};

use crate::gpu::{Argument, Gpu, Memory, Value, gpu_of, maybe};

/// Dense rows in GPU memory, for a [`View::stored`](daimc::View::stored). A fit on the same GPU uses them in place where it can.
pub struct GpuRows {
    gpu: Arc<Gpu>,
    address: u64,
    shape: (usize, usize),
    stride: usize,
    layout: Layout,
    /// Keeps the memory alive.
    _owner: Box<dyn Any + Send + Sync>,
}

impl GpuRows {
    /// Wraps rows at an address; `stride` is the number of values from one row to the next. `owner` keeps the memory alive, and its
    /// contents must not change. Waits for all work on the GPU, so that pending writes to the rows are complete. The rows are only
    /// read: reading from a wrong address returns an error of the driver, or other numbers.
    ///
    /// # Errors
    /// The reason, in one sentence, if the rows cannot be read.
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
                "not dense rows: {layout:?} of {columns} columns at {address:#x} with a stride of {stride} values"
            ));
        }
        let gpu = on_own_thread(|| {
            let gpu = shared(gpu_of(address)?)?;
            gpu.wait_for_all().map_err(|error| error.to_string())?;
            Ok::<_, String>(gpu)
        })?;
        Ok(Self { gpu, address, shape: (rows, columns), stride, layout, _owner: Box::new(owner) })
    }

    /// The number of the GPU.
    pub fn gpu(&self) -> usize {
        self.gpu.number
    }

    /// The number of missing values (NaN) in each row.
    ///
    /// # Errors
    /// An error of the GPU.
    pub fn missing(&self) -> Result<Vec<u32>> {
        self.count(false)
    }

    /// The number of infinite values in each row.
    ///
    /// # Errors
    /// An error of the GPU.
    pub fn infinite(&self) -> Result<Vec<u32>> {
        self.count(true)
    }

    fn count(&self, infinite: bool) -> Result<Vec<u32>> {
        on_own_thread(|| {
            let (rows, columns) = self.shape;
            let out = self.gpu.allocate::<u32>(rows)?;
            let kernel = self.gpu.kernel("stored", &typed("count", self.layout.bytes()), 0)?;
            let arguments = [
                Argument::Pointer(self.address),
                Argument::long(self.stride),
                Argument::long(rows),
                Argument::int(columns),
                Argument::int(infinite.into()),
                out.at(),
            ];
            self.gpu.launch(&kernel, (rows.div_ceil(WARPS), 1, 1), (256, 1), &arguments)?;
            self.gpu.read(&out)
        })
    }

    fn read_as<T: Value>(&self, rows: Range<usize>, values: &mut Vec<T>) -> Result<()> {
        let columns = self.shape.1;
        let from = self.address + (rows.start * self.stride * size_of::<T>()) as u64;
        if self.stride > columns {
            *values = self
                .gpu
                .read(&copy_rows(&self.gpu, &RowCopy::of(from, self.stride, rows.len(), columns))?)?;
            return Ok(());
        }
        values.resize(rows.len() * columns, T::default());
        self.gpu.fetch(from, values)
    }

    fn pick_as<T: Value>(&self, rows: &[u32], values: &mut Vec<T>) -> Result<()> {
        let columns = self.shape.1;
        let copy =
            RowCopy { rows: Some(rows), ..RowCopy::of(self.address, self.stride, rows.len(), columns) };
        *values = self.gpu.read(&copy_rows(&self.gpu, &copy)?)?;
        Ok(())
    }
}

impl RowStore for GpuRows {
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
        let device = Device::Cuda(vec![self.gpu.number]);
        Some(DeviceRows { device, address: self.address, rows: self.shape.0, stride: self.stride })
    }
}

/// Waits for all work on a GPU and copies `length` bytes of its memory, which another library owns, to the host.
///
/// # Errors
/// The reason, in one sentence, if the memory cannot be read.
pub fn fetch(address: u64, length: usize) -> Result<Vec<u8>, String> {
    on_own_thread(|| {
        let gpu = shared(gpu_of(address)?)?;
        let mut bytes = vec![0; length];
        gpu.wait_for_all()
            .and_then(|()| gpu.fetch(address, &mut bytes))
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    })
}

/// GPUs in which other libraries have stored data, by number. They stay open, as they do in those libraries.
static SHARED: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());

/// Opens a GPU, or returns it if it is in [`SHARED`], and keeps it there.
fn shared(number: usize) -> Result<Arc<Gpu>, String> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gpu) = shared.get(&number) {
        return Ok(gpu.clone());
    }
    let gpu = Arc::new(Gpu::open(number)?);
    shared.insert(number, gpu.clone());
    Ok(gpu)
}

/// Opens a GPU, or returns it if it is in [`SHARED`].
pub(crate) fn opened(number: usize) -> Result<Arc<Gpu>, String> {
    let known = SHARED.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
    known.map_or_else(|| Gpu::open(number).map(Arc::new), Ok)
}

/// Runs `work` on a thread of its own: a call of the driver changes the current GPU of its thread, on which other libraries of the
/// caller depend.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Rows per block of the kernels.
const WARPS: usize = 8;

/// The name of a kernel for numbers of `bytes` bytes.
fn typed(kernel: &str, bytes: usize) -> String {
    format!("{kernel}_{}", if bytes == 4 { "f32" } else { "f64" })
}

/// A copy of rows within GPU memory.
struct RowCopy<'a> {
    from: u64,
    /// Values from one row to the next.
    stride: usize,
    /// The rows to copy; `None`: the first `count` rows.
    rows: Option<&'a [u32]>,
    count: usize,
    features: usize,
    /// Values from one row of the copy to the next; padding is zero.
    to_stride: usize,
    /// The terms of each feature and the factor of each row, if the copy is scaled.
    scale: Option<(Vec<[f64; 3]>, Vec<f64>)>,
}

impl RowCopy<'_> {
    /// A copy of `count` rows without padding.
    fn of(from: u64, stride: usize, count: usize, features: usize) -> Self {
        Self { from, stride, rows: None, count, features, to_stride: features, scale: None }
    }
}

/// Copies rows to a new allocation.
fn copy_rows<T: Value>(gpu: &Gpu, copy: &RowCopy<'_>) -> Result<Memory<T>> {
    let to = gpu.allocate::<T>(copy.count * copy.to_stride)?;
    copy_rows_to::<T>(gpu, copy, to.at())?;
    Ok(to)
}

/// Copies rows to an address.
fn copy_rows_to<T: Value>(gpu: &Gpu, copy: &RowCopy<'_>, to: Argument) -> Result<()> {
    let rows = copy.rows.map(|rows| gpu.copy(rows)).transpose()?;
    let (terms, factors) = match &copy.scale {
        Some((terms, factors)) => (Some(gpu.copy(terms.as_flattened())?), Some(gpu.copy(factors)?)),
        None => (None, None),
    };
    let kernel = gpu.kernel("stored", &typed("take", size_of::<T>()), 0)?;
    let arguments = [
        Argument::Pointer(copy.from),
        Argument::long(copy.stride),
        maybe(rows.as_ref()),
        Argument::long(copy.count),
        Argument::int(copy.features),
        maybe(terms.as_ref()),
        maybe(factors.as_ref()),
        to,
        Argument::int(copy.to_stride),
    ];
    gpu.launch(&kernel, (copy.count.div_ceil(WARPS), 1, 1), (256, 1), &arguments)
}

/// Scales rows, by terms of each feature and a factor of each row, and writes them to an address.
pub fn scale<T: Value>(
    gpu: &Gpu,
    rows: &Memory<T>,
    (features, stride): (usize, usize),
    (terms, factors): (Vec<[f64; 3]>, Vec<f64>),
    to: Argument,
) -> Result<()> {
    let whole = RowCopy::of(rows.address(), stride, factors.len(), features);
    copy_rows_to::<T>(gpu, &RowCopy { to_stride: stride, scale: Some((terms, factors)), ..whole }, to)
}

/// The rows of a view that are stored in the memory of this GPU.
pub struct StoredView {
    stored: DeviceRows,
    /// The instances that are present in the view.
    instances: Vec<usize>,
    /// The row of each of these instances.
    rows: Vec<u32>,
}

impl StoredView {
    /// The rows of a view, if they are stored in the memory of this GPU.
    pub fn new(gpu: &Gpu, load: &Load<'_>, view: usize) -> Option<Self> {
        let (stored, index) = load.device_rows(view)?;
        let same = stored.device == Device::Cuda(vec![gpu.number]);
        Self::present(stored, index, load, view).filter(|_| same)
    }

    fn present(stored: DeviceRows, index: Index<'_>, load: &Load<'_>, view: usize) -> Option<Self> {
        if !load.schema().view(view).layout().is_dense() {
            return None;
        }
        let instances: Vec<usize> = (0..load.instances()).filter(|&i| load.shows(view, i)).collect();
        let row = |&i: &usize| u32::try_from(index.row(i).filter(|&row| row < stored.rows)?).ok();
        let rows: Vec<u32> = instances.iter().map(row).collect::<Option<_>>()?;
        Some(Self { stored, instances, rows })
    }

    /// The address of the rows if kernels can use them in place: `count` consecutive rows without padding, each at a multiple of 16
    /// bytes. `bytes` is the size of a number.
    pub fn in_place(&self, count: usize, features: usize, bytes: usize) -> Option<u64> {
        let DeviceRows { address, stride, .. } = self.stored;
        let first = self.rows.first().copied()?;
        let in_order = self.rows.len() == count && self.rows.iter().zip(first..).all(|(row, i)| *row == i);
        let address = address + u64::from(first) * (stride * bytes) as u64;
        let aligned = address.is_multiple_of(16) && (stride * bytes).is_multiple_of(16) && stride == features;
        (in_order && aligned).then_some(address)
    }

    /// A copy of the rows, scaled if `scale` has the terms of each feature and the factor of an instance.
    pub fn copy<T: Value>(
        &self,
        gpu: &Gpu,
        features: usize,
        to_stride: usize,
        scale: Option<(Vec<[f64; 3]>, impl Fn(usize) -> f64)>,
    ) -> Result<Memory<T>> {
        let scale = scale.map(|(terms, factor)| (terms, self.instances.iter().map(|&i| factor(i)).collect()));
        let rows = Some(&self.rows[..]);
        let whole = RowCopy::of(self.stored.address, self.stored.stride, self.rows.len(), features);
        copy_rows(gpu, &RowCopy { rows, to_stride, scale, ..whole })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use daimc::{Daimc, Neighbours, Scale, View, Views};

    use super::*;

    /// Rows of 4 values with a given device location.
    struct Located(DeviceRows);

    impl RowStore for Located {
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

    /// The stored rows of a load of 60 instances, of which some are present.
    fn view(stored: DeviceRows, present: impl Fn(usize) -> bool) -> Option<StoredView> {
        view_of(stored, present, 0..60)
    }

    /// The stored rows of a load of some of these instances.
    fn view_of(
        stored: DeviceRows,
        present: impl Fn(usize) -> bool,
        some: Range<usize>,
    ) -> Option<StoredView> {
        let present: Vec<bool> = (0..60).map(present).collect();
        let view = View::stored("stored", Arc::new(Located(stored)) as Arc<dyn RowStore>).unwrap();
        let views =
            vec![view.mask(&present).unwrap().holes(0), View::dense("own", 1, vec![1.0; 60]).unwrap()];
        let views = Views::new(views).unwrap();
        let fit = Daimc::new(2).scale(Scale::None).neighbours(Neighbours::Off).assess(false);
        let model = fit.fit(&views).unwrap().model;
        let scalings: Vec<_> = model.views.into_iter().map(|view| view.scaling).collect();
        let load = Load::new(&views, &scalings, 2).unwrap().some(some);
        assert!(load.device_rows(1).is_none());
        let (stored, index) = load.device_rows(0)?;
        StoredView::present(stored, index, &load, 0)
    }

    #[test]
    fn aligned_consecutive_rows_are_used_in_place() {
        let stored = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let in_place = |stored: DeviceRows, present: fn(usize) -> bool| {
            let view = view(stored, present).unwrap();
            view.in_place(view.len(), 4, 4)
        };
        assert_eq!(in_place(stored.clone(), |_| true), Some(4096));
        assert_eq!(in_place(DeviceRows { address: 4100, ..stored.clone() }, |_| true), None);
        // Padding of rows is not known to be zero.
        assert_eq!(in_place(DeviceRows { stride: 8, ..stored.clone() }, |_| true), None);
        assert_eq!(in_place(stored.clone(), |i| i != 7), None);
        assert_eq!(in_place(stored.clone(), |i| i < 59), Some(4096));
        assert_eq!(in_place(stored.clone(), |i| i > 1), Some(4096 + 2 * 16));
        let whole = view(stored, |_| true).unwrap();
        assert_eq!((whole.in_place(60, 3, 4), whole.in_place(59, 4, 4)), (None, None));
    }

    #[test]
    fn rows_are_those_of_present_instances() {
        let stored = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let some = view(stored, |i| i % 4 != 1).unwrap();
        assert_eq!(some.len(), 45);
        assert!(some.instances.iter().zip(&some.rows).all(|(&i, &row)| i % 4 != 1 && row as usize == i));
    }

    #[test]
    fn a_partition_of_the_instances_has_its_own_rows() {
        let stored = DeviceRows { device: Device::Cuda(vec![0]), address: 4096, rows: 60, stride: 4 };
        let whole = view_of(stored.clone(), |_| true, 20..50).unwrap();
        assert_eq!((whole.len(), whole.in_place(30, 4, 4)), (30, Some(4096 + 20 * 16)));
        let some = view_of(stored, |i| i % 4 != 1, 20..50).unwrap();
        assert!(some.instances.iter().zip(&some.rows).all(|(&i, &row)| row as usize == i + 20));
        assert!(some.len() < 30 && some.rows.iter().all(|row| row % 4 != 1));
    }

    #[test]
    fn unsuitable_rows_are_refused() {
        for (address, stride, layout) in
            [(4096, 3, Layout::DenseF32), (4098, 4, Layout::DenseF32), (4096, 4, Layout::SparseF32)]
        {
            let refused = GpuRows::new(address, (60, 4), stride, layout, ()).err().unwrap();
            assert!(refused.starts_with("not dense rows"), "{refused}");
        }
        assert!(GpuRows::new(8, (60, 4), 4, Layout::DenseF32, ()).is_err());
    }
}
