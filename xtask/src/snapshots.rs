//! Rewrites the files that tests compare outputs with: snapshots of outputs and help texts, schemas, rendered studies.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Folders with snapshots only. They are emptied first, so that snapshots without a test disappear.
const FOLDERS: &[&str] = &[
    "crates/report/tests/snapshots",
    "crates/study/tests/snapshots",
    "crates/cli/tests/snapshots",
    "crates/view/tests/snapshots",
];

/// Arguments of `cargo test` for the tests that compare.
///
/// The arguments select the whole workspace, like `cargo xtask test`: for a single package libraries have other
/// features and would be built again.
const TESTS: &[&[&str]] = &[
    &["--workspace", "--test", "report", "--", "snapshots::"],
    &["--workspace", "--test", "study", "--", "snapshots::", "the_rendered_studies", "schema"],
    &["--workspace", "--bin", "linerate", "--", "snapshots::"],
    &["--workspace", "--test", "pages", "--", "snapshots::"],
    &["-p", "linerate-model", "--test", "it", "--", "schema"],
];

/// Rewrites all files. `git diff` then shows the changes.
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
