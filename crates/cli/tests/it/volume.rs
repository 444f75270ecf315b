//! Streams that end when so many bytes were sent, as a user types them.

use crate::program::{TestFolder, number, wait_until_gone, words};
use linerate_testsuite::servers::Iperf3;
use linerate_testsuite::{lab_test, server_test, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// The payload bytes that the ends of the only path of trial `index` sent and received: the client, then the server.
fn moved(record: &Value, index: usize) -> [(Option<u64>, Option<u64>); 2] {
    let ends = &record["trials"][index]["counts"][0]["flows"][0];
    ["client", "server"].map(|end| {
        let bytes = |way: &str| ends[end][way]["payload_bytes"].as_u64();
        (bytes("sent"), bytes("received"))
    })
}

fn caveats(record: &Value) -> Vec<&str> {
    let all = record["results"][0]["caveats"].as_array().expect("caveats");
    all.iter().filter_map(|caveat| caveat["kind"].as_str()).collect()
}

#[lab_test]
fn runs_end_when_so_many_bytes_were_sent() {
    let place = TestFolder::new();
    let all = Some(2_000_000);
    for (options, expected) in [
        ("-n 2M -P 2", [(all, None), (None, all)]),
        ("-k 20 -l 100k -R", [(None, all), (all, None)]),
        ("--bytes 2M --bidir", [(all, all), (all, all)]),
    ] {
        let record =
            place.measure(&words(&format!("lab --hosts 2 --link 100Mbit/s -- stream a b {options} -r 2 --json")));
        for index in [0, 1] {
            assert_eq!(moved(&record, index), expected, "{options}");
        }
        assert!(number(&record, "/results/0/main/median") > 0.0, "{options}");
        let caveats = caveats(&record);
        let wrong = ["off-window", "not-steady", "volume-not-sent"];
        assert!(!caveats.iter().any(|kind| wrong.contains(kind)), "{options}: {caveats:?}");
    }
    // All of it is told again.
    place.run(&words("report --format markdown")).prints(0, &["Each run sent 2 MB from each sender"]);
}

#[lab_test]
fn a_run_of_datagrams_sends_whole_ones() {
    let line = "lab --hosts 2 --link 100Mbit/s -- stream a b -u -b 20Mbit/s -n 1M --size 1000 -P 3 -r 1 --json";
    let record = TestFolder::new().measure(&words(line));
    let [client, server] = moved(&record, 0);
    assert_eq!((client, server.0), ((Some(1_000_000), None), None));
    // A host that is held up may lose some.
    assert!(server.1.is_some_and(|bytes| 0 < bytes && bytes <= 1_000_000), "{server:?}");
}

#[lab_test]
fn ctrl_c_in_the_middle_keeps_the_runs_before() {
    let place = TestFolder::new();
    let lab = place.start(&words("lab --hosts 2 --link 10Mbit/s -- stream a b -n 500k -r 300"));
    let agents = lab.wait_for_children(2);
    wait_until("a trial counts", || (place.trials() > 0).then_some(()));
    lab.signal(Signal::SIGINT);
    let ran = lab.end();
    assert!(ran.err.contains("interrupted") && ran.out.contains("payload"), "{}{}", ran.err, ran.out);
    wait_until_gone(&agents);
}

#[server_test(Program("iperf3"))]
fn a_server_of_iperf3_has_so_many_bytes_too() {
    let (place, server) = (TestFolder::new(), Iperf3::serve(&[]));
    let url = format!("iperf3://127.0.0.1:{}", server.port());
    for (options, own) in [("-n 5M", (Some(5_000_000), None)), ("-k 50 -l 100k -R", (None, Some(5_000_000)))] {
        let record = place.measure(&words(&format!("stream {url} {options} -r 1 --json")));
        assert_eq!(moved(&record, 0)[0], own, "{options}");
        assert!(!caveats(&record).contains(&"volume-not-sent"), "{options}");
    }
}

#[test]
fn bytes_and_a_time_exclude_each_other() {
    let place = TestFolder::new();
    for (options, part) in [
        ("-n 1M -t 10s", "'--bytes <BYTES>' cannot be used with '--time <TIME>'"),
        ("-n 1M -k 10", "cannot be used with"),
        ("-n 1Mbit", "not a number of bytes"),
        ("-n 0", "--bytes 0 sends nothing"),
        ("-k -1", "unexpected argument"),
    ] {
        place.run(&words(&format!("stream local local {options}"))).says(2, &[part]);
    }
}
