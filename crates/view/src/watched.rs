//! What pages show that follow runs: parts that are drawn anew as they change.

use crate::page;
use crate::shared::load;
use crate::under_way::UnderWay;
use linerate_model::{Goal, Record, RecordId, Repeats, SweepPlan};
use linerate_report::{Language, live_charts, live_figures, plain, said};
use linerate_store::{RunRow, State as RunState, Store, StoreError};
use linerate_units::grouped;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// A part of a page: the `id` of its element, which is also the name of its events, and its content.
pub(crate) type Part = (&'static str, Markup);

/// Something that a page follows until it ends.
pub(crate) trait Watched: Send + Sized + 'static {
    /// Takes what has changed since the last look. It costs little where nothing has.
    ///
    /// # Errors
    /// The store cannot be read.
    fn look(&mut self, store: &Store, lang: Language) -> Result<(), StoreError>;

    /// What is shown of it.
    fn parts(&self, lang: Language) -> Vec<Part>;

    /// Returns whether there is more to come.
    fn is_under_way(&self) -> bool;

    /// Returns whether a page that is loaded again has something to show at the end.
    fn is_kept(&self) -> bool;
}

/// One run.
pub(crate) struct WatchedRun {
    id: RecordId,
    /// What its feed told; none where it has no feed.
    told: Option<UnderWay>,
    /// Its row in the store; none before an attempt counted.
    row: Option<RunRow>,
    /// What the store has of it, drawn when the row changed.
    progress: Markup,
    so_far: Markup,
}

impl WatchedRun {
    /// The run called `name`: see [`Store::resolve`]; one that has no row yet is called by its whole name.
    ///
    /// # Errors
    /// No run or several are called so, or the store cannot be read.
    pub(crate) fn open(store: &Store, name: &str, lang: Language) -> Result<Self, StoreError> {
        let id = match store.resolve(name) {
            Err(StoreError::Unknown { .. }) if store.feed_of(&RecordId(name.to_owned())).is_some() => {
                RecordId(name.to_owned())
            }
            resolved => resolved?,
        };
        let progress = html! { (said!(lang, "view-no-trial-yet", "No trial is done yet.")) };
        let mut run = Self { id, told: None, row: None, progress, so_far: html! {} };
        run.look(store, lang)?;
        Ok(run)
    }

    /// The run's whole name.
    pub(crate) fn id(&self) -> &RecordId {
        &self.id
    }

    /// The command and when the run began, nanoseconds since 1970.
    pub(crate) fn begun(&self) -> (&[String], u64) {
        match (&self.row, &self.told) {
            (Some(row), _) => (&row.command, row.started_unix_ns),
            (None, Some(told)) => (&told.command, told.started_unix_ns),
            (None, None) => (&[], 0),
        }
    }

    fn is_told(&self) -> bool {
        self.told.as_ref().is_some_and(|told| !told.has_ended())
    }

    /// Takes the row as the store has it now.
    fn take_row(&mut self, store: &Store, lang: Language) -> Result<(), StoreError> {
        let row = match store.row(&self.id.0) {
            Ok(row) => Some(row),
            // Deleted, or nothing counted yet.
            Err(StoreError::Unknown { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(row) = row.as_ref().filter(|row| row.state == RunState::Running && self.row.as_ref() != Some(*row))
        {
            let record = load(store, &self.id.0)?;
            self.progress = progress(lang, row, &record);
            self.so_far = linerate_report::so_far(lang, &record);
        }
        self.row = row;
        Ok(())
    }
}

impl Watched for WatchedRun {
    fn look(&mut self, store: &Store, lang: Language) -> Result<(), StoreError> {
        let attempted = match &mut self.told {
            Some(told) => told.look(),
            None => {
                self.told = store.feed_of(&self.id).map(UnderWay::new);
                true
            }
        };
        // The row changes with an attempt that ends, and at the run's end.
        if attempted || !self.is_told() { self.take_row(store, lang) } else { Ok(()) }
    }

    fn parts(&self, lang: Language) -> Vec<Part> {
        let trial = self.told.as_ref().and_then(|told| told.trial.as_ref()).map(|trial| &trial.told);
        if !self.is_under_way() && !self.is_kept() {
            return vec![(
                "live-progress",
                html! { p.under-way { (said!(lang, "view-ended-without-record", "The run has ended. No attempt counted, so no record is kept.")) } },
            )];
        }
        let now = html! {
            @if let Some(trial) = trial {
                p.now { b { (plain(&trial.name)) } @for figure in live_figures(lang, trial) { " " span { (figure) } } }
            }
        };
        let charts = trial.map_or_else(|| html! {}, |trial| live_charts(lang, trial));
        vec![
            (
                "live-progress",
                html! { p.under-way { strong { (said!(lang, "view-under-way", "Under way:")) } " " (self.progress) } },
            ),
            ("live-now", now),
            ("live-over-time", charts),
            ("live-so-far", self.so_far.clone()),
        ]
    }

    fn is_under_way(&self) -> bool {
        self.is_told() || self.row.as_ref().is_some_and(|row| row.state == RunState::Running)
    }

    fn is_kept(&self) -> bool {
        self.row.is_some()
    }
}

/// `4 of 9 trials are done, the last at 2026-11-21 09:30:05.`
fn progress(lang: Language, run: &RunRow, record: &Record) -> Markup {
    let done = run.trials as usize;
    // A device test's searches end when they end, and tests of verdicts depend on the verdicts.
    let total = match &record.plan.goal {
        Goal::Sweep(SweepPlan { cells, repeats: Repeats::Times(times) }) if !record.plan.prove => {
            Some(cells.len() * *times as usize)
        }
        _ => None,
    };
    html! {
        @let (count, moment) = (grouped(done as u64), page::moment(run.changed_unix_ns));
        @match total.filter(|total| *total >= done) {
            Some(total) => (said!(lang, "view-trials-done-of", "{count} of {total} trials are done, the last at {moment}.", count = count, total = grouped(total as u64), moment = moment)),
            None => (said!(lang, "view-trials-done", if trials == 1 { "1 trial is done, the last at {moment}." } else { "{trials} trials are done, the last at {moment}." }, trials = done, moment = moment)),
        }
        @if let Some(total) = total.filter(|total| *total >= done) {
            " " progress max=(total) value=(done) aria-label=(said!(lang, "view-progress", "Trials done")) {}
        }
    }
}

/// All runs under way that have a feed, as the list shows them.
#[derive(Default)]
pub(crate) struct WatchedList {
    runs: BTreeMap<RecordId, UnderWay>,
}

impl Watched for WatchedList {
    fn look(&mut self, store: &Store, _: Language) -> Result<(), StoreError> {
        for run in self.runs.values_mut() {
            run.look();
        }
        self.runs.retain(|_, run| !run.has_ended());
        for feed in store.feeds() {
            if !self.runs.contains_key(feed.record()) {
                self.runs.insert(feed.record().clone(), UnderWay::new(feed));
            }
        }
        Ok(())
    }

    fn parts(&self, lang: Language) -> Vec<Part> {
        let row = |(id, run): (&RecordId, &UnderWay)| {
            html! {
                li {
                    (page::record_link(lang, &id.0, &run.command))
                    p {
                        time { (page::moment(run.started_unix_ns)) }
                        span { (plain(&id.0)) }
                        @if let Some(trial) = &run.trial {
                            span { (plain(&trial.told.name)) }
                            @for figure in live_figures(lang, &trial.told) { span { (figure) } }
                        }
                    }
                }
            }
        };
        let runs = html! {
            @if !self.runs.is_empty() {
                h2 { (said!(lang, "view-runs-under-way", "Runs under way")) }
                ul { @for run in self.runs.iter().rev() { (row(run)) } }
            }
        };
        vec![("live-runs", runs)]
    }

    fn is_under_way(&self) -> bool {
        !self.runs.is_empty()
    }

    fn is_kept(&self) -> bool {
        true
    }
}

/// The parts of a page, which are drawn anew by the events at `events`.
pub(crate) fn drawn(events: &str, parts: &[Part]) -> Markup {
    html! {
        div #live data-events=(events) {
            // What a screen reader is to say of its own accord: how many trials are done, and not each interval.
            @for (id, part) in parts { div id=(id) role=[(*id == "live-progress").then_some("status")] { (part) } }
        }
    }
}
