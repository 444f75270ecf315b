//! Runs whose figure has changed from that of the run before are found, in whatever order runs end and go.

use crate::place::{Place, on_both_backends};
use crate::sample::{record, summary, trial};
use linerate_model::{Calibration, Firmness, Headline, Plan, Record, RunSummary};
use linerate_store::{Ending, Query, RunRow, State, Store};

const COMMAND: &str = "linerate stream a b";

fn run(id: &str, start: u64, command: &str) -> Record {
    Record { command: command.split_whitespace().map(str::to_owned).collect(), ..record(id, start) }
}

fn keep(store: &Store, record: &Record, summary: &RunSummary, ending: Ending) {
    let mut live = store.begin(record).expect("begin");
    live.trial(&trial(0), summary).expect("trial");
    live.end(record, ending).expect("end");
}

fn changed(store: &Store) -> Vec<String> {
    let query = Query { changed: true, ..Query::default() };
    let mut names: Vec<String> = store.list(&query, 0, 100).expect("list").into_iter().map(|row| row.id.0).collect();
    assert_eq!(store.count(&query).expect("count"), names.len());
    names.sort();
    names
}

/// The same, worked out from the rows of all runs.
fn changed_by_rows(store: &Store) -> Vec<String> {
    let has_changed = |row: &RunRow| {
        let before = store.before(row).expect("before").and_then(|before| before.headline);
        let (Some(new), Some(before)) = (&row.headline, before) else { return false };
        row.state == State::Finished && new.has_changed_from(&before)
    };
    let rows = store.list(&Query::default(), 0, 100).expect("list");
    let mut names: Vec<String> = rows.into_iter().filter(has_changed).map(|row| row.id.0).collect();
    names.sort();
    names
}

fn runs_whose_figure_changed_are_found(place: &Place<'_>) {
    let store = place.open();
    let not_firm = |value| {
        let summary = summary(value);
        let firmness = Firmness::NotFirm { offered: None };
        RunSummary { headline: summary.headline.map(|headline| Headline { firmness, ..headline }), ..summary }
    };
    for (id, start, command, figure, ending) in [
        ("01-first", 10, COMMAND, summary(100.0), Ending::Finished),
        ("02-little", 20, COMMAND, summary(104.0), Ending::Finished),
        ("03-more", 30, COMMAND, summary(110.0), Ending::Finished),
        ("04-stopped", 40, COMMAND, summary(50.0), Ending::Interrupted),
        ("05-same", 50, "/opt/linerate stream a b", summary(110.0), Ending::Finished),
        ("06-other", 60, "linerate stream a b --udp", summary(50.0), Ending::Finished),
        ("07-not-firm", 70, COMMAND, not_firm(50.0), Ending::Finished),
        ("08-after-it", 80, COMMAND, summary(110.0), Ending::Finished),
        ("09-less", 90, COMMAND, summary(99.0), Ending::Finished),
        ("10-none", 95, COMMAND, RunSummary::default(), Ending::Finished),
    ] {
        keep(&store, &run(id, start, command), &figure, ending);
    }
    assert_eq!(changed(&store), ["03-more", "09-less"]);
    assert_eq!(changed(&store), changed_by_rows(&store));
    let late = Query { changed: true, from_unix_ns: Some(50), kind: Some("stream".into()), ..Query::default() };
    assert_eq!(store.list(&late, 0, 9).expect("list").len(), 1, "with other conditions");
}

/// A command may measure its tester limit first, which then has the same words.
fn a_tester_limit_is_no_run_before(place: &Place<'_>) {
    let store = place.open();
    for (id, start, figure, is_limit) in [
        ("01-limit", 10, 500.0, true),
        ("02-run", 20, 100.0, false),
        ("03-limit", 30, 500.0, true),
        ("04-run", 40, 110.0, false),
    ] {
        let run = run(id, start, COMMAND);
        let calibration = is_limit.then(Calibration::loopback);
        let run = Record { plan: Plan { calibration, ..run.plan.clone() }, ..run };
        keep(&store, &run, &summary(figure), Ending::Finished);
    }
    assert_eq!(changed(&store), ["04-run"]);
    let rows = store.list(&Query::default(), 0, 9).expect("list");
    assert_eq!(rows.iter().map(RunRow::is_tester_limit).collect::<Vec<_>>(), [false, true, false, true]);
    let runs = store.of_command(&rows[0], 9).expect("listed");
    assert_eq!(runs.iter().map(|run| &*run.row.id.0).collect::<Vec<_>>(), ["02-run", "04-run"]);
}

/// What a run is held against may end after it, and may go.
fn a_run_that_ends_late_or_goes_changes_what_the_next_is_held_against(place: &Place<'_>) {
    let store = place.open();
    let (first, second) = (run("first", 10, COMMAND), run("second", 20, COMMAND));
    let mut late = store.begin(&second).expect("begin");
    late.trial(&trial(0), &summary(100.0)).expect("trial");
    keep(&store, &first, &summary(100.0), Ending::Finished);
    keep(&store, &run("third", 30, COMMAND), &summary(150.0), Ending::Finished);
    keep(&store, &run("fourth", 40, COMMAND), &summary(100.0), Ending::Finished);
    assert_eq!(changed(&store), ["fourth", "third"], "third against first");
    late.trial(&trial(1), &summary(150.0)).expect("trial");
    assert_eq!(changed(&store), ["fourth", "third"], "second is still measured");
    late.end(&second, Ending::Finished).expect("end");
    assert_eq!(changed(&store), ["fourth", "second"], "third against second");
    assert_eq!(changed(&store), changed_by_rows(&store));
    store.delete("third").expect("deleted");
    assert_eq!(changed(&store), ["fourth", "second"], "fourth against second");
    store.delete("second").expect("deleted");
    assert!(changed(&store).is_empty(), "fourth against first");

    keep(&store, &run("fifth", 50, COMMAND), &summary(200.0), Ending::Interrupted);
    assert!(changed(&store).is_empty(), "it was interrupted");
    let (record, live) = store.resume("fifth").expect("resumed");
    live.end(&record, Ending::Finished).expect("end");
    assert_eq!(changed(&store), ["fifth"], "it was resumed and ended");
}

on_both_backends!(
    runs_whose_figure_changed_are_found,
    a_tester_limit_is_no_run_before,
    a_run_that_ends_late_or_goes_changes_what_the_next_is_held_against,
);
