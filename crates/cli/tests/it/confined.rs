//! A running `linerate serve` has given up what it does not need, in every one of its threads.

use crate::program::TestFolder;
use linerate_testsuite::lab_test;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// What `/proc` tells of all threads in a field: one value, or they differ.
fn of_all_threads(process: i32, field: &str) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let value = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("the field");
        line.trim().to_owned()
    };
    threads
        .map(|thread| value(fs::read_to_string(thread.expect("listed").path().join("status")).expect("read")))
        .collect()
}

#[test]
fn every_thread_of_a_running_agent_is_confined() {
    let place = TestFolder::new();
    // The service's threads are there from the start.
    let mut agent = place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--rpc-port", "0"]);
    let url = agent.line();
    let process = agent.pid();
    for (field, value) in [("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapPrm", "0000000000000000")] {
        assert_eq!(of_all_threads(process, field), BTreeSet::from([value.to_owned()]), "{field}");
    }
    assert!(fs::read_dir(format!("/proc/{process}/task")).expect("it runs").count() > 1);

    let probed = place.run(&["probe", url.trim(), "--json"]).json();
    let told = probed["capabilities"].as_array().expect("capabilities");
    let about = |name: &str| told.iter().find(|capability| capability["name"] == name).expect("it is told").clone();
    assert!(about("least-privilege")["text"].as_str().is_some_and(|text| text.ends_with("has none")), "{told:?}");
    assert!(about("system-call-filter")["text"].as_str().is_some_and(|text| text.ends_with(": in force")), "{told:?}");
    // Its own copy of the word: what this program, which is not confined, says of itself.
    let own = place.run(&["probe", "--json"]).json();
    let own =
        own["capabilities"].as_array().expect("capabilities").iter().find(|own| own["name"] == "landlock").cloned();
    let own = own.expect("it is told");
    assert!(
        own["available"] == false || own["text"].as_str().is_some_and(|text| text.contains("not in force")),
        "{own}"
    );

    agent.signal(Signal::SIGTERM);
    let said = agent.end().err;
    assert!(said.contains("confined: writes no files (Landlock") || said.contains("no Landlock"), "{said}");
    assert!(said.contains("capabilities: none"), "{said}");
}

#[test]
fn an_agent_started_by_nohup_outlives_its_terminal() {
    let place = TestFolder::new();
    for (started_by, goes_on) in [("trap '' HUP; exec \"$@\"", true), ("exec \"$@\"", false)] {
        let linerate = place.command(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", started_by, "sh"]).arg(linerate.get_program()).args(linerate.get_args());
        shell.envs(linerate.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut agent = place.start_command(shell);
        let url = agent.line();
        agent.signal(Signal::SIGHUP);
        if goes_on {
            place.run(&["probe", url.trim()]).says(0, &[]);
            agent.signal(Signal::SIGTERM);
        }
        agent.end().says(0, &[]);
    }
}

/// A container without control groups hides the limit of its memory.
#[lab_test(Program("unshare"))]
fn memory_limit_that_cannot_be_read_is_reported() {
    let place = TestFolder::new();
    let serve = ["serve", "--ephemeral", "--listen", "127.0.0.1:0"];
    let mut agent = place.start_command(place.command_after("umount -l /sys/fs/cgroup", &serve));
    let message = agent.message("memory limit of this process cannot be read");
    assert!(message.contains("--max-memory"), "{message}");
}
