//! Fixed records, one for each kind of run.
//!
//! `tests/records/NAME.json` is a record of the current format without results and outcome: plan, hosts and trials. What they amount to
//! is worked out as for a run that was killed, so that the words of a verdict and of a caveat are those of today.
//! `tests/records/README.md` says which command made which.

use linerate_method::{read_record, replay};
use linerate_model::Record;
use std::path::Path;

/// The file of that name, as it is.
pub(crate) fn text(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records").join(name).with_extension("json");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The record of that name, with its results.
pub(crate) fn record(name: &str) -> Record {
    let mut record = read_record(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(record.results.is_empty(), "{name}: a record without results is smaller, and is replayed");
    replay(&mut record);
    record
}
