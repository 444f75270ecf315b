//! The display on terminals of several sizes, kept as files. Colours are not in them.

use super::draw::draw;
use super::state::State;
use crate::snapshots::check;
use linerate_method::{Progress, read_record};
use linerate_model::{HostLoad, IntervalReport, Preparation, Record, StreamEvent, Trial, TrialState};
use linerate_report::{Language, Style};
use linerate_units::Nanos;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::fs;

const MS: u64 = 1_000_000;

/// A fixed record of a run, whose attempts from `ended` on have not been made yet, and the trial of the next.
fn record(name: &str, ended: usize) -> (Record, Trial) {
    let path = format!("{}/../report/tests/records/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut record = read_record(&text).expect("a record of the current format");
    let trial = record.trials[ended].trial.clone();
    record.trials.truncate(ended);
    record.results.clear();
    (record, trial)
}

/// The run called `name` when `ended` attempts have been made and the next has gone on for `intervals` of 200 ms.
fn running(name: &str, ended: usize, intervals: u64, report: impl Fn(u64) -> IntervalReport) -> State {
    running_in(Language::English, name, ended, intervals, report)
}

/// The same, in a language.
fn running_in(
    language: Language,
    name: &str,
    ended: usize,
    intervals: u64,
    report: impl Fn(u64) -> IntervalReport,
) -> State {
    let (mut record, trial) = record(name, ended);
    let attempts = std::mem::take(&mut record.trials);
    let mut state = State::new(record, language);
    let at_most = Some(attempts.len().max(2) * 2);
    for (done, attempt) in attempts.into_iter().enumerate() {
        begin(&mut state, &attempt.trial, Progress { done, at_most, known: None });
        go_on(&mut state, 8, &report);
        state.take(&told(&attempt.trial, TrialState::Counted));
        state.ended(attempt);
    }
    begin(&mut state, &trial, Progress { done: ended, at_most, known: None });
    go_on(&mut state, intervals, &report);
    state
}

fn begin(state: &mut State, trial: &Trial, progress: Progress) {
    state.take(&told(trial, TrialState::Begins));
    state.schedule(progress, Some(Nanos::from_secs(3)));
}

fn told(trial: &Trial, state: TrialState) -> StreamEvent {
    let transport = trial.net().map(|net| net.transport);
    let (name, task) = (trial.name.clone(), trial.task().kind());
    StreamEvent::Trial { name, task, transport, number: 0, attempt: 0, state, reason: None }
}

fn go_on(state: &mut State, intervals: u64, report: impl Fn(u64) -> IntervalReport) {
    for at in 0..intervals {
        let hosts = [("a", 97), ("b", 31 + at as u8)]
            .map(|(host, busiest)| HostLoad { host: host.into(), busiest_thread: Some(busiest) });
        let of_load = report(at);
        state.take(&StreamEvent::Interval(IntervalReport {
            from: Nanos::from_millis(200 * at),
            to: Nanos::from_millis(200 * (at + 1)),
            warmup: at < 3,
            received_bytes: (of_load.received_bps / 40.0) as u64,
            operations: (of_load.operations_per_s / 5.0) as u64,
            hosts: hosts.to_vec(),
            ..of_load
        }));
    }
}

fn tcp(at: u64) -> IntervalReport {
    let received_bps = [12e6, 55e6, 88e6, 93.9e6, 94.1e6, 61e6, 90e6, 94e6][at as usize % 8];
    let srtt = Some(Nanos::new((2 + at % 8) * MS));
    IntervalReport { received_bps, srtt, retransmits: u64::from(at == 5) * 17, ..IntervalReport::default() }
}

fn udp(at: u64) -> IntervalReport {
    IntervalReport { received_bps: 95e6 - (at % 3) as f64 * 1e6, lost: at % 2, ..IntervalReport::default() }
}

fn transactions(at: u64) -> IntervalReport {
    let (p50, p99) = (Some(Nanos::new(52_000 + at * 1_000)), Some(Nanos::new(118_000 + (at % 4) * 40_000)));
    IntervalReport { operations_per_s: 18_400.0 - at as f64 * 100.0, p50, p99, ..IntervalReport::default() }
}

/// The display of `state` on a terminal of that size, a minute and five seconds after the run began.
fn shown(state: &State, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal in memory");
    let style = Style { width: 100, colour: false, unicode: true, language: state.language };
    terminal.draw(|frame| draw(frame, state, Nanos::from_secs(65), &style)).expect("drawn in memory");
    terminal.backend().to_string()
}

#[test]
fn a_tcp_stream_has_rate_round_trip_time_processors_and_retransmits() {
    let state = running("stream-tcp", 1, 11, tcp);
    for (columns, rows) in [(80, 24), (120, 40), (20, 5)] {
        check("tui", &format!("tcp-{columns}x{rows}"), &shown(&state, columns, rows));
    }
}

#[test]
fn a_udp_stream_has_the_losses_of_runs_before_by_place() {
    let state = running("stream-udp", 4, 8, udp);
    for (columns, rows) in [(80, 24), (120, 40), (20, 5)] {
        check("tui", &format!("udp-{columns}x{rows}"), &shown(&state, columns, rows));
    }
}

#[test]
fn transactions_have_a_rate_and_the_percentiles_of_latency() {
    let state = running("transact", 1, 9, transactions);
    check("tui", "transactions-80x24", &shown(&state, 80, 24));
}

#[test]
fn before_the_first_load_the_display_says_what_is_prepared() {
    let (record, _) = record("stream-tcp", 0);
    let mut state = State::new(record, Language::English);
    state.preparing(&"b".into(), Some(Preparation::MakingFiles));
    check("tui", "preparing-80x24", &shown(&state, 80, 24));
}

#[test]
fn a_run_that_is_stopped_says_so_and_one_that_is_repeated_why() {
    let mut state = running("stream-udp", 4, 8, udp);
    let (_, trial) = record("stream-udp", 4);
    let StreamEvent::Trial { name, task, transport, number, attempt, .. } = told(&trial, TrialState::Spoilt) else {
        unreachable!("it is told of a trial")
    };
    let reason = Some("another program took 50 % of a core".to_owned());
    state.take(&StreamEvent::Trial { name, task, transport, number, attempt, state: TrialState::Spoilt, reason });
    assert!(shown(&state, 80, 24).contains("udp 512 is measured again: another program took 50 % of a core"));
    state.stopping = true;
    assert!(shown(&state, 80, 24).contains("stopping: what was measured is kept"));
}

/// Returns the display in Japanese, without the remarks about wide characters that the terminal in memory adds.
fn shown_in_japanese(state: &State) -> String {
    let display = shown(state, 80, 24);
    display.lines().filter_map(|line| line.split('"').nth(1)).collect::<Vec<_>>().join("\n")
}

/// Returns the words of letters in a display, without those of names and units.
fn english_words(shown: &str) -> Vec<&str> {
    let words = shown.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
    words
        .filter(|word| !["CPU", "Mbit", "ms", "us", "srtt", "tcp", "udp", "Esc", "Ctrl", "NIC"].contains(word))
        .collect()
}

#[test]
fn the_display_is_in_the_readers_language() {
    let state = running_in(Language::Japanese, "stream-udp", 4, 8, udp);
    let display = shown_in_japanese(&state);
    check("tui", "udp-ja-80x24", &display);
    assert_eq!(english_words(&display), Vec::<&str>::new(), "{display}");
    let (record, _) = record("stream-tcp", 0);
    let mut state = State::new(record, Language::Japanese);
    state.preparing(&"b".into(), Some(Preparation::MakingFiles));
    let display = shown_in_japanese(&state);
    assert!(display.contains("b: "), "{display}");
    assert_eq!(english_words(&display), Vec::<&str>::new(), "{display}");
    state.stopping = true;
    assert_eq!(english_words(&shown_in_japanese(&state)), Vec::<&str>::new());
}

#[test]
fn the_share_done_grows_with_the_window_and_a_rate_leaves_the_warm_up_out() {
    let after = |intervals| running("stream-tcp", 0, intervals, tcp);
    assert_eq!(after(3).share_done(), Some(0.0), "warm-up is not the window");
    assert_eq!(after(3).trial.and_then(|trial| trial.mean()), None);
    let state = after(5);
    let mean = state.trial.as_ref().and_then(|trial| trial.mean()).expect("the window has begun");
    assert!((mean - 94e6).abs() < 1e3, "{mean}");
    let share = state.share_done().expect("the number of trials is known");
    assert!((share - 0.4 / 3.0 / 4.0).abs() < 1e-9, "{share}");
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let states =
        [running("stream-tcp", 1, 200, tcp), running("stream-udp", 4, 8, udp), running("nfs", 1, 5, transactions)];
    for state in states {
        for columns in [1, 2, 5, 19, 39, 40, 41, 79, 200, 400] {
            for rows in [1, 2, 3, 4, 6, 11, 12, 13, 15, 30, 120] {
                let drawn = shown(&state, columns, rows);
                assert_eq!(drawn.lines().count(), usize::from(rows), "{columns}x{rows}");
            }
        }
    }
}
