//! Measured studies: their runs, the runs that are done, and their results.

use super::StudyError;
use super::document::Source;
use super::order::Slot;
use super::run::Template;
use super::tests_of::Tests;
use crate::study::{Design, Study, StudyCell};
use linerate_method::{Metric, NoOneValue};
use linerate_model::{CaveatKind, Firmness, Message, MessageValue, Record, RecordId, StudyRun, message};
use std::collections::BTreeMap;
use toml::Spanned;

/// A study and its runs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The study without its cells.
    pub(super) study: Study,
    pub(super) settings: Vec<Setting>,
    /// Metric and test of each measure.
    pub(super) metrics: Vec<Gathered>,
    pub(super) tests: Vec<NamedTest>,
    /// Runs, in their order.
    pub(super) order: Vec<Slot>,
    pub(super) design: Design,
}

/// The metric of a measure, and the test that gives it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathered {
    pub(super) metric: Metric,
    /// Index into the tests.
    pub(super) test: usize,
    /// Line of the study's file that names the metric, from 1.
    pub(super) line: usize,
}

/// A test that runs in each cell of its factors.
#[derive(Debug, Clone)]
pub(super) struct NamedTest {
    /// `None` if it is the only test.
    pub(super) name: Option<String>,
    pub(super) words: Template,
    /// Words for `linerate lab`; `None` if the study has no lab.
    pub(super) lab: Option<Template>,
}

/// The way a factor is set.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) column: Spanned<String>,
    /// Words that stand for each level; `None` stands for its name.
    pub(super) words: Vec<Option<String>>,
    pub(super) set: Option<Set>,
}

/// A step that sets a factor, in addition to its place in the words of test and lab.
#[derive(Debug, Clone)]
pub(super) enum Set {
    Command { command: String, undo: Option<String>, host: Option<String> },
    Person(String),
}

/// A command that sets a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCommand {
    /// Script for `sh -c`.
    pub command: String,
    /// Script that undoes it.
    pub undo: Option<String>,
    /// Host of the lab in which it runs; `None` for this machine.
    pub host: Option<String>,
}

/// One run of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Place in the study.
    pub is: StudyRun,
    /// Levels: `link 100Mbit/s, message size 64 bytes`.
    pub name: String,
    /// Command with its lab, as its record keeps it: without secrets.
    pub command: Vec<String>,
    /// Steps that a person must have done, by factor.
    pub steps: BTreeMap<usize, String>,
    /// Commands that must have run, by factor.
    pub commands: BTreeMap<usize, HostCommand>,
    /// Words for `linerate lab`; `None` if there is no lab.
    pub lab: Option<Vec<String>>,
    /// Words of the test.
    pub test: Vec<String>,
    /// Level of each factor; `None` if the test does not use the factor.
    pub(super) cell: Vec<Option<usize>>,
    /// Index into the tests.
    at: usize,
}

/// A record that lacks the figure of a measure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("measure `{column}` of study {study}: {why} (record {record})")]
pub struct NoValue {
    study: String,
    column: String,
    why: NoOneValue,
    record: RecordId,
}

impl Measured {
    /// Returns the study's name.
    pub fn name(&self) -> &str {
        &self.study.name
    }

    /// Returns whether it builds a lab.
    pub fn is_in_lab(&self) -> bool {
        self.tests.iter().any(|test| test.lab.is_some())
    }

    /// Returns all runs in their order. `discreet` removes the secrets from a word.
    pub fn runs(&self, discreet: impl Fn(&str) -> String) -> Vec<PlannedRun> {
        self.order.iter().filter_map(|slot| self.run(slot, &discreet)).collect()
    }

    /// Returns one run; `None` if its words cannot be split, which [`Self::check`] has refused.
    fn run(&self, slot: &Slot, discreet: impl Fn(&str) -> String) -> Option<PlannedRun> {
        let Slot { cell, repeat, test: at } = slot;
        let test = shlex::split(&self.test_of(slot))?;
        let lab = match &self.lab_of(slot) {
            Some(lab) => Some(shlex::split(lab)?),
            None => None,
        };
        let mut command = vec!["linerate".to_owned()];
        if let Some(lab) = &lab {
            command.extend(["lab".to_owned()].into_iter().chain(lab.iter().cloned()).chain(["--".to_owned()]));
        }
        command.extend(test.iter().cloned());
        let sets = || {
            let all = self.settings.iter().enumerate();
            all.filter_map(|(at, setting)| Some((at, setting.set.as_ref()?, cell[at]?)))
        };
        let commands: BTreeMap<usize, HostCommand> =
            sets().filter_map(|(at, set, level)| Some((at, set.command(&self.words(at, level))?))).collect();
        let steps = sets().filter_map(|(at, set, level)| Some((at, set.step(self.level(at, level))?))).collect();
        let levels = self.study.factors.iter().enumerate();
        let is = StudyRun {
            study: self.study.name.clone(),
            levels: levels
                .filter_map(|(at, factor)| Some((factor.column.clone(), self.level(at, cell[at]?).to_owned())))
                .collect(),
            repeat: *repeat,
            test: self.tests[*at].name.clone(),
            set: commands.values().map(HostCommand::with_host).collect(),
        };
        let command = command.iter().map(|word| discreet(word)).collect();
        let name = [Some(self.cell_name(cell)), is.test.clone()].into_iter().flatten().filter(|name| !name.is_empty());
        let name = name.collect::<Vec<_>>().join(", ");
        Some(PlannedRun { is, name, command, steps, commands, lab, test, cell: cell.clone(), at: *at })
    }

    /// Refuses cells with words that cannot be split, or with an impossible path.
    pub(super) fn check(&self, source: &Source<'_>, tests: &Tests) -> Result<(), StudyError> {
        for slot in &self.order {
            let broken = || {
                let cell = self.cell_name(&slot.cell);
                format!("is no line of words with {cell}: a quote is not closed; expected words as on a command line")
            };
            let written = &tests.all[slot.test];
            if shlex::split(&self.test_of(slot)).is_none() {
                return Err(source.fault(&written.test, "test", broken()));
            }
            if let (Some(words), Some(at)) = (self.lab_of(slot), &written.lab)
                && shlex::split(&words).is_none()
            {
                return Err(source.fault(at, "lab", broken()));
            }
            let cell = StudyCell {
                levels: slot.cell.clone(),
                values: Vec::new(),
                stated: std::collections::BTreeMap::new(),
                firmness: Vec::new(),
            };
            for measure in self.measures_of(slot.test) {
                self.study.conditions(&cell, measure).carried().map_err(|error| StudyError::Line {
                    file: source.file.to_owned(),
                    line: 1,
                    problem: format!("the path that {} give cannot be: {error}", self.cell_name(&slot.cell)),
                })?;
            }
        }
        Ok(())
    }

    /// Returns the study with the values of `records`, in the order of the levels. If a run has several records, the
    /// first counts.
    pub fn gathered(&self, runs: &[PlannedRun], records: &[Record]) -> Result<Study, NoValue> {
        let kept = Kept::of(records);
        let mut cells: BTreeMap<&[Option<usize>], Vec<Repeats<'_>>> = BTreeMap::new();
        for run in runs {
            if let Some(record) = kept.find(run) {
                let tests = cells.entry(&run.cell).or_insert_with(|| vec![Vec::new(); self.tests.len()]);
                tests[run.at].push((run.is.repeat, record));
            }
        }
        let mut study = self.study.clone();
        let mut measured = Vec::new();
        for (levels, mut tests) in cells {
            tests.iter_mut().for_each(|repeats| repeats.sort_by_key(|(repeat, _)| *repeat));
            let mut values = Vec::new();
            let mut firmness = Vec::new();
            for (measure, gathered) in self.metrics.iter().enumerate() {
                let mut of_repeats = Vec::new();
                let mut firm = Firmness::Firm;
                for (_, record) in &tests[gathered.test] {
                    of_repeats.extend(self.value(measure, record)?);
                    firm = firm.and(gathered.metric.firmness_of_record(record));
                }
                values.push(of_repeats);
                firmness.push(firm);
            }
            if firmness.iter().all(|firmness| firmness.is_firm()) {
                firmness.clear();
            }
            study.cells.push(StudyCell {
                levels: levels.to_vec(),
                values,
                stated: std::collections::BTreeMap::new(),
                firmness,
            });
            measured.extend(tests.into_iter().flatten().map(|(_, record)| record));
        }
        if measured.len() < runs.len() {
            study.notes.push(message!(
                "study-note-missing",
                "{done} of {runs} runs are measured; `linerate run` goes on.",
                done = MessageValue::Count(measured.len() as u64),
                runs = MessageValue::Count(runs.len() as u64)
            ));
        }
        let not_firm = firmness_caveat(&study);
        study.notes.extend(not_firm);
        study.notes.extend(caveats(&measured));
        study.design = Some(self.design.clone());
        Ok(study)
    }

    /// Returns column and metric of each measure that `run` gives, and the line of the study's file that names the
    /// metric.
    pub fn metrics(&self, run: &PlannedRun) -> impl Iterator<Item = (&str, Metric, usize)> {
        self.measures_of(run.at).map(|measure| {
            let Gathered { metric, line, .. } = self.metrics[measure];
            (self.study.measures[measure].column.as_str(), metric, line)
        })
    }

    fn measures_of(&self, test: usize) -> impl Iterator<Item = usize> {
        (0..self.metrics.len()).filter(move |at| self.metrics[*at].test == test)
    }

    /// Returns the value of a measure in one record.
    pub fn value(&self, measure: usize, record: &Record) -> Result<Option<f64>, NoValue> {
        self.metrics[measure].metric.of_record(record).map_err(|why| NoValue {
            study: self.study.name.clone(),
            column: self.study.measures[measure].column.clone(),
            why,
            record: record.id.clone(),
        })
    }

    /// Formats the values of a run's measures.
    ///
    /// # Errors
    /// The test does not give one of the measures.
    pub fn said(&self, run: &PlannedRun, record: &Record) -> Result<String, NoValue> {
        let mut values = Vec::new();
        for measure in self.measures_of(run.at) {
            let value = self.value(measure, record)?;
            let text = value.map_or_else(|| "nothing".to_owned(), |value| self.metrics[measure].metric.show(value));
            values.push(format!("{} {text}", self.study.measures[measure].title));
        }
        Ok(values.join(", "))
    }

    fn test_of(&self, slot: &Slot) -> String {
        self.filled(&self.tests[slot.test].words, slot)
    }

    fn lab_of(&self, slot: &Slot) -> Option<String> {
        self.tests[slot.test].lab.as_ref().map(|lab| self.filled(lab, slot))
    }

    fn filled(&self, template: &Template, slot: &Slot) -> String {
        template.filled(|factor| slot.cell[factor].map_or_else(String::new, |level| self.words(factor, level)))
    }

    /// Returns the words for a level; a name is quoted as one word.
    fn words(&self, factor: usize, level: usize) -> String {
        let name = self.level(factor, level);
        let words = self.settings[factor].words[level].clone();
        words.unwrap_or_else(|| shlex::try_quote(name).map_or_else(|_| name.to_owned(), |name| name.into_owned()))
    }

    fn level(&self, factor: usize, level: usize) -> &str {
        &self.study.factors[factor].levels[level].name
    }

    fn cell_name(&self, cell: &[Option<usize>]) -> String {
        let mut names = Vec::new();
        for (at, factor) in self.study.factors.iter().enumerate() {
            let Some(level) = cell[at] else { continue };
            let unit = factor.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
            names.push(format!("{} {}{unit}", factor.title, self.level(at, level)));
        }
        names.join(", ")
    }
}

impl HostCommand {
    /// Formats the command with its host.
    fn with_host(&self) -> String {
        self.host.as_ref().map_or_else(|| self.command.clone(), |host| format!("{host}: {}", self.command))
    }
}

/// Records by the levels and the repeat of their run. If a run has several, the first one given comes first.
pub struct Kept<'a>(BTreeMap<(&'a BTreeMap<String, String>, u32), Vec<&'a Record>>);

impl<'a> Kept<'a> {
    /// Sorts records by their run.
    pub fn of(records: &'a [Record]) -> Self {
        let mut kept: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in records {
            if let Some(run) = &record.study {
                kept.entry((&run.levels, run.repeat)).or_default().push(record);
            }
        }
        Self(kept)
    }

    /// Returns the record of a run that has the same command and the same factors set.
    pub fn find(&self, run: &PlannedRun) -> Option<&'a Record> {
        let records = self.0.get(&(&run.is.levels, run.is.repeat))?;
        records.iter().copied().find(|record| record.study.as_ref() == Some(&run.is) && record.command == run.command)
    }
}

/// Records of one test in one cell, each with its repeat.
type Repeats<'a> = Vec<(u32, &'a Record)>;

/// Returns a caveat that counts the results that are not firm; `None` if all are firm.
fn firmness_caveat(study: &Study) -> Option<Message> {
    let mut results = 0;
    let mut open = 0;
    for cell in &study.cells {
        for measure in (0..cell.values.len()).filter(|measure| !cell.values[*measure].is_empty()) {
            results += 1;
            open += u64::from(!cell.firmness_of(measure).is_firm());
        }
    }
    (open > 0).then(|| {
        message!(
            "study-note-not-firm",
            "{open} of {results} results are not firm: the tester did not offer the load that was to decide. Rates among them are lower \
             bounds. They take part in no finding, but that a lower bound may be ahead of another result.",
            open = MessageValue::Count(open),
            results = MessageValue::Count(results)
        )
    })
}

/// Returns the caveats of the records and of their results, each kind once: its count, and the text of the first.
fn caveats(records: &[&Record]) -> Vec<Message> {
    let mut kinds: BTreeMap<CaveatKind, (u64, &Message)> = BTreeMap::new();
    for record in records {
        let of_results = record.results.iter().flat_map(|result| &result.caveats);
        let mut caveats: Vec<_> = record.caveats.iter().chain(of_results).collect();
        caveats.sort_by_key(|caveat| caveat.kind);
        caveats.dedup_by_key(|caveat| caveat.kind);
        // Each record of a study has one run; the study repeats it.
        caveats.retain(|caveat| caveat.kind != CaveatKind::FewRuns);
        for caveat in caveats {
            kinds.entry(caveat.kind).or_insert((0, &caveat.text)).0 += 1;
        }
    }
    let mut notes = Vec::new();
    for (count, text) in kinds.into_values() {
        notes.push(message!(
            "study-note-of-runs",
            "In {count} of {runs} runs: {caveat}",
            count = MessageValue::Count(count),
            runs = MessageValue::Count(records.len() as u64),
            caveat = text.clone()
        ));
    }
    notes
}
