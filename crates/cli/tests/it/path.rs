//! Hops, path MTU and one-way delay over chains of routers.

use crate::firewall::Host;
use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::fmt::Write as _;

fn measure(line: &str) -> Value {
    TestFolder::new().measure(&words(line))
}

/// Returns the first way of the first result.
fn way(record: &Value) -> &Value {
    &record["results"][0]["ways"][0]
}

/// Returns the first address of each hop; empty if it did not answer.
fn addresses(way: &Value) -> Vec<&str> {
    let hops = way["hops"].as_array().expect("hops");
    hops.iter().map(|hop| hop["addresses"][0].as_str().unwrap_or_default()).collect()
}

/// Returns the hops between which a section lies.
fn hops_of(section: &Value) -> Option<(u64, u64)> {
    Some((section["after"]["ttl"].as_u64()?, section["before"]["ttl"].as_u64()?))
}

#[lab_test]
fn the_link_that_limits_is_named_in_both_directions() {
    let record = measure("lab --routers 4 --fault path,at=2-3,rate=20Mbit/s,queue=256KiB -- path a b --time 6s --json");
    let results = record["results"].as_array().expect("results");
    assert_eq!(results.len(), 2, "one for each direction");
    // Hops are counted from the sender: the link is the third of five from either end.
    for (result, routers) in results.iter().zip([["198.18.1.2", "198.18.5.2"], ["198.18.5.1", "198.18.1.1"]]) {
        let loaded = result["ways"].as_array().expect("ways").iter().find(|way| way["under_load"] == true);
        let loaded = loaded.expect("the load has a way");
        let found = addresses(loaded);
        assert_eq!((found.len(), found[0], found[4]), (5, routers[0], routers[1]), "{found:?}");
        // A busy machine may widen the section or leave it out, and never names another link.
        if let Some((after, before)) = hops_of(&result["verdict"]["section"]) {
            assert!(after <= 2 && before >= 3, "{}", result["verdict"]);
        }
        let mtu = &loaded["path_mtu"];
        assert_eq!((mtu["bytes"].as_u64(), &mtu["found_by"]), (Some(1_500), &Value::from("far-end")));
    }
    let located = results.iter().filter(|result| hops_of(&result["verdict"]["section"]).is_some()).count();
    assert!(
        located > 0,
        "a queue of 100 ms shows: {:?}",
        results.iter().map(|result| &result["verdict"]).collect::<Vec<_>>()
    );
}

#[lab_test]
fn path_mtu_and_black_holes_have_a_size_and_a_place() {
    for (options, silent) in [("mtu=1400", false), ("mtu=1400,mtu-silent=true", true)] {
        let line = format!("lab --routers 3 --fault path,at=1-2,{options} -- path a b --no-load --time 8s --json");
        let record = measure(&line);
        let mtu = &way(&record)["path_mtu"];
        assert_eq!((mtu["bytes"].as_u64(), mtu["link_mtu"].as_u64()), (Some(1_400), Some(1_500)), "{options}: {mtu}");
        let hole = &mtu["black_hole"];
        if silent {
            assert_eq!(hole["lost_bytes"], 1_401, "{mtu}");
            let after = hole["last_answered"].as_u64();
            let before = hole["first_lost"].as_u64();
            assert!(after.is_some_and(|after| after <= 1) && before.is_none_or(|before| before >= 2), "{mtu}");
        } else {
            assert!(hole.is_null(), "{mtu}");
            assert_eq!(mtu["reports"][0]["address"], "198.18.1.2", "the router ahead of the link: {mtu}");
        }
    }
}

#[lab_test]
fn silent_routers_and_hosts_without_an_agent_are_shown() {
    let record = measure("lab --routers 3 --fault router,at=2,silent=true -- path a 198.18.4.2 --time 4s --json");
    let way = way(&record);
    assert_eq!(addresses(way), ["198.18.1.2", "", "198.18.3.2", "198.18.4.2"], "{way}");
    assert!(way["one_way"].is_null(), "the host's kernel has no timestamps: {way}");
    let delay = way["hops"][3]["idle"]["p50"].as_u64();
    assert!(delay.is_some_and(|delay| delay > 0), "{way}");
}

#[lab_test]
fn hops_of_ipv6_are_probed_too() {
    let record = measure("lab --routers 2 -- path a b -6 --no-load --time 4s --json");
    assert_eq!(addresses(way(&record)), ["2001:2:0:1::2", "2001:2:0:2::2", "2001:2:0:3::2"]);
    let idle = &way(&record)["one_way"]["idle"];
    let bounds = (idle["p50_low"].as_u64(), idle["p50_high"].as_u64());
    assert!(bounds.0.zip(bounds.1).is_some_and(|(low, high)| low <= high && high > 0), "{idle}");
}

/// 30 ms there and 5 ms back: a method that halves the round trip would be 12.5 ms off.
#[lab_test]
fn one_way_delays_of_an_asymmetric_path_lie_within_their_ranges() {
    let record = measure(
        "lab --routers 1 --fault path,at=0-1,way=forward,delay=30ms --fault path,at=0-1,way=return,delay=5ms -- \
         path a b --no-load --time 4s --json",
    );
    let ways = record["results"][0]["ways"].as_array().expect("both ways");
    for (way, delay_ms) in ways.iter().zip([30.0, 5.0]) {
        let idle = &way["one_way"]["idle"];
        let ms = |name: &str| idle[name].as_f64().expect("a bound") / 1e6;
        // A busy machine forwards late, never early.
        assert!(ms("p50_high") >= delay_ms && ms("p50_low") <= delay_ms + 25.0, "{delay_ms} ms: {idle}");
        assert!(ms("p50_high") - ms("p50_low") < 35.0, "no more is unknown than a round trip: {idle}");
    }
}

#[lab_test]
fn a_stream_with_hops_has_its_limit_located() {
    let record = measure(
        "lab --routers 3 --fault path,at=3-4,rate=10Mbit/s,queue=256KiB -- stream a b --hops --time 6s --repeats 1 --json",
    );
    let trials = record["trials"].as_array().expect("trials");
    let names: Vec<&str> = trials.iter().filter_map(|trial| trial["trial"]["name"].as_str()).collect();
    assert!(names.contains(&"idle path") && names.contains(&"tcp"), "{names:?}");
    let rate = way(&record)["probe_bps"].as_f64().expect("the rate of the probes is stated");
    assert!(rate > 0.0 && rate < 22_000.0, "{rate} bit/s");
    if let Some((after, before)) = hops_of(&record["results"][0]["verdict"]["section"]) {
        assert!(after <= 3 && before >= 4, "{}", record["results"][0]["verdict"]);
    }
}

#[lab_test]
fn hosts_of_a_kept_lab_are_far_ends_with_agents() {
    let place = TestFolder::new();
    assert_eq!(place.run(&words("lab --routers 1 --keep")).code, Some(0));
    let record = place.measure(&words("path a b --no-load --time 1s --json"));
    assert_eq!(
        record["results"][0]["ways"].as_array().map(Vec::len),
        Some(2),
        "b probes as well: {}",
        record["results"]
    );
}

/// A name with 64 addresses on loopback, and two with 64 addresses of each family without a route.
#[lab_test(Program("unshare"))]
fn one_of_many_addresses_of_a_name_is_probed_and_named() {
    let place = TestFolder::new();
    let mut hosts = String::new();
    for number in 1..=64 {
        writeln!(hosts, "127.0.9.{number} near.example").expect("written");
        writeln!(hosts, "198.18.9.{number} far.example\n2001:2:0:9::{number} far.example").expect("written");
    }
    let mounts = format!("mount --bind {} /etc/hosts", place.file("hosts", &hosts));
    let host = Host::new();
    let run = |line: &str| {
        let command = place.command_after(&mounts, &words(line));
        host.network.enter(|| place.start_command(command)).expect("entered").end()
    };
    let record = run("path near.example --no-load --time 500ms --json").json();
    let found = addresses(way(&record));
    assert!(found.len() == 1 && found[0].starts_with("127.0.9."), "{found:?}");
    run("path far.example --no-load").says(3, &["connecting to 198.18.9.", "is there a route?"]);
    run("path far.example --no-load -6").says(3, &["connecting to [2001:2:0:9::", "is there a route?"]);
    run("path near.example --no-load -6").says(2, &["`near.example` has no IPv6 address", "-4"]);
}
