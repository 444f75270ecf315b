//! The tests of a study: the one `test` of `[run]`, or several named `[[tests]]`.

use super::StudyError;
use super::document::{Source, once, unknown};
use super::run::RunEntry;
use linerate_model::Layer;
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::Spanned;

/// `[[tests]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestEntry {
    name: Spanned<String>,
    test: Spanned<String>,
    lab: Option<Spanned<String>>,
}

impl TestEntry {
    pub(super) fn name(&self) -> &Spanned<String> {
        &self.name
    }
}

/// The tests of a study, in their order.
#[derive(Debug, Clone)]
pub(super) struct Tests {
    pub(super) all: Vec<TestOf>,
}

/// A test of the file.
#[derive(Debug, Clone)]
pub(super) struct TestOf {
    /// `None` for the only test of a study.
    pub(super) name: Option<String>,
    pub(super) test: Spanned<String>,
    /// Words for the lab: its own, or those of `[run]`. `None` if no test runs in a lab.
    pub(super) lab: Option<Spanned<String>>,
}

impl Tests {
    /// Reads `test` and `lab` of `[run]`, and `[[tests]]`.
    pub(super) fn read(
        source: &Source<'_>,
        run: &Spanned<RunEntry>,
        tests: Vec<TestEntry>,
    ) -> Result<Self, StudyError> {
        let RunEntry { test, lab, .. } = run.get_ref().clone();
        match (test, &tests[..]) {
            (Some(test), []) => Ok(Self { all: vec![TestOf { name: None, test, lab }] }),
            (None, []) => {
                let problem =
                    "there is no `test`; expected the words of a measuring command, or [[tests]] with a name each";
                Err(source.fault(run, "run", problem.to_owned()))
            }
            (Some(test), _) => {
                let problem = "stands beside [[tests]]; expected one of the two".to_owned();
                Err(source.fault(&test, "test", problem))
            }
            (None, _) => {
                let mut known = BTreeSet::new();
                for entry in &tests {
                    once(source, &mut known, &entry.name, "name")?;
                    if let (Some(own), None) = (&entry.lab, &lab) {
                        let problem = "stands without `lab` in [run]; expected that of the other tests there";
                        return Err(source.fault(own, "lab", problem.to_owned()));
                    }
                }
                let of = |entry: TestEntry| TestOf {
                    name: Some(entry.name.into_inner()),
                    test: entry.test,
                    lab: entry.lab.or_else(|| lab.clone()),
                };
                Ok(Self { all: tests.into_iter().map(of).collect() })
            }
        }
    }

    /// Returns the index of the test of a measure: the one called `named`, or the only one. Errors refer to `column`.
    pub(super) fn of(
        &self,
        source: &Source<'_>,
        named: Option<&Spanned<String>>,
        column: &Spanned<String>,
    ) -> Result<usize, StudyError> {
        let names = || self.all.iter().filter_map(|test| test.name.as_ref());
        match (named, names().count()) {
            (None, 0) => Ok(0),
            (Some(named), 0) => {
                let problem = "names one of [[tests]], and there are none; expected it to be left out".to_owned();
                Err(source.fault(named, "test", problem))
            }
            (Some(named), _) => names()
                .position(|name| name == named.get_ref())
                .ok_or_else(|| source.fault(named, "test", unknown("test", named.get_ref(), names()))),
            (None, _) => {
                let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                let problem = format!("does not say which `test` gives it; expected one of {}", all.join(", "));
                Err(source.fault(column, "column", problem))
            }
        }
    }

    /// Returns the layer whose bits the throughput of a test counts.
    pub(super) fn counts(&self, test: usize) -> Layer {
        match self.all[test].test.get_ref().split_whitespace().next() {
            // RFC 2544 section 26.1 counts frames.
            Some("device" | "frames") => Layer::Layer2Fcs,
            _ => Layer::Payload,
        }
    }
}
