//! Where the stages of a copy spent their time: each stage's share of the time of all, interval by interval.

use super::attempt::Attempt;
use super::course::{Course, CourseStep, extent};
use super::{MEASURED, Quantity};
use crate::charts::{Chart, SERIES};
use crate::figures::{percent, plain};
use crate::language::Language;
use crate::said;
use crate::svg::{Axis, Drawing, StackedRun, StackedRuns, StackedShare, Stretch};
use crate::tables::{Column, Table};
use linerate_model::CopyStage;

/// Most intervals of a run, and runs drawn at the most.
const MOST_STEPS: f64 = 150.0;
const MOST_RUNS: usize = 8;

/// A stage, or all those that took the least time.
struct Stage {
    name: String,
    /// What the tracks of its time are of.
    subjects: Vec<String>,
}

/// The chart; none where no stage's time was sampled.
pub(super) fn chart(lang: Language, result: &str, attempts: &[Attempt<'_>]) -> Option<Chart> {
    let stages = stages(lang, attempts);
    let runs: Vec<(&Attempt<'_>, Vec<Course>)> = attempts
        .iter()
        .map(|attempt| (attempt, times(attempt, &stages)))
        .filter(|(_, times)| !times.is_empty())
        .take(MOST_RUNS)
        .collect();
    let extent = extent(runs.iter().flat_map(|(_, times)| times))?;
    let shortest_us = (extent.seconds() * 1e6 / MOST_STEPS) as i64;
    let drawn = runs.iter().map(|(attempt, times)| {
        let times: Vec<Course> = times.iter().map(|course| course.merged(shortest_us)).collect();
        let share = |(index, (class, stage)): (usize, (&'static str, &Stage))| StackedShare {
            class,
            label: said!(
                lang,
                "over-time-stage-point",
                run = attempt.name,
                stage = stage.name,
                share = percent(share_of(&times, index)).unwrap_or_default()
            ),
            tops: tops(&times, index),
        };
        let shares = SERIES.into_iter().zip(&stages).enumerate().map(share).collect();
        StackedRun { name: attempt.name.clone(), shares }
    });
    let title = said!(lang, "over-time-title-stages", name = result);
    let row = |(attempt, times): &(&Attempt<'_>, Vec<Course>)| {
        let shares = (0..stages.len()).map(|index| percent(share_of(times, index)));
        std::iter::once(Some(attempt.name.clone())).chain(shares).collect()
    };
    let named = stages.iter().map(|stage| Column::named(stage.name.clone(), said!(lang, "over-time-stage-share")));
    let table = Table {
        caption: title.clone(),
        columns: std::iter::once(Column::new("column-over-time-run")).chain(named).collect(),
        rows: runs.iter().map(row).collect(),
    };
    let (low, high) = (extent.from_us as f64 / 1e6, extent.to_us as f64 / 1e6);
    let x = Axis::seconds(said!(lang, "over-time-axis-start"), low, high);
    let legend = SERIES.into_iter().zip(&stages).map(|(class, stage)| (class, stage.name.clone())).collect();
    Some(Chart { drawing: Drawing::Stacks(StackedRuns { x, runs: drawn.collect() }), title, legend, table })
}

/// The stages in the order in which data passes; where there are more than colours, the last stands for those that took the least time.
fn stages(lang: Language, attempts: &[Attempt<'_>]) -> Vec<Stage> {
    let mut totals: Vec<(String, u64)> = Vec::new();
    for sampled in attempts.iter().flat_map(|attempt| attempt.sampled(MEASURED)) {
        for track in sampled.series.tracks_of(Quantity::StageTime) {
            let time: u64 = track.values.iter().sum();
            match totals.iter_mut().find(|(subject, _)| *subject == track.subject) {
                Some((_, total)) => *total += time,
                None => totals.push((track.subject.clone(), time)),
            }
        }
    }
    totals.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let further =
        totals.split_off(totals.len().min(if totals.len() > SERIES.len() { SERIES.len() - 1 } else { SERIES.len() }));
    let place = |subject: &str| CopyStage::ALL.iter().position(|stage| stage.name() == subject).unwrap_or(usize::MAX);
    totals.sort_by_key(|(subject, _)| place(subject));
    let stage =
        |(subject, _): (String, u64)| Stage { name: lang.named("stage", plain(&subject)), subjects: vec![subject] };
    let mut stages: Vec<Stage> = totals.into_iter().map(stage).collect();
    if !further.is_empty() {
        let subjects = further.into_iter().map(|(subject, _)| subject).collect();
        stages.push(Stage { name: said!(lang, "over-time-other-stages"), subjects });
    }
    stages
}

/// Each stage's time per second on all hosts; empty where an attempt has none.
fn times(attempt: &Attempt<'_>, stages: &[Stage]) -> Vec<Course> {
    let of = |stage: &Stage| {
        let sampled = attempt.sampled(MEASURED);
        let hosts = sampled.filter(|sampled| sampled.series.tracks_of(Quantity::StageTime).next().is_some());
        let courses: Vec<Course> = hosts
            .flat_map(|sampled| {
                stage
                    .subjects
                    .iter()
                    .map(move |subject| sampled.per_second_of(Quantity::StageTime, |own| own == subject))
            })
            .collect();
        Course::sum(&courses)
    };
    stages.iter().filter_map(of).collect()
}

/// The share of the stages up to that index in each interval; none where no stage was at work.
fn tops(times: &[Course], index: usize) -> Vec<Stretch> {
    let share = |values: &[f64]| {
        let whole: f64 = values.iter().sum();
        (whole > 0.0).then(|| values[..=index].iter().sum::<f64>() / whole)
    };
    let steps = Course::combined(times, share).map(|course| course.steps).unwrap_or_default();
    steps.iter().map(CourseStep::stretch).collect()
}

/// The share of the stage at that index in the time of all.
fn share_of(times: &[Course], index: usize) -> f64 {
    let whole: f64 = times.iter().map(Course::area).sum();
    times.get(index).map_or(0.0, Course::area) / whole.max(f64::MIN_POSITIVE)
}
