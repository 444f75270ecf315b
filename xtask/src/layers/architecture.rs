//! Checks that every path in ARCHITECTURE.md exists.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const FILE: &str = "ARCHITECTURE.md";

/// Extensions by which a name without a folder is taken for a file.
const EXTENSIONS: &[&str] = &["c", "ftl", "md", "rs", "toml"];

/// Checks the ARCHITECTURE.md of the tree at `root`, and returns its faults.
///
/// A path is relative to the root, to `crates`, to a folder named before in the same paragraph, or to a parent of that
/// folder within its crate. `{a,b}` is a choice. A name in upper case (`COMMAND.rs`) or a `*` stands for any name.
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
            for path in choices(&name) {
                let above = [root.to_owned(), root.join("crates")];
                let bases = folders.iter().rev().chain(above.iter().filter(|_| path.contains('/')));
                match bases.map(|base| find(base, &path)).find_map(Result::transpose).transpose()? {
                    Some(file) => folders.extend(folders_of(root, &file)),
                    None => faults.push(format!("{FILE}:{line}: {path} does not exist")),
                }
            }
        }
    }
    Ok(faults)
}

/// Returns the folder of `path` after its parents within the crate. The last one is searched first.
fn folders_of(root: &Path, path: &Path) -> Vec<PathBuf> {
    let crates = root.join("crates");
    let mut folders: Vec<_> = path
        .ancestors()
        .filter(|folder| folder.is_dir())
        .take_while(|folder| **folder != crates && **folder != *root)
        .map(Path::to_owned)
        .collect();
    folders.reverse();
    // A crate's folder stands for its source.
    folders.extend(Some(path.join("src")).filter(|source| source.is_dir()));
    folders
}

/// Returns the paths and names of files in a line.
fn names(line: &str) -> Vec<String> {
    // Commas separate names, except within braces.
    let mut depth = 0_i32;
    let split = |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter.is_whitespace() || "`()[];\"".contains(letter) || (letter == ',' && depth == 0)
    };
    line.split(split)
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| is_path(word))
        .map(str::to_owned)
        .collect()
}

/// Returns true for `a/b`, `a/`, and for names with a known extension. Returns false for `HTTP/JSON` and
/// `198.18.0.0/15`.
fn is_path(word: &str) -> bool {
    let is_sign = |letter: char| letter.is_ascii_alphanumeric() || "_-./{},*".contains(letter);
    if word.is_empty() || !word.chars().all(is_sign) {
        return false;
    }
    let extension = word.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && EXTENSIONS.contains(&end));
    let folder = word.contains('/') && word.chars().next().is_some_and(|letter| letter.is_ascii_lowercase());
    extension || folder
}

/// Expands `a/{b,c}.rs`. Braces do not nest.
fn choices(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![name.to_owned()] };
    inside.split(',').flat_map(|choice| choices(&format!("{before}{choice}{after}"))).collect()
}

/// Returns the first file or folder at `path` below `base`.
fn find(base: &Path, path: &str) -> Result<Option<PathBuf>> {
    let mut paths = vec![base.to_owned()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let stem = part.split('.').next().unwrap_or(part);
        let is_any = part.contains('*') || (!part.ends_with(".md") && stem.chars().all(|letter| letter.is_uppercase()));
        if is_any {
            let ending = part.rsplit_once('.').map(|(_, ending)| ending);
            let mut below = Vec::new();
            for folder in paths.iter().filter(|folder| folder.is_dir()) {
                for entry in folder.read_dir().with_context(|| format!("listing {}", folder.display()))? {
                    let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
                    if path.extension().and_then(|extension| extension.to_str()) == ending {
                        below.push(path);
                    }
                }
            }
            paths = below;
        } else {
            paths = paths.iter().map(|folder| folder.join(part)).filter(|path| path.exists()).collect();
        }
    }
    Ok(paths.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of `text` in a tree with some files.
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
    fn existing_paths_pass() {
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
    fn missing_path_is_reported_with_its_line() {
        for (text, fault) in [
            ("\n`docs/nfs.md`", ":2: docs/nfs.md does not exist"),
            ("method/src/verdict/{wire,shaper}.rs", ":1: method/src/verdict/shaper.rs does not exist"),
            ("method/src/verdict/\n\n`facts.rs`", ":3: facts.rs does not exist"),
            ("`method/src/COMMAND.rs`", ":1: method/src/COMMAND.rs does not exist"),
        ] {
            let faults = faults(text);
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            assert!(faults[0].ends_with(fault), "{text}: {faults:?}");
        }
    }
}
