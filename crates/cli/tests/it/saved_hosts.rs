//! Agents are named without their secrets on the command line, and no record holds one.

use crate::program::TestFolder;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn no_secret_stands_on_the_command_line_or_in_a_record() {
    let place = TestFolder::new();
    let mut agent = place.start(&["agent", "--ephemeral", "--listen", "127.0.0.1:0"]);
    let url = agent.line();
    let (address, secrets) = url.trim().split_once('#').expect("secrets");
    let token = secrets.split_once('.').expect("a token").0;
    let file = place.path("agent.url");
    fs::write(&file, &url).expect("written");
    let at_file = format!("@{}", file.display());

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    place.run(&["probe", &at_file]).says(2, &["agent.url", "chmod 600"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");

    let added = place.run(&["hosts", "add", "box", &at_file]);
    added.says(0, &["box is saved", address.trim_start_matches("linerate://")]);
    let list = place.run(&["hosts", "list"]);
    assert!(list.out.starts_with("box  127.0.0.1:") && !list.out.contains(token), "{}", list.out);
    let short = ["--time", "100ms", "--warmup", "50ms", "--repeats", "1", "--json"];
    for host in ["box", &at_file] {
        let record = place.run(&[&["stream", host], &short[..]].concat());
        record.says(0, &[]);
        for text in [&record.out, &record.err] {
            assert!(!text.contains(token), "{text}");
        }
        assert!(record.out.contains("127.0.0.1:") || record.out.contains("box"), "{}", record.out);
    }
    let kept = place.run(&["results", "list", "--json"]).out;
    assert!(kept.contains("\"stream\",\"box\"") && !kept.contains(token), "{kept}");

    place.run(&["hosts", "remove", "box"]).says(0, &["box is forgotten"]);
    place.run(&["probe", "box"]).says(2, &["no host is called `box`", "linerate hosts add"]);
}
