//! The pages in a real browser: they render, nothing complains, nothing leaves.

use crate::place::{TestView, attempt, interval, stream_record, trial};
use crate::{fleet, trend};
use linerate_model::{Caveat, CaveatKind, Message, RunSummary, TrialState};
use linerate_store::Ending;
use linerate_testsuite::servers::{OpenPage, chromium};
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
    let options = [format!("--log-net-log={}", folder.path().join(LOG).display())];
    let (document, console) = chromium::dump(folder.path(), &place.url(page), timeout, &options);
    Seen { document, console, asked: asked(folder.path(), place.address) }
}

/// The file with the browser's log.
const LOG: &str = "net.json";

/// The addresses in the browser's log that a page of ours asked for, and those it was sent to.
fn asked(folder: &Path, address: SocketAddr) -> Vec<String> {
    let log = std::fs::read_to_string(folder.join(LOG)).expect("the browser wrote its log");
    // A browser that was stopped leaves the end of the list out.
    let log: Value = serde_json::from_str(&log)
        .or_else(|_| serde_json::from_str(&format!("{}]}}", log.trim_end().trim_end_matches(','))))
        .expect("the log is JSON");
    let ours = format!("http://{address}");
    let events = log["events"].as_array().expect("the log has events");
    let starts = events.iter().filter(|event| {
        let params = &event["params"];
        let by_page = params["initiator"].as_str().is_some_and(|initiator| initiator == ours);
        let of_ours = params["url"].as_str().is_some_and(|url| url.starts_with(&ours));
        by_page || (of_ours && params["initiator"].is_string())
    });
    starts.filter_map(|event| event["params"]["url"].as_str().map(str::to_owned)).collect()
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
    let folder = tempfile::tempdir().expect("a folder");
    let mut feed = place.tell("run");
    feed.tell(interval(0, 0, 941e6));
    let mut page = OpenPage::open(folder.path(), &place.url("record?id=run"), (1200, 1600));
    let mut page = |what: &str, expression: &str| {
        wait_until(what, || page.evaluate(expression).as_bool().filter(|is_so| *is_so));
    };
    let has = |text: &str| format!("document.body.innerText.includes('{text}')");
    page("it is drawn before its first trial is done", "!!document.querySelector('#live-over-time svg path.run')");
    page("it says how far it is", &has("No trial is done yet."));
    // What the reader does with a chart outlives its being drawn anew.
    let summary = "document.querySelector('#live-over-time summary')";
    page("a table is opened", &format!("{summary}.click(), {summary}.focus(), true"));
    for second in 1..4 {
        feed.tell(interval(0, second, 941e6 + second as f64 * 1e6));
        page("the rate is that of the interval", &has(&format!("{} Mbit/s", 941 + second)));
    }
    let kept = format!("{summary}.parentNode.open && document.activeElement === {summary}");
    page("the table is open and has the focus", &kept);

    let mut run = stream_record("run", 1, &[]);
    let mut live = place.store.begin(&run).expect("begin");
    live.trial(&trial(941_000_000), &RunSummary::default()).expect("trial");
    feed.tell(attempt(0, TrialState::Counted));
    page("the trial is done", &has("1 of 3"));
    run.caveats.push(Caveat::new(CaveatKind::Interrupted, Message::untranslated("the run ended early: interrupted")));
    live.end(&run, Ending::Interrupted).expect("end");
    drop(feed);
    page("it becomes its report", &has("Download the record (JSON)"));
    page("it is followed no more", "!document.getElementById('live')");
    let all_ours = "performance.getEntriesByType('resource').every((one) => one.name.startsWith(location.origin))";
    page("nothing leaves", all_ours);
}

/// On a desk and on a phone, every page with a picture shows its first one within 700 pixels, and no page is wider than the screen.
/// Prints the heights that docs/reading.md states.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn first_pictures_are_on_the_first_screen() {
    let place = TestView::new();
    trend::keep(&place, &trend::stepped());
    let mut feed = place.tell("live");
    feed.tell(interval(0, 0, 941e6));
    place.events("live").wait_for("live-over-time", "<svg");
    let folder = tempfile::tempdir().expect("a folder");
    fleet::keep_hosts(&place);
    for (name, page, has_picture) in [
        ("matrix of sites", "fleet?by=site&test=stream", false),
        ("matrix of hosts", "fleet?by=host&from=rome&to=oslo", false),
        ("pair", "fleet/pair?from=rome-1&to=oslo-2", true),
        ("changes", "fleet/changes", false),
        ("sites", "fleet/sites", false),
        ("list", "", false),
        ("record", "record?id=run-20", true),
        ("compare", "compare?with=run-19&with=run-20", true),
        ("trend", "trend?id=run-31", true),
        ("run under way", "record?id=live", true),
    ] {
        let mut open = OpenPage::open(folder.path(), &place.url(page), (1280, 800));
        for width in [1280, 390] {
            open.resize((width, 800));
            let mut measured = |what: &str| {
                // At first it is a blank page.
                let is_there = "location.protocol === 'http:' && document.readyState === 'complete'";
                let laid_out = format!("{is_there} && innerWidth === {width} ? {what} : null");
                wait_until("the page is laid out", || open.evaluate(&laid_out).as_f64())
            };
            let height = measured("document.documentElement.scrollHeight");
            let wide = measured("document.documentElement.scrollWidth");
            // Of two drawings for two widths one is hidden.
            let tops = "[...document.querySelectorAll('svg')].map((one) => one.getBoundingClientRect())\
                        .filter((one) => one.height > 0).map((one) => one.top)";
            let top = measured(&format!("Math.min(...{tops}, 1e6)"));
            println!("{name} at {width} px: {height} px high, first picture at {top} px");
            assert!(wide <= f64::from(width), "{name} at {width}: {wide} px wide");
            assert!(!has_picture || top <= 700.0, "{name} at {width}: the first picture begins at {top} px");
        }
    }
}
