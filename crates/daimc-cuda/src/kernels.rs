//! The compiled kernels: `kernels/compile.py` makes them from the sources next to it.

use std::io;

macro_rules! archives {
    ($($source:literal)*) => {
        /// The modules of each source, as `kernels/compile.py` stores them: compressed PTX.
        const ARCHIVES: &[(&str, &[u8])] =
            &[$(($source, include_bytes!(concat!("../kernels/ptx/", $source, ".zst")))),*];
    };
}

archives! { "products" "fused" "latent" "update" "sums" "nearest" "holes" "links" "stored" }

/// Decompresses the PTX of a module, whose name begins with that of its source.
pub fn source(module: &str) -> io::Result<String> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no kernels are named '{module}'"));
    let source = module.split('_').next().unwrap_or(module);
    let (_, archive) = ARCHIVES.iter().find(|(name, _)| *name == source).ok_or_else(missing)?;
    let text = io::read_to_string(zstd::Decoder::new(*archive)?)?;
    let mut modules = text.split('\0').filter_map(|module| module.split_once('\n'));
    modules.find(|(name, _)| *name == module).map(|(_, ptx)| ptx.into()).ok_or_else(missing)
}

/// Threads per row of V, and numbers per thread, of the kernels in double precision.
const LATENT: [(usize, usize); 11] =
    [(1, 4), (1, 8), (1, 12), (1, 16), (1, 20), (1, 24), (2, 16), (4, 12), (4, 16), (8, 16), (16, 16)];

/// Threads per row of V, and tiles per row, of the kernels in single precision.
const UPDATE: [(usize, usize); 12] =
    [(4, 1), (4, 2), (4, 3), (4, 4), (2, 5), (2, 6), (2, 7), (2, 8), (8, 12), (8, 16), (8, 24), (8, 32)];

/// Maximum number of columns of V.
pub const MAX_COLUMNS: usize = 256;

/// Threads per row and numbers per thread for a V with `latent` columns, in double precision.
pub fn latent_shape(latent: usize) -> (usize, usize) {
    LATENT.into_iter().find(|(lanes, entries)| lanes * entries >= latent).unwrap_or(LATENT[LATENT.len() - 1])
}

/// Threads per row and tiles per row for a V with `latent` columns, in single precision.
pub fn update_shape(latent: usize) -> (usize, usize) {
    UPDATE.into_iter().find(|(_, tiles)| TILE * tiles >= latent).unwrap_or(UPDATE[UPDATE.len() - 1])
}

/// Columns of a tile of the products.
pub const TILE: usize = 8;
/// Maximum number of tiles per block.
const MAX_TILES: usize = 7;

/// Bytes of shared memory that a block can have on every GPU of compute capability 8.0 and later.
#[cfg(test)]
pub const MIN_SHARED: usize = 99 << 10;

/// Divides the columns of V: returns the tiles per group, and the number of groups.
pub fn tiles(latent: usize) -> (usize, usize) {
    let groups = latent.div_ceil(TILE * MAX_TILES).max(1);
    let tiles = latent.div_ceil(groups).div_ceil(TILE).max(1);
    (tiles, latent.div_ceil(tiles * TILE).max(1))
}

/// The value of a numeric constant in the source of a kernel: `constexpr TYPE NAME = VALUE;` or `#define NAME VALUE`.
#[cfg(test)]
pub fn constant<T: std::str::FromStr>(source: &str, name: &str) -> T {
    let of_line = |line: &str| {
        let value = match line.strip_prefix("#define ") {
            Some(macro_) => macro_.strip_prefix(name)?.strip_prefix(' ')?,
            None => line.strip_prefix("constexpr ")?.split_once(&format!(" {name} = "))?.1,
        };
        Some(value.trim_end_matches(';').to_string())
    };
    let mut values = source.lines().filter_map(of_line);
    let value = values.next().unwrap_or_else(|| panic!("no constant {name}"));
    assert!(values.next().is_none(), "{name} is defined twice");
    value.parse().unwrap_or_else(|_| panic!("{name} = {value} is not a number"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use daimc::accelerator::v_step;

    use super::*;

    #[test]
    fn kernels_use_the_constants_of_the_library() {
        let header = include_str!("../kernels/constants.cuh");
        let shared = [
            ("SMALLEST_DIAGONAL", v_step::SMALLEST_DIAGONAL),
            ("SMALLEST_REMAINDER", v_step::SMALLEST_REMAINDER),
        ];
        let defined =
            header.lines().filter(|line| line.starts_with("#define") && line.split(' ').count() == 3);
        assert_eq!(defined.count(), shared.len());
        let ptx = source("holes").unwrap();
        for (name, value) in shared {
            assert_eq!(constant::<f64>(header, name).to_bits(), value.to_bits(), "{name}");
            // PTX writes a double as its bits.
            assert!(ptx.contains(&format!("0d{:016X}", value.to_bits())), "the compiled kernels lack {name}");
        }
    }

    #[test]
    fn there_is_a_kernel_for_every_number_of_columns() {
        let mut needed = BTreeSet::new();
        for latent in 1..=MAX_COLUMNS {
            let (tiles, groups) = tiles(latent);
            assert!(tiles * groups * TILE >= latent && tiles * (groups - 1) * TILE < latent, "{latent}");
            for kind in ["f32", "tf32", "f64"] {
                needed.insert((format!("products_{kind}_{tiles}"), ".entry gather"));
            }
            let (lanes, entries) = latent_shape(latent);
            assert!(lanes * entries >= latent);
            needed.insert((format!("latent_{lanes}_{entries}"), ".entry latent_step"));
            let (lanes, tiles) = update_shape(latent);
            assert!(tiles * TILE >= latent);
            needed.insert((format!("update_{lanes}_{tiles}"), ".entry update"));
        }
        for (module, entry) in needed {
            assert!(source(&module).unwrap().contains(entry), "{module}");
        }
    }

    #[test]
    fn a_module_is_found_by_its_whole_name() {
        for module in ["", "fused", "latent_1", "latent_1_4\n", "sums_1", "unknown"] {
            assert_eq!(source(module).unwrap_err().kind(), io::ErrorKind::NotFound, "{module}");
        }
        for module in ["sums", "nearest", "holes", "links", "stored"] {
            let ptx = source(module).unwrap();
            assert!(ptx.contains(".target sm_80") && !ptx.contains('\0'), "{module}");
        }
    }
}
