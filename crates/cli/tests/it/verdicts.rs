//! A verdict is tested by a counterproof. `cargo xtask truth` counts how often verdicts name the planted limit.

use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;

/// The same loss is a bad path's or a shaper's: half the load, or a load that fits, tells.
#[lab_test]
fn a_verdict_is_put_to_the_test() {
    let place = TestFolder::new();
    for (lab, load, limit, change) in [
        ("--device reference,loss=1/100", "10Mbit/s", "path-loss", "half the load"),
        ("--device router --shape 4Mbit/s", "8Mbit/s", "shaper", "a load of"),
    ] {
        let line = format!(
            "lab --hosts 2 {lab} -- stream a b --udp --size 256 --rate {load} --time 1s --repeats 1 --prove --json"
        );
        let record = place.measure(&words(&line));
        let verdict = &record["results"][0]["verdict"];
        assert_eq!((&verdict["limit"], &verdict["proofs"][0]["held"]), (&limit.into(), &true.into()), "{verdict}");
        // What was measured for it is a result of its own.
        assert_eq!(record["results"].as_array().map(Vec::len), Some(2));
        let explained = place.run(&["explain"]);
        for word in ["Weighed:", "offered load", "against", change, "as it must be"] {
            assert!(explained.out.contains(word), "`{word}` is missing in: {}", explained.out);
        }
    }
}
