//! Checks that the memory of a method is available, before it is allocated.

use daimc::{Error, Result};
use daimc_core::machine::memory::available;

/// The available memory if the system does not report it.
const ASSUMED: f64 = 4e9;

/// Fails if a method needs more bytes for its instances than are available.
pub(super) fn check_memory(what: &str, instances: usize, needed: f64) -> Result<()> {
    let available = available().map_or(ASSUMED, |bytes| bytes as f64);
    compare_memory(what, instances, needed, available)
}

fn compare_memory(what: &str, instances: usize, needed: f64, available: f64) -> Result<()> {
    if needed <= available {
        return Ok(());
    }
    let reason = format!(
        "{what}, {:.1} GB for these, and {:.1} GB are available; take a sample of the instances, or a method that is \
         linear in their number",
        needed / 1e9,
        available / 1e9
    );
    Err(Error::Unsuitable { what: "instances", value: instances.to_string(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_checked_before_it_is_allocated() {
        assert!(compare_memory("it keeps them", 2000, 1e8, 1e9).is_ok());
        let refused = compare_memory("it keeps them", 100_000, 1.2e11, 8e9).unwrap_err().to_string();
        assert!(
            refused.contains("it keeps them, 120.0 GB for these") && refused.contains("sample"),
            "{refused}"
        );
    }
}
