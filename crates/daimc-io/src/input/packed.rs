//! Compressed text, recognised by its first bytes.

use std::io::{self, BufRead, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::memory;

#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Bzip2,
    Xz,
    Zstandard,
}

/// Whether the first bytes are those of a compressed file.
pub(crate) fn is_packed(start: &[u8]) -> bool {
    packing(start).is_some()
}

fn packing(start: &[u8]) -> Option<Packing> {
    // A frame of Zstandard, or a skippable one, which pzstd writes first.
    let zstandard = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || (start.len() >= 4 && start[0] & 0xf0 == 0x50 && start[1..4] == [0x2a, 0x4d, 0x18]);
    // The fourth byte is the block size, a digit, followed by a block or by the end of an empty file.
    let block = |mark: &[u8]| start.get(4..10).is_some_and(|found| found == mark);
    let bzip2 = start.starts_with(b"BZh") && (block(b"1AY&SY") || block(b"\x17\x72\x45\x38\x50\x90"));
    let candidates = [
        (Packing::Gzip, start.starts_with(&[0x1f, 0x8b])),
        (Packing::Bzip2, bzip2),
        (Packing::Xz, start.starts_with(b"\xfd7zXZ\0")),
        (Packing::Zstandard, zstandard),
    ];
    candidates.into_iter().find(|(_, fits)| *fits).map(|(packing, _)| packing)
}

/// The decompressed text of a reader. Several members are one text, as bgzip, pbzip2 and pixz write them.
pub(super) fn unpacked<'a>(mut file: Box<dyn BufRead + Send + 'a>) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match packing(file.fill_buf()?) {
        None => file,
        Some(Packing::Gzip) => Box::new(MultiGzDecoder::new(file)),
        Some(Packing::Bzip2) => Box::new(MultiBzDecoder::new(file)),
        Some(Packing::Xz) => {
            // The window size in a header can be up to 4 GB.
            let most = memory::available().map_or(u64::MAX, |bytes| bytes / 1024);
            Box::new(XzReader::new_mem_limit(file, true, u32::try_from(most).unwrap_or(u32::MAX)))
        }
        Some(Packing::Zstandard) => Box::new(zstd::Decoder::with_buffer(file)?),
    })
}
