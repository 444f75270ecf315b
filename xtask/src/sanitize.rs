//! The tests of crate `sys` under a sanitizer. All `unsafe` of the program is there (`cargo xtask layers` checks it), so it is the
//! place where memory can be misused. Miri is no help: it knows hardly any of the system calls that `sys` is about.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::process::Command;

/// What to look for.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to look for.
    #[arg(value_enum, default_value_t)]
    sanitizer: Sanitizer,
}

/// A sanitizer of the compiler.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Sanitizer {
    /// Accesses out of bounds or after a release, and leaks.
    #[default]
    Address,
    /// Data races between threads.
    Thread,
}

/// Runs the tests. The options of sanitizers are those of the nightly compiler only.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (name, more) = match arguments.sanitizer {
        Sanitizer::Address => ("address", &[][..]),
        // It changes how functions are called, so the standard library has to be built with it too.
        Sanitizer::Thread => ("thread", &["-Zbuild-std"][..]),
    };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut tests = Command::new("cargo");
    tests.args(["+nightly", "test", "--package", "linerate-sys", "--target", &target]).args(more);
    tests.args(["--target-dir", &format!("target/sanitize-{name}")]);
    let status = tests.env("RUSTFLAGS", format!("-Zsanitizer={name}")).env_remove("RUSTC").env_remove("CARGO").status();
    match status.context("starting cargo of the nightly toolchain; `rustup toolchain install nightly` installs it")? {
        status if status.success() => Ok(()),
        _ => bail!("the {name} sanitizer found a fault, or the tests failed: the message is above"),
    }
}
