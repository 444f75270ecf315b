//! NFS through the command line, in labs whose server has a known capacity.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::lab_test;
use serde_json::Value;

/// The result that stands for the server.
fn server(record: &Value) -> &Value {
    let results = record["results"].as_array().expect("results");
    let name = &record["outcome"]["result"];
    results.iter().find(|result| result["name"] == *name).unwrap_or_else(|| panic!("no result {name}"))
}

/// A server that takes 10 ms for a call, one at a time, does 100 a second: that is its peak, and the load past it names it.
#[lab_test]
fn the_peak_is_what_the_server_can_do() {
    let place = TestFolder::new();
    let record = place.measure(&words(
        "lab --hosts 2 --slow-server b,service-time=10ms,at-once=1 -- nfs b --mix getattr --files 5 --curve --time 300ms --warmup 50ms --response-cap 200ms --json",
    ));
    let outcome = &record["outcome"];
    let peak = number(outcome, "/peak/achieved_ops");
    // A busy machine only adds to the 10 ms. Replies that waited for a client that was held up count in a window of 300 ms.
    assert!((5.0..140.0).contains(&peak), "{peak} operations a second of 100");
    assert!(number(outcome, "/peak/mean_ms") <= 200.0, "{}", outcome["peak"]);
    let curve = outcome["curve"].as_array().expect("a curve");
    let of = |field: &str| curve.iter().map(|point| number(point, field)).collect::<Vec<f64>>();
    assert!(curve.len() >= 3 && of("/intended_ops").is_sorted(), "{:?}", of("/intended_ops"));
    assert!(of("/p99_ms").iter().zip(of("/p50_ms")).all(|(p99, p50)| *p99 >= p50));
    // A search that was held up as it set its scale ends below the peak: at four times that scale.
    let is_missed = curve.iter().any(|point| point["missed"] != Value::Null);
    assert!(is_missed || peak < 90.0, "a load that is not held ends it: {outcome}");
    let server = server(&record);
    assert!(number(server, "/operations/getattr/count") > 0.0);
    assert!(number(server, "/classes/other/mean_ms") >= 10.0, "{}", server["classes"]);
    // Each load is a cell and a result, and the tester limit stands beside it.
    let results = record["results"].as_array().expect("results");
    assert_eq!(results.len(), curve.len() + 1);
    assert!(results.iter().all(|result| number(result, "/tester_limit/share") < 0.5));

    // What was kept shows the same, in every form.
    assert_eq!(place.run(&["results", "show", "--json"]).json()["outcome"], *outcome);
    for (form, said) in [
        ("text", "The peak is"),
        ("html", "Response time against load"),
        ("markdown", "## Response time against load"),
        ("csv", "intended_operations_per_s"),
    ] {
        let ran = place.run(&["report", "--format", form]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.shows(said), "{form}");
    }
}

/// A load that the server holds: nothing is lost, every class is there, and the mix is the table's.
#[lab_test]
fn a_load_has_its_operations_and_classes() {
    let place = TestFolder::new();
    let record = place.measure(&words(
        "lab --hosts 2 -- nfs a b --mix sfs97-like --files 20 --rate 400 --time 2s --repeats 1 --no-tester-limit --json",
    ));
    assert_eq!(record["outcome"], serde_json::json!({ "kind": "sweep" }), "one load is no curve");
    let result = &record["results"][0];
    assert_eq!((record["results"].as_array().map(Vec::len), &result["name"]), (Some(1), &"nfs 400 ops/s".into()));
    for class in ["read", "write", "other"] {
        let of = |field: &str| number(result, &format!("/classes/{class}/{field}"));
        assert!(of("count") > 0.0 && of("mean_ms") > 0.0 && of("p99_ms") > 0.0, "{class}: {}", result["classes"]);
    }
    // Four standard deviations of 400 draws: a host that stands still for a second makes half of the 800.
    close("the share of lookups", number(result, "/operations/lookup/share"), 0.27, 0.33);
    let load = number(result, "/transactions_per_s/median");
    // What a held-up host owes from before the window is counted in it.
    assert!(load > 0.0 && load <= 700.0, "{load} operations a second of 400");
    assert_eq!(result["failed"], 0);
    let missed = place.run(&words(
        "lab --hosts 2 -- nfs b --mix null --rate 100 --time 200ms --repeats 1 --no-tester-limit --expect p99<1ns",
    ));
    assert_eq!(missed.code, Some(1), "{}", missed.err);
}

/// What cannot be is said before anything is built, and a server that is not there by its name.
#[test]
fn slips_are_told_with_their_remedy() {
    let place = TestFolder::new();
    for (line, said) in [
        ("nfs b --mix laddis", "sfs97-like"),
        ("nfs b --rate 0", "operations a second"),
        ("nfs b --nfs-port 2049", "SERVER:/export"),
        ("nfs /srv/test", "SERVER:/export"),
        ("nfs b --transfer-size 8000", "8KiB"),
        ("nfs b --udp --transfer-size 1MiB", "61440"),
        ("nfs b --file-size 100K", "100KiB"),
        ("nfs b --files 1 --connections 2", "fewer connections"),
        ("nfs b --curve --rate 10", "cannot be used with"),
        ("nfs b --response-cap 0s --curve", "50ms"),
        ("nfs b --mix no-such.toml", "no-such.toml"),
        // No verdict on NFS is tested by a change.
        ("nfs b --prove", "'--prove'"),
    ] {
        let ran = place.run(&words(line));
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.err);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
    let ran = place.run(&words("nfs 127.0.0.1:/srv --nfs-port 1 --time 300ms --repeats 1 --no-tester-limit"));
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("127.0.0.1:1"), "{}", ran.err);
}
