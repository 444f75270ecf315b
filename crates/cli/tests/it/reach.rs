//! Hosts that are hard to reach: by link-local addresses, by names of which one address is dead, over paths that lose large packets.

use crate::firewall::{Host, all_measure};
use crate::program::{TestFolder, words};
use linerate_sys::ethtool::Ethtool;
use linerate_testsuite::lab_test;

/// Runs the program on `client`. Returns what it printed.
fn runs(client: &Host, place: &TestFolder, line: &str) -> crate::program::Ran {
    client.network.enter(|| place.run(&words(line))).expect("entered")
}

#[lab_test]
fn every_trial_runs_by_link_local_addresses() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("near", "10.9.0.1"), &server, ("far", "10.9.0.2"));
    for (host, name, address) in [(&client, "near", "fe80::91"), (&server, "far", "fe80::92")] {
        host.does(&format!("ip address add {address}/64 dev {name} nodad"));
    }
    let (agent, url) = server.serves(&place, "");
    let secrets = url.split_once('#').expect("an agent URL").1;
    all_measure(&client, &place, &format!("linerate://[fe80::92%near]:4747#{secrets}"));
    let unzoned = format!("stream linerate://[fe80::92]:4747#{secrets}");
    runs(&client, &place, &unzoned).says(3, &["TCP to [fe80::92]:4747", "%eth0"]);
    let elsewhere = format!("stream linerate://[fe80::92%gone]:4747#{secrets}");
    runs(&client, &place, &elsewhere).says(3, &["no interface `gone`", "ip link"]);
    drop(agent);
    let (_agent, url) = server.serves(&place, "--listen [fe80::92%far]:4747");
    let secrets = url.split_once('#').expect("an agent URL").1;
    assert!(url.contains("[fe80::92%far]:4747"), "{url}");
    let line = format!("stream linerate://[fe80::92%near]:4747#{secrets} -t 500ms -O 100ms -r 1 --json");
    let ran = runs(&client, &place, &line);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[lab_test(Program("nft"))]
fn a_path_that_loses_large_packets_is_named_and_measured() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    for host in [&client, &server] {
        let ethtool = host.network.enter(Ethtool::open).expect("entered").expect("a socket");
        ethtool.send_frame_by_frame("eth0").expect("offloads are off");
        host.does(
            "nft table inet hole { chain input { type filter hook input priority 0; meta length > 1400 drop; }; }",
        );
    }
    let ran = runs(&client, &place, &format!("stream {url} -t 500ms -O 100ms -r 1 --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record = ran.json();
    assert!(record["results"][0]["main"]["median"].as_f64().is_some_and(|median| median > 0.0), "{record}");
    assert!(record.to_string().contains("caveat-large-packets-lost"), "the path is named");
}

#[lab_test]
fn data_go_to_the_address_that_answered() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    client.does("ip address add fd00:9::1/64 dev eth0 nodad");
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    let secrets = url.split_once('#').expect("an agent URL").1;
    // Nobody has the first address.
    let names = place.file("hosts", "fd00:9::2 twofold\n10.9.0.2 twofold\n127.0.0.1 localhost\n");
    for trial in ["stream", "stream --udp --rate 1Mbit/s", "transact", "rpc"] {
        let line = format!("{trial} linerate://twofold:4747#{secrets} -t 500ms -O 100ms -r 1 --json");
        let shell = place.command_after(&format!("mount --bind {names} /etc/hosts"), &words(&line));
        let ran = client.network.enter(|| place.start_command(shell)).expect("entered").end();
        assert_eq!(ran.code, Some(0), "{trial}: {}", ran.err);
        let record = ran.json();
        assert!(
            record["results"][0]["main"]["median"].as_f64().is_some_and(|median| median > 0.0),
            "{trial}: {record}"
        );
    }
}

#[lab_test(Program("nft"))]
fn refused_silent_and_stalled_connections_have_their_own_errors() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    let (agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    let stream = format!("stream {url} -t 500ms -r 1");
    // Packets with data are lost, of any size; those of the TCP handshake pass.
    server.does("nft table inet hole { chain input { type filter hook input priority 0; meta length > 80 drop; }; }");
    runs(&client, &place, &stream).says(3, &["10.9.0.2:4747", "packets of more than 552 bytes are lost", "tracepath"]);
    server.does("nft flush chain inet hole input");
    server.does("nft add rule inet hole input drop");
    runs(&client, &place, &stream).says(3, &["TCP to 10.9.0.2:4747: no answer within 5 s", "firewall"]);
    server.does("nft flush chain inet hole input");
    drop(agent);
    runs(&client, &place, &stream).says(3, &["TCP to 10.9.0.2:4747: refused", "linerate serve"]);
}
