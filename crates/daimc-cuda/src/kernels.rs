//! The kernels, compiled: `kernels/compile.py` makes them of the sources beside it.

/// The modules by name.
macro_rules! modules {
    ($($name:literal)*) => {
        const MODULES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../kernels/ptx/", $name, ".ptx")))),*];
    };
}

modules! {
    "products_f32_1" "products_f32_2" "products_f32_3" "products_f32_4" "products_f32_5" "products_f32_6" "products_f32_7" "products_tf32_1" "products_tf32_2" "products_tf32_3" "products_tf32_4" "products_tf32_5" "products_tf32_6"
    "products_tf32_7" "products_f64_1" "products_f64_2" "products_f64_3" "products_f64_4" "products_f64_5"
    "products_f64_6" "products_f64_7"
    "fused_f32_2_8_4" "fused_f32_2_2_1" "fused_f32_2_4_4" "fused_f32_2_2_4" "fused_f32_2_1_4"
    "fused_f32_3_8_4" "fused_f32_3_2_1" "fused_f32_3_4_4" "fused_f32_3_2_4" "fused_f32_3_1_4"
    "fused_tf32_2_8_4" "fused_tf32_2_2_1" "fused_tf32_2_4_4" "fused_tf32_2_2_4" "fused_tf32_2_1_4"
    "fused_tf32_3_8_4" "fused_tf32_3_2_1" "fused_tf32_3_4_4" "fused_tf32_3_2_4" "fused_tf32_3_1_4"
    "latent_1_4" "latent_1_8" "latent_1_12" "latent_1_16" "latent_1_20" "latent_1_24"
    "latent_2_16" "latent_4_12" "latent_4_16" "latent_8_16" "latent_16_16"
    "update_4_1" "update_4_2" "update_4_3" "update_4_4" "update_2_5" "update_2_6"
    "update_2_7" "update_2_8" "update_8_12" "update_8_16" "update_8_24" "update_8_32"
    "sums" "nearest" "holes" "links" "given"
}

/// The PTX of a module.
pub fn source(module: &str) -> &'static str {
    MODULES.iter().find(|(name, _)| *name == module).map_or("", |(_, source)| source)
}

/// Threads that work on a row of V, and the numbers that each of them holds.
const LATENT: [(usize, usize); 11] =
    [(1, 4), (1, 8), (1, 12), (1, 16), (1, 20), (1, 24), (2, 16), (4, 12), (4, 16), (8, 16), (16, 16)];

/// Threads that work on a row of V in single precision, and its tiles.
const UPDATE: [(usize, usize); 12] =
    [(4, 1), (4, 2), (4, 3), (4, 4), (2, 5), (2, 6), (2, 7), (2, 8), (8, 12), (8, 16), (8, 24), (8, 32)];

/// Columns of V, at most.
pub const MOST_COLUMNS: usize = 256;

/// Threads per row and numbers per thread for a V with so many columns.
pub fn latent_shape(latent: usize) -> (usize, usize) {
    LATENT.into_iter().find(|(lanes, entries)| lanes * entries >= latent).unwrap_or(LATENT[LATENT.len() - 1])
}

/// Threads per row and tiles of a V with so many columns in single precision.
pub fn update_shape(latent: usize) -> (usize, usize) {
    UPDATE.into_iter().find(|(_, tiles)| TILE * tiles >= latent).unwrap_or(UPDATE[UPDATE.len() - 1])
}

/// Columns of a tile of the products, and the tiles that one block takes, at most.
pub const TILE: usize = 8;
const MOST_TILES: usize = 7;

/// Bytes of shared memory that a block has on every card of compute capability 8.0 and later.
#[cfg(test)]
pub const LEAST_SHARED: usize = 99 << 10;

/// How the columns of V are shared out: tiles in a group, and groups.
pub fn tiles(latent: usize) -> (usize, usize) {
    let groups = latent.div_ceil(TILE * MOST_TILES).max(1);
    let tiles = latent.div_ceil(groups).div_ceil(TILE).max(1);
    (tiles, latent.div_ceil(tiles * TILE).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_kernel_for_every_number_of_columns() {
        for latent in 1..=MOST_COLUMNS {
            let (tiles, groups) = tiles(latent);
            assert!(tiles * groups * TILE >= latent && tiles * (groups - 1) * TILE < latent, "{latent}");
            for kind in ["f32", "tf32", "f64"] {
                assert!(source(&format!("products_{kind}_{tiles}")).contains(".entry gather"));
            }
            let (lanes, entries) = latent_shape(latent);
            assert!(lanes * entries >= latent);
            assert!(source(&format!("latent_{lanes}_{entries}")).contains(".entry latent_step"));
            let (lanes, tiles) = update_shape(latent);
            assert!(tiles * TILE >= latent);
            assert!(source(&format!("update_{lanes}_{tiles}")).contains(".entry update"));
        }
    }
}
