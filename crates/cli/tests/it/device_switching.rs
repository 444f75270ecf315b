//! Tests of RFC 2889 against reference devices with planted properties, through the command line.
//!
//! A busy machine may leave a finding open, or make the device miss its limits, which the record reports. It never makes
//! a finding wrong.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::lab_test;
use serde_json::Value;

const FOUR: &str = "tester:p0,tester:p1,tester:p2,tester:p3";
/// Options of a short test, on lines of 2,976 of the smallest frames a second.
const SHORT: &str = "--line 2Mbit/s --sizes 64 --time 500ms --search-time 200ms --resolution 20%";

/// Returns the record of a test in a lab with a reference device.
fn measure(limits: &str, test: &str) -> Value {
    TestFolder::new().measure(&words(&format!("lab --device reference{limits} -- device {test} --json")))
}

/// Returns whether the record says that the device missed its planted limits.
fn is_flagged(record: &Value) -> bool {
    let caveats = record["caveats"].as_array().into_iter().flatten();
    caveats.into_iter().any(|caveat| caveat["kind"] == "bench-limits")
}

/// Checks a finding: the planted one, or an open one.
fn check_presence(record: &Value, finding: &Value, planted: &str) {
    let is_open = *finding == "cannot-tell" || is_flagged(record);
    assert!(finding == planted || is_open, "{finding} of {planted}: {}", record["outcome"]);
}

#[lab_test]
fn queues_and_pause_frames_are_found_by_the_congestion_test() {
    for (device, head_of_line, back_pressure) in [
        (",port-rate=2Mbit/s", "absent", "absent"),
        (",port-rate=2Mbit/s,queues=input", "present", "absent"),
        (",port-rate=2Mbit/s,pause=true", "absent", "present"),
    ] {
        let record = measure(device, &format!("congestion --ports {FOUR} {SHORT}"));
        let found = &record["outcome"]["congestion"][0];
        check_presence(&record, &found["head_of_line"], head_of_line);
        check_presence(&record, &found["back_pressure"], back_pressure);
        assert_eq!(found["groups"][0]["uncongested"], "p2", "{found}");
    }
}

#[lab_test]
fn forward_pressure_is_more_than_the_line_carries() {
    for (device, planted) in [("", "absent"), (",forward-pressure=true", "present")] {
        let record = measure(
            &format!(",port-rate=2Mbit/s{device}"),
            "forward-pressure --ports tester:p0,tester:p1,tester:p2 --line 2Mbit/s --sizes 64 --time 2s",
        );
        check_presence(&record, &record["outcome"]["forward_pressure"][0]["presence"], planted);
    }
}

#[lab_test]
fn errored_frames_are_judged_where_a_cable_passes_them() {
    for (device, outcome) in [(",undersize=drop", "pass"), ("", "fail")] {
        let record = measure(device, "errors --ports tester:p0,tester:p1 --line 2Mbit/s --time 200ms");
        let faults = record["outcome"]["faults"].as_array().expect("a result for each error");
        let fault = |name: &str| faults.iter().find(|fault| fault["fault"] == name).expect(name);
        let kind = fault("undersize")["outcome"]["kind"].as_str();
        assert!(kind == Some(outcome) || kind == Some("not-testable"), "{outcome}: {faults:?}");
        for (name, reason) in
            [("oversize", "mtu"), ("crc", "FCS"), ("alignment", "10 and 100"), ("dribble-bits", "100")]
        {
            let outcome = &fault(name)["outcome"];
            assert!(outcome["kind"] == "not-testable" && outcome.to_string().contains(reason), "{name}: {outcome}");
        }
    }
}

#[lab_test]
fn broadcasts_arrive_at_every_port_up_to_the_limit() {
    let record = measure(",broadcast=500", &format!("broadcast --ports {FOUR} {SHORT}"));
    let found = &record["outcome"]["broadcast"][0];
    let ports = found["ports"].as_array().expect("the receiving ports");
    assert_eq!(ports.iter().filter_map(|port| port["port"].as_str()).collect::<Vec<_>>(), ["p1", "p2", "p3"]);
    // The queue of 256 frames passes once in a trial of 200 ms.
    let limit = 500.0 + 257.0 / 0.2;
    assert!(number(found, "/frames_per_s") <= limit, "{found}");
    assert!(record["outcome"]["throughput"][0]["directions"].as_array().is_some_and(|all| all.len() == 3), "{record}");
}

#[lab_test]
fn full_mesh_of_eight_ports_floods_nothing() {
    let ports: Vec<String> = (0..8).map(|port| format!("tester:p{port}")).collect();
    let record = measure("", &format!("full-mesh --ports {} --step 50 {SHORT}", ports.join(",")));
    let found = &record["outcome"]["forwarding"][0];
    // 8 lines of 2,976 frames a second.
    assert_eq!(number(found, "/maximum_load_frames_per_s"), 23_808.0, "{found}");
    for point in found["points"].as_array().expect("loads") {
        let [sent, received] = ["/sent", "/received"].map(|counter| number(point, counter));
        assert!(number(point, "/flooded") == 0.0 && received <= sent && received > 0.0, "{point}");
    }
    let directions = record["outcome"]["throughput"][0]["directions"].as_array().map(Vec::len);
    assert!(directions == Some(56) || directions == Some(0), "{directions:?}");
}

/// Half of what the four ports send fits through an uplink of one line's rate.
#[lab_test]
fn backbone_forwards_what_the_uplink_carries() {
    let record =
        measure(",port-rate=2Mbit/s,uplink=2Mbit/s,queue=16", &format!("backbone --ports {FOUR} --step 50 {SHORT}"));
    let found = &record["outcome"]["forwarding"][0];
    let line = number(found, "/maximum_load_frames_per_s");
    let forwarded = number(found, "/maximum_frames_per_s");
    // Two queues of 16 frames pass at the beginning of 500 ms.
    assert!(forwarded <= line / 2.0 + 2.0 * 17.0 / 0.5 + 60.0, "{forwarded} of {line}: {found}");
    assert!(number(found, "/points/0/sent") > number(found, "/points/0/received"), "{found}");
}

#[test]
fn ports_that_do_not_fit_are_refused_at_once() {
    let place = TestFolder::new();
    for (line, parts) in [
        ("device congestion --ports a,b,c", &["groups of four", "3 were given"][..]),
        ("device throughput --ports a,b,c", &["even number", "--pattern full-mesh"]),
        ("device full-mesh --ports a", &["two or more", "1 were given"]),
        ("device full-mesh --ports a,b,a", &["a is there twice"]),
        ("device backbone --ports a,b,c", &["even number"]),
        ("device congestion --ports a,b,c,d --pattern full-mesh", &["--pattern", "leave them out"]),
        ("device addresses --ports a,b,c --pattern pairs", &["--pattern"]),
        ("device partial --ports a,b --direction up", &["--direction"]),
        ("frames --ports a,b,c", &["even number"]),
    ] {
        place.run(&words(line)).says(2, parts);
    }
}
