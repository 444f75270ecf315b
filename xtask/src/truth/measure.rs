//! One case measured: the lab is built, the test is run in it, and the verdict is read from the record.

use super::BadInput;
use super::cases::Case;
use super::said::Said;
use crate::process::{CommandFailed, Running, cargo};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// No case takes longer.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// The exit code with which linerate refuses a bench or a command.
const REFUSED: i32 = 2;

/// The linerate to measure with, and where its records are kept.
pub(super) struct Laboratory<'a> {
    pub(super) program: PathBuf,
    /// Each record and its bench are written into this folder.
    pub(super) records: Option<&'a Path>,
}

impl Laboratory<'_> {
    /// Measures a case once, and returns what the verdict says.
    ///
    /// # Errors
    ///
    /// [`BadInput`] if linerate refuses the bench or the test; another error if they cannot be measured.
    pub(super) fn measure(&self, run: u32, case: &Case) -> Result<Said> {
        let record = self.record(&format!("{run}-{}", case.name), &case.bench, &case.test)?;
        Said::by(&record).context("the record holds no verdict")
    }

    /// Runs `test`, the arguments of linerate, in the lab of `bench`, and returns the record. `name` names both in errors and kept
    /// files.
    ///
    /// # Errors
    ///
    /// [`BadInput`] if linerate refuses the bench or the test; another error if they cannot be measured.
    pub(super) fn record(&self, name: &str, bench: &toml::Table, test: &str) -> Result<Value> {
        let folder = tempfile::tempdir().context("making a temporary directory")?;
        let file = folder.path().join("bench.toml");
        write_bench(name, bench, &file)?;
        let mut command = Command::new(&self.program);
        command.arg("lab").arg("--bench").arg(&file).arg("--").args(test.split_whitespace()).arg("--json");
        command.env("LINERATE_STORE", folder.path().join("results.db")).env("XDG_RUNTIME_DIR", folder.path());
        let output = match Running::start(command)?.finish(CASE_TIMEOUT) {
            Ok(output) => output,
            Err(error) => return Err(refused(name, error)),
        };
        let record: Value = serde_json::from_str(&output.stdout).context("reading linerate's record as JSON")?;
        self.keep(name, bench, &output.stdout)?;
        Ok(record)
    }

    fn keep(&self, name: &str, bench: &toml::Table, record: &str) -> Result<()> {
        let Some(folder) = self.records else { return Ok(()) };
        let name = name.replace('/', "_");
        let path = |kind: &str| folder.join(format!("{name}.{kind}"));
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(path("json"), record).with_context(|| format!("writing {}", path("json").display()))?;
        write_bench(&name, bench, &path("toml"))
    }
}

/// Writes the bench file of the case called `name`.
pub(super) fn write_bench(name: &str, bench: &toml::Table, file: &Path) -> Result<()> {
    let text = toml::to_string(bench).with_context(|| format!("writing the bench of {name}"))?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// An error of a command that linerate ran for a case: if it refused the case, the grid is to be changed.
fn refused(name: &str, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<CommandFailed>() {
        Some(failed) if failed.code == Some(REFUSED) => {
            BadInput(format!("linerate refuses the case {name}: {}", failed.said)).into()
        }
        _ => error,
    }
}

/// Builds linerate as for development.
///
/// # Errors
///
/// It does not build.
pub(super) fn build() -> Result<PathBuf> {
    let built = cargo().args(["build", "--quiet", "-p", "linerate"]).status().context("running cargo")?;
    if !built.success() {
        bail!("linerate does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(target.join("debug/linerate"))
}
