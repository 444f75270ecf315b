//! The tests of crate `sys` under AddressSanitizer: accesses out of bounds or after a release, and leaks. All `unsafe` of the program
//! is there (`cargo xtask layers` checks it), so it is the place where memory can be misused.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Runs the tests. The options of sanitizers are those of the nightly compiler only.
pub(crate) fn run() -> Result<()> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut tests = Command::new("cargo");
    tests.args(["+nightly", "test", "--package", "linerate-sys", "--target", &target]);
    tests.args(["--target-dir", "target/sanitize-address"]);
    let status = tests.env("RUSTFLAGS", "-Zsanitizer=address").env_remove("RUSTC").env_remove("CARGO").status();
    match status.context("starting cargo of the nightly toolchain; `rustup toolchain install nightly` installs it")? {
        status if status.success() => Ok(()),
        _ => bail!("AddressSanitizer found a fault, or the tests failed: the message is above"),
    }
}
