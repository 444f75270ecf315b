//! Records of runs that have not ended, or were killed: trials that nobody summed up.

use crate::{curve, ladder, measurements};
use linerate_model::{Outcome, Record};

/// Fills in what the trials amount to, unless the run did so itself.
pub fn sum_up(record: &mut Record) {
    if record.results.is_empty() {
        record.results = measurements(&record.plan, &record.hosts, &record.trials, None);
        record.ladder = ladder::found(record);
        if record.outcome.is_none() {
            record.outcome = curve::found(record).map(Outcome::from);
        }
    }
}
