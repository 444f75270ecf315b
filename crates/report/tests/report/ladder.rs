//! What the reports of a ladder show: its layers from the top down, the widest gap in words, the chart.

use crate::sample;
use linerate_model::{
    Gap, Ladder, LadderLayer, LayerLatency, LayerName, Measurement, Outcome, Record, Summary, Transport,
};
use linerate_report::Language;
use linerate_report::{Style, csv, html, text};
use linerate_testsuite::page_outline::wide;
use linerate_units::BitRate;

/// Payload of UDP and of TCP in full frames of a gigabit line, bit/s.
const UDP: f64 = 957_087_126.0;
const TCP: f64 = 941_482_444.0;

fn layer(name: LayerName, payload_bps: Summary, limit: f64, below: Option<LayerName>) -> LadderLayer {
    LadderLayer {
        name,
        below,
        // Both layers that others stand on fill the line.
        share_of_layer_below: below.map(|_| payload_bps.median / UDP),
        share_of_line: Some(payload_bps.median / UDP),
        payload_bps: Some(payload_bps),
        firmness: linerate_model::Firmness::Firm,
        limit_bps: Some(BitRate::per_second(limit as u64)),
        latency_ns: None,
        verdict: None,
        results: vec![],
        missing: None,
    }
}

fn drawn_from(result: &Measurement, transactions: &str, p50: u64, layer: LadderLayer) -> LadderLayer {
    LadderLayer {
        verdict: Some(result.verdict.clone()),
        latency_ns: Some(LayerLatency { p50, p99: p50 * 3, count: 9_000 }),
        results: vec![result.name.clone(), transactions.to_owned()],
        ..layer
    }
}

/// UDP fills the line, and TCP gets half of what its header leaves.
pub(crate) fn record() -> Record {
    let udp = sample::stream("udp 1472", Transport::Udp, 1472, 1.0);
    let tcp = sample::stream("tcp", Transport::Tcp, 1 << 20, 0.5);
    let payload = |result: &Measurement| result.main.clone();
    let ground = Summary { median: UDP, low: UDP, high: UDP, runs: 0, values: vec![], interval: None };
    let frames = LadderLayer {
        payload_bps: None,
        share_of_line: None,
        limit_bps: None,
        missing: Some(linerate_model::Message::untranslated("there is no port")),
        ..layer(LayerName::Frames, ground.clone(), UDP, None)
    };
    let layers = vec![
        layer(LayerName::Limit, ground, UDP, None),
        frames,
        drawn_from(&udp, "udp 1/1", 19_500, layer(LayerName::Udp, payload(&udp), UDP, Some(LayerName::Limit))),
        drawn_from(&tcp, "tcp 1/1", 27_000, layer(LayerName::Tcp, payload(&tcp), TCP, Some(LayerName::Udp))),
    ];
    let gap = Gap {
        above: LayerName::Tcp,
        below: LayerName::Udp,
        factor: UDP / TCP * 2.0,
        headers: UDP / TCP,
        rest: 2.0,
        advice: Some(linerate_model::Message::untranslated("try --flows 4")),
    };
    let mut record = sample::record(&["a"], "b", vec![udp, tcp]);
    record.outcome = Outcome::Ladder(Ladder {
        line_bps: Some(sample::GIGABIT),
        mtu: 1500,
        unit: "payload bit/s".to_owned(),
        layers,
        widest_gap: Some(gap),
    });
    record
}

fn ladder_of(record: &mut Record) -> &mut Ladder {
    match &mut record.outcome {
        Outcome::Ladder(ladder) => ladder,
        other => panic!("no ladder: {other:?}"),
    }
}

fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn where_no_gap_stands_out_it_says_so() {
    let mut record = record();
    ladder_of(&mut record).widest_gap = None;
    assert!(flowing(&text(&record, &Style::default())).contains("No gap between two layers is wider than"));
    let only = &mut ladder_of(&mut record).layers;
    only.retain(|layer| layer.name == LayerName::Udp);
    only[0].below = None;
    assert!(flowing(&text(&record, &Style::default())).contains("Fewer than two layers were measured"));
}

#[test]
fn the_layers_stand_from_the_top_down_with_a_bar_each() {
    for (style, block) in [(Style::default(), '\u{2588}'), (Style { unicode: false, ..Style::default() }, '#')] {
        let shown = text(&record(), &style);
        let line = |name: &str| {
            let mut lines = shown.lines().enumerate().filter(|(_, line)| line.starts_with(name));
            lines.next().unwrap_or_else(|| panic!("no line of {name}: {shown}"))
        };
        let places = ["TCP ", "UDP ", "raw frames ", "line "].map(|name| line(name).0);
        assert!(places.is_sorted(), "{shown}");
        let bar = |name: &str| line(name).1.chars().filter(|c| *c == block).count();
        assert_eq!([bar("TCP "), bar("UDP "), bar("raw frames "), bar("line ")], [4, 8, 0, 8], "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}

#[test]
fn the_widest_gap_has_a_colour_of_its_own() {
    assert_eq!(wide(&html(Language::English, &record())).matches("<g class=\"widest\">").count(), 1);
}

/// The chart is of losses: 50.8 % at TCP, of which its larger header takes 1.6 %, and none at UDP.
#[test]
fn each_layer_is_drawn_by_what_it_loses() {
    let page = html(Language::English, &record());
    let chart = page.split("<h3>Payload lost by each layer</h3>").nth(1).expect("the chart");
    let chart = chart.split("</svg>").next().expect("its end");
    let figures: Vec<&str> =
        chart.split("<text class=\"figure\"").skip(1).filter_map(|rest| rest.split(['>', '<']).nth(1)).collect();
    assert_eq!(figures, ["50.8 %", "0 %"], "{chart}");
    assert!(chart.contains("TCP: its headers alone take 1.6 % of the payload of UDP"), "{chart}");
    // The axis begins at nothing lost and ends past what is lost.
    let ticks: Vec<&str> =
        chart.split("<text class=\"tick\"").skip(1).filter_map(|rest| rest.split(['>', '<']).nth(1)).collect();
    assert!(ticks.first() == Some(&"0") && ticks.last() == Some(&"60"), "{ticks:?}");
}

#[test]
fn csv_has_every_layer_once() {
    let text = csv(&record());
    let mut lines = text.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    let column = |name: &str| head.iter().position(|known| *known == name).expect(name);
    let rows: Vec<_> = lines.collect();
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    let of = |layer: &str| {
        rows.iter().find(|row| row[column("layer")] == layer).unwrap_or_else(|| panic!("no {layer}: {text}"))
    };
    assert_eq!(of("limit")[column("received_payload_bps_median")], "957087126.0");
    assert_eq!((of("limit")[column("name")], of("udp")[column("name")]), ("line", "udp 1472"));
    let share: f64 = of("tcp")[column("layer_share_of_layer_below")].parse().expect("a number");
    assert!((share - TCP / UDP / 2.0).abs() < 1e-6, "{share}");
    assert_eq!(rows.len(), 3, "what was not measured has no row: {text}");
}
