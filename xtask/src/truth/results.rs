//! What was said before: a file of lines, each the verdict of one case in one run, so that many runs may be made over several days.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// One line.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    run: u32,
    case: String,
    /// Changes with the case.
    digest: String,
    #[serde(flatten)]
    said: T,
}

/// The file, and what it held.
pub(super) struct Results<T> {
    path: PathBuf,
    file: File,
    known: BTreeMap<(u32, String, String), T>,
}

impl<T: Serialize + DeserializeOwned + Clone> Results<T> {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or extended, or a line is none of these.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = || format!("{}", path.display());
        let mut file = File::options().read(true).append(true).create(true).open(path).with_context(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(failed)?;
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line: Line<T> =
                serde_json::from_str(line).with_context(|| format!("{}, line {}", path.display(), number + 1))?;
            known.insert((line.run, line.case, line.digest), line.said);
        }
        Ok(Self { path: path.to_owned(), file, known })
    }

    /// What was said of the case in that run; none if it was not measured, or has changed since.
    pub(super) fn find(&self, run: u32, case: &str, digest: &str) -> Option<&T> {
        self.known.get(&(run, case.to_owned(), digest.to_owned()))
    }

    /// Adds a verdict.
    ///
    /// # Errors
    ///
    /// The file cannot be extended.
    pub(super) fn add(&mut self, run: u32, case: &str, digest: &str, said: &T) -> Result<()> {
        let line = Line { run, case: case.to_owned(), digest: digest.to_owned(), said: said.clone() };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        // One write: a line is whole or missing.
        self.file.write_all(text.as_bytes()).with_context(|| format!("{}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::super::said::Said;
    use super::*;
    use std::fs;

    #[test]
    fn what_is_kept_is_found_again_unless_the_case_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let scenarios = folder.path().join("scenarios");
        fs::create_dir(&scenarios).unwrap();
        let grid = "[[grid]]\nname = 'tcp'\nlimits = ['shaper']\ntest = 'stream a b'\n[grid.bench]\n";
        let case = |grid: &str| {
            fs::write(scenarios.join("shaper.toml"), grid).unwrap();
            Case::read_all(&scenarios).unwrap().remove(0)
        };
        let said = Said { limit: "shaper".to_owned(), also: vec!["window".to_owned()], ..Said::default() };
        let path = folder.path().join("kept");
        let mut results = Results::open(&path).unwrap();
        results.add(2, &case(grid).name, &case(grid).digest(), &said).unwrap();
        let results = Results::open(&path).unwrap();
        let find = |run, grid: &str| results.find(run, &case(grid).name, &case(grid).digest());
        assert_eq!(find(2, grid), Some(&said));
        assert_eq!(find(1, grid), None);
        assert_eq!(find(2, &grid.replace("a b", "a b --udp")), None);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        fs::write(&path, "1 shaper shaper high\n").unwrap();
        let error = format!("{:#}", Results::<Said>::open(&path).map(|_| ()).unwrap_err());
        assert!(error.contains("kept, line 1"), "{error}");
    }
}
