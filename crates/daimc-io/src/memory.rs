//! How much memory there is to take, and what is taken of it where a file decides.
//!
//! An allocation that fails ends the program without a word, and on most systems it does not even fail: the process is
//! killed when it uses what it was promised. So what a file asks for is compared with what there is beforehand.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(unix)]
use rustix::param::page_size;
#[cfg(unix)]
use rustix::process::{Resource, getrlimit};

/// What the user allows; the largest number where nothing was said.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on this process is to hold no more than so many bytes, whatever the machine has: readers refuse files that
/// need more.
pub fn limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// How many bytes this process can still take: what the limit of its user leaves, or else the least of what its resource
/// limits, its control groups and the machine leave. `None` where the system does not tell.
pub fn available() -> Option<u64> {
    System { root: Path::new("/"), limit: LIMIT.load(Ordering::Relaxed) }.available()
}

/// How many bytes of addresses the resource limits of this process leave it; `None` where there is no limit, or the system does
/// not tell. Stacks of threads take addresses before they take memory.
pub fn addresses() -> Option<u64> {
    let system = System { root: Path::new("/"), limit: u64::MAX };
    system.held().and_then(|held| addresses_left(&held))
}

/// Where the system tells about itself.
struct System<'a> {
    root: &'a Path,
    limit: u64,
}

/// Memory of the process, in bytes.
struct Held {
    addresses: u64,
    resident: u64,
    data: u64,
}

impl System<'_> {
    fn available(&self) -> Option<u64> {
        let held = self.held();
        if self.limit < u64::MAX {
            return held.map(|held| self.limit.saturating_sub(held.resident));
        }
        let resources = held.and_then(|held| of_resources(&held));
        [resources, self.of_groups(), self.of_machine()].into_iter().flatten().min()
    }

    fn held(&self) -> Option<Held> {
        let pages: Vec<u64> =
            self.text("proc/self/statm")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let &[addresses, resident, _, _, _, data, ..] = &*pages else { return None };
        let [addresses, resident, data] = [addresses, resident, data].map(|pages| pages * bytes_of_page());
        Some(Held { addresses, resident, data })
    }

    /// What the machine has free, or could have by dropping what it keeps of files.
    fn of_machine(&self) -> Option<u64> {
        field(&self.text("proc/meminfo")?, "MemAvailable:").map(|kib| kib * 1024)
    }

    /// What the control groups of the process leave: its own and all above it, of either version.
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
        // "max" is no limit.
        let number = |name: &str| self.text(group.join(name))?.trim().parse::<u64>().ok();
        let kept = self.text(group.join("memory.stat")).and_then(|stat| field(&stat, dropped)).unwrap_or(0);
        Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(kept)))
    }

    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// What `ulimit` leaves.
#[cfg(unix)]
fn of_resources(held: &Held) -> Option<u64> {
    [addresses_left(held), left(Resource::Data, held.data)].into_iter().flatten().min()
}

#[cfg(unix)]
fn addresses_left(held: &Held) -> Option<u64> {
    left(Resource::As, held.addresses)
}

#[cfg(unix)]
fn left(resource: Resource, held: u64) -> Option<u64> {
    getrlimit(resource).current.map(|limit| limit.saturating_sub(held))
}

#[cfg(not(unix))]
fn of_resources(_: &Held) -> Option<u64> {
    None
}

#[cfg(not(unix))]
fn addresses_left(_: &Held) -> Option<u64> {
    None
}

#[cfg(unix)]
fn bytes_of_page() -> u64 {
    page_size() as u64
}

#[cfg(not(unix))]
fn bytes_of_page() -> u64 {
    4096
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
    fn the_least_of_machine_and_groups_is_left() {
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

    #[test]
    fn what_the_user_says_counts_alone() {
        let held = ("proc/self/statm", "900 100 3 4 0 50 0\n");
        let page = bytes_of_page();
        assert_eq!(available(150 * page, &[MACHINE, held]), Some(50 * page));
        assert_eq!(available(50 * page, &[MACHINE, held]), Some(0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_tells() {
        assert!(super::available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
