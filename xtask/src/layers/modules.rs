//! Imports between the modules of a crate: none of a module that imports it back, by whatever way.
//!
//! Modules are those at the top of the crate. What lies below one is part of it.

use super::{Crate, rust_files, source};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose modules import each other in circles, and how many modules the largest circle has. The list only gets shorter.
const CIRCLES: &[(&str, usize)] = &[
    ("linerate", 3),
    ("linerate-lab", 9),
    ("linerate-method", 15),
    ("linerate-model", 14),
    ("linerate-oncrpc", 4),
    ("linerate-smb", 9),
];

/// Which modules each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns what is wrong with the imports within a crate.
pub(super) fn check(each: &Crate) -> Result<Vec<String>> {
    let circles = circles(&imports(&each.folder.join("src"))?);
    let largest = circles.iter().map(Vec::len).max().unwrap_or(0);
    let known = CIRCLES.iter().find(|(name, _)| *name == each.name).map_or(0, |(_, known)| *known);
    Ok(match largest.cmp(&known) {
        std::cmp::Ordering::Equal => Vec::new(),
        std::cmp::Ordering::Less => {
            vec![format!(
                "{}: the largest circle has {largest} modules; write that in xtask/src/layers/modules.rs",
                each.name
            )]
        }
        std::cmp::Ordering::Greater => circles
            .iter()
            .map(|circle| format!("{}: modules import each other in a circle: {}", each.name, circle.join(", ")))
            .collect(),
    })
}

/// Reads what the modules of a source folder import, tests left out.
fn imports(folder: &Path) -> Result<Imports> {
    let mut files = Vec::new();
    for file in rust_files(folder)? {
        let inside = file.strip_prefix(folder).unwrap_or(&file);
        let Some(module) = module(inside) else { continue };
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let scan = source::scan(&text).with_context(|| format!("reading {} as Rust", file.display()))?;
        files.push((module, scan));
    }
    let modules: BTreeSet<String> =
        files.iter().map(|(module, _)| module.clone()).filter(|name| !is_root(name)).collect();
    // What the crate's root has of a module is imported by its name alone.
    let roots = files.iter().filter(|(module, _)| is_root(module));
    let at_root: BTreeMap<&String, &String> =
        roots.flat_map(|(_, scan)| &scan.uses).filter_map(|path| Some((path.last()?, path.first()?))).collect();
    let mut imports = Imports::new();
    for (module, scan) in files.iter().filter(|(module, _)| !is_root(module)) {
        let named = scan.own.iter().filter_map(|path| path.first());
        let of = |name: &String| modules.get(name).or_else(|| modules.get(*at_root.get(name)?)).cloned();
        let imported = named.filter_map(of).filter(|other| other != module);
        imports.entry(module.clone()).or_default().extend(imported);
    }
    Ok(imports)
}

/// The top module that a file is part of, `None` for one of tests.
fn module(file: &Path) -> Option<String> {
    let parts: Vec<String> = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_of_tests = parts.iter().any(|part| part == "tests") || parts.last()?.ends_with("tests");
    parts.into_iter().next().filter(|_| !is_of_tests)
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

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        circles(&imports(folder.path()).unwrap())
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
