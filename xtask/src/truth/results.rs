//! Results kept in a file between runs, so that many runs can be made over several days. Each line is the outcome of
//! one case in one run.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    run: u32,
    case: String,
    /// [`Case::digest`](super::cases::Case::digest) when it was measured.
    digest: String,
    #[serde(flatten)]
    outcome: T,
}

/// The file, and the outcomes that it had when it was opened.
pub(super) struct Results<T> {
    path: PathBuf,
    file: File,
    outcomes: BTreeMap<(u32, String, String), T>,
}

impl<T: Serialize + DeserializeOwned + Clone> Results<T> {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or extended, or a line cannot be parsed.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let mut file = File::options().read(true).append(true).create(true).open(path).with_context(|| name.clone())?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(|| name.clone())?;
        let mut outcomes = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line: Line<T> = serde_json::from_str(line).with_context(|| format!("{name}, line {}", number + 1))?;
            outcomes.insert((line.run, line.case, line.digest), line.outcome);
        }
        Ok(Self { path: path.to_owned(), file, outcomes })
    }

    /// Returns the outcome of a case in a run. `None` if it was not measured, or has changed since.
    pub(super) fn find(&self, run: u32, case: &str, digest: &str) -> Option<&T> {
        self.outcomes.get(&(run, case.to_owned(), digest.to_owned()))
    }

    /// Adds an outcome.
    ///
    /// # Errors
    ///
    /// The file cannot be extended.
    pub(super) fn add(&mut self, run: u32, case: &str, digest: &str, outcome: &T) -> Result<()> {
        let line = Line { run, case: case.to_owned(), digest: digest.to_owned(), outcome: outcome.clone() };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        // A single write, so that no line is written in part.
        self.file.write_all(text.as_bytes()).with_context(|| format!("{}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::super::verdict::Verdict;
    use super::*;
    use std::fs;

    #[test]
    fn kept_outcome_is_found_unless_the_case_changed() {
        let folder = tempfile::tempdir().unwrap();
        let scenarios = folder.path().join("scenarios");
        fs::create_dir(&scenarios).unwrap();
        let grid = "[[grid]]\nname = 'tcp'\nlimits = ['shaper']\ntest = 'stream a b'\n[grid.bench]\n";
        let case = |grid: &str| {
            fs::write(scenarios.join("shaper.toml"), grid).unwrap();
            Case::read_all(&scenarios).unwrap().remove(0)
        };
        let outcome = Verdict { limit: "shaper".to_owned(), also: vec!["window".to_owned()], ..Verdict::default() };
        let path = folder.path().join("kept");
        let mut results = Results::open(&path).unwrap();
        results.add(2, &case(grid).name, &case(grid).digest(), &outcome).unwrap();
        let results = Results::open(&path).unwrap();
        let find = |run, grid: &str| results.find(run, &case(grid).name, &case(grid).digest());
        assert_eq!(find(2, grid), Some(&outcome));
        assert_eq!(find(1, grid), None);
        assert_eq!(find(2, &grid.replace("a b", "a b --udp")), None);
    }

    #[test]
    fn unreadable_line_is_reported_by_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        fs::write(&path, "1 shaper shaper high\n").unwrap();
        let error = format!("{:#}", Results::<Verdict>::open(&path).map(|_| ()).unwrap_err());
        assert!(error.contains("kept, line 1"), "{error}");
    }
}
