//! Copies of folder trees through the command line: in the lab over real links, between agents, and when an agent is killed.

use crate::program::{TestFolder, number, wait_until_gone, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below `root` with its content.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let entry = entry.expect("read");
            match entry.file_type().expect("known") {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => {
                    let name = entry.path().strip_prefix(root).expect("below").to_owned();
                    all.insert(name, fs::read(entry.path()).expect("read"));
                }
                _ => {}
            }
        }
    }
    all
}

/// The stages' shares are shares: of each stage they come to one.
fn check_stages(record: &Value, names: &[&str]) {
    let stages = record["results"][0]["stages"].as_object().expect("stages");
    assert_eq!(
        stages.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
        names.iter().copied().collect()
    );
    for (name, share) in stages {
        let all: f64 = ["busy", "waiting_for_previous", "waiting_for_next"]
            .map(|part| number(share, &format!("/{part}")))
            .iter()
            .sum();
        assert!((all - 1.0).abs() < 0.01, "{name}: {share}");
    }
}

const STAGES: [&str; 10] = ["list", "open", "read", "hash", "send", "receive", "verify", "create", "write", "sync"];

#[lab_test]
fn a_tree_goes_from_host_to_host_in_the_lab() {
    let record = TestFolder::new()
        .measure(&words("lab -- copy --tree files=100,folders=12,bytes=2M a b --over linerate --repeats 2 --json"));
    let outcome = &record["results"][0];
    for (field, value) in [("files", 100.0), ("folders", 12.0), ("bytes", 2e6), ("files_verified", 100.0)] {
        assert_eq!(number(outcome, &format!("/{field}")), value, "{field}");
    }
    assert_eq!(outcome["verified"], true);
    let (rate, time) = (number(outcome, "/bytes_per_s"), number(outcome, "/time_ns"));
    assert!((rate * time / 1e9 - 2e6).abs() < 1e3, "{rate} for {time}");
    // A trial that the machine spoilt was repeated.
    assert_eq!(outcome["main"]["runs"], 2);
    assert!(record["trials"].as_array().is_some_and(|trials| trials.len() >= 2));
    check_stages(&record, &STAGES);
}

#[lab_test]
fn a_slow_link_shows_in_the_sending_stage() {
    let record = TestFolder::new()
        .measure(&words("lab --hosts 2 --link 4Mbit/s -- copy --tree files=20,folders=5,bytes=2M --from memory --to discard --lanes 1 a b --repeats 1 --json"));
    assert_eq!(record["results"][0]["busiest_stage"], "send");
    let busy = |stage: &str| number(&record, &format!("/results/0/stages/{stage}/busy"));
    assert!(busy("send") > busy("write").max(busy("read")), "{}", record["results"][0]["stages"]);
    // What the link's own queue and the sockets hold may be sent at once.
    let rate = number(&record, "/results/0/bytes_per_s");
    assert!(rate < 0.5e6, "{rate} B/s over 0.5 MB/s");
}

#[lab_test]
fn one_source_serves_three_clients_at_once() {
    let record = TestFolder::new()
        .measure(&words("lab --hosts 4 -- copy --tree files=120,folders=5,bytes=5M a --to b,c,d --repeats 1 --json"));
    assert_eq!((number(&record, "/results/0/files"), number(&record, "/results/0/bytes")), (360.0, 15e6));
    let clients = record["results"][0]["clients"].as_array().expect("clients");
    let names: Vec<&str> = clients.iter().filter_map(|client| client["to"].as_str()).collect();
    assert_eq!(names, ["b", "c", "d"]);
    let shares: f64 = clients.iter().map(|client| number(client, "/share")).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    let last = clients.iter().map(|client| number(client, "/finished_ns")).fold(0.0, f64::max);
    assert_eq!(last, number(&record, "/results/0/time_ns"));
}

/// Trees of different seeds, and trees of different sizes: each client gets its own.
#[lab_test]
fn each_client_gets_a_tree_of_its_own() {
    let place = TestFolder::new();
    let line = "lab --hosts 4 -- copy --each files=30,folders=3,bytes=300k,seed=N a --to b,c,d --repeats 1 --json";
    let record = place.measure(&words(line));
    let trees = |record: &Value| -> Vec<u64> {
        let clients = record["results"][0]["clients"].as_array().expect("clients");
        clients.iter().map(|client| number(client, "/tree/made/seed") as u64).collect()
    };
    assert_eq!((trees(&record), number(&record, "/results/0/files")), (vec![1, 2, 3], 90.0));
    assert_eq!(record["results"][0]["verified"], true);
    for over in ["linerate", "nfs"] {
        let line = format!(
            "lab --hosts 3 -- copy --over {over} --each files=30,folders=3,bytes=300k --each files=50,folders=3,bytes=1M,seed=9 \
             --from memory a --to b,c --repeats 1 --json"
        );
        let record = place.measure(&words(&line));
        let clients = record["results"][0]["clients"].as_array().expect("clients");
        let files: Vec<f64> = clients.iter().map(|client| number(client, "/files")).collect();
        assert_eq!((files, trees(&record)), (vec![30.0, 50.0], vec![1, 9]), "{over}");
        assert_eq!(number(&record, "/results/0/bytes"), 1.3e6, "{over}");
    }
}

#[test]
fn trees_of_the_wrong_number_are_refused() {
    let place = TestFolder::new();
    let refused = |line: &str, why: &[&str]| place.run(&words(line)).says(2, why);
    refused("copy --each /a --each /b local --to local", &["2 trees", "1 destinations", "seed=N"]);
    refused("copy --over path --each /a --into /b local", &["--each", "--to"]);
    refused("copy --each like:system,seed=N --tree /a local --to local", &["--each", "--tree"]);
    refused(
        "copy --over smb --user guest --each like:system,seed=N //127.0.0.1/data --to local",
        &["seed=1", "folders below"],
    );
}

#[lab_test]
fn several_sources_each_get_a_folder() {
    let place = TestFolder::new();
    let into = place.path("into");
    let line = format!(
        "lab --hosts 3 -- copy --tree files=60,folders=3,bytes=1M --from memory --into {} a,c b --json",
        into.display()
    );
    let record = place.measure(&words(&line));
    assert_eq!(number(&record, "/results/0/files"), 120.0);
    assert_eq!(files(&into.join("a")), files(&into.join("c")));
    assert_eq!(files(&into.join("a")).len(), 60);
}

/// What was copied is what was there, and exit codes tell what was not.
#[test]
fn a_real_tree_is_copied_within_this_machine() {
    let place = TestFolder::new();
    let tree = place.path("tree");
    fs::create_dir_all(tree.join("sub folder")).expect("made");
    fs::write(tree.join("sub folder/file"), "content").expect("written");
    let copy = |more: &str| place.run(&words(&format!("copy --tree tree --into new local --json {more}")));
    assert_eq!(number(&copy("").json(), "/results/0/files"), 1.0);
    assert_eq!(files(&tree), files(&place.path("new")));
    copy("").says(3, &["not empty", "--existing", "replace", "--existing resume"]);
    assert_eq!(number(&copy("--existing resume").json(), "/results/0/files_kept"), 1.0);

    nix::unistd::mkfifo(&tree.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let partly = copy("--existing replace");
    assert_eq!(partly.code, Some(1), "{}", partly.err);
    assert_eq!(partly.json()["results"][0]["faults"][0]["path"], "pipe");
    assert_eq!(partly.json()["results"][0]["verified"], false);
    copy("--existing replace --on-error stop").says(3, &["did not come to its end"]);

    place.run(&words("copy --over path --tree tree --into tree/in")).says(3, &["copy itself"]);
    place.run(&words("copy --tree tree --into tree/in local")).says(2, &["copy itself"]);
    place.run(&words("copy --tree like:zoo local")).says(2, &["like:system"]);
    place.run(&words("copy --tree tree --from memory local")).says(2, &["made tree"]);
    place.run(&words("copy --over path --tree nowhere --into new2")).says(3, &["nowhere", "No such file"]);
    let shown = place.run(&words("copy --over path --tree files=30,folders=2,bytes=1M --repeats 1 -v"));
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for said in ["Where the time went", "30 files", "reading it back"] {
        assert!(shown.shows(said), "{said}: {}", shown.out);
    }
}

#[test]
fn an_agent_allows_only_the_folders_it_was_given() {
    let place = TestFolder::new();
    fs::create_dir(place.path("allowed")).expect("made");
    let words = |allowed: bool| {
        let mut all = vec!["serve", "--ephemeral", "--listen", "127.0.0.1:0"];
        all.extend(if allowed { &["--copy-directory", "allowed"][..] } else { &[] });
        all
    };
    let mut closed = place.start(&words(false));
    let line = closed.line();
    place
        .run(&["copy", "--tree", "files=3,folders=0,bytes=1k", "--from", "memory", "local", &line])
        .says(3, &["--copy-directory", "--to discard"]);
    let discarded =
        ["copy", "--tree", "files=3,folders=0,bytes=1k", "--from", "memory", "local", &line, "--to", "discard"];
    assert_eq!(place.run(&discarded).code, Some(0));
    let mut open = place.start(&words(true));
    let line = open.line();
    let into = |path: &Path| {
        let path = path.to_str().expect("UTF-8").to_owned();
        place.run(&[
            "copy",
            "--tree",
            "files=3,folders=0,bytes=1k",
            "--from",
            "memory",
            "--into",
            &path,
            "local",
            &line,
        ])
    };
    into(&place.path("elsewhere")).says(3, &["copies from and to", "allowed"]);
    assert!(!place.path("elsewhere").exists());
    assert_eq!(into(&place.path("allowed/new")).code, Some(0));
    assert_eq!(files(&place.path("allowed/new")).len(), 3);
}

/// A kill leaves no file under its final name that is not whole, and the copy goes on afterwards to the same tree.
#[test]
fn a_killed_agent_leaves_nothing_half_written_under_its_name() {
    const TREE: &str = "files=4800,folders=60,bytes=30M";
    let place = TestFolder::new();
    fs::create_dir(place.path("allowed")).expect("made");
    let whole = place.path("whole");
    let made =
        format!("copy --over path --tree {TREE} --from memory --verify none --sync none --into {}", whole.display());
    assert_eq!(place.run(&words(&made)).code, Some(0));
    let target = place.path("allowed/new");
    let agent = || {
        let mut agent =
            place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--copy-directory", "allowed"]);
        let line = agent.line();
        (agent, line)
    };
    let copy = |line: &str, more: &[&str]| {
        let target = target.to_str().expect("UTF-8").to_owned();
        let all = ["copy", "--tree", TREE, "--from", "memory", "--into", &target, "local", line, "--json"];
        place.start(&[&all[..], more].concat())
    };
    let (killed, line) = agent();
    let copying = copy(&line, &[]);
    wait_until("files arrive", || (fs::read_dir(&target).ok()?.count() >= 5).then_some(()));
    let pid = killed.pid();
    killed.signal(Signal::SIGKILL);
    wait_until_gone(&[pid]);
    let lost = copying.end();
    let whole = files(&whole);
    let left: BTreeMap<_, _> =
        files(&target).into_iter().filter(|(path, _)| !path.to_string_lossy().ends_with(".part")).collect();
    // A test that is held up kills it when all is in place.
    assert!(lost.code == Some(3) || left.len() == whole.len(), "{:?}: {}", lost.code, lost.err);
    for (path, content) in &left {
        assert!(whole.get(path) == Some(content), "{} is not whole", path.display());
    }
    let (_agent, line) = agent();
    let resumed = copy(&line, &["--existing", "resume"]).end();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!(number(&resumed.json(), "/results/0/files_kept"), left.len() as f64);
    assert!(files(&target) == whole, "the same tree, and no temporary names");
}
