//! `--tune` in a lab: the run uses a candidate of the tuning, and the tuning is kept.

use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;

/// The tuned field of a plan names its record.
const CHOSEN_BY: &str = "/plan/tuning/chosen_by";

#[lab_test]
fn tuning_is_made_once_and_its_choice_is_used() {
    let place = TestFolder::new();
    let line = words("lab --device none -- transact a b --tune --time 200ms --warmup 0s --repeats 1 --json");
    let first = place.measure(&line);
    let tuning = first.pointer(CHOSEN_BY).and_then(|id| id.as_str()).expect("the tuning's record");
    let record = place.measure(&words(&format!("results show {tuning} --json")));
    assert_eq!(record["plan"]["tuning"], "candidates");

    let cells = record["plan"]["goal"]["cells"].as_array().expect("candidates");
    let socket = "/loads/0/task/net/socket";
    let chosen = first.pointer("/plan/goal/cells/0").and_then(|cell| cell.pointer(socket)).expect("sockets");
    assert!(cells.len() > 1 && cells.iter().any(|cell| cell.pointer(socket) == Some(chosen)), "{chosen}");

    let second = place.measure(&line);
    assert_eq!(second.pointer(CHOSEN_BY).and_then(|id| id.as_str()), Some(tuning), "it is used again");
    let pinned = words("lab --device none -- transact a b --tune --cpus-sender 0 --time 200ms");
    place.run(&pinned).says(2, &["--tune has nothing to choose", "leave out --cpus-sender"]);
}
