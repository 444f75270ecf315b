//! Every check that is no test, in order, each with one line of summary. All run, so that one run tells all that is wrong.

use anyhow::{Context, Result, bail};
use std::time::Instant;

/// One check: a name and the cargo command that makes it.
struct Check {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// What to do about it, where cargo does not say.
    remedy: &'static str,
}

/// The cheap ones first.
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
    let began = Instant::now();
    let mut failed = Vec::new();
    for check in CHECKS {
        if !make(check)? {
            failed.push(format!("check `{}` failed: {}", check.name, check.remedy));
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    eprintln!("all checks passed in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Makes one check. Returns whether it passed.
fn make(check: &Check) -> Result<bool> {
    eprintln!("==> {}: cargo {}", check.name, check.arguments.join(" "));
    let began = Instant::now();
    let status = crate::process::cargo()
        .args(check.arguments)
        .envs(check.environment.iter().copied())
        .status()
        .with_context(|| format!("starting `cargo {}`", check.arguments.join(" ")))?;
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        eprintln!("<== {}: FAILED after {seconds:.0} s", check.name);
        return Ok(false);
    }
    eprintln!("<== {}: passed in {seconds:.0} s", check.name);
    Ok(true)
}
