//! Device tests and plain frames between the ports of two agents, through the command line.

use crate::program::{TestFolder, frames_sent, number, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The counts of each stream that plain generating came to.
fn flows(line: &str) -> Vec<Value> {
    let record = TestFolder::new().measure(&words(line));
    record["results"][0]["flows"].as_array().expect("flows").clone()
}

fn counts(flow: &Value) -> [f64; 5] {
    ["/sent", "/received", "/lost", "/duplicates", "/reordered"].map(|count| number(flow, count))
}

#[lab_test]
fn frames_from_host_to_host_are_counted() {
    for (device, options, engine) in [
        ("bridge", "", "xdp"),
        ("router", "", "xdp"),
        ("none", "--engine packet-socket", "packet-socket"),
        ("bridge", "--both -6 --size 84", "packet-socket"),
    ] {
        let flows = flows(&format!(
            "lab --device {device} -- frames --ports a:eth0,b:eth0 --count 500 --rate 1k --json {options}"
        ));
        for flow in &flows {
            let sent = frames_sent(flow, 500.0);
            assert_eq!(counts(flow), [sent, sent, 0.0, 0.0, 0.0], "{device} {options}: {flow}");
            assert_eq!((&flow["engine"], number(flow, "/flooded")), (&Value::from(engine), 0.0), "{device} {options}");
            assert!(flow["latency_ns"].is_null(), "two hosts have two clocks: {flow}");
        }
        assert_eq!((&flows[0]["from"], &flows[0]["to"]), (&Value::from("a:eth0"), &Value::from("b:eth0")));
        assert_eq!(flows.len(), if options.contains("--both") { 2 } else { 1 });
    }
}

#[lab_test]
fn what_the_device_loses_between_hosts_is_told() {
    let flows =
        flows("lab --device reference,loss=1/100 -- frames --ports a:eth0,b:eth0 --count 1000 --rate 1k --json");
    let [sent, _, lost, ..] = counts(&flows[0]);
    // The device loses every hundredth frame; learning frames move its count by a few.
    assert!(sent > 100.0 && (lost - sent / 100.0).abs() <= 2.0, "{lost} of {sent} were lost");
}

#[lab_test]
fn a_planted_rate_is_the_throughput_between_hosts() {
    let record = TestFolder::new().measure(&words(
        "lab --device reference,max-frames=2000,queue=64 -- device throughput --ports a:eth0,b:eth0 --sizes 128 --line 10Mbit/s \
         --time 500ms --search-time 200ms --resolution 20% --json",
    ));
    let cell = &record["outcome"]["throughput"][0];
    let found = number(cell, "/frames_per_s");
    // A tester that is held up gives a lower bound. The queue holds 64 frames more, in a trial of 200 ms.
    let least = if cell["firmness"]["is"] == "firm" { 1.0 } else { 0.0 };
    assert!((least..=2_000.0 + 65.0 / 0.2).contains(&found), "{found} frames/s of 2,000: {cell}");
    // Unless the tester was held up in all trials between the same ports as well.
    let is_known = cell["tester_limit"]["frames_per_s"].as_f64() > Some(0.0);
    assert!(is_known || cell["caveats"].to_string().contains("not-calibrated"), "{cell}");
    assert_eq!(record["plan"]["goal"]["ports"], serde_json::json!(["a:eth0", "b:eth0"]));
    let trial = &record["trials"][0];
    let observed = trial["hosts"].as_object().expect("hosts");
    assert!(observed.keys().eq(["a", "b"]), "each host observed itself: {:?}", observed.keys());
}

/// One that is gone ends the trial at once, and the other lets go of its port.
#[lab_test]
fn a_host_lost_in_mid_trial_is_named() {
    let place = TestFolder::new();
    place.run(&words("lab --keep --bench testers")).says(0, &["lab down"]);
    let port = || place.run(&words("lab shell a -- ip link show eth0")).out;
    let wait_for = |has_program: bool| {
        wait_until(&format!("a program on the port: {has_program}"), || {
            (port().contains("xdp") == has_program).then_some(())
        });
    };
    wait_for(false);
    let sending = place.start(&words("frames --ports a:eth0,b:eth0 --rate 1k --time 500s"));
    wait_for(true);
    wait_until("frames arrive", || (place.packets_received("b", "eth0") > 500).then_some(()));
    kill(Pid::from_raw(place.agent("b")), Signal::SIGKILL).expect("the agent runs");
    let killed = Instant::now();
    sending.end().says(3, &["b: lost the agent", "do its part of the trial"]);
    assert!(killed.elapsed() < Duration::from_secs(300), "the rest of the trial, 500 s, was not waited for");
    wait_for(false);
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

#[test]
fn what_hosts_apart_cannot_measure_is_refused() {
    let place = TestFolder::new();
    let error = &["a:eth1 and b:eth1", "different hosts", "takes ports of one host"];
    place.run(&words("device latency --ports a:eth1,b:eth1 --sizes 64")).says(2, error);
    place.run(&words("device latency --ports a:eth1,b:eth1 --rate 1k")).says(2, error);
    place.run(&words("lab -- device latency --ports a:eth1,b:eth1")).says(2, error);
    place.run(&words("device throughput --ports a:eth1,a:eth1")).says(2, &["eth1 is there twice"]);
}
