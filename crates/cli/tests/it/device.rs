//! Device tests against a reference device of exactly known limits, through the command line.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::{alone, lab_test};
use serde_json::Value;
use std::process::Command;

/// The record of a device test in a lab with a reference device of those limits.
fn measure(limits: &str, test: &str) -> Value {
    let line = format!("lab --device reference,{limits} -- device {test} --json");
    TestFolder::new().measure(&words(&line))
}

fn caveat<'a>(cell: &'a Value, kind: &str) -> Option<&'a str> {
    let caveats = cell["caveats"].as_array().expect("caveats are there");
    caveats.iter().find(|caveat| caveat["kind"] == kind)?["text"].as_str()
}

#[lab_test]
fn a_planted_rate_is_the_throughput() {
    let _alone = alone();
    let record = measure("max-frames=100000", "throughput --ports tester:p0,tester:p1 --sizes 64,512");
    for (index, size) in [64.0, 512.0].into_iter().enumerate() {
        let cell = &record["outcome"]["throughput"][index];
        assert_eq!(number(cell, "/frame_bytes"), size);
        close(&format!("throughput at {size}"), number(cell, "/frames_per_s"), 100_000.0, 0.005);
        assert_eq!(cell["limit"], "device", "{}", cell["verdict"]);
    }
}

/// No trial of a goal is longer than --time, and the goals agree on a device without moods.
#[lab_test]
fn goals_share_a_search() {
    let _alone = alone();
    let record = measure(
        "max-frames=100000,queue=64",
        "throughput --method mlr --goals rfc2544,tst009 --ports tester:p0,tester:p1 --sizes 64 --time 500ms",
    );
    for (index, goal) in ["rfc2544", "tst009"].into_iter().enumerate() {
        let cell = &record["outcome"]["throughput"][index];
        assert_eq!(cell["goal"]["name"], goal);
        let (lower, upper) = (number(cell, "/goal/lower"), number(cell, "/goal/upper"));
        assert!(lower < upper && upper - lower <= upper * 0.005, "{cell}");
        // A width of 0.5 %, and what a buffer of 64 frames hides in half a second.
        close(goal, number(cell, "/frames_per_s"), 100_000.0, 0.008);
        assert!(caveat(cell, "short-trial").is_some_and(|text| text.contains(goal)), "{cell}");
    }
}

#[lab_test]
fn a_planted_loss_is_on_the_curve() {
    let _alone = alone();
    // 1518-byte frames at 600 Mbit/s: 48,764 a second of a line, some 97,000 in the trial, of which 1 in 100 is lost.
    let record =
        measure("loss=1/100", "loss --ports tester:p0,tester:p1 --sizes 1518 --line 600Mbit/s --step 50 --time 2s");
    let points = record["outcome"]["loss"][0]["points"].as_array().expect("points");
    assert_eq!(points.len(), 2);
    for point in points {
        assert!(number(point, "/sent") > 40_000.0, "{point}");
        close("planted loss", number(point, "/loss_ratio"), 0.01, 0.05);
    }
}

#[lab_test]
fn a_planted_queue_is_the_buffer() {
    let _alone = alone();
    let record = measure(
        "max-frames=50000,queue=200",
        "burst --ports tester:p0,tester:p1 --sizes 512 --line 2Gbit/s --repeats 5 --time 2s",
    );
    let burst = &record["outcome"]["burst"][0];
    close("throughput", number(burst, "/throughput_frames_per_s"), 50_000.0, 0.005);
    close("buffer in frames", number(burst, "/buffer/frames"), 200.0, 0.1);
    close(
        "buffer time",
        number(burst, "/buffer/corrected_ns") * number(burst, "/burst_frames_per_s") / 1e9,
        200.0,
        0.1,
    );
    let (min, mean, max) = (number(burst, "/frames/min"), number(burst, "/frames/mean"), number(burst, "/frames/max"));
    assert!(min <= mean && mean <= max && burst["frames"]["values"].as_array().map(Vec::len) == Some(5), "{burst}");
}

/// A process of real-time priority takes a third of the sending core, 3 ms at a time.
#[lab_test]
fn a_trial_beside_a_burning_core_is_marked_and_repeated() {
    let _alone = alone();
    // It ends by itself long after the test has killed it, however slow the machine is.
    let burn = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end:\n  until = time.monotonic() + 0.003\n  while time.monotonic() < until: pass\n  time.sleep(0.006)";
    let mut burner = Command::new("chrt")
        .args(["--fifo", "50", "taskset", "--cpu-list", "0", "python3", "-c", burn])
        .spawn()
        .expect("chrt of util-linux");
    let line =
        "lab --device none -- device latency --ports tester:p0,tester:p1 --sizes 64 --rate 50k --time 500ms --json";
    let run = TestFolder::new().run(&words(line));
    burner.kill().and_then(|()| burner.wait()).expect("it runs");
    let record = run.json();
    let held_up = caveat(&record["outcome"]["latency"][0], "below-offered-rate").expect("it fell short");
    assert!(held_up.contains("held up for"), "{held_up}");
    assert!(caveat(&record, "repeated").is_some_and(|text| text.starts_with("1 of 1 trials")), "{}", record["caveats"]);
}

#[lab_test]
fn a_planted_echo_limit_is_found_from_one_port() {
    let _alone = alone();
    let record = measure("echo=5000", "echo --ports tester:p0 --target 198.18.0.254");
    let echo = &record["outcome"]["echo"][0];
    assert_eq!((number(echo, "/frame_bytes"), &echo["target"]), (78.0, &Value::from("198.18.0.254")));
    close("answers", number(echo, "/answers_per_s"), 5_000.0, 0.01);
}

/// Everything in one record, the throughput found once; what overload fills, half the load empties at once.
#[lab_test]
fn the_suite_is_one_record() {
    let _alone = alone();
    let record = measure(
        "max-frames=50000,queue=200",
        "all --ports tester:p0,tester:p1 --sizes 512 --line 2Gbit/s --repeats 1 --step 50 --time 500ms --search-time 300ms",
    );
    let outcome = &record["outcome"];
    for part in ["throughput", "latency", "loss", "burst", "recovery"] {
        assert_eq!(outcome[part].as_array().map(Vec::len), Some(1), "{part}");
    }
    let recovery = &outcome["recovery"][0];
    let throughput = number(recovery, "/throughput_frames_per_s");
    close("overload", number(recovery, "/overload_frames_per_s"), 1.1 * throughput, 0.01);
    assert!(number(recovery, "/overload_lost") > 0.0, "{recovery}");
    assert!(number(recovery, "/mean_ns") < 5e6, "{recovery}");
    let trials = record["trials"].as_array().expect("trials");
    let counted = trials.iter().filter(|trial| trial["standing"]["is"] == "counted");
    let searches = counted.filter(|trial| trial["trial"]["name"] == "throughput 512").count();
    assert_eq!(searches as f64, number(outcome, "/throughput/0/trials"), "the throughput is found once");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let place = TestFolder::new();
    place.run(&words("device throughput --ports p0,p1 --goals ndr")).says(2, &["--method mlr"]);
    place
        .run(&words("device throughput --ports p0,p1 --method mlr --goals mrr"))
        .says(2, &["rfc2544, tst009, ndr, pdr"]);
    place.run(&words("device echo --ports p0,p1 --target 198.18.0.254")).says(2, &["one port", "2 were given"]);
    place.run(&words("device echo --ports p0 --both --target 198.18.0.254")).says(2, &["--both"]);
}
