//! Builds what is ported to Windows, and runs its tests under Wine. What Wine 8 lacks is built here: `process_prng.c`.

use crate::process::{self, cargo};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Target of the builds.
const TARGET: &str = "x86_64-pc-windows-gnu";
/// Compiler and linker of C for the target.
const C_COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Wine, as Debian's package wine64 has it.
const WINE: &str = "/usr/lib/wine/wine64";
/// Library that the standard library needs.
const RANDOM: &str = "bcryptprimitives.dll";
/// Crates that build for Windows.
const PORTED: [&str; 8] = [
    "linerate-sys",
    "linerate-observe",
    "linerate-report",
    "linerate-study",
    "linerate-search",
    "linerate-method",
    "linerate-model",
    "linerate-text",
];
/// Crates whose tests run under Wine. The others do the same on every system.
const TESTED: [&str; 1] = ["linerate-sys"];
/// Time after which a test program is taken to hang. Wine makes its folder in the first run.
const LIMIT: Duration = Duration::from_secs(300);

/// Builds and tests.
pub(crate) fn run() -> Result<()> {
    add_target()?;
    let mut clippy = cargo();
    clippy.arg("clippy").args(["--quiet", "--target", TARGET]).args(packages(&PORTED)).args(["--", "-D", "warnings"]);
    if !clippy.status().context("starting `cargo clippy`")?.success() {
        bail!("the crates that are ported to Windows do not build for it; the compiler's message is above");
    }
    println!("{} crates build for {TARGET}", PORTED.len());
    process::catch_interrupts()?;
    for program in test_programs()? {
        let folder = program.parent().context("a program has a folder")?;
        build_random(folder)?;
        let mut wine = Command::new(WINE);
        // Wine keeps its files where the build's are.
        wine.arg(&program).env("WINEPREFIX", folder.join("wine")).env("WINEDEBUG", "-all");
        let output = process::run(wine, LIMIT)?;
        let summary = output.stdout.lines().find_map(|line| line.strip_prefix("test result: "));
        let name = program.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        println!("{name}: {}", summary.with_context(|| format!("{name} printed no result"))?);
    }
    Ok(())
}

fn packages(names: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    names.iter().flat_map(|name| ["--package", name])
}

/// Installs the standard library of the target, if it is missing.
fn add_target() -> Result<()> {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let installed = installed.context("starting rustup: it installs the standard library for Windows")?;
    if String::from_utf8_lossy(&installed.stdout).lines().any(|target| target == TARGET) {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status().context("starting rustup")?;
    if added.success() { Ok(()) } else { bail!("`rustup target add {TARGET}` failed; its message is above") }
}

/// Builds the test programs and returns their files.
fn test_programs() -> Result<Vec<PathBuf>> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--lib", "--message-format", "json-render-diagnostics", "--target", TARGET]);
    let output = command.args(packages(&TESTED)).stderr(Stdio::inherit()).output().context("starting `cargo test`")?;
    if !output.status.success() {
        bail!("the tests do not build for Windows; the compiler's message is above");
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    Ok(programs.collect())
}

/// Builds the library of random numbers into `folder`.
fn build_random(folder: &Path) -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/windows/process_prng.c");
    let mut compiler = Command::new(C_COMPILER);
    compiler.args(["-shared", "-o"]).arg(folder.join(RANDOM)).arg(source).arg("-ladvapi32");
    let built = compiler.status();
    let built =
        built.with_context(|| format!("starting {C_COMPILER}: `scripts/install-packages.sh windows` installs it"))?;
    if built.success() { Ok(()) } else { bail!("{C_COMPILER} could not build {RANDOM}; its message is above") }
}
