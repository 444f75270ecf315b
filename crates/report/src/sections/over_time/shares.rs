//! Shares of a time over time: for each run the parts that it was spent in, lying on each other.

use super::course::{Course, CourseStep, extent};
use super::time_axis::TimeAxis;
use crate::blocks::chart::Chart;
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, StackedRun, StackedRuns, StackedShare, Stretch};
use crate::blocks::table::{Column, Table};
use crate::figures::percent;
use crate::language::Language;
use linerate_model::Span;

/// Most intervals of a run.
const MOST_STEPS: f64 = 150.0;

/// A run and how its time passed.
pub(crate) struct SharedRun {
    pub(crate) name: String,
    /// Whether it is drawn; the table has it in any case.
    pub(crate) is_drawn: bool,
    /// The time spent in each part, by the order of the parts.
    pub(crate) times: Vec<Course>,
}

/// Chart of shares before it is drawn.
pub(crate) struct Shares {
    pub(crate) title: String,
    /// Style sheet class and name of each part, the lowest first.
    pub(crate) parts: Vec<(&'static str, String)>,
    /// Name of the whole, for the columns of the table.
    pub(crate) whole: String,
    pub(crate) runs: Vec<SharedRun>,
    /// Text shown when a part is pointed at, from the run, the part and its share.
    pub(crate) point: fn(Language, &str, &str, String) -> String,
}

impl Shares {
    /// From the first to the last moment of what is drawn.
    pub(crate) fn extent(&self) -> Option<Span> {
        extent(self.runs.iter().filter(|run| run.is_drawn).flat_map(|run| &run.times))
    }

    /// Returns the chart, `None` if nothing is drawn.
    pub(crate) fn chart(self, lang: Language, time: &TimeAxis) -> Option<Chart> {
        let shortest_us = (self.extent()?.seconds() * 1e6 / MOST_STEPS) as i64;
        let drawn = self.runs.iter().filter(|run| run.is_drawn).map(|run| {
            let times: Vec<Course> = run.times.iter().map(|course| course.merged(shortest_us)).collect();
            let share = |(index, (class, part)): (usize, &(&'static str, String))| StackedShare {
                class,
                label: (self.point)(lang, &run.name, part, percent(share_of(&times, index)).unwrap_or_default()),
                tops: tops(&times, index),
            };
            StackedRun { name: run.name.clone(), shares: self.parts.iter().enumerate().map(share).collect() }
        });
        let drawing = Drawing::Stacks(StackedRuns { x: time.axis(lang), group: time.group, runs: drawn.collect() });
        let row = |run: &SharedRun| {
            let shares = (0..self.parts.len()).map(|index| percent(share_of(&run.times, index)));
            std::iter::once(Some(run.name.clone())).chain(shares).collect()
        };
        let parts = self.parts.iter().map(|(_, part)| Column::named(part.clone(), self.whole.clone()));
        let table = Table {
            caption: self.title.clone(),
            columns: std::iter::once(columns::OVER_TIME_RUN).chain(parts).collect(),
            rows: self.runs.iter().map(row).collect(),
        };
        Some(Chart { drawing, title: self.title, legend: self.parts, table })
    }
}

/// Returns the sum of the shares up to that index in each interval, `None` if no time passed.
fn tops(times: &[Course], index: usize) -> Vec<Stretch> {
    let share = |values: &[f64]| {
        let whole: f64 = values.iter().sum();
        (whole > 0.0).then(|| values[..=index].iter().sum::<f64>() / whole)
    };
    let steps = Course::combined(times, share).map(|course| course.steps).unwrap_or_default();
    steps.iter().map(CourseStep::stretch).collect()
}

/// The share of the part at that index in the time of all.
fn share_of(times: &[Course], index: usize) -> f64 {
    let whole: f64 = times.iter().map(Course::area).sum();
    times.get(index).map_or(0.0, Course::area) / whole.max(f64::MIN_POSITIVE)
}
