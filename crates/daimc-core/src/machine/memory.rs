//! The amount of available memory.
//!
//! A failed allocation aborts the program, and on most systems it does not even fail: the process is killed when it
//! uses memory that it was promised. Code that needs much memory therefore checks beforehand.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit of the user; the largest number if none is set.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the maximum number of bytes that this process may use, whatever the computer has.
pub fn limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The number of bytes that this process can still allocate: the remainder of the user's limit, or else the minimum of
/// what its resource limits, its control groups and the system leave. `None` if the system does not report it.
pub fn available() -> Option<u64> {
    System { root: Path::new("/"), limit: LIMIT.load(Ordering::Relaxed) }.available()
}

/// The number of bytes of address space that the resource limits of this process leave; `None` if there is no limit, or
/// the system does not report it. Stacks of threads take address space before they take memory.
pub fn addresses() -> Option<u64> {
    System { root: Path::new("/"), limit: u64::MAX }.left("Max address space", "VmSize:")
}

/// The files in which the system reports its state.
struct System<'a> {
    root: &'a Path,
    limit: u64,
}

impl System<'_> {
    fn available(&self) -> Option<u64> {
        if self.limit < u64::MAX {
            return self.held("VmRSS:").map(|held| self.limit.saturating_sub(held));
        }
        let addresses = self.left("Max address space", "VmSize:");
        let data = self.left("Max data size", "VmData:");
        [addresses, data, self.of_groups(), self.of_machine()].into_iter().flatten().min()
    }

    /// The memory of the process, of one kind.
    fn held(&self, kind: &str) -> Option<u64> {
        field(&self.text("proc/self/status")?, kind).map(|kib| kib * 1024)
    }

    /// The remainder of a resource limit (`ulimit`) of one kind; `None` if there is none.
    fn left(&self, limit: &str, kind: &str) -> Option<u64> {
        let limits = self.text("proc/self/limits")?;
        let limit = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        // The first number is the soft limit; "unlimited" is not a number.
        let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(self.held(kind)?))
    }

    /// The free memory of the computer, including the page cache.
    fn of_machine(&self) -> Option<u64> {
        field(&self.text("proc/meminfo")?, "MemAvailable:").map(|kib| kib * 1024)
    }

    /// The remainder of the control groups of the process, its own and all above it, of either version.
    fn of_groups(&self) -> Option<u64> {
        let groups = self.text("proc/self/cgroup")?;
        let lines = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        });
        let left = lines.filter_map(|(_, controllers, group)| {
            let (mount, names) = match controllers {
                "" => ("sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"]),
                _ if controllers.split(',').any(|controller| controller == "memory") => (
                    "sys/fs/cgroup/memory",
                    ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
                ),
                _ => return None,
            };
            let group = Path::new(group.trim_start_matches('/'));
            group.ancestors().filter_map(|group| self.of_group(&Path::new(mount).join(group), names)).min()
        });
        left.min()
    }

    fn of_group(&self, group: &Path, [limit, used, dropped]: [&str; 3]) -> Option<u64> {
        // "max" means no limit.
        let number = |name: &str| self.text(group.join(name))?.trim().parse::<u64>().ok();
        let kept = self.text(group.join("memory.stat")).and_then(|stat| field(&stat, dropped)).unwrap_or(0);
        Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(kept)))
    }

    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// The number after a word at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn available(limit: u64, files: &[(&str, &str)]) -> Option<u64> {
        System { root: system(files).path(), limit }.available()
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");

    #[test]
    fn the_minimum_of_system_and_control_groups_is_available() {
        assert_eq!(available(NO_LIMIT, &[]), None);
        assert_eq!(available(NO_LIMIT, &[MACHINE]), Some(8000 * 1024));
        let second = [
            MACHINE,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "5\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/a/memory.current", "900000\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 300000\n"),
        ];
        assert_eq!(available(NO_LIMIT, &second), Some(400_000));
        let first = [
            MACHINE,
            ("proc/self/cgroup", "12:cpu:/x\n4:hugetlb,memory:/x\n0::/\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "700000\n"),
            ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "800000\n"),
        ];
        assert_eq!(available(NO_LIMIT, &first), Some(0));
    }

    const HELD: (&str, &str) =
        ("proc/self/status", "Name:\tx\nVmSize:\t 900 kB\nVmRSS:\t 100 kB\nVmData:\t 50 kB\n");

    #[test]
    fn a_limit_of_the_user_overrides_all_others() {
        assert_eq!(available(150 * 1024, &[MACHINE, HELD]), Some(50 * 1024));
        assert_eq!(available(50 * 1024, &[MACHINE, HELD]), Some(0));
    }

    #[test]
    fn resource_limits_count_minus_the_memory_in_use() {
        let limits = |data: &str, addresses: &str| {
            let lines = [("Max cpu time", "7"), ("Max data size", data), ("Max address space", addresses)];
            let line =
                |(name, soft): &(&str, &str)| format!("{name:26}{soft:21}unlimited            bytes\n");
            lines.iter().map(line).collect::<String>()
        };
        let with = |limits: &str| available(NO_LIMIT, &[MACHINE, HELD, ("proc/self/limits", limits)]);
        assert_eq!(with(&limits("unlimited", "unlimited")), Some(8000 * 1024));
        assert_eq!(with(&limits("unlimited", "1024000")), Some(100 * 1024));
        assert_eq!(with(&limits("102400", "1024000")), Some(50 * 1024));
        assert_eq!(with(&limits("102400", "1024")), Some(0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_computer_reports_its_memory() {
        assert!(super::available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
