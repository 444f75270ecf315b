//! `linerate stream iperf3://HOST` and `linerate serve --iperf3`, as a user types them.

use crate::program::{Ran, TestFolder, words};
use linerate_model::StreamEvent;
use linerate_store::Query;
use linerate_testsuite::servers::{Iperf3, KeyPair};
use linerate_testsuite::{server_test, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};

#[server_test(Program("iperf3"))]
fn a_stream_to_an_iperf3_server_has_a_whole_record() {
    let (place, server) = (TestFolder::new(), Iperf3::serve(&[]));
    let url = format!("iperf3://127.0.0.1:{}", server.port());
    // Repeats need no help: the server is asked again until it is free.
    let line = format!("stream {url} --time 300ms --warmup 0s --repeats 2 --direction receive --server-output --json");
    let record = place.run(&words(&line)).json();
    let result = &record["results"][0];
    assert!(result["received"]["payload_bps"]["median"].as_f64() > Some(0.0), "{result}");
    let kinds: Vec<_> =
        result["caveats"].as_array().expect("caveats").iter().map(|caveat| caveat["kind"].clone()).collect();
    assert!(kinds.iter().any(|kind| kind == "one-sided"), "{kinds:?}");
    let ends = &record["trials"][1]["counts"][0]["flows"][0];
    assert!(ends["server"]["told"]["server_output_text"].is_string(), "{ends}");
    assert!(ends["server"]["sent"]["payload_bytes"].as_u64() > Some(0) && ends["client"]["told"].is_null(), "{ends}");
    let limits = result["verdict"]["weighed"].as_array().expect("limits");
    let sender = limits.iter().find(|weighed| weighed["limit"] == "sender-cpu").expect("it is weighed");
    assert_eq!(sender["support"], "unknown", "nobody watched it: {sender}");
    let by_option = format!("stream iperf3://127.0.0.1 -p {} --time 300ms --repeats 1", server.port());
    place.run(&words(&by_option)).says(0, &["Sent", "(warm-up)"]);
}

#[server_test(Program("iperf3"))]
fn a_server_alone_is_looked_at_both_ways() {
    let (place, server) = (TestFolder::new(), Iperf3::serve(&[]));
    let looked = place.run(&[&format!("iperf3://127.0.0.1:{}", server.port())]);
    looked.prints(0, &["tcp: ", "tcp receive: "]);
    assert!(["Both directions: ", "Sent: "].iter().any(|joint| looked.out.contains(joint)), "{}", looked.out);
}

#[server_test(Program("iperf3"), Program("openssl"))]
fn a_login_leaves_no_password_in_the_record_or_in_messages() {
    let (place, server) = (TestFolder::new(), Iperf3::serve_user("ann", "s3cret"));
    let key = server.keys().public.display().to_string();
    let line = format!("stream iperf3://127.0.0.1:{} --time 300ms --warmup 0s --repeats 1 --json", server.port());
    let run = |password: &str| -> Ran {
        let words = [&words(&line)[..], &["--username", "ann", "--rsa-public-key-path", &key]].concat();
        place.command(&words).env("IPERF3_PASSWORD", password).output().expect("the program starts").into()
    };
    let ran = run("s3cret");
    let record = ran.json();
    assert!(record["results"][0]["received"]["payload_bps"]["median"].as_f64() > Some(0.0), "{record}");
    let login = &record["plan"]["goal"]["cells"][0]["loads"][0]["task"]["iperf3"]["server"]["login"];
    assert_eq!(login["user"], "ann", "{record}");
    assert!(!format!("{}{}", ran.out, ran.err).contains("s3cret"));
    let ran = run("wr0ng");
    ran.says(3, &["refused the login of `ann`", "clocks"]);
    assert!(!format!("{}{}", ran.out, ran.err).contains("wr0ng"));
    place.run(&words(&line)).says(3, &["--username", "IPERF3_PASSWORD"]);
}

#[server_test(Program("openssl"))]
fn a_login_that_lacks_something_is_refused_before_anything_runs() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    let keys = KeyPair::create(folder.path());
    let key = |file: &Path| format!("--rsa-public-key-path {}", file.display());
    let (public, private, none) = (key(&keys.public), key(&keys.private), key(&folder.path().join("none")));
    let user = "stream iperf3://127.0.0.1 --username ann";
    for (line, part) in [
        (format!("{user} {public}"), "IPERF3_PASSWORD"),
        (format!("{user} {private}"), "this is a private key"),
        (format!("{user} {none}"), "cannot be read"),
        (format!("{user} --rsa-public-key-path /dev/null"), "no RSA public key"),
        (user.to_owned(), "--rsa-public-key-path"),
        (format!("stream iperf3://127.0.0.1 {public}"), "--username"),
        (format!("stream local local --username ann {public}"), "iperf3://HOST"),
    ] {
        place.run(&words(&line)).says(2, &[part]);
    }
}

#[test]
fn what_an_iperf3_server_cannot_do_is_said_before_anything_runs() {
    let place = TestFolder::new();
    for (line, part) in [
        ("stream iperf3://127.0.0.1 local", "--direction receive"),
        ("stream a,b iperf3://127.0.0.1", "one client at a time"),
        ("stream iperf3://127.0.0.1 --loaded-latency", "needs an agent"),
        ("stream iperf3://127.0.0.1:port", "iperf3://HOST:PORT"),
        ("stream local local --server-output", "iperf3://HOST"),
    ] {
        place.run(&words(line)).says(2, &[part]);
    }
}

#[server_test(Program("iperf3"))]
fn what_a_client_of_iperf3_measured_is_a_record_at_the_agent() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --ephemeral --listen 127.0.0.1:0 --iperf3 0 --link-speed lo=10Gbit/s"));
    let said = agent.message("serves clients of iperf3 at");
    let port = said.split([':', ',']).filter_map(|part| part.trim().parse::<u16>().ok()).next_back().expect("a port");
    let asked = ["-c", "127.0.0.1", "-p", &port.to_string(), "-R", "-P", "2", "-t", "1", "-b", "5M"];
    let client = Command::new("timeout").args(["30", "iperf3"]).args(asked).output().expect("iperf3 starts");
    assert!(client.status.success(), "{client:?}");
    // A record is kept before its line is printed.
    agent.message("TCP, 2 flows");
    let kept = place.store().list(&Query::default(), 0, 2).expect("listed");
    let [run] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(run.kind, "iperf3");
    let typed = format!("iperf3 -c 127.0.0.1 -p {port} -R -P 2 -b 5000000 -t 1");
    place.run(&["results", "list"]).prints(0, &[&typed, "finished"]);
    assert_eq!(run.headline.as_ref().map(|headline| headline.result.as_str()), Some("tcp, 127.0.0.1"));
    place.run(&["report"]).prints(0, &["to iperf3 client 127.0.0.1", "payload at the receiver (1 run)"]);
    let record = place.run(&["results", "show", "--json"]).json();
    let result = &record["results"][0];
    let caveats = result["caveats"].as_array().expect("caveats");
    assert!(caveats.iter().any(|caveat| caveat["kind"] == "one-sided"), "{caveats:?}");
    let trial = &record["trials"][0];
    assert!(trial["hosts"].as_object().is_some_and(|hosts| hosts.len() == 1), "this host was watched");
    assert!(trial["series"].as_array().is_some_and(|series| !series.is_empty()), "{trial}");
}

#[server_test(Program("iperf3"))]
fn a_test_of_an_iperf3_client_is_followed_while_it_goes_on() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --ephemeral --listen 127.0.0.1:0 --iperf3 0"));
    let said = agent.message("serves clients of iperf3 at");
    let port = said.split([':', ',']).filter_map(|part| part.trim().parse::<u16>().ok()).next_back().expect("a port");
    let client = |seconds: &str| {
        let asked = ["-c", "127.0.0.1", "-p", &port.to_string(), "-t", seconds, "-b", "5M"];
        Command::new("iperf3").args(asked).stdout(Stdio::null()).spawn().expect("iperf3 starts")
    };
    let store = place.store();
    let begins = format!("iperf3 -c 127.0.0.1 -p {port}");
    let followed = || {
        let mut feed = wait_until("the test is told of", || store.feeds().pop());
        let mut told = Vec::new();
        wait_until("an interval with data", || {
            told.extend(feed.news());
            let data = |event: &StreamEvent| matches!(event, StreamEvent::Interval(of) if of.received_bytes > 0);
            told.iter().any(data).then_some(())
        });
        let StreamEvent::Start { command, .. } = &told[0] else { panic!("{told:?}") };
        assert!(command.join(" ").starts_with(&begins), "{command:?}");
        feed.record().clone()
    };

    let mut whole = client("3");
    let record = followed();
    assert!(whole.wait().expect("iperf3 ends").success());
    agent.message("TCP, 1 flow");
    wait_until("the feed has ended", || store.feeds().is_empty().then_some(()));
    assert_eq!(store.resolve("latest").expect("it is kept"), record);

    // A client that goes away leaves neither feed nor record.
    let mut killed = client("30");
    let record = followed();
    killed.kill().expect("it is there");
    killed.wait().expect("it ends");
    agent.message("ended early");
    wait_until("the feed has ended", || store.feeds().is_empty().then_some(()));
    assert!(store.resolve(&record.0).is_err());
}
