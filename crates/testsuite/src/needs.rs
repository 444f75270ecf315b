//! Needs of tests.

use std::io::Write as _;
use std::path::PathBuf;

/// Right or program that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The right to make network namespaces, links and mounts.
    Root,
    /// The right to load programs into the kernel (XDP).
    Bpf,
    /// Wine and the program for Windows, which `cargo xtask test --wine` builds.
    Wine,
    /// One of these commands, separated by `|`. scripts/install-packages.sh installs all that tests need.
    Program(&'static str),
}

impl Need {
    /// Returns the reason why the need is not met on this machine, or `None` if it is met.
    fn missing(self) -> Option<String> {
        match self {
            Self::Root => (!linerate_sys::namespace::may_make_networks().unwrap_or(false))
                .then(|| "it makes network namespaces, which needs root".to_owned()),
            Self::Bpf => (!has_capability(BPF) && !has_capability(SYS_ADMIN))
                .then(|| "it loads programs into the kernel, which needs root (CAP_BPF)".to_owned()),
            Self::Wine => (std::env::var_os(crate::wine::PROGRAM_VARIABLE).is_none())
                .then(|| "it needs the program for Windows; `cargo xtask test --wine` builds it".to_owned()),
            Self::Program(names) => (!names.split('|').any(|name| program(name).is_some()))
                .then(|| format!("it needs {names}; `scripts/install-packages.sh test servers` installs it")),
        }
    }
}

/// Returns whether the test `test` can run on this machine. If not, prints the reason to standard error.
///
/// # Panics
/// A need is not met and the environment variable `CI` is set, so that no test may be skipped.
pub fn can_run(test: &str, needs: &[Need]) -> bool {
    let missing = needs.iter().find_map(|need| need.missing());
    if let Some(reason) = &missing {
        skip(test, reason);
    }
    missing.is_none()
}

/// Prints that the test `test`, or a part of it, cannot run on this machine, with the reason.
///
/// # Panics
/// The environment variable `CI` is set, so that no test may be skipped.
pub fn skip(test: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test} must not be skipped in CI: {reason}");
    // The test harness shows the output of eprintln! only for failed tests.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {reason}");
}

/// Returns the path of a command. Also searches folders of system programs, which a user's PATH may lack.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

// Numbers of capabilities, from linux/capability.h.
const SYS_ADMIN: u32 = 21;
const BPF: u32 = 39;

/// Returns whether the process has a capability in its effective set (proc_pid_status(5)).
fn has_capability(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn missing_command_is_named() {
        assert!(Need::Program("no-such-program|sh").missing().is_none());
        let reason = Need::Program("no-such-program").missing().expect("there is none");
        assert!(reason.contains("no-such-program") && reason.contains("install-packages"), "{reason}");
    }

    /// A new machine has only the programs that the script installs.
    #[test]
    fn every_program_that_a_test_needs_is_installed_by_the_script() {
        let script = include_str!("../../../scripts/install-packages.sh");
        let installed = |purpose: &str| -> Vec<&str> {
            let part = script.split(&format!(" {purpose})\n")).nth(1).and_then(|rest| rest.split(";;").next());
            let lines = part.expect("a part for each purpose").lines();
            lines.filter_map(|line| line.trim().strip_prefix("echo \"")).collect()
        };
        for (attribute, purpose, one_of_them) in [("#[lab_test(", "test", "nft"), ("#[server_test(", "servers", "smbd")]
        {
            let installed = installed(purpose);
            let mut needed = BTreeSet::new();
            programs(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), attribute, &mut needed);
            assert!(needed.contains(one_of_them), "{needed:?}");
            needed.retain(|name| !installed.iter().any(|line| line.starts_with(&format!("{name} "))));
            assert!(needed.is_empty(), "`scripts/install-packages.sh {purpose}` does not install {needed:?}");
        }
    }

    /// Adds the programs that tests with this attribute below a folder name as [`Need::Program`].
    fn programs(folder: &Path, attribute: &str, needed: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                programs(&path, attribute, needed);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                // Only the attribute, not its name in a comment or a text.
                let lines = text.lines().filter(|line| line.starts_with(attribute));
                let names = lines.flat_map(|line| line.split("Program(\"").skip(1));
                needed.extend(names.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
            }
        }
    }
}
