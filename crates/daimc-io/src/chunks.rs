//! Reads a text in pieces of whole records and processes them in parallel, with results in the order of the file.

use std::io::{self, Read};

use rayon::prelude::*;

/// Where a piece of text can be cut.
pub(crate) enum Cut {
    /// Before this byte, at which a record starts.
    At(usize),
    /// No record ends here yet.
    Later,
    /// No record will end: the text is invalid, and parsing the piece returns the error.
    Never,
}

/// A text in pieces of about `size` bytes that each hold whole records.
pub(crate) struct Chunks<R, F> {
    reader: R,
    size: usize,
    cut: F,
    /// The start of a record whose end is not read yet.
    rest: Vec<u8>,
    finished: bool,
}

impl<R: Read, F: Fn(&[u8]) -> Cut> Chunks<R, F> {
    /// `cut` finds the end of the last record of a piece.
    pub(crate) fn new(reader: R, size: usize, cut: F) -> Self {
        Self { reader, size, cut, rest: Vec::new(), finished: false }
    }

    fn read_more(&mut self, chunk: &mut Vec<u8>) -> io::Result<()> {
        // A record that is longer than a piece: read twice as much, so that it is searched only a few times.
        let wanted = self.size.max(chunk.len() * 2) - chunk.len();
        chunk.reserve_exact(wanted);
        let read = self.reader.by_ref().take(wanted as u64).read_to_end(chunk)?;
        self.finished = read < wanted;
        Ok(())
    }
}

impl<R: Read, F: Fn(&[u8]) -> Cut> Iterator for Chunks<R, F> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut chunk = std::mem::take(&mut self.rest);
        while !self.finished {
            if let Err(error) = self.read_more(&mut chunk) {
                self.finished = true;
                return Some(Err(error));
            }
            if self.finished {
                break;
            }
            match (self.cut)(&chunk) {
                Cut::At(end) => {
                    self.rest.extend_from_slice(&chunk[end..]);
                    chunk.truncate(end);
                    return Some(Ok(chunk));
                }
                Cut::Later => {}
                Cut::Never => self.finished = true,
            }
        }
        (!chunk.is_empty()).then_some(Ok(chunk))
    }
}

/// Runs `work` on every chunk in parallel, and calls `merge` with the results in the order of the chunks. While a batch of chunks
/// is processed, the results of the batch before are merged and the next one is read; no more is in memory.
pub(crate) fn in_order<T: Send, E: Send>(
    mut chunks: impl Iterator<Item = io::Result<Vec<u8>>> + Send,
    work: impl Fn(&[u8]) -> T + Sync,
    mut merge: impl FnMut(T) -> Result<(), E> + Send,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    let count = (4 * rayon::current_num_threads()).min(64);
    let mut read = || {
        let (mut batch, mut error) = (Vec::new(), None);
        while batch.len() < count && error.is_none() {
            match chunks.next() {
                Some(Ok(chunk)) => batch.push(chunk),
                Some(Err(broken)) => error = Some(broken),
                None => break,
            }
        }
        (batch, error)
    };
    let (mut batch, mut error) = read();
    let mut results: Vec<T> = Vec::new();
    while !batch.is_empty() {
        let merge_and_read = || {
            results.drain(..).try_for_each(&mut merge)?;
            Ok(if error.is_none() { read() } else { (Vec::new(), error.take()) })
        };
        // Each chunk is dropped as soon as it is processed.
        let work_on = |batch: Vec<Vec<u8>>| batch.into_par_iter().map(|chunk| work(&chunk)).collect();
        let (next, done) = rayon::join(merge_and_read, || work_on(batch));
        (batch, error) = next?;
        results = done;
    }
    results.into_iter().try_for_each(merge)?;
    error.map_or(Ok(()), |error| Err(failed(error)))
}
