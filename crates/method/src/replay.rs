//! Results out of trials: of a run that ended, was killed, or is read from an older format.

use crate::goals;
use linerate_model::{Record, RunSummary};

/// Works out the results, the outcome and the caveats of `record` from its plan, hosts and trials alone.
pub fn replay(record: &mut Record) {
    let mut method = goals::of(&record.plan, &record.hosts);
    for result in &record.trials {
        method.record(result);
    }
    method.conclude(record);
}

/// What `record` amounts to, from its plan, hosts and trials alone.
pub fn summary(record: &Record) -> RunSummary {
    let mut method = goals::of(&record.plan, &record.hosts);
    for result in &record.trials {
        method.record(result);
    }
    method.summary()
}
