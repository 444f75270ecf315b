//! The published studies: what their numbers say, and how that is shown.

use linerate_model::{Firmness, Layer, MeasureUnit};
use linerate_report::Language;
use linerate_report::Style;
use linerate_study::StudyFile;
use linerate_study::{BadPivot, Pivot};
use linerate_study::{Evidence, FindingKind, StudyReport};
use linerate_testsuite::page_outline::wide;
use proptest::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) const PUBLISHED: [&str; 5] =
    ["filecopy-2003", "hirosaki-1998", "kdd-1993", "l3switch-2008", "switches-2020"];

fn tree(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The two files of a published study; a measured study has no data.
pub(crate) fn files(name: &str) -> (String, String) {
    let data = tree(&format!("studies/data/{name}.csv"));
    (read(&tree(&format!("studies/{name}.toml"))), if data.exists() { read(&data) } else { String::new() })
}

pub(crate) fn reported(name: &str, toml: &str, csv: &str) -> StudyReport {
    let Ok(StudyFile::Imported(file)) = StudyFile::parse(Path::new(name), toml) else {
        panic!("{name} is no well-formed study that names its data");
    };
    linerate_study::studied(file.with_data(name, csv).expect("the data are well-formed"))
}

/// The Japanese texts of a study in the tree.
pub(crate) fn texts(name: &str) -> String {
    read(&tree(&format!("studies/{name}.ja.toml")))
}

/// The study of that name in the tree, with its Japanese texts.
pub(crate) fn published_in_japanese(name: &str) -> StudyReport {
    let report = published(name);
    let path = format!("studies/{name}.ja.toml");
    let study = report.study.translated(Language::Japanese, Path::new(&path), &texts(name));
    linerate_study::studied(study.expect("its texts are well-formed"))
}

/// The study of that name in the tree.
pub(crate) fn published(name: &str) -> StudyReport {
    let (toml, csv) = files(name);
    reported(name, &toml, &csv)
}

/// The findings as a script reads them, of the JSON form.
fn findings(name: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(&linerate_study::json(&published(name))).expect("it is JSON");
    assert_eq!(report["schema"], "linerate.study/1");
    report["findings"].as_array().expect("findings").clone()
}

/// The one finding of this kind whose text has all these parts, with the text of its evidence.
fn only<'a>(findings: &'a [Value], kind: &str, parts: &[&str]) -> (&'a str, String) {
    let text = |finding: &'a Value| -> &'a str { finding["text"].as_str().expect("a text") };
    let all = findings.iter().filter(|finding| finding["kind"] == kind);
    let found: Vec<&'a Value> = all.filter(|finding| parts.iter().all(|part| text(finding).contains(part))).collect();
    assert_eq!(found.len(), 1, "{kind} {parts:?}: {findings:#?}");
    let evidence = found[0]["evidence"].as_array().expect("evidence");
    assert!(!evidence.is_empty());
    (text(found[0]), evidence.iter().filter_map(|one| one["text"].as_str()).collect::<Vec<_>>().join(" "))
}

/// A page begins with the question and a finding that answers it; where no finding of the kind is there, it says so.
#[test]
fn a_study_begins_with_its_question_and_answer() {
    for (name, answer) in [
        ("switches-2020", "The results of BUFFALO LSW5-GT-8NS and Cisco SG110D-08 are at the tester limit"),
        ("hirosaki-1998", "ATM NEC does not pay: it costs 2.63 to 8.00 times as much as 100BASE-TX"),
        ("kdd-1993", "UDP throughput on FDDI comes near what the medium can carry with N2 (SPECint92 109.1)"),
        ("l3switch-2008", "L3 switch against PC router: all 3 results of L3 switch"),
        ("filecopy-2003", "1000BASE-T, 1000BASE-T 32-bit PCI and 1000BASE-T 64-bit PCI bring little over 100BASE-TX"),
    ] {
        let mut report = published(name);
        let question = report.study.question.clone().expect("it asks");
        let page = linerate_study::html(Language::English, &report, None);
        let begins = page.find("<main").expect("a main part");
        let at = |text: &str| page[begins..].find(text).unwrap_or_else(|| panic!("{name}: {text}"));
        let (asked, answered) = (at(&format!("<p class=\"question\">{}", question.text)), at("<p class=\"answer\">"));
        assert!(asked < answered && answered < at("<svg"), "{name}");
        assert!(page[begins + answered..].starts_with(&format!("<p class=\"answer\">{answer}")), "{name}");
        let markdown = linerate_study::markdown(Language::English, &report, None);
        assert!(markdown.contains(&format!("{}\n\n**{answer}", question.text)), "{markdown}");
        let text = linerate_study::text(&report, &Style::default(), None);
        assert!(text.contains(&question.text), "{text}");
        report.findings.retain(|finding| !question.answered_by.contains(&finding.kind));
        assert!(
            linerate_study::html(Language::English, &report, None).contains("The results support no answer."),
            "{name}"
        );
    }
    let (toml, _) = files("kdd-1993");
    let unknown = toml.replace("\"stated\"", "\"claimed\"");
    let error = StudyFile::parse(Path::new("x"), &unknown).expect_err("no such kind").to_string();
    assert!(error.contains("claimed"), "{error}");
}

/// The seven conclusions of the author of 1998, and what he could not know.
#[test]
fn findings_of_1998_match_the_conclusions_of_the_author() {
    let found = findings("hirosaki-1998");
    // 1: 10BASE-T is saturated from the slowest CPU on, on both systems.
    let (text, _) = only(&found, "saturated", &["10BASE-T", "Windows 95 and Windows NT 4.0", "at 75 MHz and above"]);
    assert!(text.contains("93.1 %"), "{text}");
    // 2: 100BASE-TX and ATM grow with the CPU.
    let (_, evidence) = only(&found, "growth", &["100BASE-TX", "ATM FORE", "ATM NEC", "grows with the CPU clock"]);
    assert_eq!(evidence.matches("12 rise and 0 fall").count(), 3, "{evidence}");
    // The faster two processors are of another kind, so what they add is not the clock's alone.
    let (text, _) = only(&found, "growth", &["from 75 MHz to 133 MHz"]);
    assert!(text.contains("At 166 MHz and 200 MHz something else differs too (Pentium with MMX)"), "{text}");
    assert!(!found.iter().any(|one| one["kind"] == "growth" && one["text"].as_str().unwrap().contains("10BASE-T,")));
    // 3: NT beats 95 on the fast networks.
    let (text, _) = only(&found, "ranking", &["Windows NT 4.0 has more throughput than Windows 95"]);
    for part in
        ["on 100BASE-TX in 10 of 10", "on ATM FORE in 10 of 10", "on ATM NEC in 10 of 10", "On 10BASE-T neither"]
    {
        assert!(text.contains(part), "{text}");
    }
    // 4: ATM cards differ, and ATM is not always faster than 100BASE-TX.
    only(&found, "ranking", &["ATM FORE and ATM NEC differ though the medium is the same", "20 of 20"]);
    only(&found, "crossover", &["ATM FORE is not always ahead of 100BASE-TX", "Windows NT 4.0 and TCP", "5 of 5"]);
    only(&found, "ranking", &["most first: 100BASE-TX and ATM FORE", "then ATM NEC; then 10BASE-T"]);
    // 5: over LAN emulation UDP beats TCP.
    let (_, evidence) = only(&found, "transport", &["Over ATM-OC3-LANE UDP beats TCP", "22 of 22"]);
    assert!(evidence.contains("Headers account for at most 1.01 times"), "{evidence}");
    // Over a shared Ethernet the acknowledgements explain it.
    let (text, evidence) = only(&found, "transport", &["Over 10BASE-T UDP beats TCP", "median 1.04 times"]);
    assert!(text.contains("1.04 times as much over UDP, explains most of it"), "{text}");
    assert!(evidence.contains("acknowledgements on the shared medium"), "{evidence}");
    // 6: above 100 Mbit/s only ATM with UDP.
    only(
        &found,
        "alone",
        &["Only UDP over ATM-OC3-LANE exceeds 100 Mbit/s", "4 of its 22 results, from 112.15 to 129.93"],
    );
    // 7: with the prices ATM does not pay for TCP.
    only(
        &found,
        "price",
        &["ATM FORE does not pay: it costs 7.89 to 20.0 times", "For TCP, it is not shown", "6 of 11"],
    );
    only(&found, "price", &["ATM NEC does not pay: it costs 2.63 to 8.00 times", "For TCP, it has less throughput"]);
    // With all tests of the study in view, 10 of 11 pairs do not show that it is faster for UDP.
    only(&found, "price", &["ATM FORE does not pay", "for UDP, it is not shown", "10 of 11"]);
    // What he could not know.
    let (text, evidence) = only(&found, "limit-share", &["129.93 Mbit/s", "99.9 %", "ATM-OC3-LANE"]);
    assert!(text.contains("129.98 to 130.04 Mbit/s") && evidence.contains("1,472 or 8,192 bytes"), "{text} {evidence}");
    // The wire and the hosts.
    only(
        &found,
        "limiter",
        &["Throughput on 10BASE-T comes near what the wire can carry: every result is at least 93.1 %"],
    );
    only(&found, "limiter", &["The hosts, not the wire", "100BASE-TX, ATM FORE and ATM NEC"]);
}

#[test]
fn findings_of_2020_name_the_tester_limit_and_an_impossible_rate() {
    let found = findings("switches-2020");
    let (text, _) = only(&found, "tester-limit", &["BUFFALO LSW5-GT-8NS and Cisco SG110D-08", "maybe more"]);
    assert!(!text.contains("LGH"), "{text}");
    let (text, _) = only(&found, "above-limit", &["77 Mbit/s at 64 bytes", "100BASE-TX"]);
    for part in ["cannot be payload (49.23 Mbit/s) or IP (70.77 Mbit/s)", "layer 2 with FCS (84.62 Mbit/s)"] {
        assert!(text.contains(part), "{text}");
    }
    only(&found, "within-limit", &["All 8 results on 1000BASE-T", "at 64 bytes 124 Mbit/s of 492.31 Mbit/s"]);
    // What is counted is not known, so no share is said as if payload were.
    let (text, _) = only(&found, "limit-share", &["95 Mbit/s", "96.3 %"]);
    assert!(text.contains("95.71 to 98.7 Mbit/s"), "{text}");
    // The fall with the size is mostly that of the limit.
    let (text, evidence) = only(&found, "message-size", &["BUFFALO LGH-TX-T8", "mostly by headers"]);
    assert!(text.contains("from 95 Mbit/s at 1472 bytes to 77 Mbit/s at 64 bytes"), "{text}");
    assert!(text.contains("falls from 98.7 Mbit/s to 84.62 Mbit/s"), "{text}");
    assert!(evidence.contains("0.95 times is left for all else"), "{evidence}");
    let (text, evidence) = only(&found, "message-size", &["On 1000BASE-T throughput grows with the message size"]);
    assert!(text.contains("From 64 bytes to 512 bytes (8.00 times) a message takes 1.1"), "{text}");
    assert!(text.contains("the time: the cost is per message.") && text.contains("the cost is per byte."), "{text}");
    // 77 Mbit/s of the same tool cannot count payload or IP, so neither do these.
    assert!(evidence.contains("counted as layer 2 and layer 2 with FCS"), "{evidence}");
}

/// 64 bytes at 100 Mbit/s carry 49.23 Mbit/s of payload; in a second some of a queue may come on top.
#[test]
fn own_measurements_may_exceed_the_limit_by_queued_data() {
    let above = |metric: Option<&str>, times: f64| {
        let (toml, csv) = files("switches-2020");
        let Ok(StudyFile::Imported(file)) = StudyFile::parse(Path::new("switches-2020"), &toml) else {
            panic!("it names its data");
        };
        let mut study = file.with_data("switches-2020", &csv).expect("the data are well-formed");
        (study.measures[0].metric, study.measures[0].counts) = (metric.map(str::to_owned), Some(Layer::Payload));
        let values = study.cells.iter_mut().flat_map(|cell| &mut cell.values[0]);
        let changed = values.filter(|value| **value == 77e6).map(|value| *value = 49.23e6 * times).count();
        assert_eq!(changed, 1);
        let report = linerate_study::studied(study);
        report.findings.iter().any(|found| found.kind == FindingKind::AboveLimit && found.text.contains("100BASE-TX"))
    };
    assert!(above(None, 1.005), "what is published is a claim");
    assert!(!above(Some("throughput"), 1.005));
    assert!(above(Some("throughput"), 1.05));
}

#[test]
fn findings_of_2008_separate_forwarding_from_answering() {
    let found = findings("l3switch-2008");
    let (_, evidence) =
        only(&found, "different-parts", &["L3 switch: forwarding at 64 bytes and pings answered", "22.4 to 664 times"]);
    // Which kind is nearer was not stated beforehand: twice 1 in 35 choices, and three tests of the study are as small.
    assert!(evidence.contains("p = 0.171"), "{evidence}");
    only(&found, "same-part", &["PC router: forwarding at 64 bytes and pings answered", "1.00 to 1.11 times"]);
    only(&found, "limiter", &["The wire limits forwarding at 64 bytes of L3 switch"]);
    // No switch has a router to be paired with: the two kinds are ranked as they are.
    let (text, evidence) = only(&found, "unpaired", &["L3 switch against PC router", "forwarding at 64 bytes"]);
    assert!(text.contains("So few results show this of these only"), "{text}");
    assert!(evidence.contains("The lowest of L3 switch is 2.92 times the highest of PC router"), "{evidence}");
    only(
        &found,
        "unpaired",
        &["PC router against L3 switch", "pings answered", "36,928/s to 51,230/s against 224/s to 6,642/s"],
    );
    let equal = [
        "CentreCOM 8624EL, Apresia 3124GT and SF-4024FL show no difference",
        "equal in all 3 pairs",
        "they may differ",
    ];
    only(&found, "no-difference", &equal);
    only(&found, "limit-share", &["148,809.5/s", "CentreCOM 8624EL", "Apresia 3124GT", "SF-4024FL", "100.0 %"]);
}

#[test]
fn findings_of_2003_rule_out_the_wire() {
    let found = findings("filecopy-2003");
    only(
        &found,
        "limiter",
        &["Something other than the wire limits copy rate on 1000BASE-T, 1000BASE-T 32-bit PCI", "8.7 %"],
    );
    only(
        &found,
        "upgrade",
        &["bring little over 100BASE-TX", "10.0 times", "becomes 1.62 times with server to server"],
    );
    // Between servers the 64-bit card is stated to be faster, so the two are not equal, and dear it is.
    assert!(!found.iter().any(|one| one["kind"] == "no-difference" && one["text"].to_string().contains("64-bit")));
    only(
        &found,
        "price",
        &["1000BASE-T 64-bit PCI costs 2.67 times as much", "1.00 times as high (one pair of cells)"],
    );
    let three =
        ["1 server to 3 clients (total) against server to server", "2.34 times with 100BASE-TX", "less than 3 times"];
    let (_, evidence) = only(&found, "clients", &three);
    assert!(evidence.contains("would be 96 Mbit/s, more than the 94.93 Mbit/s"), "{evidence}");
}

/// The five conclusions of about 1993, of which the text gives bounds and ratios only.
#[test]
fn findings_of_1993_follow_from_bounds_and_ratios() {
    let found = findings("kdd-1993");
    // 1: over FDDI the slower senders get far less out than the medium carries.
    let more = "N2 (SPECint92 109.1) has more UDP throughput than";
    let of = |low: &str, values: &str| only(&found, "stated", &[&format!("{more} {low}"), values]);
    of("N3 (SPECint92 59.7)", "about 100 Mbit/s against at most 40 Mbit/s");
    of("N4 (SPECint92 27.3)", "at most 30 Mbit/s");
    only(&found, "limiter", &["Something other than the wire limits UDP throughput", "FDDI, N3", "FDDI, N4"]);
    // The two slower ones overlap: no order of them follows. Nor are they equal where nothing arrives of either.
    let says = |words: &str| found.iter().any(|one| one["text"].as_str().is_some_and(|text| text.contains(words)));
    assert!(!says("N3 (SPECint92 59.7) has more"));
    assert!(!found.iter().any(|one| one["kind"] == "no-difference"), "{found:#?}");
    // 2: over Ethernet all fill the medium, or nearly, with datagrams that it carries whole.
    let (text, evidence) = only(&found, "stated", &["on Ethernet comes near what the medium can carry"]);
    let (near, far) = text.split_once("stays far below").expect("fragments die");
    for name in ["N2 (SPECint92 109.1), up to 1.5 KB", "N3 (SPECint92 59.7), up", "N4 (SPECint92 27.3), up"] {
        assert!(near.contains(name), "{text}");
    }
    assert!(far.contains("N3 (SPECint92 59.7), above 1.5 KB (0 bit/s)") && far.contains("N4 (SPECint92 27.3), above"));
    assert!(evidence.contains("about 10 Mbit/s of 9.57 Mbit/s"), "{evidence}");
    // Near is not equal, so no share of the limit is given.
    assert!(!found.iter().any(|one| one["kind"] == "limit-share"), "{found:#?}");
    // 3: of fragments nothing arrives from the slower ones.
    let parts = ["Up to 1.5 KB has more UDP throughput than above 1.5 KB", "0 bit/s", "above the MTU of 1,500"];
    only(&found, "stated", &parts);
    // 4: RPC fills Ethernet and not FDDI.
    let parts = [
        "RPC throughput from units of 4 KB to 8 KB",
        "109.1): does not grow (about 1 x)",
        "109.1): grows (more than 1",
    ];
    only(&found, "stated", &parts);
    only(&found, "stated", &["RPC throughput from Ethernet to FDDI with units of 8 KB", "grows (about 4 x)"]);
    // 5: NFS gains in reading. Whether it does in writing is not stated.
    let parts = ["read: grows (at least 2 x)", "write: less than 2 x;", "other operations: does not grow (about 1 x)"];
    only(&found, "stated", &parts);
    // What is about so much is no claim beyond the medium.
    assert!(!found.iter().any(|one| one["kind"] == "above-limit"));
    let csv = linerate_study::csv(&published("kdd-1993"));
    assert!(csv.lines().next().is_some_and(|head| head.contains("udp_throughput_stated_high_bps")), "{csv}");
    assert!(csv.contains("40000000.0"), "{csv}");
}

/// The page names what is known by its bounds only: in the summary, and as a bar that is open up to the bound.
#[test]
fn bounds_are_in_the_summary_and_in_the_charts() {
    let page = linerate_study::html(Language::English, &published("kdd-1993"), None).replace('\u{a0}', " ");
    let summary = "Only a bound or a range is stated for N3 (SPECint92 59.7), best size: at most 40 Mbit/s;";
    assert!(page.contains(summary), "{page}");
    for label in [
        "FDDI, N4 (SPECint92 27.3), best size: UDP throughput at most 30 Mbit/s",
        "read: NFS throughput from Ethernet to FDDI at least 2 x",
    ] {
        assert!(page.contains(label), "{label}");
    }
}

/// The response times of reads, writes and other operations over two media, as a measured study has them.
fn curves() -> StudyReport {
    let toml = "title = 'Curves'\nabout = 'x'\nmethod = 'x'\ndata = 'curves.csv'\n\
        [[factors]]\ncolumn = 'medium'\n[[factors]]\ncolumn = 'load'\nunit = 'op/s'\n\
        [[measures]]\ncolumn = 'reads'\nunit = 'times'\n[[measures]]\ncolumn = 'writes'\nunit = 'times'\n\
        [[measures]]\ncolumn = 'others'\nunit = 'times'\n[[measures]]\ncolumn = 'p99'\nunit = 'times'\n";
    let lines = [
        "10,100,3,4,2,9",
        "10,200,5,6,2,9",
        "10,400,9,9,4,20",
        "100,100,1,2,1,5",
        "100,200,2,3,1,5",
        "100,400,3,4,2,8",
    ];
    let csv = format!("medium,load,reads,writes,others,p99\n{}\n", lines.join("\n"));
    let mut report = reported("curves", toml, &csv);
    let metrics = ["read.mean", "write.mean", "other.mean", "p99"];
    for (measure, metric) in report.study.measures.iter_mut().zip(metrics) {
        (measure.unit, measure.metric) = (MeasureUnit::Nanos, Some(metric.to_owned()));
    }
    report
}

/// As in figure 4 of the report of 1993: one chart, a colour for each class, dashes for each medium.
#[test]
fn classes_of_operations_over_two_media_are_on_one_chart() {
    let page = wide(&linerate_study::html(Language::English, &curves(), None));
    let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
    assert_eq!(figures.len(), 2, "the classes, and p99 by itself");
    for (class, name) in [
        ("s0 dash0", "reads, 10"),
        ("s0 dash1", "reads, 100"),
        ("s1 dash0", "writes, 10"),
        ("s1 dash1", "writes, 100"),
        ("s2 dash0", "others, 10"),
        ("s2 dash1", "others, 100"),
    ] {
        assert!(figures[0].contains(&format!("<i class=\"{class}\"></i>{name}<")), "{class} {name}: {}", figures[0]);
        assert_eq!(figures[0].matches(&format!("<g class=\"{class}\">")).count(), 1, "{class}");
    }
    assert!(!figures[1].contains("dash"), "{}", figures[1]);
}

/// No rule knows a study: with every name another, the same findings come of the same numbers.
#[test]
fn rules_go_by_what_a_study_declares_not_by_names() {
    let (mut toml, mut csv) = files("hirosaki-1998");
    for (name, other) in [
        ("10BASE-T", "link one"),
        ("100BASE-TX", "link two"),
        ("ATM FORE", "link three"),
        ("ATM NEC", "link four"),
        ("ATM Sun", "link five"),
        ("Windows 95", "system one"),
        ("Windows NT 4.0", "system two"),
        ("name = \"TCP\"", "name = \"stream\""),
        (",TCP,", ",stream,"),
        ("name = \"UDP\"", "name = \"datagrams\""),
        (",UDP,", ",datagrams,"),
        ("UNIX", "system three"),
        ("mbps", "rate"),
    ] {
        toml = toml.replace(name, other);
        csv = csv.replace(name, other);
    }
    let shape = |report: &StudyReport| {
        let evidence = |one: &Evidence| match one {
            Evidence::Test { test, p, .. } => (test.clone(), Some(*p)),
            Evidence::Bound { .. } => (String::new(), None),
        };
        let of = |finding: &linerate_study::Finding| {
            (finding.kind, finding.evidence.iter().map(evidence).collect::<Vec<_>>())
        };
        report.findings.iter().map(of).collect::<Vec<_>>()
    };
    let (renamed, original) = (reported("renamed", &toml, &csv), published("hirosaki-1998"));
    assert_eq!(shape(&renamed), shape(&original));
    let text = linerate_study::text(&renamed, &Style::default(), None);
    assert!(text.contains("link three") && !text.contains("FORE"), "{text}");
}

/// A study of two systems, two transports and five clocks with these 20 values for each of two links.
fn made_up(values: &[u32]) -> StudyReport {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n\
        [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'a', medium = '1000base-t', price = 10 }, { name = 'b', medium = '10gbase-t', price = 20 }]\n\
        [[factors]]\ncolumn = 'protocol'\nlevels = [{ name = 'TCP', transport = 'tcp' }, { name = 'UDP', transport = 'udp' }]\n\
        [[factors]]\ncolumn = 'os'\n[[factors]]\ncolumn = 'clock'\nunit = 'MHz'\nof = 'host'\n\
        [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n[path]\nmessage_bytes = [1472]\n";
    let mut csv = "link,protocol,os,clock,mbps\n".to_owned();
    for (index, value) in values.iter().enumerate() {
        let (link, protocol, os) =
            (["a", "b"][index / 20 % 2], ["TCP", "UDP"][index / 10 % 2], ["p", "q"][index / 5 % 2]);
        csv.push_str(&format!("{link},{protocol},{os},{},{value}\n", 100 + index % 5 * 100));
    }
    reported("x", toml, &csv)
}

/// Numbers without any effect: what is then said is said by chance, and that in 5 % of studies at most.
#[test]
fn noise_gives_few_findings() {
    const STUDIES: usize = 400;
    let mut state = 7u64;
    // Knuth's MMIX generator.
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        200 + (state >> 33) as u32 % 600
    };
    // The dearer link does cost more for what it brings, so prices are left out.
    let tested = [FindingKind::Growth, FindingKind::Transport, FindingKind::Crossover, FindingKind::Ranking];
    let mut wrong = 0;
    for _ in 0..STUDIES {
        let report = made_up(&(0..40).map(|_| noise()).collect::<Vec<_>>());
        wrong += usize::from(report.findings.iter().any(|finding| tested.contains(&finding.kind)));
    }
    // Of all findings together, 5 % are 20 studies; 36 or more would come of it once in a thousand times.
    assert!(wrong < 36, "{wrong}");
}

/// And what is planted is found.
#[test]
fn planted_effects_are_found() {
    let planted: Vec<u32> =
        (0..40u32).map(|index| 200 + index % 5 * 40 + index / 10 % 2 * 100 + index / 5 % 2 * 30).collect();
    let found = made_up(&planted).findings;
    let text =
        |kind| found.iter().filter(|one| one.kind == kind).map(|one| one.text.clone()).collect::<Vec<_>>().join(" ");
    assert!(
        text(FindingKind::Growth).contains("On a and b the mbps grows with the clock: from 100 MHz to 500 MHz"),
        "{found:?}"
    );
    assert!(text(FindingKind::Transport).contains("Over 1000BASE-T UDP beats TCP"), "{found:?}");
    assert!(text(FindingKind::Ranking).contains("q has more mbps than p on a in 10 of 10"), "{found:?}");
    // The two links are alike: the dearer one buys nothing.
    assert!(
        text(FindingKind::Price).contains("b does not pay: it costs 2.00 times as much as a. For TCP, "),
        "{found:?}"
    );
}

/// A quick and a slow device in ten places on each of two links, with such a measure. No imported study has a unit but
/// rates.
fn two_devices(unit: MeasureUnit, value: impl Fn(&str, &str, usize) -> f64) -> StudyReport {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n\
        [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'short', medium = '100base-tx' }, { name = 'long', medium = '1000base-t' }]\n\
        [[factors]]\ncolumn = 'device'\n[[factors]]\ncolumn = 'place'\n\
        [[measures]]\ncolumn = 'wait'\ntitle = 'latency'\nunit = 'bit/s'\n";
    let mut csv = "link,device,place,wait\n".to_owned();
    for link in ["short", "long"] {
        for device in ["slow", "quick"] {
            for place in 0..10 {
                csv.push_str(&format!("{link},{device},place {place},{}\n", value(link, device, place)));
            }
        }
    }
    let mut study = reported("x", toml, &csv).study;
    study.measures[0].unit = unit;
    linerate_study::studied(study)
}

fn told(report: &StudyReport, kind: FindingKind) -> String {
    let of_kind = report.findings.iter().filter(|one| one.kind == kind);
    of_kind
        .flat_map(|one| std::iter::once(one.text.as_str()).chain(one.evidence.iter().map(Evidence::text)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Of latency and loss less is better, by the same tests as of throughput more is.
#[test]
fn lower_latency_is_ahead() {
    let quick = |_: &str, device: &str, place: usize| (if device == "quick" { 1e6 } else { 2e6 }) + place as f64;
    let ranking = told(&two_devices(MeasureUnit::Nanos, quick), FindingKind::Ranking);
    for part in [
        "quick has lower latency than slow on short in 10 of 10 pairs of cells (median 0.50 times) and on long in 10 of 10",
        "short: quick is ahead of slow in 10 of 10 pairs of cells that agree in all else, behind in 0; median 0.50 times; p = 0.0039.",
    ] {
        assert!(ranking.contains(part), "{ranking}");
    }
    // The same numbers as a rate: the other way round.
    let ranking = told(&two_devices(MeasureUnit::BitsPerS, quick), FindingKind::Ranking);
    assert!(ranking.contains("slow has more latency than quick on short in 10 of 10"), "{ranking}");
}

/// The same study with the values of one device not firm.
fn not_firm(report: StudyReport, device: &str) -> StudyReport {
    let mut study = report.study;
    let level = study.factors[1].levels.iter().position(|level| level.name == device);
    for cell in study.cells.iter_mut().filter(|cell| cell.levels[1] == level) {
        cell.firmness = vec![Firmness::NotFirm { offered: Some(0.6) }];
    }
    linerate_study::studied(study)
}

#[test]
fn lower_bound_rules_out_claims_about_all_results() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'kind'\n\
        [[factors]]\ncolumn = 'device'\n[[measures]]\ncolumn = 'pps'\ntitle = 'rate'\nunit = 'pps'\n";
    let csv = "kind,device,pps\nrouter,r1,300\nrouter,r2,310\nrouter,r3,320\n\
        switch,s1,100\nswitch,s2,110\nswitch,s3,120\n";
    let of = || reported("x", toml, csv);
    assert!(told(&of(), FindingKind::Unpaired).contains("all 3"));
    assert_eq!(told(&not_firm(of(), "s3"), FindingKind::Unpaired), "");

    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[path]\ntransport = 'tcp'\n\
        [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'wire', medium = '100base-tx' }]\n\
        [[factors]]\ncolumn = 'device'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\ncounts = 'payload'\n";
    let of = || reported("x", toml, "link,device,mbps\nwire,slow,20\nwire,quick,90\n");
    assert_eq!(told(&not_firm(of(), "quick"), FindingKind::Limiter), "");
}

#[test]
fn measures_are_drawn_along_their_own_factor() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'medium'\n\
        [[factors]]\ncolumn = 'datagram'\nof = 'message'\noptional = true\n\
        [[factors]]\ncolumn = 'load'\nunit = 'op/s'\noptional = true\n\
        [[measures]]\ncolumn = 'udp'\nunit = 'Mbit/s'\n[[measures]]\ncolumn = 'reads'\nunit = 'times'\n\
        [[measures]]\ncolumn = 'writes'\nunit = 'times'\n";
    let csv = "medium,datagram,load,udp,reads,writes\n10,64,,3,,\n10,512,,8,,\n10,1472,,9,,\n10,,100,,3,4\n\
        10,,200,,5,6\n10,,400,,9,9\n100,,100,,1,2\n100,,200,,2,3\n100,,400,,3,4\n";
    let mut report = reported("x", toml, csv);
    for (measure, metric) in report.study.measures[1..].iter_mut().zip(["read.mean", "write.mean"]) {
        (measure.unit, measure.metric) = (MeasureUnit::Nanos, Some(metric.to_owned()));
    }
    let page = wide(&linerate_study::html(Language::English, &report, None));
    assert!(page.contains("<i class=\"s0 dash0\"></i>reads, 10<") && !page.contains("without datagram"), "{page}");
}

#[test]
fn csv_marks_results_that_are_not_firm() {
    let of = || two_devices(MeasureUnit::BitsPerS, |_, device, _| if device == "quick" { 2e6 } else { 1e6 });
    assert!(!linerate_study::csv(&of()).contains("_firm"));
    let csv = linerate_study::csv(&not_firm(of(), "quick"));
    let head = csv.lines().next().expect("a head");
    assert!(head.ends_with("latency_limit_share,latency_firm"), "{head}");
    let ends =
        |device: &str, end: &str| csv.lines().filter(|line| line.contains(device)).all(|line| line.ends_with(end));
    assert!(ends(",quick,", ",false") && ends(",slow,", ",true"), "{csv}");
}

#[test]
fn lower_bound_takes_part_in_rankings_only() {
    let rate = |_: &str, device: &str, place: usize| (if device == "quick" { 2e6 } else { 1e6 }) + place as f64;
    let of = || two_devices(MeasureUnit::BitsPerS, rate);
    let firm = told(&of(), FindingKind::Ranking);
    assert!(firm.contains("(median 2.00 times)") && !firm.contains("lower bound"), "{firm}");
    let leads = not_firm(of(), "quick");
    let ranking = told(&leads, FindingKind::Ranking);
    assert!(ranking.contains("quick has more latency than slow on short in 10 of 10"), "{ranking}");
    assert!(ranking.contains("(median at least 2.00 times)") && ranking.contains("are lower bounds"), "{ranking}");
    // The slow one may be as quick: nobody sent enough to see.
    let trails = not_firm(of(), "slow");
    assert_eq!(told(&trails, FindingKind::Ranking), "");
    assert_eq!(told(&not_firm(leads, "slow"), FindingKind::Ranking), "");
    // Of latency nothing is known where the load was not offered.
    let latency = two_devices(MeasureUnit::Nanos, |_, device, _| if device == "quick" { 1e6 } else { 2e6 });
    assert_eq!(told(&not_firm(latency, "quick"), FindingKind::Ranking), "");
}

#[test]
fn tables_mark_results_that_are_not_firm() {
    let rate = |_: &str, device: &str, place: usize| (if device == "quick" { 2e6 } else { 1e6 }) + place as f64;
    let report = not_firm(two_devices(MeasureUnit::BitsPerS, rate), "quick");
    let text = linerate_study::markdown(Language::English, &report, None);
    assert!(text.contains("at least 2 Mbit/s, not firm"), "{text}");
}

#[test]
fn no_loss_is_ahead_of_some_loss() {
    let lossless =
        |_: &str, device: &str, place: usize| if device == "quick" { 0.0 } else { 0.01 * (place + 1) as f64 };
    let ranking = told(&two_devices(MeasureUnit::Share, lossless), FindingKind::Ranking);
    assert!(ranking.contains("quick has lower latency than slow on short in 10 of 10"), "{ranking}");
    assert!(ranking.contains("median nothing against something"), "{ranking}");
    // No device loses anything: none is ahead.
    let ranking = told(&two_devices(MeasureUnit::Share, |_, _, _| 0.0), FindingKind::Ranking);
    assert_eq!(ranking, "");
}

#[test]
fn latency_crossover_names_its_conditions() {
    let turned = |link: &str, device: &str, place: usize| {
        (if (device == "quick") == (link == "short") { 1e6 } else { 2e6 }) + place as f64
    };
    let report = two_devices(MeasureUnit::Nanos, turned);
    let ranking = told(&report, FindingKind::Ranking);
    assert!(
        ranking.contains("on short in 10 of 10") && ranking.contains(" On long its latency is higher."),
        "{ranking}"
    );
    let crossover = told(&report, FindingKind::Crossover);
    let turns = [
        "with long it is slow that has lower latency, in 10 of 10",
        "with short it is quick that has lower latency, in 10 of 10",
    ];
    assert!(turns.iter().any(|turn| crossover.contains(turn)), "{crossover}");
    assert!(crossover.contains("is lower, in 10 of 10."), "{crossover}");
}

/// Latency without any effect: what is then said is said by chance, and that seldom.
#[test]
fn noisy_latency_gives_few_findings() {
    const STUDIES: usize = 400;
    let state = std::cell::Cell::new(11u64);
    let noise = |_: &str, _: &str, _: usize| {
        state.set(state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        1e6 + ((state.get() >> 33) % 1_000_000) as f64
    };
    let speaks = |_: &usize| !told(&two_devices(MeasureUnit::Nanos, noise), FindingKind::Ranking).is_empty();
    let said = (0..STUDIES).filter(speaks).count();
    // Three factors are ranked, each wrongly in 5 % of the studies at the most, which are 60 in all.
    assert!(said < 80, "{said}");
}

proptest! {
    /// Whatever the numbers: no finding without evidence, no p-value that is none, and every form is made.
    #[test]
    fn every_finding_has_evidence(values in prop::collection::vec(0u32..2_000, 1..41)) {
        let report = made_up(&values);
        for finding in &report.findings {
            prop_assert!(!finding.evidence.is_empty() && finding.text.ends_with('.'), "{finding:?}");
            for evidence in &finding.evidence {
                if let Evidence::Test { p, .. } = evidence {
                    prop_assert!((0.0..=1.0).contains(p), "{finding:?}");
                }
            }
            prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf "), "{finding:?}");
        }
        let forms = [linerate_study::text(&report, &Style::default(), None), linerate_study::html(Language::English, &report, None), linerate_study::markdown(Language::English, &report, None), linerate_study::csv(&report)];
        prop_assert!(forms.iter().all(|form| !form.contains("NaN")));
        // Every word of another language has what it holds.
        let japanese = linerate_study::text(&report, &Style { language: Language::Japanese, ..Style::default() }, None);
        prop_assert!(!japanese.contains("{$") && !japanese.contains("findings-"), "{japanese}");
    }
}

#[test]
fn the_page_shows_all_and_fetches_nothing() {
    for name in PUBLISHED {
        let report = published(name);
        let page = linerate_study::html(Language::English, &report, None);
        for finding in &report.findings {
            let first = finding.text.split(['\'', '&', '%']).next().expect("a part").trim_end();
            let shown = page.replace('\u{a0}', " ");
            assert!(shown.contains(first), "{name}: {first}");
        }
        assert!(page.contains("class=\"limit\""), "{name}: no limit is drawn");
        assert!(page.contains("What the medium can carry") || page.contains("what the medium can carry"), "{name}");
        for outside in ["http://", "https://", "src=\"/", "@import", "url("] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn json_round_trip_keeps_the_study() {
    let report = published("switches-2020");
    let csv = linerate_study::csv(&report);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 17);
    assert_eq!(
        lines[0],
        "device,port_speed_mbps,payload_bytes,throughput_bps,throughput_limit_low_bps,throughput_limit_high_bps,throughput_limit_share"
    );
    assert!(lines[1].starts_with("BUFFALO LGH-TX-T8,100,64,77000000.0,49230769.0,84615384.0,0.91"), "{}", lines[1]);
    let back: StudyReport = serde_json::from_str(&linerate_study::json(&report)).expect("it is JSON");
    assert_eq!(back, report);
}

/// The pivot of these factors.
pub(crate) fn pivot(report: &StudyReport, rows: &[&str], columns: &[&str]) -> Result<Option<Pivot>, BadPivot> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    Pivot::asked(&report.study, &names(rows), &names(columns))
}

#[test]
fn tables_are_by_any_factors() {
    let report = published("switches-2020");
    let asked = pivot(&report, &["payload_bytes"], &["device"]).expect("it has both").expect("a pivot");
    let markdown = linerate_study::markdown(Language::English, &report, Some(&asked));
    assert!(markdown.contains("## Throughput by message size and device"), "{markdown}");
    // The port speeds of a device stand in neither; each device has one.
    let row = markdown.lines().find(|line| line.starts_with("| 64")).expect("a row for each size");
    assert_eq!(row.matches("Mbit/s").count(), 4, "{row}");
    assert!(!markdown.contains("## Throughput by port speed"), "only what was asked for: {markdown}");
    let page = linerate_study::html(Language::English, &report, Some(&asked));
    assert!(page.contains("<caption>Throughput by message size and device</caption>"));
    let text = linerate_study::text(&report, &Style::default(), Some(&asked));
    assert!(text.contains("Throughput by message size and device") && text.contains("message size "), "{text}");
    assert!(!linerate_study::text(&report, &Style::default(), None).contains("Throughput by"));
}

#[test]
fn results_of_one_field_show_their_range() {
    let report = published("hirosaki-1998");
    let asked = pivot(&report, &["Operating System"], &["interface"]).expect("it has both").expect("a pivot");
    let markdown = linerate_study::markdown(Language::English, &report, Some(&asked));
    let row = markdown.lines().find(|line| line.starts_with("| Windows 95 |")).expect("a row for each system");
    assert!(row.contains(" Mbit/s (") && row.contains(" to "), "{row}");
    // Ranges are wide: what has no room beside the names stands below, under the same names.
    let text = linerate_study::text(&report, &Style { width: 80, ..Style::default() }, Some(&asked));
    let (_, table) = text.split_once("Throughput by operating system and interface").expect("the table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.matches("Windows NT 4.0").count() > 1 && table.contains("ATM Sun"), "{table}");
    // Without columns the measures have them.
    let asked = pivot(&report, &["os"], &[]).expect("it has it").expect("a pivot");
    let markdown = linerate_study::markdown(Language::English, &report, Some(&asked));
    assert!(markdown.contains("| operating system | throughput |"), "{markdown}");
}

#[test]
fn unknown_factor_error_lists_the_factors() {
    let report = published("hirosaki-1998");
    let said = pivot(&report, &["weather"], &[]).expect_err("no such factor").to_string();
    assert!(said.contains("no factor `weather`") && said.contains("`interface`") && said.contains("`os`"), "{said}");
    let said = pivot(&report, &["os"], &["interface", "os"]).expect_err("twice").to_string();
    assert!(said.contains("`os` is named twice"), "{said}");
    assert_eq!(pivot(&report, &[], &[]), Ok(None));
}

/// Names in a study are somebody else's.
#[test]
fn names_are_escaped() {
    let (toml, csv) = files("l3switch-2008");
    let name = "<script>alert(1)</script>";
    let report = reported("x", &toml, &csv.replace("Apresia 3124GT", name));
    assert!(!linerate_study::html(Language::English, &report, None).contains(name));
    assert!(!linerate_study::markdown(Language::English, &report, None).contains("<script>"));
    let formula = reported("x", &toml, &csv.replace("Apresia 3124GT", "=HYPERLINK(1)"));
    assert!(linerate_study::csv(&formula).contains("'=HYPERLINK(1)"));
    let terminal = reported("x", &toml, &csv.replace("Apresia 3124GT", "\u{1b}[2Jx"));
    assert!(!linerate_study::text(&terminal, &Style::default(), None).contains('\u{1b}'));
}

/// docs/studies holds the pages of the published studies.
#[test]
fn the_rendered_studies_are_up_to_date() {
    for name in PUBLISHED {
        let path = tree(&format!("docs/studies/{name}.html"));
        let page = linerate_study::html(Language::English, &published(name), None);
        if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
            std::fs::write(&path, &page).expect("the page can be written");
        }
        assert!(read(&path) == page, "{} is out of date; run `cargo xtask snapshots`", path.display());
    }
}

/// Seven devices have no room beside each other on a page; four interfaces and four sizes have.
#[test]
fn a_table_wider_than_a_page_has_its_levels_in_rows() {
    let markdown = |name| linerate_study::markdown(Language::English, &published(name), None);
    let wide = markdown("l3switch-2008");
    assert!(wide.contains("| device | L3 switch | PC router |"), "{wide}");
    assert!(wide.contains("| SF-4024FL | 148,809.5/s | \u{2013} |"), "{wide}");
    assert!(!wide.contains("| all else |"), "{wide}");
    let asked = pivot(&published("l3switch-2008"), &[], &["device"]).expect("it has it");
    let asked = linerate_study::markdown(Language::English, &published("l3switch-2008"), asked.as_ref());
    assert!(asked.contains("| all else | CentreCOM 8624EL |"), "as the reader asks: {asked}");
    for (name, head) in [("filecopy-2003", "| all else | 100BASE-TX |"), ("switches-2020", "| all else | 64 bytes |")] {
        assert!(markdown(name).contains(head), "{name}: {}", markdown(name));
    }
}
