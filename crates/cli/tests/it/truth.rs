//! Figures of labs of known truth: links of known rate, planted drops, a socket buffer too small.
//!
//! The limits are far below what a busy machine does. How exact the figures are on a quiet one is no matter of these tests.

use crate::program::{TestFolder, close, counted, number, words};
use linerate_testsuite::{alone, lab_test, server_test, wait_until};
use serde_json::Value;

/// How far two rates of windows of 1 s to 2 s may differ on a busy machine: a reader that is held up for 200 ms counts what waited
/// for it in one window more, or less.
const BUSY: f64 = 0.3;

fn payload(record: &Value, index: usize) -> f64 {
    number(record, &format!("/results/{index}/received/payload_bps/median"))
}

/// A busy machine may keep the sender from filling the link, but the link carries no more than its rate.
#[lab_test]
fn a_shaped_link_carries_no_more_than_its_rate_whatever_the_datagrams() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --link 5Mbit/s -- stream a b --udp --sizes 64,8192 --time 1s --warmup 300ms --repeats 3 --json",
    ));
    // 8,192 bytes travel as five full packets and one of 820 bytes: 5 x 1538 + 858 on the wire.
    for (index, share) in [64.0 / 130.0, 8192.0 / 8548.0].into_iter().enumerate() {
        let result = &record["results"][index];
        // A reader that is held up as the window begins counts what waited for it. It would have to be held up for 30 ms
        // in each of the three runs; without preamble and gap counted, 64 bytes would come to 1.18.
        let [low, high] =
            ["low", "high"].map(|end| number(result, &format!("/received/payload_bps/{end}")) / (5e6 * share));
        assert!(low < 1.03 && high > 0.5, "result {index}: {low} to {high} of the limit");
        assert_eq!(number(result, "/limit/line_bps"), 5e6, "the agents know the link's speed");
    }
    let trials = record["trials"].as_array().expect("each trial is there");
    for trial in trials.iter().filter(|trial| trial["standing"]["is"] == "counted") {
        let path = &trial["counts"][0]["flows"][0];
        let of = |part| number(path, part);
        let (sent, arrived) = (of("/client/sent/messages"), of("/server/received/arrived"));
        let lost = of("/forward_loss/lost") - of("/client/sent/not_sent") - of("/client/sent/refused");
        assert_eq!(sent, arrived + lost, "what was sent arrived or was lost: {path}");
    }
}

/// TCP with timestamps carries 1448 of 1538 bytes.
#[lab_test]
fn three_senders_share_a_link_that_they_fill() {
    let record = TestFolder::new().measure(&words(
        "lab --link 10Mbit/s -- stream a,b,c d --congestion cubic --time 3s --warmup 500ms --repeats 1 --json",
    ));
    // What waits for a retransmission at the window's edges moves the total by a queue's worth, and a host that stands still for a second
    // leaves the link idle for a third of the window.
    close("the total", payload(&record, 0), 1e7 * 1448.0 / 1538.0, 0.4);
    let shares = record["results"][0]["shares"].as_array().expect("each share is there");
    let sum: f64 = shares.iter().map(|share| number(share, "/main/median")).sum();
    assert_eq!(shares.len(), 3);
    close("the shares' sum", sum, payload(&record, 0), 1e-6);
}

#[lab_test]
fn a_planted_drop_is_counted_and_reaches_no_counter() {
    let place = TestFolder::new();
    let bench = place.lossy_bench();
    let record = place.measure(&words(&format!(
        "lab --bench {bench} -- stream a b --udp --size 256 --rate 2kpps --time 2s --repeats 1 --no-offload --json"
    )));
    let loss = &record["results"][0]["loss"];
    let place = |name: &str| number(loss, &format!("/places/{name}"));
    // What a sender that was held up left out, or its own queue dropped, never came to the bridge.
    let sent = number(loss, "/of") - place("not_sent") - place("sender_queue");
    assert!(sent > 500.0, "{sent} datagrams are enough to tell: {loss}");
    // What the machine's input queues dropped, of others too, is taken for lost there and not on the path. A tenth is planted;
    // of 500 draws four standard deviations are half of it.
    let dropped = number(counted(&record), "/hosts/b/softnet/dropped");
    let unaccounted = place("unaccounted");
    assert!(unaccounted > 0.05 * sent - dropped && unaccounted < 0.15 * sent, "where they were lost: {loss}");
    let behind_the_sender = number(loss, "/lost") - place("not_sent") - place("sender_queue");
    assert!(behind_the_sender > 0.05 * sent, "a tenth is planted: {loss}");
}

/// 8,192 bytes travel in six fragments. With a loss of 5 %, 26 % of the datagrams lose one of them: 1 - 0.95^6.
///
/// The kernel keeps the others for 30 s, in 4 MB at most, and takes no more datagrams in fragments once these are full. At 100 a second
/// four attempts fit.
#[lab_test]
fn datagrams_that_lose_a_fragment_on_the_path_are_lost_in_reassembly() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --device path,loss=5% -- stream a b --udp --size 8192 --rate 100pps --time 3s --warmup 300ms --repeats 1 --json",
    ));
    let path = &counted(&record)["counts"][0]["flows"][0];
    assert_eq!(number(path, "/client/sent/fragments"), 6.0, "{path}");
    let loss = &record["results"][0]["loss"];
    let place = |name: &str| number(loss, &format!("/places/{name}"));
    let sent = number(loss, "/of") - place("not_sent") - place("sender_queue");
    assert!(sent > 200.0, "{sent} datagrams are enough to tell: {loss}");
    // What the machine's input queues dropped, of others too, is taken for lost there. Of 200 draws four standard deviations are half of it.
    let dropped = number(counted(&record), "/hosts/b/softnet/dropped");
    let (reassembly, unaccounted) = (place("reassembly"), place("unaccounted"));
    let found = reassembly + unaccounted;
    assert!(found > 0.13 * sent - dropped && found < 0.4 * sent, "where they were lost: {loss}");
    // That all six are lost happens to none. Those of before the receiving host's own watch began, late on a busy machine, are in no
    // counter of it.
    assert!(unaccounted < 0.5 * reassembly + 0.02 * sent, "where they were lost: {loss}");
}

#[lab_test]
fn a_small_socket_buffer_is_where_datagrams_die() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 -- stream a b --udp --size 1024 --receive-buffer 4096 --time 2s --repeats 1 --no-offload --json",
    ));
    let loss = &record["results"][0]["loss"];
    let place = |name: &str| number(loss, &format!("/places/{name}"));
    // The kernel's own queue takes its part of what comes faster than the machine takes it in.
    let behind_the_sender = number(loss, "/lost") - place("not_sent") - place("sender_queue");
    let accounted = place("socket_buffer") + place("receiver_queue");
    assert!(place("socket_buffer") > 100.0, "a buffer of two datagrams must overflow: {loss}");
    assert!(accounted >= 0.9 * behind_the_sender, "where they were lost: {loss}");
}

/// Each way takes 5 ms, and a busy machine adds to it.
#[lab_test]
fn a_delayed_path_takes_no_less_than_planted() {
    let record = TestFolder::new()
        .measure(&words("lab --hosts 2 --device path,delay=5ms -- transact a b --udp --time 2s --repeats 1 --json"));
    let latency = ["/p50", "/p99"].map(|part| number(&record, &format!("/results/0/latency_ns{part}")));
    assert!(latency.is_sorted() && (10e6..100e6).contains(&latency[0]), "{latency:?} ns for a round trip of 10 ms");
}

/// Lab hosts share a clock, so the true offset is 0. How narrow the bounds are is for `cargo xtask bench clock`.
#[lab_test]
fn the_clock_offset_is_within_its_uncertainty_and_puts_both_ends_on_one_axis() {
    let record = TestFolder::new()
        .measure(&words("lab --hosts 2 --link 10Mbit/s -- stream a b --time 200ms --warmup 100ms --repeats 3 --json"));
    let trials = record["trials"].as_array().expect("there are trials");
    assert!(trials.len() >= 3);
    for trial in trials {
        for host in ["a", "b"] {
            let clock = &trial["clocks"][host];
            let (offset, uncertainty) = (number(clock, "/offset_ns"), number(clock, "/uncertainty"));
            assert!(offset.abs() <= uncertainty, "{host}: {clock}");
            assert!((4.0..=32.0).contains(&number(clock, "/exchanges")), "{host}: {clock}");
        }
    }
}

/// iperf3 and nuttcp on the same link, in the same lab, must see the same.
#[server_test(Root, Program("iperf3"), Program("nuttcp"))]
fn iperf3_and_nuttcp_see_the_same_rates() {
    let _alone = alone();
    let place = TestFolder::new();
    let up = place.run(&["lab", "--hosts", "2", "--link", "10Mbit/s", "--keep"]);
    assert_eq!(up.code, Some(0), "{}", up.err);
    let in_b = |server: &str, port: u16| {
        let running = place.start(&[&["lab", "shell", "b", "--"], &words(server)[..]].concat());
        // In /proc/net/tcp: the local address, its port in hexadecimal, no remote address, and 0A for LISTEN.
        let (v4, v6) = (format!(":{port:04X} 00000000:0000 0A"), format!(":{port:04X} {:032}:0000 0A", 0));
        wait_until("the server listens", || {
            let sockets = place.run(&words("lab shell b -- cat /proc/net/tcp /proc/net/tcp6")).out;
            (sockets.contains(&v4) || sockets.contains(&v6)).then_some(())
        });
        running
    };
    let in_a = |client: &str| {
        let ran = place.run(&[&["lab", "shell", "a", "--"], &words(client)[..]].concat());
        assert_eq!(ran.code, Some(0), "{client}: {}{}", ran.out, ran.err);
        ran
    };
    let own = |line: &str| payload(&place.measure(&words(line)), 0);

    let server = in_b("iperf3 -s -1 -4", 5_201);
    let theirs = in_a("iperf3 -c 198.18.0.2 -J -t 2 -O 1 -l 8K").json();
    drop(server);
    let ours = own("stream a b --time 2s --repeats 1 --json");
    close("tcp beside iperf3", ours, number(&theirs, "/end/sum_received/bits_per_second"), BUSY);

    let server = in_b("iperf3 -s -1 -4", 5_201);
    let theirs = in_a("iperf3 -c 198.18.0.2 -J -t 2 -u -l 1448 -b 5M").json();
    drop(server);
    let record = place.measure(&words("stream a b --udp --size 1448 --rate 5Mbit/s --time 2s --repeats 1 --json"));
    let (paced, theirs) = (payload(&record, 0), number(&theirs, "/end/sum/bits_per_second"));
    // A sender that is held up leaves out what was due, and says so. iperf3 makes up for it.
    if record["results"][0]["caveats"].to_string().contains("below-offered-rate") {
        assert!(paced > 0.0 && paced < (1.0 + BUSY) * theirs, "{paced} beside {theirs}");
    } else {
        close("udp beside iperf3", paced, theirs, BUSY);
    }

    let server = in_b("nuttcp -1 -4", 5_000);
    // As in `... megabytes=45.0 real_seconds=4.00 rate_Mbps=94.1234 tx_cpu=0 ...`.
    let theirs = in_a("nuttcp -fparse -T2 198.18.0.2").out;
    drop(server);
    let rate = theirs.split_whitespace().find_map(|field| field.strip_prefix("rate_Mbps=")?.parse::<f64>().ok());
    close("tcp beside nuttcp", ours, rate.unwrap_or_else(|| panic!("no rate in {theirs}")) * 1e6, BUSY);
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

/// An open loop times all requests that were due in the window, a closed one all that were answered in it or under way at its end.
#[lab_test]
fn transactions_are_timed_and_counted() {
    let place = TestFolder::new();
    place.run(&["lab", "--keep", "--hosts", "2"]).says(0, &["lab down"]);
    for options in [&["--udp"][..], &["--connect"], &["--rate", "200"], &["--outstanding", "8", "--request", "100"]] {
        let mut arguments = words("transact a b --time 1500ms --warmup 100ms --repeats 1 --json");
        arguments.extend(options);
        let record = place.measure(&arguments);
        let result = &record["results"][0];
        let client = &counted(&record)["counts"][0]["flows"][0]["client"]["transactions"];
        let completed = number(client, "/completed");
        let timed = number(result, "/latency_ns/count");
        let open_loop = options.contains(&"--rate");
        if open_loop {
            // 200 a second for 1.5 s. A client that is held up for long leaves some out, and says so.
            assert_eq!(timed + number(client, "/not_sent"), 300.0, "{options:?}: {timed} timed");
        } else {
            // Those under way at its end too: eight at the most.
            assert!((0.0..=8.0).contains(&(timed - completed)), "{options:?}: {timed} timed, {completed} completed");
        }
        assert_eq!(number(result, "/failed"), 0.0);
        assert!(number(result, "/latency_ns/p50") <= number(result, "/latency_ns/p99"));
        // Of requests that wait for a client that is held up, more may be answered in the window than are due in it.
        let (rate, most) =
            (number(result, "/transactions_per_s/median"), if open_loop { 1.3 * 200.0 } else { f64::INFINITY });
        assert!(rate > 0.0 && rate < most, "{options:?}: {rate} transactions a second");
    }
    place.run(&["lab", "down"]).says(0, &["is down"]);
}
