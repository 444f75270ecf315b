//! Measures one case: builds the lab, runs the test in it, and reads the verdict from the record.

use super::BadInput;
use super::cases::Case;
use super::verdict::Verdict;
use crate::process::{CommandFailed, Running, cargo};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time after which a case is ended.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// Exit code of linerate if it refuses a bench or a command.
const REFUSED: i32 = 2;

/// The linerate to measure with, and the folder of its records.
pub(super) struct Laboratory<'a> {
    pub(super) program: PathBuf,
    /// Folder for each record and its bench. `None` keeps no record.
    pub(super) records: Option<&'a Path>,
}

impl Laboratory<'_> {
    /// Measures a case once and returns its verdict.
    ///
    /// # Errors
    ///
    /// [`BadInput`] if linerate refuses the bench or the test; another error if they cannot be measured.
    pub(super) fn measure(&self, run: u32, case: &Case) -> Result<Verdict> {
        let record = self.record(&format!("{run}-{}", case.name), &case.bench, &case.test)?;
        case.verdict(&record).context("the record holds no verdict")
    }

    /// Runs linerate with the arguments `test` in the lab of `bench`, and returns the record.
    ///
    /// `name` stands for both in errors and file names.
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
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let file = folder.join(format!("{name}.json"));
        fs::write(&file, record).with_context(|| format!("writing {}", file.display()))?;
        write_bench(&name, bench, &folder.join(format!("{name}.toml")))
    }
}

/// Writes the bench file of the case called `name`.
pub(super) fn write_bench(name: &str, bench: &toml::Table, file: &Path) -> Result<()> {
    let text = toml::to_string(bench).with_context(|| format!("writing the bench of {name}"))?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Turns the error of a linerate that refused the case into [`BadInput`]: the grid must be changed.
fn refused(name: &str, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<CommandFailed>() {
        Some(failed) if failed.code == Some(REFUSED) => {
            BadInput(format!("linerate refuses the case {name}: {}", failed.output)).into()
        }
        _ => error,
    }
}

/// Builds linerate with the development profile.
///
/// # Errors
///
/// The build fails.
pub(super) fn build() -> Result<PathBuf> {
    let status = cargo().args(["build", "--quiet", "-p", "linerate"]).status().context("running cargo")?;
    if !status.success() {
        bail!("linerate does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(target.join("debug/linerate"))
}
