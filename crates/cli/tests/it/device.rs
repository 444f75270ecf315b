//! Device tests against a reference device of exactly known limits, through the command line.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::process::Command;

/// Frames a second that the device forwards, and its queue: far fewer than what a busy machine sends. A sender that is held up
/// for 64 ms sends no more than the queue holds at once.
const LIMITS: &str = "max-frames=1000,queue=64";
const FRAMES: f64 = 1_000.0;
const QUEUE: f64 = 64.0;
/// Options of a short test, on a line of 2,976 of the smallest frames a second.
const SHORT: &str = "--line 2Mbit/s --time 300ms --search-time 200ms --resolution 20%";

/// The record of a device test in a lab with a reference device of those limits. The lab is up before, so that the tester limit
/// is not measured.
fn measure(limits: &str, test: &str) -> Value {
    let place = TestFolder::new();
    place.run(&words(&format!("lab --keep --bench tester --device reference,{limits}"))).says(0, &["lab down"]);
    place.measure(&words(&format!("device {test} --json")))
}

/// Demands a throughput that is no higher than what the device forwards and queues in a trial of 200 ms.
fn check_throughput(what: &str, cell: &Value) {
    let found = number(cell, "/frames_per_s");
    // A tester that is held up gives a lower bound, and a machine that is held up drops frames of its own.
    let least = if is_firm(cell) { 1.0 } else { 0.0 };
    assert!((least..=FRAMES + (QUEUE + 1.0) / 0.2).contains(&found), "{what}: {found} frames/s of {FRAMES}: {cell}");
}

fn is_firm(cell: &Value) -> bool {
    cell["firmness"]["is"] == "firm"
}

fn caveat<'a>(cell: &'a Value, kind: &str) -> Option<&'a str> {
    let caveats = cell["caveats"].as_array().unwrap_or_else(|| panic!("no caveats in {cell}"));
    caveats.iter().find(|caveat| caveat["kind"] == kind)?["text"].as_str()
}

/// The device limits frames of 64 bytes, the line those of 512.
#[lab_test]
fn the_device_or_the_line_is_the_limit() {
    let record = TestFolder::new().measure(&words(&format!(
        "lab --device reference,{LIMITS} -- device throughput --ports tester:p0,tester:p1 --sizes 64,512 {SHORT} --json"
    )));
    let cells = record["outcome"]["throughput"].as_array().expect("a throughput for each size");
    assert_eq!(cells.iter().map(|cell| number(cell, "/frame_bytes")).collect::<Vec<_>>(), [64.0, 512.0]);
    check_throughput("64 bytes", &cells[0]);
    // A tester that is held up is the limit, or cannot tell; nor can one that was held up over the cable.
    let limits: &[&str] = match (is_firm(&cells[0]), cells[0]["tester_limit"].is_null()) {
        (true, false) => &["device"],
        (true, true) => &["cannot-tell"],
        (false, _) => &["tester", "cannot-tell"],
    };
    assert!(limits.iter().any(|limit| cells[0]["limit"] == *limit), "{limits:?}: {}", cells[0]["verdict"]);
    let line = 2e6 / 8.0 / 532.0;
    let found = number(&cells[1], "/frames_per_s");
    assert!((0.0..1.01 * line).contains(&found), "{found} frames/s of {line}");
    // A machine that is held up drops frames of its own, as a slower device does.
    let limits: &[&str] = match (is_firm(&cells[1]), found >= 0.99 * line) {
        (false, _) => &["tester", "cannot-tell"],
        (true, true) => &["wire"],
        (true, false) => return,
    };
    assert!(limits.iter().any(|limit| cells[1]["limit"] == *limit), "{limits:?}: {}", cells[1]["verdict"]);
}

/// No trial of a goal is longer than --time.
#[lab_test]
fn goals_share_a_search() {
    let record = measure(
        LIMITS,
        &format!("throughput --method mlr --goals rfc2544,tst009 --ports tester:p0,tester:p1 --sizes 64 {SHORT}"),
    );
    for (index, goal) in ["rfc2544", "tst009"].into_iter().enumerate() {
        let cell = &record["outcome"]["throughput"][index];
        assert_eq!(cell["goal"]["name"], goal);
        check_throughput(goal, cell);
        if is_firm(cell) {
            let (lower, upper) = (number(cell, "/goal/lower"), number(cell, "/goal/upper"));
            assert!(lower < upper && upper - lower <= upper * 0.2, "{cell}");
        }
        assert!(caveat(cell, "short-trial").is_some_and(|text| text.contains(goal)), "{cell}");
    }
}

/// The device loses every hundredth frame.
#[lab_test]
fn a_planted_loss_is_on_the_curve() {
    let record =
        measure("loss=1/100", "loss --ports tester:p0,tester:p1 --sizes 256 --line 2Mbit/s --step 50 --time 2s");
    let points = record["outcome"]["loss"][0]["points"].as_array().expect("points");
    assert_eq!(points.len(), 2);
    for point in points {
        let sent = number(point, "/sent");
        // A tester that was held up sends fewer. Learning frames move the device's count by a few.
        assert!(sent > 100.0, "{point}");
        assert!((number(point, "/loss_ratio") * sent - sent / 100.0).abs() <= 3.0, "{point}");
    }
}

/// A burst at line rate is longer than the queue that it fills: the device forwards meanwhile.
#[lab_test]
fn a_planted_queue_is_the_buffer() {
    let record = measure(
        "max-frames=1000,queue=100",
        "burst --ports tester:p0,tester:p1 --sizes 256 --line 10Mbit/s --repeats 2 --time 300ms --search-time 200ms \
         --resolution 40%",
    );
    let burst = &record["outcome"]["burst"][0];
    let caveats = burst["caveats"].to_string();
    // A tester that was held up says so: it is the limit or, if not even the lowest rate was offered, the limit cannot be told.
    let held_up = burst["firmness"]["is"] == "not-firm";
    let said = match burst["verdict"]["limit"].as_str() {
        Some("cannot-tell") => burst["verdict"]["next"].to_string().contains("the tester was held up"),
        limit => limit == Some("tester"),
    };
    assert!(!held_up || said, "{burst}");
    if burst["buffer"].is_null() {
        // Held up in the search before them, or in bursts of a few frames.
        let reasons = ["bursts were not tried", "no buffer follows", "held up in bursts"];
        assert!(reasons.iter().any(|reason| caveats.contains(reason)), "{burst}");
        return;
    }
    assert_eq!(held_up, caveats.contains("lower bounds"), "{burst}");
    let buffer = number(burst, "/buffer/frames");
    let least = if held_up { 0.0 } else { 1.0 };
    assert!((least..200.0).contains(&buffer), "{buffer} frames of 100: {burst}");
    let time = number(burst, "/buffer/corrected_ns") * number(burst, "/burst_frames_per_s") / 1e9;
    close("buffer time", time, buffer, 0.1);
    let (min, mean, max) = (number(burst, "/frames/min"), number(burst, "/frames/mean"), number(burst, "/frames/max"));
    assert!(min <= mean && mean <= max && burst["frames"]["values"].as_array().map(Vec::len) == Some(2), "{burst}");
}

/// A process of real-time priority takes a third of the sending core, 3 ms at a time.
#[lab_test(Program("chrt"), Program("taskset"), Program("python3"))]
fn a_trial_beside_a_burning_core_is_marked_and_repeated() {
    // It ends by itself long after the test has killed it, however slow the machine is.
    let burn = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end:\n  until = time.monotonic() + 0.003\n  while time.monotonic() < until: pass\n  time.sleep(0.006)";
    let mut burner = Command::new("chrt")
        .args(["--fifo", "50", "taskset", "--cpu-list", "0", "python3", "-c", burn])
        .spawn()
        .expect("chrt of util-linux");
    let line =
        "lab --device none -- device latency --ports tester:p0,tester:p1 --sizes 64 --rate 10k --time 500ms --json";
    let run = TestFolder::new().run(&words(line));
    burner.kill().and_then(|()| burner.wait()).expect("it runs");
    let record = run.json();
    let Some(latency) = record["outcome"]["latency"].get(0) else { panic!("{record} {}", run.err) };
    let held_up = caveat(latency, "below-offered-rate").expect("it fell short");
    // Where the hypervisor took time in the trial as well, that is what is told.
    assert!(held_up.contains("held up for") || caveat(latency, "cpu-stolen").is_some(), "{latency}");
    assert!(caveat(&record, "repeated").is_some_and(|text| text.starts_with("1 of 1 trials")), "{}", record["caveats"]);
}

#[lab_test]
fn a_planted_echo_limit_is_found_from_one_port() {
    let record = measure("echo=1000", &format!("echo --ports tester:p0 --target 198.18.0.254 {SHORT}"));
    let echo = &record["outcome"]["echo"][0];
    assert_eq!((number(echo, "/frame_bytes"), &echo["target"]), (78.0, &Value::from("198.18.0.254")));
    let found = number(echo, "/answers_per_s");
    let least = if is_firm(echo) { 1.0 } else { 0.0 };
    assert!((least..1_100.0).contains(&found), "{found} answers/s of 1,000: {echo}");
}

#[lab_test]
fn bridge_and_router_of_a_lab_answer_echoes_at_the_devices_address() {
    for device in ["bridge", "router"] {
        let record = TestFolder::new().measure(&words(&format!(
            "lab --device {device} -- device echo --ports tester:p0 --target 198.18.0.254 {SHORT} \
             --device-agent device --json"
        )));
        let echo = &record["outcome"]["echo"][0];
        // The kernel of a busy machine may lose some, and a busy tester may send fewer.
        let least = if is_firm(echo) { 100.0 } else { 0.0 };
        assert!((least..=2_552.0).contains(&number(echo, "/answers_per_s")), "{device}: {echo}");
        assert_eq!(echo["device_load"]["source"], "agent", "{device}: {echo}");
    }
}

/// Everything in one record, the throughput found once.
#[lab_test]
fn the_suite_is_one_record() {
    let record = measure(LIMITS, &format!("all --ports tester:p0,tester:p1 --sizes 64 --repeats 1 --step 50 {SHORT}"));
    let outcome = &record["outcome"];
    let results = |part: &str| outcome[part].as_array().map_or(0, Vec::len);
    for part in ["throughput", "loss", "burst", "recovery"] {
        assert_eq!(results(part), 1, "{part}");
    }
    let recovery = &outcome["recovery"][0];
    let throughput = number(recovery, "/throughput_frames_per_s");
    check_throughput("64 bytes", &outcome["throughput"][0]);
    let trials = record["trials"].as_array().expect("trials");
    let counted = trials.iter().filter(|trial| trial["standing"]["is"] == "counted");
    let searches = counted.filter(|trial| trial["trial"]["name"] == "throughput 64").count();
    assert_eq!(searches as f64, number(outcome, "/throughput/0/trials"), "the throughput is found once");
    // A tester that was held up in every trial of the search knows no rate to time frames at, nor to exceed.
    assert_eq!(results("latency"), usize::from(throughput > 0.0), "{outcome}");
    if throughput == 0.0 {
        return;
    }
    // A tester that is held up sends less. A trial of 300 ms has whole frames: one more may be due in it.
    let overload = number(recovery, "/overload_frames_per_s");
    let most = 1.11 * throughput + 1.0 / 0.3;
    assert!(overload > 0.0 && overload < most, "{overload} frames/s, due are 1.1 x {throughput}");
    assert!(number(recovery, "/mean_ns") >= 0.0, "{recovery}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let place = TestFolder::new();
    place.run(&words("device throughput --ports p0,p1 --goals ndr")).says(2, &["--method mlr"]);
    place.run(&words("device throughput --ports p0,p1 --method mlr --loss 0.5%")).says(2, &["--loss", "--goals pdr"]);
    // Before a port is looked for.
    place.run(&words("frames --ports p0,p1 --expect p99<1ms")).says(2, &["--expect", "does not measure that"]);
    place
        .run(&words("device throughput --ports p0,p1 --method mlr --goals mrr"))
        .says(2, &["rfc2544, tst009, ndr, pdr"]);
    place.run(&words("device echo --ports p0,p1 --target 198.18.0.254")).says(2, &["one port", "2 were given"]);
    place.run(&words("device echo --ports p0 --both --target 198.18.0.254")).says(2, &["--both"]);
}
