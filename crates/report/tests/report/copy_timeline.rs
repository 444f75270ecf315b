//! The timeline of the attempts at copies.

use crate::copy;
use linerate_model::{
    AttemptSpan, Caveat, CaveatKind, CopyCounts, CopyPart, CopyParts, CopySide, Counts, Message, Record, Standing,
    Task, TrialResult,
};
use linerate_report::{Block, Chart, Language, document, html, markdown};
use linerate_testsuite::page_outline::wide;
use linerate_units::Nanos;

/// When the record began, nanoseconds since 1970.
const BEGAN: u64 = 1_795_600_000_000_000_000;
const MS: u64 = 1_000_000;

/// An attempt under way between these milliseconds after the record's start.
fn attempt(record: &Record, standing: Standing, (from, to): (u64, u64)) -> TrialResult {
    let span = AttemptSpan { began_unix_ns: BEGAN + from * MS, ended_unix_ns: BEGAN + to * MS };
    let trial = record.plan.cells()[0].clone();
    TrialResult { standing, span: Some(span), ..TrialResult::failed(trial, 0, "") }
}

/// An attempt whose copies began that long after it did, and took so long to each destination; all times in milliseconds. A destination
/// that took no time was lost.
fn copied(record: &Record, standing: Standing, span: (u64, u64), prepared: u64, took: &[u64]) -> TrialResult {
    let part = |host: &str, sides: Vec<CopySide>| CopyPart {
        host: host.into(),
        counted: CopyCounts { sides, faults: Vec::new(), faults_total: 0 },
    };
    let side = |took: u64| CopySide {
        time: Nanos::from_millis(took),
        bytes: if took > 0 { 8_000_000 } else { 0 },
        complete: took > 0,
        ..CopySide::default()
    };
    let sides = || took.iter().map(|took| side(*took));
    let hosts = ["b", "=c"];
    let parts = CopyParts {
        sources: vec![part("a", sides().collect())],
        destinations: hosts.iter().zip(sides()).map(|(host, side)| part(host, vec![side])).collect(),
        servers: Vec::new(),
    };
    let result = attempt(record, standing, span);
    TrialResult { started_unix_ns: BEGAN + (span.0 + prepared) * MS, counts: vec![Counts::Copy(parts)], ..result }
}

fn spoilt() -> Standing {
    let text = Message::untranslated("the hypervisor took 7 % of host a's CPU time");
    Standing::Spoilt { reason: Caveat::new(CaveatKind::CpuStolen, text) }
}

/// Copies to b and c: the second attempt was spoilt, the fourth failed, and the last lost b.
pub(crate) fn record() -> Record {
    let record = Record { started_unix_ns: BEGAN, ..copy::record() };
    let failed = Standing::Failed { reason: "agent b: no answer within 10 s".to_owned() };
    let trials = vec![
        copied(&record, Standing::Counted, (10, 2_400), 200, &[1_000, 2_000]),
        copied(&record, spoilt(), (2_400, 4_700), 100, &[1_100, 2_100]),
        copied(&record, Standing::Counted, (4_700, 6_700), 100, &[1_000, 1_600]),
        attempt(&record, failed, (7_000, 8_500)),
        copied(&record, Standing::Counted, (8_500, 10_500), 100, &[0, 1_700]),
    ];
    Record { trials, ..record }
}

/// The timeline of a record.
fn timeline(lang: Language, record: &Record) -> Option<Chart> {
    let sections = document(lang, std::slice::from_ref(record)).sections;
    let mut blocks =
        sections.into_iter().filter(|section| section.id == "over-time").flat_map(|section| section.blocks);
    blocks.find_map(|block| match block {
        Block::Chart(chart) if chart.legend.iter().any(|(class, _)| *class == "around") => Some(*chart),
        _ => None,
    })
}

/// The rows of the timeline's table, cells joined.
fn rows(record: &Record) -> Vec<String> {
    let chart = timeline(Language::English, record).expect("a timeline");
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".to_owned());
    chart.table.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" | ")).collect()
}

/// The timeline as a wide page has it.
fn drawn(lang: Language, record: &Record) -> String {
    let page = wide(&html(lang, record));
    let mut drawings = page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next());
    drawings.find(|drawing| drawing.contains("class=\"around\"")).expect("a timeline").to_owned()
}

#[test]
fn each_attempt_says_when_it_ran_and_which_destination_finished_last() {
    let spoilt = "run 2, attempt 1, spoilt: the hypervisor took 7 % of host a's CPU time";
    let expected = [
        "run 1 | b | 0.210 s | 1.210 s | 1 s | 8.00 MB/s | - | -".to_owned(),
        "run 1 | =c | 0.210 s | 2.210 s | 2 s | 4.00 MB/s | - | slowest run and last to finish".to_owned(),
        format!("{spoilt} | b | 2.500 s | 3.600 s | 1.1 s | 7.27 MB/s | 290 ms | -"),
        format!("{spoilt} | =c | 2.500 s | 4.600 s | 2.1 s | 3.81 MB/s | 290 ms | last to finish"),
        "run 2 | b | 4.800 s | 5.800 s | 1 s | 8.00 MB/s | 200 ms | -".to_owned(),
        "run 2 | =c | 4.800 s | 6.400 s | 1.6 s | 5.00 MB/s | 200 ms | fastest run and last to finish".to_owned(),
        "run 3, failed: agent b: no answer within 10 s | - | 7.000 s | 8.500 s | 1.5 s | - | 600 ms | -".to_owned(),
        "run 3 | b | 8.600 s | - | - | - | 100 ms | incomplete".to_owned(),
        "run 3 | =c | 8.600 s | 10.300 s | 1.7 s | 4.71 MB/s | 100 ms | last to finish".to_owned(),
    ];
    assert_eq!(rows(&record()), expected);
}

/// The failed attempt is in both rows; the lost destination is in its own. What a colour says is said by a shape too.
#[test]
fn what_does_not_count_is_told_by_more_than_colour() {
    let drawing = drawn(Language::English, &record());
    assert_eq!(drawing.matches("class=\"bar\"").count(), 10, "{drawing}");
    assert_eq!(drawing.matches("class=\"cross\"").count(), 3, "{drawing}");
    assert_eq!(drawing.matches("class=\"spoilt\"").count(), 2, "{drawing}");
    assert_eq!((drawing.matches("class=\"end\"").count(), drawing.matches("class=\"sign\"").count()), (4, 2));
    for said in [
        "b, run 1: 1 s at 8.00 MB/s, from 0.210 s to 1.210 s",
        "=c, run 2: 1.6 s at 5.00 MB/s, from 4.800 s to 6.400 s; 200 ms without a copy before it (fastest run and last to finish)",
        "b, run 3: began at 8.600 s, end unknown; 100 ms without a copy before it (incomplete)",
        "b, run 3, failed: agent b: no answer within 10 s: under way for 1.5 s, from 7.000 s to 8.500 s",
    ] {
        assert!(drawing.contains(said), "{said}: {drawing}");
    }
    let chart = timeline(Language::English, &record()).expect("a timeline");
    let legend: Vec<&str> = chart.legend.iter().map(|(_, meaning)| meaning.as_str()).collect();
    assert_eq!(legend.len(), 6, "{legend:?}");
    assert_eq!(legend[5], "\u{2502} last to finish in its run: most often =c, in 2 of 2");
    let tie = copied(&record(), Standing::Counted, (11_000, 14_000), 100, &[2_000, 1_000]);
    let trials = record().trials.into_iter().take(1).chain([tie]).collect();
    let chart = timeline(Language::English, &Record { trials, ..record() }).expect("a timeline");
    assert!(
        chart.legend.iter().any(|(_, meaning)| meaning == "\u{2502} last to finish in its run"),
        "a tie: {:?}",
        chart.legend
    );
    let all_well = Record { trials: record().trials.into_iter().step_by(2).take(2).collect(), ..record() };
    let chart = timeline(Language::English, &all_well).expect("a timeline");
    assert!(chart.legend.iter().all(|(class, _)| !["failed", "spoilt"].contains(class)), "{:?}", chart.legend);
}

#[test]
fn one_attempt_has_no_timeline_nor_have_attempts_that_kept_no_times() {
    let one = Record { trials: record().trials.into_iter().take(1).collect(), ..record() };
    assert!(timeline(Language::English, &one).is_none());
    let mut without = record();
    without.trials.iter_mut().for_each(|attempt| attempt.span = None);
    assert!(timeline(Language::English, &without).is_none());
}

/// A copying host's clock that is an hour ahead moves no bar out of its attempt.
#[test]
fn a_clock_that_is_wrong_is_believed_as_far_as_it_can_be_right() {
    let mut record = record();
    let first = record.trials.first_mut().expect("an attempt");
    first.started_unix_ns += 3_600_000 * MS;
    assert_eq!(rows(&record)[0], "run 1 | b | 0.400 s | 1.400 s | 1 s | 8.00 MB/s | - | -");
    let first = record.trials.first_mut().expect("an attempt");
    first.started_unix_ns = 0;
    assert_eq!(rows(&record)[0], "run 1 | b | 0.010 s | 1.010 s | 1 s | 8.00 MB/s | - | -");
}

#[test]
fn fifty_attempts_are_one_row_and_more_than_a_hundred_are_cut() {
    let mut record = record();
    let attempts = |many: u64| -> Vec<TrialResult> {
        let run = |at: u64| copied(&record, Standing::Counted, (at * 1_000, at * 1_000 + 900), 50, &[700 + at]);
        (0..many).map(run).collect()
    };
    let (fifty, many) = (attempts(50), attempts(120));
    record.trials = fifty;
    let drawing = drawn(Language::English, &record);
    assert_eq!((drawing.matches("class=\"bar\"").count(), drawing.matches("class=\"sign\"").count()), (50, 2));
    assert_eq!(drawing.matches("class=\"end\"").count(), 0, "one destination holds up no other");
    record.trials = many;
    assert_eq!(rows(&record).len(), 100);
    assert!(markdown(Language::English, &record).contains("The timeline shows the first 100 of 120 attempts."));
}

/// An hour between attempts of seconds would leave no bar to be seen.
#[test]
fn a_run_that_was_resumed_much_later_has_a_chart_for_each_stretch() {
    let mut record = record();
    record.trials.truncate(3);
    let last = record.trials.last_mut().expect("an attempt");
    let later = 3_600_000 * MS;
    last.started_unix_ns += later;
    let span = last.span.as_mut().expect("its times");
    (span.began_unix_ns, span.ended_unix_ns) = (span.began_unix_ns + later, span.ended_unix_ns + later);
    let page = html(Language::English, &record);
    assert!(page.contains("When each copy ran, part 1 of 2") && page.contains("When each copy ran, part 2 of 2"));
    assert!(page.contains("=c, run 2: 1.6 s at 5.00 MB/s, from 3604.800 s to 3606.400 s"), "{page}");
}

/// Several trials have a group of rows each, and the first column of the table names the trial.
#[test]
fn trials_of_other_names_are_apart() {
    let mut record = record();
    record.trials.truncate(3);
    record.trials[2].trial.name = "copy, unchanged".to_owned();
    let drawing = drawn(Language::English, &record);
    assert!(drawing.contains(">copy</text>") && drawing.contains(">copy, unchanged</text>"), "{drawing}");
    assert!(rows(&record)[4].starts_with("copy, unchanged, run 1 | b | "), "{:?}", rows(&record));
}

#[test]
fn names_of_hosts_are_escaped() {
    let mut record = record();
    for attempt in &mut record.trials {
        let Task::Copy(task) = attempt.trial.task_mut() else { panic!("a copy") };
        task.destinations[0] = "<b>".into();
        if let Some(Counts::Copy(parts)) = attempt.counts.first_mut() {
            parts.destinations[0].host = "<b>".into();
        }
    }
    let drawing = drawn(Language::English, &record);
    assert!(drawing.contains("&lt;b&gt;, run 1: ") && !drawing.contains("<b>"), "{drawing}");
}

#[test]
fn it_is_told_in_japanese() {
    let drawing = drawn(Language::Japanese, &record());
    assert!(
        drawing.contains("=c、2 回目: 1.6 s、5.00 MB/s、4.800 s から 6.400 s まで、その前にコピーのない時間 200 ms"),
        "{drawing}"
    );
    assert!(drawing.contains("最速の回") && drawing.contains("（英語）"), "{drawing}");
}
