//! What every measuring command does once its plan is made: reach the hosts, run, show, judge.

mod tuning;

pub(crate) use tuning::TuneOption;

use crate::event_stream::EventStream;
use crate::exit::Failure;
use crate::expectations::{self, has_counted};
use crate::feed::Feed;
use crate::hosts::{HostArguments, HostBook, ReachedAgents};
use crate::interrupt::or_stopped;
use crate::invocation;
use crate::live_lines::LiveLines;
use crate::options::Results;
use crate::ordered_run::OrderedRun;
use crate::output::{language, print, style};
use crate::progress::Bar;
use crate::report_file::{check_report_file, write_report};
use crate::result_lines::ResultLines;
use crate::resume;
use crate::run_display::RunDisplay;
use crate::tui::{self, Display};
use linerate_method::{Expectation, Metric};
use linerate_model::{Goal, Host, Password, Plan, Record, Sampling, Tuning};
use linerate_report::Style;
use linerate_runner::{Agents as _, DeviceWatch, Ended, Event, Keep, Origin, Resumed, Run};
use linerate_store::Store;
use linerate_units::Nanos;
use tokio::sync::watch;

/// Length of an interval, unless another is asked for.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Reaches all hosts, unless the user stops it.
pub(crate) async fn reach(
    book: &HostBook,
    hosts: &HostArguments,
    mut cancel: watch::Receiver<bool>,
) -> Result<ReachedAgents, Failure> {
    tokio::select! {
        agents = book.gather(hosts) => agents,
        Ok(_) = cancel.wait_for(|asked| *asked) => Err(Failure::measure("interrupted before anything was measured")),
    }
}

/// Who asks for a run, where it is kept, and the run that it goes on with.
pub(crate) struct RunRequest {
    pub(crate) origin: Origin,
    /// `None` keeps no record.
    pub(crate) store: Option<Store>,
    /// Time from one sample of a trial to the next.
    sampling_period: Nanos,
    /// Each result is printed in a line when it is known, also that of a calibration.
    pub(crate) in_lines: bool,
    /// Events are printed as JSON.
    json_stream: bool,
    /// Length of the intervals of lines and events, zero for none of them; none leaves it to the kind of run.
    interval: Option<Nanos>,
    /// Results are text, and shown by the command that makes the run.
    is_shown: bool,
    /// The run to resume, as it was stored; none begins a new one.
    resumed: Option<Record>,
    /// The terminal shows the run.
    tui: bool,
    /// The order of a fleet that asks for the run, if one does.
    ordered: Option<OrderedRun>,
}

/// What a run needs beside its plan and its agents.
#[derive(Default)]
pub(crate) struct Beside {
    /// For the file server of a copy, or the iperf3 server of a stream.
    pub(crate) password: Option<Password>,
    /// Follows the load of the device under test.
    pub(crate) device: Option<DeviceWatch>,
}

impl RunRequest {
    /// Checks before any host is reached what can be checked, and opens the store.
    ///
    /// # Errors
    /// Nothing that is measured gives the metric of an expectation or of a study (`gives`), or has a verdict (`judged`), the report cannot be
    /// written, or the run cannot be resumed.
    pub(crate) fn of(results: &Results, judged: bool, gives: impl Fn(Metric) -> bool) -> Result<Self, Failure> {
        let given = |expectation: &&Expectation| expectation.metric().map_or(judged, &gives);
        if let Some(expectation) = results.expect.iter().find(|expectation| !given(expectation)) {
            // It would be compared with nothing, and so pass unseen.
            let verdict = if judged { ", and `limit`" } else { "" };
            let stream = gives(Metric::Packets);
            let option = match expectation.metric() {
                Some(Metric::Added(_) | Metric::RoundTrips) if stream => "; --loaded-latency measures it",
                Some(Metric::Loss | Metric::Jitter) if stream => "; --udp measures it",
                _ => "",
            };
            return Err(Failure::usage(format!(
                "--expect '{expectation}': this command does not measure that{option}; it gives {}{verdict}",
                Metric::names(&gives)
            )));
        }
        if let Some((column, metric, line)) = results.measures.iter().find(|(_, metric, _)| !gives(*metric)) {
            return Err(Failure::usage(format!(
                "line {line}, measure `{column}` has the metric `{metric}`, which this test does not give; expected one of {}",
                Metric::names(&gives)
            )));
        }
        results.out.as_deref().map_or(Ok(()), check_report_file)?;
        if results.tui {
            tui::check()?;
        }
        let store = results.open_store()?;
        let resumed = match (&store, &results.resume) {
            (Some(store), Some(name)) => Some(resume::find(store, name)?),
            _ => None,
        };
        expectations::begin(results)?;
        Ok(Self {
            origin: origin(results),
            store,
            sampling_period: results.sample.unwrap_or(Sampling::default().period),
            in_lines: false,
            json_stream: results.json_stream,
            interval: results.interval,
            is_shown: results.are_text() && results.of_study.is_none(),
            resumed,
            tui: results.tui,
            ordered: results.ordered.clone(),
        })
    }

    /// [`RunRequest::of`] for the cells of `plan`.
    ///
    /// # Errors
    /// As [`RunRequest::of`].
    pub(crate) fn of_plan(results: &Results, plan: &Plan) -> Result<Self, Failure> {
        Self::of(results, true, |metric| plan.cells().iter().any(|cell| metric.applies_to(cell)))
    }

    /// Whether a run goes on: tester limits are then those that it began with.
    pub(crate) fn resumes(&self) -> bool {
        self.resumed.is_some()
    }

    /// Runs `plan` with a progress bar and keeps it.
    ///
    /// # Errors
    /// The run that is to be resumed was asked for something else.
    pub(crate) async fn run(
        &self,
        mut plan: Plan,
        agents: &ReachedAgents,
        beside: Beside,
        cancel: watch::Receiver<bool>,
    ) -> Result<Ended, Failure> {
        let resumed = match (&self.store, &self.resumed) {
            (Some(store), Some(stored)) => {
                plan.calibrated.clone_from(&stored.plan.calibrated);
                Some(resume::take_up(store, stored, &plan)?)
            }
            _ => None,
        };
        self.execute(plan, self.origin.clone(), agents, beside, resumed, cancel).await
    }

    /// Runs a calibration or a tuning, a run of its own, which is part of no study.
    ///
    /// # Errors
    /// It did not run to its end.
    pub(crate) async fn calibrate(
        &self,
        plan: Plan,
        agents: &ReachedAgents,
        cancel: watch::Receiver<bool>,
    ) -> Result<Record, Failure> {
        let origin = Origin { study: None, group: None, ..self.origin.clone() };
        let ended = self.execute(plan, origin, agents, Beside::default(), None, cancel).await?;
        ended.failure.map_or(Ok(ended.record), |failure| Err(Failure::of_run(&failure)))
    }

    async fn execute(
        &self,
        plan: Plan,
        origin: Origin,
        agents: &ReachedAgents,
        Beside { password, device }: Beside,
        resumed: Option<Resumed<'_>>,
        cancel: watch::Receiver<bool>,
    ) -> Result<Ended, Failure> {
        let (bench, agents) = (agents.bench(), &agents.control);
        let stored = self.store.as_ref().map(|store| store as &dyn Keep);
        let ordered = self.ordered.as_ref();
        let keep = ordered.map(|ordered| &*ordered.publisher as &dyn Keep).or(stored);
        let resumed = resumed.or_else(|| ordered?.resumed());
        let (stop, stopped) = or_stopped(cancel);
        let mut display = self.display(&plan, agents.hosts(), stop)?;
        let sampling_period = self.sampling_period;
        let run = Run {
            plan,
            origin,
            sampling_period,
            agents,
            id: ordered.map(|ordered| ordered.id.clone()),
            takes_over: ordered.is_some_and(|ordered| ordered.takes_over),
            keep,
            password,
            device,
            bench,
            resumed,
        };
        let mut feed = Feed::new();
        let note = &mut |event: Event<'_>| {
            if let Some(store) = &self.store {
                feed.note(store, &event);
            }
            display.note(&event);
        };
        let ended = run.execute(note, stopped).await;
        // The display may wait for its reader; the run has ended.
        drop(feed);
        display.end(&ended.record).await;
        Ok(ended)
    }

    /// What is shown of a run of `plan` between `hosts`. `stop` ends the run when nobody reads its events any more.
    fn display(&self, plan: &Plan, hosts: Vec<Host>, stop: watch::Sender<bool>) -> Result<RunDisplay, Failure> {
        let tui = self.tui.then(|| Display::open(stop.subscribe())).transpose();
        let tui = tui.map_err(|error| Failure::measure(format!("--tui: cannot set up the terminal: {error}")))?;
        let every = |usual: Option<Nanos>| self.interval.or(usual).filter(|every| !every.is_zero());
        // These make many short trials, or have lines of their own.
        let is_usual = matches!(plan.goal, Goal::Sweep(_) | Goal::Curve(_))
            && self.is_shown
            && !self.in_lines
            && !self.tui
            && plan.tuning != Some(Tuning::Candidates);
        let events = self.json_stream.then(|| EventStream::new(every(Some(INTERVAL)), stop));
        let events = events.transpose().map_err(Failure::measure)?;
        let live = if self.json_stream { None } else { every(is_usual.then_some(INTERVAL)) };
        Ok(RunDisplay {
            bar: match &tui {
                Some(_) => Bar::hidden(),
                None if self.ordered.is_some() => Bar::hidden(),
                None if self.json_stream => Bar::beside_events(),
                None => Bar::new(self.in_lines),
            },
            tui,
            live: live.map(|every| LiveLines::new(language(), every)),
            results: self.in_lines.then(|| ResultLines::new(plan.clone(), hosts)),
            events,
        })
    }
}

/// Why a run that went to its end measured nothing.
fn why_nothing_counted(record: &Record) -> String {
    let failed = record.trials.iter().find_map(|result| Some(format!("{}: {}", result.trial.name, result.failure()?)));
    failed.unwrap_or_else(|| "nothing was measured".to_owned())
}

/// Shows a run's record, writes its report, and judges it; all that is the study's where it is part of one.
pub(crate) fn conclude(ended: &Ended, results: &Results) -> Result<(), Failure> {
    let failed = || match &ended.failure {
        Some(failure) => Err(Failure::of_run(failure)),
        // A ladder goes on after a layer that fails.
        None if !has_counted(&ended.record) => Err(Failure::measure(why_nothing_counted(&ended.record))),
        None => Ok(()),
    };
    if let Some(ordered) = &results.ordered {
        ordered.end(ended.record.clone());
        return failed();
    }
    if results.of_study.is_some() {
        return failed();
    }
    let records = std::slice::from_ref(&ended.record);
    let judged = expectations::tell(records, results, ended.failure.is_none());
    show(records, results, ended.kept, failed).and(judged)
}

/// Shows records that one command made, and writes their report. `kept` says whether they are in the store. The reason for an early end
/// matters more than a report that could not be written.
pub(crate) fn show(
    records: &[Record],
    results: &Results,
    kept: bool,
    failed: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let counted = records.iter().any(has_counted);
    if results.json {
        print(&linerate_report::json(records));
    } else if results.are_text() && counted {
        let style = style();
        print(&match (results.verbose, kept) {
            (true, _) => linerate_report::text(records, &style),
            (false, true) => answer(records, &style),
            (false, false) => {
                format!("{}\n{}", linerate_report::answer(records, &style), linerate_report::not_kept(&style))
            }
        });
    }
    let written = write_out(records, results);
    failed().and(written)
}

/// Returns the answer of records in the store, and where there is more of them.
pub(crate) fn answer(records: &[Record], style: &Style) -> String {
    format!("{}\n{}", linerate_report::answer(records, style), linerate_report::more(records, style))
}

/// Writes the report of records, where one was asked for and something was measured.
pub(crate) fn write_out(records: &[Record], results: &Results) -> Result<(), Failure> {
    match &results.out {
        Some(file) if records.iter().any(has_counted) => write_report(records, file),
        _ => Ok(()),
    }
}

/// Who asks for a measurement: a study, or the command as typed, without its secrets.
pub(crate) fn origin(results: &Results) -> Origin {
    results.of_study.clone().unwrap_or_else(|| Origin { command: invocation::words(), ..Origin::default() })
}
