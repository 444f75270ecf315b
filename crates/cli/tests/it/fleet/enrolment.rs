//! How hosts join a fleet, and how they are kept out.

use super::place::{FleetPlace, copy_folder};
use linerate_testsuite::{server_test, wait_until};

#[server_test(Program("nats-server"))]
fn invitations_admit_the_members_that_they_count() {
    let mut fleet = FleetPlace::new();
    let code = fleet.invite("--label site=oslo");
    fleet.run_as("a", &format!("fleet enrol {code} --name a")).says(3, &["linerate fleet serve"]);
    fleet.serve("--roles admit");
    let joined = fleet.run_as("a", &format!("fleet enrol {code} --name a --label rack=7 --label site=rome"));
    joined.says(0, &["a joined the fleet test as agent"]);
    let listed = fleet.run("fleet list");
    listed.prints(0, &["never heard", "rack=7,site=oslo"]);

    fleet.run_as("a", &format!("fleet enrol {code} --name a")).says(2, &["holds the credentials of a", "--dir"]);
    fleet.run_as("b", &format!("fleet enrol {code} --name b")).says(3, &["used up", "new invitation"]);
    let second = fleet.invite("");
    let taken = fleet.run_as("c", &format!("fleet enrol {second} --name a"));
    taken.says(3, &["a member called a", "another key", "--name", "linerate fleet revoke a"]);
    // A refusal uses nothing up.
    fleet.run_as("c", &format!("fleet enrol {second} --name c")).says(0, &["c joined"]);
}

#[server_test(Program("nats-server"))]
fn invitations_expire_and_are_checked() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("--expires 1s --uses 1000");
    let mut number = 0;
    let refused = wait_until("the invitation expires", || {
        number += 1;
        let name = format!("late-{number}");
        let ran = fleet.run_as(&name, &format!("fleet enrol {code} --name {name}"));
        (ran.code != Some(0)).then_some(ran)
    });
    refused.says(3, &["expired", "new invitation"]);
    assert_eq!(fleet.state(&format!("late-{number}")), "");
    let code = fleet.invite("");
    let damaged = &code[..code.len() - 4];
    for wrong in ["lrf1-AAAA", "hello", damaged] {
        fleet.run_as("wrong", &format!("fleet enrol {wrong} --name wrong")).says(2, &["linerate fleet invite"]);
    }
    assert_eq!(fleet.state("wrong"), "");
}

#[server_test(Program("nats-server"))]
fn revoked_member_is_cut_off_and_stays_out() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("--uses 2");
    fleet.agent("a", &code);
    fleet.agent("b", &code);
    fleet.run("fleet revoke a").says(0, &["a is revoked"]);
    wait_until("a is no member", || fleet.state("a").is_empty().then_some(()));
    assert_eq!(fleet.state("b"), "present");
    let again = format!("serve --ephemeral --listen 127.0.0.1:0 --fleet {}", fleet.folder("a"));
    let ran = fleet.place.run(&crate::program::words(&again));
    ran.says(3, &["enrol this host again"]);
    fleet.run("fleet revoke a").says(3, &["no such member", "linerate fleet list"]);
}

#[server_test(Program("nats-server"))]
fn cloned_agent_is_refused_while_the_first_serves() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("");
    fleet.agent("a", &code);
    copy_folder(&fleet.path("a"), &fleet.path("clone"));
    let clone = format!("serve --ephemeral --listen 127.0.0.1:0 --fleet {}", fleet.folder("clone"));
    let ran = fleet.place.run(&crate::program::words(&clone));
    assert_ne!(ran.code, Some(0));
    assert!(ran.err.contains("enrol"), "{}", ran.err);
    assert_eq!(fleet.state("a"), "present");
}

#[server_test(Program("nats-server"))]
fn server_without_jetstream_is_named_with_the_remedy() {
    let fleet = FleetPlace::with_configuration(|text| {
        text.lines().filter(|line| !line.starts_with("jetstream")).map(|line| format!("{line}\n")).collect()
    });
    fleet.run("fleet invite").says(3, &["JetStream", "nats://127.0.0.1"]);
}
