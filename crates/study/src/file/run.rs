//! The runs of a study by its file: `[run]`, and `set` of factors.

use super::StudyError;
use super::document::Source;
use super::measured::{Gathered, HostCommand, Measured, NamedTest, Set, Setting};
use super::order::{Order, Uses, order};
use super::tests_of::{TestOf, Tests};
use super::without::Without;
use crate::study::{Design, Study};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// Default number of repeats.
const USUAL_REPEATS: u32 = 3;
/// Maximum number of runs. More are a slip: at a second each they take more than a day.
const MOST_RUNS: usize = 100_000;
/// Placeholder of a level in the command that sets it.
const LEVEL: &str = "{level}";

/// `[run]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunEntry {
    pub(super) test: Option<Spanned<String>>,
    pub(super) lab: Option<Spanned<String>>,
    repeats: Option<Spanned<u32>>,
    #[serde(default)]
    order: Order,
    #[serde(default = "first_seed")]
    seed: u64,
}

fn first_seed() -> u64 {
    1
}

/// `set` of a factor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetEntry {
    command: Option<Spanned<String>>,
    undo: Option<Spanned<String>>,
    host: Option<Spanned<String>>,
    person: Option<Spanned<String>>,
}

impl SetEntry {
    /// Returns how it sets a factor.
    pub(super) fn set(self, source: &Source<'_>, at: &Spanned<Self>, run: &RunEntry) -> Result<Set, StudyError> {
        let has_level = |text: &Spanned<String>, field: &str| {
            let problem = format!("does not say where the level goes; expected {LEVEL} in it");
            let has = text.get_ref().contains(LEVEL);
            if has { Ok(()) } else { Err(source.fault(text, field, problem)) }
        };
        match (self.command, self.person) {
            (Some(command), None) => {
                has_level(&command, "command")?;
                if let (Some(host), None) = (&self.host, &run.lab) {
                    let problem = "is a host of the study's lab, and there is none; without it the command runs on this machine, \
                                   from where `ssh HOST ...` reaches others";
                    return Err(source.fault(host, "host", problem.to_owned()));
                }
                Ok(Set::Command {
                    command: command.into_inner(),
                    undo: self.undo.map(Spanned::into_inner),
                    host: self.host.map(Spanned::into_inner),
                })
            }
            (None, Some(person)) => {
                has_level(&person, "person")?;
                if let Some(field) = self.undo.as_ref().or(self.host.as_ref()) {
                    let problem = "goes with `command` only; expected it to be left out".to_owned();
                    return Err(source.fault(field, "set", problem));
                }
                Ok(Set::Person(person.into_inner()))
            }
            _ => {
                let problem = "expected either `command`, as in { command = \"ip link set eth0 mtu {level}\" }, or `person`, as in \
                               { person = \"put {level} into slot 1\" }";
                Err(source.fault(at, "set", problem.to_owned()))
            }
        }
    }
}

impl RunEntry {
    /// Returns the whole study, after every run was checked.
    pub(super) fn measured(
        self,
        source: &Source<'_>,
        study: Study,
        settings: Vec<Setting>,
        tests: &Tests,
        metrics: Vec<Gathered>,
        without: &[Without],
    ) -> Result<Measured, StudyError> {
        let read = |test: &TestOf| {
            let lab = test.lab.as_ref().map(|lab| Template::read(source, lab, "lab", &settings)).transpose()?;
            let words = Template::read(source, &test.test, "test", &settings)?;
            Ok(NamedTest { name: test.name.clone(), words, lab })
        };
        let named = tests.all.iter().map(read).collect::<Result<Vec<NamedTest>, StudyError>>()?;
        for (at, test) in tests.all.iter().enumerate() {
            if metrics.iter().all(|gathered| gathered.test != at) {
                let problem = "gives no measure; expected one of [[measures]] to name it".to_owned();
                return Err(source.fault(&test.test, "test", problem));
            }
        }
        let set_by = |is: fn(&Set) -> bool| {
            let set = settings.iter().enumerate().filter(move |(_, setting)| setting.set.as_ref().is_some_and(is));
            set.map(|(factor, _)| factor).collect::<BTreeSet<usize>>()
        };
        let persons = set_by(|set| matches!(set, Set::Person(_)));
        let commands = set_by(|set| matches!(set, Set::Command { .. }));
        let uses: Vec<Uses> = named.iter().map(|test| test.uses(&named, &persons, &commands)).collect();
        for (factor, setting) in settings.iter().enumerate() {
            let is_used = |of: &Uses| of.built.contains(&factor) || of.varied.contains(&factor);
            if !persons.contains(&factor) && !uses.iter().any(is_used) {
                let column = setting.column.get_ref();
                let problem = format!(
                    "nothing sets `{column}`; expected {{{column}}} in `test` or `lab` of [run], or `set` beside its levels"
                );
                return Err(source.fault(&setting.column, "column", problem));
            }
        }
        let levels: Vec<usize> = study.factors.iter().map(|factor| factor.levels.len()).collect();
        let repeats = self.repeats.as_ref().map_or(USUAL_REPEATS, |repeats| *repeats.get_ref());
        let of_test = |uses: &Uses| {
            let mut used = persons.iter().chain(&uses.built).chain(&uses.varied);
            used.try_fold(repeats as usize, |runs, factor| runs.checked_mul(levels[*factor]))
        };
        let runs = uses.iter().try_fold(0usize, |runs, uses| runs.checked_add(of_test(uses)?));
        if !runs.is_some_and(|runs| (1..=MOST_RUNS).contains(&runs)) {
            let problem = format!(
                "levels and repeats make {} runs; expected 1 to {}",
                runs.map_or_else(|| "too many".to_owned(), |runs| linerate_units::grouped(runs as u64)),
                linerate_units::grouped(MOST_RUNS as u64)
            );
            return Err(match &self.repeats {
                Some(repeats) => source.fault(repeats, "repeats", problem),
                None => source.fault(&tests.all[0].test, "test", problem),
            });
        }
        let mut order = order(&levels, &persons, &uses, repeats, self.order, self.seed);
        order.retain(|slot| without.iter().all(|without| !without.has(&slot.cell)));
        if let ([], Some(last)) = (&order[..], without.last()) {
            let problem = "leaves no cell to measure; expected some combination of levels to be left".to_owned();
            return Err(source.fault(&last.at, "without", problem));
        }
        let built =
            uses.iter().flat_map(|uses| &uses.built).copied().collect::<BTreeSet<usize>>().into_iter().collect();
        let design = Design {
            repeats,
            seed: matches!(self.order, Order::Random).then_some(self.seed),
            built,
            set_by_person: persons.into_iter().collect(),
        };
        let measured = Measured { study, settings, metrics, tests: named, order, design };
        measured.check(source, tests)?;
        Ok(measured)
    }
}

impl NamedTest {
    /// Returns the factors that it uses, and the lab that it shares: that of the first of `all` with the same words for
    /// the lab. Factors set by `commands` hold for every test.
    fn uses(&self, all: &[Self], persons: &BTreeSet<usize>, commands: &BTreeSet<usize>) -> Uses {
        let lab = all.iter().position(|other| other.lab == self.lab).unwrap_or_default();
        let built: BTreeSet<usize> = self.lab.iter().flat_map(Template::factors).collect();
        let built = &built - persons;
        let varied: BTreeSet<usize> = self.words.factors().chain(commands.iter().copied()).collect();
        let varied = &(&varied - persons) - &built;
        Uses { lab, built, varied }
    }
}

/// Words with places for the levels of factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    text: String,
    /// Places of levels, each with its factor.
    places: Vec<(Range<usize>, usize)>,
}

impl Template {
    fn read(
        source: &Source<'_>,
        text: &Spanned<String>,
        field: &str,
        settings: &[Setting],
    ) -> Result<Self, StudyError> {
        let words = text.get_ref();
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(open) = words[from..].find('{').map(|at| from + at) {
            let close = words[open..].find('}').map(|at| open + at);
            let close = close.ok_or_else(|| {
                source.fault(text, field, "a `{` is not closed; expected the name of a factor and `}`".to_owned())
            })?;
            let name = &words[open + 1..close];
            let factor = settings.iter().position(|setting| setting.column.get_ref() == name).ok_or_else(|| {
                let known: Vec<String> =
                    settings.iter().map(|setting| format!("`{}`", setting.column.get_ref())).collect();
                let problem = format!("`{name}` is no factor of this study; expected one of {}", known.join(", "));
                source.fault(text, field, problem)
            })?;
            places.push((open..close + 1, factor));
            from = close + 1;
        }
        Ok(Self { text: words.clone(), places })
    }

    /// Returns the factors that have a place in it.
    fn factors(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|(_, factor)| *factor)
    }

    /// Returns the words with the level of each factor, from `level`, in its place.
    pub(super) fn filled(&self, level: impl Fn(usize) -> String) -> String {
        let (mut text, mut from) = (String::new(), 0);
        for (place, factor) in &self.places {
            text.push_str(&self.text[from..place.start]);
            text.push_str(&level(*factor));
            from = place.end;
        }
        text + &self.text[from..]
    }
}

impl Set {
    /// Returns the command for a level that is `words` in a shell; `None` if a person sets it.
    pub(super) fn command(&self, words: &str) -> Option<HostCommand> {
        let Self::Command { command, undo, host } = self else { return None };
        Some(HostCommand {
            command: command.replace(LEVEL, words),
            undo: undo.as_ref().map(|undo| undo.replace(LEVEL, words)),
            host: host.clone(),
        })
    }

    /// Returns the step that a person takes for a level; `None` if a command sets it.
    pub(super) fn step(&self, name: &str) -> Option<String> {
        let Self::Person(step) = self else { return None };
        Some(step.replace(LEVEL, name))
    }
}

#[cfg(test)]
mod tests;
