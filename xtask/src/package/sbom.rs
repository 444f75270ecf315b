//! Bill of materials: every crate that the program is linked with, as CycloneDX 1.5 (cyclonedx.org/docs/1.5/json).

use super::Release;
use crate::metadata::{self, Metadata, Node, Package};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The parts of `Cargo.lock` with the checksums of the sources.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes `linerate-VERSION-NAME.cdx.json` for the program of `target`.
pub(super) fn write(release: &Release, target: &str, name: &str) -> Result<PathBuf> {
    let metadata: Metadata = metadata::read(&["--locked", "--filter-platform", target])?;
    let program = metadata
        .packages
        .iter()
        .find(|package| package.name == "linerate" && package.source.is_none())
        .context("the workspace has no package `linerate`")?;
    let linked = linked(&metadata, &program.id);
    let sums = sums()?;
    let mut components: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| package.id != program.id && linked.contains(package.id.as_str()))
        .collect();
    components.sort_by_key(|package| (&package.name, &package.version));
    let components: Vec<_> = components
        .into_iter()
        .map(|package| {
            let mut component = json!({
                "type": "library",
                "bom-ref": reference(package),
                "name": package.name,
                "version": package.version,
                "purl": reference(package),
            });
            if let Some(licence) = &package.license {
                // Cargo once wrote `MIT/Apache-2.0`, which SPDX does not know.
                component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
            }
            if let Some(sum) = sums.get(&(package.name.clone(), package.version.clone())) {
                component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
            }
            component
        })
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": reference(program),
                "name": "linerate",
                "version": program.version,
                "purl": reference(program),
                "licenses": [{ "expression": program.license }],
            },
        },
        "components": components,
    });
    let to = release.out.join(format!("linerate-{}-{}.cdx.json", release.version, name));
    fs::write(&to, format!("{bill:#}\n")).with_context(|| format!("writing {}", to.display()))?;
    Ok(to)
}

/// Returns all packages that `program` is linked with, itself included. Macros and their dependencies are not linked,
/// since they run in the compiler.
fn linked<'a>(metadata: &'a Metadata, program: &'a str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let macros: BTreeSet<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.targets.iter().flat_map(|target| &target.kind).any(|kind| kind == "proc-macro"))
        .map(|package| package.id.as_str())
        .collect();
    let mut linked = BTreeSet::new();
    let mut waiting = vec![program];
    while let Some(id) = waiting.pop() {
        if macros.contains(id) || !linked.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            if dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    linked
}

/// Returns the checksum of each package's source by name and version.
fn sums() -> Result<BTreeMap<(String, String), String>> {
    let lock = fs::read_to_string("Cargo.lock").context("reading Cargo.lock")?;
    let lock: Lock = toml::from_str(&lock).context("reading Cargo.lock")?;
    let sums = lock.package.into_iter().filter_map(|locked| Some(((locked.name, locked.version), locked.checksum?)));
    Ok(sums.collect())
}

/// Returns the package's URL, which is its reference in the bill.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, DependencyKind, Resolve, Target};

    #[test]
    fn only_linked_packages_are_listed() {
        let node = |id: &str, deps: &[(&str, Option<&str>)]| Node {
            id: id.to_owned(),
            deps: deps
                .iter()
                .map(|(pkg, kind)| Dependency {
                    pkg: (*pkg).to_owned(),
                    dep_kinds: vec![DependencyKind { kind: kind.map(str::to_owned) }],
                })
                .collect(),
        };
        let package = |id: &str, kind: &str| Package {
            name: id.to_owned(),
            version: "1.0.0".to_owned(),
            id: id.to_owned(),
            license: None,
            source: None,
            targets: vec![Target { kind: vec![kind.to_owned()] }],
        };
        let nodes = vec![
            node("program", &[("library", None), ("derive", None), ("tests", Some("dev")), ("cc", Some("build"))]),
            node("library", &[("deep", None), ("program", None)]),
            node("tests", &[("of-tests", None)]),
            node("derive", &[("syntax", None)]),
        ];
        let packages = vec![package("library", "lib"), package("derive", "proc-macro"), package("syntax", "lib")];
        let metadata = Metadata { packages, resolve: Resolve { nodes } };
        assert_eq!(linked(&metadata, "program"), BTreeSet::from(["deep", "library", "program"]));
    }
}
