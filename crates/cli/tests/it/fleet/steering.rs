//! Pausing a fleet, running a mesh at once, and looking at what it does.

use super::place::FleetPlace;
use linerate_testsuite::{server_test, wait_until};
use serde_json::Value;

/// A mesh with a round an hour, at a moment that its seed decides.
const FILE: &str = r#"
[[group]]
name = "all"
hosts = ["a", "b"]

[[mesh]]
name = "rate"
between = ["all"]
test = "stream --time 0.2s --warmup 0s --repeats 1"
every = "1h"
slip = "10s"
"#;

fn fleet_of_two() -> FleetPlace {
    let mut fleet = FleetPlace::new();
    let file = fleet.place.file("fleet.toml", FILE);
    let store = fleet.place.path("results.db").display().to_string();
    fleet.run("fleet invite").prints(0, &["lrf1-"]);
    fleet.run("fleet pause --reason set-up").says(0, &["paused"]);
    fleet.serve(&format!("{file} --store {store}"));
    let code = fleet.invite("--uses 2");
    fleet.agent("a", &code);
    fleet.agent("b", &code);
    fleet
}

fn results(fleet: &FleetPlace) -> u64 {
    let matrix = fleet.place.run(&["fleet", "matrix", "--json"]);
    let matrix: Value = serde_json::from_str(&matrix.out).unwrap_or_default();
    let cells = matrix["cells"].as_array().cloned().unwrap_or_default();
    cells.iter().filter_map(|cell| cell["results"].as_u64()).sum()
}

#[server_test(Program("nats-server"))]
fn pause_holds_the_mesh_and_run_repeats_it() {
    let fleet = fleet_of_two();
    let status = wait_until("the scheduler sees both agents", || {
        let status = fleet.run("fleet status --json").json();
        (status["schedule"]["present"] == 2).then_some(status)
    });
    assert_eq!(status["pause"]["reason"], "set-up");
    assert_eq!(status["schedule"]["outstanding_count"], 0);
    assert_eq!(results(&fleet), 0);
    fleet.run("fleet status").prints(0, &["paused by owner: set-up", "fleet resume"]);

    // The first round of an hourly mesh may lie an hour ahead.
    fleet.run("fleet run rate").says(0, &["all pairs of rate"]);
    fleet.run("fleet resume").says(0, &["goes on"]);
    wait_until("both directions are measured", || (results(&fleet) >= 2).then_some(()));
    let before = results(&fleet);
    fleet.run("fleet run rate").says(0, &["all pairs of rate"]);
    wait_until("both directions are measured again", || (results(&fleet) >= before + 2).then_some(()));
    fleet.run("fleet run a/b").says(2, &["no name of a mesh"]);
    let matrix = fleet.place.run(&["fleet", "matrix"]);
    matrix.prints(0, &["from \\ to", "bit/s"]);
    let wrong = fleet.place.run(&["fleet", "matrix", "--test", "no"]);
    wrong.says(2, &["no results of the test `no`", "there are: stream"]);
}

#[server_test(Program("nats-server"))]
fn plan_counts_before_anything_runs() {
    let fleet = FleetPlace::new();
    let file = fleet.place.file("fleet.toml", FILE);
    let plan = fleet.run(&format!("fleet plan {file} --dry-run --hosts a,b --span 2h"));
    plan.prints(0, &[" trials of 1 pair,", "a to b", "b to a"]);
    let unknown = fleet.run(&format!("fleet plan {file} --hosts c,d"));
    unknown.says(0, &["all"]);
    let file = fleet.place.file("bad.toml", &FILE.replace("--time 0.2s", "--tim 0.2s"));
    fleet.run(&format!("fleet plan {file} --hosts a,b")).says(2, &["mesh rate", "--tim"]);
}
