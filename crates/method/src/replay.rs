//! Results out of trials: of a run that ended, was killed, or is read from an older format.

use crate::{contract, retry::Retry};
use linerate_model::{CaveatKind, Record, RunSummary};

/// Works out the results, the outcome and the caveats of `record` from its plan, hosts and trials alone.
pub fn replay(record: &mut Record) {
    let mut method = contract::of(&record.plan, &record.hosts);
    for result in &record.trials {
        method.record(result);
    }
    method.conclude(record);
}

/// What `record` amounts to, from its plan, hosts and trials alone.
pub fn summary(record: &Record) -> RunSummary {
    let mut method = contract::of(&record.plan, &record.hosts);
    for result in &record.trials {
        method.record(result);
    }
    method.summary()
}

/// Says in `record` how many of its trials were run again.
pub(crate) fn tell_repeats(record: &mut Record) {
    let mut retry = Retry::default();
    record.trials.iter().for_each(|result| retry.replay(result));
    let told = retry.caveat(record.counted().count());
    // One of a run that is resumed is told anew. A record of the first format has no spoilt attempts, and its own caveat.
    if told.is_some() {
        record.caveats.retain(|caveat| caveat.kind != CaveatKind::Repeated);
    }
    record.caveats.extend(told);
}
