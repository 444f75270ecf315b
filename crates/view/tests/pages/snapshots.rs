//! What a reader sees of each page, kept as files: a change of wording shows as a difference of a file.
//!
//! `cargo xtask snapshots` writes the files anew. Ids and times are those of the sample, so that nothing has to be masked but the
//! folder of the store in messages.

use crate::place::{TestView, interval, record, stream_record};
use crate::{fleet, trend};
use linerate_report::Language;
use linerate_testsuite::page_outline::outline;

/// Compares with the file `tests/snapshots/FOLDER/NAME.snap`.
fn check(folder: &str, name: &str, page: &str) {
    check_outline(folder, name, &outline(page));
}

fn check_outline(folder: &str, name: &str, outline: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../snapshots/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, outline));
}

/// A store with what a list may hold: a trend, another command, one that ended early, and one that has no figure.
fn filled(language: Language) -> TestView {
    let place = TestView::speaking(language);
    trend::keep(&place, &trend::stepped());
    let mut other = stream_record("other", 1_795_000_000_000_000_000, &[94_000_000]);
    other.command.push("--zerocopy".into());
    place.keep(&other);
    place.keep(&record("none", 1_794_000_000_000_000_000, "linerate transact alpha beta"));
    place
}

fn check_in(language: Language, tail: &str) {
    let place = filled(language);
    for (name, page) in [
        ("list", ""),
        ("list-filtered", "?text=zerocopy"),
        ("list-changed", "?changed=yes"),
        ("list-nothing-fits", "?limit=latency&text=nosuch"),
        ("compare", "compare?with=run-19&with=run-20"),
        ("trend", "trend?id=run-31"),
        ("trend-one-run", "trend?id=other"),
        ("trend-no-run", "trend?id=none"),
    ] {
        check(name, &format!("page{tail}"), &place.get(page).body);
    }
    // Its sections are those of a report, which has its own files.
    let record = place.get("record?id=run-20").body;
    let before_sections = &record[..record.find("<section").expect("a section")];
    check("record", &format!("page{tail}"), before_sections);
}

#[test]
fn pages_in_english() {
    check_in(Language::English, "");
}

#[test]
fn pages_in_japanese() {
    check_in(Language::Japanese, "-ja");
}

#[test]
fn pages_of_a_fleet() {
    for (language, tail) in [(Language::English, ""), (Language::Japanese, "-ja")] {
        let place = fleet::filled(language);
        for (name, page) in [
            ("fleet-sites-matrix", "fleet"),
            ("fleet-hosts-matrix", "fleet?by=host&from=rome&to=oslo"),
            ("fleet-pair", "fleet/pair?from=rome-1&to=oslo-2"),
            ("fleet-changes", "fleet/changes"),
            ("fleet-sites", "fleet/sites"),
            ("fleet-no-test", "fleet?test=nosuch"),
        ] {
            let page = place.get(page).body;
            check_outline(name, &format!("page{tail}"), &without_times(&outline(&page)));
        }
    }
}

/// Masks days and times, which are those of the test's run, and drawings, whose ticks depend on them.
pub(crate) fn without_times(outline: &str) -> String {
    let mut masked = String::new();
    for line in outline.lines() {
        if line.starts_with("svg") {
            masked.push_str("svg     (drawing)");
        } else {
            masked.push_str(&without_dates(line));
        }
        masked.push('\n');
    }
    masked
}

/// Replaces days, and the times that follow them, as in `2026-11-21 09:30:05`.
fn without_dates(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let matched = ["dddd-dd-dd dd:dd:dd", "dddd-dd-dd dd:dd", "dddd-dd-ddTdd:dd", "dddd-dd-dd"];
        match matched.into_iter().find(|pattern| begins_with(rest, pattern)) {
            Some(pattern) => {
                masked.push_str("DATE");
                rest = &rest[pattern.len()..];
            }
            None => {
                masked.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    masked
}

/// Returns whether `text` begins with `pattern`, in which `d` is a digit.
fn begins_with(text: &str, pattern: &str) -> bool {
    let fits =
        |(expected, actual): (u8, u8)| if expected == b'd' { actual.is_ascii_digit() } else { actual == expected };
    text.len() >= pattern.len() && pattern.bytes().zip(text.bytes()).all(fits)
}

#[test]
fn a_run_under_way() {
    let place = TestView::new();
    let mut feed = place.tell("run");
    feed.tell(interval(0, 0, 941e6));
    place.events("run").wait_for("live-now", "941 Mbit/s");
    check("live", "list", &place.get("").body);
    check("live", "record", &place.get("record?id=run").body);
}

#[test]
fn pages_that_cannot_be_shown() {
    for (language, tail) in [(Language::English, ""), (Language::Japanese, "-ja")] {
        let place = TestView::speaking(language);
        for (name, page) in [
            ("empty-store", ""),
            ("no-such-record", "record?id=nosuch"),
            ("one-ticked", "compare?with=nosuch"),
            ("no-day", "?from=yesterday"),
            ("no-limit", "?limit=kindness"),
            ("no-page", "nosuch"),
        ] {
            check("refused", &format!("{name}{tail}"), &place.get(page).body);
        }
    }
}
