//! The pass driver: every stage goes over rows through it.
//!
//! A pass cuts the instances into blocks, gives each block of rows to a thread with its own accumulator, and returns
//! the accumulators in the order of the blocks. Rows in memory are borrowed. Others are read ahead by a dedicated
//! thread (`stream`).

mod stream;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::blocks::Blocks;
use crate::forest::{Forest, Merge};
use crate::parallel::ordered;
use crate::source::{Block, Buffer, Memory, Rows, Source};
use crate::{Error, Layout, Matrix, Result, Scalar, Schema, Stop};

/// Runs work that reads a source. For rows in memory it uses the current threads. For others it uses a separate pool:
/// threads that wait for rows must not be those that the source decodes rows on.
pub fn off_the_pool<T: Send>(source: &dyn Source, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if source.memory().is_some() {
        return work();
    }
    pool(rayon::current_num_threads())?.install(work)
}

/// A pool of this number of threads.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::Threads { threads, reason: error.to_string() })
}

/// A source of rows, borrowed or shared.
pub type Shared<'a> = Arc<dyn Source + Send + Sync + 'a>;

/// The rows of a source and the switch that stops passes over them. Clones share one count of passes.
#[derive(Clone)]
pub struct Scan<'a> {
    source: Shared<'a>,
    blocks: Blocks,
    stop: Stop,
    /// The number of complete passes over single views.
    views_read: Arc<AtomicUsize>,
}

/// A block of instances with their rows in the views of a pass.
pub struct Piece<'a> {
    /// The instances.
    pub instances: Range<usize>,
    /// Their rows, in each of the views.
    pub blocks: &'a [Block<'a>],
}

impl Piece<'_> {
    /// The instances of the first view of the pass, with their rows.
    pub fn shown(&self) -> Vec<(usize, usize)> {
        self.shown_in(0)
    }

    /// The instances of a view of the pass, with their rows.
    pub fn shown_in(&self, view: usize) -> Vec<(usize, usize)> {
        let row = |i: usize| Some((i, self.blocks[view].index.row(i - self.instances.start)?));
        self.instances.clone().filter_map(row).collect()
    }
}

impl<'a> Scan<'a> {
    /// All rows of a source.
    pub fn new(source: &'a dyn Source, stop: &Stop) -> Self {
        Self::part(source, Blocks::all(source.instances()), stop)
    }

    /// A source whose rows are `blocks` of a larger data set.
    pub fn part(source: &'a dyn Source, blocks: Blocks, stop: &Stop) -> Self {
        Self::shared(Arc::new(source), blocks, stop)
    }

    /// As [`part`](Self::part), for a source that the scan keeps alive.
    pub fn shared(source: Shared<'a>, blocks: Blocks, stop: &Stop) -> Self {
        Self { source, blocks, stop: stop.clone(), views_read: Arc::default() }
    }

    /// The same instances with another source, such as a prepared one. The count of passes continues from its current value.
    pub fn with_source<'b>(&self, source: Shared<'b>) -> Scan<'b> {
        let views_read = Arc::new(AtomicUsize::new(self.views_read.load(Ordering::Relaxed)));
        Scan { source, blocks: self.blocks, stop: self.stop.clone(), views_read }
    }

    /// The same rows, with a separate count of passes from here on.
    #[must_use]
    pub fn recounted(&self) -> Self {
        self.with_source(self.source.clone())
    }

    /// The same rows with another switch.
    #[must_use]
    pub fn stopped_by(&self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self.clone() }
    }

    /// The source, shared.
    pub fn shared_source(&self) -> Shared<'a> {
        self.source.clone()
    }

    /// The source.
    pub fn source(&self) -> &(dyn Source + Send + Sync + 'a) {
        &*self.source
    }

    /// The schema of the source.
    pub fn schema(&self) -> &Schema {
        self.source.schema()
    }

    /// Cancels passes.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The number of instances.
    pub fn instances(&self) -> usize {
        self.blocks.instances()
    }

    /// The blocks of the instances.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The layout of the rows of a view.
    pub fn layout(&self, view: usize) -> Layout {
        self.schema().view(view).layout()
    }

    /// Counts a pass over all rows outside the scan.
    pub fn count_pass(&self) {
        self.views_read.fetch_add(self.schema().len(), Ordering::Relaxed);
    }

    /// How often all rows have been read.
    pub fn passes(&self) -> usize {
        self.views_read.load(Ordering::Relaxed).div_ceil(self.schema().len().max(1))
    }

    /// Runs one pass over the rows of some views. For each block, `work` receives its rows, the next of `items`, and an
    /// accumulator, which was created by `new` and may have been used before; `merge` receives the accumulators in the
    /// order of the blocks, with the first instance of the block. One of the two must reset them.
    ///
    /// # Errors
    /// The first error of `work`, one of the source, or [`Error::Interrupted`].
    pub fn pass<I, A>(
        &self,
        views: Range<usize>,
        items: I,
        new: impl Fn() -> A + Sync,
        work: impl Fn(Piece<'_>, I::Item, &mut A) -> Result<()> + Sync,
        mut merge: impl FnMut(usize, &mut A) + Send,
    ) -> Result<()>
    where
        I: Iterator + Send,
        I::Item: Send,
        A: Send,
    {
        let size = self.blocks.size();
        let mut next = 0;
        let mut merge = |accumulator: &mut A| {
            merge(next, accumulator);
            next += size;
        };
        let pieces = self.blocks.ranges().zip(items);
        match self.source.memory() {
            Some(memory) => ordered(
                pieces,
                || (new(), vec![Buffer::default(); views.len()]),
                |(instances, item), (accumulator, buffers)| {
                    self.stop.check()?;
                    let given = views.clone().zip(buffers);
                    let blocks: Vec<Block<'_>> =
                        given.map(|(view, buffer)| memory.block(view, instances.clone(), buffer)).collect();
                    work(Piece { instances, blocks: &blocks }, item, accumulator)
                },
                |(accumulator, _)| merge(accumulator),
            ),
            None => stream::pass(self, &views, pieces, new, work, merge),
        }?;
        self.views_read.fetch_add(views.len(), Ordering::Relaxed);
        Ok(())
    }

    /// As [`Scan::pass`], over the rows of one view.
    pub fn pass_view<A: Send>(
        &self,
        view: usize,
        new: impl Fn() -> A + Sync,
        work: impl Fn(Piece<'_>, &mut A) -> Result<()> + Sync,
        mut merge: impl FnMut(&mut A) + Send,
    ) -> Result<()> {
        let work = |piece: Piece<'_>, (), accumulator: &mut A| work(piece, accumulator);
        self.pass(view..view + 1, std::iter::repeat(()), new, work, |_, accumulator| merge(accumulator))
    }

    /// As [`Scan::pass_view`]. `absorb` adds the accumulators of the blocks of a leaf in order, and the leaves are
    /// added along their tree, so that parts of the instances give the same sums as all of them.
    pub fn sum_view<A: Send, T: Merge + Send>(
        &self,
        view: usize,
        new: impl Fn() -> A + Sync,
        work: impl Fn(Piece<'_>, &mut A) -> Result<()> + Sync,
        leaf: impl Fn() -> T + Send + Sync,
        mut absorb: impl FnMut(&mut T, &mut A) + Send,
    ) -> Result<Forest<T>> {
        let mut forest = Forest::new(self.blocks.leaves());
        let mut sums = leaf();
        let work = |piece: Piece<'_>, (), accumulator: &mut A| work(piece, accumulator);
        self.pass(view..view + 1, std::iter::repeat(()), new, work, |start, accumulator| {
            absorb(&mut sums, accumulator);
            if let Some(number) = self.blocks.ends_leaf(start) {
                forest.plant(0, number, std::mem::replace(&mut sums, leaf()));
            }
        })?;
        Ok(forest)
    }

    /// The rows of a few consecutive instances, read on the calling thread.
    pub fn read<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        if let Some(memory) = self.source.memory() {
            return Ok(memory.block(view, instances, buffer));
        }
        self.fill(view, instances.clone(), buffer)?;
        Ok(buffer.block(self.layout(view), 0..instances.len()))
    }

    /// Reads rows and checks that they match the request.
    pub fn fill(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        let read = self.source.read(view, instances.clone(), buffer);
        let checked = || Ok(buffer.check(self.schema().view(view), instances.clone())?);
        read.and_then(|()| checked()).map_err(|error| self.unreadable(view, &instances, error))
    }

    fn unreadable(&self, view: usize, instances: &Range<usize>, source: crate::source::ReadError) -> Error {
        let view = self.source.name(view).into();
        Error::Read { view, first: instances.start, last: instances.end.saturating_sub(1), source }
    }

    /// The rows of the given instances (in increasing order) in one view.
    pub fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        let buffers = std::slice::from_mut(buffer);
        Ok(self.pick_views(view..view + 1, instances, buffers)?.swap_remove(0))
    }

    /// The rows of the given instances (in increasing order) in some views. Without random access, all rows are read
    /// once and the others dropped.
    pub fn pick_views<'b>(
        &'b self,
        views: Range<usize>,
        instances: &[u32],
        buffers: &'b mut [Buffer],
    ) -> Result<Vec<Block<'b>>> {
        if let Some(memory) = self.source.memory() {
            let pick = |(view, buffer)| Memory::pick(memory, view, instances, buffer);
            return Ok(views.zip(buffers).map(pick).collect());
        }
        let numbers = || instances.iter().map(|&i| i as usize);
        if let Some(random) = self.source.random_access() {
            for (view, buffer) in views.clone().zip(&mut *buffers) {
                self.stop.check()?;
                let read = random.pick(view, instances, buffer);
                let checked = || Ok(buffer.check(self.schema().view(view), numbers())?);
                let range = numbers().next().unwrap_or(0)..numbers().next_back().unwrap_or(0) + 1;
                read.and_then(|()| checked()).map_err(|error| self.unreadable(view, &range, error))?;
            }
        } else {
            buffers.iter_mut().for_each(Buffer::clear);
            let features: Vec<usize> = views.clone().map(|view| self.source.features(view)).collect();
            let keep = |piece: Piece<'_>, (), kept: &mut Vec<Buffer>| {
                let Range { start, end } = piece.instances;
                let from = instances.partition_point(|&i| (i as usize) < start);
                let own = instances[from..].iter().map(|&i| i as usize).take_while(|&i| i < end);
                for i in own {
                    for ((kept, block), &features) in kept.iter_mut().zip(piece.blocks).zip(&features) {
                        kept.push_from(block, i - start, features);
                    }
                }
                Ok(())
            };
            let none = || vec![Buffer::default(); features.len()];
            let mut merge = |_, kept: &mut Vec<Buffer>| {
                buffers.iter_mut().zip(kept).for_each(|(all, kept)| all.append(kept));
            };
            self.pass(views.clone(), std::iter::repeat(()), none, keep, &mut merge)?;
        }
        let blocks =
            views.zip(buffers).map(|(view, buffer)| buffer.block(self.layout(view), 0..instances.len()));
        Ok(blocks.collect())
    }
}

/// The original values of some features (columns) of a view for some instances (rows), which must be in increasing
/// order: NaN for missing instances and missing cells.
///
/// # Errors
/// When the rows cannot be read.
pub fn values(source: &dyn Source, view: usize, instances: &[u32], features: &[usize]) -> Result<Matrix> {
    fn stored<T: Scalar>((columns, values): (&[u32], &[T]), feature: usize) -> f64 {
        columns.binary_search(&(feature as u32)).map_or(0.0, |at| values[at].to_f64())
    }
    off_the_pool(source, || {
        let scan = Scan::new(source, &Stop::default());
        let (mut buffer, width) = (Buffer::default(), source.features(view));
        let block = scan.pick(view, instances, &mut buffer)?;
        let value = |i: usize, feature: usize| match (block.index.row(i), block.rows) {
            (None, _) => f64::NAN,
            (Some(row), Rows::DenseF32(x)) => x[row * width + feature].into(),
            (Some(row), Rows::DenseF64(x)) => x[row * width + feature],
            (Some(row), Rows::SparseF32(csr)) => stored(csr.row(row), feature),
            (Some(row), Rows::SparseF64(csr)) => stored(csr.row(row), feature),
        };
        Ok(Matrix::from_fn(instances.len(), features.len(), |i, f| value(i, features[f])))
    })
}
