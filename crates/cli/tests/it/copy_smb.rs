//! Copies to and from a Samba server.

use crate::program::{Ran, Running, TestFolder, number};
use linerate_testsuite::servers::{PASSWORD, Samba, USER};
use linerate_testsuite::{server_test, wait_until};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A copy by SMB, as `USER` with `PASSWORD`.
fn copy(place: &TestFolder, arguments: &[&str]) -> Command {
    let mut command = place.command(&[&["copy", "--over", "smb", "--user", USER, "--json"], arguments].concat());
    command.env("LINERATE_SMB_PASSWORD", PASSWORD);
    command
}

fn run(place: &TestFolder, arguments: &[&str]) -> Ran {
    copy(place, arguments).output().expect("the program starts").into()
}

/// A share's name for the program.
fn share(samba: &Samba, path: &str) -> String {
    format!("//{}/{path}", samba.address)
}

/// Files below `root`: their names, content, and times in the steps of SMB; folders end in a slash.
fn tree(root: &Path) -> BTreeMap<String, (Vec<u8>, i64)> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("read").path();
            let about = fs::symlink_metadata(&path).expect("known");
            let time = (about.mtime() * 1_000_000_000 + about.mtime_nsec()).div_euclid(100);
            let name = path.strip_prefix(root).expect("below").to_str().expect("UTF-8").to_owned();
            if about.is_dir() {
                all.insert(name + "/", (Vec::new(), time));
                folders.push(path);
            } else if about.is_file() {
                all.insert(name, (fs::read(&path).expect("read"), time));
            }
        }
    }
    all
}

/// A tree of odd names, with a link and a name that no share holds.
fn odd_tree(root: &Path) {
    let deep = (0..20).map(|depth| format!("deep {depth}")).collect::<Vec<_>>().join("/");
    for folder in [&deep, "\u{7d44}\u{7e54}-\u{fc}ber", "empty"] {
        fs::create_dir_all(root.join(folder)).expect("made");
    }
    let (deepest, longest) = (format!("{deep}/last"), "x".repeat(255));
    for (number, (name, bytes)) in [
        ("a name, with 'quotes' .txt", 10),
        ("\u{5199}\u{771f}-\u{e9}t\u{e9}.dat", 5_000),
        ("\u{7d44}\u{7e54}-\u{fc}ber/-dash", 70_000),
        ("nothing", 0),
        ("large", 5_000_001),
        (deepest.as_str(), 1),
        (longest.as_str(), 100),
        ("a:b", 3),
    ]
    .into_iter()
    .enumerate()
    {
        let content: Vec<u8> = (0..bytes).map(|byte: usize| (byte / 7 + number) as u8).collect();
        fs::write(root.join(name), content).expect("written");
        let time = UNIX_EPOCH + Duration::from_nanos(1_234_567_890_123_456_789 + number as u64);
        File::options().write(true).open(root.join(name)).and_then(|file| file.set_modified(time)).expect("set");
    }
    std::os::unix::fs::symlink("large", root.join("link")).expect("made");
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_tree_goes_to_a_share_and_comes_back() {
    let samba = Samba::start();
    let place = TestFolder::new();
    let there = samba.share("open").join("new");
    odd_tree(&place.path("tree"));
    let to = share(&samba, "open/new");

    let sent = run(&place, &["--tree", "tree", &to]);
    assert_eq!(sent.code, Some(1), "{}", sent.err);
    let record = sent.json();
    let faults = record["results"][0]["faults"].as_array().expect("faults");
    let mut named: Vec<&str> = faults.iter().filter_map(|fault| fault["path"].as_str()).collect();
    named.sort_unstable();
    assert_eq!(named, ["a:b", "link"], "{faults:?}");
    assert!(faults.iter().any(|fault| fault["reason"].as_str().is_some_and(|why| why.contains("rename it"))));
    let mut whole = tree(&place.path("tree"));
    whole.remove("a:b").expect("it was there");
    assert!(tree(&there) == whole, "content, names and times");
    for stage in ["list", "open", "read", "hash", "verify", "create", "write", "sync"] {
        assert!(number(&record, &format!("/results/0/stages/{stage}/busy")) > 0.0, "{stage}");
    }
    let store = fs::read(place.path("results.db")).expect("the store");
    assert!(!sent.out.contains(PASSWORD), "the password is in the record");
    assert!(!store.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes()), "the password is in the store");

    run(&place, &["--tree", "tree", &to]).says(3, &["is not empty", "--existing resume"]);
    fs::remove_file(there.join("large")).expect("removed");
    fs::write(there.join(".linerate-0badcafe-1.part"), "left by a copy that was killed").expect("written");
    let resumed = run(&place, &["--tree", "tree", "--existing", "resume", &to]);
    assert_eq!(number(&resumed.json(), "/results/0/files"), 1.0, "{}", resumed.err);
    assert_eq!(number(&resumed.json(), "/results/0/files_kept"), 6.0);
    assert!(tree(&there) == whole, "as before, and swept");

    let skipped = run(&place, &["--tree", "tree", "--existing", "replace", "--links", "skip", &to]);
    let record = skipped.json();
    let faults = record["results"][0]["faults"].as_array().expect("faults");
    assert_eq!(faults.iter().map(|fault| fault["path"].as_str()).collect::<Vec<_>>(), [Some("a:b")]);
    assert_eq!(number(&record, "/results/0/links_skipped"), 1.0);
    assert!(
        record["results"][0]["caveats"].to_string().contains("symbolic links were left out (1 of them)"),
        "{}",
        record["results"][0]["caveats"]
    );

    let back = run(&place, &[&to, "local", "--into", place.path("back").to_str().expect("UTF-8")]);
    assert_eq!(back.code, Some(0), "{}", back.err);
    assert_eq!(back.json()["results"][0]["verified"], true);
    assert!(tree(&place.path("back")) == whole, "what came back is what was sent");
}

/// A made tree has links, which no share holds: the plan says that they are left out, and that is no failure.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_made_tree_goes_to_a_share_without_its_links() {
    let samba = Samba::start();
    let place = TestFolder::new();
    let tree = ["--tree", "files=200,folders=20,bytes=1M", "--from", "memory"];
    let sent = run(&place, &[&tree[..], &[&share(&samba, "open/new")]].concat());
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    let record = sent.json();
    assert_eq!((number(&record, "/results/0/files"), number(&record, "/results/0/links")), (200.0, 0.0));
    assert!(number(&record, "/results/0/links_skipped") >= 1.0);
    assert_eq!(record["plan"]["goal"]["cells"][0]["loads"][0]["task"]["options"]["links"], "skip");
    assert_eq!(record["results"][0]["verified"], true);
    let named = run(&place, &[&tree[..], &["--links", "copy", &share(&samba, "open/other")]].concat());
    assert_eq!(named.code, Some(1), "{}", named.err);
    assert!(named.json()["results"][0]["faults"].to_string().contains("--links skip"), "{}", named.err);
}

/// One server, several clients: a common start and one total.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn one_share_is_read_by_three_hosts_at_once() {
    let samba = Samba::start();
    let place = TestFolder::new();
    let folder = samba.share("open").join("data");
    fs::create_dir_all(folder.join("sub")).expect("made");
    for number in 0..60 {
        fs::write(folder.join("sub").join(format!("file {number}")), vec![number; 50_000]).expect("written");
    }
    let agents: Vec<(Running, String)> = ["b", "c", "d"]
        .map(|name| {
            fs::create_dir(place.path(name)).expect("made");
            let allowed = ["--copy-directory", name, "--allow-server", "127.0.0.1:open"];
            let mut agent = place.start(&[&["serve", "--ephemeral", "--listen", "127.0.0.1:0"], &allowed[..]].concat());
            let line = agent.line();
            (agent, line)
        })
        .into();
    let to: Vec<&str> = agents.iter().map(|(_, line)| line.as_str()).collect();
    let ran = run(&place, &[&share(&samba, "open/data"), "--to", &to.join(","), "--repeats", "1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record = ran.json();
    assert_eq!((number(&record, "/results/0/files"), number(&record, "/results/0/bytes")), (180.0, 9e6));
    assert_eq!(record["results"][0]["verified"], true);
    let clients = record["results"][0]["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), 3);
    let last = clients.iter().map(|client| number(client, "/finished_ns")).fold(0.0, f64::max);
    assert_eq!(last, number(&record, "/results/0/time_ns"));
    assert!(!ran.out.contains(PASSWORD), "the password is in the record");
}

/// The server's own agent says what its processor did while the clients waited. Here it is on the client's machine, so that it cannot
/// raise confidence.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn the_load_of_a_server_is_read_from_its_agent() {
    let samba = Samba::start();
    let place = TestFolder::new();
    let mut agent = place.start(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
    let url = agent.line();
    let tree = ["--tree", "files=800,folders=20,bytes=80M", "--from", "memory", "--server-agent", &url];
    let ran = run(&place, &[&tree[..], &[&share(&samba, "open/new")]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record = ran.json();
    let load = &record["trials"][0]["device_load"];
    assert_eq!((load["source"].as_str(), load["shares_machine"].as_bool()), (Some("agent"), Some(true)), "{load}");
    assert!(number(load, "/busiest_cpu") > 0.0, "{load}");
    // The questions fall within the copy.
    let (window, time) = (number(load, "/window"), number(&record, "/results/0/time_ns"));
    assert!(window > 0.0 && window <= time, "{window} of {time}");
    let weighed = record["results"][0]["verdict"]["weighed"].as_array().expect("limits");
    let server = weighed.iter().find(|one| one["limit"] == "server").expect("the server is weighed");
    assert!(server["text"].as_str().is_some_and(|text| text.contains("By the server's agent")), "{server}");
    assert_ne!(server["support"], "strong");

    run(&place, &["--from", "memory", "--server-agent", "local", &share(&samba, "open/other")])
        .says(2, &["--server-agent local", "the tester itself", "runs on the server"]);
    place.run(&["copy", "--server-agent", &url, "local"]).says(2, &["--server-agent is for a server"]);
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn who_may_not_is_told_why() {
    let samba = Samba::start();
    let place = TestFolder::new();
    let file = place.file("password", "wrong\n");
    let small = ["--tree", "files=3,folders=1,bytes=1k", "--from", "memory"];
    let to = |share: &str, more: &[&str]| run(&place, &[&small[..], more, &[share]].concat());
    let open = share(&samba, "open/new");
    to(&open, &["--password-file", &file]).says(3, &["`root`", "STATUS_LOGON_FAILURE", "LINERATE_SMB_PASSWORD"]);
    to(&share(&samba, "closed/new"), &[]).says(3, &["closed/new", "STATUS_ACCESS_DENIED"]);
    to(&share(&samba, "none"), &[]).says(3, &["no share `none`"]);
    to(&share(&samba, "open/not/there"), &[]).says(3, &["open/not/there", "NOT_FOUND"]);
    // A folder that may be read only is found out at the first file.
    let partly = to(&share(&samba, "closed"), &[]);
    assert_eq!(partly.code, Some(1), "{}", partly.err);
    let reason = partly.json()["results"][0]["faults"][0]["reason"].as_str().map(str::to_owned);
    assert!(reason.as_ref().is_some_and(|why| why.contains("STATUS_ACCESS_DENIED")), "{reason:?}");
    place.run(&["copy", "--over", "smb", &open]).says(2, &["--user"]);
    place.run(&["copy", &open]).says(2, &["--over smb"]);
    place.run(&["copy", "--over", "smb", "local"]).says(2, &["//SERVER/SHARE"]);
    place.run(&["copy", "--user", "ann", "local"]).says(2, &["--user is for an SMB server"]);
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_server_that_dies_ends_the_copy() {
    let mut samba = Samba::start();
    let place = TestFolder::new();
    let tree = ["--tree", "files=20000,folders=20,bytes=2G", "--from", "memory", "--sync", "none"];
    let to = share(&samba, "open/new");
    let copying = copy(&place, &[&tree[..], &[&to]].concat())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let folder = samba.share("open").join("new");
    wait_until("files arrive", || (fs::read_dir(&folder).ok()?.count() > 20).then_some(()));
    samba.kill();
    let killed = Instant::now();
    let ran = Ran::from(copying.wait_with_output().expect("it ends"));
    ran.says(3, &["did not come to its end", &format!("the connection to {} is lost", samba.address.ip())]);
    assert!(killed.elapsed() < Duration::from_secs(120), "{:?}", killed.elapsed());
    let record = ran.json();
    let fault = &record["results"][0]["faults"][0];
    assert!(fault["path"].as_str().is_some_and(|path| !path.is_empty()), "{fault}");
}
