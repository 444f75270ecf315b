//! The disks that hold given folders: what they did, from `/sys/dev/block/*/stat` (Documentation/block/stat.rst).

use crate::proc::ProcFile;
use linerate_model::DiskUse;
use linerate_units::Nanos;
use nix::sys::stat::{major, minor};
use std::fs;

/// The disks of a host.
const BLOCK: &str = "/sys/block";
/// The file counts in these, whatever the disk's own are.
const SECTOR: u64 = 512;

/// A disk, or a part of one, kept open.
pub(crate) struct Disk {
    name: String,
    stat: ProcFile,
}

impl Disk {
    /// Returns the disk with this device number (`st_dev` of a file on it). Returns `None` if no single disk has it, as
    /// for files in memory, over the network, of a program, or of a file system that spans disks.
    pub(crate) fn of(device: u64) -> Option<Self> {
        let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        let name = fs::read_link(&folder).ok()?.file_name()?.to_string_lossy().into_owned();
        Some(Self { name, stat: ProcFile::open(&format!("{folder}/stat")) })
    }

    /// Lists the disks of this host. Partitions count with their disk.
    pub(crate) fn all() -> Vec<Self> {
        let names = fs::read_dir(BLOCK).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut all: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        all.sort_unstable();
        let disk = |name: String| Self { stat: ProcFile::open(&format!("{BLOCK}/{name}/stat")), name };
        all.into_iter().map(disk).collect()
    }

    /// Reads the use since the disk appeared. `None` if it cannot be read.
    pub(crate) fn read(&self) -> Option<DiskUse> {
        parse(&self.name, &self.stat.read()?)
    }
}

/// Returns the difference from `before` for each disk that could be read both times.
pub(crate) fn since(after: &[Option<DiskUse>], before: &[Option<DiskUse>]) -> Vec<DiskUse> {
    let passed = |(now, then): (&Option<DiskUse>, &Option<DiskUse>)| Some(now.as_ref()?.since(then.as_ref()?));
    after.iter().zip(before).filter_map(passed).collect()
}

/// Fields: reads, merged, sectors, ms; writes, merged, sectors, ms; under way, busy ms.
fn parse(name: &str, text: &str) -> Option<DiskUse> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [reads, _, read, _, writes, _, written, _, _, busy_ms, ..] = fields[..] else { return None };
    Some(DiskUse {
        name: name.to_owned(),
        reads,
        read_bytes: read.saturating_mul(SECTOR),
        writes,
        written_bytes: written.saturating_mul(SECTOR),
        busy: Nanos::from_millis(busy_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_differences_in_bytes() {
        let before = parse("sda1", "10 0 16 5 20 1 32 9 0 40 14\n");
        let after = parse("sda1", "13 0 24 6 25 1 96 11 1 340 17 0 0 0 0 2 1\n");
        let [used] = &since(&[after, None], &[before, None])[..] else { panic!("one disk") };
        assert_eq!((used.reads, used.read_bytes), (3, 8 * 512));
        assert_eq!((used.writes, used.written_bytes), (5, 64 * 512));
        assert_eq!(used.busy, Nanos::from_millis(300));
        assert_eq!(parse("sda1", "10 0 16"), None);
    }

    #[test]
    fn all_disks_are_those_of_the_system() {
        let listed = fs::read_dir(BLOCK).map_or(0, |all| all.flatten().count());
        assert_eq!(Disk::all().iter().filter_map(Disk::read).count(), listed);
    }

    #[test]
    fn what_is_in_memory_is_on_no_disk() {
        let of = |path: &str| nix::sys::stat::stat(path).map(|about| about.st_dev).expect(path);
        assert!(Disk::of(of("/proc")).is_none());
    }
}
