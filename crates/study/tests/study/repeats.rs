//! Repeats within cells decide where the cells are too few for a test of their medians.

use crate::published::{files, published, reported};
use linerate_study::{Evidence, FindingKind, StudyFile, StudyReport, Verdict};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;

const DEVICES: [&str; 3] = ["one", "two", "three"];

/// A study of three devices and four sizes, with the repeats that `repeats` gives for a device and a size.
pub(crate) fn devices(mut repeats: impl FnMut(usize, usize) -> Vec<f64>) -> StudyReport {
    let toml = "title = 'Devices'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n\
        question = { text = 'Which is the fastest?', answered_by = ['ranking'] }\n\
        [[factors]]\ncolumn = 'device'\n[[factors]]\ncolumn = 'size'\nunit = 'bytes'\n\
        [[measures]]\ncolumn = 'pps'\ntitle = 'rate'\nunit = 'pps'\n";
    let mut csv = "device,size,pps\n".to_owned();
    for (device, name) in DEVICES.iter().enumerate() {
        for (at, size) in [64, 512, 1024, 1472].iter().enumerate() {
            for value in repeats(device, at) {
                csv.push_str(&format!("{name},{size},{value:.3}\n"));
            }
        }
    }
    reported("devices", toml, &csv)
}

pub(crate) fn rankings(report: &StudyReport) -> Vec<&str> {
    let of_kind = report.findings.iter().filter(|one| one.kind == FindingKind::Ranking);
    of_kind.map(|one| one.text.as_str()).collect()
}

/// A value about `middle`, up to a tenth of it away.
fn noisy(random: &mut SmallRng, middle: f64) -> f64 {
    middle * random.random_range(0.9..1.1)
}

/// 3 devices, 4 sizes and 3 repeats, with differences of 15 times: four pairs of cells are too few for a sign test.
#[test]
fn clear_differences_in_few_cells_rank() {
    let mut random = SmallRng::seed_from_u64(1);
    let report = devices(|device, size| {
        let middle = [150_000.0, 10_000.0, 700.0][device] / (size + 1) as f64;
        (0..3).map(|_| noisy(&mut random, middle)).collect()
    });
    assert_eq!(rankings(&report), ["Rate by device, most first: one; then two; then three."]);
    let ranking = report.findings.iter().find(|one| one.kind == FindingKind::Ranking).expect("a ranking");
    let Evidence::Test { test, p, text } = &ranking.evidence[0] else { panic!("{ranking:?}") };
    assert!(test.starts_with("rank-sum test of the repeats within pairs of cells, exact, two-sided"), "{test}");
    assert!(*p < 0.001 && text.contains("in 4 of 4 pairs of cells"), "{text}");
    let note = ranking.evidence.last().expect("evidence").text();
    assert!(note.contains("3 repeats in each cell") && note.contains("from session to session"), "{note}");
}

/// The same medians without repeats: four pairs give p = 0.125 at best.
#[test]
fn same_cells_without_repeats_do_not_rank() {
    let report = devices(|device, size| vec![[150_000.0, 10_000.0, 700.0][device] / (size + 1) as f64]);
    assert_eq!(rankings(&report), Vec::<&str>::new());
}

/// Studies without any difference between the devices, each size with its own rate: a ranking of any two devices is a
/// false alarm. The generator's seed is fixed.
#[test]
fn false_alarms_of_repeats_stay_below_their_level() {
    const STUDIES: usize = 500;
    let mut random = SmallRng::seed_from_u64(1998);
    let mut alarms = 0;
    for _ in 0..STUDIES {
        let report = devices(|_, size| (0..3).map(|_| noisy(&mut random, 1_000.0 * (size + 1) as f64)).collect());
        alarms += usize::from(report.findings.iter().any(|one| one.kind == FindingKind::Ranking));
    }
    println!("{alarms} of {STUDIES} studies");
    assert!(alarms <= STUDIES * 65 / 1_000, "{alarms} of {STUDIES}");
}

/// The limit of the test, which the evidence states: where each cell was measured in a session of its own, and
/// sessions differ, the repeats of a cell share the difference, and more than 5 % of studies rank by chance.
#[test]
fn differences_between_sessions_are_not_in_the_repeats() {
    const STUDIES: usize = 200;
    let mut random = SmallRng::seed_from_u64(2003);
    let mut alarms = 0;
    for _ in 0..STUDIES {
        let report = devices(|_, size| {
            let session = noisy(&mut random, 1_000.0 * (size + 1) as f64);
            (0..3).map(|_| session * random.random_range(0.995..1.005)).collect()
        });
        let ranking = report.findings.iter().find(|one| one.kind == FindingKind::Ranking);
        if let Some(ranking) = ranking {
            alarms += 1;
            assert!(ranking.evidence.iter().any(|one| one.text().contains("from session to session")), "{ranking:?}");
        }
    }
    println!("{alarms} of {STUDIES} studies with sessions");
    assert!((STUDIES / 20..STUDIES / 2).contains(&alarms), "{alarms} of {STUDIES}");
}

/// Steps of 30 % between devices whose repeats spread by 20 % are found in nearly all studies, steps of 10 % in a third.
#[test]
fn planted_differences_are_found() {
    const STUDIES: usize = 100;
    let mut random = SmallRng::seed_from_u64(2008);
    let mut found = |lead: f64| {
        let ranks = |_: &usize| {
            let report = devices(|device, _| {
                let middle = 1_000.0 * lead.powi(i32::try_from(device).expect("three devices"));
                (0..3).map(|_| noisy(&mut random, middle)).collect()
            });
            rankings(&report) == ["Rate by device, most first: three; then two; then one."]
        };
        (0..STUDIES).filter(ranks).count()
    };
    let (small, large) = (found(1.1), found(1.3));
    println!("{small} and {large} of {STUDIES} studies");
    assert!(small * 4 > STUDIES, "{small} of {STUDIES}");
    assert!(large * 100 >= STUDIES * 95, "{large} of {STUDIES}");
}

/// A study of the three devices with these lines of TOML, of which each has these repeats at every size.
fn concluded(toml: &str, data: &str) -> StudyReport {
    let toml = format!(
        "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n\
         levels = [{{ name = 'one', price = 10 }}, {{ name = 'two', price = 20 }}, {{ name = 'never', price = 30 }}]\n\
         [[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\ntitle = 'throughput'\nunit = 'Mbit/s'\n{toml}"
    );
    reported("x", &toml, &format!("device,place,mbps\n{data}"))
}

/// The verdict on the conclusion that this level is ahead of the other, and its reason.
fn verdict(ahead: &str, of: &str, data: &str) -> (Verdict, String) {
    let toml = format!("[[conclusions]]\ntext = 'x'\nahead = '{ahead}'\nof = '{of}'\n");
    let report = concluded(&toml, data);
    let [answer] = &report.answers[..] else { panic!("{:?}", report.answers) };
    (answer.verdict, answer.reason.clone())
}

/// Lines of data: two devices in these places, each with its repeats.
fn lines(places: &[(&[f64], &[f64])]) -> String {
    let mut lines = String::new();
    for (at, (one, two)) in places.iter().enumerate() {
        one.iter().for_each(|value| lines.push_str(&format!("one,place {at},{value}\n")));
        two.iter().for_each(|value| lines.push_str(&format!("two,place {at},{value}\n")));
    }
    lines
}

const HIGH: &[f64] = &[200.0, 201.0, 199.0];
const LOW: &[f64] = &[100.0, 101.0, 99.0];

/// One: what is so. Two: the same with its levels swapped.
#[test]
fn swapped_conclusion_is_contradicted() {
    let data = lines(&[(HIGH, LOW), (HIGH, LOW), (HIGH, LOW), (HIGH, LOW)]);
    let (confirmed, reason) = verdict("one", "two", &data);
    assert_eq!(confirmed, Verdict::Confirmed, "{reason}");
    assert!(reason.contains("in 4 of 4 pairs of cells") && reason.contains("repeats ranked"), "{reason}");
    assert_eq!(verdict("two", "one", &data).0, Verdict::Contradicted);
}

/// Three: a row that was swapped in one of four places leaves no ranking.
#[test]
fn swapped_row_is_not_ranked() {
    let data = lines(&[(HIGH, LOW), (HIGH, LOW), (LOW, HIGH), (HIGH, LOW)]);
    let (verdict, reason) = verdict("one", "two", &data);
    assert_eq!(verdict, Verdict::Untestable, "{reason}");
    assert_eq!(rankings(&concluded("", &data)), Vec::<&str>::new());
}

/// Four: levels that are equal.
#[test]
fn tie_is_not_ahead() {
    let data = lines(&[(HIGH, HIGH), (LOW, LOW), (HIGH, HIGH), (LOW, LOW)]);
    for (ahead, of) in [("one", "two"), ("two", "one")] {
        let (verdict, reason) = verdict(ahead, of, &data);
        assert_eq!(verdict, Verdict::Contradicted, "{reason}");
    }
    assert_eq!(rankings(&concluded("", &data)), Vec::<&str>::new());
}

/// Five: each device in places of its own, so that the place may make the difference.
#[test]
fn confounded_levels_are_untestable() {
    let data = "one,place a,200\none,place a,201\ntwo,place b,100\ntwo,place b,101\ntwo,place c,100\n";
    let (verdict, reason) = verdict("one", "two", data);
    assert_eq!(verdict, Verdict::Untestable);
    assert!(reason.contains("other factors may make the difference"), "{reason}");
    assert_eq!(rankings(&concluded("", data)), Vec::<&str>::new());
}

/// Six: a difference that a one-sided test would show, and a two-sided one does not: five pairs of single values have
/// p = 0.031 one-sided and 0.062 two-sided.
#[test]
fn one_sided_difference_is_not_shown() {
    let single: Vec<(&[f64], &[f64])> = vec![(&[110.0], &[100.0]); 5];
    let (verdict, reason) = verdict("one", "two", &lines(&single));
    assert_eq!(verdict, Verdict::Untestable, "{reason}");
    assert!(reason.contains("p = 0.062") && reason.contains("Too few for a test"), "{reason}");
    assert_eq!(rankings(&concluded("", &lines(&single))), Vec::<&str>::new());
}

/// Seven: a level that never ran.
#[test]
fn level_that_never_ran_is_untestable() {
    let data = lines(&[(HIGH, LOW), (HIGH, LOW)]);
    let (ahead, reason) = verdict("never", "two", &data);
    assert_eq!((ahead, reason.as_str()), (Verdict::Untestable, "Never has no result."));
    assert_eq!(verdict("one", "nowhere", &data).0, Verdict::Untestable);
    let report = concluded("", &data);
    assert!(report.findings.iter().all(|finding| !finding.text.contains("never")), "{:?}", report.findings);
}

/// Eight: a study of one cell.
#[test]
fn one_cell_says_nothing_of_levels() {
    let report = concluded("[[conclusions]]\ntext = 'x'\nahead = 'one'\nof = 'two'\n", "one,place a,200\n");
    assert_eq!(report.answers[0].verdict, Verdict::Untestable);
    assert_eq!(report.findings, Vec::new());
    let text = linerate_study::text(&report, &linerate_report::Style::default(), None);
    assert!(text.contains("Untestable: X."), "{text}");
}

/// Nine: few cells without repeats, a little apart.
#[test]
fn cells_without_repeats_are_untestable() {
    let data = lines(&[(&[110.0], &[100.0]), (&[112.0], &[101.0])]);
    let (verdict, reason) = verdict("one", "two", &data);
    assert_eq!(verdict, Verdict::Untestable, "{reason}");
    assert_eq!(rankings(&concluded("", &data)), Vec::<&str>::new());
}

/// Repeats that overlap leave open what their medians say, however far these are apart.
#[test]
fn overlapping_repeats_do_not_decide() {
    let data = lines(&[(&[300.0, 50.0], &[100.0, 60.0]), (&[400.0, 20.0], &[90.0, 70.0])]);
    let (verdict, reason) = verdict("one", "two", &data);
    assert_eq!(verdict, Verdict::Untestable, "{reason}");
    assert!(reason.contains("The results do not decide"), "{reason}");
}

/// Ten: copies of one value are no repeats.
#[test]
fn copied_rows_are_no_repeats() {
    let data = lines(&[(&[110.0; 9], &[100.0; 9]), (&[110.0; 9], &[100.0; 9])]);
    let (verdict, reason) = verdict("one", "two", &data);
    assert_eq!(verdict, Verdict::Untestable, "{reason}");
    assert_eq!(rankings(&concluded("", &data)), Vec::<&str>::new());
}

/// Eleven: twice the throughput at twice the price costs the same.
#[test]
fn equal_cost_is_not_called_dear() {
    let toml = "[[conclusions]]\ntext = 'x'\ndoes_not_pay = 'two'\nagainst = 'one'\n";
    let data = lines(&[(LOW, HIGH), (LOW, HIGH), (LOW, HIGH), (LOW, HIGH)]);
    let answer = &concluded(toml, &data).answers[0];
    assert_ne!(answer.verdict, Verdict::Confirmed, "{answer:?}");
    let data = lines(&[(LOW, LOW), (HIGH, HIGH), (LOW, LOW), (HIGH, HIGH)]);
    let answer = &concluded(toml, &data).answers[0];
    assert_eq!(answer.verdict, Verdict::Confirmed, "{answer:?}");
}

#[test]
fn costs_are_a_table_where_no_test_decides() {
    // Once the dear one costs less a unit, once more.
    let report = concluded("", &lines(&[(&[100.0], &[110.0]), (&[100.0], &[250.0])]));
    assert!(report.findings.iter().all(|finding| finding.kind != FindingKind::Price), "{:?}", report.findings);
    for text in [
        linerate_study::text(&report, &linerate_report::Style::default(), None),
        linerate_study::markdown(linerate_report::Language::English, &report, None),
        linerate_study::html(linerate_report::Language::English, &report, None),
    ] {
        assert!(text.contains("cost per Mbit/s") && text.contains("0.11"), "{text}");
    }
}

#[test]
fn conclusion_without_a_claim_is_an_error() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n\
        [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n[[conclusions]]\ntext = 'x'\n";
    let error = StudyFile::parse(Path::new("x"), toml).expect_err("no claim").to_string();
    assert!(error.contains("expected one of `ahead` with `of`"), "{error}");
}

/// Twelve findings are seven on the first page, and a line, a section or a folded part for the others.
#[test]
fn first_page_has_seven_findings() {
    let report = published("hirosaki-1998");
    let more = report.findings.len() - 7;
    assert!(more > 1, "{}", report.findings.len());
    let heading = format!("{more} further findings");
    let text = linerate_study::text(&report, &linerate_report::Style::default(), None);
    let (first, _) = text.split_once("The author's conclusions").expect("conclusions");
    assert_eq!(first.lines().filter(|line| line.starts_with("- ")).count(), 7, "{first}");
    assert!(text.contains(&heading), "{text}");
    let markdown = linerate_study::markdown(linerate_report::Language::English, &report, None);
    assert!(markdown.contains(&format!("## {heading}")), "{markdown}");
    let page = linerate_study::html(linerate_report::Language::English, &report, None);
    assert!(page.contains(&format!("<details><summary>{heading}")), "{heading}");
    let kinds: std::collections::BTreeSet<String> =
        report.findings[..7].iter().map(|finding| format!("{:?}", finding.kind)).collect();
    assert_eq!(kinds.len(), 7, "{kinds:?}");
}

/// A stated direction makes the trend test one-sided: half the p-value, and no finding the other way.
#[test]
fn stated_direction_makes_the_trend_one_sided() {
    let report = |expect: &str| {
        let toml = format!(
            "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'place'\n\
             [[factors]]\ncolumn = 'clock'\nunit = 'MHz'\n{expect}\n[[measures]]\ncolumn = 'pps'\nunit = 'pps'\n"
        );
        let mut csv = "place,clock,pps\n".to_owned();
        for place in ["a", "b"] {
            [1, 2, 3].iter().for_each(|clock| csv.push_str(&format!("{place},{clock},{clock}\n")));
        }
        reported("x", &toml, &csv)
    };
    // Two rising rows of three: 1 in 36, and twice that two-sided.
    let grows = |report: &StudyReport| report.findings.iter().any(|one| one.kind == FindingKind::Growth);
    assert!(!grows(&report("")));
    let stated = report("expect = 'grows'");
    assert!(grows(&stated), "{:?}", stated.findings);
    let test = format!("{:?}", stated.findings);
    assert!(test.contains("one-sided, as the study states the direction beforehand"), "{test}");
    assert!(!grows(&report("expect = 'falls'")));
}

/// The published studies: each conclusion of their authors is answered.
#[test]
fn every_published_conclusion_is_answered() {
    let verdicts = |name: &str| {
        let report = published(name);
        assert!(report.answers.iter().all(|answer| !answer.reason.is_empty()), "{:?}", report.answers);
        report.answers.iter().map(|answer| answer.verdict).collect::<Vec<_>>()
    };
    use Verdict::{Confirmed, Untestable};
    assert_eq!(verdicts("hirosaki-1998"), [Confirmed; 8]);
    assert_eq!(verdicts("l3switch-2008"), [Confirmed, Confirmed, Confirmed, Confirmed, Confirmed, Untestable]);
    assert_eq!(verdicts("filecopy-2003"), [Confirmed, Confirmed, Confirmed, Untestable]);
    assert_eq!(verdicts("kdd-1993"), [Confirmed, Confirmed, Confirmed, Confirmed, Confirmed, Confirmed, Untestable]);
    assert_eq!(verdicts("switches-2020"), [Confirmed, Untestable]);
}

/// Rows of the published data swapped: the conclusion that rests on them is contradicted, or nothing shows it.
#[test]
fn planted_rows_lose_the_authors_conclusions() {
    let changed = |name: &str, changes: &[(&str, &str)]| {
        let (toml, csv) = files(name);
        let changed = changes.iter().fold(csv, |csv, (from, to)| {
            assert!(csv.contains(from), "{from}");
            csv.replace(from, to)
        });
        reported(name, &toml, &changed).answers
    };
    let systems = [("Windows 95", "swap"), ("Windows NT 4.0", "Windows 95"), ("swap", "Windows NT 4.0")];
    assert_eq!(changed("hirosaki-1998", &systems)[2].verdict, Verdict::Contradicted);
    let slow = [("Windows 95,TCP,10BASE-T,75,8.65", "Windows 95,TCP,10BASE-T,75,4.65")];
    assert_eq!(changed("hirosaki-1998", &slow)[0].verdict, Verdict::Contradicted);
    let kinds = [("L3 switch", "swap"), ("PC router", "L3 switch"), ("swap", "PC router")];
    assert_eq!(changed("l3switch-2008", &kinds)[2].verdict, Verdict::Contradicted);
    let tied = [("server to server,1000BASE-T 32-bit PCI,52", "server to server,1000BASE-T 32-bit PCI,32")];
    assert_eq!(changed("filecopy-2003", &tied)[0].verdict, Verdict::Contradicted);
}

/// Switch and router at two links and four sizes with three repeats, as `studies/lab-devices.toml` measures them. The
/// faster link shows the difference of the devices; the slower one is full.
#[test]
fn measured_devices_rank_where_the_wire_is_not_full() {
    let toml = imported("lab-devices");
    let mut random = SmallRng::seed_from_u64(3);
    let mut csv = "link,device,message,throughput,loss\n".to_owned();
    for (link, line) in [("100Mbit/s", 95.0), ("1Gbit/s", 950.0)] {
        for (device, most) in [("switch", 1.0), ("router", 0.6)] {
            for message in [64.0, 512.0, 1024.0, 1472.0] {
                let host: f64 = 300.0 * message / 512.0 * most;
                for _ in 0..3 {
                    let rate = noisy(&mut random, host).min(line * 0.99 * message / (message + 66.0));
                    csv.push_str(&format!("{link},{device},{message},{rate:.3},0\n"));
                }
            }
        }
    }
    let report = reported("lab-devices", &toml, &csv);
    let text = rankings(&report).join(" ");
    assert!(text.contains("Switch has more throughput than router") || text.contains("switch has more"), "{text}");
    assert!(!text.contains("on 100Mbit/s in"), "{text}");
    assert_eq!(report.answers[0].verdict, Verdict::Confirmed, "{:?}", report.answers);
    assert!(report.findings.iter().all(|finding| !finding.text.contains("0 % of what it can carry")));
}

/// The file of a measured study of the tree, as that of an imported one: without what is run.
fn imported(name: &str) -> String {
    let path = format!("{}/../../studies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let toml = std::fs::read_to_string(path).expect("the study is in the tree");
    let mut kept = "data = 'x.csv'\n".to_owned();
    let mut section = String::new();
    for line in toml.lines() {
        if line.starts_with('[') {
            section = line.to_owned();
        }
        let is_run = ["[run]", "[[tests]]", "[[without]]"].contains(&section.as_str());
        if is_run || line.starts_with("test =") {
            continue;
        }
        let line = match line {
            "metric = \"throughput\"" => "unit = 'Mbit/s'\ncounts = 'payload'",
            line if line.starts_with("metric") => "unit = 'times'",
            line => line,
        };
        kept.push_str(&line.replace("words = ", "also = "));
        kept.push('\n');
        if line.starts_with("column") && section == "[[factors]]" {
            kept.push_str("optional = true\n");
        }
    }
    kept
}
