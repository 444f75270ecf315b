//! Control groups of this process, of either version.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory of this process's control group for `controller`, as `cpu` or `memory`, and those of the groups above
/// it, the own one first. Empty where no hierarchy with that controller is mounted.
pub fn groups(controller: &str) -> Vec<PathBuf> {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    groups_above(controller, &read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// Returns whether this process is in a control group of which no directory is visible, as in a container without `/sys/fs/cgroup`.
/// Its limits cannot be read then.
pub fn is_hidden(controller: &str) -> bool {
    let is_in_group = fs::read_to_string("/proc/self/cgroup").is_ok_and(|groups| !groups.trim().is_empty());
    is_in_group && !groups(controller).iter().any(|group| group.is_dir())
}

/// The directories of the controller's group in `groups` (`/proc/self/cgroup`) and of those above it, by where `mounts`
/// (`/proc/self/mountinfo`) has them, the own one first.
fn groups_above(controller: &str, groups: &str, mounts: &str) -> Vec<PathBuf> {
    let hierarchies = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        let second = number == "0" && controllers.is_empty();
        (second || controllers.split(',').any(|name| name == controller)).then_some((second, group))
    });
    let mut found = Vec::new();
    for (second, group) in hierarchies {
        let Some((root, mounted)) = mounts.lines().find_map(|line| mount(line, (!second).then_some(controller))) else {
            continue;
        };
        let Ok(inside) = Path::new(group).strip_prefix(root) else { continue };
        let own = mounted.join(inside);
        found.extend(own.ancestors().take_while(|above| above.starts_with(&mounted)).map(Path::to_owned));
    }
    found
}

/// The root and the place of a mount of the wanted hierarchy, that of version 1 with `controller` or that of version 2:
/// proc_pid_mountinfo(5).
fn mount<'a>(line: &'a str, controller: Option<&str>) -> Option<(&'a str, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1).unwrap_or_default());
    let wanted = match controller {
        None => kind == "cgroup2",
        Some(controller) => kind == "cgroup" && options.split(',').any(|name| name == controller),
    };
    let mut before = before.split(' ').skip(3);
    wanted.then(|| Some((before.next()?, PathBuf::from(before.next()?))))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        25 20 0:22 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        26 20 0:23 /box /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        27 20 0:24 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn finds_the_groups_of_both_versions() {
        let of = |controller, groups| {
            let found = groups_above(controller, groups, MOUNTS);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let paths = |groups| of("cpu", groups);
        assert_eq!(
            paths("0::/user.slice/x\n"),
            ["/sys/fs/cgroup/user.slice/x", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]
        );
        assert_eq!(
            paths("4:memory:/m\n3:cpu,cpuacct:/box/lab\n"),
            ["/sys/fs/cgroup/cpu,cpuacct/lab", "/sys/fs/cgroup/cpu,cpuacct"]
        );
        assert_eq!(paths("3:cpu:/elsewhere\n"), Vec::<String>::new());
        assert_eq!(
            of("memory", "4:memory:/m\n3:cpu,cpuacct:/box/lab\n"),
            ["/sys/fs/cgroup/memory/m", "/sys/fs/cgroup/memory"]
        );
        assert_eq!(of("memory", "0::/x\n"), ["/sys/fs/cgroup/x", "/sys/fs/cgroup"]);
    }
}
