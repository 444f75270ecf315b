//! The pages as the program serves them.

use crate::program::{TestFolder, words};
use linerate_testsuite::servers::OpenPage;
use linerate_testsuite::{server_test, wait_until};
use nix::sys::signal::Signal;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// The body of a page at an address that the program printed.
fn get(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let mut connection = TcpStream::connect(address).expect("it listens");
    write!(connection, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("answered");
    answer
}

#[test]
fn a_measured_record_is_listed_and_opened_until_interrupted() {
    let place = TestFolder::new();
    let record = place.measure(&["stream", "local", "--time", "300ms", "--warmup", "0s", "-r", "2", "--json"]);
    let id = record["id"].as_str().expect("a record has an id");
    let mut view = place.start(&["view"]);
    let url = view.line();
    let list = get(&url);
    assert!(list.starts_with("HTTP/1.1 200") && list.contains(id) && list.contains("linerate stream local"), "{list}");
    assert!(get(&format!("{url}record?id={id}")).contains("payload at the receiver"));
    assert!(get(&format!("{}/", &url[..url.len() - 2])).starts_with("HTTP/1.1 403"));
    view.signal(Signal::SIGINT);
    let ran = view.end();
    ran.says(0, &["showing", "results.db"]);
}

/// The chart of a trial under way grows in the browser, and the page becomes the record's at the end.
#[server_test(Root, Program("chromium|chromium-browser|google-chrome"))]
fn a_running_trial_is_drawn_until_its_record_is_there() {
    let place = TestFolder::new();
    let mut view = place.start(&["view"]);
    let url = view.line();
    // The browser takes its time to start, which the trial does not wait for.
    let mut page = OpenPage::open(place.directory.path(), &url, (1280, 1024));
    let mut run = place.start(&words("lab --hosts 2 --link 10Mbit/s -- stream a b -t 60s -r 1"));
    let id = wait_until("the run is listed", || {
        let list = get(&url);
        let (_, rest) = list.split_once("Runs under way")?.1.split_once("record?id=")?;
        Some(rest.split('"').next()?.to_owned())
    });
    page.go(&format!("{url}record?id={id}"));
    // Coordinates of the first line of the first chart.
    let mut length = || {
        let drawn = "document.querySelector('#live-over-time svg .line, #live-over-time svg path.run')";
        page.evaluate(&format!("({drawn}?.getAttribute('points') ?? {drawn}?.getAttribute('d'))?.length")).as_u64()
    };
    let mut before = wait_until("the trial is drawn", &mut length);
    for _ in 0..3 {
        before = wait_until("the chart grows", || length().filter(|now| *now > before));
    }
    assert!(run.is_running(), "the chart was drawn while the trial ran");
    // A trial of whose time the hypervisor took a part is run again, which the page does not wait for.
    run.end().says(0, &[]);
    let record = "!document.getElementById('live') && document.body.innerText.includes('Download the record (JSON)')";
    wait_until("the page becomes the record's", || page.evaluate(record).as_bool().filter(|there| *there));
    assert!(page.evaluate("location.href").as_str().is_some_and(|address| address.ends_with(&id)));
    assert!(!get(&url).contains("Runs under way"));
    let feeds = std::fs::read_dir(place.path("results.db-live.d")).expect("a folder").count();
    assert_eq!(feeds, 0, "nothing is left of its feed");
}

#[test]
fn a_port_that_is_taken_is_named_with_the_remedy() {
    let place = TestFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    place.run(&["view", "--listen", &address]).says(3, &[&address, "has that port", "leave --listen out"]);
    place.run(&["view", "--listen", "nowhere"]).says(2, &["--listen"]);
}

#[test]
fn records_are_found_by_words() {
    let place = TestFolder::new();
    let brief = ["--time", "300ms", "--warmup", "0s", "-r", "1", "--json"];
    let [stream, transact] = ["stream", "transact"].map(|command| {
        let record = place.measure(&[&[command, "local"], &brief[..]].concat());
        record["id"].as_str().expect("a record has an id").to_owned()
    });
    let found = place.run(&["results", "list", "--filter", "TRANSACT local"]).out;
    assert!(found.contains(&transact) && !found.contains(&stream), "{found}");
    place.run(&["results", "list", "--filter", "nosuch"]).says(0, &["no record has all of these", "nosuch"]);
}
