//! A study that is measured: its runs, which of them are done, and what they amount to.

use super::StudyError;
use super::document::Source;
use super::order::Slot;
use super::run::Template;
use super::tests_of::Tests;
use crate::study::{Study, StudyCell};
use linerate_method::{Metric, NoOneValue};
use linerate_model::{CaveatKind, Firmness, Record, RecordId, StudyRun};
use std::collections::BTreeMap;
use toml::Spanned;

/// A study and what it runs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Without its cells.
    pub(super) study: Study,
    pub(super) settings: Vec<Setting>,
    /// What each measure is of a record.
    pub(super) metrics: Vec<Gathered>,
    pub(super) tests: Vec<NamedTest>,
    /// All runs.
    pub(super) order: Vec<Slot>,
    /// The order in words.
    pub(super) design: String,
}

/// A measure's figure, and the test whose record has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathered {
    pub(super) metric: Metric,
    /// An index into the tests.
    pub(super) test: usize,
    /// The line of the study's file that names the metric, counted from one.
    pub(super) line: usize,
}

/// A test that each cell of its factors goes through.
#[derive(Debug, Clone)]
pub(super) struct NamedTest {
    /// None where it is the only one.
    pub(super) name: Option<String>,
    pub(super) words: Template,
    /// The words for `linerate lab`; none where the study has no lab.
    pub(super) lab: Option<Template>,
}

/// How a factor is set.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) column: Spanned<String>,
    /// For each level the words that stand for it, where these are not its name.
    pub(super) words: Vec<Option<String>>,
    pub(super) set: Option<Set>,
}

/// What sets a factor beside its place in the words of test and lab.
#[derive(Debug, Clone)]
pub(super) enum Set {
    Command { command: String, undo: Option<String>, host: Option<String> },
    Person(String),
}

/// A command that sets a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCommand {
    /// For `sh -c`.
    pub command: String,
    /// What takes it back.
    pub undo: Option<String>,
    /// The lab's host in which it runs; none for this machine.
    pub host: Option<String>,
}

/// One run of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Which it is.
    pub is: StudyRun,
    /// The levels in words: `link 100Mbit/s, message size 64 bytes`.
    pub name: String,
    /// The command with its lab, as its record keeps it: secrets left out.
    pub command: Vec<String>,
    /// What a person has to have done, by factor.
    pub steps: BTreeMap<usize, String>,
    /// What must have been run, by factor.
    pub commands: BTreeMap<usize, HostCommand>,
    /// The words for `linerate lab`; none where there is no lab.
    pub lab: Option<Vec<String>>,
    /// The words of the test.
    pub test: Vec<String>,
    /// The level of each factor; none where the test does not use the factor.
    pub(super) cell: Vec<Option<usize>>,
    /// Which of the tests it is.
    at: usize,
}

/// A record that is no run of the study after all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("measure `{column}` of study {study}: {why} (record {record})")]
pub struct NoValue {
    study: String,
    column: String,
    why: NoOneValue,
    record: RecordId,
}

impl Measured {
    /// The study's name.
    pub fn name(&self) -> &str {
        &self.study.name
    }

    /// Whether it builds a lab.
    pub fn is_in_lab(&self) -> bool {
        self.tests.iter().any(|test| test.lab.is_some())
    }

    /// All runs in their order. `discreet` leaves the secrets out of a word.
    pub fn runs(&self, discreet: impl Fn(&str) -> String) -> Vec<PlannedRun> {
        self.order.iter().filter_map(|slot| self.run(slot, &discreet)).collect()
    }

    /// One run; none if its words are none, which [`Self::check`] has refused.
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
            set: commands.values().map(HostCommand::said).collect(),
        };
        let command = command.iter().map(|word| discreet(word)).collect();
        let name = [Some(self.cell_name(cell)), is.test.clone()].into_iter().flatten().filter(|name| !name.is_empty());
        let name = name.collect::<Vec<_>>().join(", ");
        Some(PlannedRun { is, name, command, steps, commands, lab, test, cell: cell.clone(), at: *at })
    }

    /// Refuses cells whose words or whose path cannot be.
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

    /// The study with the values of `records`, where its runs have any, in the order of the levels. Of several records of one run the
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
        let mut of_all = Vec::new();
        for (levels, mut tests) in cells {
            tests.iter_mut().for_each(|repeats| repeats.sort_by_key(|(repeat, _)| *repeat));
            let values = (0..self.metrics.len()).map(|measure| {
                let values = tests[self.metrics[measure].test].iter().map(|(_, record)| self.value(measure, record));
                values.filter_map(Result::transpose).collect::<Result<Vec<f64>, NoValue>>()
            });
            let values = values.collect::<Result<_, _>>()?;
            let of_repeats = |gathered: &Gathered| {
                let all = tests[gathered.test].iter().map(|(_, record)| gathered.metric.firmness_of_record(record));
                all.fold(Firmness::Firm, Firmness::and)
            };
            let firmness: Vec<Firmness> = self.metrics.iter().map(of_repeats).collect();
            let firmness = if firmness.iter().all(|one| one.is_firm()) { Vec::new() } else { firmness };
            study.cells.push(StudyCell {
                levels: levels.to_vec(),
                values,
                stated: std::collections::BTreeMap::new(),
                firmness,
            });
            of_all.extend(tests.into_iter().flatten().map(|(_, record)| record));
        }
        if of_all.len() < runs.len() {
            let problem = format!("{} of {} runs are measured; `linerate run` goes on", of_all.len(), runs.len());
            study.caveats.push(problem);
        }
        study.caveats.extend(open(&study));
        study.caveats.extend(doubts(&of_all));
        study.method = format!("{} {}", study.method.trim_end(), self.design);
        Ok(study)
    }

    /// The column and the metric of each measure that is taken from `run`, and the line of the study's file that names the metric.
    pub fn metrics(&self, run: &PlannedRun) -> impl Iterator<Item = (&str, Metric, usize)> {
        let of = |at: usize| (self.study.measures[at].column.as_str(), self.metrics[at].metric, self.metrics[at].line);
        self.measures_of(run.at).map(of)
    }

    fn measures_of(&self, test: usize) -> impl Iterator<Item = usize> {
        (0..self.metrics.len()).filter(move |at| self.metrics[*at].test == test)
    }

    /// The value of a measure in one record.
    pub fn value(&self, measure: usize, record: &Record) -> Result<Option<f64>, NoValue> {
        self.metrics[measure].metric.of_record(record).map_err(|why| NoValue {
            study: self.study.name.clone(),
            column: self.study.measures[measure].column.clone(),
            why,
            record: record.id.clone(),
        })
    }

    /// What the record of a run says of its measures, in words; that one of them is no figure of the test is an error.
    pub fn said(&self, run: &PlannedRun, record: &Record) -> Result<String, NoValue> {
        let of = |measure: usize| {
            let value = self.value(measure, record)?;
            let said = value.map_or_else(|| "nothing".to_owned(), |value| self.metrics[measure].metric.show(value));
            Ok(format!("{} {said}", self.study.measures[measure].title))
        };
        self.measures_of(run.at).map(of).collect::<Result<Vec<_>, _>>().map(|said| said.join(", "))
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

    /// The words for a level; a name is one word.
    fn words(&self, factor: usize, level: usize) -> String {
        let given = self.settings[factor].words[level].clone();
        let name = self.level(factor, level);
        given.unwrap_or_else(|| shlex::try_quote(name).map_or_else(|_| name.to_owned(), |name| name.into_owned()))
    }

    fn level(&self, factor: usize, level: usize) -> &str {
        &self.study.factors[factor].levels[level].name
    }

    fn cell_name(&self, cell: &[Option<usize>]) -> String {
        let named = self.study.factors.iter().enumerate().filter_map(|(at, factor)| {
            let unit = factor.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
            Some(format!("{} {}{unit}", factor.title, self.level(at, cell[at]?)))
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

impl HostCommand {
    /// The command and where it runs.
    fn said(&self) -> String {
        self.host.as_ref().map_or_else(|| self.command.clone(), |host| format!("{host}: {}", self.command))
    }
}

/// Records by the run that they are, the first of each kind first.
pub struct Kept<'a>(BTreeMap<(&'a BTreeMap<String, String>, u32), Vec<&'a Record>>);

impl<'a> Kept<'a> {
    /// These records.
    pub fn of(records: &'a [Record]) -> Self {
        let mut kept: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in records {
            if let Some(run) = &record.study {
                kept.entry((&run.levels, run.repeat)).or_default().push(record);
            }
        }
        Self(kept)
    }

    /// The record of a run, by the same command and with the same things set.
    pub fn find(&self, run: &PlannedRun) -> Option<&'a Record> {
        let records = self.0.get(&(&run.is.levels, run.is.repeat))?;
        records.iter().copied().find(|record| record.study.as_ref() == Some(&run.is) && record.command == run.command)
    }
}

/// The records of one test in one cell, each with its repeat.
type Repeats<'a> = Vec<(u32, &'a Record)>;

/// What is said of results that are not firm; none where all are.
fn open(study: &Study) -> Option<String> {
    let measured =
        |cell: &StudyCell| (0..cell.values.len()).filter(|at| !cell.values[*at].is_empty()).collect::<Vec<_>>();
    let results = || study.cells.iter().flat_map(|cell| measured(cell).into_iter().map(move |measure| (cell, measure)));
    let open = results().filter(|(cell, measure)| !cell.firmness_of(*measure).is_firm()).count();
    (open > 0).then(|| {
        format!(
            "{open} of {} results are not firm: the tester did not offer the load that was to decide. Rates among them are lower \
             bounds. They take part in no finding, but that a lower bound may be ahead of another result.",
            results().count()
        )
    })
}

/// The doubts of the records' results and of the records, each kind once: how often, and the first in its own words.
fn doubts(records: &[&Record]) -> Vec<String> {
    let mut kinds: BTreeMap<CaveatKind, (usize, &str)> = BTreeMap::new();
    for record in records {
        let of_results = record.results.iter().flat_map(|result| &result.caveats);
        let mut of_record: Vec<_> = record.caveats.iter().chain(of_results).collect();
        of_record.sort_by_key(|caveat| caveat.kind);
        of_record.dedup_by_key(|caveat| caveat.kind);
        // Each run of a study is one; the study has the repeats.
        of_record.retain(|caveat| caveat.kind != CaveatKind::FewRuns);
        for caveat in of_record {
            kinds.entry(caveat.kind).or_insert((0, &caveat.text)).0 += 1;
        }
    }
    let all = records.len();
    kinds.into_values().map(|(count, text)| format!("In {count} of {all} runs: {text}")).collect()
}
