//! The TOML file of a study.

use super::StudyError;
use super::conclusion::ConclusionEntry;
use super::factor::{FactorEntry, only_measured};
use super::measure::{MeasureEntry, Value};
use super::measured::Measured;
use super::run::RunEntry;
use super::tests_of::{TestEntry, Tests};
use super::without::{Without, WithoutEntry};
use crate::study::{Conditions, Factor, Measure, MeasurePair, Study, StudyQuestion};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The kind of a study, by its file.
#[derive(Debug, Clone)]
pub enum StudyFile {
    /// Results that others have measured.
    Imported(Imported),
    /// A study to measure.
    Measured(Measured),
}

/// A study without its data.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The study as the file has it. Factors without listed levels have none yet.
    pub(super) study: Study,
    pub(super) columns: Vec<FactorColumn>,
    /// Factor by which values of the data are multiplied, for each measure.
    pub(super) scales: Vec<f64>,
    data: PathBuf,
}

/// Rules for reading a factor's column of the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactorColumn {
    /// Whether levels other than those of the file are errors.
    pub(super) closed: bool,
    /// Whether the column may be empty, if the factor does not apply.
    pub(super) optional: bool,
}

impl StudyFile {
    /// Reads the text of the file `name`, whose stem is the study's name.
    pub fn parse(name: &Path, text: &str) -> Result<Self, StudyError> {
        let file = name.display().to_string();
        let document: Document = toml::from_str(text).map_err(|error| StudyError::Toml {
            file: file.clone(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let stem = name.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
        document.study(&Source { file: &file, text }, stem)
    }
}

impl Imported {
    /// Returns the path of the data, relative to the folder of the file.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

/// The text that errors refer to.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Returns the error at a value of the file.
    pub(super) fn fault<T>(&self, at: &Spanned<T>, field: &str, problem: String) -> StudyError {
        let line = self.line(at.span().start);
        StudyError::Field { file: self.file.to_owned(), line, field: field.to_owned(), problem }
    }

    /// Returns the line of a place in the file, from 1.
    pub(super) fn line(&self, place: usize) -> usize {
        let before = self.text.get(..place).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }
}

/// Source of the values.
pub(super) enum Reading {
    Data(PathBuf),
    Run(Box<RunEntry>, Tests),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    #[serde(default, deserialize_with = "question")]
    question: Option<StudyQuestion>,
    about: String,
    method: String,
    source: Option<String>,
    #[serde(default)]
    caveats: Vec<String>,
    data: Option<PathBuf>,
    run: Option<Spanned<RunEntry>>,
    #[serde(default)]
    tests: Vec<TestEntry>,
    #[serde(default)]
    without: Vec<WithoutEntry>,
    currency: Option<String>,
    tolerance: Option<Spanned<f64>>,
    #[serde(default)]
    path: Conditions,
    factors: Vec<FactorEntry>,
    measures: Spanned<Vec<MeasureEntry>>,
    #[serde(default)]
    compare: Vec<CompareEntry>,
    #[serde(default)]
    conclusions: Vec<ConclusionEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareEntry {
    measures: [Spanned<String>; 2],
    by: Spanned<String>,
}

impl Document {
    fn study(mut self, source: &Source<'_>, name: String) -> Result<StudyFile, StudyError> {
        let nothing = || {
            StudyError::Line {
            file: source.file.to_owned(),
            line: 1,
            problem: "there is neither `data`, a file of results to import, nor `[run]`, what to measure; expected one of them"
                .to_owned(),
        }
        };
        let reading = match (&self.data, self.run.as_ref()) {
            (Some(data), None) => {
                if let Some(entry) = self.without.first() {
                    return Err(source.fault(entry, "without", only_measured()));
                }
                if let Some(entry) = self.tests.first() {
                    return Err(source.fault(entry.name(), "tests", only_measured()));
                }
                Reading::Data(data.clone())
            }
            (None, Some(run)) => {
                let tests = Tests::read(source, run, std::mem::take(&mut self.tests))?;
                Reading::Run(Box::new(run.get_ref().clone()), tests)
            }
            (None, None) => return Err(nothing()),
            (Some(_), Some(run)) => {
                let problem =
                    "stands beside `data`; a study is imported or measured: expected one of the two".to_owned();
                return Err(source.fault(run, "run", problem));
            }
        };
        let mut names = BTreeSet::new();
        let mut columns = Vec::new();
        let mut factors = Vec::new();
        let mut settings = Vec::new();
        for entry in self.factors {
            once(source, &mut names, &entry.column, "column")?;
            columns.push(FactorColumn { closed: entry.levels.is_some(), optional: entry.optional });
            let (factor, setting) = entry.factor(source, &reading)?;
            factors.push(factor);
            settings.push(setting);
        }
        if self.measures.get_ref().is_empty() {
            let problem = "nothing was measured; name at least one column of the data".to_owned();
            return Err(source.fault(&self.measures, "measures", problem));
        }
        let mut measures = Vec::new();
        let mut values = Vec::new();
        for entry in self.measures.into_inner() {
            once(source, &mut names, &entry.column, "column")?;
            let at = entry.column.clone();
            let (measure, value) = entry.measure(source, &reading)?;
            if measures.iter().any(|other: &Measure| other.title == measure.title) {
                let problem = format!("`{}` stands twice; each has a name of its own", measure.title);
                return Err(source.fault(&at, "title", problem));
            }
            measures.push(measure);
            values.push(value);
        }
        let mut comparisons = Vec::new();
        for entry in &self.compare {
            let measure = |name: &Spanned<String>| {
                let at = measures.iter().position(|measure: &Measure| measure.column == *name.get_ref());
                at.ok_or_else(|| {
                    source.fault(
                        name,
                        "measures",
                        unknown("measure", name.get_ref(), measures.iter().map(|m| &m.column)),
                    )
                })
            };
            let by =
                factors.iter().position(|factor: &Factor| factor.column == *entry.by.get_ref()).ok_or_else(|| {
                    source.fault(
                        &entry.by,
                        "by",
                        unknown("factor", entry.by.get_ref(), factors.iter().map(|f| &f.column)),
                    )
                })?;
            comparisons
                .push(MeasurePair { measures: [measure(&entry.measures[0])?, measure(&entry.measures[1])?], by });
        }
        if let Some(tolerance) = self.tolerance.as_ref().filter(|share| !(0.0..1.0).contains(share.get_ref())) {
            let problem = format!("`{}` is no share; expected one from 0 to below 1, as in 0.02", tolerance.get_ref());
            return Err(source.fault(tolerance, "tolerance", problem));
        }
        let without = self.without.into_iter().map(|entry| Without::read(source, entry, &factors));
        let without = without.collect::<Result<Vec<Without>, _>>()?;
        let conclusions = self.conclusions.into_iter().map(|entry| entry.conclusion(source, &factors, &measures));
        let conclusions = conclusions.collect::<Result<Vec<_>, _>>()?;
        let study = Study {
            name,
            title: self.title,
            question: self.question,
            about: self.about,
            method: self.method,
            source: self.source,
            caveats: self.caveats,
            currency: self.currency,
            tolerance: self.tolerance.map(Spanned::into_inner),
            path: self.path,
            factors,
            measures,
            comparisons,
            conclusions,
            cells: Vec::new(),
            design: None,
            notes: Vec::new(),
            translation: None,
        };
        Ok(match reading {
            Reading::Data(data) => {
                let scales = values.into_iter().map(Value::scale).collect();
                StudyFile::Imported(Imported { study, columns, scales, data })
            }
            Reading::Run(run, tests) => {
                let metrics = values.into_iter().filter_map(Value::gathered).collect();
                StudyFile::Measured(run.measured(source, study, settings, &tests, metrics, &without)?)
            }
        })
    }
}

/// Reads a question: a text, which any finding answers, or a table.
fn question<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StudyQuestion>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => Ok(Some(StudyQuestion { text, answered_by: Vec::new() })),
        table => StudyQuestion::deserialize(table).map(Some).map_err(de::Error::custom),
    }
}

/// Refuses a name that was used before.
pub(super) fn once(
    source: &Source<'_>,
    known: &mut BTreeSet<String>,
    name: &Spanned<String>,
    field: &str,
) -> Result<(), StudyError> {
    if known.insert(name.get_ref().clone()) {
        return Ok(());
    }
    Err(source.fault(name, field, format!("`{}` stands twice; each has a name of its own", name.get_ref())))
}

pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    format!("`{name}` is no {what} of this study; expected one of {}", known.join(", "))
}
