//! A verdict is tested by a counterproof. `cargo xtask truth` counts how often verdicts name the planted limit.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::{alone, lab_test};
use serde_json::Value;

/// The share of the datagrams on the path that were lost there.
fn lost_on_path(result: &Value) -> f64 {
    let loss = &result["loss"];
    let place = |name: &str| number(loss, &format!("/places/{name}"));
    place("unaccounted") / (number(loss, "/of") - place("not_sent") - place("sender_queue"))
}

/// The same loss is a bad path's or a shaper's: half the load, or a load that fits, tells.
#[lab_test]
fn a_verdict_is_put_to_the_test() {
    // What the machine's input queues drop is not taken for lost on the path, whoever sent it.
    let _alone = alone();
    let place = TestFolder::new();
    for (lab, load, change) in [
        ("--device reference,loss=1/30", "1Mbit/s", "half the load"),
        ("--device router --shape 1Mbit/s", "4Mbit/s", "a load of"),
    ] {
        let line = format!(
            "lab --hosts 2 {lab} -- stream a b --udp --size 256 --rate {load} --time 2s --repeats 1 --prove --json"
        );
        let record = place.measure(&words(&line));
        let (result, proof) = (&record["results"][0], &record["results"][0]["verdict"]["proofs"][0]);
        // What was measured for it is a result of its own, and what is held against each other is the loss of both.
        let results = record["results"].as_array().expect("results");
        assert_eq!((results.len(), &results[1]["name"]), (2, &proof["by"]), "{}", result["verdict"]);
        for (field, measured) in [("/before", result), ("/after", &results[1])] {
            assert!(
                (number(proof, field) - lost_on_path(measured)).abs() < 1e-9,
                "{field}: {proof}, {}",
                measured["loss"]
            );
        }
        // A machine that is held up may leave it open, but it does not speak against what is planted.
        let explained = place.run(&["explain"]);
        let held = proof["held"] == true;
        assert_ne!(proof["held"], false, "{}", result["verdict"]);
        for word in ["Weighed:", "offered load", "against", change].into_iter().chain(held.then_some("as it must be")) {
            assert!(explained.out.contains(word), "`{word}` is missing in: {}", explained.out);
        }
    }
}
