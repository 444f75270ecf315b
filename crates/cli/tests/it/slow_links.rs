//! Links that carry a few packets a second, as a user measures them.

use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;

/// Datagrams that a run leaves in the queue count in no other run.
#[lab_test]
fn datagrams_over_a_slow_link_are_counted_in_their_own_run() {
    for options in ["-u", "-u -R", "-u -6"] {
        let line = format!("lab --hosts 2 --link 512kbit/s -- stream a b {options} -t 3 -r 2 --json");
        let record = TestFolder::new().measure(&words(&line));
        let payload = if options.contains("-6") { 1_452.0 } else { 1_472.0 };
        let expected = 512e3 * payload / 1_538.0;
        let rates = record["results"][0]["main"]["values"].as_array().expect("two runs");
        assert_eq!(rates.len(), 2, "{options}");
        for rate in rates.iter().filter_map(serde_json::Value::as_f64) {
            // A sender that waits for a core leaves the link idle. Nothing makes the link carry more.
            let share = rate / expected;
            assert!((0.5..1.03).contains(&share), "{options}: {rate} bit/s instead of {expected}");
        }
        let path = &record["trials"][0]["counts"][0]["flows"][0];
        let loss = [&path["forward_loss"], &path["backward_loss"]].into_iter().find_map(|loss| loss["lost"].as_u64());
        assert_eq!(loss, Some(0), "{options}: nothing is lost that arrives late");
    }
}

#[lab_test]
fn a_window_of_few_segments_has_a_range() {
    let record =
        TestFolder::new().measure(&words("lab --hosts 2 --link 64kbit/s -- stream a b -t 1 --warmup 2s -r 1 --json"));
    let caveats = record["results"][0]["caveats"].as_array().expect("caveats");
    let text = caveats.iter().find(|caveat| caveat["kind"] == "few-packets").and_then(|caveat| caveat["text"].as_str());
    assert!(text.is_some_and(|text| text.contains("the rate is")), "{caveats:?}");
}
