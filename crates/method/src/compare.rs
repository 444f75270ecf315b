//! Records held against each other: which figures changed by more than matters, which did not, and which are undecided.
//!
//! Each figure is tested against a tolerance in both directions, so "the same" is shown and not merely not refuted. Of many
//! figures some differ by chance alone: Holm's procedure corrects the p-values, so that the confidence holds for all figures
//! together.
//!
//! **Drift.** Two records were made at different times, and what else changed in between looks like an effect. Runs of one
//! session say nothing of how much sessions differ. There are three ways ([`Samples`]): runs made in turn, in pairs, cancel what
//! changes slowly; several records of each side show how much sessions differ; of one record each, a drift up to the tolerance
//! is allowed for, and a warning says so.
//!
//! **Searches.** What a search found is one value. Several searches are sessions, or the pairs of runs made in turn.

mod conditions;
#[cfg(test)]
mod false_alarms;
mod judge;
mod runs;
mod searched;
#[cfg(test)]
mod searched_tests;
#[cfg(test)]
mod tests;

use crate::results;
use crate::statistics::level_of_each;
use crate::task::kind;
use judge::{Figure, compared};
use linerate_model::{
    Comparison, CurvePlan, DevicePlan, Goal, Message, Quantity, Record, RecordId, Samples, Trial, message,
};
use runs::Runs;
use searched::{Searches, joined};
use std::collections::BTreeSet;

/// What a difference is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demands {
    /// A difference of this share of the figure before does not matter.
    pub tolerance: f64,
    /// Confidence of all verdicts together, percent.
    pub confidence_percent: f64,
    /// How often the data are looked at, at the most, while they grow.
    pub looks: u32,
}

impl Demands {
    /// The tolerance unless another is asked for: 2 %.
    pub const TOLERANCE: f64 = 0.02;

    /// Those of data that are complete.
    pub fn once(tolerance: f64, confidence_percent: f64) -> Self {
        Self { tolerance, confidence_percent, looks: 1 }
    }

    /// The level of the tests at each look.
    fn level(&self) -> f64 {
        level_of_each(1.0 - self.confidence_percent / 100.0, self.looks)
    }
}

/// Compares what the records `after` found with what those `before` found. Each record is one session.
pub fn compare(before: &[Record], after: &[Record], demands: &Demands) -> Comparison {
    let samples = if before.len().max(after.len()) > 1 { Samples::Sessions } else { Samples::Runs };
    let mut remarks = Vec::new();
    let mut figures = Vec::new();
    for cell in before.first().into_iter().flat_map(cells) {
        let mut sides = [before, after].map(|side| with(side, cell, &mut remarks));
        let [old, new] = &mut sides;
        if new.is_empty() {
            continue;
        }
        for quantity in kind(cell.task().kind()).compared(cell.task()) {
            let runs = |side: &[&Record]| -> Vec<Runs> {
                side.iter().filter_map(|record| Runs::of(record, &cell.name, quantity)).collect()
            };
            figures.extend(match (samples, &runs(old)[..], &runs(new)[..]) {
                (_, [], _) | (_, _, []) => None,
                (Samples::Sessions, old, new) => Figure::of_sessions(&cell.name, quantity, old, new),
                (_, [old, ..], [new, ..]) => Some(Figure::of_runs(&cell.name, quantity, old, new)),
            });
        }
    }
    let searches = [before, after].map(|side| Searches::of(&searched_alike(before.first(), side, &mut remarks)));
    for (name, quantity, [old, new]) in searches[0].beside(&searches[1], false) {
        figures.extend(match samples {
            Samples::Sessions => Figure::of_sessions(&name, quantity, &old, &new),
            _ => Some(Figure::of_runs(&name, quantity, &joined(&old), &joined(&new))),
        });
    }
    remarks.extend(of_one_side(&searches));
    let old: BTreeSet<&str> = names(before);
    remarks.extend(
        names(after)
            .into_iter()
            .filter(|name| !old.contains(name))
            .map(|name| message!("compared-measured-after", "`{name}` was measured after only", name)),
    );
    let mut found = concluded((before, after), samples, figures, remarks, demands);
    if samples == Samples::Runs && !found.figures.is_empty() {
        let percent = format!("{:.3}", demands.tolerance * 100.0);
        found.warnings.push(message!(
            "compared-one-session",
            "one session each: the variation between sessions is unknown, and a drift beyond the tolerance of \
             {tolerance} looks like a change; give several records of each side, or measure in turn with `linerate compare --live`",
            tolerance = format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
        ));
    }
    found
}

/// Compares searches that were made in turn: the n-th of `before` and the n-th of `after` are a pair.
pub fn compare_searches(before: &[Record], after: &[Record], demands: &Demands) -> Comparison {
    let searches = [before, after].map(|side| Searches::of(&side.iter().collect::<Vec<_>>()));
    let figures = searches[0].beside(&searches[1], true).into_iter();
    let figures = figures
        .map(|(name, quantity, [old, new])| Figure::of_pairs(&name, quantity, &joined(&old), &joined(&new)))
        .collect();
    concluded((before, after), Samples::Pairs, figures, of_one_side(&searches), demands)
}

/// What searches of one side only have found, in words.
fn of_one_side([before, after]: &[Searches; 2]) -> Vec<Message> {
    fn only<'a>(one: &'a Searches, other: &Searches) -> BTreeSet<&'a str> {
        let other: BTreeSet<&str> = other.names().collect();
        one.names().filter(|name| !other.contains(name)).collect()
    }
    let only_before = only(before, after).into_iter();
    let only_after = only(after, before).into_iter();
    only_before
        .map(|name| message!("compared-found-before", "`{name}` was found before only", name))
        .chain(only_after.map(|name| message!("compared-found-after", "`{name}` was found after only", name)))
        .collect()
}

/// Compares two records whose runs were made in turn: the n-th run of `before` and the n-th of `after` are a pair. Cells of other
/// names are compared too where each record has but one.
pub fn compare_pairs(before: &Record, after: &Record, demands: &Demands) -> Comparison {
    let (mut figures, mut remarks) = (Vec::new(), Vec::new());
    let new: Vec<&Trial> = cells(after).collect();
    let old: Vec<&Trial> = cells(before).collect();
    for cell in &old {
        let other = match (&old[..], &new[..]) {
            ([_], [other]) => Some(other),
            _ => new.iter().find(|other| other.name == cell.name),
        };
        let Some(other) = other else {
            remarks.push(message!("compared-measured-before", "`{name}` was measured before only", name = &cell.name));
            continue;
        };
        let compared = |cell: &Trial| -> Vec<Quantity> { kind(cell.task().kind()).compared(cell.task()) };
        let of_other = compared(other);
        let name = if cell.name == other.name { cell.name.clone() } else { format!("{} / {}", cell.name, other.name) };
        for quantity in compared(cell).into_iter().filter(|quantity| of_other.contains(quantity)) {
            let runs = Runs::of(before, &cell.name, quantity).zip(Runs::of(after, &other.name, quantity));
            figures.extend(runs.map(|(old, new)| Figure::of_pairs(&name, quantity, &old, &new)));
        }
    }
    let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
    concluded((before, after), Samples::Pairs, figures, remarks, demands)
}

/// The comparison that these figures make.
fn concluded(
    (before, after): (&[Record], &[Record]),
    samples: Samples,
    figures: Vec<Figure>,
    remarks: Vec<Message>,
    demands: &Demands,
) -> Comparison {
    let ids = |side: &[Record]| side.iter().map(|record| record.id.clone()).collect();
    let level = demands.level();
    Comparison {
        before: ids(before),
        after: ids(after),
        samples,
        tolerance: demands.tolerance,
        confidence_percent: demands.confidence_percent,
        level,
        figures: compared(figures, demands.tolerance, level),
        warnings: conditions::warnings(before, after),
        remarks,
    }
}

/// The records of `side` that measured the same as `cell`; of the others `remarks` say why not.
fn with<'a>(side: &'a [Record], cell: &Trial, remarks: &mut Vec<Message>) -> Vec<&'a Record> {
    let mut found = Vec::new();
    for record in side {
        let remark = match cells(record).find(|other| other.name == cell.name) {
            None => {
                let (name, record) = (&cell.name, &record.id.0);
                Some(message!("compared-not-measured", "`{name}` was not measured in {record}", name, record))
            }
            Some(other) => measured_differently(cell, other, &record.id),
        };
        match remark {
            Some(remark) => remarks.push(remark),
            None => found.push(record),
        }
    }
    found
}

/// The records of `side` that searched as `first` did; of the others `remarks` say that they did not.
fn searched_alike<'a>(first: Option<&Record>, side: &'a [Record], remarks: &mut Vec<Message>) -> Vec<&'a Record> {
    let is_alike = |record: &&Record| {
        let remark = first.and_then(|first| searched_differently(first, record));
        let is_alike = remark.is_none();
        remarks.extend(remark.filter(|remark| !remarks.contains(remark)));
        is_alike
    };
    side.iter().filter(is_alike).collect()
}

/// What makes what two records searched for different measurements; none where one of them searched for nothing.
fn searched_differently(first: &Record, other: &Record) -> Option<Message> {
    let differ = |name: &str| {
        message!(
            "compared-other-options",
            "`{name}` is not the same measurement in {record}: what was asked for and its options differ",
            name,
            record = other.id.0.clone()
        )
    };
    match (&first.plan.goal, &other.plan.goal) {
        (Goal::Curve(plan), Goal::Curve(others)) => {
            let asked = |plan: &CurvePlan| (plan.time, plan.response_cap, plan.shortfall, plan.width);
            let alike = asked(plan) == asked(others) || plan.cell.name != others.cell.name;
            let cell = measured_differently(&plan.cell, &others.cell, &other.id);
            cell.or_else(|| (!alike).then(|| differ(&plan.cell.name)))
        }
        (Goal::Device(plan), Goal::Device(others)) => {
            let asked = |plan: &DevicePlan| {
                let times = (plan.search_time, plan.final_time, plan.settle);
                (plan.test.clone(), plan.directions.len(), times, plan.loss, plan.width, plan.engine)
            };
            (asked(plan) != asked(others)).then(|| differ("device"))
        }
        _ => None,
    }
}

fn names(side: &[Record]) -> BTreeSet<&str> {
    side.iter().flat_map(cells).map(|cell| cell.name.as_str()).collect()
}

/// What was asked for; what put a verdict to the test was not, nor were the loads that a curve has chosen.
fn cells(record: &Record) -> impl Iterator<Item = &Trial> {
    let asked =
        |cell: &&Trial| cell.proves.is_none() && record.plan.curve().is_none_or(|curve| curve.cell.name == cell.name);
    results::cells(record).into_iter().filter(asked)
}

/// What makes a cell and the `other` of its name, which was measured in `record`, different measurements. Congestion control, like
/// time, is a condition of one measurement.
fn measured_differently(cell: &Trial, other: &Trial, record: &RecordId) -> Option<Message> {
    let (name, record) = (&cell.name, &record.0);
    if cell.paths().len() != other.paths().len() {
        return Some(message!(
            "compared-other-paths",
            "`{name}` is not the same measurement in {record}: the numbers of paths differ",
            name,
            record
        ));
    }
    let task = |cell: &Trial| {
        // The same between other hosts is the same measurement.
        let mut task = cell.task().clone();
        task.paths_mut().into_iter().for_each(Vec::clear);
        task.net_mut().into_iter().for_each(|net| net.socket.congestion = None);
        task
    };
    (task(cell) != task(other)).then(|| {
        message!(
            "compared-other-options",
            "`{name}` is not the same measurement in {record}: what was asked for and its options differ",
            name,
            record
        )
    })
}
