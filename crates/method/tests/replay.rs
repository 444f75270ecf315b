//! Records of every kind of run, replayed: their trials must give the results, verdicts and outcome that they hold.

use linerate_method::device::Device;
use linerate_method::{copy, curve, ladder, measurements, sum_up};
use linerate_model::{Findings, Record};
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the records are. Its README.md says which command made which.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records_v1")
}

/// The record of that name, if there is one.
fn read(name: &str) -> Option<Record> {
    let text = fs::read_to_string(folder().join(name).with_extension("json")).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The names of all records, in order.
fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the folder of records");
    let paths = files.map(|file| file.expect("a file").path());
    let records = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut names: Vec<String> =
        records.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Demands that two values agree; where they do not, the first field that differs is named.
fn same(name: &str, replayed: &impl Serialize, held: &impl Serialize) {
    let replayed = serde_json::to_value(replayed).expect("it is JSON");
    let held = serde_json::to_value(held).expect("it is JSON");
    if let Some(difference) = difference(&replayed, &held) {
        panic!("{name}: {difference}");
    }
}

/// Where two values differ first, and how.
fn difference(replayed: &Value, held: &Value) -> Option<String> {
    match (replayed, held) {
        (Value::Object(left), Value::Object(right)) => left.keys().chain(right.keys()).find_map(|key| {
            let (left, right) = (left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null));
            difference(left, right).map(|said| format!("/{key}{said}"))
        }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| difference(left, right).map(|said| format!("/{at}{said}"))),
        (left, right) if left == right => None,
        (left, right) => Some(format!(" replays as {left}, and the record has {right}")),
    }
}

/// Runs a device test's method over the record's trials: it must ask for exactly those, in that order.
fn replay_device(name: &str, record: &Record, calibration: Option<&Record>) {
    let plan = record.plan.device.clone().expect("a device test");
    let mut method = Device::new(plan, calibration);
    for (at, trial) in record.frame_trials.iter().enumerate() {
        same(&format!("{name}: trial {at}"), &method.next(), &Some(&trial.trial));
        method.record(trial);
    }
    same(name, &Findings::from(method.outcome().clone()), &record.outcome);
}

#[test]
fn every_record_replays_to_what_it_holds() {
    let names = names();
    assert!(names.len() > 50, "{} records", names.len());
    for name in &names {
        // The demonstration joins runs that were held against different calibrations, which are not kept.
        if name == "demonstration" {
            continue;
        }
        let record = read(name).expect("it is listed");
        let calibration = read(&format!("{name}-calibration"));
        let calibration = calibration.as_ref();
        same(name, &measurements(&record.plan, &record.hosts, &record.trials, calibration), &record.results);
        if record.plan.ladder.is_some() {
            same(name, &ladder::found(&record), &record.ladder);
        }
        if record.plan.curve.is_some() {
            same(name, &curve::found(&record).map(Findings::from), &record.outcome);
        }
        if record.plan.copy.is_some() {
            same(name, &copy::outcome(&record).map(Findings::from), &record.outcome);
        }
        if record.plan.device.is_some() {
            replay_device(name, &record, calibration);
        }
        let mut summed_up = record.clone();
        sum_up(&mut summed_up);
        same(name, &summed_up, &record);
    }
}
