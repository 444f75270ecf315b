//! What a reader sees of every kind of run, kept as files: a change of wording shows as a difference of a file.
//!
//! `cargo xtask snapshots` writes the files anew. Each kind of run has a folder of `tests/snapshots`, each form of output a file in it.

use crate::{attempts, calls, copy, copy_timeline, device, frames, ladder, limits, nfs, over_time, recorded, sample};
use linerate_model::{
    Change, ComparedFigure, Comparison, Firmness, Interval, Quantity, Record, RecordId, Samples, message,
};
use linerate_report::limits::Limits;
use linerate_report::{Language, Style, answer, comparison, csv, explain, html, json, markdown, text};
use linerate_testsuite::page_outline::outline;
use linerate_units::BitRate;
use serde_json::Value;

const TERMINAL: Style = Style { width: 100, colour: false, unicode: true, language: Language::English };
const JAPANESE: Style = Style { language: Language::Japanese, ..TERMINAL };

/// Compares with the file `tests/snapshots/FOLDER/NAME.snap`.
fn check(folder: &str, name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../snapshots/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

/// Compares the words that a reader sees of a recorded run, and what explains its verdicts.
fn check_recorded(name: &str) {
    let record = recorded::record(name);
    check_words(name, &record);
    check(name, "explain", &explain(&record, &TERMINAL));
}

/// Compares the charts, tables and headings of a record's page. One record of each kind is enough.
fn check_page(folder: &str, record: &Record) {
    check(folder, "page", &outline(&html(Language::English, record)));
}

/// Compares what programs read of a record. One record of each kind of figures is enough.
fn check_data(folder: &str, record: &Record) {
    check(folder, "json", &laid_out(&abridged(record), 0));
    check(folder, "csv", &turned(&csv(record)));
}

fn check_words(folder: &str, record: &Record) {
    check(folder, "terminal", &text(record, &TERMINAL));
}

fn check_in_japanese(folder: &str, record: &Record) {
    check(folder, "terminal-ja", &text(record, &JAPANESE));
}

/// The record as `--json` prints it, without what stands in `tests/records`: plan, hosts and trials.
fn abridged(record: &Record) -> Value {
    let mut value: Value = serde_json::from_str(&json(record)).expect("it is JSON");
    ["plan", "hosts", "trials"].iter().for_each(|part| value[part] = "left out".into());
    value
}

/// JSON with its keys in order, one line for what fits one line, and long lists cut.
fn laid_out(value: &Value, indent: usize) -> String {
    const WIDTH: usize = 120;
    let parts = |indent: usize| -> Vec<String> {
        match value {
            Value::Object(members) => {
                let mut parts: Vec<String> =
                    members.iter().map(|(key, value)| format!("\"{key}\": {}", laid_out(value, indent))).collect();
                parts.sort();
                parts
            }
            Value::Array(entries) => cut(entries.iter().map(|entry| laid_out(entry, indent)).collect()),
            Value::Number(number) => vec![rounded(&number.to_string())],
            plain => vec![plain.to_string()],
        }
    };
    let (open, close) = match value {
        Value::Object(_) => ("{", "}"),
        Value::Array(_) => ("[", "]"),
        _ => return parts(0).concat(),
    };
    let line = format!("{open}{}{close}", parts(0).join(", "));
    if !line.contains('\n') && indent + line.len() <= WIDTH {
        return line;
    }
    let (inside, outside) = (" ".repeat(indent + 2), " ".repeat(indent));
    format!("{open}\n{inside}{}\n{outside}{close}", parts(indent + 2).join(&format!(",\n{inside}")))
}

/// The first and the last of many entries.
fn cut(mut entries: Vec<String>) -> Vec<String> {
    const MOST: usize = 24;
    if entries.len() > MOST {
        let left_out = entries.len() - 4;
        entries.splice(2..entries.len() - 2, [format!("\"{left_out} more\"")]);
    }
    entries
}

/// A number with six digits, if it is not whole: the last digits depend on the machine's mathematical library.
fn rounded(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(value) if number.contains(['.', 'e']) && value.is_finite() => {
            format!("{value:.5e}").parse::<f64>().expect("a number").to_string()
        }
        _ => number.to_owned(),
    }
}

/// A CSV file with a line for each column: its name, and its cell of each row.
fn turned(csv: &str) -> String {
    let rows: Vec<Vec<String>> = csv.split_terminator("\r\n").map(fields).collect();
    let column = |at: usize| {
        let cells: Vec<String> = rows.iter().map(|row| rounded(&row[at])).collect();
        cells.join(" | ").trim_end().to_owned()
    };
    (0..rows[0].len()).map(column).collect::<Vec<_>>().join("\n")
}

/// The fields of one CSV line, quotes undone.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    all.push(field);
    all
}

#[test]
fn streams() {
    ["stream-tcp", "stream-udp", "stream-proven", "stream-loaded-latency"].iter().for_each(|name| check_recorded(name));
    check_in_japanese("stream-loaded-latency", &recorded::record("stream-loaded-latency"));
    check_data("stream-tcp", &recorded::record("stream-tcp"));
    let udp = recorded::record("stream-udp");
    check_page("stream-udp", &udp);
    check("stream-udp", "answer", &answer(&udp, &Style { width: 80, ..TERMINAL }));
    check("stream-udp", "answer-ja", &answer(&udp, &Style { width: 80, ..JAPANESE }));
    check("stream-udp", "markdown", &markdown(Language::English, &udp));
}

#[test]
fn runs_that_ended_early() {
    ["stream-interrupted", "nfs-curve-interrupted", "ladder-interrupted"].iter().for_each(|name| check_recorded(name));
}

#[test]
fn requests_and_responses() {
    ["transact", "rpc", "nfs"].iter().for_each(|name| check_recorded(name));
    check_words("rpc-calls", &calls::record());
    check_words("rpc-sizes", &nfs::rpc());
    check_words("nfs-curve", &nfs::record());
    check_in_japanese("nfs-curve", &nfs::record());
    check_page("nfs-curve", &nfs::record());
    check_data("transact", &recorded::record("transact"));
}

#[test]
fn copies() {
    ["copy-fault", "copy-proven"].iter().for_each(|name| check_recorded(name));
    check_words("copy-two-destinations", &copy::record());
    check_in_japanese("copy-two-destinations", &copy::record());
    check_in_japanese("copy-timeline", &copy_timeline::record());
    check_page("copy-timeline", &copy_timeline::record());
    check_data("copy-fault", &recorded::record("copy-fault"));
}

#[test]
fn raw_frames() {
    check_recorded("frames");
    check_words("frames-lost", &frames::record());
    check_page("frames", &recorded::record("frames"));
    check_data("frames", &recorded::record("frames"));
}

#[test]
fn device_tests() {
    ["device-all", "device-calibrate", "device-throughput"].iter().for_each(|name| check_recorded(name));
    ["device-addresses", "device-hosts", "device-echo"].iter().for_each(|name| check_recorded(name));
    check_words("device-sizes", &device::record());
    check_words("device-not-firm", &device::not_firm());
    check_in_japanese("device-not-firm", &device::not_firm());
    check_in_japanese("device-all", &recorded::record("device-all"));
    check_page("device-all", &recorded::record("device-all"));
    check_data("device-throughput", &recorded::record("device-throughput"));
}

/// Charts over time: of streams, requests, copies and frames. Only pages draw them.
#[test]
fn courses() {
    over_time::all().iter().for_each(|(folder, record)| check_page(folder, record));
    check_in_japanese("over-time-stream", &over_time::stream());
    check_words("over-time-stream", &over_time::stream());
}

#[test]
fn a_ladder() {
    check_words("ladder", &ladder::record());
    check_in_japanese("ladder", &ladder::record());
    check_page("ladder", &ladder::record());
}

/// What is rare or takes many hosts: spoilt attempts, losses in every place, high grades of delay, no link speed, several senders.
#[test]
fn rare_results() {
    check_words("spoilt-attempts", &attempts::record());
    check_in_japanese("spoilt-attempts", &attempts::record());
    check_words("loss-places", &sample::lossy());
    check_words("loaded-latency-grades", &sample::loaded_latency());
    check_words("several-senders", &sample::many_sources());
    check_words("tester-limit", &sample::udp_sweep());
    check_words("unknown-link", &sample::unknown_link());
    check_words("nothing-measured", &sample::record(&["a"], "b", vec![]));
}

#[test]
fn colours() {
    let coloured = text(&sample::udp_sweep(), &Style { colour: true, ..TERMINAL });
    check("tester-limit", "terminal-coloured", &coloured.replace('\u{1b}', "ESC"));
}

#[test]
fn limits_of_media() {
    let overview = limits::overview();
    check("limits", "overview", &linerate_report::limits::text(&overview, &TERMINAL));
    let mut one = Limits { overview: false, explain: true, claim: Some(BitRate::per_second(77_000_000)), ..overview };
    one.cells.retain(|cell| cell.carried().cells().is_some());
    one.cells.truncate(1);
    check("limits", "explained", &linerate_report::limits::text(&one, &TERMINAL));
    check("limits", "explained-ja", &linerate_report::limits::text(&one, &JAPANESE));
}

/// A change of each kind, a figure that had one run only, and figures that are not firm.
#[test]
fn a_comparison() {
    let figure = |name: &str, quantity, before: f64, after: f64, p: Option<f64>, change| ComparedFigure {
        name: name.to_owned(),
        quantity,
        before: sample::summary(before, 0.01),
        after: sample::summary(after, 0.01),
        before_firmness: Firmness::Firm,
        after_firmness: if name.ends_with("not firm") {
            Firmness::NotFirm { offered: Some(0.6) }
        } else {
            Firmness::Firm
        },
        difference: Some(after / before - 1.0),
        tolerance: 0.02,
        interval: p.map(|_| Interval { percent: 90.0, low: after / before - 1.01, high: after / before - 0.99 }),
        p_beyond: p,
        p_within: p,
        p,
        change,
        needed: (change == Change::Undecided && p.is_some()).then_some(14),
    };
    let ids = |names: &[&str]| names.iter().map(|name| RecordId((*name).to_owned())).collect();
    let found = Comparison {
        before: ids(&["20261121T093000-4f2a"]),
        after: ids(&["20261122T093000-77aa"]),
        samples: Samples::Runs,
        tolerance: 0.02,
        confidence_percent: 95.0,
        level: 0.05,
        figures: vec![
            figure("udp 64", Quantity::PayloadBps, 279e6, 251e6, Some(0.0004), Change::Worse),
            figure("udp 1472", Quantity::PayloadBps, 956e6, 957e6, Some(0.008), Change::Equivalent),
            figure("tcp transactions", Quantity::PerSecond, 20_100.0, 24_310.0, Some(0.012), Change::Better),
            figure("tcp transactions", Quantity::LatencyP50Ns, 51_000.0, 50_000.0, Some(0.21), Change::Undecided),
            figure("tcp transactions", Quantity::LatencyP99Ns, 91_000.0, 88_000.0, None, Change::Undecided),
            figure("throughput 64, not firm", Quantity::FramesPerS, 1e6, 9e5, Some(0.4), Change::Undecided),
            figure("latency 64, not firm", Quantity::LatencyP99Ns, 1e6, 9e5, Some(0.4), Change::Undecided),
        ],
        warnings: vec![message!(
            "compared-condition",
            "{what}: {old} before, {new} after",
            what = message!("compared-kernel", "kernel of host {host}", host = "b"),
            old = "Linux 6.12.1",
            new = "Linux 6.18.44"
        )],
        remarks: vec![message!("compared-measured-before", "`{name}` was measured before only", name = "udp 512")],
    };
    check("comparison", "terminal", &comparison(&found, &TERMINAL));
    check("comparison", "terminal-ja", &comparison(&found, &JAPANESE));
}
