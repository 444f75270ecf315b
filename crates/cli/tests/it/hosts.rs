//! How many neighbours a router holds, through the command line. The router of a lab is this kernel, which says itself how
//! many it keeps.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::{alone, lab_test};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most neighbours that the kernel keeps, those of all network namespaces together: with so many it refuses the next,
/// unless one of them is stale (neigh_alloc in net/core/neighbour.c). None where that is hidden, as in a namespace.
fn kernels_limit(family: &str) -> Option<f64> {
    fs::read_to_string(format!("/proc/sys/net/{family}/neigh/default/gc_thresh3")).ok()?.trim().parse().ok()
}

/// How many others have it keep: the first column, in hexadecimal. Those of a lab go some time after the lab.
fn others_neighbours(table: &str, limit: f64) -> f64 {
    let count = || {
        let text = fs::read_to_string(format!("/proc/net/stat/{table}")).expect("the kernel counts its neighbours");
        let count = text.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a line of counts");
        f64::from(u32::from_str_radix(count, 16).expect("a count"))
    };
    let waited = Instant::now();
    while count() > limit / 4.0 && waited.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(100));
    }
    sleep(Duration::from_secs(1));
    count()
}

#[lab_test]
fn the_kernels_own_limit_of_neighbours_is_found() {
    let _alone = alone();
    for (family, table, option) in [("ipv4", "arp_cache", ""), ("ipv6", "ndisc_cache", " -6")] {
        // The network of a lab's port has room for 4,092 hosts.
        let limit = match kernels_limit(family) {
            Some(limit) if (64.0..=2_000.0).contains(&limit) => limit,
            limit => {
                linerate_testsuite::skip(
                    module_path!(),
                    &format!("needs net.{family}.neigh.default.gc_thresh3 of 64 to 2000, not {limit:?}"),
                );
                continue;
            }
        };
        let before = others_neighbours(table, limit);
        let record = TestFolder::new().measure(&words(&format!(
            "lab --device router -- device hosts --ports tester:p0,tester:p1,tester:p2{option} --learn-rate 4k \
             --search-time 200ms --time 500ms --json"
        )));
        let others = before.max(others_neighbours(table, limit));
        let found = &record["outcome"]["hosts"];
        let held = number(found, "/held");
        eprintln!("{family}: {held} held, the kernel keeps {limit}, others have {others}");
        // The router knows the tester's own first port, and whom its ICMP errors went to.
        assert!((limit - others - 4.0..=limit).contains(&held), "{held} of {limit}, others {others}: {found}");
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
            assert_eq!((number(past, "/recovery_lost"), number(past, "/recovery_ns")), (0.0, 0.0), "{past}");
            assert_eq!(number(past, "/flooded"), 0.0, "a router floods nothing");
            assert!(number(past, "/latency_ns/count") > 0.0 && number(past, "/held_latency_ns/count") > 0.0, "{past}");
        }
    }
}

#[lab_test]
fn as_many_as_allowed_are_a_bound() {
    let _alone = alone();
    let record = TestFolder::new().measure(&words(
        "lab --device router -- device hosts --ports tester:p0,tester:p1 --most 70 --search-time 200ms --time 200ms --json",
    ));
    let found = &record["outcome"]["hosts"];
    assert_eq!(["/held", "/bound", "/neighbours_tried"].map(|field| number(found, field)), [70.0; 3], "{found}");
    assert!(found["lost_at"].is_null() && found["past"] == serde_json::json!([]), "{found}");
    assert_eq!(found["limit"], "offered-load", "no more was asked for");
    assert!(found["caveats"].to_string().contains("--most"), "{found}");
}

#[lab_test]
fn what_is_no_router_is_refused() {
    let place = TestFolder::new();
    place.run(&words("device hosts --ports eth1")).says(2, &["two ports", "1 were given"]);
    let _alone = alone();
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
