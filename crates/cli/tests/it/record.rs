//! The record other tools rely on: its schema, its fields, standard output with nothing else on it; the demonstration.

use crate::program::{TestFolder, number};
use linerate_testsuite::lab_test;
use serde_json::Value;

fn check_schema(record: &Value) {
    let text = include_str!("../../../../docs/record.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let errors: Vec<String> =
        validator.iter_errors(record).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

const SHORT: [&str; 8] = ["stream", "local", "--time", "300ms", "--warmup", "10ms", "--repeats", "1"];

#[test]
fn a_run_is_measured_without_a_store() {
    let place = TestFolder::new();
    let asked = place.run(&[&SHORT[..], &["--no-store", "--out", "kept.json"]].concat());
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    assert!(asked.out.contains("No record was kept") && !asked.out.contains("linerate explain"), "{}", asked.out);
    assert!(place.path("kept.json").exists() && !place.path("results.db").exists());
    // No folder can be made below /proc, whoever tries.
    let mut command = place.command(&SHORT);
    command.env_remove("LINERATE_STORE").env("XDG_DATA_HOME", "/proc/none");
    let unwritable = place.start_command(command).end();
    assert_eq!(unwritable.code, Some(0), "{}", unwritable.err);
    assert!(unwritable.err.contains("the record of this run is not kept: cannot create"), "{}", unwritable.err);
    assert!(unwritable.out.contains("No record was kept"), "{}", unwritable.out);
    let named = place.run(&[&SHORT[..], &["--store", "/proc/none/results.db"]].concat());
    assert_ne!(named.code, Some(0), "a store that is named must be there: {}", named.out);
}

#[test]
fn every_promised_field_is_there() {
    let place = TestFolder::new();
    let run = |arguments: &[&str]| {
        // Long enough that each thread has a turn on a busy machine: one that has none costs nothing.
        let record = place.measure(&[arguments, &["--time", "1s", "--warmup", "10ms", "--json"]].concat());
        check_schema(&record);
        assert_eq!(record["schema"], "linerate.record/2");
        record["results"][0].clone()
    };
    let both = [
        "/name",
        "/task",
        "/quantity",
        "/main/median",
        "/transport",
        "/message_bytes",
        "/cpu/sender/busiest_core",
        "/cpu/receiver/busiest_core",
        "/caveats/0/kind",
        "/caveats/0/text",
        "/verdict/limit",
        "/verdict/confidence",
        "/verdict/evidence/0/text",
    ];
    let stream = [
        "/received/payload_bps/median",
        "/received/payload_bps/low",
        "/received/payload_bps/high",
        "/received/payload_bps/runs",
        "/received/packets_per_s/median",
        "/cpu/sender/ns_per_byte",
        "/cpu/receiver/ns_per_byte",
    ];
    let loss = ["/loss/lost", "/loss/of", "/loss/places"];
    let calls =
        ["/call", "/transactions_per_s/median", "/retransmitted", "/service_ns/p50", "/cpu/sender/ns_per_packet"];
    let latency = ["/latency_ns/p50", "/latency_ns/p99", "/latency_ns/p999", "/latency_ns/max"];
    for (arguments, promised) in [
        (&["stream", "local"][..], [&both[..], &stream].concat()),
        (&["stream", "local", "--udp", "-6", "--repeats", "1"], [&both[..], &stream, &loss].concat()),
        (&["transact", "local", "--repeats", "1"], [&both[..], &latency].concat()),
        (
            &["rpc", "local", "--tcp", "--call", "read", "--sizes", "1K", "--repeats", "1"],
            [&both[..], &stream[..5], &calls, &latency].concat(),
        ),
    ] {
        let result = run(arguments);
        for field in promised {
            // The time of a thread that has ended before its busy host looked is not known.
            let may_be_unknown = field.contains("/ns_per_");
            assert!(
                result.pointer(field).is_some_and(|value| may_be_unknown || !value.is_null()),
                "{arguments:?}: {field} in {result:#}"
            );
        }
        if let Some(payload) = result.pointer("/received/payload_bps") {
            assert_eq!(
                payload["runs"],
                if arguments.contains(&"--repeats") { 1 } else { 3 },
                "three runs are the default"
            );
            assert!(number(payload, "/low") <= number(payload, "/median"));
            assert!(number(payload, "/median") <= number(payload, "/high"));
        }
    }
}

#[test]
fn records_are_kept_listed_reported_and_deleted() {
    let place = TestFolder::new();
    let record = place.measure(&[
        "stream", "local", "--udp", "--sizes", "64,512", "--time", "300ms", "--warmup", "0s", "-r", "2", "--json",
    ]);
    let id = record["id"].as_str().expect("a record has an id");
    assert_eq!(place.run(&["results", "show", "--json"]).json(), record, "the kept record is the printed one");
    assert!(place.run(&["results"]).out.contains(id));
    assert_eq!(place.run(&["results", "--json", "list"]).json()[0]["id"], record["id"]);
    for (file, start) in
        [("r.html", "<!DOCTYPE html>"), ("r.md", "#"), ("r.csv", "record,"), ("r.json", "{"), ("r.txt", "")]
    {
        let ran = place.run(&["report", &id[..15], "--out", file]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let text = std::fs::read_to_string(place.path(file)).expect("the report is there");
        assert!(text.starts_with(start) && text.contains("udp 512"), "{file}: {}", &text[..100]);
    }
    let again = place.run(&["report", "r.json", "--format", "json"]);
    assert_eq!(again.json(), record, "a record read from a file is the same");
    assert_eq!(place.run(&["results", "delete", id]).code, Some(0));
    place.run(&["results", "show", id]).says(2, &[id]);
}

/// The README's first command, as a newcomer runs it.
#[lab_test]
fn the_demonstration_prints_a_line_for_each_result_and_writes_its_report() {
    let place = TestFolder::new();
    let ran = place.run(&["lab"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // Raw frames need XDP here: what stands between the ports is a program in the kernel.
    let with_frames = match linerate_frames::xdp_possible() {
        Ok(()) => true,
        Err(why) => {
            assert!(ran.err.contains("are left out") && ran.err.contains(&why.to_string()), "{}", ran.err);
            false
        }
    };
    let lines = |name: &str| ran.out.lines().filter(|line| line.trim().starts_with(&format!("{name}  "))).count();
    for name in ["udp 64", "udp 1472", "udp transactions", "tcp", "tcp transactions", "rpc tcp write 8192"] {
        assert_eq!(lines(name), 2, "{name}, with the device bypassed and through it:\n{}", ran.out);
    }
    for name in ["nfs tcp read", "nfs tcp write", "copy", "report.html"] {
        assert_eq!(lines(name), 1, "{name}:\n{}", ran.out);
    }
    for size in ["64-byte", "1518-byte"] {
        assert_eq!(lines(&format!("{size} frames")), usize::from(with_frames), "{size}:\n{}", ran.out);
        // A tester that is held up finds no rate at which to take latency. Its figure is not firm then, and stands in parentheses.
        let latency = lines(&format!("{size} p50"));
        let is_firm = !ran.out.lines().any(|line| line.contains(&format!("{size} frames")) && line.contains('('));
        assert!(latency == usize::from(with_frames) || latency == 0 && !is_firm, "{size}:\n{}", ran.out);
    }
    // A machine that is held up adds caveats, layers that were not measured, and the progress of a search.
    let (mut all, mut in_caveat) = (0, false);
    let messages = ran.err.lines().filter(|line| !line.starts_with("linerate: size "));
    for line in ran.out.lines().chain(messages) {
        in_caveat = line.starts_with("  ! ") || in_caveat && line.starts_with("    ");
        all += usize::from(!in_caveat);
    }
    let added = 2 * ran.out.lines().filter(|line| line.starts_with("  Layer ")).count();
    assert!(all <= 48 + added, "{all} lines are more than two screens:\n{}{}", ran.out, ran.err);
    let page = std::fs::read_to_string(place.path("report.html")).expect("the report is there");
    assert!(page.contains("<svg") && page.contains("udp 1472") && page.contains("What was weighed"));
    assert_eq!(page.contains("Throughput as a share of the line"), with_frames);
    // Records of one group: the path, and raw frames.
    let records = place.run(&["results", "show", "--json"]).json();
    let records = records.as_array().expect("several records");
    records.iter().for_each(check_schema);
    assert!(records.iter().all(|record| record["group"] == records[0]["group"] && record["group"].is_string()));
    let of = |goal: &str| records.iter().find(|record| record["plan"]["goal"]["kind"] == goal);
    assert_eq!(records.len(), 1 + usize::from(with_frames));
    let path = of("ladder").expect("the demonstration measures a ladder");
    let results = path["results"].as_array().expect("a record has results");
    let bypassed = results.iter().filter(|result| result["task"] != "nfs").collect::<Vec<_>>();
    assert_eq!((results.len(), bypassed.len()), (9, 7));
    assert!(bypassed.iter().all(|result| number(result, "/tester_limit/share") > 0.0), "each has the tester limit");
    let layers = path["outcome"]["layers"].as_array().expect("layers");
    assert!(layers.iter().filter(|layer| layer["payload_bps"].is_object()).count() >= 3, "{layers:?}");
    // What `explain` is asked for below the results is the path.
    let explained =
        ran.out.lines().find_map(|line| line.trim().strip_prefix("linerate explain ")).expect("it is named");
    let id = explained.split_whitespace().next().expect("with its record");
    assert_eq!(path["id"], id);
    if !with_frames {
        return;
    }
    // A machine that runs other tests beside may offer less than the planted 100,000 frames/s, or drop frames of its own.
    let device = of("device").expect("raw frames were measured");
    let found = device["outcome"]["throughput"].as_array().expect("a throughput for each size");
    assert_eq!(found.len(), 2);
    let [small, large] = [0, 1].map(|size: usize| number(&found[size], "/frames_per_s"));
    // One that is held up in every trial finds none, and says that this is not firm.
    let least = if found[0]["firmness"]["is"] == "firm" { 1.0 } else { 0.0 };
    assert!((least..=110_000.0).contains(&small), "{small} frames/s of 100,000: {}", found[0]);
    let limits: Option<&[&str]> = match (found[1]["firmness"]["is"] == "firm", large >= 0.99 * 1e9 / 8.0 / 1538.0) {
        (false, _) => Some(&["tester", "cannot-tell"]),
        (true, true) => Some(&["wire"]),
        (true, false) => None,
    };
    let is_one = |limits: &[&str]| limits.iter().any(|limit| found[1]["limit"] == *limit);
    assert!(limits.is_none_or(is_one), "{limits:?}: {}", found[1]["verdict"]);
    // A tester that was held up in every trial over the cable as well has no known limit, and says so.
    match found[0].pointer("/tester_limit/share").and_then(Value::as_f64) {
        Some(share) => assert_eq!(share > 0.0, small > 0.0, "{}", found[0]),
        None => assert!(found[0]["caveats"].to_string().contains("not-calibrated"), "{}", found[0]),
    }
}

#[test]
fn help_and_manual_pages_name_every_command() {
    let place = TestFolder::new();
    let help = place.run(&["--help"]);
    assert_eq!(help.code, Some(0));
    assert_eq!(place.run(&["man", "man1"]).code, Some(0));
    for command in [
        "stream",
        "transact",
        "rpc",
        "nfs",
        "ladder",
        "calibrate",
        "lab",
        "serve",
        "probe",
        "results",
        "report",
        "completions",
        "man",
    ] {
        assert!(help.out.contains(command), "{command}");
        assert!(place.path(&format!("man1/linerate-{command}.1")).exists(), "linerate-{command}.1");
        assert!(place.run(&[command, "--help"]).out.contains("Usage: linerate"), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&["completions", shell]).out.contains("transact"), "{shell}");
    }
}

#[test]
fn probe_says_what_a_host_can_do() {
    let host = TestFolder::new().run(&["probe", "--json"]).json();
    assert!(number(&host, "/cores") >= 1.0);
    let capabilities = host["capabilities"].as_array().expect("capabilities are listed");
    assert!(capabilities.iter().any(|c| c["name"].as_str().is_some_and(|name| name.contains("namespace"))));
}
