//! Whether what a method keeps fits into memory, asked before it is taken.

use daimc::{Error, Result};

/// What is taken as available where the system does not say.
const ASSUMED: f64 = 4e9;

/// Bytes that can be had without swapping, if the system says so.
fn available_memory() -> f64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    };
    read().map_or(ASSUMED, |kilobytes| 1024.0 * kilobytes)
}

/// Fails if what a method keeps of its instances, so many bytes, is more than can be had.
pub(super) fn check_memory(what: &str, instances: usize, needed: f64) -> Result<()> {
    compare_memory(what, instances, needed, available_memory())
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
    fn memory_is_checked_before_it_is_taken() {
        assert!(compare_memory("it keeps them", 2000, 1e8, 1e9).is_ok());
        let refused = compare_memory("it keeps them", 100_000, 1.2e11, 8e9).unwrap_err().to_string();
        assert!(
            refused.contains("it keeps them, 120.0 GB for these") && refused.contains("sample"),
            "{refused}"
        );
    }
}
