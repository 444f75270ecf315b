//! Records of every kind of run in the first format, upgraded and replayed: their trials must give the results, verdicts and outcome
//! that they held, in the words and names of today.

use linerate_method::{After, Step, calibrated, of, read_record, replay};
use linerate_model::{Calibrated, CalibratedSubject, CopyFigures, Goal, Measurement, Outcome, Record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Runs in which the tester did not offer loads that it was to. Their searches took other steps than they would take today, and
/// they held figures for firm that are not.
const NOT_OFFERED: [&str; 10] = [
    "device-all",
    "device-echo",
    "device-goals",
    "device-interrupted",
    "device-latency",
    "device-latency-killed",
    "device-recovery",
    "device-throughput",
    "device-throughput-both-v6-vlan",
    "frames-two-agents-both",
];

/// Where the records are. Its README.md says which command made which.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records_v1")
}

/// The record of that name as it was kept, if there is one.
fn kept(name: &str) -> Option<Value> {
    let text = fs::read_to_string(folder().join(name).with_extension("json")).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The same, upgraded. What the tester reached is taken from the record of its calibration, where there is one.
fn upgraded(name: &str) -> Option<Record> {
    let text = fs::read_to_string(folder().join(name).with_extension("json")).ok()?;
    let read = |text: &str| read_record(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut record = read(&text);
    if let Some(calibration) = upgraded(&format!("{name}-calibration")) {
        record.plan.calibrated = calibrated(&calibration);
        let held = kept(&format!("{name}-calibration")).expect("it was read");
        record.plan.calibrated.iter_mut().for_each(|known| as_held(known, &held));
        replay(&mut record);
    }
    Some(record)
}

/// Puts in what the calibration said of the tester when it was made. Its loads follow from that, and what the tester offered of
/// a load was not taken off then.
fn as_held(known: &mut Calibrated, calibration: &Value) {
    let CalibratedSubject::FrameBytes(bytes) = known.subject else { return };
    let sizes = calibration["outcome"]["throughput"].as_array().into_iter().flatten();
    let held = sizes.filter(|size| size["frame_bytes"] == bytes).find_map(|size| size["frames_per_s"].as_f64());
    known.reached.median = held.expect("a rate of that size");
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

/// All records, upgraded once for all tests, by name.
fn records() -> &'static BTreeMap<String, Record> {
    static RECORDS: LazyLock<BTreeMap<String, Record>> = LazyLock::new(|| {
        let upgraded = |name: String| {
            let record = upgraded(&name).expect("it is listed");
            (name, record)
        };
        names().into_iter().map(upgraded).collect()
    });
    &RECORDS
}

/// Leaves out doubts that the first format did not know, what messages consist of besides their text, whether a figure is firm, duplicates that TCP was told of, and verdicts: their
/// rules weigh more now than these records hold.
fn comparable(value: Value) -> Value {
    const NEW: [&str; 5] = ["few-round-trips", "few-packets", "probe-share", "fragments", "not-steady"];
    match value {
        // A message was its text alone.
        Value::Object(mut message) if message.get("text").is_some_and(Value::is_string) => {
            message.remove("parts");
            match message.len() {
                1 => message.remove("text").unwrap_or_default(),
                _ => Value::Object(message),
            }
        }
        Value::Object(members) => {
            // `bypass` and `age` are of tester limits.
            const NEW: [&str; 7] = ["verdict", "firmness", "sent_share", "dsacks", "reorderings", "bypass", "age"];
            let kept = members.into_iter().filter(|(key, _)| !NEW.contains(&key.as_str()));
            kept.map(|(key, member)| (key, comparable(member))).collect()
        }
        Value::Array(entries) => {
            let is_new = |entry: &Value| entry["kind"].as_str().is_some_and(|kind| NEW.contains(&kind));
            entries.into_iter().filter(|entry| !is_new(entry)).map(comparable).collect()
        }
        other => other,
    }
}

/// Demands that two values agree; where they do not, the first field that differs is named.
fn same(name: &str, replayed: &Value, held: &Value) -> Result<(), String> {
    difference(&comparable(replayed.clone()), &comparable(held.clone()), 0.0)
        .map_or(Ok(()), |difference| Err(format!("{name}: {difference}")))
}

/// The same of raw frames. The first format did not say whether a figure is firm, gave a rate as it was asked for where it is now
/// as it was offered, and told what was sent in fewer words.
fn same_of_frames(name: &str, replayed: &Value, held: &Value) -> Result<(), String> {
    difference(&roughly(comparable(replayed.clone())), &roughly(comparable(held.clone())), OFFERED)
        .map_or(Ok(()), |difference| Err(format!("{name}: {difference}")))
}

/// A rate that was offered is by so much lower than the one asked for, at the most.
const OFFERED: f64 = 0.005;

/// Leaves out rates that the first format called lossy though they had not been offered, and the numbers of sentences.
fn roughly(value: Value) -> Value {
    const SENT: [&str; 3] =
        ["the tester sent all # frames due", "the tester sent # of the # frames due", "the tester sent every frame"];
    match value {
        Value::Object(members) => {
            let known = members.into_iter().filter(|(key, _)| key != "lost_at_frames_per_s");
            known.map(|(key, member)| (key, roughly(member))).collect()
        }
        Value::Array(entries) => entries.into_iter().map(roughly).collect(),
        Value::String(text) => {
            let mut plain = String::new();
            for piece in text.split_inclusive(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '.')) {
                let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '.'));
                let number = piece.starts_with(|c: char| c.is_ascii_digit());
                plain.push_str(if number { "#" } else { "" });
                plain.push_str(if number { rest } else { piece });
            }
            SENT.iter().fold(plain, |text, sent| text.replace(sent, "sent")).into()
        }
        other => other,
    }
}

/// Where two values differ first, by more than `tolerance` of a number, and how.
fn difference(replayed: &Value, held: &Value, tolerance: f64) -> Option<String> {
    match (replayed, held) {
        (Value::Object(left), Value::Object(right)) => left.keys().chain(right.keys()).find_map(|key| {
            let (left, right) = (left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null));
            difference(left, right, tolerance).map(|said| format!("/{key}{said}"))
        }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| difference(left, right, tolerance).map(|said| format!("/{at}{said}"))),
        (left, right) if left == right => None,
        (Value::Number(left), Value::Number(right))
            if left.as_f64().zip(right.as_f64()).is_some_and(|(a, b)| (a - b).abs() <= tolerance * b.abs()) =>
        {
            None
        }
        (left, right) => Some(format!(" replays as {left}, and the record has {right}")),
    }
}

/// What a value of the first format is called now.
fn renamed(value: Value) -> Value {
    const NAMES: [(&str, &str); 7] = [
        ("means", "io_method"),
        ("stand", "support"),
        ("ceiling", "tester_limit"),
        ("workload", "task"),
        ("rungs", "layers"),
        ("share_of_below", "share_of_layer_below"),
        ("frames_per_s_of_ceiling", "frames_per_s_of_tester_limit"),
    ];
    const WORDS: [(&str, &str); 32] = [
        (
            "that had waited for a retransmission before the window was delivered within it, or a lab's link made up for a rest before",
            "held up before it, as for a retransmission, arrived within",
        ),
        ("the tester's own ceiling", "the tester limit"),
        ("nothing is known of the spread", "too few to know the spread"),
        ("what a sent was counted over", "host a sent for"),
        ("what a received was counted over", "host a received for"),
        ("what b sent was counted over", "host b sent for"),
        ("what b received was counted over", "host b received for"),
        (", where 0.", " instead of 0."),
        (
            " were asked for: its threads were kept from their cores at the window's edges",
            ", because its threads waited for a core at the edges of the window, or the other host started earlier",
        ),
        ("had work for", "was busy for"),
        (
            "--rate`, and try --congestion bbr, which gives way to loss less",
            "--rate`. Also try --congestion bbr, which gives way to loss less.",
        ),
        ("some task of that host", "at least one task of that host"),
        ("To write files waited", "Stage write waited"),
        ("To read files waited", "Stage read waited"),
        ("To open files waited", "Stage open waited"),
        (", to make all durable for", ", stage sync for"),
        (" took a core for", " used the CPU most: it was on a core for"),
        ("stages, to ", "stages, "),
        ("To list files waited", "Stage list waited"),
        ("To create files waited", "Stage create waited"),
        ("To verify files waited", "Stage verify waited"),
        ("the burst was searched for ", "the number of searches was "),
        (" times; RFC 2544 section 26.4", "; RFC 2544 section 26.4"),
        ("two of its ports tells", "two of its ports measures it"),
        ("under way", "in flight"),
        ("segments were resent", "segments were retransmitted"),
        ("the same hosts tells a shaper from", "the same hosts distinguishes a shaper from"),
        ("three runs or more tell", "make three runs or more"),
        (", and the device took its time over them", ""),
        ("more load would tell more", "offer a higher load to find the limit"),
        (
            "; that the receiving port lost none of them is taken for granted",
            ", provided that the receiving port lost none of them",
        ),
        (
            "The same at half the --rate tells: loss that stays is the path's, loss that goes is of a path that is full.",
            "Measure at half the --rate: if the loss stays, the path loses packets at any load; if it goes, the path was full.",
        ),
    ];
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| {
                let now = NAMES.iter().find(|(then, _)| *then == key).map_or(key, |(_, now)| (*now).to_owned());
                let member = if now == "places" { with_new_places(member) } else { member };
                (now, renamed(member))
            })
            .collect(),
        Value::Array(entries) => entries.into_iter().map(renamed).collect(),
        Value::String(text) if text == "tester-ceiling" => "tester-limit".into(),
        Value::String(text) => WORDS.iter().fold(text, |text, (then, now)| text.replace(then, now)).into(),
        other => other,
    }
}

/// Places of loss as they are now: what no counter explains was called `wire`, and there were fewer.
fn with_new_places(mut places: Value) -> Value {
    if let Some(unaccounted) = places.as_object_mut().and_then(|places| places.remove("wire")) {
        places["unaccounted"] = unaccounted;
        ["sender_filter", "corrupted", "receiver_filter", "reassembly"].iter().for_each(|new| places[new] = 0.into());
    }
    places
}

/// A result without the head that the first format did not have.
fn without_head(result: &Measurement) -> Value {
    let mut value = serde_json::to_value(result).expect("it is JSON");
    if let Some(members) = value.as_object_mut() {
        ["quantity", "main", "detail"].iter().for_each(|key| drop(members.remove(*key)));
    }
    value
}

/// The copies' figures and verdict as the first format had them: its tests were named by what was changed alone.
fn copy_as_kept(result: &Measurement, figures: &CopyFigures) -> Value {
    let mut value = serde_json::to_value(figures).expect("it is JSON");
    value["verdict"] = serde_json::to_value(&result.verdict).expect("it is JSON");
    for proof in value["verdict"]["proofs"].as_array_mut().into_iter().flatten() {
        let by = proof["by"].as_str().and_then(|by| by.strip_prefix("copy with ")).map(str::to_owned);
        proof["by"] = by.expect("a test of the copy").into();
    }
    value
}

/// Compares what a record of the first format held with what its trials amount to now.
fn compare(name: &str, held: &Value, record: &Record) -> Result<(), String> {
    let held = renamed(held.clone());
    let asked = |key: &str| !held["plan"].get(key).unwrap_or(&Value::Null).is_null();
    let outcome = held.get("outcome").cloned().unwrap_or(Value::Null);
    if asked("copy") {
        let result = record.results.first().unwrap_or_else(|| panic!("{name}: nothing was copied"));
        same(name, &copy_as_kept(result, result.copy().expect("a copy")), &outcome)?;
        let mut doubts = result.caveats.clone();
        doubts.extend(record.caveats.clone());
        same(name, &json!(doubts), &held["caveats"])?;
        return Ok(());
    }
    if held["plan"]["device"]["test"]["name"] == "frames" {
        let flows: Vec<Value> = record.results.iter().flat_map(Measurement::frames).map(|flow| json!(flow)).collect();
        same_of_frames(name, &json!({"frames": flows}), &outcome)?;
        return Ok(());
    }
    let results: Vec<Value> = record.results.iter().map(without_head).collect();
    same(name, &Value::Array(results), &held["results"])?;
    match (&record.plan.goal, &record.outcome) {
        (Goal::Ladder(_), Outcome::Ladder(found)) => same(name, &json!(found), &held["ladder"])?,
        (Goal::Curve(_), Outcome::Curve(found)) => {
            let result = record.result(found.result.as_deref().expect("a result")).and_then(Measurement::flows);
            let result = result.expect("figures");
            let mut found = json!(found);
            (found["operations"], found["classes"]) = (json!(result.operations), json!(result.classes));
            same(name, &found, &outcome)?;
        }
        (Goal::Device(_), Outcome::Device(found)) => same_of_frames(name, &json!(found), &outcome)?,
        (Goal::Sweep(_), Outcome::Sweep) => {}
        (goal, outcome) => panic!("{name}: {outcome:?} of {goal:?}"),
    }
    same(name, &json!(record.caveats), &held["caveats"])
}

#[test]
fn every_record_replays_to_what_it_held() {
    let records = records();
    assert!(records.len() > 50, "{} records", records.len());
    let mut differ = Vec::new();
    for (name, record) in records {
        // The demonstration joined runs of several goals, held against different calibrations, which it did not keep.
        if name == "demonstration" || NOT_OFFERED.contains(&name.as_str()) {
            continue;
        }
        differ.extend(compare(name, &kept(name).expect("it is listed"), record).err());
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), records.len(), differ.join("\n"));
}

/// Asked anew, a method asks for the trials of the record, in their order. Tests of verdicts are left out: the first format had no
/// pairs.
#[test]
fn a_method_asks_for_the_trials_that_were_run() {
    let mut differ = Vec::new();
    let other = |name: &str| name == "demonstration" || NOT_OFFERED.contains(&name);
    for (name, record) in records().iter().filter(|(name, _)| !other(name)) {
        differ.extend(asks_for_other_trials(name, record));
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn asks_for_other_trials(name: &str, record: &Record) -> Option<String> {
    let mut method = of(&record.plan, &record.hosts);
    let asked = record.trials.iter().filter(|result| result.trial.proves.is_none());
    for (at, result) in asked.enumerate() {
        let Step::Run { trial, .. } = method.next() else {
            return Some(format!("{name}: trial {at}, {}, is not asked for", result.trial.name));
        };
        if let Err(differs) = same(&format!("{name}: trial {at}"), &json!(trial), &json!(result.trial)) {
            return Some(differs);
        }
        assert_eq!(method.record(result), After::GoOn, "{name}: trial {at}");
    }
    None
}

#[test]
fn the_demonstration_keeps_its_ladder_and_streams() {
    let record = &records()["demonstration"];
    assert!(record.ladder().is_some() && record.results.len() > 10, "{} results", record.results.len());
}

/// A record that is replayed again stays as it is, and is read as it was written.
#[test]
fn replaying_again_changes_nothing() {
    for (name, record) in records() {
        let mut again = record.clone();
        replay(&mut again);
        if again != *record {
            same(name, &json!(again), &json!(record)).unwrap_or_else(|differs| panic!("{differs}"));
        }
        let read = read_record(&json!(record).to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
        if read != *record {
            same(name, &json!(read), &json!(record)).unwrap_or_else(|differs| panic!("{differs}"));
        }
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

/// A record of others may hold anything. A list or a text where an object was due made the upgrade panic.
#[test]
fn no_value_of_another_kind_makes_the_upgrade_of_a_record_panic() {
    for name in [
        "stream-loaded-latency-udp",
        "frames-two-agents-both",
        "copy-one-to-three",
        "ladder-interrupted",
        "nfs-curve-interrupted",
    ] {
        let good = kept(name).unwrap_or_else(|| panic!("there is no record `{name}`"));
        let mut all = Vec::new();
        places(&good, "", &mut all);
        let mut refused = 0;
        for (at, bad) in all.iter().flat_map(|at| [json!([1]), json!("text")].map(|bad| (at, bad))) {
            let mut hostile = good.clone();
            *hostile.pointer_mut(at).expect("it is there") = bad;
            refused += u32::from(read_record(&hostile.to_string()).is_err());
        }
        assert!(refused > 20, "{name}: {refused} of {} were refused", 2 * all.len());
    }
    let mut hostile = kept("stream-loaded-latency-udp").expect("a record");
    hostile["plan"]["cells"][0]["probe"] = json!([1]);
    let error = read_record(&hostile.to_string()).expect_err("a list").to_string();
    assert!(error.contains("probe: it is not an object"), "{error}");
}
