//! As many flows as a trial may have, through the command line.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::lab_test;

#[lab_test]
fn a_thousand_flows_are_counted_each() {
    for transport in ["", "--udp --rate 100Mbit/s"] {
        let line = format!("lab -- stream a b -P 1024 {transport} --time 500ms --warmup 500ms --repeats 1 --json");
        let record = TestFolder::new().measure(&words(&line));
        assert!(number(&record, "/results/0/main/median") > 0.0, "{transport}");
        let ends = &record["trials"][0]["counts"][0]["flows"][0];
        for end in ["client", "server"] {
            assert_eq!(ends[end]["flows"].as_array().map(Vec::len), Some(1_024), "{end} {transport}");
        }
    }
}

#[test]
fn more_flows_than_a_trial_may_have_are_refused() {
    TestFolder::new().run(&["stream", "local", "-P", "1025"]).says(2, &["1025 is not in 1..=1024"]);
}
