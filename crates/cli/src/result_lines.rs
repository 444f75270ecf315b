//! Results of a run in lines, each when all runs of it are done.

use crate::output::style;
use linerate_method::replay;
use linerate_model::{Host, Plan, Record, RecordId, Repeats, TrialResult};
use linerate_report::Style;
use linerate_report::overview::{Line, lines};
use std::collections::BTreeSet;

/// The results of a run as they become known.
pub(crate) struct ResultLines {
    /// What was measured so far.
    record: Record,
    /// The names of the results that were told.
    told: BTreeSet<String>,
    style: Style,
}

impl ResultLines {
    /// Those of a run of `plan` between `hosts` that begins now.
    pub(crate) fn new(plan: Plan, hosts: Vec<Host>) -> Self {
        let record = Record { hosts, ..Record::new(RecordId(String::new()), plan) };
        Self { record, told: BTreeSet::new(), style: style() }
    }

    /// Takes an attempt. Returns the results that have all their runs with it. What a device test found is not known before its end.
    pub(crate) fn take(&mut self, result: &TrialResult) -> Vec<String> {
        self.record.trials.push(result.clone());
        let Some(Repeats::Times(repeats)) = self.record.plan.repeats() else { return Vec::new() };
        let mut so_far = self.record.clone();
        replay(&mut so_far);
        self.tell(&so_far, |line| line.runs() >= repeats)
    }

    /// Returns the results of the whole run that were not told yet.
    pub(crate) fn rest(&mut self, record: &Record) -> Vec<String> {
        self.tell(record, |_| true)
    }

    fn tell(&mut self, record: &Record, is_known: impl Fn(&Line) -> bool) -> Vec<String> {
        let mut all = lines(self.style.language, record);
        all.retain(|line| is_known(line) && self.told.insert(line.name().to_owned()));
        all.iter().map(|line| line.text(&self.style)).collect()
    }
}
