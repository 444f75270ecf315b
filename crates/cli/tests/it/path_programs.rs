//! `linerate path` next to mtr and tracepath on the same chain of routers.

use crate::chain_lab::ChainLab;
use crate::program::{TestFolder, counted};
use linerate_testsuite::server_test;
use serde_json::Value;
use std::collections::BTreeMap;

const FAR_END: &str = "198.18.4.2";
/// Answers of routers are not limited, so that three programs get them at the same time.
const UNLIMITED: [&str; 3] = ["router,at=1,icmp-rate=none", "router,at=2,icmp-rate=none", "router,at=3,icmp-rate=none"];
/// Largest difference of two smallest round trips to a hop.
const TOLERANCE: f64 = 0.05;

/// Round trips to one hop in milliseconds, as one program saw them.
#[derive(Debug, Default)]
struct RoundTrips {
    address: String,
    all: Vec<f64>,
}

impl RoundTrips {
    fn smallest(&self) -> f64 {
        self.all.iter().copied().min_by(f64::total_cmp).expect("an answer")
    }

    fn median(&self) -> f64 {
        let mut sorted = self.all.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Starts `linerate path a b --no-load` and runs `other` while it measures. Returns the record.
fn measure_next_to(lab: &ChainLab, time: &str, other: impl FnOnce()) -> Value {
    let place = TestFolder::new();
    let urls = ["a", "b"].map(|host| lab.url(host));
    let run = place.start(&["path", &urls[0], &urls[1], "--no-load", "--time", time, "--json"]);
    other();
    let ran = run.end();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.json()
}

/// Returns the round trips of each hop from host a to host b.
fn hops_of_record(record: &Value) -> Vec<RoundTrips> {
    let mut hops = Vec::new();
    for hop in counted(record)["counts"][0]["hops"][0]["client"]["way"]["hops"].as_array().expect("hops") {
        let samples = hop["samples"].as_array().expect("samples");
        let delays = samples.iter().filter_map(|sample| sample["delay"].as_f64());
        let address = hop["addresses"][0]["address"].as_str().unwrap_or_default().to_owned();
        hops.push(RoundTrips { address, all: delays.map(|nanos| nanos / 1e6).collect() });
    }
    hops
}

/// Reads `mtr --raw`: lines `h HOP ADDRESS` and `p HOP MICROSECONDS NUMBER`. mtr probes TTLs beyond the far end until it has answered.
fn hops_of_mtr(text: &str) -> Vec<RoundTrips> {
    let mut hops: BTreeMap<u32, RoundTrips> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["h" | "p", hop, value, ..] = words[..] else { continue };
        let hop = hops.entry(hop.parse().expect("a hop")).or_default();
        if words[0] == "h" {
            value.clone_into(&mut hop.address);
        } else {
            hop.all.push(value.parse::<f64>().expect("microseconds") / 1e3);
        }
    }
    let mut hops: Vec<RoundTrips> = hops.into_values().collect();
    let far_end = hops.iter().position(|hop| hop.address == FAR_END).expect("the far end");
    hops.truncate(far_end + 1);
    hops
}

/// Returns the addresses of `tracepath -n`, whose lines begin with the TTL. A report of the MTU repeats one.
fn hops_of_tracepath(text: &str) -> Vec<String> {
    let mut hops: BTreeMap<u8, String> = BTreeMap::new();
    for line in text.lines() {
        let Some((ttl, rest)) = line.split_once(':') else { continue };
        let (Ok(ttl), Some(address)) = (ttl.trim().parse(), rest.split_whitespace().next()) else { continue };
        hops.insert(ttl, address.to_owned());
    }
    hops.into_values().collect()
}

/// All three programs run at the same time. The smallest round trip of a hop is compared, because a busy machine makes answers later and
/// never earlier; links 0-1 and 3-4 have delays of which 5 % are more than the noise of the smallest.
#[server_test(Root, Program("mtr"), Program("tracepath"))]
fn hops_delays_and_mtu_are_those_of_mtr_and_tracepath() {
    let links = ["path,at=0-1,delay=5ms", "path,at=2-3,mtu=1400", "path,at=3-4,delay=4ms"];
    let lab = ChainLab::up(3, &[&links[..], &UNLIMITED].concat());
    let (mut mtr, mut tracepath) = (String::new(), String::new());
    let record = measure_next_to(&lab, "5s", || {
        let output = lab.run("a", &["mtr", "--raw", "-n", "-i", "0.1", "-c", "50", FAR_END]);
        mtr = String::from_utf8_lossy(&output.stdout).into_owned();
        let output = lab.run("a", &["timeout", "10", "tracepath", "-n", FAR_END]);
        tracepath = String::from_utf8_lossy(&output.stdout).into_owned();
    });
    let own = hops_of_record(&record);
    let mtr = hops_of_mtr(&mtr);
    let addresses = ["198.18.1.2", "198.18.2.2", "198.18.3.2", FAR_END];
    assert_eq!(own.iter().map(|hop| &hop.address).collect::<Vec<_>>(), addresses);
    assert_eq!(mtr.iter().map(|hop| &hop.address).collect::<Vec<_>>(), addresses);
    assert_eq!(hops_of_tracepath(&tracepath), addresses, "{tracepath}");
    for ((own, mtr), planted) in own.iter().zip(&mtr).zip([10.0, 10.0, 10.0, 18.0]) {
        eprintln!(
            "{}: p50 {:.3} ms of {} answers, mtr {:.3} ms of {}; smallest {:.3} ms, mtr {:.3} ms",
            own.address,
            own.median(),
            own.all.len(),
            mtr.median(),
            mtr.all.len(),
            own.smallest(),
            mtr.smallest(),
        );
        assert!(own.all.len() >= 5 && mtr.all.len() >= 20, "{own:?} {mtr:?}");
        let difference = (own.smallest() - mtr.smallest()).abs() / mtr.smallest();
        assert!(difference <= TOLERANCE, "{own:?} {mtr:?}");
        assert!(own.smallest() >= planted && own.smallest() <= planted * (1.0 + 2.0 * TOLERANCE), "{own:?}");
    }
    let mtu = &record["results"][0]["ways"][0]["path_mtu"];
    assert_eq!((&mtu["bytes"], &mtu["black_hole"]), (&1_400.into(), &Value::Null), "{mtu}");
    assert!(tracepath.contains("Resume: pmtu 1400 hops 4"), "{tracepath}");
}

/// Packets above 1,400 bytes vanish between the first router and the second. tracepath waits for a report that never comes.
#[server_test(Root, Program("tracepath"))]
fn black_hole_that_tracepath_does_not_pass_is_named() {
    let lab = ChainLab::up(3, &[&["path,at=1-2,mtu=1400,mtu-silent=true"][..], &UNLIMITED].concat());
    let mut tracepath = String::new();
    let record = measure_next_to(&lab, "8s", || {
        let output = lab.run("a", &["timeout", "8", "stdbuf", "--output=L", "tracepath", "-n", FAR_END]);
        tracepath = String::from_utf8_lossy(&output.stdout).into_owned();
    });
    eprintln!("tracepath within 8 s:\n{tracepath}");
    assert!(!tracepath.contains("pmtu 1400") && !tracepath.contains("198.18.2.2"), "{tracepath}");
    let mtu = &record["results"][0]["ways"][0]["path_mtu"];
    eprintln!("linerate: {mtu}");
    assert_eq!((&mtu["bytes"], &mtu["black_hole"]["lost_bytes"]), (&1_400.into(), &1_401.into()), "{mtu}");
    let hole = &mtu["black_hole"];
    let [after, before] = ["last_answered", "first_lost"].map(|name| hole[name].as_u64());
    assert!(after.is_some_and(|after| after <= 1) && before.is_none_or(|before| before >= 2), "{mtu}");
}
