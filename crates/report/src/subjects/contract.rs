//! The contract of subjects: what reports show of a task, of a device test, of a ladder.

use crate::blocks::chart::Chart;
use crate::blocks::section::{Entry, Section};
use crate::blocks::table::Table;
use crate::language::Language;
use crate::subjects::live::Live;
use crate::subjects::parties;
use linerate_model::{Caveat, Measurement, Record, Task, Verdict};

/// A subject of results. Each method returns nothing unless the subject overrides it.
pub(crate) trait Subject: Sync {
    /// Returns what it shows while it runs.
    fn live(&self) -> &'static Live;

    /// Returns the sentences of a result, and how many of them are the answer.
    fn sentences(&self, _lang: Language, _record: &Record, _result: &Measurement) -> (Vec<String>, usize) {
        (Vec::new(), 0)
    }

    /// Returns what many results of a record have in common, if there are more than `max_entries`.
    fn in_common(&self, _lang: Language, _record: &Record, _max_entries: usize) -> Vec<String> {
        Vec::new()
    }

    /// Returns the entries of a record that are no results of their own, at most `max_entries` of one kind.
    fn entries(&self, _lang: Language, _record: &Record, _max_entries: usize) -> Vec<Entry> {
        Vec::new()
    }

    /// Returns a sentence for the figures that are not firm.
    fn not_firm(&self, _lang: Language, _record: &Record) -> Vec<String> {
        Vec::new()
    }

    /// Returns the table of the subject's results among `results`.
    fn table(&self, _lang: Language, _results: &[&Measurement]) -> Option<Table> {
        None
    }

    /// Returns the section that the subject has for itself.
    fn section(&self, _lang: Language, _record: &Record) -> Option<Section> {
        None
    }

    /// Returns the charts of rates, which come before the charts that all subjects have.
    fn rate_charts(&self, _lang: Language, _results: &[&Measurement]) -> Vec<Chart> {
        Vec::new()
    }

    /// Returns the charts that come after those that all subjects have.
    fn further_charts(&self, _lang: Language, _results: &[&Measurement]) -> Vec<Chart> {
        Vec::new()
    }

    /// Returns verdicts that are not those of a result, each with its name.
    fn verdicts<'a>(&self, _lang: Language, _record: &'a Record) -> Vec<(String, &'a Verdict)> {
        Vec::new()
    }

    /// Returns caveats that are neither the record's nor a result's.
    fn caveats<'a>(&self, _record: &'a Record) -> Vec<&'a Caveat> {
        Vec::new()
    }

    /// Returns the parties of a task.
    fn parties(&self, lang: Language, task: &Task) -> Option<String> {
        parties::of_paths(lang, task.paths())
    }

    /// Returns how a record was measured, in sentences.
    fn method(&self, _lang: Language, _record: &Record) -> Vec<String> {
        Vec::new()
    }

    /// Returns the rows of a table of its own in CSV, the head first.
    fn csv_rows(&self, _record: &Record) -> Vec<Vec<String>> {
        Vec::new()
    }
}
