//! Records in lines: a line for each result, and what limited them.

use crate::{copy, device, ladder, nfs, sample};
use linerate_model::{Confidence, LayerName, Limit, Outcome, Record};
use linerate_report::overview::{head, limits, lines, list};
use linerate_report::{Language, Style};
use unicode_width::UnicodeWidthStr as _;

/// The cells of each line of a record on a terminal of 80 columns.
fn shown(record: &Record) -> Vec<Vec<String>> {
    let cells = |line: String| {
        line.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    lines(Language::English, record).iter().map(|line| cells(line.text(&Style::default()))).collect()
}

#[test]
fn a_line_has_the_figure_the_spread_the_share_and_the_limit() {
    let mut record = ladder::record();
    (record.results[0].verdict.limit, record.results[0].verdict.confidence) = (Limit::Wire, Confidence::High);
    let all = shown(&record);
    assert_eq!(all[0], ["udp 1472", "957 Mbit/s", "1.0 %", "100.0 %", "wire (high)"]);
    assert_eq!(all[1][..2], ["tcp", "471 Mbit/s"]);
    assert_eq!(shown(&sample::transactions())[0][3], "–", "transactions have no share of a link");
}

#[test]
fn a_layer_that_is_no_result_has_a_line_if_it_was_measured() {
    let mut record = ladder::record();
    let names = |record: &Record| {
        lines(Language::English, record).iter().map(|line| line.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&record), ["udp 1472", "tcp"], "the line is calculated, and raw frames are missing");
    let Outcome::Ladder(found) = &mut record.outcome else { panic!("a ladder") };
    let measured = found.layers[2].payload_bps.clone();
    let frames = found.layers.iter_mut().find(|layer| layer.name == LayerName::Frames).expect("raw frames");
    (frames.payload_bps, frames.missing) = (measured, None);
    assert_eq!(names(&record), ["udp 1472", "tcp", "raw frames"]);
    assert_eq!(lines(Language::English, &record)[2].runs(), 3);
}

#[test]
fn a_device_test_has_lines_of_throughput_and_latency() {
    let all = shown(&device::record());
    let of = |name: &str| all.iter().find(|line| line[0] == name).cloned().unwrap_or_else(|| panic!("{name}: {all:?}"));
    assert!(of("64-byte frames")[1].ends_with(" /s"), "{all:?}");
    assert!(of("64-byte p50")[1].ends_with(" us"), "{all:?}");
}

#[test]
fn what_limited_the_results_is_counted_and_the_widest_gap_told() {
    let text = limits(&[ladder::record()], &Style::default());
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "What limited the results",
        "Limits of the 2 results: cannot tell (2).",
        "The widest gap is between UDP (957 Mbit/s) and TCP (471 Mbit/s), a factor of 2.03.",
        "Layer raw frames was not measured: there is no port.",
    ] {
        assert!(flowing.contains(sentence), "{sentence}: {text}");
    }
    let nothing = Record { results: Vec::new(), caveats: Vec::new(), ..sample::udp_sweep() };
    assert_eq!(limits(&[nothing], &Style::default()), "");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let records = sample::all().into_iter().map(|(_, record)| record);
    let records: Vec<Record> =
        records.chain([ladder::record(), device::record(), nfs::record(), copy::record()]).collect();
    let next = [("linerate results".to_owned(), "every run that is kept, whatever measured it".to_owned())];
    for language in Language::ALL {
        for width in [50, 60, 72, 80, 100] {
            let style = Style { width, language, ..Style::default() };
            for record in &records {
                let mut text = vec![head("a ---- b", &style), limits(std::slice::from_ref(record), &style)];
                text.push(list("Where to go on", &next, &style));
                text.extend(lines(language, record).iter().map(|line| line.text(&style)));
                for line in text.iter().flat_map(|text| text.lines()) {
                    assert!(line.width() <= width, "{width}: {line}");
                }
            }
        }
    }
}
