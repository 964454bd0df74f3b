//! Passes over rows that are not in memory: a thread reads blocks ahead while the others process earlier ones.
//!
//! Reading and computing do not wait for each other. A thread that does nothing else reads three chunks of some 8 MB
//! ahead; it waits only for free buffers. Fits over such sources run on threads of their own
//! ([`off_the_pool`](super::off_the_pool)): a source that decodes with rayon then has the pool of its caller for itself
//! and cannot be starved by tasks that wait for its rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use super::{Piece, Scan};
use crate::parallel::ordered;
use crate::source::{Block, Buffer};
use crate::{Error, Layout, Result};

/// The approximate bytes of a chunk, and the maximum number of chunks: one in use, one ready, one being read.
const CHUNK: usize = 8 << 20;
const CHUNKS: usize = 3;

/// The instances of one chunk: whole blocks.
pub fn chunk(bytes_per_instance: usize, block: usize) -> usize {
    (CHUNK / bytes_per_instance.max(1)).max(1).div_ceil(block) * block
}

/// The rows of some consecutive blocks, in each view of the pass.
struct Chunk {
    first: usize,
    /// The instance after the last.
    end: usize,
    buffers: Vec<Buffer>,
    /// Receives the buffers when the rows are no longer needed.
    home: Sender<Vec<Buffer>>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Fails if the reader has ended, which is fine.
        let _ = self.home.send(std::mem::take(&mut self.buffers));
    }
}

/// See [`Scan::pass`].
pub(super) fn pass<P, T, A>(
    scan: &Scan<'_>,
    views: &Range<usize>,
    pieces: P,
    new: impl Fn() -> A + Sync,
    work: impl Fn(Piece<'_>, T, &mut A) -> Result<()> + Sync,
    merge: impl FnMut(&mut A) + Send,
) -> Result<()>
where
    P: Iterator<Item = (Range<usize>, T)> + Send,
    T: Send,
    A: Send,
{
    let layouts: Vec<Layout> = views.clone().map(|view| scan.layout(view)).collect();
    let (home, empty) = mpsc::channel();
    for _ in 0..CHUNKS {
        let _ = home.send(vec![Buffer::default(); views.len()]);
    }
    let (full, ready) = mpsc::sync_channel(CHUNKS);
    std::thread::scope(|scope| {
        let name = "daimc-read".to_string();
        let reader = std::thread::Builder::new().name(name).spawn_scoped(scope, {
            let views = views.clone();
            move || read(scan, &views, &empty, &home, &full)
        });
        let reader = reader.map_err(|error| Error::Threads { threads: 1, reason: error.to_string() })?;
        let worked = {
            let mut chunks = Chunks { ready, current: None };
            let pieces = pieces.map_while(|(instances, item)| {
                let chunk = chunks.holding(instances.start)?;
                Some((instances, item, chunk))
            });
            ordered(
                pieces,
                &new,
                |(instances, item, chunk), accumulator| {
                    scan.stop.check()?;
                    let within = instances.start - chunk.first..instances.end - chunk.first;
                    let given = chunk.buffers.iter().zip(&layouts);
                    let blocks: Vec<Block<'_>> =
                        given.map(|(buffer, layout)| buffer.block(*layout, within.clone())).collect();
                    work(Piece { instances, blocks: &blocks }, item, accumulator)
                },
                merge,
            )
        };
        // The reader ends once its chunks are no longer received.
        match reader.join() {
            Ok(read) => worked.and(read),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Chunks in order.
struct Chunks {
    ready: Receiver<Chunk>,
    current: Option<Arc<Chunk>>,
}

impl Chunks {
    /// The chunk with the block that starts at this instance; blocks are requested in order. `None` once the reader has
    /// ended.
    fn holding(&mut self, start: usize) -> Option<Arc<Chunk>> {
        if self.current.as_ref().is_none_or(|chunk| chunk.end <= start) {
            // Returns the buffers before waiting for the next chunk.
            self.current = None;
            self.current = Some(Arc::new(self.ready.recv().ok()?));
        }
        self.current.clone()
    }
}

/// Reads chunk after chunk into returned buffers.
fn read(
    scan: &Scan<'_>,
    views: &Range<usize>,
    empty: &Receiver<Vec<Buffer>>,
    home: &Sender<Vec<Buffer>>,
    full: &SyncSender<Chunk>,
) -> Result<()> {
    let schema = scan.schema();
    let bytes: usize = views.clone().map(|view| schema.view(view).bytes_per_row()).sum();
    let (size, instances) = (chunk(bytes, scan.blocks.size()), scan.instances());
    for first in (0..instances).step_by(size) {
        let Ok(mut buffers) = empty.recv() else { return Ok(()) };
        scan.stop.check()?;
        let range = first..(first + size).min(instances);
        for (view, buffer) in views.clone().zip(&mut buffers) {
            scan.fill(view, range.clone(), buffer)?;
        }
        if full.send(Chunk { first, end: range.end, buffers, home: home.clone() }).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
