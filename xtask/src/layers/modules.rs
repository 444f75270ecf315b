//! Imports between the modules of a crate: no circles, and from upper to lower storeys only.
//!
//! Modules are those at the top of the crate; modules below one are part of it. In a crate with storeys the modules of
//! each storey are checked for circles too.

use super::{Crate, rust_files, source};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose modules import each other in circles, and how many modules the largest circle has. The list only gets shorter.
const CIRCLES: &[(&str, usize)] = &[("linerate", 8)];

/// Storeys of crates, bottom up. A module may import modules of its own storey and of lower ones.
const STOREYS: &[(&str, &[&str])] = &[(
    "linerate-report",
    &[
        "language", "figures", "records", "wording", "blocks", "subjects", "sections", "document", "forms", "reports",
        "parts",
    ],
)];

/// Which modules each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns what is wrong with the imports within a crate.
pub(super) fn check(each: &Crate) -> Result<Vec<String>> {
    let storeys = STOREYS.iter().find(|(name, _)| *name == each.name).map(|(_, storeys)| *storeys);
    let imports = imports(&each.folder.join("src"), if storeys.is_some() { 2 } else { 1 })?;
    let mut faults = Vec::new();
    if let Some(storeys) = storeys {
        faults.extend(upward(&imports, storeys).iter().map(|fault| format!("{}: {fault}", each.name)));
    }
    let circles = circles(&imports);
    let largest = circles.iter().map(Vec::len).max().unwrap_or(0);
    let known = CIRCLES.iter().find(|(name, _)| *name == each.name).map_or(0, |(_, known)| *known);
    match largest.cmp(&known) {
        std::cmp::Ordering::Equal => {}
        std::cmp::Ordering::Less => faults.push(format!(
            "{}: the largest circle has {largest} modules; write that in xtask/src/layers/modules.rs",
            each.name
        )),
        std::cmp::Ordering::Greater => faults.extend(
            circles
                .iter()
                .map(|circle| format!("{}: modules import each other in a circle: {}", each.name, circle.join(", "))),
        ),
    }
    Ok(faults)
}

/// Returns imports of modules in upper storeys, and modules that stand in no storey.
fn upward(imports: &Imports, storeys: &[&str]) -> Vec<String> {
    let storey = |module: &str| storeys.iter().position(|name| module.split("::").next() == Some(*name));
    let mut faults = Vec::new();
    for (module, others) in imports {
        let Some(floor) = storey(module) else {
            faults.push(format!("{module} stands in no storey; xtask/src/layers/modules.rs lists them"));
            continue;
        };
        for other in others.iter().filter(|other| storey(other).is_some_and(|above| above > floor)) {
            faults.push(format!("{module} imports {other} of an upper storey"));
        }
    }
    faults
}

/// Reads what the modules of a source folder import, tests left out. `depth` is the number of names in a module's path.
fn imports(folder: &Path, depth: usize) -> Result<Imports> {
    let mut files = Vec::new();
    for file in rust_files(folder)? {
        let inside = file.strip_prefix(folder).unwrap_or(&file);
        let Some(module) = module(inside, depth) else { continue };
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let scan = source::scan(&text).with_context(|| format!("reading {} as Rust", file.display()))?;
        files.push((module, scan));
    }
    let modules: BTreeSet<String> =
        files.iter().map(|(module, _)| module.clone()).filter(|name| !is_root(name)).collect();
    let module_of =
        |path: &[String]| (1..=depth.min(path.len())).rev().find_map(|length| modules.get(&path[..length].join("::")));
    // An item that the crate's root re-exports is imported by its name alone.
    let roots = files.iter().filter(|(module, _)| is_root(module));
    let at_root: BTreeMap<&String, &String> =
        roots.flat_map(|(_, scan)| &scan.uses).filter_map(|path| Some((path.last()?, module_of(path)?))).collect();
    let mut imports = Imports::new();
    for (module, scan) in files.iter().filter(|(module, _)| !is_root(module)) {
        let imported =
            scan.own.iter().filter_map(|path| module_of(path).or_else(|| at_root.get(path.first()?).copied()));
        imports.entry(module.clone()).or_default().extend(imported.filter(|other| *other != module).cloned());
    }
    Ok(imports)
}

/// Returns the module of at most `depth` names that a file is part of, `None` for a file of tests.
fn module(file: &Path, depth: usize) -> Option<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.iter().any(|part| part == "tests") || parts.last()?.ends_with("tests") {
        return None;
    }
    if parts.last()? == "mod" {
        parts.pop();
    }
    parts.truncate(depth);
    Some(parts.join("::"))
}

fn is_root(module: &str) -> bool {
    ["lib", "main"].contains(&module)
}

/// Groups modules that reach each other by imports, groups of one left out.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut left: Vec<&String> = imports.get(from).into_iter().flatten().collect();
        while let Some(module) = left.pop() {
            if reached.insert(module.clone()) {
                left.extend(imports.get(module).into_iter().flatten());
            }
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = imports.keys().map(|module| (module, reached(module))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (module, others) in &reach {
        if others.contains(*module) && !circles.iter().flatten().any(|known| known == *module) {
            circles.push(
                others
                    .iter()
                    .filter(|other| reach.get(other).is_some_and(|back| back.contains(*module)))
                    .cloned()
                    .collect(),
            );
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports_of(files: &[(&str, &str)], depth: usize) -> Imports {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        imports(folder.path(), depth).unwrap()
    }

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        circles(&imports_of(files, 1))
    }

    #[test]
    fn upper_storeys_import_lower_ones_only() {
        let files = [
            ("lib.rs", "mod low; mod high; pub use high::one::One;"),
            ("low/mod.rs", "pub mod a;"),
            ("low/a.rs", "use crate::One;"),
            ("high/mod.rs", "mod one; mod two;"),
            ("high/one.rs", "use crate::low::a; use crate::high::two;"),
            ("high/two.rs", "use crate::high::one::One;"),
            ("other.rs", "use crate::low;"),
        ];
        let imports = imports_of(&files, 2);
        assert_eq!(
            upward(&imports, &["low", "high"]),
            [
                "low::a imports high::one of an upper storey",
                "other stands in no storey; xtask/src/layers/modules.rs lists them"
            ]
        );
        assert_eq!(circles(&imports), [["high::one", "high::two", "low::a"]], "one imports a, and a imports one");
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let lib = ("lib.rs", "mod a; mod b; mod c; pub use c::{Last, one::Deep};");
        assert_eq!(
            of(&[lib, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::{c, said};"), ("c.rs", "")]),
            Vec::<Vec<String>>::new()
        );
        let back = [
            lib,
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f() { crate::c::g() }"),
            ("c/inner.rs", "use crate::{a::A, b};"),
            ("c.rs", ""),
        ];
        assert_eq!(of(&back), [["a", "b", "c"]]);
        assert_eq!(
            of(&[lib, ("a.rs", "use crate::Deep;"), ("b.rs", ""), ("c.rs", "use crate::a;")]),
            [["a", "c"]],
            "by the root"
        );
    }

    #[test]
    fn tests_may_import_anything() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b; #[cfg(test)] mod tests { use crate::b::c; }"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a; }"),
            ("b/tests.rs", "use crate::a;"),
        ];
        assert_eq!(of(&files), Vec::<Vec<String>>::new());
    }
}
