//! A record of thousands of results.

use crate::{over_time, recorded, sample};
use linerate_model::{Caveat, CaveatKind, Message, Record, Transport};
use linerate_report::Language;

/// A sweep's record with so many results in place of its own, no two alike.
pub(crate) fn record(results: usize) -> Record {
    let mut record = sample::udp_sweep();
    record.results = (0..results)
        .map(|number| {
            let share = 0.3 + 0.6 * number as f64 / results as f64;
            let mut result = sample::stream(&format!("tcp case {number}"), Transport::Tcp, 1448, share);
            result.caveats = vec![Caveat::new(
                CaveatKind::WideSpread,
                Message::untranslated(format!("the runs differ by {number} Mbit/s")),
            )];
            result
        })
        .collect();
    record
}

#[test]
fn ten_thousand_results_stay_below_fifteen_megabytes_and_none_is_left_out() {
    let page = linerate_report::html(Language::English, &record(10_000));
    assert!(page.len() < 15_000_000, "{} bytes", page.len());
    assert!(page.contains("The record holds 10,000 results"));
    // Each in the table and among the figures to download.
    for number in [0, 1, 4_999, 9_998, 9_999] {
        let name = format!("tcp case {number}");
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th>")), "{name} is missing in the table");
        assert!(page.contains(&format!(",{name},")), "{name} is missing in the figures");
    }
    assert_eq!(page.matches("<span class=\"name\">").count(), 300, "those told in words");
    // No line breaks between a number and its unit.
    assert_eq!(page.matches("The runs differ by 0\u{a0}Mbit/s").count(), 1);
    assert!(!page.contains("differ by 1\u{a0}Mbit/s"), "a doubt of many results is told once");
    assert!(!page.contains("<script id=\"record\""));
}

#[test]
fn up_to_three_hundred_results_are_told_whole() {
    let page = linerate_report::html(Language::English, &record(300));
    assert!(!page.contains("evenly taken") && page.contains("<script id=\"record\""));
    assert_eq!(page.matches("<span class=\"name\">").count(), 300);
    assert!(linerate_report::html(Language::English, &record(301)).contains("The record holds 301 results"));
}

/// One stream with three runs is a page of less than 300 KB beside the record that it carries.
#[test]
fn a_page_of_one_stream_is_small_beside_its_data() {
    let mut sampled = over_time::stream();
    for session in sampled.trials.iter_mut().flat_map(|attempt| &mut attempt.series) {
        let series = &mut session.series;
        // Two minutes in intervals of 100 ms, every one different.
        series.at_us = (0..1_200).map(|at| at * 100_000).collect();
        series.window = linerate_units::Nanos::from_secs(119);
        for track in &mut series.tracks {
            let first = track.values.clone();
            track.values = (0..1_200).map(|at: usize| first[at % 12] + (at * 7_919 % 1_000) as u64).collect();
        }
    }
    let recorded = ["stream-tcp", "stream-udp", "stream-proven", "stream-loaded-latency"].map(recorded::record);
    for record in recorded.iter().chain([&sampled]) {
        for lang in [Language::English, Language::Japanese] {
            let page = linerate_report::html(lang, record);
            let carried = page.split("<script id=\"record\"").nth(1).and_then(|rest| rest.split("</script>").next());
            let own = page.len() - carried.expect("the record").len();
            assert!(own < 300_000, "{}: {own} bytes", record.results[0].name);
        }
    }
}
