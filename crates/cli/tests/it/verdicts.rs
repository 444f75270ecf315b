//! A verdict is tested by a counterproof. `cargo xtask truth` counts how often verdicts name the planted limit.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::lab_test;
use serde_json::Value;

/// The share of the datagrams on the path that were lost there, in all trials of a test that are its `part`.
fn lost_on_path(record: &Value, part: &str) -> f64 {
    let trials = record["trials"].as_array().expect("trials").iter();
    let counted = trials.filter(|run| run["trial"]["proves"]["part"] == part && run["standing"]["is"] == "counted");
    let (mut lost, mut sent) = (0.0, 0.0);
    for loss in counted.map(|run| &run["counts"][0]["flows"][0]["forward_loss"]) {
        let place = |name: &str| number(loss, &format!("/places/{name}"));
        lost += place("unaccounted");
        sent += number(loss, "/of") - place("not_sent") - place("sender_queue");
    }
    lost / sent
}

/// The same loss is a bad path's or a shaper's: half the load, or a load that fits, tells.
fn check_proof(lab: &str, load: &str, limit: &str) {
    let place = TestFolder::new();
    let line = format!(
        "lab --hosts 2 {lab} -- stream a b --udp --size 256 --rate {load} --time 2s --repeats 1 --prove --json"
    );
    let record = place.measure(&words(&line));
    let (result, proof) = (&record["results"][0], &record["results"][0]["verdict"]["proofs"][0]);
    // What was changed is a result of its own, and what is held against each other is the loss of trials in turn.
    let results = record["results"].as_array().expect("results");
    assert_eq!((results.len(), &results[1]["name"]), (2, &proof["by"]), "{}", result["verdict"]);
    let by = proof["by"].as_str().expect("it names a result");
    let change = ["half the load", "a load of"].into_iter().find(|change| by.contains(change));
    // On a busy machine the time that threads wait for a core may be as good a sign as the loss. Then that is put to the test.
    if change.is_none() {
        let weighed = result["verdict"]["weighed"].as_array().expect("what was weighed");
        let is_sign = |one: &Value| {
            ["receiver-cpu", "softirq-cpu"].iter().any(|limit| one["limit"] == *limit)
                && ["hint", "for", "strong"].iter().any(|support| one["support"] == *support)
        };
        assert!(weighed.iter().any(is_sign), "{}", result["verdict"]);
        return;
    }
    for (field, part) in [("/before", "unchanged"), ("/after", "changed")] {
        let measured = lost_on_path(&record, part);
        assert!((number(proof, field) - measured).abs() < 1e-9, "{field}: {proof}, {measured}");
    }
    let pairs = number(proof, "/pairs");
    assert!(pairs == 3.0 || pairs == 6.0, "{proof}");
    // Which of the two is put to the test first depends on where the losses fell. The test settles on what is planted
    // either way, unless a machine that is held up leaves it open.
    let judged = match proof["held"].as_bool() {
        Some(true) => "as it must be",
        Some(false) => "which speaks against this limit",
        None => "which is inconclusive",
    };
    assert!(proof["held"].is_null() || result["verdict"]["limit"] == limit, "{}", result["verdict"]);
    // Lines are broken anywhere.
    let explained = place.run(&["explain"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["Weighed:", "offered load", "against", change.expect("the load is changed"), judged] {
        assert!(explained.contains(word), "`{word}` is missing in: {explained}");
    }
}

#[lab_test]
fn loss_on_the_path_is_put_to_the_test() {
    check_proof("--device reference,loss=1/30", "1Mbit/s", "path-loss");
}

#[lab_test]
fn a_shaper_is_put_to_the_test() {
    check_proof("--device router --shape 1Mbit/s", "3Mbit/s", "shaper");
}

/// After 3.5 s TCP has sent the first segments again four times, and not again until 6.2 s: nothing of it is in the window.
#[lab_test]
fn tcp_that_waits_in_a_black_hole_of_large_packets_names_it() {
    for options in ["", "-R", "-6"] {
        let record = TestFolder::new().measure(&words(&format!(
            "lab --hosts 2 --device path,mtu=1280,mtu-silent=true -- stream a b {options} --warmup 3500ms -t 1s -r 1 --json"
        )));
        let verdict = &record["results"][0]["verdict"];
        assert_eq!(verdict["limit"], "mtu-black-hole", "{options}: {verdict}");
    }
}
