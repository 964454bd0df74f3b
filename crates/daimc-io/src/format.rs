//! Detects the format of a file.

use std::path::Path;

use crate::arrow;
use crate::hdf5::is_hdf5;
use crate::mat::is_level_4;
use crate::paths::ENDINGS;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    /// A zip archive of any contents.
    Zip,
    /// HDF5 of any contents.
    Hdf5,
    Mat,
    Parquet,
    /// A file or a stream of Arrow.
    Arrow,
    MatrixMarket,
    /// CSV, TSV and the like, or a Matrix Market file, which its first line identifies.
    Text,
}

impl Format {
    /// Detects the format by the name of the file or else by its first bytes, with which no text starts.
    pub(crate) fn of(path: &Path, start: &[u8]) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let candidates = [
            (Self::Npy, ends(&[".npy"])),
            (Self::Zip, ends(&[".npz", ".zip"])),
            (Self::Hdf5, ends(&[".h5ad", ".h5mu", ".h5", ".hdf5"])),
            (Self::Hdf5, is_hdf5(start)),
            (Self::Mat, ends(&[".mat"])),
            (Self::Parquet, ends(&[".parquet", ".pq"])),
            (Self::MatrixMarket, ENDINGS.iter().any(|ending| name.ends_with(&format!(".mtx{ending}")))),
            (Self::Arrow, ends(&[".feather", ".arrow", ".arrows", ".ipc"]) && !start.starts_with(b"FEA1")),
            (Self::Npy, start.starts_with(b"\x93NUMPY")),
            (Self::Zip, start.starts_with(b"PK\x03\x04")),
            (Self::Mat, is_mat(start)),
            (Self::Parquet, start.starts_with(b"PAR1\x15")),
            (Self::Arrow, start.starts_with(arrow::MAGIC) && start.get(6..8) == Some(&[0, 0])),
            (Self::Arrow, start.starts_with(arrow::CONTINUATION)),
        ];
        candidates.into_iter().find(|(_, fits)| *fits).map_or(Self::Text, |(format, _)| format)
    }

    /// Whether it is read sequentially.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::MatrixMarket | Self::Text)
    }
}

/// Recognises level 5 by its magic bytes, and level 4 by the type of its first matrix, which has zero bytes that no text has.
fn is_mat(start: &[u8]) -> bool {
    is_level_4(start) || start.get(124..128).is_some_and(|mark| mark == b"\0\x01IM" || mark == b"\x01\0MI")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_or_else_the_first_bytes() {
        let of = |name: &str, start: &[u8]| Format::of(Path::new(name), start);
        assert_eq!(of("a.NPY", b"id,x"), Format::Npy);
        assert_eq!(of("a.pq", b""), Format::Parquet);
        assert_eq!(of("a.npz", b"\x93NUMPY\x01"), Format::Zip);
        assert_eq!(of("a.mtx.gz", b"\x1f\x8b"), Format::MatrixMarket);
        assert_eq!(of("a.mtx.xz", b""), Format::MatrixMarket);
        assert_eq!(of("/dev/fd/63", b"\x93NUMPY\x01"), Format::Npy);
        assert_eq!(of("-", b"PK\x03\x04rest"), Format::Zip);
        assert_eq!(of("-", b"PAR1\x15\x04"), Format::Parquet);
        assert_eq!(of("-", b"PAR1,CD4\n"), Format::Text);
        let mut mat = b"MATLAB 5.0 MAT-file".to_vec();
        mat.resize(124, b' ');
        mat.extend(b"\0\x01IM");
        assert_eq!(of("-", &mat), Format::Mat);
        assert_eq!(of("a.mat", b"\x89HDF\r\n\x1a\n"), Format::Hdf5);
        assert_eq!(of("a.h5ad", b""), Format::Hdf5);
        assert_eq!(of("-", b"ARROW1\0\0\xff"), Format::Arrow);
        assert_eq!(of("-", b"ARROW1,x\n"), Format::Text);
        assert_eq!(of("-", b"\xff\xff\xff\xff\x10\0\0\0"), Format::Arrow);
        assert_eq!(of("a.feather", b"FEA1"), Format::Text);
        assert_eq!(of("-", b""), Format::Text);
    }
}
