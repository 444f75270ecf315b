//! Wrong statements planted into copies of the published data are not made into findings.

use crate::published::{files, reported};
use linerate_report::Style;
use linerate_study::{FindingKind, StudyReport, text};

/// A published study with these changes to its two files, each found at least once.
fn changed(name: &str, toml_changes: &[(&str, &str)], csv_changes: &[(&str, &str)]) -> StudyReport {
    let (toml, csv) = files(name);
    let with = |text: String, changes: &[(&str, &str)]| {
        changes.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    };
    reported(name, &with(toml, toml_changes), &with(csv, csv_changes))
}

/// Whether a finding of this kind has all these parts.
fn says(report: &StudyReport, kind: FindingKind, parts: &[&str]) -> bool {
    let has = |text: &str| parts.iter().all(|part| text.contains(part));
    report.findings.iter().any(|one| one.kind == kind && has(&one.text))
}

/// Each time it is said of the data as they are, and not of those that are changed.
fn is_lost(name: &str, toml: &[(&str, &str)], csv: &[(&str, &str)], kind: FindingKind, parts: &[&str]) {
    assert!(says(&changed(name, &[], &[]), kind, parts), "{name} does not say {parts:?}");
    let report = changed(name, toml, csv);
    assert!(!says(&report, kind, parts), "{name} says {parts:?}: {:#?}", report.findings);
}

#[test]
fn swapped_sizes_lose_the_header_finding() {
    let swapped = [("T8,100,64,77", "T8,100,64,95"), ("T8,100,1472,95", "T8,100,1472,77")];
    let parts = ["LGH-TX-T8", "mostly by headers"];
    is_lost("switches-2020", &[], &swapped, FindingKind::MessageSize, &parts);
    assert!(says(&changed("switches-2020", &[], &swapped), FindingKind::AboveLimit, &["95 Mbit/s at 64 bytes"]));
}

#[test]
fn without_a_tester_no_tester_limit() {
    let none = [(", tester = true", "")];
    is_lost("switches-2020", &none, &[], FindingKind::TesterLimit, &["Cisco SG110D-08"]);
}

#[test]
fn result_below_the_tester_limit_loses_the_finding() {
    let low = [("SG110D-08,1000,1024,778", "SG110D-08,1000,1024,600")];
    is_lost("switches-2020", &[], &low, FindingKind::TesterLimit, &["Cisco SG110D-08"]);
}

#[test]
fn swapped_kinds_lose_their_ranking() {
    let swapped = [("8624EL,L3 switch,6642", "8624EL,L3 switch,36928"), ("XP,PC router,36928", "XP,PC router,6642")];
    is_lost("l3switch-2008", &[], &swapped, FindingKind::Unpaired, &["PC router against L3 switch"]);
    is_lost("l3switch-2008", &[], &swapped, FindingKind::SamePart, &["PC router"]);
}

#[test]
fn slower_switch_is_not_equal() {
    let slower = [("SF-4024FL,L3 switch,224,148809.5", "SF-4024FL,L3 switch,224,140000")];
    is_lost("l3switch-2008", &[], &slower, FindingKind::NoDifference, &["SF-4024FL"]);
    is_lost("l3switch-2008", &[], &slower, FindingKind::Limiter, &["The wire limits forwarding"]);
}

#[test]
fn changed_slot_results_lose_the_bound() {
    let faster = [("1000BASE-T 64-bit PCI,83", "1000BASE-T 64-bit PCI,90")];
    let slower = [("1000BASE-T 64-bit PCI,83", "1000BASE-T 64-bit PCI,80")];
    let parts = ["1000BASE-T 64-bit PCI has more copy rate than 1000BASE-T 32-bit PCI in 1 of 2 pairs"];
    is_lost("filecopy-2003", &[], &faster, FindingKind::Stated, &parts);
    is_lost("filecopy-2003", &[], &slower, FindingKind::Stated, &parts);
}

#[test]
fn linear_growth_with_clients_loses_the_finding() {
    let thrice = [("3 clients (total),100BASE-TX,75", "3 clients (total),100BASE-TX,94")];
    let slow = [("server to server,100BASE-TX,32", "server to server,100BASE-TX,31")];
    let both = [thrice[0], slow[0], ("32-bit PCI,83", "32-bit PCI,160")];
    is_lost("filecopy-2003", &[], &both, FindingKind::Clients, &["server to server", "less than 3 times"]);
}

#[test]
fn confounded_clocks_lose_the_host_limit() {
    let confounded = [
        ("{ name = \"100\" }", "{ name = \"100\", also = \"other memory\" }"),
        ("{ name = \"133\" }", "{ name = \"133\", also = \"other board\" }"),
    ];
    is_lost("hirosaki-1998", &confounded, &[], FindingKind::Limiter, &["The hosts, not the wire"]);
    is_lost("hirosaki-1998", &confounded, &[], FindingKind::Growth, &["grows with the CPU clock"]);
}

/// Every result of Windows NT on two PCs becomes that of Windows 95.
#[test]
fn tied_systems_are_not_ranked() {
    let (toml, csv) = files("hirosaki-1998");
    let tied: Vec<String> = csv
        .lines()
        .filter(|line| !line.starts_with("A-B,Windows NT"))
        .flat_map(|line| match line.strip_prefix("A-B,Windows 95") {
            Some(rest) => vec![line.to_owned(), format!("A-B,Windows NT 4.0{rest}")],
            None => vec![line.to_owned()],
        })
        .collect();
    let report = reported("hirosaki-1998", &toml, &(tied.join("\n") + "\n"));
    assert!(!says(&report, FindingKind::Ranking, &["Windows NT 4.0 has more throughput"]));
    assert!(!says(&report, FindingKind::Ranking, &["Windows 95 has more throughput"]));
    assert!(says(&report, FindingKind::NoDifference, &["Windows 95 and Windows NT 4.0 show no difference"]));
}

/// TCP and UDP change places on one of the systems.
#[test]
fn swapped_transports_lose_the_ranking() {
    let swapped = [
        ("A-B,Windows 95,TCP,ATM", "A-B,Windows 95,swap,ATM"),
        ("A-B,Windows 95,UDP,ATM", "A-B,Windows 95,TCP,ATM"),
        ("A-B,Windows 95,swap,ATM", "A-B,Windows 95,UDP,ATM"),
    ];
    is_lost("hirosaki-1998", &[], &swapped, FindingKind::Transport, &["Over ATM-OC3-LANE UDP beats TCP"]);
}

#[test]
fn low_result_means_the_medium_is_not_full() {
    let low = [("A-B,Windows 95,TCP,10BASE-T,75,8.65", "A-B,Windows 95,TCP,10BASE-T,75,4.65")];
    is_lost("hirosaki-1998", &[], &low, FindingKind::Saturated, &["10BASE-T"]);
    is_lost("hirosaki-1998", &[], &low, FindingKind::Limiter, &["on 10BASE-T comes near"]);
}

/// A study of one cell, of cells without repeats, and with a level that never ran.
#[test]
fn studies_too_small_to_conclude_say_why() {
    let study = |data: &str| {
        let toml = r#"
title = "Devices"
question = "Which is faster?"
about = "Made up."
method = "Made up."
source = "Nobody"
data = "data.csv"
factors = [{ column = "device", levels = [{ name = "one" }, { name = "two" }, { name = "never" }] }]
measures = [{ column = "mbps", title = "throughput", unit = "Mbit/s" }]
"#;
        text(&reported("devices", toml, data), &Style { width: 200, ..Style::default() }, None)
    };
    let one = study("device,mbps\none,10\n");
    assert!(one.contains("no answer: with one cell there is nothing to compare"), "{one}");
    assert!(one.contains("There is no result with two and never."), "{one}");
    let single = study("device,mbps\none,10\ntwo,20\n");
    assert!(single.contains("no answer. Every cell has one value"), "{single}");
    assert!(single.contains("There is no result with never."), "{single}");
    let repeated = study("device,mbps\none,10\none,30\ntwo,20\ntwo,21\n");
    assert!(repeated.contains("The results support no answer.\n"), "{repeated}");
}
