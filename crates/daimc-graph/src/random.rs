//! Random numbers without a generator state.

/// A pseudo-random number that depends on `number` only.
pub(crate) fn mix(number: u64) -> u32 {
    let mut x = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x >> 32) as u32
}
