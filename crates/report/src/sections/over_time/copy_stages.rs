//! Time of the stages of a copy: each stage's share of the time of all, interval by interval.

use super::attempt::Attempt;
use super::course::Course;
use super::shares::{SharedRun, Shares};
use super::{MEASURED, Quantity};
use crate::blocks::chart::SERIES;
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use linerate_model::CopyStage;

/// Cap on the runs that are drawn.
const MOST_RUNS: usize = 8;

/// A stage, or all those that took the least time.
struct Stage {
    name: String,
    /// Subjects of the tracks of its time.
    subjects: Vec<String>,
}

/// Returns the chart of stages, `None` if no stage's time was sampled.
pub(crate) fn shares(lang: Language, result: &str, attempts: &[Attempt<'_>]) -> Option<Shares> {
    let stages = stages(lang, attempts);
    let runs = attempts.iter().map(|attempt| (attempt, times(attempt, &stages))).filter(|(_, times)| !times.is_empty());
    let run = |(attempt, times): (&Attempt<'_>, _)| SharedRun { name: attempt.name.clone(), is_drawn: true, times };
    let runs: Vec<SharedRun> = runs.take(MOST_RUNS).map(run).collect();
    (!runs.is_empty()).then(|| Shares {
        title: said!(
            lang,
            "over-time-title-stages",
            "{name}: each stage's share of the time of all stages",
            name = result
        ),
        parts: SERIES.into_iter().zip(stages.into_iter().map(|stage| stage.name)).collect(),
        whole: said!(lang, "over-time-stage-share", "share of the time of all stages"),
        runs,
        point: |lang, run, stage, share| {
            said!(
                lang,
                "over-time-stage-point",
                "{run}, {stage}: {share} of the stages' time",
                run = run,
                stage = stage,
                share = share
            )
        },
    })
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
    let stage = |subject: String| Stage { name: named(lang, &subject), subjects: vec![subject] };
    let mut stages: Vec<Stage> = totals.into_iter().map(|(subject, _)| stage(subject)).collect();
    if !further.is_empty() {
        let subjects = further.into_iter().map(|(subject, _)| subject).collect();
        stages.push(Stage { name: said!(lang, "over-time-other-stages", "other stages"), subjects });
    }
    stages
}

/// Returns the name of the stage that a track counts.
fn named(lang: Language, subject: &str) -> String {
    let stage = CopyStage::ALL.into_iter().find(|stage| stage.name() == subject);
    stage.map_or_else(|| plain(subject).to_string(), |stage| lang.text(stage.text()))
}

/// Returns each stage's time per second on all hosts; empty if the attempt has no samples.
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
