//! The files of a study: the TOML file by its path, and the data file that it names.

use crate::commands::run::runs;
use crate::exit::Failure;
use crate::options::StorePath;
use crate::output::language;
use linerate_report::Language;
use linerate_store::Store;
use linerate_study::{Measured, PlannedRun, Study, StudyFile, StudyReport};
use std::path::{Path, PathBuf};

/// Maximum size of a file. Nobody writes a larger one, and no spreadsheet of results is larger.
const MAX_BYTES: u64 = 64 << 20;

/// Returns the file of a study by its name: a path that ends in `.toml`, or the path without this extension.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Some(path.to_owned());
    }
    let with_ending = PathBuf::from(format!("{name}.toml"));
    (name.contains('/') || with_ending.is_file()).then_some(with_ending).filter(|_| !name.ends_with(".json"))
}

/// Parses the file of a study.
pub(crate) fn parse(path: &Path) -> Result<StudyFile, Failure> {
    StudyFile::parse(path, &text(path, "the study")?).map_err(Failure::usage)
}

/// Reads a study with its data, from its file or from the store, and returns its report.
pub(crate) fn read(path: &Path, store: &StorePath) -> Result<StudyReport, Failure> {
    let study = match parse(path)? {
        StudyFile::Imported(file) => {
            let data = inside(path, file.data())?;
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
    reported(path, study)
}

/// Returns the report of the study in the file `path`, with its texts in the program's language.
pub(crate) fn reported(path: &Path, study: Study) -> Result<StudyReport, Failure> {
    Ok(linerate_study::studied(translated(path, study, language())?))
}

/// Adds the texts in a language, from the file next to that of the study, if there is one: `links.ja.toml`.
fn translated(path: &Path, study: Study, language: Language) -> Result<Study, Failure> {
    let texts = path.with_extension(format!("{}.toml", language.tag()));
    if language == Language::English || !texts.is_file() {
        return Ok(study);
    }
    let texts_of_study = text(&texts, "the texts of the study")?;
    study.translated(language, &texts, &texts_of_study).map_err(Failure::usage)
}

/// Returns the path of the data of the study in the file `study`. Data outside its folder are refused: the report, which may be
/// passed on, would show another file of the user.
fn inside(study: &Path, data: &Path) -> Result<PathBuf, Failure> {
    let folder = study.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.join(data);
    let real = path.canonicalize().ok().zip(folder.canonicalize().ok());
    match real {
        Some((real, folder)) if !real.starts_with(&folder) => Err(Failure::usage(format!(
            "{} names data outside its folder, {}: copy them beside it, and name them there",
            study.display(),
            path.display()
        ))),
        // Reading reports a missing file.
        _ => Ok(path),
    }
}

/// Returns a study with the results of its runs in the store.
pub(crate) fn gathered(study: &Measured, runs: &[PlannedRun], store: &Store) -> Result<Study, Failure> {
    let mut records = store.of_study(study.name(), usize::MAX).map_err(Failure::measure)?;
    records.reverse();
    study.gathered(runs, &records).map_err(Failure::usage)
}

fn text(path: &Path, what: &str) -> Result<String, Failure> {
    let fail = |problem: String| Failure::usage(format!("cannot read {what}, {}: {problem}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
    if !size.is_file() || size.len() > MAX_BYTES {
        return Err(fail(format!("expected a text file of at most {} MB", MAX_BYTES >> 20)));
    }
    std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_study_are_in_the_file_next_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("links.toml");
        let study = || {
            let toml = "title = 'Links'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n\
                        [[factors]]\ncolumn = 'link'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
            match StudyFile::parse(&path, toml).expect("a study") {
                StudyFile::Imported(file) => file.with_data("x.csv", "link,mbps\na,1\n").expect("its data"),
                StudyFile::Measured(_) => panic!("it has data"),
            }
        };
        let title = |language| {
            let study = translated(&path, study(), language).expect("good texts");
            study.translation.and_then(|(_, texts)| texts.title)
        };
        assert_eq!(title(Language::Japanese), None, "there is no such file");
        let texts = folder.path().join("links.ja.toml");
        std::fs::write(&texts, "title = 'リンク'\n").expect("written");
        assert_eq!(title(Language::Japanese).as_deref(), Some("リンク"));
        assert_eq!(title(Language::English), None);
        std::fs::write(&texts, "titel = 'リンク'\n").expect("written");
        let error = translated(&path, study(), Language::Japanese).expect_err("no such text").to_string();
        assert!(error.contains("links.ja.toml") && error.contains("`titel`"), "{error}");
        assert!(translated(&path, study(), Language::English).is_ok(), "English readers do not need it");
    }

    #[test]
    fn data_outside_the_folder_of_a_study_are_refused() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("studies");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("own.csv"), "a").expect("written");
        std::fs::write(top.path().join("secret"), "b").expect("written");
        linerate_testsuite::files::symlink("../secret", folder.join("link.csv"));
        let study = folder.join("study.toml");
        assert_eq!(inside(&study, Path::new("own.csv")).expect("its own"), folder.join("own.csv"));
        for data in ["../secret", "link.csv", "/etc/passwd"] {
            let error = inside(&study, Path::new(data)).expect_err(data).to_string();
            assert!(error.contains("outside its folder"), "{error}");
        }
    }
}
