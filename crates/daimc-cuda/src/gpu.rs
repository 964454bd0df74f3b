//! A GPU: its memory, and launches of kernels. All unsafe code of the crate is in this file.

#![allow(unsafe_code)]

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{device::get_default_mem_pool, mem_pool};
use cudarc::driver::sys::{
    CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute, CUmemoryPool, CUpointer_attribute,
    CUresult, cuPointerGetAttribute, culib, is_culib_present,
};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    DriverError, LaunchConfig, PinnedHostSlice, PushKernelArg, ValidAsZeroBits, result,
};
use cudarc::nvrtc::Ptx;
use daimc::{Error, Result};

use crate::kernels;

/// A number that GPU memory can hold.
pub trait Value: DeviceRepr + ValidAsZeroBits + Copy + Default + Send + Sync + 'static {}

impl<T: DeviceRepr + ValidAsZeroBits + Copy + Default + Send + Sync + 'static> Value for T {}

/// A GPU with a stream, on which all its work runs in order.
#[derive(Debug)]
pub struct Gpu {
    pub number: usize,
    pub name: String,
    /// Maximum bytes of shared memory per block.
    pub shared: usize,
    /// Number of multiprocessors.
    pub processors: usize,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Arc<Mutex<HashMap<String, Arc<CudaModule>>>>,
    /// Pairs of pinned buffers for reuse, by the type of their values.
    spare: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
    exclusive: Arc<Mutex<()>>,
}

/// The oldest compute capability and driver that the kernels run on.
const MIN_CAPABILITY: (i32, i32) = (8, 0);
const MIN_DRIVER: &str = "520";

/// Functions that the library of a recent driver has.
const NEEDED: [&[u8]; 3] = [b"cuInit\0", b"cuLaunchKernel\0", b"cuMemAllocAsync\0"];

/// Loads the driver and returns the number of its GPUs.
fn driver() -> Result<usize, String> {
    // SAFETY: this only tests whether the library can be loaded.
    if !unsafe { is_culib_present() } {
        return Err("no NVIDIA driver (libcuda.so) was found; install it, or use the CPU".into());
    }
    // Calling a missing function would abort the program.
    // SAFETY: the functions are looked up and not called.
    let lacks = |name: &&[u8]| unsafe { culib().get::<unsafe extern "C" fn()>(*name) }.is_err();
    if NEEDED.iter().any(lacks) {
        return Err(format!(
            "the library of the NVIDIA driver (libcuda.so) is damaged or too old: install version {MIN_DRIVER} or later, or \
             use the CPU"
        ));
    }
    match CudaContext::device_count() {
        Ok(count) => Ok(count as usize),
        Err(error) => Err(format!("the NVIDIA driver does not work: {}", reason(error))),
    }
}

/// The number of the GPU to whose memory an address belongs.
pub fn gpu_of(address: u64) -> Result<usize, String> {
    driver()?;
    let (mut number, which) = (-1_i32, CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    // SAFETY: this attribute is an i32. The driver looks the address up without dereferencing it.
    let found = unsafe { cuPointerGetAttribute((&raw mut number).cast(), which, address) };
    match (found, usize::try_from(number)) {
        (CUresult::CUDA_SUCCESS, Ok(number)) => Ok(number),
        _ => Err(format!("the address {address:#x} is not in the memory of a GPU")),
    }
}

impl Gpu {
    /// Opens a GPU by its number.
    pub fn open(number: usize) -> Result<Self, String> {
        let count = driver()?;
        if number >= count {
            return Err(match count {
                0 => "the NVIDIA driver finds no GPU; use the CPU".into(),
                1 => format!("GPU {number} does not exist: the only one is GPU 0; use it, or the CPU"),
                _ => format!(
                    "GPU {number} does not exist: there are {count}, numbered from 0; use one of them, or the CPU"
                ),
            });
        }
        let failed = |error: DriverError| format!("GPU {number} cannot be used: {}", reason(error));
        let context = CudaContext::new(number).map_err(failed)?;
        let name = context.name().map_err(failed)?;
        let capability = context.compute_capability().map_err(failed)?;
        if capability < MIN_CAPABILITY {
            return Err(format!(
                "{name} has compute capability {}.{}, and at least {}.{} is needed; use the CPU",
                capability.0, capability.1, MIN_CAPABILITY.0, MIN_CAPABILITY.1
            ));
        }
        let attribute = |which| context.attribute(which).map(|value| value as usize).map_err(failed);
        let shared = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let processors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let stream = context.default_stream();
        // SAFETY: callers that use several streams wait for one before they continue with another.
        unsafe { context.disable_event_tracking() };
        // The pool keeps freed memory: a new allocation from the driver takes longer than filling it.
        let mut keep_all = u64::MAX;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        if let Some(pool) = pool(&context).map_err(failed)? {
            // SAFETY: the attribute is a number of 64 bits.
            unsafe { mem_pool::set_attribute(pool, threshold, (&raw mut keep_all).cast()) }
                .map_err(failed)?;
        }
        let (modules, spare, exclusive) = Default::default();
        let gpu = Self { number, name, shared, processors, context, stream, modules, spare, exclusive };
        // Loads a module now, so that a driver that is too old fails here.
        gpu.kernel("sums", "add_parts", 0).map_err(|error| error.to_string())?;
        Ok(gpu)
    }

    /// The same GPU with a new stream. A stream may use results of the other only after waiting for it.
    pub fn with_new_stream(&self) -> Result<Self> {
        let stream = self.context.new_stream().map_err(|error| self.error(error))?;
        let Self { number, shared, processors, .. } = *self;
        let (name, context) = (self.name.clone(), self.context.clone());
        let (modules, exclusive, spare) = (self.modules.clone(), self.exclusive.clone(), Mutex::default());
        Ok(Self { number, name, shared, processors, context, stream, modules, spare, exclusive })
    }

    /// Locks the GPU: threads that share its default stream work on it one at a time.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.exclusive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts an error of the driver.
    pub fn error(&self, error: DriverError) -> Error {
        daimc::accelerator::refused(&self.name, reason(error))
    }

    /// Waits for all work and returns the free bytes of GPU memory, including those in the pool.
    pub fn free(&self) -> Result<usize> {
        self.wait()?;
        if let Some(pool) = pool(&self.context).map_err(|error| self.error(error))? {
            // SAFETY: the pool releases unused memory only.
            unsafe { mem_pool::trim_to(pool, 0) }.map_err(|error| self.error(error))?;
        }
        self.context.mem_get_info().map(|(free, _)| free).map_err(|error| self.error(error))
    }

    /// Allocates `length` zeros.
    pub fn zeros<T: Value>(&self, length: usize) -> Result<Memory<T>> {
        // An empty allocation is an error of the driver.
        let slice = self.stream.alloc_zeros::<T>(length.max(1)).map_err(|error| self.error(error))?;
        Ok(Memory::new(slice, length, &self.stream))
    }

    /// Allocates `length` uninitialised values: kernels write them before they are read.
    pub fn allocate<T: Value>(&self, length: usize) -> Result<Memory<T>> {
        // SAFETY: any bits are a value of these types.
        let slice = unsafe { self.stream.alloc::<T>(length.max(1)) }.map_err(|error| self.error(error))?;
        Ok(Memory::new(slice, length, &self.stream))
    }

    /// Copies values to a new allocation.
    pub fn copy<T: Value>(&self, values: &[T]) -> Result<Memory<T>> {
        let mut memory = self.allocate(values.len())?;
        self.write(values, &mut memory)?;
        Ok(memory)
    }

    /// Overwrites the first values.
    pub fn write<T: Value>(&self, values: &[T], memory: &mut Memory<T>) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut to = memory.slice.slice_mut(..values.len());
        self.stream.memcpy_htod(values, &mut to).map_err(|error| self.error(error))
    }

    /// Overwrites all values with zeros.
    pub fn clear<T: Value>(&self, memory: &mut Memory<T>) -> Result<()> {
        self.stream.memset_zeros(&mut memory.slice).map_err(|error| self.error(error))
    }

    /// Waits for all work and copies the values to the host.
    pub fn read<T: Value>(&self, memory: &Memory<T>) -> Result<Vec<T>> {
        let mut values = vec![T::default(); memory.length];
        self.read_into(memory, &mut values)?;
        Ok(values)
    }

    /// Waits for all work and copies the first values to a host buffer.
    pub fn read_into<T: Value>(&self, memory: &Memory<T>, values: &mut [T]) -> Result<()> {
        if !values.is_empty() {
            let from = memory.slice.slice(..values.len());
            self.stream.memcpy_dtoh(&from, values).map_err(|error| self.error(error))?;
        }
        self.wait()
    }

    /// Waits for all work on the stream.
    pub fn wait(&self) -> Result<()> {
        self.stream.synchronize().map_err(|error| self.error(error))
    }

    /// Waits for all work on the GPU, including that of other libraries.
    pub fn wait_for_all(&self) -> Result<()> {
        self.context.synchronize().map_err(|error| self.error(error))
    }

    /// Copies values from GPU memory that another library owns to the host.
    pub fn fetch<T: Value>(&self, address: u64, values: &mut [T]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let fetched = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: any bits are a value of these types, and `values` outlives the copy, which ends with the call. An invalid
            // address is an error of the driver.
            unsafe { result::memcpy_dtoh_async(values, address, self.stream.cu_stream()) }?;
            self.stream.synchronize()
        });
        fetched.map_err(|error| self.error(error))
    }

    /// Returns two pinned buffers of at least `length` values. Allocating them is slow: [`recycle`](Self::recycle) them.
    pub fn pinned_pair<T: Value>(&self, length: usize) -> Result<[PinnedBuffer<T>; 2]> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).remove(&TypeId::of::<T>());
        if let Some(pair) = spare.and_then(|pair| pair.downcast::<[PinnedBuffer<T>; 2]>().ok())
            && pair[0].values.len() >= length
        {
            return Ok(*pair);
        }
        Ok([self.pinned(length)?, self.pinned(length)?])
    }

    /// Allocates a pinned buffer.
    pub fn pinned<T: Value>(&self, length: usize) -> Result<PinnedBuffer<T>> {
        // SAFETY: it is written before it is read.
        let values = unsafe { self.context.alloc_pinned_with_flags::<T>(length.max(1), 0) };
        let sent = self.context.new_event(None).map_err(|error| self.error(error))?;
        Ok(PinnedBuffer { values: values.map_err(|error| self.error(error))?, sent })
    }

    /// Keeps two pinned buffers for the next call of [`pinned_pair`](Self::pinned_pair).
    pub fn recycle<T: Value>(&self, pair: [PinnedBuffer<T>; 2]) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.insert(TypeId::of::<T>(), Box::new(pair));
    }

    /// Begins to copy the first `count` values of a pinned buffer to GPU memory, from index `at` on.
    pub fn send<T: Value>(
        &self,
        pinned: &mut PinnedBuffer<T>,
        count: usize,
        memory: &mut Memory<T>,
        at: usize,
    ) -> Result<()> {
        let mut to = memory.slice.slice_mut(at..at + count);
        let prefix = Prefix { buffer: &mut pinned.values, count };
        let sent = self.stream.memcpy_htod(&prefix, &mut to);
        sent.and_then(|()| pinned.sent.record(&self.stream)).map_err(|error| self.error(error))
    }

    /// Waits for all work and copies the first `count` values of GPU memory to a pinned buffer.
    pub fn receive<'a, T: Value>(
        &self,
        memory: &Memory<T>,
        count: usize,
        pinned: &'a mut PinnedBuffer<T>,
    ) -> Result<&'a [T]> {
        let from = memory.slice.slice(..count);
        let mut prefix = Prefix { buffer: &mut pinned.values, count };
        self.stream.memcpy_dtoh(&from, &mut prefix).map_err(|error| self.error(error))?;
        self.wait()?;
        Ok(&pinned.values(self)?[..count])
    }

    /// Loads a kernel of a module, to be launched with `shared` bytes of shared memory.
    pub fn kernel(&self, module: &str, function: &str, shared: usize) -> Result<Kernel> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = if let Some(loaded) = modules.get(module) {
            loaded.clone()
        } else {
            let ptx = kernels::source(module)
                .map_err(|error| daimc::accelerator::refused(&self.name, error.to_string()))?;
            let loaded = self.context.load_module(Ptx::from_src(ptx)).map_err(|error| self.error(error))?;
            modules.insert(module.into(), loaded.clone());
            loaded
        };
        let function = loaded.load_function(function).map_err(|error| self.error(error))?;
        if shared > 48 << 10 {
            let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function.set_attribute(most, shared as i32).map_err(|error| self.error(error))?;
        }
        Ok(Kernel { function, shared })
    }

    /// Launches a kernel.
    pub fn launch(
        &self,
        kernel: &Kernel,
        grid: (usize, usize, usize),
        block: (u32, u32),
        arguments: &[Argument],
    ) -> Result<()> {
        if grid.0 == 0 || grid.1 == 0 || grid.2 == 0 {
            return Ok(());
        }
        let config = LaunchConfig {
            grid_dim: (grid.0 as u32, grid.1 as u32, grid.2 as u32),
            block_dim: (block.0, block.1, 1),
            shared_mem_bytes: kernel.shared as u32,
        };
        let mut launch = self.stream.launch_builder(&kernel.function);
        for argument in arguments {
            match argument {
                Argument::Pointer(value) => launch.arg(value),
                Argument::Long(value) => launch.arg(value),
                Argument::Int(value) => launch.arg(value),
                Argument::Double(value) => launch.arg(value),
                Argument::Float(value) => launch.arg(value),
            };
        }
        // SAFETY: the arguments match the kernel's parameters in its source; pointers refer to memory of the length that it expects,
        // which is freed on the same stream, in order, after the kernel has run.
        unsafe { launch.launch(config) }.map(drop).map_err(|error| self.error(error))
    }
}

/// The memory pool of a GPU, if it supports one.
fn pool(context: &CudaContext) -> Result<Option<CUmemoryPool>, DriverError> {
    // SAFETY: the device belongs to a context.
    context.has_async_alloc().then(|| unsafe { get_default_mem_pool(context.cu_device()) }).transpose()
}

/// An error of the driver as a sentence that says what to do.
fn reason(error: DriverError) -> String {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => "its memory is full; free some, or use the CPU".into(),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUresult::CUDA_ERROR_INVALID_PTX => {
            format!("its driver is too old: update it to version {MIN_DRIVER} or later")
        }
        CUresult::CUDA_ERROR_NO_DEVICE => "the NVIDIA driver finds no GPU; use the CPU".into(),
        _ => match (error.error_name(), error.error_string()) {
            (Ok(name), Ok(text)) => format!("{} ({})", text.to_string_lossy(), name.to_string_lossy()),
            _ => format!("the driver reports error {}", error.0 as u32),
        },
    }
}

/// Values in GPU memory.
#[derive(Debug)]
pub struct Memory<T> {
    slice: CudaSlice<T>,
    length: usize,
    pointer: u64,
}

impl<T> Memory<T> {
    fn new(slice: CudaSlice<T>, length: usize, stream: &CudaStream) -> Self {
        let pointer = slice.device_ptr(stream).0;
        Self { slice, length, pointer }
    }

    /// The address.
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// The address as an argument of kernels.
    pub fn at(&self) -> Argument {
        Argument::Pointer(self.pointer)
    }

    /// The address of the value at `index` as an argument of kernels.
    pub fn from(&self, index: usize) -> Argument {
        Argument::Pointer(self.pointer + (index * size_of::<T>()) as u64)
    }

    pub fn len(&self) -> usize {
        self.length
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // Memory is freed in the current context of this thread, which may be that of another GPU by now.
        let _ = self.slice.context().bind_to_thread();
    }
}

/// Pinned host memory, which the GPU accesses directly. The buffer tracks the last copy itself, because event tracking is off.
#[derive(Debug)]
pub struct PinnedBuffer<T> {
    values: PinnedHostSlice<T>,
    /// Recorded after the last copy to the GPU.
    sent: CudaEvent,
}

impl<T: Value> PinnedBuffer<T> {
    /// Waits until the last copy to the GPU is complete, and returns the values.
    pub fn values(&mut self, gpu: &Gpu) -> Result<&mut [T]> {
        self.sent.synchronize().map_err(|error| gpu.error(error))?;
        self.values.as_mut_slice().map_err(|error| gpu.error(error))
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // Errors are reported by the calls that use the buffer.
        let _ = self.sent.synchronize();
    }
}

/// The first values of a pinned buffer.
struct Prefix<'a, T> {
    buffer: &'a mut PinnedHostSlice<T>,
    count: usize,
}

impl<T> cudarc::driver::HostSlice<T> for Prefix<'_, T> {
    fn len(&self) -> usize {
        self.count
    }

    unsafe fn stream_synced_slice<'b>(
        &'b self,
        stream: &'b CudaStream,
    ) -> (&'b [T], cudarc::driver::SyncOnDrop<'b>) {
        // SAFETY: the caller uses the slice with this stream.
        let (all, sync) = unsafe { self.buffer.stream_synced_slice(stream) };
        (&all[..self.count], sync)
    }

    unsafe fn stream_synced_mut_slice<'b>(
        &'b mut self,
        stream: &'b CudaStream,
    ) -> (&'b mut [T], cudarc::driver::SyncOnDrop<'b>) {
        // SAFETY: the caller uses the slice with this stream.
        let (all, sync) = unsafe { self.buffer.stream_synced_mut_slice(stream) };
        (&mut all[..self.count], sync)
    }
}

/// A kernel and the bytes of shared memory of its launches.
#[derive(Clone, Debug)]
pub struct Kernel {
    function: CudaFunction,
    shared: usize,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Pointer(u64),
    Long(i64),
    Int(i32),
    Double(f64),
    Float(f32),
}

impl Argument {
    /// The null pointer.
    pub const NULL: Self = Self::Pointer(0);

    pub fn long(value: usize) -> Self {
        Self::Long(value as i64)
    }

    pub fn int(value: usize) -> Self {
        Self::Int(value as i32)
    }
}

/// The address of memory, or the null pointer.
pub fn maybe<T>(memory: Option<&Memory<T>>) -> Argument {
    memory.map_or(Argument::NULL, Memory::at)
}
