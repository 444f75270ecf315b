//! Runs every check that is not a test, with one line of summary each. A failed check does not stop the others.

use anyhow::{Context, Result, bail};
use std::time::Instant;

/// A check and its cargo command.
struct Check {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// Advice if the check fails, in addition to cargo's.
    remedy: &'static str,
}

/// All checks, the cheap ones first.
const CHECKS: &[Check] = &[
    Check {
        name: "format",
        arguments: &["fmt", "--all", "--", "--check"],
        environment: &[],
        remedy: "`cargo fmt --all` repairs it; `rustup component add rustfmt` installs it",
    },
    Check { name: "layers", arguments: &["xtask", "layers"], environment: &[], remedy: "see ARCHITECTURE.md" },
    Check {
        name: "dependencies",
        arguments: &["xtask", "deny"],
        environment: &[],
        remedy: "deny.toml has the rules, and who wants each version that is listed",
    },
    Check {
        name: "kernel programs",
        arguments: &["xtask", "bpf", "--check"],
        environment: &[],
        remedy: "`cargo xtask bpf` makes the objects anew; `scripts/install-packages.sh check` installs clang",
    },
    Check {
        name: "clippy",
        arguments: &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        environment: &[],
        remedy: "`rustup component add clippy` installs it",
    },
    Check {
        name: "without optional features",
        arguments: &["clippy", "-p", "linerate", "--no-default-features", "--quiet", "--", "-D", "warnings"],
        environment: &[],
        remedy: "code of the features png, smb, snmp and tui stands behind them",
    },
    Check {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps", "--quiet"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        remedy: "rustdoc's message is above",
    },
];

/// Runs all checks.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let mut failed = Vec::new();
    for check in CHECKS {
        if !check.passes()? {
            failed.push(format!("check `{}` failed: {}", check.name, check.remedy));
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    eprintln!("all checks passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

impl Check {
    /// Runs the check and returns whether it passed.
    fn passes(&self) -> Result<bool> {
        eprintln!("==> {}: cargo {}", self.name, self.arguments.join(" "));
        let started = Instant::now();
        let status = crate::process::cargo()
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .status()
            .with_context(|| format!("starting `cargo {}`", self.arguments.join(" ")))?;
        let seconds = started.elapsed().as_secs_f64();
        if !status.success() {
            eprintln!("<== {}: FAILED after {seconds:.0} s", self.name);
            return Ok(false);
        }
        eprintln!("<== {}: passed in {seconds:.0} s", self.name);
        Ok(true)
    }
}
