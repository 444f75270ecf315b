//! What a command prints while it runs: lines of intervals, and events as JSON.

use crate::program::{Ran, TestFolder};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::ops::RangeFrom;
use std::process::Stdio;

/// A stream between two hosts of a lab, slow enough to leave the machine to the tests beside it.
const STREAM: [&str; 11] = ["lab", "--hosts", "2", "--link", "10Mbit/s", "--", "stream", "a", "b", "--warmup", "200ms"];
/// The words of it that follow the lab, for one that is kept.
const IN_LAB: RangeFrom<usize> = 6..;

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../../docs/stream.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is valid")
}

/// The events on standard output. Each must be as the schema says.
fn events(ran: &Ran) -> Vec<Value> {
    let schema = schema();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let errors: Vec<String> = schema.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}: {line}");
        event
    };
    ran.out.lines().map(event).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("an event has a name")).collect()
}

#[lab_test]
fn events_are_in_order_and_the_first_interval_comes_in_time() {
    let place = TestFolder::new();
    let ran = place.run(&[&STREAM[..], &["-t", "1500ms", "-r", "2", "--json-stream"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!ran.err.contains("Interval"), "events take the place of lines: {}", ran.err);
    let events = events(&ran);
    let names = names(&events);
    let [start, host_a, host_b, rest @ ..] = &names[..] else { panic!("{names:?}") };
    assert_eq!([*start, *host_a, *host_b], ["start", "host", "host"]);
    let [trials @ .., result, verdict, end] = rest else { panic!("{names:?}") };
    assert_eq!([*result, *verdict, *end], ["result", "verdict", "end"]);
    assert!(trials.iter().all(|name| ["trial", "interval"].contains(name)), "{names:?}");
    let (mut attempts, mut ever_in_time) = (0, false);
    for attempt in events.split(|event| event["event"] == "trial" && event["state"] == "begins").skip(1) {
        let ended = attempt.iter().position(|event| event["event"] == "trial").expect("an attempt that begins ends");
        let intervals = &attempt[..ended];
        assert!(!intervals.is_empty(), "{attempt:?}");
        let (mut before, mut received) = (0, 0);
        let mut hosts = BTreeSet::new();
        for interval in intervals {
            assert_eq!((interval["event"].as_str(), &interval["number"]), (Some("interval"), &Value::from(attempts)));
            assert_eq!(interval["from"], before, "intervals follow each other");
            before = interval["to"].as_u64().expect("an end");
            received += interval["received_bytes"].as_u64().expect("a count");
            let told = interval["hosts"].as_array().expect("hosts");
            hosts.extend(told.iter().map(|host| host["host"].as_str().expect("a host has a name")));
        }
        // A host whose news are late is in a later interval.
        assert!(received > 0 && hosts == BTreeSet::from(["a", "b"]), "{received} bytes, {hosts:?}: {attempt:?}");
        assert_eq!(intervals[0]["warmup"], true, "it holds the warm-up");
        // Where a host's news are as late as the end, one interval holds all of the 1.7 s.
        if let [first, second, ..] = intervals {
            assert_eq!(second["warmup"], false);
            ever_in_time |= first["to"].as_u64() < Some(1_700_000_000);
        }
        attempts += 1;
    }
    assert!(attempts >= 2 && ever_in_time, "an interval comes before the end: {names:?}");
    // The record that was named is kept, and its result was told.
    let record = place.run(&["results", "show", "--json"]).json();
    assert_eq!((&events[0]["record"], &events[events.len() - 3]["result"]), (&record["id"], &record["results"][0]));
    assert_eq!(events.last().map(|end| &end["state"]), Some(&Value::from("finished")));
}

#[lab_test]
fn lines_are_printed_unless_they_are_not_wanted() {
    let place = TestFolder::new();
    place.run(&["lab", "--hosts", "2", "--link", "10Mbit/s", "--keep"]).says(0, &["lab down"]);
    let stream = |more: &[&str]| place.run(&[&STREAM[IN_LAB], &["-t", "1s", "-r", "1"], more].concat());
    let lines = |more: &[&str]| {
        let ran = stream(more);
        assert_eq!(ran.code, Some(0), "{more:?}: {}", ran.err);
        assert!(!ran.out.contains("Interval"), "{more:?}: results alone are on standard output: {}", ran.out);
        let is_line =
            |line: &&str| line.contains("bit/s") && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        // What the hypervisor spoilt is measured again, under a head of its own.
        let attempts = 1 + ran.err.matches(", attempt ").count();
        (attempts, ran.err.matches("Busiest thread").count(), ran.err.lines().filter(is_line).count())
    };
    let (attempts, heads, rows) = lines(&[]);
    assert!(heads == attempts && (attempts..=2 * attempts).contains(&rows), "{attempts}: {heads}, {rows}");
    assert!(lines(&["-i", "0.2"]).2 >= 2);
    for silent in [&["-i", "0"][..], &["--json"], &["--json-stream"]] {
        let (_, heads, rows) = lines(silent);
        assert_eq!((heads, rows), (0, 0), "{silent:?}");
    }
    let (attempts, heads, _) = lines(&["--json", "-i", "500ms"]);
    assert_eq!(heads, attempts);
    assert!(!names(&events(&stream(&["--json-stream", "-i", "0"]))).contains(&"interval"));
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

#[lab_test]
fn a_reader_that_leaves_stops_the_run_and_what_was_measured_is_kept() {
    let place = TestFolder::new();
    let arguments = [&STREAM[..], &["-t", "300ms", "-r", "1000", "--json-stream"]].concat();
    let started = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let mut line = String::new();
    while !line.contains(r#""state":"counted""#) {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("events are text"), 0, "the run ended first");
    }
    drop(out);
    let ran = Ran::from(child.wait_with_output().expect("the program can be waited for"));
    ran.says(141, &["standard output was closed", "is kept"]);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    let runs = place.run(&["results", "list", "--json"]).json();
    assert_eq!(runs[0]["state"], "interrupted", "{runs:#}");
    assert!(runs[0]["trials"].as_u64() >= Some(1), "{runs:#}");
}
