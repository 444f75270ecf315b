//! Paths in ARCHITECTURE.md: each exists.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const FILE: &str = "ARCHITECTURE.md";

/// Extensions of names that are files even without a folder in front.
const EXTENSIONS: &[&str] = &["c", "ftl", "md", "rs", "toml"];

/// Checks the ARCHITECTURE.md of the tree at `root`, and returns its faults.
///
/// A path is relative to the root, to `crates`, or to a folder that the same paragraph has named before, or to one above that
/// within its crate. `{a,b}` is a choice; a name in upper case (`COMMAND.rs`) or a `*` stands for any.
///
/// # Errors
/// If it cannot be read, or a folder cannot be listed.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut faults = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() || content.starts_with('#') {
            folders.clear();
        }
        for name in names(content) {
            for one in choices(&name) {
                let above = [root.to_owned(), root.join("crates")];
                let bases = folders.iter().rev().chain(above.iter().filter(|_| one.contains('/')));
                match bases.map(|base| find(base, &one)).find_map(Result::transpose).transpose()? {
                    Some(found) => folders.extend(folders_of(root, &found)),
                    None => faults.push(format!("{FILE}:{line}: {one} does not exist")),
                }
            }
        }
    }
    Ok(faults)
}

/// Returns the folder that `found` is or is in, behind those above it within its crate: the last one is looked in first.
fn folders_of(root: &Path, found: &Path) -> Vec<PathBuf> {
    let crates = root.join("crates");
    let mut folders: Vec<_> = found
        .ancestors()
        .filter(|folder| folder.is_dir())
        .take_while(|folder| **folder != crates && **folder != *root)
        .map(Path::to_owned)
        .collect();
    folders.reverse();
    // A crate's folder stands for its source.
    folders.extend(Some(found.join("src")).filter(|source| source.is_dir()));
    folders
}

/// Returns the paths and names of files in a line.
fn names(line: &str) -> Vec<String> {
    let between = |letter: char| letter.is_whitespace() || "`()[];\"".contains(letter);
    // Commas separate names, except within braces.
    let mut depth = 0_i32;
    let split = |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        between(letter) || (letter == ',' && depth == 0)
    };
    line.split(split)
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| is_path(word))
        .map(str::to_owned)
        .collect()
}

/// Returns true for `a/b`, `a/`, and for names with a known extension. `HTTP/JSON` and `198.18.0.0/15` are none.
fn is_path(word: &str) -> bool {
    let is_sign = |letter: char| letter.is_ascii_alphanumeric() || "_-./{},*".contains(letter);
    if word.is_empty() || !word.chars().all(is_sign) {
        return false;
    }
    let extension = word.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && EXTENSIONS.contains(&end));
    let folder = word.contains('/') && word.chars().next().is_some_and(|letter| letter.is_ascii_lowercase());
    extension || folder
}

/// Returns what `a/{b,c}.rs` stands for; braces do not nest.
fn choices(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let Some((inside, behind)) = rest.split_once('}') else { return vec![name.to_owned()] };
    inside.split(',').flat_map(|one| choices(&format!("{before}{one}{behind}"))).collect()
}

/// Returns the first file or folder at `path` below `base`.
fn find(base: &Path, path: &str) -> Result<Option<PathBuf>> {
    let mut found = vec![base.to_owned()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let stem = part.split('.').next().unwrap_or(part);
        let is_any = part.contains('*') || (!part.ends_with(".md") && stem.chars().all(|letter| letter.is_uppercase()));
        if is_any {
            let ending = part.rsplit_once('.').map(|(_, ending)| ending);
            let mut below = Vec::new();
            for folder in found.iter().filter(|folder| folder.is_dir()) {
                for entry in folder.read_dir().with_context(|| format!("listing {}", folder.display()))? {
                    let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
                    if path.extension().and_then(|extension| extension.to_str()) == ending {
                        below.push(path);
                    }
                }
            }
            found = below;
        } else {
            found = found.iter().map(|folder| folder.join(part)).filter(|path| path.exists()).collect();
        }
    }
    Ok(found.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The faults of a tree with some files and this text.
    fn faults(text: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("docs/copy.md", ""),
            ("crates/model/src/lib.rs", ""),
            ("crates/method/src/verdict/wire.rs", ""),
            ("crates/method/src/verdict/facts.rs", ""),
            (FILE, text),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        check(root.path()).unwrap()
    }

    #[test]
    fn what_exists_passes() {
        for text in [
            "`docs/copy.md`, model/src/lib.rs and `method/src/verdict/`.",
            "`method/src/verdict/{wire,facts}.rs`",
            "method/src/verdict/wire.rs, facts.rs",
            "in `method/src/verdict/` on facts\ndrawn once (`facts.rs`).",
            "`method/src/verdict/LIMIT.rs`, docs/*.md",
            "`method/src/verdict/wire.rs` draws on `verdict/` and `src/verdict/facts.rs`",
            "Of `crates/method`: `verdict/`",
            "`model::Plan` over HTTP/JSON at 198.18.0.0/15, a.b and `--copy`",
        ] {
            assert_eq!(faults(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        for (text, fault) in [
            ("\n`docs/nfs.md`", ":2: docs/nfs.md does not exist"),
            ("method/src/verdict/{wire,shaper}.rs", ":1: method/src/verdict/shaper.rs does not exist"),
            ("method/src/verdict/\n\n`facts.rs`", ":3: facts.rs does not exist"),
            ("`method/src/COMMAND.rs`", ":1: method/src/COMMAND.rs does not exist"),
        ] {
            let found = faults(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].ends_with(fault), "{text}: {found:?}");
        }
    }
}
