//! The pages in a real browser: they render, nothing complains, nothing leaves.

use crate::place::{TestView, stream_record, trial};
use linerate_model::{Caveat, CaveatKind, RunSummary};
use linerate_store::Ending;
use linerate_testsuite::servers::chromium;
use linerate_testsuite::{server_test, wait_until};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// What a browser made of a page.
struct Seen {
    document: String,
    /// What was written to its console.
    console: Vec<String>,
    /// Addresses that the page asked for, not the browser of its own accord.
    asked: Vec<String>,
}

/// Opens a page, lets its scripts run for a while, and looks.
fn opened(place: &TestView, page: &str, timeout: Duration) -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    opened_in(folder.path(), place, page, timeout)
}

/// The same with the browser's files in `folder`.
fn opened_in(folder: &Path, place: &TestView, page: &str, timeout: Duration) -> Seen {
    let options = [format!("--log-net-log={}", folder.join(LOG).display())];
    let (document, console) = chromium::dump(folder, &place.url(page), timeout, &options);
    Seen { document, console, asked: asked(folder, place.address).expect("the browser wrote its log") }
}

/// The file with the browser's log.
const LOG: &str = "net.json";

/// The addresses in the browser's log that a page of ours asked for, and those it was sent to; none if the log cannot be read yet.
fn asked(folder: &Path, address: SocketAddr) -> Option<Vec<String>> {
    let log = std::fs::read_to_string(folder.join(LOG)).ok()?;
    // A browser that has not ended, or was stopped, leaves the end of the list out.
    let log: Value = serde_json::from_str(&log)
        .or_else(|_| serde_json::from_str(&format!("{}]}}", log.trim_end().trim_end_matches(','))))
        .ok()?;
    let ours = format!("http://{address}");
    let events = log["events"].as_array().expect("the log has events");
    let starts = events.iter().filter(|event| {
        let params = &event["params"];
        let by_page = params["initiator"].as_str().is_some_and(|initiator| initiator == ours);
        let of_ours = params["url"].as_str().is_some_and(|url| url.starts_with(&ours));
        by_page || (of_ours && params["initiator"].is_string())
    });
    Some(starts.filter_map(|event| event["params"]["url"].as_str().map(str::to_owned)).collect())
}

fn only_from(place: &TestView, seen: &Seen) {
    let own = place.url("");
    assert!(seen.asked.iter().all(|url| url.starts_with(&own)), "{:?}", seen.asked);
    assert!(seen.asked.iter().any(|url| *url == own || url.starts_with(&own)), "the log is read: {:?}", seen.asked);
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_list_waits_for_two_ticks_and_nothing_leaves() {
    let place = TestView::new();
    for (id, at) in [("one", 1), ("two", 2), ("three", 3)] {
        place.keep(&stream_record(id, at, &[941_000_000, 940_000_000, 942_000_000]));
    }
    let seen = opened(&place, "", Duration::from_secs(3));
    assert!(seen.document.contains("data-ready=\"yes\""), "the script did not reach its end: {:?}", seen.console);
    assert!(seen.document.contains("tick two") && seen.document.contains("<button disabled"), "{}", seen.document);
    assert_eq!(seen.document.matches("type=\"checkbox\"").count(), 3);
    assert_eq!(seen.console, Vec::<String>::new());
    only_from(&place, &seen);
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_record_and_a_comparison_render_and_nothing_leaves() {
    let place = TestView::new();
    place.keep(&stream_record("old", 1, &[941_000_000, 940_000_000, 942_000_000]));
    place.keep(&stream_record("new", 2, &[800_000_000, 801_000_000, 799_000_000]));
    for (page, expected) in [("record?id=old", "Download the record (JSON)"), ("compare?with=old&with=new", "WORSE")] {
        let seen = opened(&place, page, Duration::from_secs(3));
        assert!(seen.document.contains("data-ready=\"yes\""), "{page}: {:?}", seen.console);
        assert!(seen.document.contains(expected), "{page}: {}", seen.document);
        assert_eq!(seen.console, Vec::<String>::new(), "{page}");
        only_from(&place, &seen);
    }
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_watched_run_renews_itself_and_becomes_its_report() {
    let place = TestView::new();
    let mut run = stream_record("run", 1, &[]);
    let mut live = place.store.begin(&run).expect("begin");
    live.trial(&trial(941_000_000), &RunSummary::default()).expect("trial");
    let folder = tempfile::tempdir().expect("a folder");
    let (address, events) = (place.address, place.url("events?id=run"));
    let so_far = || asked(folder.path(), address);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let before = wait_until("the page waits for events", || so_far().filter(|asked| asked.contains(&events)));
            live.trial(&trial(942_000_000), &RunSummary::default()).expect("trial");
            wait_until("the page renews itself", || so_far().filter(|asked| asked.len() > before.len()));
            run.caveats.push(Caveat::new(CaveatKind::Interrupted, "the run ended early: interrupted"));
            live.end(&run, Ending::Interrupted).expect("end");
        });
        // The browser's time stands still while an answer is under way, and events are one until the run's end.
        opened_in(folder.path(), &place, "record?id=run", Duration::from_secs(3))
    });
    assert!(seen.document.contains("Download the record (JSON)"), "{:?} {}", seen.console, seen.document);
    assert!(!seen.document.contains("Under way") && seen.document.contains("2 runs"), "{}", seen.document);
    let asked = |page: &str| seen.asked.iter().filter(|url| **url == place.url(page)).count();
    assert!(asked("events?id=run") == 1 && asked("record?id=run") >= 3, "{:?}", seen.asked);
    assert_eq!(seen.console, Vec::<String>::new());
    only_from(&place, &seen);
}
