//! A study's files: the TOML file by its path, and the data that it names beside it.

use crate::arguments::StorePath;
use crate::commands::run::runs;
use crate::exit::Failure;
use linerate_method::study::{Measured, PlannedRun, StudyFile};
use linerate_model::{Study, StudyReport};
use linerate_store::Store;
use std::path::{Path, PathBuf};

/// More is no file that a person wrote, or a spreadsheet of results.
const MOST_BYTES: u64 = 64 << 20;

/// The file that `name` names, if it names a study: a path that ends in `.toml`, or that is one without this ending.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.extension().is_some_and(|extension| extension == "toml") {
        return Some(given.to_owned());
    }
    let with_ending = PathBuf::from(format!("{name}.toml"));
    (name.contains('/') || with_ending.is_file()).then_some(with_ending).filter(|_| !name.ends_with(".json"))
}

/// The study's file.
pub(crate) fn parse(path: &Path) -> Result<StudyFile, Failure> {
    StudyFile::parse(path, &text(path, "the study")?).map_err(Failure::usage)
}

/// The study with its data, of its file or of the store, and what these say.
pub(crate) fn read(path: &Path, store: &StorePath) -> Result<StudyReport, Failure> {
    let study = match parse(path)? {
        StudyFile::Imported(file) => {
            let data = path.parent().unwrap_or(Path::new("")).join(file.data());
            let text = text(&data, "the data of the study")?;
            file.with_data(&data.display().to_string(), &text).map_err(Failure::usage)?
        }
        StudyFile::Measured(study) => {
            let store = store.open()?;
            let gathered = gathered(&study, &runs(path, &study)?, &store)?;
            if gathered.cells.is_empty() {
                let path = path.display();
                return Err(Failure::usage(format!(
                    "nothing of {path} is measured yet; `linerate run {path}` measures it"
                )));
            }
            gathered
        }
    };
    Ok(linerate_report::studied(study))
}

/// A study with what the store has of its runs.
pub(crate) fn gathered(study: &Measured, runs: &[PlannedRun], store: &Store) -> Result<Study, Failure> {
    let mut records = store.of_study(study.name(), usize::MAX).map_err(Failure::measure)?;
    records.reverse();
    study.gathered(runs, &records).map_err(Failure::usage)
}

fn text(path: &Path, what: &str) -> Result<String, Failure> {
    let fail = |problem: String| Failure::usage(format!("cannot read {what}, {}: {problem}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
    if !size.is_file() || size.len() > MOST_BYTES {
        return Err(fail(format!("expected a text file of at most {} MB", MOST_BYTES >> 20)));
    }
    std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))
}
