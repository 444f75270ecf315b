//! Studies that are measured, in labs of their own: interrupted and resumed, waiting for somebody, refused.

use crate::program::{TestFolder, children, wait_until_gone};
use linerate_store::{Query, State};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Four cells: what is measured is short, for it is the table that counts.
const STUDY: &str = "\
title = 'Devices'
about = 'x'
method = 'A stream.'
[run]
lab = '--link {link} --device {device}'
test = 'stream a b --udp --size {size} --time 1s --warmup 0'
repeats = 1
[path]
transport = 'udp'
[[factors]]
column = 'link'
levels = [{ name = '10Mbit/s', medium = '10base-t' }]
[[factors]]
column = 'device'
levels = [{ name = 'switch', words = 'bridge' }, { name = 'router' }]
[[factors]]
column = 'size'
of = 'message'
levels = [{ name = '64' }, { name = '1472' }]
[[measures]]
column = 'rate'
metric = 'throughput'
[[measures]]
column = 'loss'
metric = 'loss'
";

/// The levels of each cell and how many values each measure has there.
fn table(report: &Value) -> Vec<(Value, Vec<usize>)> {
    let cells = report["study"]["cells"].as_array().expect("cells");
    let values = |cell: &Value| cell["values"].as_array().expect("values").iter().map(count).collect();
    cells.iter().map(|cell| (cell["levels"].clone(), values(cell))).collect()
}

fn count(values: &Value) -> usize {
    values.as_array().expect("a list").len()
}

/// How many runs the store has that have ended.
fn kept(place: &TestFolder) -> usize {
    let runs = place.store().list(&Query::default(), 0, 10).expect("listed");
    runs.iter().filter(|run| run.state == State::Finished).count()
}

#[lab_test]
fn interrupted_and_resumed_the_table_is_the_same() {
    let whole = TestFolder::new();
    let study = whole.file("devices.toml", STUDY);
    let uninterrupted = whole.run(&["run", &study, "--json"]);
    uninterrupted.says(0, &["study devices: 4 runs", "4 of 4: ", "rate", "loss"]);
    let expected = table(&uninterrupted.json());
    assert_eq!(expected.len(), 4);
    assert!(expected.iter().all(|(_, values)| *values == [1, 1]), "{expected:?}");
    assert_eq!(kept(&whole), 4);

    let place = TestFolder::new();
    let study = place.file("devices.toml", STUDY);
    let running = place.start(&["run", &study]);
    wait_until("a run is kept", || (kept(&place) > 0).then_some(()));
    running.signal(Signal::SIGINT);
    running.end().says(3, &["devices.toml` goes on after the runs that are kept"]);
    let part = place.run(&["report", &study, "--json"]).json();
    let before = table(&part).len();
    assert!((1..4).contains(&before), "{before} cells");
    let caveats = part["study"]["caveats"].to_string();
    assert!(caveats.contains(&format!("{before} of 4 runs are measured")), "{caveats}");

    let resumed = place.run(&["run", &study, "--json"]);
    resumed.says(0, &[&format!("4 runs, of which {before} are kept already"), "4 of 4: "]);
    assert_eq!(table(&resumed.json()), expected);
    // Nothing more is run, and the same is told again, in every form.
    let again = place.run(&["run", &study, "--json"]);
    again.says(0, &["4 runs, of which 4 are kept already"]);
    assert!(!again.err.contains("4 of 4: "), "{}", again.err);
    assert_eq!(again.json(), resumed.json());
    assert_eq!(place.run(&["report", &study, "--json"]).json(), resumed.json());
    assert_eq!(place.run(&["report", &study, "--format", "csv"]).out.lines().count(), 5);

    // A level more: only its cells are run, and one that cannot be measured is named.
    let wrong = place.file("devices.toml", &STUDY.replace("{ name = '1472' }", "{ name = '1472' }, { name = '8' }"));
    place.run(&["run", &wrong]).says(2, &["size 8 bytes", "--size 8", "16 to 65507 bytes"]);
}

/// Nothing can be told or tidied up by a program that is killed. Its lab goes with it, and the runs that it kept count.
#[lab_test]
fn a_study_that_was_killed_goes_on_with_what_is_missing() {
    let place = TestFolder::new();
    let study = place.file("devices.toml", STUDY);
    let mut running = place.start(&["run", &study]);
    wait_until("a run is kept", || (kept(&place) > 0).then_some(()));
    let lab = children(running.pid());
    running.kill();
    wait_until_gone(&lab);
    let part = place.run(&["report", &study, "--json"]).json();
    let before = table(&part).len();
    assert!((1..4).contains(&before), "{before} cells");

    let resumed = place.run(&["run", &study, "--json"]);
    resumed.says(0, &[&format!("4 runs, of which {before} are kept already"), "4 of 4: "]);
    let cells = table(&resumed.json());
    assert!(cells.len() == 4 && cells.iter().all(|(_, values)| *values == [1, 1]), "{cells:?}");
    assert_eq!(table(&part), cells.into_iter().filter(|cell| table(&part).contains(cell)).collect::<Vec<_>>());
}

#[lab_test]
fn a_metric_that_the_test_does_not_give_is_refused_before_it_is_measured() {
    let place = TestFolder::new();
    let study = place.file("devices.toml", &STUDY.replace("metric = 'loss'", "metric = 'read.p99'"));
    let words = [
        "devices.toml, link ",
        "line 25, measure `loss` has the metric `read.p99`",
        "expected one of throughput, packets",
    ];
    place.run(&["run", &study]).says(2, &words);
    assert_eq!(kept(&place), 0);
}

/// Somebody sets one factor, commands set another, in the lab and on this machine.
#[lab_test]
fn a_study_waits_for_somebody() {
    let place = TestFolder::new();
    let notes = place.path("notes");
    let text = format!(
        "title = 'Cards'\nabout = 'x'\nmethod = 'A stream.'\n\
         [run]\nlab = ''\ntest = 'transact a b --time 1s --warmup 0'\nrepeats = 1\norder = 'listed'\n\
         [[factors]]\ncolumn = 'card'\nset = {{ person = 'put the {{level}} card into slot 1' }}\n\
         levels = [{{ name = 'red' }}, {{ name = 'blue' }}]\n\
         [[factors]]\ncolumn = 'mtu'\nset = {{ command = 'ip link set eth0 mtu {{level}}', host = 'a' }}\n\
         levels = [{{ name = '1500' }}, {{ name = '900' }}]\n\
         [[factors]]\ncolumn = 'note'\n\
         set = {{ command = 'echo {{level}} >> {notes}', undo = 'echo no {{level}} >> {notes}' }}\n\
         levels = [{{ name = 'here' }}]\n\
         [[measures]]\ncolumn = 'p99'\nmetric = 'p99'\n",
        notes = notes.display()
    );
    let study = place.file("cards.toml", &text);
    // What it runs is shown, and not run unless its user agrees.
    let refused = place.run(&["run", &study, "--ready"]);
    refused.says(2, &["runs commands on this machine", "echo here >> ", "echo no here >> ", "--yes", "--dry-run"]);
    let shown = place.run(&["run", &study, "--dry-run"]);
    assert!(shown.shows("command: echo here >> ") && shown.shows("in the network of host a"), "{}", shown.out);
    assert!(!notes.exists(), "nothing was run");
    place
        .run(&["run", &study, "--yes"])
        .says(4, &["card red", "put the red card into slot 1", "cards.toml --ready` goes on"]);
    assert!(!notes.exists(), "nothing is set before somebody is ready");
    place
        .run(&["run", &study, "--ready", "--yes"])
        .says(4, &["2 of 4: ", "put the blue card into slot 1", "--ready` goes on"]);
    assert_eq!(std::fs::read_to_string(&notes).expect("the command ran here"), "here\nno here\n");
    let ended = place.run(&["run", &study, "--ready", "--yes", "--json"]);
    ended.says(0, &["of which 2 are kept already", "4 of 4: "]);
    let report = ended.json();
    assert_eq!(table(&report).len(), 4);
    assert_eq!(report["study"]["measures"][0]["unit"], "ns");
    let method = report["study"]["method"].as_str().expect("a method");
    assert!(method.contains("A person set card") && method.contains("split-plot"), "{method}");

    // A command that fails ends the study, and is named.
    let study = place.file("cards.toml", &text.replace("ip link set eth0", "ip link set eth7"));
    place
        .run(&["run", &study, "--ready", "--yes"])
        .says(3, &["`ip link set eth7 mtu 1500` in host a", "did not succeed"]);
}

#[test]
fn what_is_no_run_is_refused_before_anything_is_set_up() {
    let place = TestFolder::new();
    let refused = |from: &str, to: &str, words: &[&str]| {
        assert!(STUDY.contains(from), "{from}");
        let study = place.file("devices.toml", &STUDY.replace(from, to));
        place.run(&["run", &study]).says(2, words);
    };
    refused("--udp", "--udq", &["devices.toml, link ", "unexpected argument", "--udq"]);
    refused("--udp", "--udp --json", &["devices.toml", "--json does not go into a study"]);
    refused("--link {link}", "--link {link} --keep", &["devices.toml", "leave --keep"]);
    refused("words = 'bridge'", "words = 'bride'", &["devices.toml", "bride"]);
    refused("'stream a b --udp --size {size} --time 1s --warmup 0'", "'limits --mtu {size}'", &["measures nothing"]);
    refused("metric = 'loss'", "metric = 'lost'", &["line 25, field `metric`", "`lost` is no metric", "loss"]);
    let study = place.file("devices.toml", STUDY);
    place.run(&["report", &study]).says(2, &["nothing of", "is measured yet", "linerate run"]);
    let imported = STUDY.split_once("[run]").expect("it has [run]").0.to_owned()
        + "data = 'x.csv'\n[[factors]]\n\
        column = 'link'\n[[measures]]\ncolumn = 'rate'\nunit = 'Mbit/s'\n";
    let study = place.file("imported.toml", &imported);
    place.run(&["run", &study]).says(2, &["names results to import", "linerate report"]);
}
