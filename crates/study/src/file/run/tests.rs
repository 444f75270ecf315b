//! Studies that are measured: what is refused, which runs are missing, and what they come to.

use crate::file::{Kept, Measured, PlannedRun, StudyError, StudyFile};
use crate::study::StudyCell;
use linerate_method::measurements;
use linerate_model::{
    Counts, EndCounts, MeasureUnit, Measurement, Observation, Path, PathCounts, Plan, Received, Record, RecordId,
    Repeats, Sent, Standing, StreamTask, Task, Timing, Transport, Trial, TrialResult,
};
use linerate_report::Language;
use linerate_units::{ByteCount, Nanos};
use std::collections::{BTreeMap, BTreeSet};

const STUDY: &str = "\
title = 'Cards'
about = 'x'
method = 'One stream.'

[run]
lab = '--link {link}'
test = \"stream a b --udp --size {size} --time '1s'\"
repeats = 2

[[factors]]
column = 'link'
levels = [{ name = '10', words = '10Mbit/s', medium = '10base-t' }, { name = 'fast', words = '100Mbit/s --hosts 3' }]

[[factors]]
column = 'card'
set = { person = 'put the {level} into slot 1' }
levels = [{ name = 'red card' }, { name = 'blue card' }]

[[factors]]
column = 'mtu'
set = { command = 'ip link set eth0 mtu {level}', undo = 'ip link set eth0 mtu 1500', host = 'a' }
levels = [{ name = '1500' }, { name = '900' }]

[[factors]]
column = 'size'
of = 'message'
levels = [{ name = '1472' }, { name = '64' }]

[[measures]]
column = 'rate'
metric = 'throughput'

[path]
transport = 'udp'
";

fn parse(text: &str) -> Result<Measured, StudyError> {
    match StudyFile::parse(std::path::Path::new("studies/cards.toml"), text)? {
        StudyFile::Measured(study) => Ok(study),
        StudyFile::Imported(_) => panic!("it has [run]"),
    }
}

fn runs(text: &str) -> Vec<PlannedRun> {
    parse(text).expect("a good study").runs(str::to_owned)
}

/// A record of a run that measured a UDP stream, without results.
fn record(run: &PlannedRun) -> Record {
    let mut record = Record::new(RecordId("x".to_owned()), Plan::sweep(vec![stream()], Repeats::Times(1)));
    record.study = Some(run.is.clone());
    record.command.clone_from(&run.command);
    record
}

/// A UDP stream of 1,000-byte datagrams from a to b.
fn stream() -> Trial {
    let stream = StreamTask {
        paths: vec![Path::between("a", "b")],
        offload: false,
        ..StreamTask::plain(Transport::Udp, ByteCount::new(1000))
    };
    Trial::new("udp 1000", Task::Stream(stream), Timing::of(Nanos::from_millis(200), Nanos::from_secs(1)))
}

/// The results of the stream when (`number` + 1) times 100 datagrams arrived in one second.
fn results(number: u64) -> Vec<Measurement> {
    let window = Nanos::from_secs(1);
    let messages = (number + 1) * 100;
    let payload_bytes = messages * 1000;
    let sent = Sent { window, payload_bytes, messages, ..Sent::default() };
    let received = Received { window, payload_bytes, messages, arrived: messages, ..Received::default() };
    let interface = Some("eth0".to_owned());
    let path = PathCounts {
        client: EndCounts { interface: interface.clone(), sent: Some(sent), ..EndCounts::default() },
        server: EndCounts { interface, received: Some(received), ..EndCounts::default() },
        forward_loss: None,
        backward_loss: None,
    };
    let result = TrialResult {
        trial: stream(),
        attempt: 0,
        standing: Standing::Counted,
        started_unix_ns: 0,
        span: None,
        counts: vec![Counts::Flows(vec![path])],
        hosts: BTreeMap::from([("a".into(), Observation::default()), ("b".into(), Observation::default())]),
        series: Vec::new(),
        clocks: BTreeMap::new(),
        outages: Vec::new(),
        device_load: None,
        caveats: Vec::new(),
    };
    let record = Record::new(RecordId("x".to_owned()), Plan::sweep(vec![stream()], Repeats::Times(1)));
    measurements(&Record { trials: vec![result], ..record })
}

fn missing(runs: &[PlannedRun], records: &[Record]) -> usize {
    let kept = Kept::of(records);
    runs.iter().filter(|run| kept.find(run).is_none()).count()
}

#[test]
fn levels_replace_their_placeholders() {
    let runs = runs(STUDY);
    assert_eq!(runs.len(), 2 * 2 * 2 * 2 * 2);
    let run =
        runs.iter().find(|run| run.name == "link fast, card blue card, mtu 900, size 64 bytes").expect("it is there");
    assert_eq!(run.lab.as_deref().map(|lab| lab.join("|")).as_deref(), Some("--link|100Mbit/s|--hosts|3"));
    assert_eq!(run.test, ["stream", "a", "b", "--udp", "--size", "64", "--time", "1s"]);
    assert_eq!(run.command[..5], ["linerate", "lab", "--link", "100Mbit/s", "--hosts"]);
    assert_eq!(run.steps.values().collect::<Vec<_>>(), ["put the blue card into slot 1"]);
    let command = run.commands.values().next().expect("one factor is set by a command");
    assert_eq!((command.command.as_str(), command.host.as_deref()), ("ip link set eth0 mtu 900", Some("a")));
    assert_eq!(run.is.set, ["a: ip link set eth0 mtu 900"]);
    assert_eq!(run.is.levels["card"], "blue card");
}

#[test]
fn level_name_is_one_word() {
    let study = STUDY.replace("--size {size}", "--size {size} --name {card}");
    assert!(runs(&study).iter().all(|run| run.test.last().is_some_and(|word| word == "1s") && run.test.len() == 10));
}

#[test]
fn a_measure_has_the_unit_and_the_layer_of_its_metric() {
    let study = parse(STUDY).expect("a good study").gathered(&[], &[]).expect("no record is none too many");
    assert_eq!(study.measures[0].unit, MeasureUnit::BitsPerS);
    assert_eq!(study.measures[0].counts, Some(linerate_model::Layer::Payload));
    let frames = STUDY.replace("\"stream a b --udp --size {size} --time '1s'\"", "'device throughput --sizes {size}'");
    let study = parse(&frames).expect("a good study").gathered(&[], &[]).expect("no record is none too many");
    assert_eq!(study.measures[0].counts, Some(linerate_model::Layer::Layer2Fcs));
    let slow = parse(&STUDY.replace("'throughput'", "'latency.p99'")).expect("a good study");
    assert_eq!(slow.gathered(&[], &[]).expect("none too many").measures[0].unit, MeasureUnit::Nanos);
}

#[test]
fn kept_runs_are_not_repeated() {
    let runs = runs(STUDY);
    let all: Vec<Record> = runs.iter().map(record).collect();
    assert_eq!(missing(&runs, &[]), 32);
    assert_eq!(missing(&runs, &all[..13]), 19);
    assert_eq!(missing(&runs, &all), 0);
    // A record of something else with the same levels, and one of no study.
    let mut other = all.clone();
    other.iter_mut().for_each(|record| record.study.as_mut().expect("it has one").study = "others".to_owned());
    other[0].study = None;
    assert_eq!(missing(&runs, &other), 32);
}

/// Returns the runs of a kept study that are missing after its file was changed.
#[test]
fn new_and_changed_runs_are_missing() {
    let all: Vec<Record> = runs(STUDY).iter().map(record).collect();
    for (from, to, left) in [
        ("title = 'Cards'", "title = 'Cards and links'", 0),
        ("repeats = 2", "repeats = 3", 16),
        ("repeats = 2", "repeats = 2\nseed = 2", 0),
        ("repeats = 2", "repeats = 2\norder = 'listed'", 0),
        ("put the {level}", "please put the {level}", 0),
        ("{ name = '64' }", "{ name = '64' }, { name = '512' }", 16),
        ("--time '1s'", "--time '2s'", 32),
        ("words = '10Mbit/s'", "words = '10Mbit/s --hosts 3'", 16),
        ("eth0 mtu {level}'", "eth1 mtu {level}'", 32),
        ("undo = 'ip link set eth0 mtu 1500'", "undo = 'true'", 0),
    ] {
        assert!(STUDY.contains(from), "{from}");
        assert_eq!(missing(&runs(&STUDY.replace(from, to)), &all), left, "{to}");
    }
}

#[test]
fn kept_commands_have_no_secrets() {
    let hidden = |word: &str| word.replace("eth0", "***").replace("1s", "...");
    let runs = parse(STUDY).expect("a good study").runs(hidden);
    assert!(runs.iter().all(|run| run.command.last().is_some_and(|word| word == "...")));
    assert!(runs.iter().all(|run| run.test.last().is_some_and(|word| word == "1s")));
}

#[test]
fn cells_are_in_the_order_of_the_levels() {
    let study = parse(STUDY).expect("a good study");
    let runs = study.runs(str::to_owned);
    let measured = |(number, run): (usize, &PlannedRun)| Record { results: results(number as u64), ..record(run) };
    let records: Vec<Record> = runs.iter().enumerate().map(measured).collect();
    let mut backwards = records.clone();
    backwards.reverse();
    // A run that was made twice: the first counts.
    backwards.push(Record { results: results(99), ..record(&runs[0]) });
    let (one, other) = (study.gathered(&runs, &records), study.gathered(&runs, &backwards));
    let one = one.expect("each has a value");
    assert_eq!(Ok(one.clone()), other, "the order of the records and their number change nothing");
    assert_eq!(one.cells.len(), 16);
    let levels: BTreeSet<_> = one.cells.iter().map(|cell| cell.levels.clone()).collect();
    assert!(levels.len() == 16 && one.cells.is_sorted_by_key(|cell| cell.levels.clone()));
    let value = |run: &PlannedRun| {
        let is = |cell: &&StudyCell| cell.levels == run.cell;
        let cell = one.cells.iter().find(is).expect("its cell is there");
        cell.values[0][run.is.repeat as usize - 1]
    };
    for (number, run) in runs.iter().enumerate() {
        assert_eq!(value(run), (number + 1) as f64 * 8e5, "{}", run.name);
    }
    let one = one.in_language(Language::English);
    assert!(one.caveats.iter().all(|caveat| caveat.starts_with("In 32 of 32 runs: ")), "{:?}", one.caveats);
    assert!(one.method.contains("A person set card") && one.method.contains("state of link"), "{}", one.method);
    let part = study.gathered(&runs, &records[..20]).expect("each has a value");
    let english = part.in_language(Language::English);
    assert!(english.caveats[0].contains("20 of 32 runs are measured"), "{:?}", english.caveats);
    let texts = "method = '1 本のストリーム。'\ncaveats = []\n[factors.link]\ntitle = 'リンク'\n";
    let part = part.translated(Language::Japanese, std::path::Path::new("studies/cards.ja.toml"), texts);
    let part = part.expect("texts of the study");
    let japanese = part.in_language(Language::Japanese);
    assert!(japanese.caveats[0].starts_with("32 回のうち 20 回の測定が完了しています。"), "{:?}", japanese.caveats);
    assert!(japanese.caveats[1].starts_with("20 回のうち 20 回: "), "{:?}", japanese.caveats);
    for text in ["1 本のストリーム。各条件を 2 回ずつ測定しました。", "ラボはリンクの状態ごとに", "card は人が設定し"]
    {
        assert!(japanese.method.contains(text), "{text}: {}", japanese.method);
    }
}

#[test]
fn missing_metric_error_names_measure_and_record() {
    let study = parse(&STUDY.replace("'throughput'", "'p99'")).expect("a good study");
    let runs = study.runs(str::to_owned);
    let error = study.gathered(&runs, &[record(&runs[0])]).expect_err("a stream has no latency").to_string();
    assert!(error.contains("measure `rate` of study cards: the test does not measure that"), "{error}");
}

#[test]
fn run_errors_name_field_and_line() {
    for (from, to, parts) in [
        ("[run]", "data = 'x.csv'\n[run]", ["line 6", "field `run`", "imported or measured"]),
        ("lab = '--link {link}'\n", "", ["line 20", "field `host`", "host of the study's lab"]),
        ("test = \"stream", "tests = \"stream", ["line 7", "unknown field `tests`", "`test`"]),
        ("--size {size}", "--size {sice}", ["line 7, field `test`", "`sice` is no factor", "`size`"]),
        ("--size {size}", "--size {size", ["line 7, field `test`", "a `{` is not closed", ""]),
        ("--size {size}", "--size 64", ["line 25, field `column`", "nothing sets `size`", "{size} in `test`"]),
        ("--time '1s'", "--time '1s", ["line 7, field `test`", "a quote is not closed", "with link "]),
        ("repeats = 2", "repeats = 0", ["line 8, field `repeats`", "0 runs", "1 to 100,000"]),
        ("repeats = 2", "repeats = 99999", ["line 8, field `repeats`", "1,599,984 runs", ""]),
        ("repeats = 2", "order = 'backwards'", ["line 8", "unknown variant `backwards`", "`random`"]),
        ("the {level}", "the card", ["line 16, field `person`", "where the level goes", "{level}"]),
        ("mtu {level}'", "mtu 900'", ["line 21, field `command`", "where the level goes", ""]),
        (
            "set = { person = 'put the {level} into slot 1' }",
            "set = { }",
            ["line 16, field `set`", "`command`", "`person`"],
        ),
        ("{ person =", "{ undo = 'x', person =", ["line 16", "goes with `command` only", ""]),
        ("{ name = '64' }", "{ name = '64.5' }", ["line 27, field `name`", "is no size of a message", "1472"]),
        ("levels = [{ name = '1500' }, { name = '900' }]", "", ["line 20, field `column`", "has no levels", ""]),
        ("levels = [{ name = '1500' }", "optional = true\nlevels = [{ name = '1500' }", ["line 20", "is optional", ""]),
        ("metric = 'throughput'", "metric = 'speed'", ["line 31, field `metric`", "`speed` is no metric", "p99"]),
        ("metric = 'throughput'", "metric = 'rpm'", ["line 31, field `metric`", "`rpm` is no metric", "loss"]),
        ("metric = 'throughput'", "unit = 'Mbit/s'", ["line 31, field `unit`", "that of the metric", "left out"]),
        ("metric = 'throughput'", "", ["line 30, field `column`", "has no `metric`", "throughput"]),
        ("metric = 'throughput'", "metric = 'p99'\ncounts = 'ip'", ["line 31", "`counts`", "left out"]),
    ] {
        assert!(STUDY.contains(from), "{from}");
        let error = parse(&STUDY.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains("studies/cards.toml"), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
}

/// Two tests in each cell: requests, and the stream.
fn two_tests() -> String {
    let test = "test = \"stream a b --udp --size {size} --time '1s'\"\n";
    let tests = "[[tests]]\nname = 'calls'\ntest = 'transact a b --size {size}'\n\
                 [[tests]]\nname = 'data'\ntest = 'stream a b --udp --size {size}'\n[[factors]]";
    let measures =
        "metric = 'throughput'\ntest = 'data'\n[[measures]]\ncolumn = 'delay'\nmetric = 'p99'\ntest = 'calls'";
    STUDY.replace(test, "").replacen("[[factors]]", tests, 1).replace("metric = 'throughput'", measures)
}

#[test]
fn each_measure_is_taken_from_its_own_test() {
    let study = parse(&two_tests()).expect("a good study");
    let runs = study.runs(str::to_owned);
    assert_eq!(runs.len(), 2 * 32);
    assert_eq!((runs[0].test[0].as_str(), runs[1].test[0].as_str()), ("transact", "stream"));
    assert_eq!((runs[0].is.test.as_deref(), runs[0].is.repeat), (Some("calls"), runs[1].is.repeat));
    assert!(runs[0].name.ends_with("bytes, calls"), "{}", runs[0].name);
    let columns = |run| study.metrics(run).map(|(column, ..)| column).collect::<Vec<_>>();
    assert_eq!((columns(&runs[0]), columns(&runs[1])), (vec!["delay"], vec!["rate"]));
    // The stream of the first cell alone: the other measure has no value there, and the study says that runs are
    // missing.
    let streamed = Record { results: results(0), ..record(&runs[1]) };
    let gathered = study.gathered(&runs, &[streamed]).expect("one value for each");
    assert_eq!(gathered.cells.len(), 1);
    assert_eq!(gathered.cells[0].values, [vec![8e5], vec![]]);
    let english = gathered.in_language(Language::English);
    assert!(english.caveats.iter().any(|caveat| caveat.contains("1 of 64 runs")), "{:?}", english.caveats);
}

/// Requests of one size, without the sizes of the stream, in a lab with two hosts.
fn tests_of_unequal_factors() -> String {
    two_tests().replace(
        "test = 'transact a b --size {size}'",
        "test = 'transact a b --outstanding {requests}'\nlab = '--hosts 2 --link {link}'",
    ) + "[[factors]]\ncolumn = 'requests'\nlevels = [{ name = '1' }, { name = '8' }, { name = '32' }]\n"
}

#[test]
fn a_test_is_run_for_the_levels_of_its_own_factors() {
    let study = parse(&tests_of_unequal_factors()).expect("a good study");
    let all = study.runs(str::to_owned);
    let of = |test: &str| all.iter().filter(|run| run.is.test.as_deref() == Some(test)).collect::<Vec<_>>();
    let (calls, data) = (of("calls"), of("data"));
    // Two links, two cards and two MTUs in each, with three numbers of requests or two sizes, twice.
    assert_eq!((calls.len(), data.len()), (2 * 2 * 2 * 3 * 2, 2 * 2 * 2 * 2 * 2));
    assert!(calls.iter().all(|run| !run.is.levels.contains_key("size") && run.is.levels.contains_key("requests")));
    assert!(data.iter().all(|run| run.is.levels.contains_key("size") && !run.is.levels.contains_key("requests")));
    let lab = |run: &PlannedRun| run.lab.as_ref().map_or_else(String::new, |lab| lab[0].clone());
    assert!(calls.iter().all(|run| lab(run) == "--hosts") && data.iter().all(|run| lab(run) == "--link"));
    // A block has each of its two states of two labs once, with each card.
    let built =
        1 + all.windows(2).filter(|pair| pair[0].lab != pair[1].lab || pair[0].is.repeat != pair[1].is.repeat).count();
    assert!(built <= 2 * 2 * 2 * 2, "{built}");
    let run = data[0];
    let records = [Record { results: results(0), ..record(run) }];
    let gathered = study.gathered(&all, &records).expect("a value");
    assert_eq!(gathered.cells.len(), 1);
    assert_eq!(gathered.cells[0].levels.last(), Some(&None), "the stream has no number of requests");
    assert_eq!(gathered.cells[0].values, [vec![8e5], vec![]]);
}

/// A combination that is left out is one of a test that uses all its factors.
#[test]
fn gaps_apply_to_tests_that_use_their_factors() {
    let gap = "[[without]]\nlink = '10'\nsize = '1472'\n[path]";
    let all = runs(&tests_of_unequal_factors().replace("[path]", gap));
    let of = |test: &str| all.iter().filter(|run| run.is.test.as_deref() == Some(test)).count();
    assert_eq!((of("calls"), of("data")), (48, 32 - 8));
}

#[test]
fn excluded_combinations_are_not_run() {
    let gaps = "[[without]]\nlink = '10'\nsize = '1472'\n[[without]]\ncard = ['blue card']\nmtu = '900'\n[path]";
    let study = STUDY.replace("[path]", gaps);
    let left = runs(&study);
    // Of 16 cells 4 have the slow link and long messages, 4 the blue card and short packets, 1 both.
    assert_eq!(left.len(), 2 * (16 - 4 - 4 + 1));
    assert!(left.iter().all(|run| run.is.levels["link"] != "10" || run.is.levels["size"] != "1472"));
    for (from, to, parts) in [
        ("size = '1472'\n[[without", "speed = '1'\n[[without", ["field `without`", "`speed` is no factor", "`size`"]),
        ("['blue card']", "['blue']", ["field `card`", "`blue` is no level of `card`", "`red card`"]),
        ("link = '10'\nsize = '1472'", "size = ['1472', '64']", ["field `without`", "leaves no cell", ""]),
        ("link = '10'\nsize = '1472'", "", ["field `without`", "names no factor", ""]),
    ] {
        assert!(study.contains(from), "{from}");
        let error = parse(&study.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
}

#[test]
fn unused_and_unknown_tests_are_refused() {
    let study = two_tests();
    for (from, to, parts) in [
        ("test = 'data'", "test = 'date'", ["field `test`", "`date` is no test of this study", "`data`"]),
        (
            "metric = 'throughput'\ntest = 'data'",
            "metric = 'throughput'",
            ["field `column`", "which `test`", "`calls`"],
        ),
        (
            "metric = 'throughput'\ntest = 'data'",
            "metric = 'p50'\ntest = 'calls'",
            ["field `test`", "gives no measure", ""],
        ),
        ("name = 'data'", "name = 'calls'", ["field `name`", "`calls` stands twice", ""]),
        ("repeats = 2", "repeats = 2\ntest = 'stream a b'", ["field `test`", "beside [[tests]]", ""]),
        (
            "lab = '--link {link}'\nrepeats = 2\n\n[[tests]]",
            "repeats = 2\n\n[[tests]]\nlab = '--link {link}'",
            ["field `lab`", "without `lab` in [run]", ""],
        ),
    ] {
        assert!(study.contains(from), "{from}");
        let error = parse(&study.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
    let error =
        parse(&STUDY.replace("metric = 'throughput'", "metric = 'throughput'\ntest = 'x'")).expect_err("no tests");
    assert!(error.to_string().contains("there are none"), "{error}");
    let neither = STUDY.replace("test = \"stream a b --udp --size {size} --time '1s'\"\n", "");
    let error = parse(&neither).expect_err("no test").to_string();
    assert!(error.contains("there is no `test`"), "{error}");
}

/// What is for one kind of study is refused in the other.
#[test]
fn imported_study_has_no_runs() {
    let imported = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n\
                    [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'slow' }]\n\
                    [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    assert!(matches!(StudyFile::parse(std::path::Path::new("x.toml"), imported), Ok(StudyFile::Imported(_))));
    for (from, to, parts) in [
        ("data = 'x.csv'\n", "", ["line 1", "neither `data`", "`[run]`"]),
        ("name = 'slow'", "name = 'slow', words = 'x'", ["line 7, field `words`", "which have `[run]`", "left out"]),
        ("[[factors]]\n", "[[factors]]\nset = { person = '{level}' }\n", ["line 6, field `set`", "`[run]`", ""]),
        ("unit = 'Mbit/s'", "metric = 'p99'", ["line 10, field `metric`", "`[run]`", ""]),
        ("data = 'x.csv'\n", "data = 'x.csv'\n[[without]]\nlink = 'slow'\n", ["field `without`", "`[run]`", ""]),
        ("data = 'x.csv'\n", "data = 'x.csv'\n[[tests]]\nname = 'x'\ntest = 'x'\n", ["field `tests`", "`[run]`", ""]),
        ("unit = 'Mbit/s'", "", ["line 9, field `column`", "has no `unit`", "Mbit/s"]),
    ] {
        let error = StudyFile::parse(std::path::Path::new("x.toml"), &imported.replacen(from, to, 1))
            .expect_err(to)
            .to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
}

/// The second example of docs/studies.md, and the study that runs in the lab, are studies.
#[test]
fn documented_examples_are_read() {
    let page = include_str!("../../../../../docs/studies.md");
    let example = page.split("```toml\n").nth(2).and_then(|rest| rest.split("```").next()).expect("an example");
    assert_eq!(runs(example).len(), 2 * 2 * 2 * 2 * 5);
    assert_eq!(runs(include_str!("../../../../../studies/lab-devices.toml")).len(), 2 * 2 * 4 * 3);
    assert_eq!(runs(include_str!("../../../../../studies/lab-hirosaki.toml")).len(), 2 * 3 * 3 * 2);
    assert_eq!(runs(include_str!("../../../../../studies/lab-l3switch.toml")).len(), 4 * 3 * 2);
}
