//! Groups of cores that share a last-level cache, from `/sys/devices/system/cpu`
//! (Documentation/ABI/testing/sysfs-devices-system-cpu).

use std::fs;
use std::path::Path;

/// Returns the `allowed` cores by the last-level cache that they share, by the files below `sys`, which is `/sys`.
///
/// The list is empty if the system does not say.
pub(crate) fn groups(sys: &Path, allowed: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for core in allowed {
        // The other cores of a group need not be asked.
        if groups.iter().any(|cores| cores.contains(core)) {
            continue;
        }
        if let Some(mut cores) = group(&sys.join(format!("devices/system/cpu/cpu{core}/cache"))) {
            cores.retain(|core| allowed.contains(core));
            groups.push(cores);
        }
    }
    groups
}

/// Returns the cores that share the cache of the highest level in `folder`.
fn group(folder: &Path) -> Option<Vec<u32>> {
    let mut highest: Option<(u32, String)> = None;
    for cache in fs::read_dir(folder).ok()?.flatten() {
        let Ok(level) = fs::read_to_string(cache.path().join("level")) else { continue };
        let Ok(level) = level.trim().parse() else { continue };
        let cores = fs::read_to_string(cache.path().join("shared_cpu_list")).ok()?;
        if highest.as_ref().is_none_or(|(other, _)| level > *other) {
            highest = Some((level, cores));
        }
    }
    list(highest?.1.trim())
}

/// Parses a list of cores, as in `0-3,8`.
fn list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_grouped_by_their_last_level_cache() {
        let sys = tempfile::tempdir().expect("a folder");
        for core in 0..6 {
            let shared = if core < 4 { "0-3" } else { "4-5" };
            for (index, level, cores) in [(0, "1", &*core.to_string()), (3, "3", shared), (1, "2", "0,1,4-5")] {
                let folder = sys.path().join(format!("devices/system/cpu/cpu{core}/cache/index{index}"));
                fs::create_dir_all(&folder).expect("made");
                fs::write(folder.join("level"), format!("{level}\n")).expect("written");
                fs::write(folder.join("shared_cpu_list"), format!("{cores}\n")).expect("written");
            }
        }
        assert_eq!(groups(sys.path(), &[0, 1, 2, 3, 4, 5]), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(groups(sys.path(), &[1, 2]), [[1, 2]]);
        assert_eq!(groups(&sys.path().join("none"), &[0]), Vec::<Vec<u32>>::new());
        assert_eq!((list("0,2-3"), list("x")), (Some(vec![0, 2, 3]), None));
    }
}
