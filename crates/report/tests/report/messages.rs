//! What records say: each message has a Japanese text, and what has none says so.

use crate::{recorded, sample};
use linerate_method::{Demands, compare, compare_pairs, compare_searches};
use linerate_model::{
    Comparison, Duplex, Message, MessageValue, Nic, Plan, Record, Repeats, TEXTS, Timing, Trial, message,
};
use linerate_report::{Language, Style};
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeSet;

/// All that a record says.
fn said(record: &Record) -> Vec<&Message> {
    let of_results = record.results.iter().flat_map(|result| {
        let verdict = &result.verdict;
        let weighed = verdict.weighed.iter().map(|weighed| &weighed.text);
        let caveats = result.caveats.iter().map(|caveat| &caveat.text);
        let checks = verdict.checks.iter().map(|check| &check.text);
        verdict.evidence.iter().chain(&verdict.next).chain(weighed).chain(checks).chain(caveats)
    });
    record.caveats.iter().map(|caveat| &caveat.text).chain(of_results).collect()
}

const RECORDS: [&str; 19] = [
    "copy-fault",
    "copy-proven",
    "device-addresses",
    "device-all",
    "device-calibrate",
    "device-echo",
    "device-hosts",
    "device-throughput",
    "frames",
    "ladder-interrupted",
    "nfs-curve-interrupted",
    "nfs",
    "rpc",
    "stream-interrupted",
    "stream-loaded-latency",
    "stream-proven",
    "stream-tcp",
    "stream-udp",
    "transact",
];

#[test]
fn what_records_say_is_told_in_japanese() {
    let mut seen = 0;
    for name in RECORDS {
        let (file, record) = (recorded::text(name), recorded::record(name));
        // What the file holds itself, an older version wrote.
        let is_older = |message: &Message| file.contains(&serde_json::json!(message.text).to_string());
        for message in said(&record).into_iter().filter(|message| !is_older(message)) {
            let told = Language::Japanese.message(message);
            assert!(!told.contains("（英語）"), "{}: {message}", record.id.0);
            assert!(!told.contains(['{', '}']), "{}: {told}", record.id.0);
            for english in [" the ", " of ", " was ", "sending", "receiving"] {
                assert!(!told.contains(english), "{}: {told}", record.id.0);
            }
            assert_eq!(Language::English.message(message), message.text);
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}

/// A message's keys, and those of the messages within it.
fn keys(message: &Message) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    for part in &message.parts {
        all.insert(part.key.as_str());
        for value in part.values.values() {
            if let MessageValue::Message(within) = value {
                all.extend(keys(within));
            }
        }
    }
    all
}

/// Comparisons of records that differ in everything that is told: hosts, options, what was measured and found.
fn comparisons() -> Vec<Comparison> {
    let demands = Demands::once(0.02, 95.0);
    let before = recorded::record("stream-tcp");
    let changed = |times: Repeats, change: fn(&mut Trial)| {
        let mut record = before.clone();
        let mut cell = record.plan.cells()[0].clone();
        change(&mut cell);
        record.trials.iter_mut().for_each(|result| result.trial = cell.clone());
        record.plan = Plan::sweep(vec![cell], times);
        record
    };
    let until = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 30 };
    let mut after = changed(until, |cell| {
        cell.loads[0].timing = Timing::of(Nanos::from_secs(7), Nanos::from_secs(13));
    });
    after.version.push('x');
    after.command = ["linerate", "stream", "b"].map(str::to_owned).to_vec();
    for result in &mut after.results {
        sample::flow(result).tcp.as_mut().expect("it ran over TCP").congestion.push('x');
    }
    let mut third = after.hosts[0].clone();
    third.name = "third".into();
    after.hosts.push(third);
    for (host, duplex) in after.hosts.iter_mut().zip([Duplex::Half, Duplex::Full, Duplex::Full]) {
        for text in [&mut host.system, &mut host.cpu_model, &mut host.version] {
            text.push('x');
        }
        for nic in &mut host.nics {
            let offloads = nic.offloads.iter().map(|(name, on)| (name.clone(), !on)).collect();
            let (driver, qdisc) = (format!("{}x", nic.driver), format!("{}x", nic.qdisc));
            *nic = Nic {
                driver,
                qdisc,
                mtu: nic.mtu + 1,
                speed: nic.speed.xor(Some(BitRate::per_second(1))),
                duplex: Some(duplex),
                offloads,
                ..nic.clone()
            };
        }
    }
    let lab = |words: &[&str]| {
        let command = ["linerate", "lab"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        Record { command, ..before.clone() }
    };
    let three = Repeats::Times(3);
    let renamed = changed(three, |cell| cell.name.push('x'));
    let more_flows = changed(three, |cell| cell.loads[0].task.net_mut().into_iter().for_each(|net| net.flows = 9));
    let more_paths = changed(three, |cell| {
        if let Some(paths) = cell.loads[0].task.paths_mut() {
            let again = paths.clone();
            paths.extend(again);
        }
    });
    let steady = changed(three, |cell| cell.loads[0].timing = Timing::when_steady(Nanos::from_secs(10)));
    let mut two_cells = before.clone();
    two_cells.plan = Plan::sweep([&before, &renamed].map(|record| record.plan.cells()[0].clone()).to_vec(), three);
    let (device, curve) = (recorded::record("device-throughput"), recorded::record("nfs-curve-interrupted"));
    let one = std::slice::from_ref;
    vec![
        compare(&[before.clone(), after.clone()], &[lab(&["--", "stream", "a", "b"]), before.clone()], &demands),
        compare(one(&before), one(&after), &demands),
        compare(one(&lab(&["--link", "1Gbit/s", "--", "stream", "a", "b"])), one(&lab(&[])), &demands),
        compare(one(&before), one(&renamed), &demands),
        compare(one(&before), one(&more_flows), &demands),
        compare(one(&before), one(&more_paths), &demands),
        compare(one(&steady), one(&after), &demands),
        compare_pairs(&two_cells, &before, &demands),
        compare_searches(one(&device), one(&curve), &demands),
        compare_searches(one(&curve), one(&device), &demands),
    ]
}

#[test]
fn what_a_comparison_says_is_told_in_japanese() {
    let all = comparisons();
    let said = || all.iter().flat_map(|found| found.warnings.iter().chain(&found.remarks));
    let seen: BTreeSet<&str> = said().flat_map(keys).collect();
    let known: BTreeSet<&str> = TEXTS.iter().map(|text| text.key).filter(|key| key.starts_with("compared-")).collect();
    assert_eq!(seen, known, "each is said in one of these comparisons");
    for found in &all {
        let style = |language| Style { width: 1_000, language, ..Style::default() };
        let told = linerate_report::comparison(found, &style(Language::Japanese)).replace('\u{a0}', " ");
        let page = linerate_report::comparison_html(Language::Japanese, found).into_string().replace('\u{a0}', " ");
        for text in [told, page] {
            // The name of a result, which records have.
            let text = text.replace("peak of nfs", "");
            for english in
                ["（英語）", " the ", " of ", " was ", " host ", " before", " after", " only", " lab", " or "]
            {
                assert!(!text.contains(english), "{english}: {text}");
            }
        }
        let told = linerate_report::comparison(found, &style(Language::English)).replace('\u{a0}', " ");
        for message in found.warnings.iter().chain(&found.remarks) {
            // A sentence begins with a capital, unless it begins with a name.
            assert!(told.contains(&message.text[1..]), "{message}: {told}");
        }
    }
}

/// Records of later versions may hold keys that are not known here.
#[test]
fn what_is_known_in_english_only_is_shown_so_and_marked() {
    let unknown = r#"{"text": "It was so.", "parts": [{"key": "of-a-later-version"}]}"#;
    let lacking = r#"{"text": "It was so.", "parts": [{"key": "verdict-also"}]}"#;
    for json in [r#"{"text": "It was so."}"#, unknown, lacking] {
        let message: Message = serde_json::from_str(json).expect("a message");
        assert_eq!(Language::English.message(&message), "It was so.", "{json}");
        assert_eq!(Language::Japanese.message(&message), "（英語）It was so.", "{json}");
    }
    let mut record = sample::demonstration();
    record.results[0].verdict.evidence = vec![Message::untranslated("it was so")];
    for language in Language::ALL {
        let style = Style { language, ..Style::default() };
        let all = [
            linerate_report::html(language, &record),
            linerate_report::markdown(language, &record),
            linerate_report::explain(&record, &style),
        ];
        for shown in all {
            let shown = shown.split("<script").next().expect("a page").replace('\u{a0}', " ");
            assert_eq!(
                shown.replace("<span lang=\"en\">", "").contains("（英語）it was so"),
                language == Language::Japanese,
                "{shown}"
            );
            assert_eq!(shown.contains("It was so."), language == Language::English, "{shown}");
        }
    }
}

#[test]
fn a_message_within_a_message_is_told_in_its_language_too() {
    let inner = message!(
        "caveat-resumed",
        "the run was resumed after {trials} attempts: the network may have changed in between",
        trials = 3_u32
    );
    let outer = |caveat: Message| message!("caveat-on-host", "on {host}: {caveat}", host = "a", caveat);
    let told = Language::Japanese.message(&outer(inner));
    assert_eq!(told, "a: 測定は 3 回の試行の後に再開しました。その間にネットワークが変わった可能性があります。");
    let older = Language::Japanese.message(&outer(Message::untranslated("it was so")));
    assert_eq!(older, "a: （英語）it was so");
}
