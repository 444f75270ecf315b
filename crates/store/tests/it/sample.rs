//! Records, trials and folders for tests of the store.
#![allow(dead_code)] // Not every test uses all of it.

use linerate_model::{
    Confidence, Firmness, Headline, HeadlineVerdict, IpVersion, Limit, MeasureUnit, Net, Path as HostPath, Plan,
    Quantity, Record, RecordId, Repeats, RunSummary, Standing, StreamTask, Task, Timing, Transport, Trial, TrialResult,
};
use linerate_store::{Store, StoreLocation};
use linerate_units::{ByteCount, Nanos};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

pub(crate) fn open(path: &Path) -> Store {
    Store::open(&StoreLocation::file(path)).expect("opens")
}

fn cell() -> Trial {
    let task = StreamTask {
        paths: vec![HostPath::between("a", "b")],
        net: Net { ip: IpVersion::V6, ..Net::plain(Transport::Udp) },
        ..StreamTask::plain(Transport::Udp, ByteCount::new(1472))
    };
    Trial::new("udp 1472", Task::Stream(task), Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)))
}

/// A record of one cell, in which nothing has happened yet.
pub(crate) fn record(id: &str, started_unix_ns: u64) -> Record {
    // A third has no exact decimal: it must come back to the last bit.
    let repeats = Repeats::Until { confidence_percent: 95.0, within: 1.0 / 3.0, at_least: 3, at_most: 20 };
    Record {
        version: "0.1.0".into(),
        command: vec!["linerate".into(), "stream".into(), "a \"b\"".into()],
        started_unix_ns,
        ..Record::new(RecordId(id.into()), Plan::sweep(vec![cell()], repeats))
    }
}

/// A trial that is told from others by when it began.
pub(crate) fn trial(started_unix_ns: u64) -> TrialResult {
    TrialResult {
        trial: cell(),
        attempt: 0,
        standing: Standing::Counted,
        started_unix_ns,
        span: None,
        counts: Vec::new(),
        hosts: BTreeMap::new(),
        series: Vec::new(),
        clocks: BTreeMap::new(),
        outages: Vec::new(),
        device_load: None,
        caveats: Vec::new(),
    }
}

/// What a run amounts to after some trials.
pub(crate) fn summary(value: f64) -> RunSummary {
    let headline = Headline {
        result: "udp 1472".into(),
        quantity: Quantity::PayloadBps,
        value,
        unit: MeasureUnit::BitsPerS,
        firmness: Firmness::Firm,
        range: Some((value, value)),
        link_share: Some(0.5),
    };
    let verdict = HeadlineVerdict { limit: Limit::Wire, confidence: Confidence::High };
    RunSummary { results: 1, headline: Some(headline), verdict: Some(verdict) }
}
