//! `--tune`: the fastest way to send and to place threads, from a tuning that is kept or made before the run.

use super::RunRequest;
use crate::exit::Failure;
use crate::hosts::ReachedAgents;
use crate::output::say;
use clap::ValueEnum;
use linerate_method::calibration::age_in_words;
use linerate_method::tuning::{Choice, apply, fits, plan};
use linerate_model::{Plan, Record, Tuning};
use linerate_runner::Agents as _;
use linerate_store::{Query, State, Store};
use linerate_units::Nanos;
use tokio::sync::watch;

/// Kind of run by which a store finds tunings.
const KIND: &str = "tuning";
/// Most tunings that are looked through, the newest first.
const MOST: usize = 50;

/// Option of the tuning.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TuneOption {
    /// Try cores and calls before the run, and use the fastest
    ///
    /// Tries the cores of the threads and, for TCP, sendfile and write, and when the receiver wakes up. What is sent and what the
    /// receiver does with it stay as asked. The choice is kept with the results and used again for the same hosts and options; --tune=again tries anew.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "kept",
        conflicts_with = "prove", hide_short_help = true)]
    tune: Option<Tune>,
}

/// When candidates are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tune {
    /// If no tuning of these hosts and options is kept
    Kept,
    /// Always
    Again,
}

impl TuneOption {
    /// Returns `run` with the fastest way to send and to place threads. `any_size` allows other sizes of a TCP sender's calls.
    ///
    /// # Errors
    ///
    /// Nothing can be tuned, or the tuning fails.
    pub(crate) async fn apply(
        &self,
        mut run: Plan,
        any_size: bool,
        asked: &RunRequest,
        agents: &ReachedAgents,
        cancel: watch::Receiver<bool>,
    ) -> Result<Plan, Failure> {
        let Some(tune) = self.tune else { return Ok(run) };
        let hosts = agents.control.hosts();
        let tuning = plan(&run, &hosts, any_size).map_err(Failure::usage)?;
        let earlier = match (&asked.store, tune) {
            (Some(store), _) if asked.resumes() => Some(asked.tuning(store)?),
            (Some(store), Tune::Kept) => find(store, |record| fits(record, &tuning, &hosts))?,
            _ => None,
        };
        let (record, origin) = match earlier {
            Some(record) => {
                let now = u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default();
                let age = Nanos::new(now.saturating_sub(record.started_unix_ns));
                (record, format!(", {} old", age_in_words(age)))
            }
            None => {
                say(&format!("linerate: tuning: {} candidates", tuning.cells().len()));
                (asked.calibrate(tuning, agents, cancel).await?, String::new())
            }
        };
        for Choice { trial, candidate, gain } in apply(&mut run, &record) {
            let choice = match candidate {
                Some(candidate) => format!("{candidate}, {gain:.2} x as asked"),
                None => "nothing is faster than as asked".to_owned(),
            };
            say(&format!("linerate: tuned {trial}: {choice} (tuning {}{origin})", record.id));
        }
        Ok(run)
    }
}

impl RunRequest {
    /// Returns the tuning of the run that is resumed.
    ///
    /// # Errors
    ///
    /// The run was not tuned, or its tuning cannot be read.
    fn tuning(&self, store: &Store) -> Result<Record, Failure> {
        match self.resumed.as_ref().and_then(|stored| stored.plan.tuning.as_ref()) {
            Some(Tuning::ChosenBy(id)) => store.load(&id.0).map_err(Failure::measure),
            _ => Err(Failure::usage("--resume: that run was not tuned; leave out --tune")),
        }
    }
}

/// Returns the newest whole tuning in `store` that `fits`.
fn find(store: &Store, fits: impl Fn(&Record) -> bool) -> Result<Option<Record>, Failure> {
    let query = Query { kind: Some(KIND.to_owned()), states: vec![State::Finished], ..Query::default() };
    for record in store.newest(&query, MOST).map_err(Failure::measure)? {
        let record = record.map_err(Failure::measure)?;
        if fits(&record) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}
