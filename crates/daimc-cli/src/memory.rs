//! Memory: the limit of `--memory`, and whether data fit into the available memory.

use daimc::text::bytes;
use daimc_io::Size;

use crate::failure::{Failure, Result};

/// Sets the memory limit of `--memory`.
pub fn limit(size: &str) -> Result<()> {
    let Some(bytes) = parse(size) else {
        let reason = "write a number and a unit, such as 500MB or 16GB";
        return Err(Failure::Usage(format!("--memory '{size}': {reason}")));
    };
    daimc_io::memory::limit(bytes);
    Ok(())
}

/// The share of the available memory for data; the rest is for the fit.
const SHARE: f64 = 0.7;

/// The message for data that were expected to fit into memory and do not.
pub const FROM_DISK: &str =
    "the data do not fit into memory: rows are read from disk, in every pass over them";

/// The reason why data of these sizes cannot be read into memory; `None` if they can.
pub fn too_large(sizes: &[Size]) -> Option<String> {
    let (data, available) =
        (sizes.iter().map(|size| size.bytes).sum::<u64>() as f64, daimc_io::memory::available()? as f64);
    (data > SHARE * available).then(|| {
        format!(
            "the data take {} and {} of memory is available: rows are read from disk, in every pass over them",
            bytes(data),
            bytes(available)
        )
    })
}

/// Bytes that can be read into memory in addition to data of these sizes.
pub fn left(sizes: &[Size]) -> u64 {
    let known = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(size.bytes));
    let share = |available: u64| (SHARE * available as f64) as u64;
    daimc_io::memory::available().map_or(u64::MAX, |available| share(available).saturating_sub(known))
}

/// Fails before reading if the number of instances is known and V alone does not fit into memory.
pub fn check_latent(sizes: &[Size], latent: usize) -> Result<()> {
    let Some(instances) = sizes.iter().filter_map(|size| size.rows).max() else { return Ok(()) };
    let needed = (instances as f64) * (latent as f64) * 8.0;
    match daimc_io::memory::available() {
        Some(available) if needed > available as f64 => Err(Failure::Failed(format!(
            "V, {instances} instances × {latent}, takes {}, but {} of memory is available: allow more (ulimit, the limit of the \
             container, --memory), or use fewer clusters",
            bytes(needed),
            bytes(available as f64)
        ))),
        _ => Ok(()),
    }
}

/// Parses a size such as `16GB` into bytes; units are decimal and optional.
fn parse(size: &str) -> Option<u64> {
    let size = size.trim().to_ascii_lowercase();
    let unit = size.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(size.len());
    let factor = match size[unit..].trim_end_matches('b') {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = size[..unit].trim().parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        assert_eq!(parse("500MB"), Some(500_000_000));
        assert_eq!(parse("1.5 g"), Some(1_500_000_000));
        assert_eq!(parse("2GiB"), Some(2 << 30));
        assert_eq!(parse("4096"), Some(4096));
        for wrong in ["", "GB", "-1GB", "0", "1 parsec", "nan", "1e"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
