//! What a device says of its own load, and what a device test does when its link or its expectations fail.

use crate::program::{TestFolder, close, counted, number, words};
use linerate_testsuite::{lab_test, wait_until};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A loop that burns a core for as long as it lives, as a busy device does.
pub(crate) struct Burning(Child);

impl Burning {
    pub(crate) fn start() -> Self {
        let burn = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self(burn.expect("a shell starts"))
    }
}

impl Drop for Burning {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interface<'a>(load: &'a Value, name: &str) -> &'a Value {
    let all = load["interfaces"].as_array().expect("interfaces");
    all.iter().find(|interface| interface["name"] == name).unwrap_or_else(|| panic!("no {name} in {load}"))
}

/// The largest share of a core's time that the hypervisor took in a trial (steal in proc_stat(5)): nobody counts it as busy.
pub(crate) fn most_stolen(trial: &Value) -> f64 {
    let cores = trial["hosts"]["tester"]["cores"].as_array().expect("cores");
    let share = |core: &Value| {
        let parts = ["/user", "/system", "/irq", "/softirq", "/steal", "/idle"].map(|part| number(core, part));
        number(core, "/steal") / parts.iter().sum::<f64>().max(1.0)
    };
    cores.iter().map(share).fold(0.0, f64::max)
}

/// A place with the tester's bench up and no calibration: a device test in it takes its own time only.
pub(crate) fn bench() -> TestFolder {
    let place = TestFolder::new();
    let up = place.run(&words("lab --bench tester --keep"));
    assert_eq!(up.code, Some(0), "{}", up.err);
    place
}

#[lab_test]
fn an_agent_on_the_device_tells_its_cpu_and_its_interfaces() {
    let place = bench();
    let burning = Burning::start();
    let record = place.measure(&words(
        "device latency --ports tester:p0,tester:p1 --sizes 64 --rate 1k --time 3s --device-agent device --json",
    ));
    drop(burning);
    let trial = counted(&record);
    let load = &trial["device_load"];
    assert_eq!(load["source"], "agent");
    let window = number(load, "/window") / 1e9;
    assert!((1.0..=3.5).contains(&window), "the load is of the trial's 3 s: {window}");
    // A core burns all the time that this machine is given, so the busiest is no idler than that.
    let least = 0.8 * (1.0 - most_stolen(trial));
    assert!(number(load, "/busiest_cpu") > least, "{least} at the least: {load}");
    // What the device took in within the window is about what was sent in it. A tester that is held up sends less than asked.
    let stream = &trial["counts"][0]["frames"]["streams"][0];
    let sent = number(stream, "/sent") * window / (number(stream, "/send_time") / 1e9).max(window);
    close("frames in", number(interface(load, "tester-p0"), "/in_frames"), sent, 0.3);
    close("frames out", number(interface(load, "tester-p1"), "/out_frames"), sent, 0.3);
    let found = &record["outcome"]["latency"][0];
    assert_eq!(found["device_load"], *load);
    assert!(found["caveats"].to_string().contains("the tester's machine"), "{}", found["caveats"]);
    let hosts = record["hosts"].as_array().expect("hosts");
    assert!(hosts.iter().any(|host| host["name"] == "device"), "the device's host is in the record");
    let own = words("device latency --ports tester:p0,tester:p1 --rate 1k --device-agent tester");
    place.run(&own).says(2, &["--device-agent tester", "the tester itself"]);
}

#[lab_test]
fn a_link_that_goes_down_is_named_and_what_was_measured_is_kept() {
    let place = bench();
    let running =
        place.start(&words("device latency --ports tester:p0,tester:p1 --sizes 64,128,256 --rate 1k --time 3s"));
    wait_until("a trial counts", || (place.trials() > 0).then_some(()));
    let before = place.packets_received("tester", "p1");
    wait_until("the second trial is under way", || {
        (place.packets_received("tester", "p1") > before + 200).then_some(())
    });
    place.run(&words("lab shell tester -- ip link set p1 down")).says(0, &[]);
    running.end().says(3, &["port p1 lost its link"]);
    let record = place.run(&words("results show --json")).json();
    let of_first = |what: &str| number(counted(&record), &format!("/counts/0/frames/streams/0/{what}"));
    assert!(of_first("received") > 0.9 * of_first("sent"), "{} of {}", of_first("received"), of_first("sent"));
    assert!(record["caveats"].to_string().contains("p1 lost its link"), "{}", record["caveats"]);
    let cut = record["trials"].as_array().and_then(|trials| trials.last()).expect("the attempt that failed is kept");
    assert_eq!(cut["standing"]["is"], "failed", "{cut}");
    assert!(cut["counts"].as_array().is_none_or(Vec::is_empty), "it is noticed at once, not at the trial's end: {cut}");
    // A machine that is slow to look may cut a later trial than the second.
    let cut_at = ["latency 64", "latency 128", "latency 256"].iter().position(|name| cut["trial"]["name"] == *name);
    let whole = &[64, 128, 256][..cut_at.expect("it is a trial of a size")];
    let found = record["outcome"]["latency"].as_array().expect("found");
    let sizes: Vec<_> = found.iter().map(|cell| &cell["frame_bytes"]).collect();
    assert!(
        !whole.is_empty() && sizes == whole,
        "the sizes before {} are kept, that one is not: {sizes:?}",
        cut["trial"]["name"]
    );
    let again = place.run(&words("device latency --ports tester:p0,tester:p1 --rate 1k"));
    again.says(3, &["p1", "down or has no carrier"]);
}

#[lab_test]
fn expectations_of_a_device_decide_the_exit_code() {
    let place = bench();
    let line = "device latency --ports tester:p0,tester:p1 --sizes 64,128 --rate 1k --time 200ms --expect";
    let expect = |condition: &str| place.run(&[&words(line)[..], &[condition]].concat());
    let met = expect("latency.max<=10s");
    // A figure that the tester left open meets nothing.
    let (code, said) = match met.shows("is not firm") {
        false => (0, " meets latency.max<=10s"),
        true => (1, "latency.max<=10s is missed"),
    };
    met.prints(code, &["  64 bytes: ", "  128 bytes: ", said]);
    expect("p50<=1ns").prints(1, &["FAIL  64 bytes: ", "p50<=1ns"]);
    expect("frames>=1").says(2, &["this command does not measure that"]);
    expect("speed>=1").says(2, &["`speed` is not a metric"]);
}

/// eth8 is in a bridge that has the address an SSH session came in by; eth9 is not.
#[lab_test]
fn ports_that_carry_the_ssh_session_are_spared() {
    let place = TestFolder::new();
    let links = "ip link set lo up && ip link add eth8 type veth peer name far8 && ip link add eth9 type veth peer name far9 \
                 && ip link add br0 type bridge && ip link set eth8 master br0 && ip address add 198.18.7.1/24 dev br0 \
                 && for link in eth8 far8 eth9 far9 br0; do ip link set $link up; done";
    let test = |test: &str| {
        let program = env!("CARGO_BIN_EXE_linerate");
        let line = format!(
            "{links} && exec {program} device {test} --sizes 128 --time 100ms --store {}",
            place.path("ssh.db").display()
        );
        let output = Command::new("unshare")
            .args(["--net", "sh", "-c", &line])
            .env("SSH_CONNECTION", "198.18.7.9 51000 198.18.7.1 22")
            .stdin(Stdio::null())
            .output()
            .expect("unshare(1) starts");
        crate::program::Ran::from(output)
    };
    let latency = "latency --ports eth8,eth9 --rate 1k";
    for spared in [latency, "echo --ports eth8 --target 198.18.7.2"] {
        test(spared).says(2, &["port eth8 is joined to br0, which carries your SSH session (198.18.7.1)", "--force"]);
    }
    let forced = test(&format!("{latency} --force"));
    assert!(forced.err.contains("as --force asks") && forced.code != Some(2), "{}", forced.err);
}
