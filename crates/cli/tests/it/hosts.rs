//! How many neighbours a router holds, through the command line. The router of a lab is this kernel, which says itself how
//! many it keeps.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::{lab_test, wait_until};
use std::fs;

/// The most IPv6 neighbours that the kernel keeps, those of all network namespaces together: with so many it refuses the next,
/// unless one of them is stale (neigh_alloc in net/core/neighbour.c). None where that is hidden, as in a namespace.
///
/// It is IPv6 that is tested because programs beside this one need IPv4 neighbours, of which the kernel must not run out.
fn kernels_limit() -> Option<f64> {
    fs::read_to_string("/proc/sys/net/ipv6/neigh/default/gc_thresh3").ok()?.trim().parse().ok()
}

/// How many others have it keep: the first column, in hexadecimal. Those of an earlier lab go some time after it.
fn others_neighbours(limit: f64) -> f64 {
    wait_until("the neighbours of earlier labs go", || {
        let text = fs::read_to_string("/proc/net/stat/ndisc_cache").expect("the kernel counts its neighbours");
        let count = text.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a line of counts");
        Some(f64::from(u32::from_str_radix(count, 16).expect("a count"))).filter(|count| *count <= limit / 8.0)
    })
}

#[lab_test(AllIpv6Neighbours)]
fn the_kernels_own_limit_of_neighbours_is_found() {
    // The network of a lab's port has room for 4,092 hosts.
    let limit = match kernels_limit() {
        Some(limit) if (64.0..=2_000.0).contains(&limit) => limit,
        limit => {
            let why = format!("it needs net.ipv6.neigh.default.gc_thresh3 of 64 to 2000, not {limit:?}");
            return linerate_testsuite::skip(module_path!(), &why);
        }
    };
    let others = others_neighbours(limit);
    let record = TestFolder::new().measure(&words(
        "lab --device router -- device hosts --ports tester:p0,tester:p1,tester:p2 -6 --learn-rate 4k --search-time 200ms \
         --time 200ms --json",
    ));
    let found = &record["outcome"]["hosts"];
    let held = number(found, "/held");
    // The router knows the tester's own first port, and whom its ICMP errors went to.
    assert!(held <= limit, "{held} of {limit}: {found}");
    if found["firmness"]["is"] != "firm" {
        // A tester that is held up gives a lower bound.
        assert_eq!(found["limit"], "tester", "{found}");
        return;
    }
    assert!(held >= limit - others - 4.0, "{held} of {limit}, others {others}: {found}");
    assert_eq!((number(found, "/lost_at"), &found["limit"]), (held + 1.0, &"device".into()), "{found}");
    assert!(found["bound"].is_null() && number(found, "/neighbours_tried") > held, "{found}");

    let past = found["past"].as_array().expect("what happens past that");
    assert_eq!(past.len(), 2, "{found}");
    for (past, percent) in past.iter().zip([110.0, 200.0]) {
        let hosts = number(past, "/hosts");
        assert_eq!(hosts, (held * percent / 100.0).floor());
        // The kernel goes on serving whom it knows; in a round that was cut short these came first. As many as others' may
        // have come or gone.
        let (sent, lost) = (number(past, "/sent"), number(past, "/sent") - number(past, "/received"));
        let rounds = (sent / hosts).floor();
        let due = rounds * (hosts - held) + (sent - rounds * hosts - held).max(0.0);
        assert!((lost - due).abs() <= (others + 4.0) * (rounds + 1.0), "{due} were to be lost: {past}");
        assert_eq!(number(past, "/loss_ratio"), lost / sent);
        // A full table drops who was not updated for five seconds (neigh_forced_gc), as may happen on a busy machine. Such
        // a host is resolved again at once, so nothing is lost until the end.
        let (recovery_lost, recovery_ns) = (number(past, "/recovery_lost"), number(past, "/recovery_ns"));
        assert_eq!(recovery_lost > 0.0, recovery_ns > 0.0, "{past}");
        assert_eq!(number(past, "/flooded"), 0.0, "a router floods nothing");
        assert!(number(past, "/latency_ns/count") > 0.0 && number(past, "/held_latency_ns/count") > 0.0, "{past}");
    }
}

#[lab_test]
fn as_many_as_allowed_are_a_bound() {
    let record = TestFolder::new().measure(&words(
        "lab --device router -- device hosts --ports tester:p0,tester:p1 --most 70 --rate 1k --search-time 100ms --time 100ms --json",
    ));
    let found = &record["outcome"]["hosts"];
    if found["firmness"]["is"] == "firm" {
        assert_eq!(["/held", "/bound", "/neighbours_tried"].map(|field| number(found, field)), [70.0; 3], "{found}");
        assert!(found["lost_at"].is_null() && found["past"] == serde_json::json!([]), "{found}");
        assert_eq!(found["limit"], "offered-load", "no more was asked for");
        assert!(found["caveats"].to_string().contains("--most"), "{found}");
    } else {
        // A tester that is held up gives a lower bound.
        assert!(number(found, "/held") <= 70.0 && found["limit"] == "tester", "{found}");
    }
}

#[lab_test]
fn what_is_no_router_is_refused() {
    let place = TestFolder::new();
    place.run(&words("device hosts --ports eth1")).says(2, &["two ports", "1 were given"]);
    let hosts = |device: &str, options: &str| {
        place.run(&words(&format!("lab --device {device} -- device hosts --ports tester:p0,tester:p1 {options}")))
    };
    hosts("bridge", "").says(2, &["no router is between p0 and p1", "--gateway"]);
    hosts("router", "--vlan 7").says(2, &["--vlan", "members of it"]);
    hosts("router", "--both").says(2, &["--both"]);
    hosts("router", "--sizes 64,128").says(2, &["one size"]);
    hosts("router", "--rate 0").says(2, &["above 0"]);
    hosts("router", "--rate 1G").says(2, &["--rate", "carries"]);
}
