//! Checks licences, duplicate versions, sources and yanked versions of all dependencies by the rules of `deny.toml`.
//!
//! The file is cargo-deny's, which also checks advisories and requirements without a version. cargo-deny takes minutes
//! to compile, so the continuous integration runs this check instead, which needs only cargo.

mod licence;

use crate::metadata::{self, Metadata, Package};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

/// The rules of `deny.toml` that are checked here.
#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

/// Further licences that one package may have.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A duplicate version that is allowed.
#[derive(Deserialize)]
struct Skip {
    /// `name@version`.
    #[serde(rename = "crate")]
    package: String,
}

/// Checks the dependencies and prints each breach of a rule.
///
/// # Errors
/// A dependency breaks a rule.
pub(crate) fn run() -> Result<()> {
    let text = fs::read_to_string("deny.toml").context("reading deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("reading deny.toml")?;
    let packages = packages(&rules.graph.targets)?;
    let mut faults = licences(&rules.licenses, &packages);
    faults.extend(duplicates(&rules.bans.skip, &packages));
    faults.extend(sources(&packages));
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if !faults.is_empty() {
        bail!("{} breaches of deny.toml", faults.len());
    }
    println!("{} packages: licences, duplicates and sources are in order", packages.len());
    yanked(&packages)?;
    println!("advisories: NOT CHECKED, as the RustSec database lies on GitHub; `cargo deny check advisories` reads it");
    Ok(())
}

/// Returns all packages that are used on any of `targets`.
fn packages(targets: &[String]) -> Result<Vec<Package>> {
    let platforms = targets.iter().flat_map(|target| ["--filter-platform", target]);
    let arguments: Vec<&str> = std::iter::once("--all-features").chain(platforms).collect();
    let Metadata { packages, resolve } = metadata::read(&arguments)?;
    let used: BTreeSet<String> = resolve.nodes.into_iter().map(|node| node.id).collect();
    Ok(packages.into_iter().filter(|package| used.contains(&package.id)).collect())
}

fn licences(rules: &Licences, packages: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    for Package { name, version, license, .. } in packages {
        let exceptions = rules.exceptions.iter().filter(|exception| exception.package == *name);
        let exceptions: BTreeSet<&str> =
            exceptions.flat_map(|exception| &exception.allow).map(String::as_str).collect();
        let allowed = |licence: &str| rules.allow.contains(licence) || exceptions.contains(licence);
        let fault = match license.as_deref().map(|licence| licence::is_allowed(licence, &allowed)) {
            Some(Some(true)) => None,
            Some(Some(false)) => {
                Some(format!("{name} {version}: licence `{}` is not allowed", license.as_deref().unwrap_or_default()))
            }
            Some(None) => Some(format!("{name} {version}: its licence is no SPDX expression")),
            None => Some(format!("{name} {version}: it names no licence")),
        };
        faults.extend(fault);
    }
    faults
}

fn duplicates(skipped: &[Skip], packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let mut faults = Vec::new();
    for Skip { package } in skipped {
        let (name, version) = package.split_once('@').unwrap_or((package, ""));
        if !versions.get_mut(name).is_some_and(|versions| versions.len() > 1 && versions.remove(version)) {
            faults.push(format!("deny.toml skips {package}, which is no longer a duplicate"));
        }
    }
    let left = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    faults.extend(left.map(|(name, versions)| {
        let versions: Vec<&str> = versions.into_iter().collect();
        format!("{name}: versions {} (see `cargo tree --workspace -i {name}@{}`)", versions.join(", "), versions[0])
    }));
    faults
}

/// Lists the packages that do not come from the registry of most packages, which is cargo's own.
fn sources(packages: &[Package]) -> Vec<String> {
    let foreign: Vec<(&Package, &str)> =
        packages.iter().filter_map(|package| Some((package, package.source.as_deref()?))).collect();
    let mut registries = BTreeMap::<&str, usize>::new();
    for (_, source) in foreign.iter().filter(|(_, source)| source.starts_with("registry+")) {
        *registries.entry(source).or_default() += 1;
    }
    let usual = registries.into_iter().max_by_key(|(_, packages)| *packages).map(|(registry, _)| registry);
    let others = foreign.iter().filter(|(_, source)| Some(*source) != usual);
    others.map(|(package, source)| format!("{} {}: comes from {source}", package.name, package.version)).collect()
}

/// Asks the registry, through cargo, whether a version was yanked. cargo cannot resolve a manifest that requires a
/// yanked version.
fn yanked(packages: &[Package]) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder")?;
    fs::create_dir(folder.path().join("src")).context("making a folder")?;
    fs::write(folder.path().join("src/lib.rs"), "").context("writing an empty library")?;
    fs::write(folder.path().join("Cargo.toml"), manifest(packages)).context("writing a manifest")?;
    let mut command = crate::process::cargo();
    let output = command.current_dir(folder.path()).arg("generate-lockfile").output();
    let output = output.context("starting `cargo generate-lockfile`")?;
    if output.status.success() {
        println!("no version of a package was yanked");
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if errors.contains("is yanked") {
        bail!("a package was yanked; `cargo update -p NAME` takes another version:\n{errors}");
    }
    println!("yanked versions: NOT CHECKED, the registry cannot be asked:\n{errors}");
    Ok(())
}

/// Returns a manifest that requires exactly these versions.
fn manifest(packages: &[Package]) -> String {
    let mut manifest = String::from(
        "[package]\nname = \"versions\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n",
    );
    for (number, Package { name, version, .. }) in
        packages.iter().filter(|package| package.source.is_some()).enumerate()
    {
        let wants = format!("package = \"{name}\", version = \"={version}\", default-features = false");
        writeln!(manifest, "p{number} = {{ {wants} }}").expect("a String takes whatever is written");
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
        let source = Some("registry+https://registry.test/index".to_owned());
        let id = format!("{name}@{version}");
        Package {
            name: name.into(),
            version: version.into(),
            id,
            license: licence.map(str::to_owned),
            source,
            targets: Vec::new(),
        }
    }

    #[test]
    fn licence_that_is_not_allowed_is_reported() {
        let rules = Licences {
            allow: ["MIT".to_owned()].into(),
            exceptions: vec![Exception { package: "b".into(), allow: ["NCSA".to_owned()].into() }],
        };
        let packages = [
            package("a", "1.0.0", Some("GPL-3.0-only OR MIT")),
            package("b", "1.0.0", Some("MIT AND NCSA")),
            package("c", "1.0.0", Some("MIT AND NCSA")),
            package("d", "1.0.0", None),
        ];
        let faults = licences(&rules, &packages);
        assert_eq!(faults, ["c 1.0.0: licence `MIT AND NCSA` is not allowed", "d 1.0.0: it names no licence"]);
    }

    #[test]
    fn duplicates_are_listed_or_found() {
        let packages = [package("a", "1.0.0", None), package("a", "2.0.0", None), package("b", "1.0.0", None)];
        let skip = |package: &str| Skip { package: package.to_owned() };
        assert_eq!(duplicates(&[skip("a@1.0.0")], &packages), [""; 0]);
        let faults = duplicates(&[], &packages);
        assert!(faults.len() == 1 && faults[0].starts_with("a: versions 1.0.0, 2.0.0"), "{faults:?}");
        let faults = duplicates(&[skip("a@1.0.0"), skip("b@1.0.0")], &packages);
        assert_eq!(faults, ["deny.toml skips b@1.0.0, which is no longer a duplicate"]);
    }

    #[test]
    fn all_packages_come_from_one_registry() {
        let from = |name: &str, source: &str| Package { source: Some(source.into()), ..package(name, "1.0.0", None) };
        let local = Package { source: None, ..package("own", "1.0.0", None) };
        let usual = [package("a", "1.0.0", None), package("b", "1.0.0", None), local];
        assert_eq!(sources(&usual), [""; 0]);
        let others = [from("git", "git+https://host.test/a"), from("other", "registry+https://other.test/index")];
        let faults = sources(&[&usual[..], &others].concat());
        let expected = [
            "git 1.0.0: comes from git+https://host.test/a",
            "other 1.0.0: comes from registry+https://other.test/index",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn manifest_requires_exact_versions_of_foreign_packages() {
        let local = Package { source: None, ..package("own", "0.1.0", None) };
        let manifest = manifest(&[local, package("a", "1.0.0", None), package("a", "2.0.0", None)]);
        let wants: Vec<&str> = manifest.lines().filter(|line| line.starts_with('p')).collect();
        assert_eq!(wants.len(), 2, "{manifest}");
        assert_eq!(wants[1], "p1 = { package = \"a\", version = \"=2.0.0\", default-features = false }");
    }
}
