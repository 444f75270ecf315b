//! Builds the program for Windows, and runs the tests of its crates under Wine. What Wine 8 lacks is built here: `process_prng.c`.

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
/// Environment variable with the path of the program for Windows, for the tests of the tier.
pub(crate) const PROGRAM_VARIABLE: &str = "LINERATE_WINDOWS_PROGRAM";
/// Environment variable with the folder in which Wine has made its files.
pub(crate) const PREFIX_VARIABLE: &str = "LINERATE_WINE_PREFIX";
/// Crates with tests that run under Wine.
const TESTED: [&str; 9] = [
    "linerate-sys",
    "linerate-units",
    "linerate-text",
    "linerate-search",
    "linerate-model",
    "linerate-store",
    "linerate-probes",
    "linerate-smb",
    "linerate-copy",
];
/// Time after which a test program is taken to hang. Wine makes its folder in the first run.
const LIMIT: Duration = Duration::from_secs(300);

/// The program for Windows, and a prefix of Wine to copy.
pub(crate) struct WindowsProgram {
    pub(crate) program: PathBuf,
    pub(crate) prefix: PathBuf,
}

/// Builds the program, and runs the tests of its crates under Wine whose names contain `filter`.
pub(crate) fn prepare(filter: &str) -> Result<WindowsProgram> {
    add_target()?;
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--package", "linerate", "--target", TARGET, "--", "-D", "warnings"]);
    if !clippy.status().context("starting `cargo clippy`")?.success() {
        bail!("the program is not in order for Windows; the compiler's message is above");
    }
    let unit_tests = executables(cargo().args(["test", "--no-run", "--lib"]).args(packages(&TESTED)))?;
    let program = executables(cargo().args(["build", "--package", "linerate"]))?;
    let program = program.into_iter().next().context("cargo built no program")?;
    let folder = program.parent().context("a program has a folder")?;
    build_random(folder)?;
    let prefix = folder.join("wine");
    for test in unit_tests {
        build_random(test.parent().context("a program has a folder")?)?;
        let mut wine = Command::new(WINE);
        // Wine keeps its files where the build's are.
        wine.arg(&test).arg(filter).env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all");
        let output = process::run(wine, LIMIT)?;
        let summary = output.stdout.lines().find_map(|line| line.strip_prefix("test result: "));
        let name = test.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        println!("{name}: {}", summary.with_context(|| format!("{name} printed no result"))?);
    }
    Ok(WindowsProgram { program, prefix })
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

/// Runs a build for Windows and returns the files of its programs.
fn executables(build: &mut Command) -> Result<Vec<PathBuf>> {
    build.args(["--message-format", "json-render-diagnostics", "--target", TARGET]).stderr(Stdio::inherit());
    let output = build.output().context("starting cargo")?;
    if !output.status.success() {
        bail!("the build for Windows failed; the compiler's message is above");
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect())
}

/// Builds the library of random numbers into `folder`.
fn build_random(folder: &Path) -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wine/process_prng.c");
    let mut compiler = Command::new(C_COMPILER);
    compiler.args(["-shared", "-o"]).arg(folder.join(RANDOM)).arg(source).arg("-ladvapi32");
    let built = compiler.status();
    let built =
        built.with_context(|| format!("starting {C_COMPILER}: `scripts/install-packages.sh windows` installs it"))?;
    if built.success() { Ok(()) } else { bail!("{C_COMPILER} could not build {RANDOM}; its message is above") }
}
