//! The tester limit: measured without the device, kept, found again, and what a result at it or below it is then said to be.

use crate::program::{Ran, TestFolder, number, words};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_sys::shaping::EthernetShape;
use linerate_testsuite::lab_test;
use linerate_units::BitRate;
use serde_json::Value;

/// A tester whose own queues limit it, wherever its data go. Both ends have one, as a lab's cable gives them the same offloads. The
/// queues hold 100 ms, so that the rate stays while a busy machine holds a sender back.
const TESTER: &str =
    "--fault host-queue,at=a,rate=20Mbit/s,queue=256KiB --fault host-queue,at=b,rate=20Mbit/s,queue=256KiB";
const STREAM: &str = "stream a b --warmup 1s --time 1s --repeats 3";

/// Runs a command in a lab with this device between such hosts.
fn run(place: &TestFolder, device: &str, command: &str) -> Ran {
    place.run(&words(&format!("lab {TESTER} --device {device} -- {command}")))
}

/// The record on standard output of one that measured.
fn record(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.json()
}

fn limit(record: &Value) -> &str {
    record["results"][0]["verdict"]["limit"].as_str().expect("a verdict")
}

/// What reaches what `calibration` found is at the tester's limit. A machine that was held up more than in the calibration shows less
/// than that: then the queue in front of the line is seen to be full, or the device takes less than the cable.
fn check_tester_limit(at: &Value, calibration: &Value) {
    assert_eq!(at["results"][0]["tester_limit"]["record"], calibration["id"], "{at:#}");
    let share = number(&at["results"][0], "/tester_limit/share");
    assert!(limit(at) == "tester" || share < 0.95 && ["shaper", "device"].contains(&limit(at)), "{share}: {at:#}");
    assert!(share > 0.5, "{at:#}");
}

#[lab_test]
fn at_the_limit_of_a_calibration_it_is_the_tester_and_below_it_the_device() {
    let place = TestFolder::new();
    let calibration = record(&run(&place, "none", &format!("calibrate --json -- {STREAM}")));
    assert_eq!(calibration["plan"]["calibration"]["bypass"], "cable", "{}", calibration["plan"]);
    let id = calibration["id"].as_str().expect("an id");

    let ran = run(&place, "bridge", &format!("{STREAM} --json"));
    let at = record(&ran);
    assert!(ran.err.contains(&format!("tester limit of tcp: calibration {id}")), "{}", ran.err);
    check_tester_limit(&at, &calibration);
    for (format, shown) in [
        ("markdown", "of the tester limit"),
        ("html", "of the tester limit"),
        ("csv", id),
        ("text", "of the tester limit"),
    ] {
        let report = place.run(&["report", "latest", "--format", format]);
        assert!(report.shows(shown), "{format}: {}{}", report.out, report.err);
    }

    let below = record(&run(&place, "bridge --shape 5Mbit/s", &format!("{STREAM} --json --calibration {}", &id[..17])));
    assert_eq!(limit(&below), "device", "{below:#}");
    assert!(number(&below["results"][0], "/tester_limit/share") < 0.5);
    let unheld = record(&run(&place, "bridge", &format!("{STREAM} --json --calibration none")));
    assert!(unheld["results"][0].get("tester_limit").is_none(), "{unheld:#}");

    // What does not fit is named: told of where it was found, refused where it was asked for.
    let flows = format!("{STREAM} --flows 2 --json");
    let ran = run(&place, "bridge", &flows);
    assert!(ran.err.contains(id) && ran.err.contains("flows 1, not 2"), "{}", ran.err);
    assert!(record(&ran)["results"][0].get("tester_limit").is_none());
    run(&place, "bridge", &format!("{flows} --calibration {id}"))
        .says(2, &[id, "flows 1, not 2", "linerate calibrate"]);
    let changed = format!("lab --device bridge -- {STREAM} --calibration {id}");
    place.run(&words(&changed)).says(2, &[id, "the queueing discipline of eth0 of a was tbf"]);
    let others = format!("--hosts 3 -- stream a c --calibration {id}");
    place.run(&words(&format!("lab {TESTER} {others}"))).says(2, &[id, "other hosts: a and b, not a and c"]);
    let stream = unheld["id"].as_str().expect("an id");
    run(&place, "bridge", &format!("{STREAM} --calibration {stream}")).says(2, &[stream, "no calibration"]);
}

#[lab_test]
fn hosts_against_themselves_give_an_upper_estimate_and_each_result_says_so() {
    let place = TestFolder::new();
    let calibration = record(&run(&place, "bridge", &format!("calibrate --loopback --json -- {STREAM}")));
    let names: Vec<&Value> = calibration["results"].as_array().expect("results").iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["tcp, a alone", "tcp, b alone"]);
    let ran = run(&place, "bridge", STREAM);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("loopback of each host: an upper estimate"), "{}", ran.err);
    assert!(ran.shows("tester limit by loopback"), "{}", ran.out);
    let whole = place.run(&["results", "show", "-v"]);
    assert!(whole.shows("loopback of each host: an upper estimate"), "{}", whole.out);
    let record = place.run(&["results", "show", "--json"]).json();
    let result = &record["results"][0];
    assert_eq!(result["tester_limit"]["bypass"], "loopback", "{result:#}");
    assert!(result["caveats"].to_string().contains("loopback-calibration"), "{result:#}");
    assert!(!["tester", "device"].contains(&limit(&record)), "the loopback has no such queue: {result:#}");
}

/// An end of a link of this rate, as of an Ethernet, with as long a queue.
fn ethernet(interface: &str, rate: u64) {
    let mut route = Route::open().expect("netlink");
    let link = route.index_of(interface).expect("the interface");
    let shape = EthernetShape {
        rate: BitRate::per_second(rate),
        longest_frame: 1514,
        burst_bytes: 16 << 10,
        queue_bytes: 256 << 10,
    };
    route.shape(link, &shape).expect("shaped");
}

/// A host whose queue sends no more than 20 Mbit/s, on port `port` of the switch.
fn host(switch: &NetNamespace, port: &str, address: &str) -> NetNamespace {
    let host = NetNamespace::new().expect("a namespace");
    let join = || {
        let mut route = Route::open().expect("netlink");
        route.add_veth("eth0", port, switch, 1500).expect("a link");
        let link = route.index_of("eth0").expect("its end");
        route.add_address(link, address.parse().expect("an address"), 24).expect("set");
        for link in [link, route.index_of("lo").expect("loopback")] {
            route.set_up(link).expect("up");
        }
        ethernet("eth0", 20_000_000);
    };
    host.enter(join).expect("enter");
    let plug = || {
        let mut route = Route::open().expect("netlink");
        let (link, bridge) = (route.index_of(port).expect("the port"), route.index_of("br0").expect("the bridge"));
        route.set_bridge(link, bridge).expect("a port of the bridge");
        route.set_up(link).expect("up");
    };
    switch.enter(plug).expect("enter");
    host
}

/// Two programs that serve by their URLs, with a bridge in the place of the cable, and of the device when it is made slow.
#[lab_test]
fn agents_by_their_urls_are_held_against_their_calibration() {
    let place = TestFolder::new();
    let switch = NetNamespace::new().expect("a namespace");
    let bridge = || {
        let mut route = Route::open().expect("netlink");
        route.add_link("bridge", "br0").expect("a bridge");
        let bridge = route.index_of("br0").expect("the bridge");
        route.set_up(bridge).expect("up");
    };
    switch.enter(bridge).expect("enter");
    let addresses = ["198.18.0.1", "198.18.0.2"];
    let [a, b] = ["pa", "pb"].map(|port| host(&switch, port, addresses[usize::from(port == "pb")]));
    let serve = |host: &NetNamespace, name: &str, address: &str| {
        let listen = format!("{address}:0");
        let words = ["serve", "--ephemeral", "--name", name, "--listen", &listen];
        host.enter(|| place.start(&words)).expect("enter")
    };
    let mut agents = [serve(&a, "left", addresses[0]), serve(&b, "right", addresses[1])];
    let urls = agents.each_mut().map(|agent| agent.line().trim().to_owned());
    let run = |line: String| a.enter(|| place.run(&words(&line))).expect("enter");

    let stream = format!("stream {} {} --warmup 1s --time 1s --repeats 3", urls[0], urls[1]);
    let calibration = record(&run(format!("calibrate --json -- {stream}")));
    let at = record(&run(format!("{stream} --json")));
    check_tester_limit(&at, &calibration);
    switch.enter(|| ethernet("pb", 5_000_000)).expect("enter");
    let below = record(&run(format!("{stream} --json")));
    assert_eq!(limit(&below), "device", "{below:#}");
    assert!(number(&below["results"][0], "/tester_limit/share") < 0.5, "{below:#}");
}

#[test]
fn what_can_be_no_calibration_is_refused_before_a_host_is_reached() {
    let place = TestFolder::new();
    for (command, said) in [
        ("calibrate", "HOST"),
        ("calibrate a a", "--loopback"),
        ("calibrate -- stream a b --rate 5Mbit/s", "leave out --rate"),
        ("calibrate -- stream a b --prove", "--prove"),
        ("calibrate -- stream a b --json", "--json"),
        ("calibrate -- nfs a b", "only stream, transact, rpc and ladder"),
        ("calibrate -- stream a b --calibration none", "--calibration"),
        ("calibrate a b -- stream a b", "cannot be used with"),
        ("stream a b --calibration 2026", "no record 2026"),
        ("ladder a b --calibration 2026", "linerate calibrate"),
    ] {
        place.run(&words(command)).says(2, &[said]);
    }
}
