//! Runs the tests of crate `sys` under AddressSanitizer (accesses out of bounds or after a release, and leaks) and
//! under Miri (undefined behaviour by Rust's rules of aliasing and validity). Only this crate has `unsafe`, as `cargo
//! xtask layers` checks.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Tests that Miri runs. The others make system calls that Miri does not support.
const WITH_MIRI: [&str; 12] = [
    "affinity::",
    "capability::tests::a_set_is_shown",
    "cgroup::",
    "clock::",
    "netlink::tests::a_cut_message",
    "netlink::tests::packets_beyond",
    "packet::",
    "packet_ring::",
    "shaping::",
    "tcp::tests::the_layout",
    "thread::",
    "xdp::",
];

/// Runs the tests. Both tools need the nightly compiler.
pub(crate) fn run() -> Result<()> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut tests = nightly(&["test"]);
    tests.args(["--target", &target, "--target-dir", "target/sanitize-address"]);
    tests.env("RUSTFLAGS", "-Zsanitizer=address");
    ended_well(tests, "AddressSanitizer", "`rustup toolchain install nightly` installs it")?;
    let mut tests = nightly(&["miri", "test"]);
    // The tests read kernel files and the clock.
    tests
        .args(["--lib", "--target-dir", "target/miri", "--"])
        .args(WITH_MIRI)
        .env("MIRIFLAGS", "-Zmiri-disable-isolation");
    ended_well(tests, "Miri", "`rustup component add miri rust-src --toolchain nightly` installs it")
}

/// Returns a command of the nightly cargo for the crate.
fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(words).args(["--package", "linerate-sys"]).env_remove("RUSTC").env_remove("CARGO");
    command
}

fn ended_well(mut tests: Command, tool: &str, remedy: &str) -> Result<()> {
    let status =
        tests.status().with_context(|| format!("starting cargo of the nightly toolchain for {tool}; {remedy}"))?;
    if !status.success() {
        bail!("{tool} found a fault, or is missing ({remedy}), or the tests failed: the message is above");
    }
    Ok(())
}
