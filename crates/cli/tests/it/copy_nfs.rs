//! Copies by NFS through the command line: with an agent's server in the lab, and with a server of other hands.

use crate::program::{Ran, TestFolder, number, words};
use linerate_testsuite::servers::Ganesha;
use linerate_testsuite::{lab_test, server_test, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

/// Everything below `root`: mode, and where that is kept the time, and what files and links hold.
fn census(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("read").path();
            let about = path.symlink_metadata().expect("there");
            let (time, content) = if about.is_dir() {
                folders.push(path.clone());
                (about.mtime_nsec(), Vec::new())
            } else if about.is_symlink() {
                // A server may keep a link's time as it likes.
                (0, fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec())
            } else {
                (about.mtime_nsec(), fs::read(&path).expect("read"))
            };
            all.insert(path.strip_prefix(root).expect("below").to_owned(), (about.mode(), time, content));
        }
    }
    all
}

fn oddities(root: &Path) {
    let deep = root.join(vec!["a folder in a folder"; 40].join("/"));
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("at the bottom"), "deep").expect("written");
    fs::write(root.join("empty"), "").expect("written");
    fs::write(root.join("n".repeat(255)), "long name").expect("written");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"no \xff\xfe UTF-8\n")), "odd").expect("written");
    fs::write(root.join("large"), vec![7; 3_000_001]).expect("written");
    symlink("/nowhere/at all", root.join("broken link")).expect("a link");
}

/// Runs the program in the server's network.
fn run(place: &TestFolder, server: &Ganesha, line: &str) -> Ran {
    let linerate = place.command(&words(line));
    let mut inside = std::process::Command::new("nsenter");
    inside.arg(format!("--net=/proc/{}/ns/net", server.pid())).arg(linerate.get_program()).args(linerate.get_args());
    inside.current_dir(linerate.get_current_dir().expect("it has one"));
    inside.envs(linerate.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside.output().expect("nsenter starts").into()
}

#[lab_test]
fn an_agent_serves_the_destination_in_the_lab() {
    let line =
        "lab --hosts 3 -- copy --over nfs --tree files=200,folders=8,bytes=4M --lanes 2 a --to b,c --repeats 1 --json";
    let record = TestFolder::new().measure(&words(line));
    let outcome = &record["results"][0];
    for (field, value) in [("files", 400.0), ("folders", 16.0), ("bytes", 8e6), ("files_verified", 400.0)] {
        assert_eq!(number(outcome, &format!("/{field}")), value, "{field}");
    }
    assert_eq!(outcome["verified"], true);
    assert!(number(outcome, "/bytes_per_s") > 0.0 && number(outcome, "/files_per_s") > 0.0);
    let clients: Vec<_> = outcome["clients"].as_array().expect("clients").iter().map(|client| &client["to"]).collect();
    assert_eq!(clients, ["b", "c"]);
    let stages: Vec<&String> = outcome["stages"].as_object().map(|stages| stages.keys().collect()).unwrap_or_default();
    assert_eq!(stages.len(), 8, "{stages:?}");
}

#[server_test(Root, Program("rpcbind"), Program("ganesha.nfsd"))]
fn a_tree_goes_to_a_server_of_other_hands_and_comes_back() {
    let server = Ganesha::start();
    let place = TestFolder::new();
    let tree = place.path("tree");
    fs::create_dir(&tree).expect("made");
    oddities(&tree);
    let before = server.export();
    let write = "copy --over nfs --tree tree local 127.0.0.1:/run/export/new --json";
    let record: Value = run(&place, &server, write).json();
    assert_eq!((number(&record, "/results/0/files"), &record["results"][0]["verified"]), (5.0, &Value::Bool(true)));
    let exported = server.exported().join("new");
    assert!(census(&tree) == census(&exported), "the export has exactly the tree");
    run(&place, &server, write).says(3, &["127.0.0.1:/run/export/new", "not empty", "--existing resume"]);
    let resumed = run(&place, &server, &format!("{write} --existing resume")).json();
    assert_eq!((number(&resumed, "/results/0/files"), number(&resumed, "/results/0/files_kept")), (0.0, 5.0));

    let back = run(&place, &server, "copy --over nfs 127.0.0.1:/run/export/new local --into back --json").json();
    assert_eq!((number(&back, "/results/0/files"), &back["results"][0]["verified"]), (5.0, &Value::Bool(true)));
    assert!(census(&exported) == census(&place.path("back")), "what comes back is what was there");
    let dropped = run(&place, &server, "copy --over nfs 127.0.0.1:/run/export/new --to discard --repeats 1 --json");
    assert_eq!(number(&dropped.json(), "/results/0/bytes"), number(&back, "/results/0/bytes"));
    let deep = "copy --over nfs 127.0.0.1:/run/export --each new --to local --into own --json";
    assert_eq!(number(&run(&place, &server, deep).json(), "/results/0/files"), 5.0);
    assert!(census(&exported) == census(&place.path("own")), "the folder below the server's");
    run(&place, &server, "copy --over nfs 127.0.0.1:/run/export --each ../etc --to discard").says(3, &["../etc"]);
    fs::remove_dir_all(exported).expect("removed");
    assert_eq!(server.export(), before, "all else is as it was");

    run(&place, &server, "copy --over nfs 127.0.0.1:/elsewhere --to discard").says(3, &["/elsewhere", "MNT3ERR"]);
    run(&place, &server, "copy --over nfs --tree tree 127.0.0.1:/run/export/no/new")
        .says(3, &["NFS3ERR_NOENT", "make"]);
    place.run(&words("copy --tree tree 127.0.0.1:/run/export")).says(2, &["--over nfs"]);
    place.run(&words("copy --over nfs --tree tree local --to discard")).says(2, &["--over linerate"]);
    place.run(&words("copy --over nfs --tree tree 127.0.0.1:/run/export local")).says(2, &["--tree"]);
    place.run(&words("copy --over nfs --uid 0 local local")).says(2, &["--uid"]);
}

#[server_test(Root, Program("rpcbind"), Program("ganesha.nfsd"))]
fn a_server_that_is_killed_is_named() {
    let server = Ganesha::start();
    let place = TestFolder::new();
    let target = server.exported().join("new");
    let pid = Pid::from_raw(i32::try_from(server.pid()).expect("a process id fits"));
    let killer = std::thread::spawn(move || {
        wait_until("files arrive", || (fs::read_dir(&target).ok()?.count() >= 20).then_some(()));
        kill(pid, Signal::SIGKILL).expect("it runs");
    });
    let line =
        "copy --over nfs --tree files=6000,folders=60,bytes=60M --from memory --verify none 127.0.0.1:/run/export/new";
    let lost = run(&place, &server, line);
    killer.join().expect("no panic");
    lost.says(3, &["did not come to its end", "127.0.0.1:2049"]);
}
