//! A trial that was not asked for here: another program began it, and this host took part.

use crate::RunError;
use crate::keep::Keep;
use crate::run::{Origin, begin};
use linerate_method::{Joining, join};
use linerate_model::{Host, HostCounts, Plan, Record, Repeats, Trial};
use linerate_store::{Ending, Store};

/// Keeps `trial` in `store` as a run of its own, of which `host` counted and saw `counts`. Returns its record.
///
/// # Errors
/// The counts cannot be, or the store cannot be written.
pub fn keep_served(
    store: &Store,
    origin: Origin,
    host: Host,
    trial: Trial,
    counts: HostCounts,
) -> Result<Record, RunError> {
    let parts = vec![(host.name.clone(), Ok(counts))];
    let result = join(&trial, 0, vec![Joining { caveats: Vec::new(), parts }]).map_err(RunError::Counts)?;
    let plan = Plan::sweep(vec![trial], Repeats::Times(1));
    let mut record = Record { started_unix_ns: result.started_unix_ns, ..begin(plan, origin, vec![host]) };
    let mut method = linerate_method::of(&record.plan, &record.hosts);
    method.record(&result);
    record.trials.push(result);
    let mut keep = Keep::new(Some(store), None, &record);
    keep.trials(&record, || method.summary());
    method.conclude(&mut record);
    keep.end(&record, Ending::Finished).map_or(Ok(record), |error| Err(RunError::Store(error)))
}
