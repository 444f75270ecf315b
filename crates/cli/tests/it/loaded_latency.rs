//! Latency under load against planted truth: a queue of known length ahead of a link of known rate, planted loss.

use crate::program::{TestFolder, close, counted_as, number, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// The router's end of b's link holds 256 KiB, counted without FCS, preamble and gap. Full of frames of 1,466 bytes, each of
/// which takes the line 1,490 bytes, it is this long. The last 1,196 bytes are too few for such a frame, and leave room for probes.
/// Without such room probes would be lost.
const QUEUE_NS: f64 = 262_144.0 / 1_466.0 * 1_490.0 * 8.0 / 10e6 * 1e9;

/// A router that must queue what a sends to b. (A bridge would do, but that a sender's socket buffer counts what waits in
/// the queue of a bridge on its own machine, and so keeps it from filling.)
fn slow_link(place: &TestFolder) -> String {
    let bench =
        "name = \"slow\"\nhosts = [\"a\", \"b\"]\n[device]\nkind = \"router\"\n[links.b]\nrate = \"10Mbit/s\"\n";
    place.file("slow.toml", bench)
}

fn probed(record: &Value) -> &Value {
    &record["results"][0]["loaded_latency"]
}

/// What the probes of the first repeat counted, one for each path: on the idle path, in a trial of their own, or beside the load.
fn probes<'a>(record: &'a Value, phase: &str) -> Vec<&'a Value> {
    let idle = phase == "idle";
    let trial = counted_as(record, |name| name.ends_with(" idle") == idle);
    let paths = trial["counts"][usize::from(!idle)]["flows"].as_array().expect("an entry for each path");
    paths.iter().map(|path| &path["client"]["transactions"]).collect()
}

/// UDP above the rate keeps the queue full, UDP below it leaves it empty.
#[lab_test]
fn a_queue_of_known_length_adds_its_delay() {
    let place = TestFolder::new();
    let bench = slow_link(&place);
    let over = |options: &str| {
        place.measure(&words(&format!(
            "lab --bench {bench} -- stream a b --loaded-latency --repeats 1 --json {options}"
        )))
    };

    let record = over("--udp --size 1424 --rate 20Mbit/s --time 3s");
    let full = probed(&record);
    // Probes that answer late on a busy machine add to the delay, or where the path was idle take from it. A machine that stands still for
    // a second delays a third of them.
    let added = number(full, "/added_ns/p50");
    // A sender that is held up for longer than the queue lasts leaves it part empty for some time: fewer probes show it then.
    assert!(added < 1.3 * QUEUE_NS && number(full, "/loaded_ns/p90") > 0.7 * QUEUE_NS, "{full}");
    if added > 0.7 * QUEUE_NS {
        assert_eq!(full["grade"], if added < 200e6 { "C" } else { "D" }, "{added} ns; 200 to 400 ms are D");
    }
    assert_eq!(full["transport"], "udp", "as the stream");
    // The formulas' own parts stand beside them.
    let idle = number(full, "/idle_ns/p50");
    let delay = (number(full, "/loaded_ns/mean") - idle) / idle * 100.0;
    close("buffer delay", number(full, "/buffer_delay_percent"), delay, 1e-6);
    // They are of a mean, which also grows on an empty path when the machine stands still for a second.
    for phase in ["idle", "loaded"] {
        let bound = |time: &str| 60e9 / number(full, &format!("/{phase}_ns/{time}"));
        let rpm = number(full, &format!("/rpm/{phase}"));
        assert!((bound("max")..=bound("min")).contains(&rpm), "{phase}: {rpm} round trips a minute: {full}");
    }
    // 100 a second for 2.8 s, at random times: four standard deviations.
    close("requests", number(full, "/loaded_ns/count"), 280.0, 0.24);

    let record = over("--udp --rate 2Mbit/s --time 3s");
    let empty = probed(&record);
    let added = number(empty, "/added_ns/p50");
    // A frame of the load may be in the way, which is 1.2 ms, and a busy machine adds to it.
    assert!(added < QUEUE_NS / 4.0, "{added} ns added by a fifth of the rate");
}

/// A tenth of the requests is lost on either path, and is the slowest tenth of each.
#[lab_test]
fn requests_that_are_lost_stay_in_the_percentiles() {
    let place = TestFolder::new();
    let bench = place.lossy_bench();
    let record = place.measure(&words(&format!(
        "lab --bench {bench} -- stream a b --udp --rate 1Mbit/s --loaded-latency --time 2s --repeats 1 --json"
    )));
    for phase in ["idle", "loaded"] {
        let unanswered = number(probed(&record), &format!("/{phase}_unanswered"));
        let latency = &probed(&record)[format!("{phase}_ns")];
        let asked = probes(&record, phase)[0];
        let (count, failed, not_sent) =
            (number(latency, "/count"), number(asked, "/failed"), number(asked, "/not_sent"));
        assert_eq!(unanswered, failed + not_sent, "{phase}");
        // Of 180 draws four standard deviations are 0.09. A host that is held up asks for less, or answers too late.
        let share = failed / (count - not_sent);
        assert!((0.01..0.7).contains(&share), "{phase}: {share} of the requests were lost: {asked}");
        // Those without an answer are the slowest, whatever a host that is held up does to the others.
        let points =
            latency["distribution"].as_array().expect("times, and the share of the requests that took no longer");
        let answered = points.iter().filter(|point| number(point, "/0") < 1e9).map(|point| number(point, "/1"));
        let answered = answered.fold(0.0, f64::max);
        assert!(
            (0.1..=1.0 - unanswered / count + 1e-9).contains(&answered),
            "{phase}: {answered} of {asked}: {latency}"
        );
        assert!(number(latency, "/p99") >= 1e9, "{phase}: {latency}");
        assert!(number(latency, "/min") < 100e6, "{phase}: {latency}");
    }
}

#[lab_test]
fn every_path_is_probed_whichever_way_the_stream_goes() {
    let place = TestFolder::new();
    let ran = place.run(&words(
        "lab --link 100Mbit/s -- stream a,b c -6 --udp --rate 1Mbit/s --direction both --loaded-latency=tcp --time 1s \
         --repeats 1 --json --expect added.p50<=1s --expect rpm>=1G",
    ));
    ran.says(1, &["meets added.p50<=1s", "misses rpm>=1G"]);
    let record = ran.json();
    assert_eq!(probed(&record)["transport"], "tcp");
    for phase in ["idle", "loaded"] {
        let paths = probes(&record, phase);
        assert_eq!(paths.len(), 2);
        for path in paths {
            assert!(number(path, "/completed") > 0.0, "{phase}: {path}");
        }
    }
    // The stream is what was asked for, and its probes are no part of it: four flows of 1 Mbit/s for 1 s.
    close("datagrams due", number(&record, "/results/0/loss/of"), 4e6 / 8.0 / 1452.0, 0.1);
}

#[test]
fn what_is_not_probed_has_no_such_figure() {
    let place = TestFolder::new();
    place.run(&words("stream local --time 900ms --loaded-latency")).says(2, &["--time 900 ms", "at least 1 s"]);
    place.run(&words("stream local --expect added.p99<=1ms")).says(2, &["--loaded-latency"]);
    let record = place.measure(&words("stream local --time 100ms --warmup 0s --repeats 1 --json"));
    assert_eq!(record["results"][0].get("loaded_latency"), None);
}

/// Both trials of a probed run end with it, on agents that go on.
#[lab_test]
fn ctrl_c_stops_the_load_and_its_probes() {
    let place = TestFolder::new();
    place.run(&["lab", "--keep", "--hosts", "2", "--link", "10Mbit/s"]).says(0, &["lab down"]);
    // The idle path is probed for 1 s, with some 100 requests; then the load's warm-up begins.
    let stream = place.start(&words("stream a b --loaded-latency=udp --time 1s --warmup 300s --repeats 1"));
    let before = place.packets_received("b", "eth0");
    wait_until("the load runs", || (place.packets_received("b", "eth0") > before + 500).then_some(()));
    stream.signal(Signal::SIGINT);
    stream.end().says(3, &["interrupted"]);
    place.wait_for_silence("b");
    place.run(&["lab", "down"]).says(0, &["is down"]);
}
