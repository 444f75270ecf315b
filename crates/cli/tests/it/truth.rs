//! Figures against planted truth: links of known rate, planted drops, a socket buffer too small.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::{alone, lab_test, server_test};
use serde_json::Value;

fn payload(record: &Value) -> f64 {
    number(record, "/results/0/received/payload_bps/median")
}

/// 1472 of 1538 bytes and 64 of 130 on the wire are payload; TCP with timestamps carries 1448 of 1538.
#[lab_test]
fn a_shaped_link_carries_what_it_must() {
    let _alone = alone();
    for (rate, bps) in [("100Mbit/s", 1e8), ("1Gbit/s", 1e9)] {
        let udp = ["--udp", "--size", "1472"];
        for (what, options, share) in [("udp", &udp[..], 1472.0 / 1538.0), ("tcp", &[], 1448.0 / 1538.0)] {
            let mut arguments =
                vec!["lab", "--link", rate, "--", "stream", "a", "b", "--time", "2s", "--repeats", "1", "--json"];
            arguments.extend(options);
            let record = TestFolder::new().measure(&arguments);
            close(&format!("{what} at {rate}"), payload(&record), bps * share, 0.01);
            assert_eq!(number(&record, "/results/0/limit/line_bps"), bps, "the agents know the link's speed");
            assert_eq!(record["results"][0]["verdict"]["limit"], "wire");
        }
    }
}

#[lab_test]
fn small_datagrams_and_fragments_fill_a_shaped_link_too() {
    let _alone = alone();
    let record = TestFolder::new()
        .measure(&words("lab --link 100Mbit/s -- stream a b --udp --sizes 64,8192 --time 1500ms --repeats 1 --json"));
    // 8,192 bytes travel as five full packets and one of 820 bytes: 5 x 1538 + 858 on the wire.
    for (index, share) in [(0, 64.0 / 130.0), (1, 8192.0 / 8548.0)] {
        let payload = number(&record, &format!("/results/{index}/received/payload_bps/median"));
        close(&format!("result {index}"), payload, 1e8 * share, 0.01);
    }
}

#[lab_test]
fn a_planted_drop_is_counted_and_placed_on_the_wire() {
    let _alone = alone();
    let place = TestFolder::new();
    let bench = place.file(
        "lossy.toml",
        "name = \"lossy\"\nhosts = [\"a\", \"b\"]\n[device]\nkind = \"bridge\"\n[[fault]]\nkind = \"loss\"\nat = \"device:b\"\nratio = \"1/100\"\n",
    );
    let record = place.measure(&words(&format!(
        "lab --bench {bench} -- stream a b --udp --size 256 --rate 60kpps --time 4s --repeats 1 --no-offload --json"
    )));
    let loss = &record["results"][0]["loss"];
    let (lost, of, wire) = (number(loss, "/lost"), number(loss, "/of"), number(loss, "/places/wire"));
    assert!(of > 200_000.0, "{of} datagrams are enough to tell");
    close("planted loss", wire, of / 100.0, 0.1);
    assert!(wire >= 0.99 * lost, "of {lost} lost only {wire} are placed on the wire");
}

#[lab_test]
fn a_small_socket_buffer_is_where_datagrams_die() {
    let _alone = alone();
    let record = TestFolder::new().measure(&words(
        "lab -- stream a b --udp --size 1024 --receive-buffer 4096 --time 1s --repeats 1 --no-offload --json",
    ));
    let loss = &record["results"][0]["loss"];
    let (lost, buffer) = (number(loss, "/lost"), number(loss, "/places/socket_buffer"));
    assert!(lost > 100.0, "a buffer of two datagrams must overflow; lost {lost}");
    assert!(buffer >= 0.95 * lost, "of {lost} lost only {buffer} are placed in the socket buffer");
}

#[lab_test]
fn three_senders_fill_one_receiver() {
    let _alone = alone();
    let record = TestFolder::new()
        .measure(&words("lab --link 100Mbit/s -- stream a,b,c d --congestion cubic --time 5s --repeats 1 --json"));
    // What waits for a retransmission at the window's edges moves the total by a queue's worth.
    close("the total", payload(&record), 1e8 * 1448.0 / 1538.0, 0.02);
    let shares = record["results"][0]["shares"].as_array().expect("each share is there");
    let sum: f64 = shares.iter().map(|share| number(share, "/payload_bps/median")).sum();
    assert_eq!(shares.len(), 3);
    close("the shares' sum", sum, payload(&record), 1e-6);
}

/// Each way takes 5 ms; an idle core adds its waking up.
#[lab_test]
fn a_delayed_path_takes_as_long_as_planted() {
    let _alone = alone();
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --device reference,delay=5ms -- transact a b --udp --time 2s --repeats 1 --json",
    ));
    let p50 = number(&record, "/results/0/latency_ns/p50");
    assert!((10e6..11e6).contains(&p50), "{p50} ns for a round trip of 10 ms");
}

/// iperf3 and nuttcp on the same link, in the same lab, must see the same.
#[server_test(Root, Program("iperf3"), Program("nuttcp"))]
fn peers_agree() {
    let _alone = alone();
    let place = TestFolder::new();
    let up = place.run(&["lab", "--link", "100Mbit/s", "--keep"]);
    assert_eq!(up.code, Some(0), "{}", up.err);
    let in_b = |server: &str| {
        let running = place.start(&[&["lab", "shell", "b", "--"], &words(server)[..]].concat());
        std::thread::sleep(std::time::Duration::from_millis(500));
        running
    };
    let in_a = |client: &str| {
        let ran = place.run(&[&["lab", "shell", "a", "--"], &words(client)[..]].concat());
        assert_eq!(ran.code, Some(0), "{client}: {}{}", ran.out, ran.err);
        ran
    };
    let own = |line: &str| payload(&place.measure(&words(line)));

    let server = in_b("iperf3 -s -1 -4");
    let theirs = in_a("iperf3 -c 198.18.0.2 -J -t 4 -O 1").json();
    drop(server);
    let ours = own("stream a b --time 3s --repeats 1 --json");
    close("tcp beside iperf3", ours, number(&theirs, "/end/sum_received/bits_per_second"), 0.02);

    let server = in_b("iperf3 -s -1 -4");
    let theirs = in_a("iperf3 -c 198.18.0.2 -J -t 3 -u -l 1448 -b 50M").json();
    drop(server);
    let paced = own("stream a b --udp --size 1448 --rate 50Mbit/s --time 2s --repeats 1 --json");
    close("udp beside iperf3", paced, number(&theirs, "/end/sum/bits_per_second"), 0.02);

    let server = in_b("nuttcp -1 -4");
    // As in `... megabytes=45.0 real_seconds=4.00 rate_Mbps=94.1234 tx_cpu=0 ...`.
    let theirs = in_a("nuttcp -fparse -T4 198.18.0.2").out;
    drop(server);
    let rate = theirs.split_whitespace().find_map(|field| field.strip_prefix("rate_Mbps=")?.parse::<f64>().ok());
    close("tcp beside nuttcp", ours, rate.unwrap_or_else(|| panic!("no rate in {theirs}")) * 1e6, 0.02);
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

/// Latency at a set rate counts from when a request was due, so it is no shorter than in a closed loop.
#[lab_test]
fn transactions_are_timed_and_counted() {
    let _alone = alone();
    for options in [&["--udp"][..], &["--connect"], &["--rate", "2k"], &["--outstanding", "8", "--request", "100"]] {
        let mut arguments = words("lab -- transact a b --time 1s --repeats 1 --json");
        arguments.extend(options);
        let record = TestFolder::new().measure(&arguments);
        let result = &record["results"][0];
        let rate = number(result, "/transactions_per_s/median");
        // An open loop times all that was due in the window, a closed one what was answered in it.
        let timed = match options {
            ["--rate", ..] => 2_000.0,
            _ => number(&record, "/trials/0/counts/0/flows/0/client/transactions/completed"),
        };
        assert_eq!(number(result, "/latency_ns/count"), timed);
        assert_eq!(number(result, "/failed"), 0.0);
        assert!(number(result, "/latency_ns/p50") <= number(result, "/latency_ns/p99"));
        if options.contains(&"2k") {
            close("requests at a set rate", rate, 2_000.0, 0.01);
        } else {
            assert!(rate > 500.0, "{options:?}: {rate} transactions a second");
        }
    }
}
