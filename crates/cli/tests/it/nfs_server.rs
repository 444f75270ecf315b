//! The agent's NFS server through the command line: a planted service time, and a directory that stays what it was.

use crate::program::{TestFolder, number, words};
use linerate_testsuite::lab_test;
use std::fs;
use std::process::Stdio;

/// What the lab plants is what callers see and the server says, over TCP and UDP. A busy machine can only add to it.
#[lab_test]
fn a_planted_service_time_is_measured() {
    let place = TestFolder::new();
    for transport in ["", "--udp "] {
        let line = format!(
            "lab --hosts 2 --slow-server b,service-time=20ms -- nfs b --mix getattr {transport}--connections 1 --outstanding 1 \
             --time 2s --warmup 100ms --repeats 1 --no-tester-limit --json"
        );
        let record = place.measure(&words(&line));
        let result = &record["results"][0];
        let [service, latency] = ["/service_ns/p50", "/latency_ns/p50"].map(|field| number(result, field) / 1e6);
        // The two medians are of calls that were answered within the window of their own host, and that need not be the same calls.
        for time in [service, latency] {
            assert!((20.0..400.0).contains(&time), "{transport}{latency} ms, of which {service} at the server");
        }
        // The client and the network of a busy machine may take their part of the time: most of it by one call that is sent again.
        let [service, latency] = ["/service_ns/mean", "/latency_ns/mean"].map(|field| number(result, field));
        if service >= 0.8 * latency {
            assert_eq!(result["verdict"]["limit"], "server", "{}", result["verdict"]);
        }
    }
}

/// A trial in a served directory sees a disk, and leaves all that was there and nothing else.
#[test]
fn a_served_directory_is_as_it_was_before() {
    let place = TestFolder::new();
    // In memory where there is a file system for it: on a disk that others keep busy, one COMMIT may take longer than the window.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let served = folder.path().join("served");
    fs::create_dir_all(served.join("kept")).expect("a directory");
    fs::write(served.join("kept/file"), "kept").expect("a file");
    std::os::unix::fs::symlink("/etc", served.join("kept/out")).expect("a link");
    let before = listed(&served);
    let directory = served.display().to_string();
    let mut agent = place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--nfs-directory", &directory]);
    let join = agent.line();
    for transport in ["--tcp", "--udp"] {
        let record = place.measure(&[
            "nfs",
            join.trim(),
            transport,
            "--mix",
            "sfs97-like",
            "--files",
            "20",
            "--time",
            "300ms",
            "--warmup",
            "100ms",
            "--repeats",
            "1",
            "--no-tester-limit",
            "--json",
        ]);
        assert!(number(&record, "/results/0/operations/read/count") > 0.0, "{transport}");
        assert!(number(&record, "/results/0/operations/commit/count") > 0.0, "{transport}");
        let result = &record["results"][0];
        assert_eq!(number(result, "/operations/read/corrupt_bytes"), 0.0, "{transport}");
        assert_eq!(result["failed"], 0, "{transport}: {}", result["operations"]);
        assert_eq!(listed(&served), before, "{transport}");
    }
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    agent.end();
}

fn listed(directory: &std::path::Path) -> String {
    let listing = std::process::Command::new("ls").arg("-lR").arg(directory).stderr(Stdio::inherit()).output();
    String::from_utf8(listing.expect("lists").stdout).expect("text")
}
