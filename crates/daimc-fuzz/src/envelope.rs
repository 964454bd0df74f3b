//! Container formats. The payload is mutated and wrapped again with valid checksums and lengths, without which readers would
//! reject nearly every mutant at once.

use std::io::{Cursor, Read, Write};

use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use daimc_fuzz::Random;

/// A seed without its container.
pub enum Envelope {
    /// The content of a gzip file.
    Gzip(Vec<u8>),
    /// The content of a Zstandard file.
    Zstandard(Vec<u8>),
    /// The files of an archive.
    Zip(Vec<(String, Vec<u8>)>),
    /// The 128-byte header and the elements, which are compressed separately.
    Mat(Vec<u8>, Vec<Vec<u8>>),
    /// The header, which is preceded by its length, and the tensors.
    SafeTensors(Vec<u8>, Vec<u8>),
    /// The pages and the footer, which is followed by its length.
    Parquet(Vec<u8>, Vec<u8>),
}

impl Envelope {
    /// Unwraps a seed; `None` if it has no container.
    pub fn open(seed: &[u8]) -> Option<Self> {
        if seed.starts_with(&[0x1f, 0x8b]) {
            let mut inner = Vec::new();
            MultiGzDecoder::new(seed).read_to_end(&mut inner).ok()?;
            return Some(Self::Gzip(inner));
        }
        if seed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return zstd::decode_all(seed).ok().map(Self::Zstandard);
        }
        if seed.starts_with(b"PK") {
            let mut archive = ZipArchive::new(Cursor::new(seed)).ok()?;
            let mut entries = Vec::new();
            for index in 0..archive.len() {
                let mut entry = archive.by_index(index).ok()?;
                let mut content = Vec::new();
                entry.read_to_end(&mut content).ok()?;
                entries.push((String::from_utf8_lossy(entry.name_raw()).into_owned(), content));
            }
            return Some(Self::Zip(entries));
        }
        if seed.starts_with(b"MATLAB 5.0") {
            let (header, mut rest) = seed.split_at_checked(128)?;
            let mut elements = Vec::new();
            while let Some((&tag, after)) = rest.split_first_chunk::<8>() {
                if tag[..4] != [15, 0, 0, 0] {
                    return None;
                }
                let length = u32::from_le_bytes([tag[4], tag[5], tag[6], tag[7]]) as usize;
                let (compressed, next) = after.split_at_checked(length)?;
                let mut inner = Vec::new();
                ZlibDecoder::new(compressed).read_to_end(&mut inner).ok()?;
                elements.push(inner);
                rest = next;
            }
            return Some(Self::Mat(header.to_vec(), elements));
        }
        if seed.starts_with(b"PAR1") && seed.len() > 12 {
            let (body, end) = seed.split_at(seed.len() - 8);
            let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
            let (pages, footer) = body.split_at_checked(body.len().checked_sub(length)?)?;
            return Some(Self::Parquet(pages.to_vec(), footer.to_vec()));
        }
        let (length, rest) = seed.split_first_chunk::<8>()?;
        let (header, tensors) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        header.starts_with(b"{").then(|| Self::SafeTensors(header.to_vec(), tensors.to_vec()))
    }

    /// Wraps the payload again after `change` has changed one part of it.
    pub fn wrap(&self, random: &mut Random, change: impl Fn(&mut Vec<u8>, &mut Random)) -> Vec<u8> {
        let changed = |part: &[u8], random: &mut Random| {
            let mut part = part.to_vec();
            change(&mut part, random);
            part
        };
        // Writing to memory cannot fail.
        match self {
            Self::Gzip(inner) => {
                let mut out = GzEncoder::new(Vec::new(), Compression::fast());
                let _ = out.write_all(&changed(inner, random));
                out.finish().unwrap_or_default()
            }
            Self::Zstandard(inner) => zstd::bulk::compress(&changed(inner, random), 1).unwrap_or_default(),
            Self::Zip(entries) => zip(entries, random.below(entries.len()), random, changed),
            Self::Mat(header, elements) => {
                let mut out = header.clone();
                let which = random.below(elements.len());
                for (index, element) in elements.iter().enumerate() {
                    let element = if index == which { changed(element, random) } else { element.clone() };
                    let mut inner = ZlibEncoder::new(Vec::new(), Compression::fast());
                    let _ = inner.write_all(&element);
                    let inner = inner.finish().unwrap_or_default();
                    out.extend([15, inner.len() as u32].into_iter().flat_map(u32::to_le_bytes));
                    out.extend(inner);
                }
                out
            }
            Self::SafeTensors(header, tensors) => {
                let header = changed(header, random);
                let mut out = (header.len() as u64).to_le_bytes().to_vec();
                out.extend(header);
                out.extend(tensors);
                out
            }
            Self::Parquet(pages, footer) => {
                let (mut out, footer) = if random.once_in(2) {
                    (changed(pages, random), footer.clone())
                } else {
                    (pages.clone(), changed(footer, random))
                };
                out.extend(&footer);
                out.extend((footer.len() as u32).to_le_bytes());
                out.extend(b"PAR1");
                out
            }
        }
    }
}

fn zip(
    entries: &[(String, Vec<u8>)],
    which: usize,
    random: &mut Random,
    changed: impl Fn(&[u8], &mut Random) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let method = if random.once_in(4) { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    for (index, (name, content)) in entries.iter().enumerate() {
        let content = if index == which { changed(content, random) } else { content.clone() };
        let options = SimpleFileOptions::default().compression_method(method);
        let _ = out.start_file(name.as_str(), options).map(|()| out.write_all(&content));
    }
    out.finish().map(Cursor::into_inner).unwrap_or_default()
}
