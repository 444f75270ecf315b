//! Findings say no more than the numbers support.

use crate::published::reported;
use linerate_report::Style;
use linerate_study::{FindingKind, StudyReport};

fn said(report: &StudyReport, kind: FindingKind) -> String {
    let of_kind = report.findings.iter().filter(|one| one.kind == kind);
    of_kind.map(|one| one.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Throughput of hosts with these clocks in MHz over one link, in eight places; `levels` are those of the clock.
fn clocks(levels: &str, mbps: impl Fn(u32) -> u32) -> StudyReport {
    let toml = format!(
        "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[path]\ntransport = 'tcp'\n\
         [[factors]]\ncolumn = 'link'\nlevels = [{{ name = 'wire', medium = '1000base-t' }}]\n[[factors]]\ncolumn = 'place'\n\
         [[factors]]\ncolumn = 'clock'\nunit = 'MHz'\nof = 'host'\nlevels = [{levels}]\n\
         [[measures]]\ncolumn = 'mbps'\ntitle = 'throughput'\nunit = 'Mbit/s'\ncounts = 'payload'\n"
    );
    let mut csv = "link,place,clock,mbps\n".to_owned();
    for place in 1..=8 {
        for clock in [100, 200, 300] {
            csv.push_str(&format!("wire,place {place},{clock},{}\n", mbps(clock) + place));
        }
    }
    reported("x", &toml, &csv)
}

const PLAIN: &str = "{ name = '100' }, { name = '200' }, { name = '300' }";

#[test]
fn growth_with_the_host_clock_alone_names_the_hosts() {
    let report = clocks(PLAIN, |clock| clock);
    assert!(said(&report, FindingKind::Growth).contains("grows with the clock: from 100 MHz to 300 MHz"), "{report:?}");
    assert!(said(&report, FindingKind::Limiter).contains("The hosts, not the wire, limit throughput on wire"));
}

#[test]
fn confounded_factor_shows_no_growth() {
    let report = clocks(
        "{ name = '100' }, { name = '200', also = 'more memory' }, { name = '300', also = 'another card' }",
        |clock| clock,
    );
    assert_eq!(said(&report, FindingKind::Growth), "");
    let limiter = said(&report, FindingKind::Limiter);
    assert!(!limiter.contains("hosts"), "{limiter}");
    assert!(limiter.contains("Something other than the wire limits throughput on wire"), "{limiter}");
}

#[test]
fn limit_share_names_only_results_with_that_share() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[path]\nmessage_bytes = [1472]\n\
        [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'wire', medium = '100base-tx' }]\n\
        [[factors]]\ncolumn = 'protocol'\n\
        levels = [{ name = 'TCP', transport = 'tcp' }, { name = 'UDP', transport = 'udp' }]\n\
        [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\ncounts = 'payload'\n";
    let text = said(&reported("x", toml, "link,protocol,mbps\nwire,TCP,94\nwire,UDP,94\n"), FindingKind::LimitShare);
    assert!(text.contains("(wire, TCP) is 99.0 %") && !text.contains("UDP"), "{text}");
}

#[test]
fn results_near_the_limit_rule_out_the_hosts() {
    // 949.28 Mbit/s is the most: 900 are 95 %.
    let limiter = said(&clocks(PLAIN, |clock| clock * 3), FindingKind::Limiter);
    assert!(!limiter.contains("hosts"), "{limiter}");
}

#[test]
fn wire_is_named_only_close_to_its_limit() {
    let near = said(&clocks(PLAIN, |_| 870), FindingKind::Limiter);
    assert!(near.contains("comes near what the wire can carry: every result is at least 91.8 % of it"), "{near}");
    assert!(near.contains("costs at most 8.2 %") && !near.contains("The wire limits"), "{near}");
    let full = said(&clocks(PLAIN, |_| 930), FindingKind::Limiter);
    assert!(full.contains("The wire limits throughput on wire: every result is at least 98.1 %"), "{full}");
}

/// Three devices in so many places, with the rates that these functions give.
fn devices(places: u32, rates: [&dyn Fn(u32) -> u32; 3]) -> StudyReport {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n\
        [[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'pps'\ntitle = 'rate'\nunit = 'pps'\n";
    let mut csv = "device,place,pps\n".to_owned();
    for place in 0..places {
        for (device, rate) in ["one", "two", "three"].iter().zip(&rates) {
            csv.push_str(&format!("{device},place {place},{}\n", rate(place)));
        }
    }
    reported("x", toml, &csv)
}

/// One beats three; two is told apart from neither.
#[test]
fn ranking_needs_a_significant_step_at_each_place() {
    let rates: [&dyn Fn(u32) -> u32; 3] = [&|_| 300, &|place| if place % 2 == 0 { 350 } else { 100 }, &|_| 200];
    let ranking = said(&devices(12, rates), FindingKind::Ranking);
    assert!(ranking.contains("one is ahead of three. No order of all of them is shown."), "{ranking}");
    assert!(!ranking.contains("then"), "{ranking}");

    let rates: [&dyn Fn(u32) -> u32; 3] = [&|_| 300, &|_| 250, &|_| 200];
    let ranking = said(&devices(12, rates), FindingKind::Ranking);
    assert!(ranking.contains("most first: one; then two; then three"), "{ranking}");
}

#[test]
fn equal_levels_are_reported_as_equal() {
    let report = devices(12, [&|_| 300, &|_| 300, &|_| 200]);
    let ranking = said(&report, FindingKind::Ranking);
    assert!(ranking.contains("most first: one and two (equal); then three"), "{ranking}");
    let evidence: Vec<&str> = report.findings.iter().flat_map(|one| &one.evidence).map(|one| one.text()).collect();
    assert!(evidence.iter().any(|one| one.contains("one and two are equal in all 12 pairs of cells")), "{evidence:?}");

    // Each ahead as often as the other, and twice level.
    let rates: [&dyn Fn(u32) -> u32; 3] =
        [&|_| 300, &|place| [300, 350, 250, 350, 250, 300][place as usize % 6], &|_| 200];
    let report = devices(6, rates);
    let text = linerate_study::text(&report, &Style::default(), None);
    assert!(!text.contains("one is ahead of two") && !text.contains("two is ahead of one"), "{text}");
}

#[test]
fn equal_results_have_no_best() {
    let report = devices(2, [&|_| 300, &|_| 300, &|_| 300]);
    let text = linerate_study::text(&report, &Style::default(), None);
    assert!(text.contains("all 6 results are equal"), "{text}");
    assert!(!text.contains("the best of"), "{text}");
}

/// At twice the price twice the throughput costs the same: that is neither dearer nor cheaper.
#[test]
fn proportional_price_is_not_called_dear() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'card'\n\
        levels = [{ name = 'plain', price = 10 }, { name = 'dear', price = 20 }]\n\
        [[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    let priced = |dear: u32| {
        let mut csv = "card,place,mbps\n".to_owned();
        (1..=12).for_each(|place| csv.push_str(&format!("plain,{place},100\ndear,{place},{dear}\n")));
        said(&reported("x", toml, &csv), FindingKind::Price)
    };
    assert_eq!(priced(200), "");
    assert!(priced(199).contains("dear buys speed, but dearly"));
    assert!(priced(201).contains("dear pays"));
}

/// Two cards in three places with these repeats each, in Mbit/s, and a tolerance of 5 %.
fn repeated(one: &[f64], other: &[f64]) -> StudyReport {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\ntolerance = 0.05\n[[factors]]\ncolumn = 'card'\n\
        [[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\ntitle = 'throughput'\nunit = 'Mbit/s'\n";
    let mut csv = "card,place,mbps\n".to_owned();
    for place in 1..=3 {
        for (card, repeats) in [("narrow", one), ("wide", other)] {
            repeats.iter().for_each(|mbps| csv.push_str(&format!("{card},place {place},{mbps}\n")));
        }
    }
    reported("x", toml, &csv)
}

/// The medians are the same both times. Repeats that scatter do not show it.
#[test]
fn no_difference_needs_the_spread_of_repeats() {
    let steady = repeated(&[99.0, 100.0, 101.0, 100.0], &[100.0, 99.5, 100.5, 100.0]);
    let finding = steady.findings.iter().find(|one| one.kind == FindingKind::NoDifference).expect("a finding");
    assert!(finding.text.contains("narrow and wide show no difference"), "{finding:?}");
    assert!(finding.evidence.iter().any(|one| one.text().contains("the means of the repeats differ by less than 5")));
    let scattered = repeated(&[60.0, 100.0, 100.0, 140.0], &[70.0, 100.0, 100.0, 130.0]);
    assert_eq!(said(&scattered, FindingKind::NoDifference), "");
    // One value each is taken as it is.
    assert!(said(&repeated(&[100.0], &[99.0]), FindingKind::NoDifference).contains("narrow and wide"));
}
