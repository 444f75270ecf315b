//! Writes anew what tests compare with files of the tree: snapshots of outputs and help texts, schemas, rendered studies.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Folders that hold snapshots and nothing else. A snapshot that no test names any more goes.
const FOLDERS: &[&str] = &[
    "crates/report/tests/snapshots",
    "crates/study/tests/snapshots",
    "crates/cli/tests/snapshots",
    "crates/view/tests/snapshots",
];

/// The tests that compare, as arguments of `cargo test`. Of the whole workspace, as `cargo xtask test` builds them: for one package
/// alone libraries have other features, and are built once more.
const TESTS: &[&[&str]] = &[
    &["--workspace", "--test", "report", "--", "snapshots::"],
    &["--workspace", "--test", "study", "--", "snapshots::", "the_rendered_studies", "schema"],
    &["--workspace", "--bin", "linerate", "--", "snapshots::"],
    &["--workspace", "--test", "pages", "--", "snapshots::"],
    &["-p", "linerate-model", "--test", "it", "--", "schema"],
];

/// Writes all of them; `git diff` then shows what changed.
pub(crate) fn run() -> Result<()> {
    for folder in FOLDERS.iter().map(Path::new).filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    for arguments in TESTS {
        let mut command = crate::process::cargo();
        command.args(["test", "--quiet"]).args(*arguments).env("INSTA_UPDATE", "always");
        let status = command.status().context("starting `cargo test`")?;
        if !status.success() {
            bail!(
                "`cargo test {}` failed; `git restore {}` undoes what was removed",
                arguments.join(" "),
                FOLDERS.join(" ")
            );
        }
    }
    println!("written anew; `git diff --stat` shows what changed");
    Ok(())
}
