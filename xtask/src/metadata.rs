//! Output of `cargo metadata`: the packages and their dependencies.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Packages, and their dependencies with the selected features and on the selected platforms.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Resolve,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) id: String,
    pub(crate) license: Option<String>,
    /// Registry or repository. `None` for packages of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) targets: Vec<Target>,
}

/// Target of a package: a library, a program, a test.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Target {
    /// `lib`, `bin`, `proc-macro`, ...
    pub(crate) kind: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// Package that is used on the selected platforms.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
pub(crate) struct DependencyKind {
    /// `None` for a linked dependency, otherwise `build` or `dev`.
    pub(crate) kind: Option<String>,
}

/// Runs `cargo metadata` and parses its output.
pub(crate) fn read<T: DeserializeOwned>(arguments: &[&str]) -> Result<T> {
    let mut command = crate::process::cargo();
    command.args(["metadata", "--format-version", "1"]).args(arguments);
    let output = command.output().context("starting `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("reading what `cargo metadata` wrote")
}
