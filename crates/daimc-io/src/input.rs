//! Opens a file or a pipe once: the bytes that are parsed are the bytes that are hashed.

mod digest;
mod packed;
mod random;

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use digest::Digest;
pub use digest::sha256;
pub(crate) use packed::is_packed;
pub(crate) use random::Random;

use crate::disk::{Disk, Spool, Watched};
use crate::paths::{STANDARD_INPUT, cell_ranger_matrix};
use crate::{Error, Position, Result, foreign};

/// Bytes from which a format is detected: at least the header of a `.mat` file.
const START: u64 = 1 << 10;

/// Bytes of a pipe that are read at first, and bytes that are read while as many are hashed.
const PIECE: usize = 1 << 20;

const EMPTY: &str = "is empty; copy it again or save it anew";

/// An open file. `Read` returns its bytes unchanged and in order.
pub(crate) struct Opened {
    /// The file.
    pub place: Position,
    /// The path was a folder, and this is its matrix.
    pub of_folder: bool,
    /// The first bytes. `Read` returns them again.
    start: Vec<u8>,
    /// The number of first bytes that were returned again.
    taken: usize,
    source: Source,
    digest: Option<Digest>,
    /// The SHA-256, once all bytes were read.
    hash: Option<String>,
}

enum Source {
    /// A file on a disk, and its metadata when it was opened.
    Disk(File, Metadata),
    /// A pipe, a device, or a file that the system generates.
    Stream(Box<dyn Read + Send>),
    /// All bytes of a pipe.
    Memory(Cursor<Bytes>),
}

impl Opened {
    /// Opens a file; `hashed` computes its [SHA-256](Self::sha256).
    pub(crate) fn new(path: &Path, hashed: bool) -> Result<Self> {
        let matrix = cell_ranger_matrix(path);
        let of_folder = matrix.is_some();
        let path = matrix.as_deref().unwrap_or(path);
        let place = Position::file(path);
        let unreadable = |error| place.unreadable(error);
        let mut source = if path.as_os_str() == STANDARD_INPUT {
            Source::Stream(Box::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(unreadable)?;
            let about = file.metadata().map_err(unreadable)?;
            if about.is_dir() {
                if let Some(reason) = foreign::folder(path) {
                    return Err(place.fault(reason));
                }
                return Err(place.fault("is a folder without matrix.mtx or matrix.mtx.gz; name a file in it"));
            }
            place.refuse_device(&about)?;
            if about.is_file() { Source::Disk(file, about) } else { Source::Stream(Box::new(file)) }
        };
        let mut start = Vec::new();
        source.by_ref().take(START).read_to_end(&mut start).map_err(unreadable)?;
        Ok(Self {
            place,
            of_folder,
            start,
            taken: 0,
            source,
            digest: hashed.then(Digest::default),
            hash: None,
        })
    }

    /// The file for repeated reads, if it is on a disk.
    pub(crate) fn watched(&self) -> Result<Option<Watched>> {
        let Source::Disk(file, about) = &self.source else { return Ok(None) };
        if about.len() == 0 {
            return Ok(None);
        }
        let watched = file.try_clone().and_then(|file| Watched::new(file, &self.place.path));
        watched.map(Some).map_err(|error| self.place.unreadable(error))
    }

    /// Reads all bytes of a pipe, so that any part of them can be read again: into memory if there are at most `most`, otherwise
    /// into a spool file.
    pub(crate) fn spool_stream(&mut self, disk: &Disk, most: u64) -> Result<()> {
        if self.length().is_some() {
            return Ok(());
        }
        let place = self.place.clone();
        let mut bytes = Vec::new();
        let mut spool = if most == 0 { Some(Spool::new(disk)?) } else { None };
        let mut piece = vec![0; PIECE];
        loop {
            let count = match self.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(place.unreadable(error)),
            };
            if let Some(spool) = &mut spool {
                spool.write_bytes(&piece[..count])?;
            } else if (bytes.len() + count) as u64 > most {
                let spool = spool.insert(Spool::new(disk)?);
                spool.write_bytes(&std::mem::take(&mut bytes))?;
                spool.write_bytes(&piece[..count])?;
            } else {
                bytes.extend_from_slice(&piece[..count]);
            }
        }
        if self.start.is_empty() {
            return Err(place.fault(EMPTY));
        }
        self.hash = self.digest.take().map(Digest::finish);
        if let Some(spool) = spool {
            return self.on_disk(spool);
        }
        self.source = Source::Memory(Cursor::new(bytes.into()));
        self.rewind()
    }

    /// Whether the bytes of a pipe are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// Moves the bytes of a pipe from memory to a spool file.
    pub(crate) fn move_to_disk(&mut self, disk: &Disk) -> Result<()> {
        let Source::Memory(bytes) = &self.source else { return Ok(()) };
        let mut spool = Spool::new(disk)?;
        spool.write_bytes(bytes.get_ref())?;
        self.on_disk(spool)
    }

    fn on_disk(&mut self, spool: Spool) -> Result<()> {
        let file = spool.into_file()?;
        let about = file.metadata().map_err(|error| self.place.unreadable(error))?;
        self.source = Source::Disk(file, about);
        self.rewind()
    }

    /// Starts again at the first byte.
    fn rewind(&mut self) -> Result<()> {
        let start = self.start.len() as u64;
        let found = match &mut self.source {
            Source::Disk(file, _) => file.seek(SeekFrom::Start(start)),
            Source::Memory(bytes) => bytes.seek(SeekFrom::Start(start)),
            Source::Stream(_) => Ok(0),
        };
        self.taken = 0;
        found.map(|_| ()).map_err(|error| self.place.unreadable(error))
    }

    /// The first bytes.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }

    /// The text of the file, decompressed. The first bytes decide the compression and not the name, because browsers often
    /// decompress files and keep the name.
    pub(crate) fn text(&mut self) -> Result<Input<'_>> {
        let size = self.length();
        let path = self.place.path.clone();
        self.hash_in_thread();
        let opened = || {
            let mut file = BufReader::with_capacity(1 << 16, self);
            let packed = is_packed(file.fill_buf()?);
            Ok(Input {
                reader: packed::unpacked(Box::new(file))?,
                size: size.filter(|_| !packed),
                tabs: false,
            })
        };
        opened().map_err(|error| failed(&path, error))
    }

    /// The whole text of a small file, decompressed, and the SHA-256 of the file.
    pub(crate) fn whole_text(mut self) -> Result<(Vec<u8>, String)> {
        let path = self.place.path.clone();
        let mut text = Vec::new();
        self.text()?.read_to_end(&mut text).map_err(|error| failed(&path, error))?;
        Ok((text, self.sha256()?))
    }

    /// The bytes of a file in order, and their number, which bounds the sizes in its headers.
    pub(crate) fn in_order(&mut self) -> Result<(Box<dyn Read + Send + '_>, u64)> {
        if let Some(length) = self.length() {
            return Ok((Box::new(self), length));
        }
        let bytes = self.whole()?;
        Ok((Box::new(Cursor::new(bytes.clone())), bytes.len() as u64))
    }

    /// Random access before the file is read; the bytes of a pipe are kept in memory for that.
    pub(crate) fn preview(&mut self) -> Result<Random> {
        match &self.source {
            Source::Disk(file, about) if about.len() > 0 => {
                let file = file.try_clone().map_err(|error| self.place.unreadable(error))?;
                return Ok(Random::on_disk(file, about.len()));
            }
            Source::Memory(bytes) => return Ok(Random::in_memory(bytes.get_ref().clone())),
            Source::Disk(..) | Source::Stream(_) => {}
        }
        let bytes = self.whole()?;
        self.hash = self.digest.take().map(Digest::finish);
        self.source = Source::Memory(Cursor::new(bytes.clone()));
        self.rewind()?;
        Ok(Random::in_memory(bytes))
    }

    /// Calls `read` with random access to the file. The bytes of a pipe are kept in memory for that; a file on a disk is hashed at the
    /// same time, from the same handle, and must not change meanwhile.
    pub(crate) fn at_random<T: Send>(&mut self, read: impl FnOnce(Random) -> Result<T> + Send) -> Result<T> {
        // Later reads find the end of the file.
        let (file, before) = match std::mem::replace(&mut self.source, Source::Stream(Box::new(io::empty())))
        {
            Source::Disk(file, about) if about.len() > 0 => (file, about),
            Source::Memory(cursor) => {
                let bytes = cursor.get_ref().clone();
                self.source = Source::Memory(cursor);
                return read(Random::in_memory(bytes));
            }
            other => {
                self.source = other;
                return read(Random::in_memory(self.whole()?));
            }
        };
        self.taken = self.start.len();
        let unreadable = |error| self.place.unreadable(error);
        let random = Random::on_disk(file, before.len());
        let mut digest = self.digest.take();
        let hash = || match &mut digest {
            Some(digest) => digest.update_from(random.clone()),
            None => Ok(()),
        };
        let (found, hashed) = rayon::join(|| read(random.clone()), hash);
        let (found, ()) = (found?, hashed.map_err(unreadable)?);
        self.digest = digest;
        let after = random.metadata().map_err(unreadable)?;
        if after.is_some_and(|after| {
            (after.len(), after.modified().ok()) != (before.len(), before.modified().ok())
        }) {
            return Err(self.place.fault("was changed while it was read; read it when it is finished"));
        }
        Ok(found)
    }

    /// The SHA-256 of the whole file in hexadecimal digits; bytes that were not read yet are read for it. Empty unless the file
    /// was opened with `hashed`.
    pub(crate) fn sha256(mut self) -> Result<String> {
        if let Some(hash) = self.hash {
            return Ok(hash);
        }
        let rest = io::copy(&mut self, &mut io::sink());
        rest.map_err(|error| self.place.unreadable(error))?;
        Ok(self.digest.map(Digest::finish).unwrap_or_default())
    }

    /// The length of a file on a disk. The system reports 0 for files that it generates.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Disk(_, about) => Some(about.len()).filter(|length| *length > 0),
            Source::Memory(bytes) => Some(bytes.get_ref().len() as u64).filter(|length| *length > 0),
            Source::Stream(_) => None,
        }
    }

    /// All bytes of a file of unknown length.
    fn whole(&mut self) -> Result<Bytes> {
        let mut bytes = Vec::new();
        loop {
            // The length of a pipe is not known.
            let place = self.place.clone();
            let more = bytes.len().max(PIECE);
            place.reserve(&mut bytes, more)?;
            let capacity = (bytes.capacity() - bytes.len()) as u64;
            let read = self.by_ref().take(capacity).read_to_end(&mut bytes);
            if read.map_err(|error| place.unreadable(error))? == 0 {
                break;
            }
        }
        if bytes.is_empty() {
            return Err(self.place.fault(EMPTY));
        }
        Ok(bytes.into())
    }

    /// Hashes the following bytes in another thread.
    fn hash_in_thread(&mut self) {
        self.digest = self.digest.take().map(Digest::in_thread);
    }
}

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut start = &self.start[self.taken..];
        let count = if start.is_empty() { self.source.read(buffer)? } else { start.read(buffer)? };
        self.taken = self.start.len().min(self.taken + count);
        if let Some(digest) = &mut self.digest {
            digest.update(&buffer[..count]);
        }
        Ok(count)
    }

    /// Fills long buffers in pieces, and hashes each piece in place while the next one is read.
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Self { start, taken, source, digest, .. } = self;
        let (first, rest) = buffer.split_at_mut(buffer.len().min(start.len() - *taken));
        first.copy_from_slice(&start[*taken..*taken + first.len()]);
        *taken += first.len();
        let Some(digest) = digest else { return source.read_exact(rest) };
        digest.update(first);
        if rest.len() <= PIECE {
            source.read_exact(rest)?;
            digest.update(rest);
            return Ok(());
        }
        rayon::scope(|_| {
            let mut last: &[u8] = &[];
            for piece in rest.chunks_mut(PIECE) {
                rayon::join(|| source.read_exact(piece), || digest.update(last)).0?;
                last = piece;
            }
            digest.update(last);
            Ok(())
        })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Disk(file, _) => file.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

/// The text of a file, decompressed.
pub(crate) struct Input<'a> {
    reader: Box<dyn Read + Send + 'a>,
    /// The length of the text, if known: that of a plain file.
    pub size: Option<u64>,
    /// Tabs are known to separate its fields.
    pub tabs: bool,
}

impl<'a> Input<'a> {
    /// The decompressed text of a reader.
    pub(crate) fn new(reader: impl Read + Send + 'a) -> io::Result<Self> {
        let reader = BufReader::with_capacity(1 << 16, reader);
        Ok(Self { reader: packed::unpacked(Box::new(reader))?, size: None, tabs: false })
    }

    /// The text of a sheet.
    pub(crate) fn of_sheet(text: impl Read + Send + 'a) -> Self {
        Self { reader: Box::new(text), size: None, tabs: true }
    }

    /// Up to `count` bytes from the start of the text, which `Read` returns again.
    pub(crate) fn start(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        self.by_ref().take(count as u64).read_to_end(&mut start)?;
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(start.clone()).chain(rest));
        Ok(start)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// The whole text of a small file, decompressed.
pub(crate) fn text(path: &Path) -> Result<Vec<u8>> {
    Opened::new(path, false)?.whole_text().map(|(text, _)| text)
}

/// The error of a failed read, for the user.
pub(crate) fn failed(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Position::file(path).unreadable(error);
    }
    if error.raw_os_error().is_some() {
        return Error::Io { path: path.to_owned(), source: error };
    }
    // All other errors are those of decompressors.
    let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the compressed data end too early: the file was cut off, copy or download it again".into()
    } else {
        format!("the compressed data are damaged ({error}): copy or download the file again")
    };
    Error::in_file(path, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_while_parts_of_it_are_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        std::fs::write(&path, "before").unwrap();
        let mut file = Opened::new(&path, true).unwrap();
        let error =
            file.at_random(|_| std::fs::write(&path, "afterwards").map_err(|error| failed(&path, error)));
        assert!(
            error
                .unwrap_err()
                .to_string()
                .ends_with("was changed while it was read; read it when it is finished")
        );
        let mut file = Opened::new(&path, true).unwrap();
        file.at_random(|_| Ok(())).unwrap();
        assert_eq!(file.sha256().unwrap(), sha256(b"afterwards"));
    }
}
