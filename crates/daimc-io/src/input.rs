//! Opens files of text, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::{Error, Place, Result};

/// The text of a file, decompressed.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    /// How many bytes of text there are, where that is known: of a plain file.
    pub size: Option<u64>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Opens a file. What it is compressed with is told by its first bytes and not by its name, because programs
/// that fetch files often decompress them and leave the name.
pub(crate) fn open(path: &Path) -> Result<Input> {
    if let Ok(about) = std::fs::metadata(path) {
        Place::file(path).refuse_device(&about)?;
    }
    let opened = || {
        let file = File::open(path)?;
        // Pipes have no size, and files that the system makes up say 0.
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|about| about.len());
        let size = size.filter(|size| *size > 0);
        let mut file = BufReader::with_capacity(1 << 16, file);
        let start = file.fill_buf()?;
        Ok(if start.starts_with(&[0x1f, 0x8b]) {
            // Several members, one after another, are one file: bgzip writes them.
            Input { reader: Box::new(MultiGzDecoder::new(file)), size: None }
        } else if is_zstandard(start) {
            Input { reader: Box::new(zstd::Decoder::with_buffer(file)?), size: None }
        } else {
            Input { reader: Box::new(file), size }
        })
    };
    opened().map_err(|error| failed(path, error))
}

/// Whether a frame of Zstandard starts here, or one that is to be skipped, as pzstd writes first.
fn is_zstandard(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || (start.len() >= 4 && start[0] & 0xf0 == 0x50 && start[1..4] == [0x2a, 0x4d, 0x18])
}

/// What an error of reading means to whoever has the file.
pub(crate) fn failed(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Place::file(path).unreadable(error);
    }
    if error.raw_os_error().is_some() {
        return Error::Io { path: path.to_owned(), source: error };
    }
    // All others come from a decompressor.
    let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the compressed data end too early: the file was cut off, copy or download it again".into()
    } else {
        format!("the compressed data are damaged ({error}): copy or download the file again")
    };
    Error::in_file(path, reason)
}
