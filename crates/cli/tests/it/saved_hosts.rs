//! Agents are named without their secrets on the command line, and no record holds one.

use crate::program::{Ran, TestFolder};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

#[test]
fn no_secret_stands_on_the_command_line_or_in_a_record() {
    let place = TestFolder::new();
    let mut agent = place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
    let url = agent.line();
    let (address, secrets) = url.trim().split_once('#').expect("secrets");
    let token = secrets.split_once('.').expect("a token").0;
    let file = place.path("agent.url");
    fs::write(&file, &url).expect("written");
    let at_file = format!("@{}", file.display());

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    place.run(&["probe", &at_file]).says(2, &["agent.url", "chmod 600"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");

    let added = place.run(&["hosts", "add", "box", &at_file]);
    added.says(0, &["box is saved", address.trim_start_matches("linerate://")]);
    let list = place.run(&["hosts", "list"]);
    assert!(list.out.starts_with("box  127.0.0.1:") && !list.out.contains(token), "{}", list.out);
    let short = ["--time", "100ms", "--warmup", "50ms", "--repeats", "1", "--json"];
    for host in ["box", &at_file] {
        let record = place.run(&[&["stream", host], &short[..]].concat());
        record.says(0, &[]);
        for text in [&record.out, &record.err] {
            assert!(!text.contains(token), "{text}");
        }
        assert!(record.out.contains("127.0.0.1:") || record.out.contains("box"), "{}", record.out);
    }
    let kept = place.run(&["results", "list", "--json"]).out;
    assert!(kept.contains("\"stream\",\"box\"") && !kept.contains(token), "{kept}");

    // A slip does not show the secret.
    let line = fs::read_to_string(&file).expect("written");
    let bare = line.trim().trim_start_matches("linerate://");
    let url = line.trim();
    for slip in [
        &["hosts", "add", url][..],
        &["hosts", "remove", url],
        &["hosts", "add", "x", "y", url],
        &["probe", bare],
        &["probe", url, url],
        &[url, "--no-such-option"],
        &["stream", "box", "--rate", url],
        &["report", url],
    ] {
        let ran = place.run(slip);
        assert!(ran.code == Some(2) && !ran.err.contains(token), "{}", ran.err);
    }

    place.run(&["hosts", "remove", "box"]).says(0, &["box is forgotten"]);
    place.run(&["probe", "box"]).says(2, &["no host is called `box`", "linerate hosts add"]);
}

#[test]
fn a_pairing_code_takes_the_place_of_the_url() {
    let place = TestFolder::new();
    let mut agent = place.start(&["serve", "--ephemeral", "--pair", "--listen", "127.0.0.1:0"]);
    let url = agent.line();
    let (address, secrets) = url.trim_start_matches("linerate://").split_once('#').expect("secrets");
    let shown = agent.message("the pairing code is ");
    let code = shown.split("the pairing code is ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a code");
    let add = |code: &str| -> Ran {
        let typed = fs::File::open(place.file("typed", code)).expect("there");
        let mut command = place.command(&["hosts", "add", "box", "--pair", address]);
        command.stdin(typed).output().expect("the program starts").into()
    };
    add("12345").says(2, &["6 digits"]);
    add(if code == "000-000" { "000-001" } else { "000-000" }).says(3, &["is wrong", "2 tries are left"]);
    agent.message("127.0.0.1 gave a wrong pairing code");
    let added = add(code);
    added.says(0, &["box is saved", address]);
    assert!(!added.err.contains(&secrets[..32]), "{}", added.err);
    agent.message("127.0.0.1 has paired");
    place.run(&["probe", "box"]).says(0, &[]);
    add(code).says(3, &["used already"]);
    for (place_of_agent, part) in [("rack 1", "192.0.2.5"), ("127.0.0.1:70000", "192.0.2.5")] {
        place.run(&["hosts", "add", "box", "--pair", place_of_agent]).says(2, &[part]);
    }
}

#[test]
fn ctrl_c_ends_the_wait_for_an_agent_url() {
    let place = TestFolder::new();
    let mut command = place.command(&["hosts", "add", "box", "-"]);
    let mut waiting = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let status = format!("/proc/{}/status", waiting.id());
    wait_until("it handles signals", || {
        let status = fs::read_to_string(&status).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        (caught >> (Signal::SIGINT as u64 - 1) & 1 == 1).then_some(())
    });
    signal::kill(Pid::from_raw(waiting.id() as i32), Signal::SIGINT).expect("it runs");
    // The pipe stays open: its end would end the wait too.
    let input = waiting.stdin.take();
    let ended = wait_until("it ends", || waiting.try_wait().expect("a child"));
    assert_eq!(ended.code(), Some(3));
    drop(input);
}

/// It takes 15 s, which the tier of pure tests has not.
#[lab_test]
fn a_host_alone_is_looked_at_both_ways() {
    let place = TestFolder::new();
    let mut agent = place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
    let file = place.path("agent.url");
    fs::write(&file, agent.line()).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
    place.run(&["hosts", "add", "office", &format!("@{}", file.display())]).says(0, &["office is saved"]);
    let looked = place.run(&["office"]);
    looked.says(0, &[]);
    for part in ["tcp receive: ", "Latency under load", "limit"] {
        assert!(looked.shows(part), "{part} is missing in {}", looked.out);
    }
    let kept = place.run(&["results", "list"]).out;
    assert!(kept.contains("stream office --direction=send,receive") && kept.contains("2 results"), "{kept}");
}
