//! A slow disk in the lab is as slow as planted, is this host's alone, and goes with the lab.

use crate::program::{TestFolder, number, wait_until_gone, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;

/// Mounts that this process sees.
fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").expect("mountinfo")
}

fn copy(disk: &str, copy: &str) -> Value {
    let line = format!("lab --hosts 2 --slow-disk {disk} -- copy {copy} a b --repeats 1 --sync none --json");
    let record = TestFolder::new().measure(&words(&line));
    let caveats = record["results"][0]["caveats"].to_string();
    assert!(!caveats.contains("left-behind"), "the temporary folder is removed: {caveats}");
    record
}

/// A disk is no faster than planted, and a busy machine may make it slower.
#[lab_test]
fn a_slow_disk_reads_and_writes_no_faster_than_planted() {
    let check = |what: &str, rate: f64, planted: f64| {
        assert!((0.02 * planted..1.05 * planted).contains(&rate), "{what}: {rate} of {planted}");
    };
    let tree = "--tree like:photos,files=4,folders=1,bytes=2M";
    let writes = copy("b,write-rate=4MB/s", &format!("{tree} --from memory"));
    check("writing", number(&writes, "/results/0/bytes_per_s"), 4e6);
    let reads = copy("a,read-rate=4MB/s", &format!("{tree} --to discard"));
    check("reading", number(&reads, "/results/0/bytes_per_s"), 4e6);
    // 30 files, 20 ms each.
    let opens = copy("a,access-time=20ms", "--tree files=30,folders=2,bytes=30k --to discard");
    check("opening", number(&opens, "/results/0/files_per_s"), 50.0);
    assert!(!mounts().contains("slow-disk"), "it is mounted outside the lab");
}

/// What is written through a slow disk is where it was named.
#[lab_test]
fn what_a_slow_disk_holds_stays_when_the_lab_is_gone() {
    let place = TestFolder::new();
    let into = place.path("new");
    let line = format!(
        "lab --slow-disk b,write-rate=50MB/s -- copy --tree files=20,folders=2,bytes=500k --into {} a b --verify read-back --json",
        into.display()
    );
    let record = place.measure(&words(&line));
    assert_eq!((number(&record, "/results/0/files"), &record["results"][0]["verified"]), (20.0, &true.into()));
    let files = |path: &std::path::Path| fs::read_dir(path).expect("listed").flatten().count();
    assert!(files(&into) > 0, "nothing is in {}", into.display());
}

/// The disk's process and its mount end with a lab that is killed, in the middle of a request.
#[lab_test]
fn a_slow_disk_goes_with_a_killed_lab() {
    let place = TestFolder::new();
    let lab = place.start(&words(
        "lab --hosts 2 --slow-disk b,write-rate=100kB/s -- copy --tree files=9,bytes=9M --from memory a b",
    ));
    // Two agents and the disk, which has taken something to write.
    let beside = lab.wait_for_children(3);
    let transferred = |pid: &i32| {
        let counts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap_or(0)
    };
    let is_disk = |pid: &&i32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.contains("slow-disk"))
    };
    wait_until("the disk is written to", || {
        beside.iter().filter(is_disk).any(|pid| transferred(pid) > 300_000).then_some(())
    });
    lab.signal(Signal::SIGKILL);
    wait_until_gone(&beside);
}

#[test]
fn what_cannot_be_planted_is_refused_with_what_can() {
    let place = TestFolder::new();
    for (disk, said) in
        [("z,read-rate=1MB/s", "no such host"), ("b", "say what is slow"), ("b,rate=1MB/s", "b,write-rate")]
    {
        place.run(&["lab", "--slow-disk", disk, "--", "copy", "a", "b"]).says(2, &[said]);
    }
}
