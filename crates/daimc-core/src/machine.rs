//! Properties of the computer.

pub mod memory;

use std::sync::OnceLock;

/// The size that is assumed if the system does not report it.
const USUAL: usize = 1 << 20;

/// The bytes of the second-level cache of a core.
pub(crate) fn second_level_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| (0..8).find_map(level_two).unwrap_or(USUAL))
}

/// The size of a cache of the first core, as Linux reports it, if it is of the second level.
fn level_two(index: usize) -> Option<usize> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}")).ok()
    };
    if read("level")?.trim() != "2" {
        return None;
    }
    bytes(read("size")?.trim())
}

/// Bytes of a size such as `1024K`.
fn bytes(size: &str) -> Option<usize> {
    let unit = size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len());
    let factor = match &size[unit..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    size[..unit].parse::<usize>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_system_writes_them() {
        assert_eq!(["1024K", "2M", "512"].map(bytes), [Some(1 << 20), Some(2 << 20), Some(512)]);
        assert_eq!(["", "K", "0K", "1 parsec", "99999999999999999999K"].map(bytes), [None; 5]);
        assert!(second_level_cache() >= 1 << 10);
    }
}
