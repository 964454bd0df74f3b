//! A card: memory on it, and kernels that run there. Everything that is not safe is in this file.

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

/// What can lie on a card.
pub trait Value: DeviceRepr + ValidAsZeroBits + Copy + Default + Send + Sync + 'static {}

impl<T: DeviceRepr + ValidAsZeroBits + Copy + Default + Send + Sync + 'static> Value for T {}

/// A card, and the stream on which all its work is done, one piece after the other.
#[derive(Debug)]
pub struct Card {
    pub number: usize,
    pub name: String,
    /// Bytes of shared memory that a block can have, and multiprocessors.
    pub shared: usize,
    pub processors: usize,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Arc<Mutex<HashMap<String, Arc<CudaModule>>>>,
    /// Stages that are not in use.
    stages: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
    turn: Arc<Mutex<()>>,
}

/// The oldest cards and drivers that will do.
const LEAST_CAPABILITY: (i32, i32) = (8, 0);
const LEAST_DRIVER: &str = "520";

/// Functions by which a library that is one of a driver, and not too old, can be told.
const NEEDED: [&[u8]; 3] = [b"cuInit\0", b"cuLaunchKernel\0", b"cuMemAllocAsync\0"];

/// Looks for the driver, and counts its cards.
fn driver() -> Result<usize, String> {
    // SAFETY: only asks whether the library can be loaded.
    if !unsafe { is_culib_present() } {
        return Err(
            "there is no NVIDIA driver here (libcuda.so was not found); install it, or use the processor"
                .into(),
        );
    }
    // Where a function is missing, calling it would end the program.
    // SAFETY: the functions are looked for and not called.
    let lacks = |name: &&[u8]| unsafe { culib().get::<unsafe extern "C" fn()>(*name) }.is_err();
    if NEEDED.iter().any(lacks) {
        return Err(format!(
            "the library of the NVIDIA driver (libcuda.so) is damaged or too old: install version {LEAST_DRIVER} or later, or \
             use the processor"
        ));
    }
    match CudaContext::device_count() {
        Ok(count) => Ok(count as usize),
        Err(error) => Err(format!("the NVIDIA driver does not work: {}", reason(error))),
    }
}

/// The number of the card in whose memory an address is.
pub fn card_of(address: u64) -> Result<usize, String> {
    driver()?;
    let (mut number, which) = (-1_i32, CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    // SAFETY: this attribute is an i32. The driver looks the address up, and does not follow it.
    let found = unsafe { cuPointerGetAttribute((&raw mut number).cast(), which, address) };
    match (found, usize::try_from(number)) {
        (CUresult::CUDA_SUCCESS, Ok(number)) => Ok(number),
        _ => Err(format!("the driver knows no memory of a card at address {address:#x}")),
    }
}

impl Card {
    /// Opens a card by its number.
    pub fn open(number: usize) -> Result<Self, String> {
        let count = driver()?;
        if number >= count {
            return Err(match count {
                0 => "the NVIDIA driver sees no card; use the processor".into(),
                1 => format!("there is no card {number}: there is one, card 0; use it, or the processor"),
                _ => format!(
                    "there is no card {number}: there are {count}, from 0; use one of them, or the processor"
                ),
            });
        }
        let failed = |error: DriverError| format!("card {number} cannot be used: {}", reason(error));
        let context = CudaContext::new(number).map_err(failed)?;
        let name = context.name().map_err(failed)?;
        let capability = context.compute_capability().map_err(failed)?;
        if capability < LEAST_CAPABILITY {
            return Err(format!(
                "{name} has compute capability {}.{}, and at least {}.{} is needed; use the processor",
                capability.0, capability.1, LEAST_CAPABILITY.0, LEAST_CAPABILITY.1
            ));
        }
        let attribute = |which| context.attribute(which).map(|value| value as usize).map_err(failed);
        let shared = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let processors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let stream = context.default_stream();
        // SAFETY: whoever works with several streams waits for one before another goes on.
        unsafe { context.disable_event_tracking() };
        // What is freed is kept for whoever needs room next: to take it from the driver anew takes longer than to fill it.
        let mut most = u64::MAX;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        if let Some(pool) = pool(&context).map_err(failed)? {
            // SAFETY: the attribute is a number of 64 bits.
            unsafe { mem_pool::set_attribute(pool, threshold, (&raw mut most).cast()) }.map_err(failed)?;
        }
        let (modules, stages, turn) = Default::default();
        let card = Self { number, name, shared, processors, context, stream, modules, stages, turn };
        // A driver that is too old for the kernels says so now.
        card.kernel("sums", "add_parts", 0).map_err(|error| error.to_string())?;
        Ok(card)
    }

    /// The same card with another stream. What is made by one stream is used by the other only after waiting for the first.
    pub fn beside(&self) -> Result<Self> {
        let stream = self.context.new_stream().map_err(|error| self.error(error))?;
        let Self { number, shared, processors, .. } = *self;
        let (name, context) = (self.name.clone(), self.context.clone());
        let (modules, turn, stages) = (self.modules.clone(), self.turn.clone(), Mutex::default());
        Ok(Self { number, name, shared, processors, context, stream, modules, stages, turn })
    }

    /// Waits until nobody else works with what several share.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error of the card, in one sentence.
    pub fn error(&self, error: DriverError) -> Error {
        daimc::accelerator::refused(&self.name, reason(error))
    }

    /// Bytes that are free.
    pub fn free(&self) -> Result<usize> {
        self.wait()?;
        if let Some(pool) = pool(&self.context).map_err(|error| self.error(error))? {
            // SAFETY: only what nobody uses is given back.
            unsafe { mem_pool::trim_to(pool, 0) }.map_err(|error| self.error(error))?;
        }
        self.context.mem_get_info().map(|(free, _)| free).map_err(|error| self.error(error))
    }

    /// So many zeros on the card.
    pub fn zeros<T: Value>(&self, length: usize) -> Result<Memory<T>> {
        // An empty allocation is an error of the driver.
        let slice = self.stream.alloc_zeros::<T>(length.max(1)).map_err(|error| self.error(error))?;
        Ok(Memory::new(slice, length, &self.stream))
    }

    /// Room for so many values, which a kernel writes before anybody reads them.
    pub fn room<T: Value>(&self, length: usize) -> Result<Memory<T>> {
        // SAFETY: any bits are a value of these types.
        let slice = unsafe { self.stream.alloc::<T>(length.max(1)) }.map_err(|error| self.error(error))?;
        Ok(Memory::new(slice, length, &self.stream))
    }

    /// A copy on the card.
    pub fn copy<T: Value>(&self, values: &[T]) -> Result<Memory<T>> {
        let mut memory = self.room(values.len())?;
        self.write(values, &mut memory)?;
        Ok(memory)
    }

    /// Overwrites the beginning.
    pub fn write<T: Value>(&self, values: &[T], memory: &mut Memory<T>) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut to = memory.slice.slice_mut(..values.len());
        self.stream.memcpy_htod(values, &mut to).map_err(|error| self.error(error))
    }

    /// Overwrites with zeros.
    pub fn clear<T: Value>(&self, memory: &mut Memory<T>) -> Result<()> {
        self.stream.memset_zeros(&mut memory.slice).map_err(|error| self.error(error))
    }

    /// Waits for all work, and brings values back.
    pub fn read<T: Value>(&self, memory: &Memory<T>) -> Result<Vec<T>> {
        let mut values = vec![T::default(); memory.length];
        self.read_into(memory, &mut values)?;
        Ok(values)
    }

    /// The same where there is room for them.
    pub fn read_into<T: Value>(&self, memory: &Memory<T>, values: &mut [T]) -> Result<()> {
        if !values.is_empty() {
            let from = memory.slice.slice(..values.len());
            self.stream.memcpy_dtoh(&from, values).map_err(|error| self.error(error))?;
        }
        self.wait()
    }

    /// Waits until all work is done.
    pub fn wait(&self) -> Result<()> {
        self.stream.synchronize().map_err(|error| self.error(error))
    }

    /// Waits until all work on the card is done, that of other libraries with it.
    pub fn wait_for_all(&self) -> Result<()> {
        self.context.synchronize().map_err(|error| self.error(error))
    }

    /// Brings values back that lie in memory of the card which somebody else holds.
    pub fn fetch<T: Value>(&self, address: u64, values: &mut [T]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let fetched = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: any bits are a value of these types, and `values` lives until the copy is done, at the end of the call.
            // An address that is none is an error of the driver.
            unsafe { result::memcpy_dtoh_async(values, address, self.stream.cu_stream()) }?;
            self.stream.synchronize()
        });
        fetched.map_err(|error| self.error(error))
    }

    /// Two places in memory that the card reads without help. They are slow to make, so that they are to be [kept](Self::keep).
    pub fn stages<T: Value>(&self, length: usize) -> Result<[Stage<T>; 2]> {
        let kept = self.stages.lock().unwrap_or_else(PoisonError::into_inner).remove(&TypeId::of::<T>());
        if let Some(stages) = kept.and_then(|kept| kept.downcast::<[Stage<T>; 2]>().ok())
            && stages[0].pinned.len() >= length
        {
            return Ok(*stages);
        }
        Ok([self.stage(length)?, self.stage(length)?])
    }

    /// A place in memory that the card reads and writes without help.
    pub fn stage<T: Value>(&self, length: usize) -> Result<Stage<T>> {
        // SAFETY: it is written before it is read.
        let pinned = unsafe { self.context.alloc_pinned_with_flags::<T>(length.max(1), 0) };
        let sent = self.context.new_event(None).map_err(|error| self.error(error))?;
        Ok(Stage { pinned: pinned.map_err(|error| self.error(error))?, sent })
    }

    /// Keeps stages for whoever needs some next.
    pub fn keep<T: Value>(&self, stages: [Stage<T>; 2]) {
        let mut kept = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(TypeId::of::<T>(), Box::new(stages));
    }

    /// Begins to copy the first values of a stage to somewhere in memory.
    pub fn send<T: Value>(
        &self,
        stage: &mut Stage<T>,
        count: usize,
        memory: &mut Memory<T>,
        at: usize,
    ) -> Result<()> {
        let mut to = memory.slice.slice_mut(at..at + count);
        let part = Part { stage: &mut stage.pinned, count };
        let sent = self.stream.memcpy_htod(&part, &mut to);
        sent.and_then(|()| stage.sent.record(&self.stream)).map_err(|error| self.error(error))
    }

    /// Waits for all work, and brings the first values of some memory back to a stage.
    pub fn receive<'a, T: Value>(
        &self,
        memory: &Memory<T>,
        count: usize,
        stage: &'a mut Stage<T>,
    ) -> Result<&'a [T]> {
        let from = memory.slice.slice(..count);
        let mut part = Part { stage: &mut stage.pinned, count };
        self.stream.memcpy_dtoh(&from, &mut part).map_err(|error| self.error(error))?;
        self.wait()?;
        Ok(&stage.values(self)?[..count])
    }

    /// A kernel of a module that may have so many bytes of shared memory.
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

    /// Runs a kernel.
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
        // SAFETY: the arguments are those of the kernel, in the order of its source; pointers are of memory that is as long as it
        // expects and that lives until the stream, on which everything happens in order, is done with it.
        unsafe { launch.launch(config) }.map(drop).map_err(|error| self.error(error))
    }
}

/// Where the memory of a card comes from, unless each piece is taken from the driver.
fn pool(context: &CudaContext) -> Result<Option<CUmemoryPool>, DriverError> {
    // SAFETY: the device is that of a context.
    context.has_async_alloc().then(|| unsafe { get_default_mem_pool(context.cu_device()) }).transpose()
}

/// What the driver says, in a sentence that tells what to do.
fn reason(error: DriverError) -> String {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => "its memory is full; free it, or use the processor".into(),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUresult::CUDA_ERROR_INVALID_PTX => {
            format!("its driver is too old: update it to version {LEAST_DRIVER} or later")
        }
        CUresult::CUDA_ERROR_NO_DEVICE => "the NVIDIA driver sees no card; use the processor".into(),
        _ => match (error.error_name(), error.error_string()) {
            (Ok(name), Ok(text)) => format!("{} ({})", text.to_string_lossy(), name.to_string_lossy()),
            _ => format!("the driver reports error {}", error.0 as u32),
        },
    }
}

/// Values on a card.
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

    /// The address, for kernels.
    pub fn at(&self) -> Argument {
        Argument::Pointer(self.pointer)
    }

    /// The address of a value.
    pub fn from(&self, index: usize) -> Argument {
        Argument::Pointer(self.pointer + (index * size_of::<T>()) as u64)
    }

    pub fn len(&self) -> usize {
        self.length
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // Memory is freed on the card that is the current one of this thread, which may be another by now.
        let _ = self.slice.context().bind_to_thread();
    }
}

/// A place in memory that the card reads and writes without help. Whether it has done so is looked at here: event tracking is off.
#[derive(Debug)]
pub struct Stage<T> {
    pinned: PinnedHostSlice<T>,
    /// When the card has read what was sent last.
    sent: CudaEvent,
}

impl<T: Value> Stage<T> {
    /// The values, once the card has read what was sent before, or written what is received.
    pub fn values(&mut self, card: &Card) -> Result<&mut [T]> {
        self.sent.synchronize().map_err(|error| card.error(error))?;
        self.pinned.as_mut_slice().map_err(|error| card.error(error))
    }
}

impl<T> Drop for Stage<T> {
    fn drop(&mut self) {
        // An error of the card has been or will be told by whoever works there.
        let _ = self.sent.synchronize();
    }
}

/// The first values of a stage.
struct Part<'a, T> {
    stage: &'a mut PinnedHostSlice<T>,
    count: usize,
}

impl<T> cudarc::driver::HostSlice<T> for Part<'_, T> {
    fn len(&self) -> usize {
        self.count
    }

    unsafe fn stream_synced_slice<'b>(
        &'b self,
        stream: &'b CudaStream,
    ) -> (&'b [T], cudarc::driver::SyncOnDrop<'b>) {
        // SAFETY: the caller uses the slice with this stream.
        let (all, sync) = unsafe { self.stage.stream_synced_slice(stream) };
        (&all[..self.count], sync)
    }

    unsafe fn stream_synced_mut_slice<'b>(
        &'b mut self,
        stream: &'b CudaStream,
    ) -> (&'b mut [T], cudarc::driver::SyncOnDrop<'b>) {
        // SAFETY: the caller uses the slice with this stream.
        let (all, sync) = unsafe { self.stage.stream_synced_mut_slice(stream) };
        (&mut all[..self.count], sync)
    }
}

/// A kernel, with the bytes of shared memory it is run with.
#[derive(Clone, Debug)]
pub struct Kernel {
    function: CudaFunction,
    shared: usize,
}

/// What a kernel is given.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Pointer(u64),
    Long(i64),
    Int(i32),
    Double(f64),
    Float(f32),
}

impl Argument {
    /// No address.
    pub const NULL: Self = Self::Pointer(0);

    pub fn long(value: usize) -> Self {
        Self::Long(value as i64)
    }

    pub fn int(value: usize) -> Self {
        Self::Int(value as i32)
    }
}

/// The address of memory, if there is any.
pub fn maybe<T>(memory: Option<&Memory<T>>) -> Argument {
    memory.map_or(Argument::NULL, Memory::at)
}
