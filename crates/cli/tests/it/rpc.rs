//! ONC RPC through the command line: measured in a lab, found by Debian's rpcinfo.

use crate::program::{TestFolder, close, counted, number, words};
use linerate_testsuite::{lab_test, server_test};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Over a slow link, calls under way fill it whatever carries them, and every field of the record is there.
#[lab_test]
fn calls_fill_a_slow_link_over_udp_and_tcp() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --link 5Mbit/s -- rpc b --sizes 1K,8K --outstanding 8 --time 2s --warmup 200ms --repeats 1 --json",
    ));
    let results = record["results"].as_array().expect("results");
    let names: Vec<&str> = results.iter().filter_map(|result| result["name"].as_str()).collect();
    let expected = ["udp write", "udp read", "tcp write", "tcp read"]
        .iter()
        .flat_map(|kind| ["1000", "8000"].map(|size| format!("rpc {kind} {size}")));
    assert_eq!(names, expected.collect::<Vec<_>>());
    for result in results {
        let name = &result["name"];
        assert_eq!(result["task"], "rpc", "{name}");
        assert_eq!(result["call"], name.as_str().and_then(|name| name.split(' ').nth(2)).expect("a name"), "{name}");
        let (size, done) = (number(result, "/message_bytes"), number(result, "/transactions_per_s/median"));
        let calls = number(result, "/received/messages_per_s/median");
        close(&format!("{name}: payload"), number(result, "/received/payload_bps/median"), calls * size * 8.0, 0.001);
        // The data of a write are counted by the server, whose window opens when it hears of the start.
        let apart = if result["call"] == "write" { 0.7 } else { 0.01 };
        close(&format!("{name}: calls"), calls, done, apart);
        // Eight calls of 1 KB at a time leave TCP's segments part empty, and a busy machine leaves the link idle for up to a second, or
        // counts in the window what waited for it before.
        assert!((0.2..1.3).contains(&number(result, "/limit/share")), "{name}: {}", result["limit"]);
        for field in ["/latency_ns/p50", "/latency_ns/p99", "/service_ns/p50"] {
            assert!(number(result, field) > 0.0, "{name}: {field}");
        }
        for end in ["sender", "receiver"] {
            // The time of a thread that has ended before its busy host looked is not known.
            let cost = result["cpu"][end]["ns_per_packet"].as_f64();
            assert!(cost.is_none_or(|cost| cost > 0.0), "{name}: {}", result["cpu"]);
        }
        assert!(number(result, "/service_ns/p50") < number(result, "/latency_ns/p50"), "{name}");
        // A server that is held up for longer than UDP waits for a reply is asked again.
        let again = if result["transport"] == "tcp" { number(result, "/retransmitted") } else { 0.0 };
        assert_eq!((number(result, "/failed"), again), (0.0, 0.0), "{name}");
    }
}

/// Datagrams are lost on the way: the calls are sent again, counted, and none is lost for good.
#[lab_test]
fn calls_over_a_lossy_link_are_sent_again() {
    let record = TestFolder::new().measure(&words(
        "lab --hosts 2 --device reference,loss=1/50 -- rpc a b --udp --call write --sizes 1K --rate 500 --time 1s \
         --repeats 1 --json",
    ));
    let result = &record["results"][0];
    let again = number(result, "/retransmitted");
    // Of 500 calls a part loses its call, another its reply: some 20, and more where the server was held up.
    assert!((3.0..500.0).contains(&again), "{again} were sent again: {result}");
    // A client that is held up for long leaves some out, and says so.
    let not_sent = number(&counted(&record)["counts"][0]["flows"][0], "/client/transactions/not_sent");
    let (timed, failed) = (number(result, "/latency_ns/count"), number(result, "/failed"));
    assert_eq!(timed + not_sent + failed, 500.0, "each is timed from when it was due: {result}");
    assert!(number(result, "/latency_ns/max") >= 200e6, "{}", result["latency_ns"]["max"]);
    // One that is lost again and again, while a busy machine makes its time-outs long, may not be answered in time.
    assert!(failed <= 0.02 * 500.0, "{result}");
}

/// rpcinfo asks a portmapper for the port, then the program, over both transports; when the agent ends it is gone again.
#[server_test(Root, Program("rpcbind"), Program("rpcinfo"))]
fn the_agents_program_is_found_by_rpcinfo() {
    let place = TestFolder::new();
    // A network and a /run of its own: rpcbind has one place for its port and its socket.
    let script = r#"
        set -eu
        PATH="$PATH:/usr/sbin:/sbin"
        mount -t tmpfs none /run
        ip link set lo up
        rpcbind -f >&2 & portmapper=$!
        trap 'kill $portmapper' EXIT
        for _ in $(seq 600); do rpcinfo -p 127.0.0.1 >/dev/null 2>&1 && break; sleep 0.05; done
        "$1" serve --ephemeral --listen 127.0.0.1:0 --rpc-port 0 --portmap >&2 & agent=$!
        for _ in $(seq 600); do [ "$(rpcinfo -p 127.0.0.1 | grep -c 536890450)" -ge 2 ] && break; sleep 0.05; done
        rpcinfo -T udp 127.0.0.1 536890450
        rpcinfo -T tcp 127.0.0.1 536890450 1
        rpcinfo -T tcp 127.0.0.1 536890450 7 || true
        kill -TERM $agent
        wait $agent || true
        rpcinfo -p 127.0.0.1 | sed 's/^/left: /'
    "#;
    let program = env!("CARGO_BIN_EXE_linerate");
    let ran = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", script, "sh", program])
        .env("XDG_RUNTIME_DIR", place.directory.path())
        .stdin(Stdio::null())
        .output()
        .expect("unshare(1) starts");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(out.matches("program 536890450 version 1 ready and waiting").count(), 2, "{out}\n{err}");
    assert!(err.contains("low version = 1, high version = 1"), "{out}\n{err}");
    assert!(out.contains("left:") && !out.contains("left:  536890450"), "{out}\n{err}");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let place = TestFolder::new();
    place.run(&words("rpc local --udp --sizes 61K,1M")).says(2, &["at most 61440 bytes"]);
    place.run(&words("rpc local --call erase")).says(2, &["null, write, read, echo"]);
    place.run(&words("serve --portmap")).says(2, &["--rpc-port"]);
    let ran = place.run(&words("rpc local --call null --time 300ms --warmup 50ms --repeats 1 --json"));
    assert_eq!(ran.json()["results"].as_array().map(Vec::len), Some(2), "{}", ran.err);
    assert_eq!(ran.json()["results"][0]["received"], Value::Null, "a null call carries nothing");
}
