//! Each repeat over time as a line of marks, for the answer on a terminal.

use super::course::Course;
use super::{LoadCharts, MEASURED, attempt};
use crate::figures::plain;
use crate::language::Language;
use crate::wording::sparkline::sparkline;
use crate::{records, said};
use linerate_model::{Measurement, Record};
use std::ops::RangeInclusive;
use unicode_width::UnicodeWidthStr as _;

/// Cap on the results that have a line; the table and the report show more.
const MOST: usize = 3;
/// Marks of a run: fewer show no course, and more nothing that a report does not show better.
const MARKS: RangeInclusive<usize> = 6..=24;
/// Spaces between runs.
const GAP: usize = 2;

/// A result with the courses of its runs.
pub(crate) struct Spark {
    name: String,
    courses: Vec<Course>,
    /// The highest value of all runs.
    highest: f64,
    /// From where to where the marks reach.
    scale: String,
}

/// Returns the courses of each result that was sampled, or nothing for records of more than three results.
pub(crate) fn sparks(lang: Language, record: &Record) -> Vec<Spark> {
    let results: Vec<&Measurement> = records::with_entries(record).collect();
    if results.len() > MOST {
        return Vec::new();
    }
    results.iter().filter_map(|result| Spark::of(lang, record, result)).collect()
}

/// Returns a line for each result, at most `width` columns wide: its name, the course of each run that counts, and the
/// scale. A line without room for all runs shows the first ones.
pub(crate) fn lines(sparks: &[Spark], width: usize) -> Vec<String> {
    let name = sparks.iter().map(|spark| spark.name.width()).max().unwrap_or(0);
    let scale = sparks.iter().map(|spark| spark.scale.width()).max().unwrap_or(0);
    sparks.iter().filter_map(|spark| spark.line(name, width.saturating_sub(name + GAP + scale))).collect()
}

impl Spark {
    fn of(lang: Language, record: &Record, result: &Measurement) -> Option<Self> {
        let attempts = attempt::of_trial(lang, record, &result.name);
        let trial = record.trials.iter().map(|attempt| &attempt.trial).find(|trial| trial.name == result.name)?;
        let of = LoadCharts { lang, result, attempts: &attempts, load: MEASURED };
        let chart = of.task(record, trial.task()).into_iter().next()?;
        let counted = chart.lines.into_iter().filter(|line| line.attempt.is_counted && line.part == 0);
        let courses: Vec<Course> = counted.map(|line| line.course).collect();
        let highest = courses.iter().filter_map(|course| Some(course.range()?.highest)).fold(0.0, f64::max);
        let scale = said!(lang, "answer-runs-scale", "0 to {highest}", highest = chart.kind.show(highest));
        let name = said!(lang, "answer-runs", "{name} over time, each run", name = plain(&result.name));
        (highest > 0.0).then_some(Self { name, courses, highest, scale })
    }

    /// Returns the line with a name of this width and this room for the runs.
    fn line(&self, name: usize, room: usize) -> Option<String> {
        let shown = self.courses.len().min(room / (MARKS.start() + GAP));
        let marks = (room.checked_div(shown)? - GAP).min(*MARKS.end());
        let course = |course: &Course| {
            sparkline(&course.in_parts(marks).map(|value| Some(value? / self.highest)).collect::<Vec<_>>())
        };
        let runs: Vec<String> = self.courses[..shown].iter().map(course).collect();
        let space = " ".repeat(name - self.name.width() + GAP);
        let more = if shown < self.courses.len() { "\u{2026}" } else { "" };
        Some(format!("{}{space}{}{more}  {}", self.name, runs.join("  "), self.scale))
    }
}
