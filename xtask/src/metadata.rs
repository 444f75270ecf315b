//! What `cargo metadata` knows of the packages and of who depends on whom.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The packages, and how they depend on each other with the features and on the platforms asked for.
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
    /// None in the tree itself.
    pub(crate) source: Option<String>,
    pub(crate) targets: Vec<Target>,
}

/// What a package builds: a library, a program, a test.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Target {
    /// `lib`, `bin`, `proc-macro`, ...
    pub(crate) kind: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package that is used on the platforms asked for.
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
    /// None for what is linked; `build` and `dev` are not.
    pub(crate) kind: Option<String>,
}

/// Runs `cargo metadata`, as `T` reads it.
pub(crate) fn read<T: DeserializeOwned>(arguments: &[&str]) -> Result<T> {
    let mut command = crate::process::cargo();
    command.args(["metadata", "--format-version", "1"]).args(arguments);
    let output = command.output().context("starting `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("reading what `cargo metadata` wrote")
}
