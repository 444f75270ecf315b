//! As many flows as a trial may have, through the command line.

use crate::program::{TestFolder, number, wait_until_gone, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::Signal;

#[lab_test]
fn four_thousand_flows_are_counted_each_by_few_threads() {
    let cores = std::thread::available_parallelism().expect("a number of cores").get();
    let mut known = 0;
    for transport in ["", "--udp --rate 100Mbit/s"] {
        let line = format!("lab -- stream a b -P 4096 {transport} --time 2s --warmup 500ms --repeats 1 --json");
        let record = TestFolder::new().measure(&words(&line));
        assert!(number(&record, "/results/0/main/median") > 0.0, "{transport}");
        let trial = &record["trials"][0];
        let ends = &trial["counts"][0]["flows"][0];
        for end in ["client", "server"] {
            assert_eq!(ends[end]["flows"].as_array().map(Vec::len), Some(4_096), "{end} {transport}");
        }
        for host in ["a", "b"] {
            let threads = trial["hosts"][host]["threads"].as_array().expect("threads");
            assert!(threads.len() <= cores, "{threads:?}");
            // The time of a thread that has ended before its busy host looked is not known.
            known += threads.iter().filter(|thread| number(thread, "/cpu") > 0.0).count();
        }
    }
    assert!(known > 0, "no host told of the work of any thread");
}

#[lab_test]
fn kill_nine_leaves_nothing_of_four_thousand_flows() {
    let place = TestFolder::new();
    let lab = place.start(&words("lab -- stream a b -P 4096 --time 500ms --warmup 0s --repeats 300"));
    let agents = lab.wait_for_children(2);
    wait_until("a trial counts", || (place.trials() > 0).then_some(()));
    lab.signal(Signal::SIGKILL);
    assert_eq!(lab.end().code, None);
    wait_until_gone(&agents);
}

#[test]
fn more_flows_than_a_trial_may_have_are_refused() {
    let place = TestFolder::new();
    place.run(&["stream", "local", "-P", "4097"]).says(2, &["4097 is not in 1..=4096"]);
    // Each has a thread of its own.
    place.run(&["transact", "local", "-P", "1025"]).says(2, &["1025 is not in 1..=1024"]);
}
