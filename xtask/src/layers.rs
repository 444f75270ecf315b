//! Checks the dependencies between crates and between modules, and the purity of pure crates.
//!
//! ARCHITECTURE.md has the picture. The rules:
//! 1. every crate of the workspace is listed in [`HOUSE`];
//! 2. a dependency points to a lower layer; a crate of the world may also use a pure crate of its own layer;
//! 3. a pure crate depends on pure crates of the workspace only, and on no library that does I/O;
//! 4. a pure crate forbids `unsafe` and uses no socket, file, clock, thread, process or environment;
//! 5. `unsafe` is used in `linerate-sys` only;
//! 6. modules of one crate do not import each other in a circle ([`modules`]);
//! 7. every path in ARCHITECTURE.md exists;
//! 8. only the crates of [`KNOWS_SYSTEMS`] contain what one operating system has: `cfg(target_os)`, `cfg(unix)`, `std::os::unix`.
//!
//! Dependencies for tests are exempt from 2 and 3, test code from 4, integration tests from 8.

mod architecture;
mod modules;
mod source;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Right of a crate to do input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pure,
    World,
    /// Chores, fuzzing and the test suite. They may use any crate, and only tests may use them.
    Outside,
}

/// Layer and kind of a crate.
struct CratePlace {
    name: &'static str,
    layer: u8,
    kind: Kind,
}

const fn place(name: &'static str, layer: u8, kind: Kind) -> CratePlace {
    CratePlace { name, layer, kind }
}

/// Every crate with its layer and kind, from the lowest layer up.
const HOUSE: &[CratePlace] = &[
    place("linerate-text", 1, Kind::Pure),
    place("linerate-units", 1, Kind::Pure),
    place("linerate-sys", 1, Kind::World),
    place("linerate-model", 2, Kind::Pure),
    place("linerate-search", 2, Kind::Pure),
    place("linerate-observe", 2, Kind::World),
    place("linerate-engine", 2, Kind::World),
    place("linerate-discovery", 2, Kind::World),
    place("linerate-smb", 2, Kind::World),
    place("linerate-method", 3, Kind::Pure),
    place("linerate-store", 3, Kind::World),
    place("linerate-oncrpc", 3, Kind::World),
    place("linerate-report", 4, Kind::Pure),
    place("linerate-schedule", 4, Kind::Pure),
    place("linerate-bus", 4, Kind::World),
    place("linerate-frames", 4, Kind::World),
    place("linerate-streams", 4, Kind::World),
    place("linerate-nfs", 4, Kind::World),
    place("linerate-nfsd", 4, Kind::World),
    place("linerate-probes", 4, Kind::World),
    place("linerate-study", 5, Kind::Pure),
    place("linerate-iperf3", 5, Kind::World),
    place("linerate-copy", 5, Kind::World),
    place("linerate-control", 5, Kind::World),
    place("linerate-agent", 6, Kind::World),
    place("linerate-lab", 6, Kind::World),
    place("linerate-view", 7, Kind::World),
    place("linerate-runner", 7, Kind::World),
    place("linerate-fleet", 8, Kind::World),
    place("linerate", 9, Kind::World),
    place("linerate-fuzz", 10, Kind::Outside),
    place("xtask", 10, Kind::Outside),
    place("linerate-testsuite", 10, Kind::Outside),
    place("linerate-testsuite-macros", 10, Kind::Outside),
];

/// The only crate that may use `unsafe`.
const MAY_BE_UNSAFE: &str = "linerate-sys";

/// Crates that may distinguish operating systems. All others call `linerate-sys`.
const KNOWS_SYSTEMS: &[&str] = &[
    "linerate-sys",
    "linerate-observe",
    "linerate-lab",
    "linerate-frames",
    "linerate-nfsd",
    // It is to be published without linerate-sys.
    "linerate-smb",
    "linerate-testsuite",
    "xtask",
];

/// Libraries for I/O, which pure crates must not use.
const IO_LIBRARIES: &[&str] = &[
    "async-nats",
    "axum",
    "axum-server",
    "ctrlc",
    "libc",
    "mio",
    "nix",
    "reqwest",
    "rtnetlink",
    "rusqlite",
    "rustix",
    "socket2",
    "tokio",
    "tokio-postgres",
    "tokio-stream",
];

/// A crate of the workspace and its dependencies, without those of tests.
#[derive(Debug)]
struct Crate {
    name: String,
    folder: PathBuf,
    dependencies: Vec<String>,
}

/// Checks the workspace around the current folder.
pub(crate) fn run() -> Result<()> {
    let crates = workspace(&crate::metadata::read(&["--no-deps"])?)?;
    let mut faults = check_arrows(&crates);
    for each in &crates {
        faults.extend(check_source(each)?);
        faults.extend(modules::check(each)?);
    }
    faults.extend(architecture::check(Path::new("."))?);
    if faults.is_empty() {
        println!("{} crates stand where they should", crates.len());
        return Ok(());
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    bail!("{} breaches of the layer rules (xtask/src/layers.rs has them)", faults.len())
}

fn workspace(metadata: &Value) -> Result<Vec<Crate>> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    packages.iter().map(read_crate).collect()
}

fn read_crate(package: &Value) -> Result<Crate> {
    let text = |value: &Value, what: &str| {
        value.as_str().map(str::to_owned).with_context(|| format!("`cargo metadata`: a package without {what}"))
    };
    let manifest = PathBuf::from(text(&package["manifest_path"], "manifest_path")?);
    let dependencies =
        package["dependencies"].as_array().context("`cargo metadata`: a package without dependencies")?;
    Ok(Crate {
        name: text(&package["name"], "name")?,
        folder: manifest.parent().unwrap_or(Path::new("")).to_owned(),
        dependencies: dependencies
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .map(|dependency| text(&dependency["name"], "dependency name"))
            .collect::<Result<_>>()?,
    })
}

fn find(name: &str) -> Option<&'static CratePlace> {
    HOUSE.iter().find(|place| place.name == name)
}

/// Checks rules 1 to 3.
fn check_arrows(crates: &[Crate]) -> Vec<String> {
    let mut faults = Vec::new();
    for each in crates {
        let Some(from) = find(&each.name) else {
            faults.push(format!("{}: has no place in the house; give it one in HOUSE, xtask/src/layers.rs", each.name));
            continue;
        };
        for name in &each.dependencies {
            match find(name) {
                Some(to) => faults.extend(check_arrow(from, to)),
                None if from.kind == Kind::Pure && IO_LIBRARIES.contains(&name.as_str()) => {
                    faults.push(format!("{}: is pure, but depends on {name}, which does I/O", from.name));
                }
                None => {}
            }
        }
    }
    faults
}

fn check_arrow(from: &CratePlace, to: &CratePlace) -> Option<String> {
    if from.kind == Kind::Outside {
        return None;
    }
    if to.kind == Kind::Outside {
        return Some(format!("{}: depends on {}, which is not part of the program", from.name, to.name));
    }
    if from.kind == Kind::Pure && to.kind != Kind::Pure {
        return Some(format!("{}: is pure, but depends on {}, which is not", from.name, to.name));
    }
    let down = to.layer < from.layer;
    let pure_neighbour = to.layer == from.layer && from.kind == Kind::World && to.kind == Kind::Pure;
    (!down && !pure_neighbour).then(|| {
        format!(
            "{} (layer {}): depends on {} (layer {}), which is not below it",
            from.name, from.layer, to.name, to.layer
        )
    })
}

/// Checks rules 4, 5 and 8.
fn check_source(each: &Crate) -> Result<Vec<String>> {
    let pure = find(&each.name).is_some_and(|place| place.kind == Kind::Pure);
    let mut faults = Vec::new();
    for file in rust_files(&each.folder)? {
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let scan = source::scan(&text).with_context(|| format!("reading {} as Rust", file.display()))?;
        let at = |line: usize| format!("{}:{line}", file.display());
        if each.name != MAY_BE_UNSAFE {
            faults.extend(
                scan.unsafe_lines.iter().map(|&line| format!("{}: `unsafe` belongs in {MAY_BE_UNSAFE}", at(line))),
            );
        }
        let inside = file.strip_prefix(&each.folder).unwrap_or(&file);
        if inside.starts_with("src") && !KNOWS_SYSTEMS.contains(&each.name.as_str()) {
            faults.extend(scan.of_one_system.iter().map(|use_| {
                format!("{}: {} is of one operating system and belongs in linerate-sys", at(use_.line), use_.path)
            }));
        }
        if pure && inside.starts_with("src") && !inside.ends_with("tests.rs") {
            faults.extend(
                scan.worldly
                    .iter()
                    .map(|use_| format!("{}: {} is pure, but uses {}", at(use_.line), each.name, use_.path)),
            );
            if inside == Path::new("src/lib.rs") && !scan.forbids_unsafe {
                faults.push(format!("{}: a pure crate begins with #![forbid(unsafe_code)]", at(1)));
            }
        }
    }
    Ok(faults)
}

/// Returns the crate's Rust files in a stable order, without build output.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listing = std::fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        for entry in listing {
            let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn graph(arrows: &[(&str, &[&str])]) -> Vec<Crate> {
        arrows
            .iter()
            .map(|(name, dependencies)| Crate {
                name: (*name).to_owned(),
                folder: PathBuf::new(),
                dependencies: dependencies.iter().map(|&dependency| dependency.to_owned()).collect(),
            })
            .collect()
    }

    #[test]
    fn accepts_lower_layers_and_pure_crates_of_the_same_layer() {
        let crates = graph(&[
            ("linerate-model", &["linerate-units", "serde"]),
            ("linerate-observe", &["linerate-model", "linerate-sys", "libc"]),
            ("linerate-streams", &["linerate-observe", "linerate-method"]),
            ("linerate", &["linerate-runner", "linerate-lab", "tokio"]),
            ("xtask", &["linerate", "libc"]),
        ]);
        assert_eq!(check_arrows(&crates), Vec::<String>::new());
    }

    #[test]
    fn names_each_wrong_arrow() {
        for (from, to, complaint) in [
            ("linerate-units", "linerate-model", "not below"),
            ("linerate-agent", "linerate-lab", "not below"),
            ("linerate-lab", "linerate-agent", "not below"),
            ("linerate-observe", "linerate-store", "not below"),
            ("linerate-observe", "linerate-method", "not below"),
            ("linerate-method", "linerate-report", "not below"),
            ("linerate-model", "linerate-sys", "is pure, but depends on linerate-sys"),
            ("linerate-report", "linerate-store", "is pure, but depends on linerate-store"),
            ("linerate-method", "tokio", "does I/O"),
            ("linerate-runner", "xtask", "not part of the program"),
            ("linerate-common", "linerate-units", "no place"),
        ] {
            let faults = check_arrows(&graph(&[(from, &[to])]));
            assert_eq!(faults.len(), 1, "{from} -> {to}: {faults:?}");
            assert!(faults[0].contains(complaint), "{from} -> {to}: {faults:?}");
        }
    }

    #[test]
    fn leaves_test_dependencies_out() {
        let metadata = json!({ "packages": [{
            "name": "linerate-units", "manifest_path": "/w/crates/units/Cargo.toml",
            "dependencies": [
                { "name": "serde", "kind": null },
                { "name": "tokio", "kind": "dev" },
                { "name": "linerate-model", "kind": "build" },
            ],
        }]});
        let crates = workspace(&metadata).unwrap();
        assert_eq!(crates[0].folder, Path::new("/w/crates/units"));
        assert_eq!(crates[0].dependencies, ["serde", "linerate-model"]);
    }

    #[test]
    fn finds_impure_and_unsafe_source() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("lib.rs"), "pub fn f() -> bool { std::fs::exists(\"x\").unwrap() }").unwrap();
        std::fs::write(source.join("x.rs"), "#[cfg(test)] mod tests { use std::thread; }\nfn f() { unsafe {} }")
            .unwrap();
        let mut each = Crate { name: "linerate-model".into(), folder: folder.path().to_owned(), dependencies: vec![] };
        let faults = check_source(&each).unwrap();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("lib.rs:1: linerate-model is pure, but uses std::fs::exists"), "{faults:?}");
        assert!(faults[1].contains("forbid(unsafe_code)"), "{faults:?}");
        assert!(faults[2].contains("x.rs:2: `unsafe` belongs in linerate-sys"), "{faults:?}");
        each.name = "linerate-sys".into();
        assert_eq!(check_source(&each).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn finds_source_of_one_operating_system() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("src", "#[cfg(unix)]\nuse std::os::fd::OwnedFd;"), ("tests", "use std::os::unix::fs::chown;")]
        {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("x.rs"), text).unwrap();
        }
        let mut each = Crate { name: "linerate-agent".into(), folder: folder.path().to_owned(), dependencies: vec![] };
        let faults = check_source(&each).unwrap();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("x.rs:1: cfg(unix) is of one operating system"), "{faults:?}");
        assert!(faults[1].contains("x.rs:2: std::os::fd::OwnedFd"), "{faults:?}");
        each.name = "linerate-observe".into();
        assert_eq!(check_source(&each).unwrap(), Vec::<String>::new());
    }
}
