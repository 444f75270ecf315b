//! One-way delays between hosts whose clocks differ. Hosts of a lab share the machine's clocks, so agents run in time namespaces
//! (time_namespaces(7)), whose CLOCK_MONOTONIC is ahead by an exact offset.

use crate::chain_lab::ChainLab;
use crate::program::{TestFolder, counted, words};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::fs::{Permissions, set_permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Delay there and back, nanoseconds. Half of the round trip is 12.5 ms off either.
const PLANTED: [i64; 2] = [30_000_000, 5_000_000];
const FAULTS: [&str; 2] = ["path,at=0-1,way=forward,delay=30ms", "path,at=0-1,way=return,delay=5ms"];
/// Error of the times of the path and of the probes, nanoseconds.
const ROUNDING: i64 = 100_000;
/// Becomes `linerate` with the same arguments, in a time namespace if the agent has a name in `AHEAD`.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import ctypes, os, sys

AHEAD = OFFSETS
NEWTIME = 0x80
name = sys.argv[sys.argv.index("--name") + 1] if "--name" in sys.argv else ""
if AHEAD.get(name, 0) > 0:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWTIME):
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    seconds, nanos = divmod(AHEAD[name], 10**9)
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write(f"monotonic {seconds} {nanos}\nboottime {seconds} {nanos}\n")
    # unshare(2) moves only children.
    if libc.setns(os.open("/proc/self/ns/time_for_children", os.O_RDONLY), NEWTIME):
        sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
os.execv("LINERATE", ["linerate"] + sys.argv[1:])
"#;

/// Writes a program that starts `linerate`, with the clocks of agents a and b ahead by these times in nanoseconds.
fn program(place: &TestFolder, [a, b]: [i64; 2]) -> PathBuf {
    let text = PROGRAM.replace("OFFSETS", &format!("{{\"a\": {a}, \"b\": {b}}}"));
    let file = place.file("linerate.py", &text.replace("LINERATE", env!("CARGO_BIN_EXE_linerate")));
    set_permissions(&file, Permissions::from_mode(0o755)).expect("set");
    file.into()
}

/// Clock of the far end at the arrival of each probe of one end, less the clock of this end at its departure, in nanoseconds.
fn differences(end: &Value) -> Vec<i64> {
    let hops = end["way"]["hops"].as_array().expect("hops");
    let samples = hops.last().expect("the far end")["samples"].as_array().expect("samples");
    samples.iter().filter_map(|sample| sample["one_way"][0].as_i64()).collect()
}

/// Checks the one-way delays of a record against those of its probes: the clock of host b is ahead of that of a by exactly `ahead`.
/// Returns the widths of both ranges.
fn check(record: &Value, ahead: i64) -> [i64; 2] {
    let counts = &counted(record)["counts"][0]["hops"][0];
    let ways = record["results"][0]["ways"].as_array().expect("both ways");
    let mut widths = [0; 2];
    for (index, (end, offset)) in [("client", ahead), ("server", -ahead)].into_iter().enumerate() {
        let mut delays: Vec<i64> = differences(&counts[end]).iter().map(|difference| difference - offset).collect();
        delays.sort_unstable();
        assert!(delays.len() >= 10, "{}", counts[end]);
        let (least, truth) = (delays[0], delays[delays.len() / 2]);
        // Proves that the clocks are as far apart as they are to be.
        assert!(least + ROUNDING >= PLANTED[index], "the quickest probe took {least} ns");
        let idle = &ways[index]["one_way"]["idle"];
        let nanos = |name: &str| idle[name].as_i64().unwrap_or_else(|| panic!("no {name}: {idle}"));
        let [low, high] = ["p50_low", "p50_high"].map(nanos);
        eprintln!("{end}, clock of b {ahead} ns ahead: {truth} ns, range {low} to {high} ns");
        // The median of an even number of delays lies between two of them.
        let middle = [delays[(delays.len() - 1) / 2], truth];
        assert!(0 <= low && low <= middle[1] && middle[0] <= high, "{truth} ns: {idle}");
        assert!(low < high, "the offset is not known exactly: {idle}");
        let round_trip = counts[end]["way"]["hops"].as_array().and_then(|hops| hops.last()).expect("the far end");
        let quickest = round_trip["samples"].as_array().expect("samples").iter();
        let quickest = quickest.filter_map(|sample| sample["delay"].as_i64()).min().expect("an answer");
        assert!(high - low <= quickest, "no more is unknown than the smallest round trip: {idle}");
        // Variation is that of the delays, whatever the offset.
        let spread = delays[delays.len() - 1] - least;
        let [middle_variation, largest] = ["variation_p50", "variation_p99"].map(nanos);
        assert!(middle[0] - least <= middle_variation && middle_variation <= truth - least, "{idle}");
        assert!(middle_variation <= largest && largest <= spread, "{idle}");
        assert!((0..=spread).contains(&nanos("inter_packet")), "{idle}");
        widths[index] = high - low;
    }
    widths
}

/// The agents' control connections do not cross the path, so the offset is known well.
#[lab_test(Program("python3"))]
fn one_way_delays_lie_within_their_ranges_whatever_the_clocks_differ() {
    for ahead in [[0, 1_000_123_456_789], [86_400_987_654_321, 0]] {
        let place = TestFolder::new();
        let lab = ChainLab::with_program(&program(&place, ahead), 1, &FAULTS);
        let urls = ["a", "b"].map(|host| lab.url(host));
        for _ in 0..2 {
            let record = place.measure(&["path", &urls[0], &urls[1], "--no-load", "--time", "1s", "--json"]);
            check(&record, ahead[1] - ahead[0]);
            let report = place.run(&["report"]);
            let rows: Vec<&str> = report.out.lines().filter(|line| line.contains(" 1,500 ")).collect();
            assert!(rows.len() == 2 && rows.iter().all(|row| row.contains(" to ")), "{}", report.out);
        }
    }
}

/// The control connection crosses the path too: the offset is known as well as a round trip allows.
#[lab_test(Program("python3"))]
fn control_over_an_asymmetric_path_widens_the_ranges() {
    let place = TestFolder::new();
    let ahead = 1_000_123_456_789;
    let lab = ChainLab::up(1, &FAULTS);
    let mut serve = Command::new(program(&place, [0, ahead]));
    serve.args(words("serve --ephemeral --listen 198.18.2.2:0 --name b")).envs([("XDG_RUNTIME_DIR", place.path(""))]);
    let mut agent = lab.start("b", serve);
    let mut url = String::new();
    BufReader::new(agent.stdout.as_mut().expect("piped")).read_line(&mut url).expect("a line");
    for _ in 0..2 {
        let command = place.command(&["path", url.trim(), "--no-load", "--time", "1s", "--json"]);
        let output = lab.start("a", command).wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let record = serde_json::from_slice(&output.stdout).expect("a record");
        let widths = check(&record, ahead);
        assert!(widths.iter().all(|width| *width >= 10_000_000), "half a round trip is not known: {widths:?} ns");
    }
    agent.kill().expect("it runs");
    agent.wait().expect("it ends");
}
