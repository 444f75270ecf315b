//! Fixed records of every kind of run: their methods ask for their trials, and their results follow from them.

use linerate_method::{After, Step, of, read_record, replay};
use linerate_model::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Where the records are. Its README.md says how they were made.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/records")
}

/// The text of the record of that name.
fn text(name: &str) -> String {
    let file = folder().join(name).with_extension("json");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// All records with their results, by name.
fn records() -> &'static BTreeMap<String, Record> {
    static RECORDS: LazyLock<BTreeMap<String, Record>> = LazyLock::new(|| {
        let files =
            std::fs::read_dir(folder()).expect("the folder of records").map(|file| file.expect("a file").path());
        let records = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
        let read = |file: PathBuf| {
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            let mut record = read_record(&text(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            replay(&mut record);
            (name, record)
        };
        records.map(read).collect()
    });
    &RECORDS
}

/// Where two values differ first, and how.
fn difference(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => left.keys().chain(right.keys()).find_map(|key| {
            let of = |members: &serde_json::Map<String, Value>| members.get(key).cloned().unwrap_or_default();
            difference(&of(left), &of(right)).map(|said| format!("/{key}{said}"))
        }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs.into_iter().find_map(|(at, (left, right))| difference(left, right).map(|said| format!("/{at}{said}")))
        }
        (left, right) => (left != right).then(|| format!(" is {left}, not {right}")),
    }
}

/// Asked anew, a method asks for the trials of the record, in their order. Tests of verdicts come when the other trials are done.
#[test]
fn a_method_asks_for_the_trials_that_were_run() {
    let differences: Vec<String> =
        records().iter().filter_map(|(name, record)| asks_for_other_trials(name, record)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn asks_for_other_trials(name: &str, record: &Record) -> Option<String> {
    let mut method = of(&record.plan, &record.hosts);
    let asked = record.trials.iter().filter(|result| result.trial.proves.is_none());
    for (at, result) in asked.enumerate() {
        let Step::Run { trial, .. } = method.next() else {
            return Some(format!("{name}: trial {at}, {}, is not asked for", result.trial.name));
        };
        if let Some(differs) = difference(&json!(trial), &json!(result.trial)) {
            return Some(format!("{name}: trial {at}: {differs}"));
        }
        assert_eq!(method.record(result), After::GoOn, "{name}: trial {at}");
    }
    None
}

/// A record that is replayed again stays as it is, and is read as it was written.
#[test]
fn replaying_again_changes_nothing() {
    for (name, record) in records() {
        let mut again = record.clone();
        replay(&mut again);
        assert_eq!(difference(&json!(again), &json!(record)), None, "{name}");
        let read = read_record(&json!(record).to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(difference(&json!(read), &json!(record)), None, "{name}");
    }
}

/// One place of every shape in which `value` holds an object or a list, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    if value.is_object() || value.is_array() {
        all.push(at.to_owned());
    }
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| places(member, &format!("{at}/{key}"), all)),
        // The entries of a list are of one shape.
        Value::Array(entries) => entries.first().into_iter().for_each(|entry| places(entry, &format!("{at}/0"), all)),
        _ => {}
    }
}

/// A record of others may hold anything.
#[test]
fn no_value_of_another_kind_makes_reading_or_replaying_panic() {
    for name in ["stream-loaded-latency", "frames", "copy-fault", "ladder-interrupted", "nfs-curve-interrupted"] {
        let good: Value = serde_json::from_str(&text(name)).expect("JSON");
        let mut all = Vec::new();
        places(&good, "", &mut all);
        let mut refused = 0;
        for (at, bad) in all.iter().flat_map(|at| [json!([1]), json!("text")].map(|bad| (at, bad))) {
            let mut hostile = good.clone();
            *hostile.pointer_mut(at).expect("it is there") = bad;
            match read_record(&hostile.to_string()) {
                Ok(mut record) => replay(&mut record),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 20, "{name}: {refused} of {} were refused", 2 * all.len());
    }
}
