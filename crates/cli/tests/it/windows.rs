//! The program for Windows against this system's, and against itself, over links of a lab.

use crate::program::{close, number, words};
use crate::windows_host::MixedLab;
use linerate_lab::Bench;
use linerate_testsuite::{wait_until, wine_test};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;

/// Addresses of the hosts, as every lab has them.
const A: &str = "2001:2::1";
const B: &str = "2001:2::2";

/// A record's received payload rate in bit/s, the median of its first result.
fn received_bps(record: &Value) -> f64 {
    number(record, "/results/0/received/payload_bps/median")
}

/// Checks the rate that arrived: over TCP against `linux`, the same between Linux hosts; over UDP against what was sent and
/// not lost, because a busy machine loses datagrams. A busy machine also delays datagrams across an edge of the window, which the record
/// reports as a caveat: a program under Wine may leave datagrams of more than 100 ms in its socket.
fn check_rate(line: &str, windows: &Value, linux: &Value) {
    let flow = &windows["trials"][0]["counts"][0]["flows"][0];
    let sends = flow["client"]["sent"].is_object();
    let (sender, receiver) = if sends { ("client", "server") } else { ("server", "client") };
    let sent = |field: &str| number(flow, &format!("/{sender}/sent/{field}"));
    let truth = if line.contains("--udp") {
        let arrived = number(flow, &format!("/{receiver}/received/arrived")) / sent("messages");
        sent("payload_bytes") * 8e9 / sent("window") * arrived
    } else {
        received_bps(linux)
    };
    let has_caveat = windows["results"][0]["caveats"].to_string().contains("window-edges");
    close(line, received_bps(windows), truth, if has_caveat { 0.25 } else { 0.02 });
}

/// Tasks over a link of 100 Mbit/s. A receiver under Wine needs up to 0.1 ms for a datagram, so UDP takes half of the link.
const TASKS: [&str; 4] = ["", "--udp --rate 45Mbit/s", "--flows 4", "--udp --size 200 --rate 5Mbit/s"];

#[wine_test]
fn streams_to_and_from_a_windows_agent_reach_the_rates_of_linux() {
    let lab = MixedLab::up("100Mbit/s");
    let (_agent, url) = lab.serve(&[]);
    for task in TASKS {
        for direction in ["send", "receive"] {
            let rest = format!("{task} --direction {direction} --time 1s --warmup 300ms --repeats 1 --json");
            let [windows, linux] = [url.clone(), lab.url("b")].map(|url| {
                let line = format!("stream {url} {rest}");
                lab.measure(&words(&line))
            });
            check_rate(&rest, &windows, &linux);
        }
    }
}

#[wine_test]
fn streams_by_a_windows_command_reach_the_rates_of_linux() {
    let lab = MixedLab::up("100Mbit/s");
    for task in TASKS {
        for direction in ["send", "receive"] {
            let rest = format!("{task} --direction {direction} --time 1s --warmup 300ms --repeats 1 --json");
            let windows = lab.measure_on_windows(&words(&format!("stream {} {rest}", lab.url("a"))));
            let linux = lab.measure(&words(&format!("stream {} {rest}", lab.url("b"))));
            check_rate(&rest, &windows, &linux);
        }
    }
}

/// Each datagram arrives, or is counted as lost; nothing is counted twice.
#[wine_test]
fn counts_are_exact() {
    let lab = MixedLab::up("100Mbit/s");
    let (_agent, url) = lab.serve(&[]);
    for direction in ["send", "receive"] {
        let line = format!("stream {url} --udp --rate 10Mbit/s --direction {direction} --time 1s --repeats 1 --json");
        let record = lab.measure(&words(&line));
        let flow = &record["trials"][0]["counts"][0]["flows"][0];
        let (sender, receiver) = if direction == "send" { ("client", "server") } else { ("server", "client") };
        let sent = number(flow, &format!("/{sender}/sent/messages"));
        let received = &flow[receiver]["received"];
        assert_eq!((sent, number(received, "/duplicates")), (number(received, "/arrived"), 0.0), "{flow}");
        let expects_drops = receiver == "client";
        assert_eq!(received["socket_drops"].is_u64(), expects_drops, "Windows does not count them: {received}");
    }
    let line = format!("stream {url} --bytes 3M --direction send --repeats 1 --json");
    let record = lab.measure(&words(&line));
    let flow = &record["trials"][0]["counts"][0]["flows"][0];
    assert_eq!(number(flow, "/server/received/payload_bytes"), 3e6, "{flow}");
}

#[wine_test]
fn transactions_and_rpc_run_both_ways() {
    let lab = MixedLab::up("100Mbit/s");
    let (_agent, url) = lab.serve(&[]);
    for task in ["transact", "transact --udp", "transact --rate 500", "rpc --udp --sizes 1K", "rpc --tcp --sizes 1K"] {
        let (verb, rest) = task.split_once(' ').unwrap_or((task, ""));
        let options = "--time 500ms --warmup 200ms --repeats 1 --json";
        let by_linux = lab.measure(&words(&format!("{verb} {url} {rest} {options}")));
        let by_windows = lab.measure_on_windows(&words(&format!("{verb} {} {rest} {options}", lab.url("a"))));
        for record in [by_linux, by_windows] {
            let result = &record["results"][0];
            assert!(number(result, "/main/median") > 100.0, "{task}: {result}");
        }
    }
}

#[wine_test]
fn agents_are_paired_and_saved() {
    let lab = MixedLab::up("1Gbit/s");
    let (mut agent, url) = lab.serve(&["--pair"]);
    let (address, _) = url.trim_start_matches("linerate://").split_once('#').expect("secrets");
    let shown = agent.message("the pairing code is ");
    let code = shown.split("the pairing code is ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a code");
    let added = lab.linux_typing(code, &["hosts", "add", "win", "--pair", address]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    let line = "stream win --time 300ms --warmup 0s --repeats 1";
    lab.linux(&words(line)).prints(0, &["payload at the receiver"]);
    // The Windows host saves hosts in a file of its own.
    let added = lab.windows(&["hosts", "add", "lin", &lab.url("a")]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    lab.windows(&words("stream lin --time 300ms --warmup 0s --repeats 1")).prints(0, &["payload at the receiver"]);
    lab.windows(&["hosts", "list"]).prints(0, &["lin"]);
}

#[wine_test]
fn the_path_is_looked_at_by_its_url_alone() {
    let lab = MixedLab::up("100Mbit/s");
    let (_agent, url) = lab.serve(&[]);
    for looked in [lab.linux(&[&url]), lab.windows(&[&lab.url("a")])] {
        looked.prints(0, &["tcp"]);
    }
}

#[wine_test]
fn records_are_read_on_the_other_system() {
    let lab = MixedLab::up("100Mbit/s");
    let line = format!("stream {} --time 300ms --warmup 0s --repeats 2 --out C:\\record.json", lab.url("a"));
    let ran = lab.windows(&words(&line));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    lab.windows(&["results"]).prints(0, &["stream"]);
    lab.windows(&["report"]).prints(0, &["payload at the receiver"]);
    let record = lab.drive().join("record.json");
    let shown = lab.linux(&["report", record.to_str().expect("UTF-8")]);
    shown.prints(0, &["payload at the receiver"]);
    // A Linux record on Windows.
    let file = lab.place().path("linux.json");
    let line = format!("stream {} --time 300ms --warmup 0s --repeats 2 --out {}", lab.url("b"), file.display());
    assert_eq!(lab.linux(&words(&line)).code, Some(0));
    fs::copy(&file, lab.drive().join("linux.json")).expect("copied");
    lab.windows(&["report", "C:\\linux.json"]).prints(0, &["payload at the receiver"]);
    lab.windows(&["explain", "C:\\linux.json"]).prints(0, &["Weighed"]);
}

#[wine_test]
fn the_service_is_installed_runs_and_is_removed() {
    let lab = MixedLab::up("1Gbit/s");
    let installed = lab.windows(&["serve", "--install-service", "--listen", "[::]:4760"]);
    assert_eq!(installed.code, Some(0), "{}", installed.err);
    let url = installed.out.trim();
    let line = format!("stream {url} --time 300ms --warmup 0s --repeats 1");
    lab.linux(&words(&line)).prints(0, &["payload at the receiver"]);
    lab.windows(&["serve", "--install-service"]).says(3, &["linerate-agent"]);
    lab.windows(&["serve", "--remove-service"]).says(0, &["removed"]);
    assert_eq!(lab.linux(&words(&line)).code, Some(3), "nobody serves any more");
    assert_eq!(lab.windows(&["serve", "--remove-service"]).code, Some(3), "there is none");
}

/// Without a service or an agent the other end names what is wrong.
#[wine_test]
fn a_killed_agent_ends_the_trial_and_keeps_what_was_measured() {
    let lab = MixedLab::up("100Mbit/s");
    let (mut agent, url) = lab.serve(&[]);
    let line = format!("stream {url} --time 1s --warmup 0s --repeats 30 --json");
    let arguments = words(&line);
    let (sent, received) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sent.send(lab.linux(&arguments)));
        wait_until("a trial is kept", || (lab.place().trials() >= 1).then_some(()));
        agent.kill();
        let ran = received.recv().expect("it ends");
        assert_eq!(ran.code, Some(3), "{}", ran.err);
    });
    assert!(lab.place().trials() >= 1);
}

#[wine_test]
fn ctrl_c_ends_an_agent_and_keeps_a_run() {
    let lab = MixedLab::up("100Mbit/s");
    let (agent, url) = lab.serve(&[]);
    let run = lab.start_windows(&words(&format!("stream {} --time 1s --warmup 0s --repeats 20", lab.url("a"))));
    wait_until("a trial is kept", || lab.windows(&["results"]).out.contains("stream").then_some(()));
    run.signal(Signal::SIGINT);
    run.end().says(3, &["stopping"]);
    lab.windows(&["report"]).prints(0, &["payload at the receiver"]);
    agent.signal(Signal::SIGINT);
    agent.end().says(0, &["stopping"]);
    let line = format!("stream {url} --time 300ms --repeats 1");
    assert_eq!(lab.linux(&words(&line)).code, Some(3), "nobody serves any more");
}

#[wine_test]
fn a_port_in_use_and_a_wrong_name_are_errors_with_a_remedy() {
    let lab = MixedLab::up("1Gbit/s");
    let (_agent, _) = lab.serve(&[]);
    lab.windows(&["serve", "--listen", "[::]:4750"]).says(3, &["4750", "another program"]);
    lab.windows(&["stream", "nobody"]).says(2, &["nobody"]);
    lab.windows(&["lab"]).says(3, &["needs Linux"]);
}

#[wine_test]
fn iperf3s_protocol_is_spoken_both_ways() {
    let lab = MixedLab::up("100Mbit/s");
    let _linux = lab.start_linux("a", &["serve", "--ephemeral", "--listen", "[::]:4770", "--iperf3"]);
    let (_windows, _) = lab.serve(&["--iperf3"]);
    for udp in ["", "--udp --rate 10Mbit/s"] {
        for direction in ["send", "receive"] {
            let line = |to: &str| {
                format!("stream iperf3://[{to}] {udp} --direction {direction} --time 1s --warmup 0s --repeats 1 --json")
            };
            for record in [lab.measure_on_windows(&words(&line(A))), lab.measure(&words(&line(B)))] {
                let least = if udp.is_empty() { 80e6 } else { 8e6 };
                assert!(received_bps(&record) > least, "{udp} {direction}: {}", record["results"][0]["received"]);
            }
        }
    }
}

/// Files with names that only one of the systems takes are copied, or listed with the reason.
#[wine_test]
fn copies_keep_or_list_ten_thousand_odd_names() {
    let lab = MixedLab::up("1Gbit/s");
    let (from, to) = (lab.place().path("from"), lab.drive().join("to"));
    for folder in [&from, &to] {
        fs::create_dir(folder).expect("made");
    }
    let odd = [
        "con",
        "a:b",
        "dot.",
        "space ",
        "q?",
        "star*",
        "Case",
        "case",
        "\u{e9}t\u{e9}",
        "\u{65e5}\u{672c}",
        "bell\u{7}",
        "b\\c",
    ];
    let refused = ["con", "a:b", "dot.", "space ", "q?", "star*", "bell\u{7}", "b\\c"];
    for number in 0..10_000 {
        let folder = from.join(format!("folder {}", number / 100));
        fs::create_dir_all(&folder).expect("made");
        let name = if number < odd.len() {
            odd[number].to_owned()
        } else {
            format!("{} {number} \u{f6}", "long".repeat(number % 40))
        };
        fs::write(folder.join(name), format!("content of {number}")).expect("written");
    }
    let source = from.to_str().expect("UTF-8");
    let linux = lab.start_linux("a", &["serve", "--ephemeral", "--listen", "[::]:4771", "--copy-directory", source]);
    let (_agent, windows) = lab.serve(&["--copy-directory", "C:\\to"]);
    let line = ["copy", "--tree", source, "--into", "C:\\to\\new", &linux.1, &windows, "--repeats", "1", "--json"];
    let ran = lab.linux(&line);
    let record: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{:?} {}", ran.code, ran.err));
    let text = record.to_string();
    for name in refused {
        assert!(text.contains(&serde_json::to_string(name).expect("a string")[1..3]), "{name} is listed");
    }
    let copied = count_files(&to.join("new"));
    // One of the two names that differ only in case stays away as well.
    assert_eq!(copied, 10_000 - refused.len() - 1, "{}", ran.err);
}

fn count_files(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { count_files(&path) } else { 1 }).sum()
}

/// A limit that is planted is named, or the verdict is not sure. Wine reports no state of TCP, and no Windows counts the drops of a socket.
#[wine_test]
fn verdicts_of_planted_limits_are_never_surely_wrong() {
    let switch = || Bench::named("switch").expect("built in");
    let cases = [("--udp --rate 40Mbit/s", "shaper"), ("", "shaper"), ("--rate 10Mbit/s", "offered-load")];
    let mut named = 0;
    for (options, planted) in cases {
        let bench = match planted {
            "shaper" => switch().with_shaper("20Mbit/s".parse().expect("a rate")),
            _ => switch().with_link("1Gbit/s".parse().expect("a rate")),
        };
        let lab = MixedLab::with(bench);
        let (_agent, url) = lab.serve(&[]);
        for direction in ["send", "receive"] {
            let rest = format!("{options} --direction {direction} --time 2s --repeats 2 --json");
            let by_agent = lab.measure(&words(&format!("stream {url} {rest}")));
            let by_command = lab.measure_on_windows(&words(&format!("stream {} {rest}", lab.url("a"))));
            for record in [by_agent, by_command] {
                let verdict = &record["results"][0]["verdict"];
                let limit = verdict["limit"].as_str().expect("a limit");
                let is_right = limit == planted;
                eprintln!("{planted} {options} {direction}: {limit}, {}", verdict["confidence"]);
                named += usize::from(is_right);
                assert!(is_right || verdict["confidence"] != "high", "{planted}, {rest}: {verdict}");
            }
        }
    }
    assert!(named >= 4, "{named} of 12 limits were named");
}
