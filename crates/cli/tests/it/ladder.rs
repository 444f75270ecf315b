//! The ladder through the command line, in labs of known truth.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::lab_test;
use serde_json::Value;

fn layer<'a>(record: &'a Value, name: &str) -> &'a Value {
    let layers = record.pointer("/outcome/layers").and_then(Value::as_array).expect("a ladder has layers");
    layers.iter().find(|layer| layer["name"] == name).unwrap_or_else(|| panic!("no layer {name} in {record}"))
}

/// Far slower than what a busy machine sends.
const LINE: f64 = 10e6;

/// How many trials of a task counted.
fn trials_of(record: &Value, task: &str) -> usize {
    let trials = record["trials"].as_array().expect("a list of trials");
    let of =
        |trial: &&Value| trial["trial"]["loads"][0]["task"]["kind"] == task && trial["standing"]["is"] == "counted";
    trials.iter().filter(of).count()
}

/// What the attempts at trials of a task counted, for the message of a test that fails.
fn attempts_at(record: &Value, task: &str) -> Value {
    let trials = record["trials"].as_array().expect("a list of trials");
    let of = trials.iter().filter(|trial| trial["trial"]["loads"][0]["task"]["kind"] == task);
    of.map(|trial| serde_json::json!([trial["standing"], trial["counts"]])).collect()
}

/// A full line: each layer carries about what its headers leave, and none carries more.
#[lab_test]
fn a_full_line_is_full_at_every_layer() {
    let place = TestFolder::new();
    let record = place
        .measure(&words("lab --hosts 2 --link 10Mbit/s -- ladder a b --time 2s --warmup 200ms --repeats 1 --json"));
    let names: Vec<&Value> = record["outcome"]["layers"]
        .as_array()
        .expect("a ladder has layers")
        .iter()
        .map(|layer| &layer["name"])
        .collect();
    assert_eq!(names, ["limit", "frames", "udp", "tcp", "rpc", "nfs-read", "nfs-write", "copy"]);
    assert_eq!(number(&record, "/outcome/line_bps"), LINE);
    close("the line", number(layer(&record, "limit"), "/payload_bps/median"), LINE * 1472.0 / 1538.0, 1e-6);
    close("TCP's limit", number(layer(&record, "tcp"), "/limit_bps"), LINE * 1448.0 / 1538.0, 1e-6);
    // A reader that is held up for 200 ms as the window begins finds a quarter of it more in its socket.
    let tcp = 1448.0 / 1472.0;
    let frames = layer(&record, "frames");
    let held_up = frames["missing"]["text"].as_str().is_some_and(|why| why.contains("held up what sends the frames"));
    for (name, share) in [("frames", 1.0), ("udp", 1.0), ("tcp", tcp), ("rpc", tcp * 8_192.0 / 8_256.0)] {
        let layer = layer(&record, name);
        if name == "frames" && held_up {
            continue;
        }
        assert_eq!(layer["missing"], Value::Null, "{layer}: {}", attempts_at(&record, name));
        let of_full = number(layer, "/share_of_line") / share;
        // Where the tester's own ports gave less than the line takes, the layer says so. A busy machine that holds up an end
        // for a second leaves the line idle for half of the window.
        let least = if layer["firmness"]["is"] == "firm" { 0.2 } else { 0.0 };
        assert!(of_full > least && of_full < 1.25, "{name}: {of_full} of what fills the line: {layer}");
    }
    // There and back, by one clock, with no socket at either end.
    if !held_up {
        assert_eq!(trials_of(&record, "frames"), 2, "a rate and a time");
        assert!(number(frames, "/latency_ns/count") > 0.0 && number(frames, "/latency_ns/p50") > 500.0, "{frames}");
    }
    // A copy waits for this machine's storage too, which others may keep busy.
    let copy = layer(&record, "copy");
    let share = number(copy, "/share_of_line");
    assert!(share > 0.0 && share < 1448.0 / 1472.0, "files carry no more than TCP: {copy}");
    assert_eq!(trials_of(&record, "copy"), 1, "as many as there are repeats");
    assert!(copy["verdict"]["limit"].is_string(), "{copy}");

    for (name, stream, transactions) in [("udp", 0, 1), ("tcp", 2, 3)] {
        let layer = layer(&record, name);
        let result = |index: usize| &record["results"][index];
        assert_eq!(layer["payload_bps"], result(stream)["received"]["payload_bps"], "the same figure");
        assert_eq!(layer["verdict"], result(stream)["verdict"], "the same verdict");
        let timed = ["/p50", "/p99", "/count"].map(|part| number(&layer["latency_ns"], part));
        assert_eq!(timed, ["/p50", "/p99", "/count"].map(|part| number(&result(transactions)["latency_ns"], part)));
        assert!(timed[0] > 0.0 && timed[0] <= timed[1], "{timed:?}");
    }

    // It is kept, and every form of report shows it.
    assert_eq!(place.run(&["results", "show", "--json"]).json()["outcome"], record["outcome"]);
    let caption = "Payload of each layer of the path";
    for (form, said) in [("text", caption), ("html", caption), ("markdown", "| UDP |"), ("csv", ",limit,")] {
        let ran = place.run(&["report", "--format", form]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.shows(said), "{form}: {}", ran.out);
    }
}

/// No program fills this line through one UDP socket on such a machine: the widest gap is the one that the figures show.
#[lab_test]
fn a_line_too_fast_for_sockets_leaves_a_gap_that_is_named() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --link 100Gbit/s -- ladder a b -6 --time 200ms --warmup 100ms --repeats 1 --expect share<50% --json",
    ));
    assert_eq!(record["results"][0]["name"], "udp 1452");
    let gap = &record["outcome"]["widest_gap"];
    let (below, above) = (gap["below"].as_str().expect("a gap"), gap["above"].as_str().expect("a gap"));
    let of = |name| number(layer(&record, name), "/payload_bps/median");
    close("the gap", number(gap, "/factor"), of(below) / of(above), 1e-9);
    close("its parts", number(gap, "/factor"), number(gap, "/headers") * number(gap, "/rest"), 1e-9);
    assert!(
        number(gap, "/rest") > 1.0 && gap["advice"]["text"].as_str().is_some_and(|advice| !advice.is_empty()),
        "{gap}"
    );
    // No other step loses more, but for what the tester's own ports lack.
    let steps = record["outcome"]["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .filter(|layer| layer["verdict"]["limit"] != "tester");
    let least = steps.filter_map(|layer| layer["share_of_layer_below"].as_f64()).fold(f64::INFINITY, f64::min);
    close("the smallest share", number(layer(&record, above), "/share_of_layer_below"), least, 0.02);
}

/// The layers that stream name the link, and those above them have their figures.
#[lab_test]
fn a_ladder_with_hops_names_the_link_that_limits() {
    let line = "lab --routers 2 --fault path,at=1-2,rate=10Mbit/s,queue=128KiB -- ladder a b --hops --time 2s --repeats 1 \
                --json";
    let record = TestFolder::new().measure(&words(line));
    // A busy machine may widen the section or leave it out, and never names another link.
    let mut probed = 0;
    for result in record["results"].as_array().expect("results") {
        let Some(ways) = result["ways"].as_array() else { continue };
        probed += 1;
        let address = |hop: usize| &ways[0]["hops"][hop]["addresses"][0];
        assert_eq!([address(0), address(1), address(2)], ["198.18.1.2", "198.18.2.2", "198.18.3.2"], "{result}");
        let section = &result["verdict"]["section"];
        if let (Some(after), Some(before)) = (section["after"]["ttl"].as_u64(), section["before"]["ttl"].as_u64()) {
            assert!(after <= 1 && before >= 2, "{section}");
        }
    }
    assert_eq!(probed, 2, "UDP and TCP");
    assert!(number(layer(&record, "rpc"), "/payload_bps/median") > 0.0);
}

#[test]
fn a_ladder_that_measured_nothing_is_a_failure() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --ephemeral --listen 127.0.0.1:0 --max-time 10ms"));
    let url = agent.line();
    place.run(&["ladder", url.trim(), "--time", "1s", "--json"]).says(3, &["--max-time"]);
    assert_eq!(place.trials(), 0);
}

#[test]
fn what_is_no_ladder_is_refused() {
    let place = TestFolder::new();
    for (line, said) in [
        ("ladder a,c b", "one path"),
        ("ladder", "HOST"),
        ("ladder a b --time 1ms", "too short"),
        ("ladder a b --out report.xyz", "report.xyz"),
        ("ladder a b --expect frames>=1", "does not measure that"),
        ("ladder a b --rate 5", "--rate"),
        ("ladder a b", "no host is called `a`"),
    ] {
        place.run(&words(line)).says(2, &[said]);
    }
}

/// Within one host there is no line and no port, and the other layers stand all the same.
#[test]
fn layers_that_cannot_be_measured_say_why() {
    let record = TestFolder::new().measure(&words("ladder local --time 300ms --warmup 100ms --repeats 1 --json"));
    for (name, said) in [("limit", "--link-speed"), ("frames", "one host")] {
        let why = layer(&record, name)["missing"]["text"].as_str().expect("it says why");
        assert!(why.contains(said), "{why}");
    }
    for name in ["udp", "tcp"] {
        assert!(number(layer(&record, name), "/payload_bps/median") > 0.0);
        assert_eq!(layer(&record, name)["share_of_line"], Value::Null);
    }
    assert_eq!(layer(&record, "tcp")["below"], "udp");
}
