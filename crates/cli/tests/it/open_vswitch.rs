//! Measurements across Open vSwitch in a lab, through the command line.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::server_test;
use serde_json::Value;

const SWITCH: &str = "ovs-vswitchd";

#[server_test(Root, Program("ovs-vswitchd"))]
fn streams_cross_open_vswitch() {
    let record = TestFolder::new().measure(&words(
        "lab --device open-vswitch --hosts 2 -- stream a b --time 500ms --warmup 0s --repeats 1 --json",
    ));
    let result = &record["results"][0];
    assert!(number(result, "/received/payload_bps/median") > 1e6, "{result}");
}

/// A busy machine may delay the switch or the tester, which then lose or leave out frames.
#[server_test(Root, Bpf, Program("ovs-vswitchd"))]
fn frames_cross_open_vswitch_between_all_ports() {
    let record = TestFolder::new().measure(&words(
        "lab --device open-vswitch -- frames --ports tester:p0,tester:p1,tester:p2 --pattern full-mesh --rate 1k \
         --count 500 --json",
    ));
    let flows = record.pointer("/results/0/flows").and_then(Value::as_array).expect("flows");
    assert_eq!(flows.len(), 6, "{record}");
    for flow in flows {
        let [sent, received, lost] = ["/sent", "/received", "/lost"].map(|count| number(flow, count));
        assert!(received > 0.0 && received + lost == sent, "{flow}");
        assert_eq!(["/duplicates", "/reordered", "/flooded"].map(|count| number(flow, count)), [0.0; 3], "{flow}");
    }
}

/// The ports of the tester take three of the 256 entries.
#[server_test(Root, Bpf, Program("ovs-vswitchd"))]
fn table_of_open_vswitch_has_its_planted_size() {
    let record = TestFolder::new().measure(&words(
        "lab --device open-vswitch,addresses=256 -- device addresses --ports tester:p0,tester:p1,tester:p2 --most 400 \
         --learn-rate 300 --json",
    ));
    let table = &record["outcome"]["addresses"];
    let capacity = number(table, "/capacity");
    if table["firmness"]["is"] == "firm" {
        assert!((capacity - 256.0).abs() <= 1.5, "{table}");
    } else {
        // A tester that was delayed gives a lower bound.
        assert!(capacity <= 257.0, "{table}");
    }
}

#[server_test(Root, Program("ovs-vswitchd"))]
fn a_switch_that_cannot_run_is_reported_before_anything_is_measured() {
    let place = TestFolder::new();
    let program = linerate_testsuite::program(SWITCH).expect("it is installed").display().to_string();
    let broken = place.file("broken", "#!/bin/sh\necho 'x|1|dpif|ERR|broken on purpose' >&2\nexit 1\n");
    let line = words("lab --device open-vswitch --hosts 2 -- stream a b --time 500ms --repeats 1");
    for (replacement, parts) in [
        ("/dev/null", ["ovs-vswitchd is missing", "Debian package openvswitch-switch"]),
        (&broken, ["ovs-vswitchd ended early (exit status: 1)", "broken on purpose"]),
    ] {
        let mounts = format!("chmod +x {broken} && mount --bind {replacement} \"$(readlink -f {program})\"");
        place.start_command(place.command_after(&mounts, &line)).end().says(3, &parts);
    }
}
