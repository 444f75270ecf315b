//! Main memory: how much there is, and how much of it this process may use.

use crate::UsableMemory;
use linerate_sys::cgroup;
use std::fs;
use std::path::{Path, PathBuf};

/// Files with the limit of a control group, bytes: of version 2 (Documentation/admin-guide/cgroup-v2.rst) and of
/// version 1 (Documentation/admin-guide/cgroup-v1/memory.rst). A group without a limit has `max` or a number beyond any
/// memory.
const LIMITS: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];

/// Returns the main memory that this process may use.
pub fn usable_memory() -> UsableMemory {
    if cgroup::is_hidden("memory") {
        return UsableMemory::Unknown;
    }
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|meminfo| total(&meminfo));
    total.map_or(UsableMemory::Unknown, |total| UsableMemory::Known(usable(total, &cgroup::groups("memory"))))
}

/// Bytes of main memory by `/proc/meminfo`.
pub(crate) fn total(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 =
        meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Every group above holds too: the tightest limit counts.
fn usable(total: u64, groups: &[PathBuf]) -> u64 {
    groups.iter().filter_map(|group| limit(group)).fold(total, u64::min)
}

/// The limit of a group; none if it sets none.
fn limit(group: &Path) -> Option<u64> {
    LIMITS.iter().find_map(|file| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_memory_is_read_in_bytes() {
        assert_eq!(total("MemTotal:        8138772 kB\nMemFree: 1 kB\n"), Some(8_138_772 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn the_tightest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let (above, own) = (root.path().join("system.slice"), root.path().join("system.slice/agent.service"));
        fs::create_dir_all(&own).expect("directories");
        let groups = [own.clone(), above.clone(), root.path().to_owned()];
        let usable = || usable(8 << 30, &groups);
        assert_eq!(usable(), 8 << 30, "the root group has no limit");
        fs::write(own.join("memory.max"), "1073741824\n").expect("written");
        fs::write(above.join("memory.max"), "max\n").expect("written");
        assert_eq!(usable(), 1 << 30);
        fs::write(above.join("memory.max"), "536870912\n").expect("written");
        assert_eq!(usable(), 512 << 20);
        for group in [&own, &above] {
            fs::remove_file(group.join("memory.max")).expect("removed");
        }
        fs::write(own.join("memory.limit_in_bytes"), "9223372036854771712\n").expect("written");
        assert_eq!(usable(), 8 << 30, "version 1 without a limit");
        fs::write(own.join("memory.limit_in_bytes"), "268435456\n").expect("written");
        assert_eq!(usable(), 256 << 20);
    }
}
