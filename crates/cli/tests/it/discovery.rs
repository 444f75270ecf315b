//! Agents that announce themselves on a network, and hosts that look for them.

use crate::firewall::Host;
use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;
use nix::sys::signal::Signal;

#[lab_test]
fn an_agent_is_found_by_its_neighbours_if_it_announces_itself() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    let discovers = |time: &str| format!("hosts discover --time {time}");
    let (silent, _) = server.serves(&place, "--listen 10.9.0.2:4748 --name silent");
    for listening in ["10.9.0.2:4747", "0.0.0.0:4747"] {
        let (agent, url) = server.serves(&place, &format!("--listen {listening} --name rack-1 --announce"));
        // It is told as soon as it is found.
        let mut looking = client.network.enter(|| place.start(&words(&discovers("60s")))).expect("entered");
        let line = looking.line();
        assert!(line.starts_with("rack-1  10.9.0.2:4747  linerate "), "{line}");
        let (_, secrets) = url.split_once('#').expect("a token and a fingerprint");
        let (token, _) = secrets.split_once('.').expect("a token and a fingerprint");
        assert!(!line.contains(token), "{line}");
        looking.signal(Signal::SIGINT);
        looking.end().says(3, &["interrupted"]);
        drop(agent);
    }
    let none = client.network.enter(|| place.run(&words(&discovers("2s")))).expect("entered");
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""), "{}", none.err);
    assert!(none.err.contains("linerate serve --announce"), "{}", none.err);
    drop(silent);
}

#[lab_test]
fn an_agent_that_nobody_reaches_is_not_announced() {
    let (place, host) = (TestFolder::new(), Host::new());
    let refused = host.network.enter(|| place.run(&words("serve --ephemeral --listen 127.0.0.1:0 --announce")));
    refused.expect("entered").says(2, &["127.0.0.1", "--announce needs an address that others reach"]);
}
