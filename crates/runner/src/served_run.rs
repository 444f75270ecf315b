//! A trial that another program began, and in which this host takes part.

use crate::RunError;
use crate::run::{Origin, begin};
use crate::run_keeper::RunKeeper;
use linerate_method::{Joining, join};
use linerate_model::{Host, HostCounts, Plan, Record, Repeats, Trial};
use linerate_store::{Ending, Store};

/// Run of one trial that another program requested from this host.
#[derive(Debug)]
pub struct ServedRun(Record);

impl ServedRun {
    /// Begins the run of `trial` at `host`. Nothing is kept of it yet.
    pub fn begin(origin: Origin, host: Host, trial: Trial) -> Self {
        Self(begin(None, sweep(trial), origin, vec![host]))
    }

    /// Returns the record so far: its name, its host and the trial.
    pub fn record(&self) -> &Record {
        &self.0
    }

    /// Stores the run with `trial` as it was measured in the end, and the `counts` of this host. Returns the record.
    ///
    /// # Errors
    /// The counts are impossible, or the store cannot be written.
    pub fn keep(self, store: &Store, trial: Trial, counts: HostCounts) -> Result<Record, RunError> {
        let Self(begun) = self;
        let parts = begun.hosts.iter().map(|host| (host.name.clone(), Ok(counts.clone()))).collect();
        let result = join(&trial, 0, vec![Joining { caveats: Vec::new(), parts }]).map_err(RunError::Counts)?;
        let mut record = Record { started_unix_ns: result.started_unix_ns, plan: sweep(trial), ..begun };
        let mut method = linerate_method::of(&record.plan, &record.hosts);
        method.record(&result);
        record.trials.push(result);
        let mut keep = RunKeeper::new(Some(store), None, &record);
        keep.trials(&record, || method.summary());
        method.conclude(&mut record);
        keep.end(&record, Ending::Finished).map_or(Ok(record), |error| Err(RunError::Store(error)))
    }
}

fn sweep(trial: Trial) -> Plan {
    Plan::sweep(vec![trial], Repeats::Times(1))
}
