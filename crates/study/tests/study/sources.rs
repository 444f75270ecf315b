//! The figures of the published studies against what their sources print. The tables in `sources/` are made from the
//! sources; the figures are worked out from them here, without the code of the reports.

use crate::published::published;
use linerate_study::{StatedAs, StudyReport};
use std::collections::BTreeMap;

/// The rows of a source by the names of their columns.
struct Source {
    rows: Vec<BTreeMap<String, String>>,
}

impl Source {
    fn read(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(fields);
        let header = lines.next().expect("a header");
        let row = |fields: Vec<String>| {
            assert_eq!(fields.len(), header.len(), "{fields:?}");
            header.iter().cloned().zip(fields).collect()
        };
        Self { rows: lines.map(row).collect() }
    }

    /// The number of the one row with these values.
    fn number(&self, column: &str, with: &[(&str, &str)]) -> f64 {
        let is = |row: &&BTreeMap<String, String>| with.iter().all(|(name, value)| row[*name] == *value);
        let found: Vec<_> = self.rows.iter().filter(is).collect();
        assert_eq!(found.len(), 1, "{with:?}");
        found[0][column].parse().expect("a number")
    }

    /// The ratios of the rows with the value `a` of a column to those with `b` that agree in all other columns but
    /// `value`.
    fn ratios(&self, column: &str, a: &str, b: &str, value: &str) -> Vec<f64> {
        let mut ratios = Vec::new();
        for row in self.rows.iter().filter(|row| row[column] == a) {
            let agrees = |other: &&BTreeMap<String, String>| {
                other[column] == b && row.iter().all(|(name, of)| name == column || name == value || other[name] == *of)
            };
            let Some(other) = self.rows.iter().find(agrees) else { continue };
            if let (Ok(one), Ok(other)) = (row[value].parse::<f64>(), other[value].parse::<f64>()) {
                ratios.push(one / other);
            }
        }
        ratios
    }
}

/// The fields of a line of comma-separated values, with or without quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().expect("a field").push(other),
        }
    }
    fields
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn lowest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Three significant digits or so, as findings print ratios.
fn times(ratio: f64) -> String {
    let places = if ratio < 9.995 { 2 } else { usize::from(ratio < 99.95) };
    format!("{ratio:.places$} times")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// All findings of a study with their evidence, as one text.
fn text(report: &StudyReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&finding.text);
        text.push('\n');
        for evidence in &finding.evidence {
            text.push_str(evidence.text());
            text.push('\n');
        }
    }
    text
}

fn assert_says(report: &StudyReport, all: &[String]) {
    let text = text(report);
    for words in all {
        assert!(text.contains(words), "{}: {words}: {text}", report.study.name);
    }
}

/// A range or a bound, to a thousandth of its unit.
fn stated_as(as_a: StatedAs, low: Option<f64>, high: Option<f64>) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), |end| format!("{end:.3}"));
    format!("{as_a:?} {} to {}", end(low), end(high))
}

/// The numbers of a study by the names of their levels and the measure; a bound is none.
fn cells(report: &StudyReport) -> BTreeMap<(Vec<String>, String), String> {
    let study = &report.study;
    let mut cells = BTreeMap::new();
    for cell in &study.cells {
        let name = |factor: usize| study.level(cell, factor).map_or_else(String::new, |level| level.name.clone());
        let levels: Vec<String> = (0..study.factors.len()).map(name).collect();
        for (measure, named) in study.measures.iter().enumerate() {
            let value = match (cell.stated.get(&measure), cell.median(measure)) {
                (None, None) => continue,
                (None, Some(value)) => format!("{value:.0}"),
                (Some(stated), _) => stated_as(stated.as_a, stated.low, stated.high),
            };
            cells.insert((levels.clone(), named.column.clone()), value);
        }
    }
    cells
}

/// The same of a source whose columns are those of the study. `scale` is what a unit of a measure is in bit/s or per
/// second.
fn source_cells(
    report: &StudyReport,
    source: &Source,
    scale: f64,
    in_words: &BTreeMap<&str, String>,
) -> BTreeMap<(Vec<String>, String), String> {
    let mut cells = BTreeMap::new();
    for row in &source.rows {
        let levels: Vec<String> = report.study.factors.iter().map(|factor| row[&factor.column].clone()).collect();
        for measure in &report.study.measures {
            let value = &row[&measure.column];
            let value = match value.parse::<f64>() {
                Ok(number) => format!("{:.0}", number * scale),
                Err(_) => in_words[value.as_str()].clone(),
            };
            cells.insert((levels.clone(), measure.column.clone()), value);
        }
    }
    cells
}

/// Every value of the sources is in its study, and none that they do not print.
#[test]
fn values_match_the_sources() {
    let slightly_more = stated_as(StatedAs::MoreThan, Some(52e6), None);
    let in_words = BTreeMap::from([("若干ながら高い", slightly_more)]);
    for (name, text, scale) in [
        ("hirosaki-1998", include_str!("sources/hirosaki-1998.csv"), 1e6),
        ("switches-2020", include_str!("sources/switches-2020.csv"), 1e6),
        ("filecopy-2003", include_str!("sources/filecopy-2003.csv"), 1e6),
        ("l3switch-2008", include_str!("sources/l3switch-2008.csv"), 1.0),
    ] {
        let report = published(name);
        let source = source_cells(&report, &Source::read(text), scale, &in_words);
        assert_eq!(cells(&report), source, "{name}");
    }
}

#[test]
fn prices_match_the_sources() {
    let source = Source::read(include_str!("sources/prices.csv"));
    let mut prices = BTreeMap::new();
    for name in crate::published::PUBLISHED {
        for level in published(name).study.factors.iter().flat_map(|factor| &factor.levels) {
            if let Some(price) = level.price {
                prices.insert((name.to_owned(), level.name.clone()), (price.low, price.high));
            }
        }
    }
    let number = |text: &String| text.parse::<f64>().expect("a number");
    let of_row = |row: &BTreeMap<String, String>| {
        ((row["study"].clone(), row["level"].clone()), (number(&row["low"]), number(&row["high"])))
    };
    assert_eq!(prices, source.rows.iter().map(of_row).collect());
}

#[test]
fn figures_of_1998_follow_from_its_tables() {
    let source = Source::read(include_str!("sources/hirosaki-1998.csv"));
    let prices = Source::read(include_str!("sources/prices.csv"));
    let report = published("hirosaki-1998");
    let mut says = Vec::new();
    for (faster, slower) in [
        ("100BASE-TX", "10BASE-T"),
        ("ATM FORE", "10BASE-T"),
        ("ATM NEC", "10BASE-T"),
        ("ATM FORE", "100BASE-TX"),
        ("100BASE-TX", "ATM NEC"),
        ("ATM FORE", "ATM NEC"),
    ] {
        let ratios = source.ratios("interface", faster, slower, "mbps");
        let ahead = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        let (all, middle) = (ratios.len(), times(median(ratios)));
        says.push(format!("{faster} is ahead of {slower} in {ahead} of {all} pairs"));
        says.push(format!("median {middle}"));
    }
    // The median of the pairs, which is not the inverse of the median of their inverses.
    assert!(says.contains(&"median 5.53 times".to_owned()), "{says:?}");
    let transports = source.ratios("protocol", "UDP", "TCP", "mbps");
    assert_eq!(transports.len(), 44);
    for dear in ["ATM FORE", "ATM NEC"] {
        let price = |level: &str, end: &str| prices.number(end, &[("study", "hirosaki-1998"), ("level", level)]);
        let least = price(dear, "low") / price("100BASE-TX", "high");
        let most = price(dear, "high") / price("100BASE-TX", "low");
        let (least, most) = (times(least), times(most));
        let range = format!("{} to {most}", least.trim_end_matches(" times"));
        says.push(format!("{dear} does not pay: it costs {range} as much as 100BASE-TX"));
    }
    let above = source.rows.iter().filter(|row| row["mbps"].parse::<f64>().expect("a number") > 100.0).count();
    says.push(format!("{above} of its 22 results"));
    assert_says(&report, &says);
    // The question is about ATM, of which there are two cards with a price.
    let answer = report.study.question.as_ref().and_then(|question| question.answer(&report.findings));
    let answer = &answer.expect("an answer").text;
    assert!(answer.contains("ATM FORE does not pay") && answer.contains("ATM NEC does not pay"), "{answer}");
}

#[test]
fn figures_of_2003_follow_from_its_text() {
    let source = Source::read(include_str!("sources/filecopy-2003.csv"));
    let report = published("filecopy-2003");
    let rate =
        |scenario: &str, interface: &str| source.number("mbps", &[("scenario", scenario), ("interface", interface)]);
    let (clients, servers, three) = ("client PC to client PC", "server to server", "1 server to 3 clients (total)");
    let gain = |scenario: &str, interface: &str| {
        let gained = times(rate(scenario, interface) / rate(scenario, "100BASE-TX"));
        format!("{gained} with {scenario}, {interface}")
    };
    let (of_servers, of_clients) = (gain(servers, "1000BASE-T 32-bit PCI"), gain(clients, "1000BASE-T"));
    assert!(of_servers.starts_with("1.62 times") && of_clients.starts_with("1.28 times"));
    let many = |interface: &str| times(rate(three, interface) / rate(servers, interface));
    assert_says(
        &report,
        &[
            format!("{of_servers}; {of_clients}"),
            gain(three, "1000BASE-T 32-bit PCI"),
            gain(three, "1000BASE-T 64-bit PCI"),
            format!(
                "{} with 100BASE-TX and {} with 1000BASE-T 32-bit PCI",
                many("100BASE-TX"),
                many("1000BASE-T 32-bit PCI")
            ),
            "1000BASE-T 64-bit PCI has more copy rate than 1000BASE-T 32-bit PCI in 1 of 2 pairs".to_owned(),
            "server to server: more than 52 Mbit/s against 52 Mbit/s".to_owned(),
            "1000BASE-T 64-bit PCI costs 2.67 times as much as 1000BASE-T 32-bit PCI".to_owned(),
        ],
    );
    // Servers are what the article is about; the clients are named next to them.
    let answer = report.study.question.as_ref().and_then(|question| question.answer(&report.findings));
    let answer = &answer.expect("an answer").text;
    assert!(answer.contains(&of_servers) && answer.contains(&of_clients), "{answer}");
    assert!(!text(&report).contains("32-bit PCI and 1000BASE-T 64-bit PCI show no difference"), "{report:?}");
}

#[test]
fn figures_of_2008_follow_from_its_table() {
    let source = Source::read(include_str!("sources/l3switch-2008.csv"));
    let report = published("l3switch-2008");
    // RFC 2544 appendix B: preamble, gap and the frame with its check sequence.
    let line = |frame: f64| 100e6 / (8.0 * (frame + 8.0 + 12.0));
    let of = |kind: &str, column: &str| -> Vec<f64> {
        let rows = source.rows.iter().filter(|row| row["kind"] == kind);
        rows.map(|row| row[column].parse().expect("a number")).collect()
    };
    let apart = |kind: &str| -> Vec<f64> {
        let pairs = of(kind, "throughput_64_pps").into_iter().zip(of(kind, "echo_pps"));
        pairs.map(|(one, other)| (one / other).max(other / one)).collect()
    };
    let range = |values: &[f64]| {
        let low = times(lowest(values));
        format!("{} to {}", low.trim_end_matches(" times"), times(highest(values)))
    };
    let forwarding = of("PC router", "throughput_64_pps");
    // Either kind could have been the higher one, and there are three such tests: Holm's first step.
    let p = 3.0 * 2.0 / 35.0;
    assert_says(
        &report,
        &[
            format!("{:.1} % of what it can carry", 100.0 * highest(&forwarding) / line(64.0)),
            format!("no result is more than {}", percent(highest(&of("PC router", "echo_pps")) / line(78.0))),
            format!("is {} of 127,551/s", percent(highest(&of("L3 switch", "echo_pps")) / line(78.0))),
            format!("the larger is {} the smaller", range(&apart("L3 switch"))),
            format!("the larger is {} the smaller", range(&apart("PC router"))),
            format!("The lowest of L3 switch is {}", times(148_809.5 / highest(&forwarding))),
            format!("whichever kind that is; p = {p:.3}"),
            format!("4 of them are the highest; p = {p:.3}"),
        ],
    );
    let tests = report.findings.iter().flat_map(|finding| &finding.evidence).filter_map(|evidence| match evidence {
        linerate_study::Evidence::Test { test, .. } => Some(test),
        linerate_study::Evidence::Bound { .. } => None,
    });
    assert!(tests.clone().count() >= 4 && tests.into_iter().all(|test| !test.contains("one-sided")));
}

#[test]
fn figures_of_2020_follow_from_its_table() {
    let source = Source::read(include_str!("sources/switches-2020.csv"));
    let report = published("switches-2020");
    let mut says = Vec::new();
    for device in ["BUFFALO LSW5-GT-8NS", "Cisco SG110D-08"] {
        let shares = source.ratios("device", device, "none (PC to PC)", "mbps");
        assert_eq!(shares.len(), 4);
        says.push(format!("{device} reaches from {} to {}", percent(lowest(&shares)), percent(highest(&shares))));
    }
    // UDP, IP, Ethernet and its check sequence; preamble and gap.
    let frame = |payload: f64| (payload + 8.0 + 20.0 + 14.0 + 4.0).max(64.0);
    let share_of = |payload: f64, counted: f64| 100.0 * counted / (frame(payload) + 20.0);
    let trim = |rate: f64| format!("{rate:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let (payload, ip, with_fcs) = (share_of(64.0, 64.0), share_of(64.0, 92.0), share_of(64.0, frame(64.0)));
    says.push(format!("cannot be payload ({} Mbit/s) or IP ({} Mbit/s)", trim(payload), trim(ip)));
    says.push(format!("layer 2 with FCS ({} Mbit/s)", trim(with_fcs)));
    let best = source.number("mbps", &[("device", "BUFFALO LGH-TX-T8"), ("payload_bytes", "1472")]);
    says.push(percent(best / share_of(1472.0, frame(1472.0))));
    assert_says(&report, &says);
}

/// What the text of about 1993 states, each row with the reading that the study gives it.
#[test]
fn study_of_1993_states_what_its_source_states() {
    let source = Source::read(include_str!("sources/kdd-1993.csv"));
    let report = published("kdd-1993");
    let about = |value: f64| stated_as(StatedAs::About, Some(value * 0.9), Some(value * 1.1));
    let at_most = |value: f64| stated_as(StatedAs::AtMost, Some(0.0), Some(value));
    let mbps = 1e6;
    let mut expected = BTreeMap::new();
    for row in &source.rows {
        let of = |column: &str| row[column].as_str();
        let sender = of("sender").trim_end_matches(" (client)");
        let rated = if sender == "N2" { "N2 (SPECint92 109.1)" } else { sender };
        let mut cell = |levels: [&str; 4], measure: &str, value: String| {
            expected.insert((levels.map(str::to_owned).to_vec(), measure.to_owned()), value);
        };
        let medium = of("medium");
        match (of("layer"), of("sizes"), of("value")) {
            ("udp", "up to about 1.5 KB", "near 10") => {
                cell([medium, rated, "up to 1.5 KB", ""], "udp_mbps", about(10.0 * mbps));
            }
            ("udp", "above about 1.5 KB", "0") => cell([medium, rated, "above 1.5 KB", ""], "udp_mbps", "0".to_owned()),
            ("udp", "not stated", "near 100") => {
                cell([medium, rated, "best size", ""], "udp_mbps", about(100.0 * mbps));
            }
            ("udp", "not stated" | "fragments included", bound) if bound.starts_with("at most ") => {
                let most: f64 = bound.trim_start_matches("at most ").parse().expect("a number");
                // All but N2 stay below half of what FDDI carries.
                assert!(most < 50.0 && sender != "N2");
                cell([medium, rated, "best size", ""], "udp_mbps", at_most(most * mbps));
            }
            ("udp", "4 KB and more (fragments)", "hardly any") => {
                cell([medium, rated, "4 KB and more", ""], "udp_mbps", about(0.0));
            }
            ("udp", _, "less than half of 100") => assert_eq!(sender, "all but N2"),
            ("rpc", _, "saturated and sufficient") => cell([medium, rated, "", ""], "rpc_growth", about(1.0)),
            ("rpc", _, "not saturated") => {
                let value = stated_as(StatedAs::MoreThan, Some(1.0), None);
                cell([medium, rated, "", ""], "rpc_growth", value);
            }
            ("rpc", "8 KB", "about 4") => cell(["", rated, "", ""], "rpc_fddi_to_ethernet", about(4.0)),
            ("nfs", "read", "at least 2") => {
                let value = stated_as(StatedAs::AtLeast, Some(2.0), None);
                cell(["", "", "", "read"], "nfs_fddi_to_ethernet", value);
            }
            ("nfs", "write", "not that much") => {
                let value = stated_as(StatedAs::LessThan, Some(0.0), Some(2.0));
                cell(["", "", "", "write"], "nfs_fddi_to_ethernet", value);
            }
            ("nfs", "other operations", "hardly any difference") => {
                cell(["", "", "", "other operations"], "nfs_fddi_to_ethernet", about(1.0));
            }
            other => panic!("{other:?} has no reading"),
        }
    }
    assert_eq!(cells(&report), expected);
    // N1 receives; what differs is the sender.
    let study = &report.study;
    assert!(study.factors.iter().any(|factor| factor.title == "sender"));
    assert!(study.factors.iter().all(|factor| factor.title != "receiver"));
    assert!(study.about.contains("N1") && study.about.contains("receives in all UDP tests"), "{}", study.about);
    assert!(study.method.contains("from N2 to N1") && study.method.contains("server N1 and the client N2"));
    let answer = study.question.as_ref().and_then(|question| question.answer(&report.findings)).expect("an answer");
    for part in [
        "on FDDI comes near",
        "N2 (SPECint92 109.1), best size (about 100 Mbit/s)",
        "(at most 40 Mbit/s)",
        "(at most 30 Mbit/s)",
    ] {
        assert!(answer.text.contains(part), "{}", answer.text);
    }
}

/// A value near a number is not that number, in no table and in no share.
#[test]
fn approximate_values_are_marked_everywhere() {
    let report = published("kdd-1993");
    let lang = linerate_report::Language::English;
    let forms = [
        linerate_study::markdown(lang, &report, None),
        linerate_study::html(lang, &report, None).replace('\u{a0}', " "),
        linerate_study::text(&report, &linerate_report::Style::default(), None),
    ];
    for form in &forms {
        assert!(!form.contains("100.0 %"), "{form}");
        assert!(form.contains("about 101 %") && form.contains("about 104 %"), "{form}");
    }
    let markdown = &forms[0];
    let tables: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    let rows = |words: &str| tables.iter().filter(|row| row.contains(words)).count();
    // By sender, and all results; the table by datagrams has N3 in another row.
    assert!(
        rows("about 100 Mbit/s") >= 2 && rows("at most 40 Mbit/s") >= 2 && rows("at most 30 Mbit/s") >= 2,
        "{markdown}"
    );
    for number in ["| 100 Mbit/s |", "| 10 Mbit/s |"] {
        assert_eq!(rows(number), 0, "{number}: {markdown}");
    }
    let share = report.limits.iter().map(|limit| limit.share).fold(0.0, f64::max);
    assert!(share > 1.0, "{share}: nothing is cut off at the limit");
}
