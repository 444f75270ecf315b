//! Hosts reach each other on every kind of bench, and a bench that cannot be had says why.

use crate::support::{agents_told, fake_agent, host, reaches, socket, up, wait_for};
use linerate_lab::{Bench, Lab, LabOptions};
use linerate_testsuite::{alone, lab_test};
use std::fs;
use std::process::{Command, Stdio};

/// Every host to every other, both families, whole packets and fragments.
fn all_reach_all(text: &str, hosts: &[(&str, &str, &str)]) {
    let lab = up(text);
    assert_eq!(lab.hosts().len(), hosts.len());
    for (from, from_v4, from_v6) in hosts {
        for (to, to_v4, to_v6) in hosts.iter().filter(|(name, ..)| name != from) {
            for (near, far) in [(from_v4, to_v4), (from_v6, to_v6)] {
                let near = socket(&lab, from, near);
                let far = socket(&lab, to, far);
                for bytes in [1, 1472, 8000] {
                    reaches(&near, &far, bytes);
                }
            }
        }
    }
    wait_for(lab.down());
}

#[lab_test]
fn agents_are_asked_to_end_before_they_are_killed() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let options = LabOptions { program: fake_agent(), keep: false, folders: vec![folder.path().to_owned()] };
    let lab = wait_for(Lab::up(&Bench::named("switch").expect("built in"), &options)).expect("a lab");
    let hosts: Vec<_> = lab.hosts().keys().map(|host| host.0.clone()).collect();
    assert_eq!(hosts.len(), 4);
    wait_for(lab.down());
    for host in hosts {
        assert_eq!(fs::read_to_string(folder.path().join(&host)).expect("its file"), "asked to end", "{host}");
    }
}

#[lab_test]
fn a_switch() {
    let _alone = alone();
    let hosts = [("a", "198.18.0.1", "2001:2::1"), ("b", "198.18.0.2", "2001:2::2"), ("c", "198.18.0.3", "2001:2::3")];
    all_reach_all("name = 'x'\nhosts = ['a', 'b', 'c']", &hosts);
}

#[lab_test]
fn a_cable() {
    let _alone = alone();
    let hosts = [("left", "198.18.0.1", "2001:2::1"), ("right", "198.18.0.2", "2001:2::2")];
    all_reach_all("name = 'x'\nhosts = ['left', 'right']\ndevice = { kind = 'none' }", &hosts);
}

#[lab_test]
fn a_router() {
    let _alone = alone();
    let hosts = [("a", "198.18.1.2", "2001:2:0:1::2"), ("b", "198.18.2.2", "2001:2:0:2::2")];
    all_reach_all("name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'router' }", &hosts);
}

#[lab_test]
fn frames_are_as_long_as_the_link_says() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\nlink = { mtu = 9000, rate = '1Gbit/s' }");
    let near = socket(&lab, "a", "198.18.0.1");
    let far = socket(&lab, "b", "198.18.0.2");
    let received = |name: &str| {
        let mut count = Command::new("cat");
        count.arg("/proc/self/net/dev").stdout(Stdio::piped());
        let output = lab.run_in(&host(name), count).expect("cat").wait_with_output().expect("output");
        let text = String::from_utf8(output.stdout).expect("text");
        let line = text.lines().find(|line| line.trim().starts_with("eth0:")).expect("eth0").to_owned();
        line.split_ascii_whitespace().nth(2).expect("packets").parse::<u64>().expect("a number")
    };
    let before = received("b");
    for _ in 0..100 {
        reaches(&near, &far, 8972);
    }
    // One packet each, of two pieces two. What else comes (neighbour discovery) is less than one for each.
    let whole = received("b") - before;
    assert!((100..200).contains(&whole), "{whole}");
    for _ in 0..100 {
        reaches(&near, &far, 8973);
    }
    let halved = received("b") - before - whole;
    assert!((200..300).contains(&halved), "{halved}");
}

#[lab_test]
fn an_agent_is_told_its_place() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['left', 'right']\ndevice = { kind = 'none' }\nlink = { rate = '1.25Gbit/s' }");
    assert_eq!(lab.hosts()[&host("left")].port, 4747);
    let told = agents_told(
        "--name left --allow-frames all --allow-server any --allow-uid any --allow-cold-cache --data-address 198.18.0.1 --data-address 2001:2::1",
    );
    let [(pid, words)] = &told[..] else { panic!("one agent of that name: {told:?}") };
    assert!(words.ends_with("--link-speed eth0=1250000000bit/s"), "{words}");
    let descriptor = words.split_ascii_whitespace().nth(2).expect("serve --listen-fd N");
    let link = |path: String| fs::read_link(&path).expect(&path).to_string_lossy().into_owned();
    assert!(link(format!("/proc/{pid}/fd/{descriptor}")).starts_with("socket:"));
    assert_ne!(link(format!("/proc/{pid}/ns/net")), link(String::from("/proc/self/ns/net")));
    let error = lab.run_in(&host("middle"), Command::new("true")).expect_err("no such host").to_string();
    assert!(error.contains("`middle`") && error.contains("left, right"), "{error}");
}

#[lab_test]
fn an_agent_that_does_not_start_is_quoted() {
    let _alone = alone();
    let bench = Bench::named("cable").expect("built in");
    let start = |program: &str| {
        let options = LabOptions { program: program.into(), keep: false, folders: Vec::new() };
        wait_for(Lab::up(&bench, &options)).err().expect("no agent").to_string()
    };
    let error = start("/nonexistent/linerate");
    assert!(error.contains("host a") && error.contains("/nonexistent/linerate"), "{error}");
    // `ls serve --listen-fd ...` complains and ends.
    let error = start("/bin/ls");
    assert!(error.contains("host a") && error.contains("exit status: 2") && error.contains("listen-fd"), "{error}");
    // `echo serve ...` prints a line, but another one.
    let error = start("/bin/echo");
    assert!(error.contains("not an agent URL"), "{error}");
}
