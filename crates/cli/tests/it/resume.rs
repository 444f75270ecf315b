//! Runs that end early: what they leave in the store, and how `--resume` goes on with them.

use crate::program::TestFolder;
use linerate_store::{Query, Store};
use linerate_testsuite::wait_until;
use serde_json::Value;

/// Two sizes, three runs each.
const RUN: &[&str] =
    &["stream", "local", "--udp", "--sizes", "64,1472", "--time", "300ms", "--warmup", "10ms", "--repeats", "3"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [RUN, more].concat()
}

/// The name of each counted trial, in the order they ran.
fn counted(record: &Value) -> Vec<String> {
    let trials = record["trials"].as_array().expect("a list of trials");
    let counted = trials.iter().filter(|trial| trial["standing"]["is"] == "counted");
    counted.map(|trial| trial["trial"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// The names of the results.
fn table(record: &Value) -> Vec<String> {
    let results = record["results"].as_array().expect("a list of results");
    results.iter().map(|result| result["name"].as_str().expect("a name").to_owned()).collect()
}

fn listed(place: &TestFolder) -> Value {
    place.run(&["results", "--json"]).json()
}

/// How many attempts at trials the latest run has stored.
fn attempts(store: &Store) -> u64 {
    let latest = store.list(&Query::default(), 0, 1).expect("listed").pop();
    latest.map_or(0, |run| run.attempts.into())
}

/// Starts the run and kills it in the trial that follows the first `trials`. Returns its row.
fn killed(place: &TestFolder, trials: u64) -> Value {
    let store = place.store();
    let mut running = place.start(RUN);
    wait_until("trials are stored", || {
        assert!(running.is_running(), "it ended before it was killed");
        (attempts(&store) >= trials).then_some(())
    });
    running.kill();
    listed(place)[0].clone()
}

#[test]
fn a_killed_run_keeps_its_trials_and_goes_on_to_the_same_table() {
    let whole = TestFolder::new().measure(&with(&["--json"]));
    assert_eq!(counted(&whole).len(), 6);
    for trials in [1, 3] {
        let place = TestFolder::new();
        let row = killed(&place, trials);
        assert_eq!(row["state"], "killed", "known at once: {row}");
        assert!(row["attempts"].as_u64() >= Some(trials), "{row}");
        let id = row["id"].as_str().expect("an id");
        let kept = place.run(&["results", "show", id, "--json"]).json();
        assert_eq!(
            kept["trials"].as_array().map(|all| all.len() as u64),
            row["attempts"].as_u64(),
            "every trial is there"
        );
        let resumed = place.measure(&with(&["--resume", id, "--json"]));
        assert_eq!(resumed["id"], row["id"]);
        assert_eq!((table(&resumed), counted(&resumed)), (table(&whole), counted(&whole)));
        let before = kept["trials"].as_array().expect("trials");
        assert_eq!(
            &resumed["trials"].as_array().expect("trials")[..before.len()],
            &before[..],
            "none is lost or changed"
        );
        assert_eq!(listed(&place)[0]["state"], "finished");
        place.run(&with(&["--resume", id])).says(2, &["has finished"]);
    }
}

#[test]
fn only_the_same_command_is_resumed() {
    let place = TestFolder::new();
    let row = killed(&place, 1);
    let id = row["id"].as_str().expect("an id");
    place.run(&["transact", "local", "--resume", id]).says(2, &["stream", "transact", "type the command"]);
    place.run(&["stream", "local", "--udp", "--sizes", "64", "--resume", id]).says(2, &["something else", "goal."]);
    place.run(&["results", "show", id, "--json"]).json();
    assert_eq!(listed(&place)[0]["state"], "killed", "a refusal changes nothing");
    place.run(&with(&["--resume", "20200101"])).says(2, &["no record"]);
}

#[test]
fn a_run_that_goes_on_is_not_resumed_beside_itself() {
    let place = TestFolder::new();
    let many: Vec<&str> = RUN.iter().map(|word| if *word == "3" { "1000" } else { *word }).collect();
    let mut running = place.start(&many);
    let store = place.store();
    wait_until("a trial is stored", || (attempts(&store) >= 1).then_some(()));
    let id = listed(&place)[0]["id"].as_str().expect("an id").to_owned();
    place.run(&with(&["--resume", &id])).says(2, &["being measured by another program"]);
    running.kill();
}
