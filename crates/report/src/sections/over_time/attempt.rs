//! The attempts at a trial as charts over time name and colour them.

use super::course::Course;
use crate::blocks::chart::SERIES;
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use linerate_model::{HostName, Record, Series, SeriesQuantity, Span, Standing, TrialResult};

/// Spoilt attempts that the legend names with their reason.
const MOST_SPOILT: usize = 3;

/// An attempt that was sampled.
pub(crate) struct Attempt<'a> {
    /// Result of the attempt; `None` while it is under way.
    result: Option<&'a TrialResult>,
    /// Style sheet class: its colour, or that it was spoilt.
    pub(crate) class: &'static str,
    /// Number of the run, and the reason if it is spoilt.
    pub(crate) name: String,
    pub(crate) is_counted: bool,
}

/// Samples of one session of an attempt, with its zero.
#[derive(Clone, Copy)]
pub(crate) struct Sampled<'a> {
    pub(crate) host: &'a HostName,
    pub(crate) series: &'a Series,
    pub(crate) offset_us: i64,
}

/// The sampled attempts at the trial of that name, in the order they ran; those that failed have nothing to show.
pub(crate) fn of_trial<'a>(lang: Language, record: &'a Record, trial: &str) -> Vec<Attempt<'a>> {
    let all = || record.trials.iter().filter(|attempt| attempt.trial.name == trial);
    let runs = all().filter(|attempt| attempt.is_counted()).count();
    let mut run = 1;
    let mut attempts = Vec::new();
    for result in all() {
        let (class, name) = match &result.standing {
            Standing::Counted => {
                // More runs than colours are one bundle.
                let class = SERIES[if runs > SERIES.len() { 0 } else { run - 1 }];
                run += 1;
                (class, said!(lang, "over-time-run", "run {run}", run = run - 1))
            }
            Standing::Spoilt { reason } => {
                let reason = plain(lang.message(&reason.text).trim_end_matches(['.', '\u{3002}']));
                let attempt = result.attempt + 1;
                (
                    "spoilt",
                    said!(
                        lang,
                        "over-time-spoilt",
                        "run {run}, attempt {attempt}, spoilt: {reason}",
                        run = run,
                        attempt = attempt,
                        reason = reason
                    ),
                )
            }
            Standing::Failed { .. } => continue,
        };
        if result.series.iter().any(|session| !session.series.is_empty()) {
            attempts.push(Attempt { result: Some(result), class, name, is_counted: result.is_counted() });
        }
    }
    attempts
}

/// Returns the meanings of the colours of attempts.
pub(crate) fn legend(lang: Language, attempts: &[&Attempt<'_>]) -> Vec<(&'static str, String)> {
    let (runs, spoilt): (Vec<&Attempt<'_>>, Vec<&Attempt<'_>>) =
        attempts.iter().partition(|attempt| attempt.is_counted);
    let mut legend: Vec<(&'static str, String)> = match runs.len() {
        count if count > SERIES.len() => {
            vec![(SERIES[0], said!(lang, "over-time-runs", "runs 1 to {runs}", runs = count))]
        }
        _ => runs.iter().map(|run| (run.class, run.name.clone())).collect(),
    };
    legend.extend(spoilt.iter().take(MOST_SPOILT).map(|attempt| (attempt.class, attempt.name.clone())));
    if spoilt.len() > MOST_SPOILT {
        legend.push((
            "spoilt",
            said!(lang, "over-time-spoilt-more", "further spoilt attempts: {more}", more = spoilt.len() - MOST_SPOILT),
        ));
    }
    legend
}

impl Attempt<'static> {
    /// Returns an attempt under way, of which there are no samples yet.
    pub(crate) fn under_way(class: &'static str, name: String, is_counted: bool) -> Self {
        Self { result: None, class, name, is_counted }
    }
}

impl<'a> Attempt<'a> {
    /// Returns the samples of the sessions of the trial's load at that index, on one axis: its zero is where the window
    /// of the first opened.
    pub(crate) fn sampled(&self, load: u16) -> impl Iterator<Item = Sampled<'a>> + use<'a> {
        let results = self.result.into_iter();
        let sessions = results.flat_map(|result| result.series.iter().zip(result.series_offsets_us()));
        let sampled = sessions.filter(move |(session, _)| session.load == load && !session.series.is_empty());
        sampled.map(|(session, offset_us)| Sampled { host: &session.host, series: &session.series, offset_us })
    }

    /// Returns its outages, on the same axis.
    pub(crate) fn outages(&self) -> impl Iterator<Item = Span> + use<'a> {
        let sampled: Vec<Sampled<'a>> = self.sampled(0).collect();
        self.result.into_iter().flat_map(|result| &result.outages).map(move |outage| {
            let offset_us = sampled.iter().find(|one| *one.host == outage.host).map_or(0, |one| one.offset_us);
            Span { from_us: outage.from_us + offset_us, to_us: outage.to_us() + offset_us }
        })
    }

    /// Whether the trial's load at that index has a measured window.
    pub(crate) fn has_window(&self, load: u16) -> bool {
        let load = self.result.and_then(|result| result.trial.loads.get(usize::from(load)));
        load.is_some_and(|load| load.timing.window().is_some())
    }
}

impl Sampled<'_> {
    /// A counter's growth per second; zero throughout where it has no such track.
    pub(crate) fn per_second(self, quantity: SeriesQuantity) -> Course {
        Course::per_second(self.series, self.offset_us, self.series.track(quantity))
    }

    /// Returns the growth per second of the counter's track with that subject.
    pub(crate) fn per_second_of(self, quantity: SeriesQuantity, is_subject: impl Fn(&str) -> bool) -> Course {
        let mut tracks = self.series.tracks_of(quantity).filter(|track| is_subject(&track.subject));
        Course::per_second(self.series, self.offset_us, tracks.next().map(|track| &track.values[..]))
    }

    /// Returns a level, `None` if it was not sampled.
    pub(crate) fn level(self, quantity: SeriesQuantity) -> Option<Course> {
        Some(Course::level(self.series, self.offset_us, self.series.track(quantity)?))
    }

    /// Returns the response time that `share` of all in each interval are at or below, `None` if nothing was timed.
    pub(crate) fn quantile(self, share: f64) -> Option<Course> {
        (!self.series.latency.is_empty()).then(|| Course::quantile(self.series, self.offset_us, share))
    }
}
