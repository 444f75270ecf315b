//! Records that are hard to show: names that reach far or turn the direction of writing, one value, none, and values far apart.

use crate::{over_time, sample};
use linerate_model::{Goal, HostName, Plan, Record, Transport};
use linerate_report::{Language, html};
use linerate_testsuite::page_outline::{outline, wide};
use linerate_units::BitRate;

/// Names of hosts and results that a page has to bear: markup, right-to-left text with an override, and 255 characters with no place
/// to break them.
fn names() -> [String; 3] {
    let markup = "<b onmouseover=alert(1)>\"'&amp;</b><script>alert(2)</script>";
    [markup.to_owned(), "\u{202e}\u{5de}\u{5d0}\u{5e8}\u{5d7} (server)\u{202c}".to_owned(), "x".repeat(255)]
}

/// A record of streams with charts over time, in which every host, interface and result has this name, with a number behind it.
fn named(name: &str) -> Record {
    let mut record = over_time::stream();
    let Goal::Sweep(mut plan) = record.plan.goal else { panic!("a sweep") };
    let of = |old: &str| format!("{name}{old}");
    for host in &mut record.hosts {
        host.name = HostName(of(&host.name.0));
        host.nics.iter_mut().for_each(|nic| nic.name = of("eth"));
    }
    let cells = plan.cells.iter_mut().chain(record.trials.iter_mut().map(|attempt| &mut attempt.trial));
    for cell in cells {
        cell.name = of("tcp");
        for path in cell.task_mut().paths_mut().expect("paths") {
            path.client = HostName(of("a"));
        }
    }
    record.results.iter_mut().for_each(|result| result.name = of("tcp"));
    let sessions = record.trials.iter_mut().flat_map(|attempt| &mut attempt.series);
    sessions.for_each(|session| session.host = HostName(of(&session.host.0)));
    record.caveats.iter_mut().for_each(|caveat| caveat.text = linerate_model::Message::untranslated(of("doubt")));
    record.plan = Plan { goal: Goal::Sweep(plan), ..record.plan };
    record
}

/// Every page of this file, by name.
pub(crate) fn pages() -> Vec<(String, String)> {
    let english = Language::English;
    let mut pages: Vec<(String, String)> = Vec::new();
    for (number, name) in names().iter().enumerate() {
        pages.push((format!("name {number}"), html(english, &named(name))));
        pages.push((format!("name {number}, Japanese"), html(Language::Japanese, &named(name))));
    }
    pages.push(("decades".to_owned(), html(english, &decades())));
    pages.push(("one size".to_owned(), html(english, &one())));
    pages.push(("one interval".to_owned(), html(english, &one_interval())));
    pages.push(("sizes over decades".to_owned(), html(english, &sizes_over_decades())));
    pages
}

/// Streams from 1 bit/s to 1 Gbit/s, a decade apart.
fn decades() -> Record {
    let stream = |power: i32| sample::stream(&format!("tcp {power}"), Transport::Tcp, 1448, 10f64.powi(power - 9));
    sample::record(&["a"], "b", (0..=9).map(stream).collect())
}

/// The same as one sweep of sizes.
fn sizes_over_decades() -> Record {
    let stream = |power: u32| {
        let bytes = 2u64.pow(power + 4);
        sample::stream(&format!("tcp {bytes}"), Transport::Tcp, bytes, 10f64.powi(power as i32 - 9))
    };
    sample::record(&["a"], "b", (0..=9).map(stream).collect())
}

fn one() -> Record {
    sample::record(&["a"], "b", vec![sample::stream("udp 64", Transport::Udp, 64, 0.3)])
}

/// A run of which one interval was sampled.
fn one_interval() -> Record {
    let mut record = over_time::stream();
    record.trials.truncate(1);
    for session in &mut record.trials[0].series {
        session.series.from_us = 0;
        session.series.at_us = vec![100_000];
        session.series.tracks.iter_mut().for_each(|track| track.values = vec![track.values[5]]);
    }
    record
}

#[test]
fn names_are_text_and_do_not_turn_the_writing() {
    for (name, page) in pages() {
        assert_eq!(page.matches("<script").count(), 2, "{name}: our script and the record");
        assert!(!page.contains("<b onmouseover"), "{name}");
        // The record itself is data, in which any name may be; what is shown before it has no such character.
        let shown = page.split("<script id=\"record\"").next().expect("the page");
        assert!(!shown.contains(['\u{202e}', '\u{202c}']), "{name}");
    }
}

/// The widths of the bars of a page's first chart of bars.
fn bars(page: &str) -> Vec<f64> {
    let page = wide(page);
    let mut charts = page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next());
    let chart = charts.find(|chart| chart.contains("class=\"bar\"")).expect("bars");
    let widths = chart.split("class=\"bar\"").skip(1).map(|bar| {
        let width = bar.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width");
        width.parse().expect("a number")
    });
    widths.collect()
}

/// On an axis from zero all but two of these bars would be as long as nothing.
#[test]
fn values_over_nine_decades_have_bars_of_different_lengths() {
    let widths = bars(&html(Language::English, &decades()));
    assert_eq!(widths.len(), 10);
    assert!(widths.windows(2).all(|pair| pair[1] > pair[0] + 20.0), "{widths:?}");
    // Those of one decade begin at zero.
    let near = [0.2, 0.4].map(|share| sample::stream(&format!("tcp {share}"), Transport::Tcp, 1448, share));
    let widths = bars(&html(Language::English, &sample::record(&["a"], "b", near.to_vec())));
    assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
}

#[test]
fn one_value_is_drawn_and_none_is_told_in_words() {
    assert!(html(Language::English, &one()).contains("<figure>"));
    let page = html(Language::English, &one_interval());
    assert!(page.contains("tcp: payload at the receiver over time") && !page.contains("NaN"), "{page}");
    let nothing = Record { results: Vec::new(), trials: Vec::new(), ..one() };
    let page = html(Language::English, &nothing);
    assert!(page.contains("Nothing was measured.") && !page.contains("<figure>"), "{}", outline(&page));
}

/// Nothing that a record may hold makes a number of a drawing that is none.
#[test]
fn no_drawing_has_a_number_that_is_none() {
    let mut slow = over_time::stream();
    sample::flow(&mut slow.results[0]).limit.as_mut().expect("a limit").payload_bps = BitRate::per_second(0);
    for (name, page) in pages().into_iter().chain([("slow".to_owned(), html(Language::English, &slow))]) {
        let drawings = page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next());
        for drawing in drawings {
            assert!(!drawing.contains("\"NaN") && !drawing.contains("\"inf") && !drawing.contains("\"-inf"), "{name}");
        }
    }
}
