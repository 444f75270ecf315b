//! Trials over a network that is cut, or forgets connections, while they run: nothing that an agent has counted is lost.

use crate::firewall::{Host, behind_nat};
use crate::program::{TestFolder, words};
use linerate_testsuite::{lab_test, wait_until};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

/// Longer than the 5 s after which a silent connection once counted as gone.
const CUT: Duration = Duration::from_secs(6);

/// A client and a server on one link, which also carries the requests to the agent.
fn hosts() -> (Host, Host) {
    let (client, server) = (Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    (client, server)
}

/// Runs a trial whose link drops everything for [`CUT`] once it has carried something for a second, and returns its record.
fn cut_in_the_middle(trial: &str) -> Value {
    let (place, (client, server)) = (TestFolder::new(), hosts());
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    let line = trial.replace("URL", &url);
    let running = client.network.enter(|| place.start(&words(&line))).expect("entered");
    wait_until("the trial carries data", || (client.packets_sent("eth0") > 100).then_some(()));
    sleep(Duration::from_secs(1));
    server.does("nft table inet cut { chain in { type filter hook input priority 0; iif eth0 drop; }; }");
    server.does("nft add chain inet cut out { type filter hook output priority 0; }");
    server.does("nft add rule inet cut out oif eth0 drop");
    sleep(CUT);
    server.does("nft delete table inet cut");
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    ran.json()
}

/// The agent's counts come through a cut of the network that carries its requests too.
fn keeps_its_counts(trial: &str) {
    let record = cut_in_the_middle(trial);
    let result = &record["results"][0];
    assert!(result["main"]["median"].as_f64().is_some_and(|median| median > 0.0), "{trial}: {result:#}");
}

/// The result of a trial over a path that is cut has the outage, and the verdict names it.
fn names_the_outage(trial: &str) {
    let line = format!("lab --device path,delay=1ms,cut=4s:3s -- {trial} --warmup 500ms --repeats 1 --json");
    let ran = TestFolder::new().run(&words(&line));
    assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    let record = ran.json();
    let (result, trial_result) = (&record["results"][0], &record["trials"][0]);
    let outages = trial_result["outages"].as_array().unwrap_or_else(|| panic!("{trial}: no outage in {trial_result}"));
    assert_eq!(outages.len(), 1, "{trial}: {outages:?}");
    assert_eq!(result["verdict"]["limit"], "outage", "{trial}: {:#}", result["verdict"]);
}

#[lab_test(Program("nft"))]
fn counts_of_tcp_come_through_a_cut() {
    keeps_its_counts("stream URL --time 14s --warmup 500ms --rate 20Mbit/s --repeats 1 --json");
}

#[lab_test(Program("nft"))]
fn counts_of_udp_come_through_a_cut() {
    keeps_its_counts("stream URL --udp --time 10s --warmup 500ms --rate 10Mbit/s --repeats 1 --json");
}

#[lab_test(Program("nft"))]
fn counts_of_transactions_come_through_a_cut() {
    keeps_its_counts("transact URL --time 14s --warmup 500ms --rate 500 --repeats 1 --json");
}

#[lab_test]
fn cut_of_a_tcp_stream_is_an_outage() {
    names_the_outage("stream a b --rate 20Mbit/s --time 10s");
}

#[lab_test]
fn cut_of_a_udp_stream_is_an_outage() {
    names_the_outage("stream a b --udp --rate 10Mbit/s --time 8s");
}

#[lab_test]
fn cut_of_transactions_is_an_outage() {
    names_the_outage("transact a b --rate 500 --time 10s");
}

/// A NAT forgets connections that carry nothing for 2 s, and then drops what comes on them.
#[lab_test(Program("nft"))]
fn counts_come_through_a_nat_that_forgets_idle_connections() {
    let place = TestFolder::new();
    let [client, router, server] = behind_nat();
    router.does("nft table ip wall { chain through { type filter hook forward priority 0; ct state invalid drop; }; }");
    for setting in ["nf_conntrack_tcp_timeout_established=2", "nf_conntrack_tcp_loose=0"] {
        router.does(&format!("sysctl -qw net.netfilter.{setting}"));
    }
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    let line = format!("stream {url} --time 6s --warmup 500ms --rate 10Mbit/s --repeats 1 --json");
    let ran = client.network.enter(|| place.run(&words(&line))).expect("entered");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.json()["results"][0]["main"]["median"].as_f64().is_some_and(|median| median > 0.0));
}
