//! What the reports of device tests show: the charts and tables of RFC 2544 section 26.

use crate::sample;
use linerate_model::{
    BackToBack, BufferTime, BurstLengths, Confidence, DeviceFound, DeviceLoad, DevicePlan, DeviceTest, Firmness,
    FrameHeaders, FrameLatency, FramePayload, FrameTesterLimit, Goal, Latency, Limit, LossCurve, LossPoint, Mac,
    Message, Outcome, Plan, PortPair, Record, RecordId, Throughput, Verdict,
};
use linerate_report::{Language, Style, csv, html, markdown};
use linerate_testsuite::page_outline::wide;
use linerate_units::{FrameSize, Nanos, Ratio};

const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// What the device forwards, and the tester reaches, frames a second.
const DEVICE: f64 = 200_000.0;
const TESTER: f64 = 900_000.0;

fn line(bytes: u32) -> f64 {
    FrameSize::with_fcs(bytes).expect("a size").line_rate(sample::GIGABIT).get() as f64
}

fn plan() -> DevicePlan {
    let headers = FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: vec![],
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    };
    DevicePlan {
        test: DeviceTest::Throughput,
        host: "tester".into(),
        ports: vec!["p0".into(), "p1".into()],
        pattern: linerate_model::PortPattern::Pairs,
        directions: vec![PortPair { from: 0, to: 1, copies_to: Vec::new(), headers }],
        sizes: SIZES.map(|size| FrameSize::with_fcs(size).expect("a size")).to_vec(),
        line: Some(sample::GIGABIT),
        search_time: Nanos::from_millis(500),
        final_time: Nanos::from_secs(10),
        settle: Nanos::from_millis(100),
        loss: Ratio::new(0, 1),
        width: Ratio::new(1, 500),
        engine: Default::default(),
    }
}

fn throughput(bytes: u32) -> Throughput {
    let frames_per_s = DEVICE.min(line(bytes));
    let reached = TESTER.min(line(bytes));
    let limit = if frames_per_s < DEVICE { Limit::Wire } else { Limit::Device };
    Throughput {
        frame_bytes: bytes,
        goal: None,
        frames_per_s,
        firmness: Firmness::Firm,
        bits_per_s: frames_per_s * f64::from(bytes) * 8.0,
        line_share: Some(frames_per_s / line(bytes)),
        lost_at_frames_per_s: Some(frames_per_s * 1.002),
        directions: vec![],
        tester_limit: Some(FrameTesterLimit {
            interleaved: false,
            record: RecordId("20261121T092900-77aa".to_owned()),
            frames_per_s: reached,
            share: frames_per_s / reached,
        }),
        trials: 9,
        trial_time: Nanos::from_secs(10),
        device_load: Some(DeviceLoad {
            source: "snmp UCD raw counters".to_owned(),
            cpu: Some(frames_per_s / DEVICE * 0.48),
            busiest_cpu: Some(frames_per_s / DEVICE * 0.97),
            softirq: Some(frames_per_s / DEVICE * 0.4),
            ..DeviceLoad::default()
        }),
        limit,
        verdict: Verdict::new(limit, Confidence::High, vec![]),
        caveats: vec![],
    }
}

fn latency(bytes: u32) -> FrameLatency {
    let p50 = 20_000 + u64::from(bytes) * 10;
    let latency_ns = Latency {
        p50,
        p90: p50 * 11 / 10,
        p99: p50 * 2,
        p999: p50 * 4,
        max: p50 * 31,
        min: p50 / 2,
        mean: p50 as f64,
        count: 2_000_000,
        distribution: vec![],
    };
    FrameLatency {
        frame_bytes: bytes,
        frames_per_s: DEVICE,
        firmness: Firmness::Firm,
        lost: 0,
        latency_ns: Some(latency_ns),
        device_load: None,
        verdict: None,
        caveats: vec![],
    }
}

fn loss(bytes: u32) -> LossCurve {
    let point = |percent: u32| {
        let offered = line(bytes) * f64::from(percent) / 100.0;
        let sent = (offered * 10.0) as u64;
        let received = (offered.min(DEVICE) * 10.0) as u64;
        LossPoint {
            intended_frames_per_s: offered,
            offered_frames_per_s: offered,
            firmness: Firmness::Firm,
            sent,
            received,
            loss_ratio: (sent - received) as f64 / sent as f64,
            device_load: None,
        }
    };
    LossCurve {
        frame_bytes: bytes,
        points: [100, 80, 60, 40, 20, 10].map(point).to_vec(),
        verdict: None,
        caveats: vec![],
    }
}

/// 100 frames of buffer: it fills as fast as the line brings more than the device forwards.
fn burst(bytes: u32) -> BackToBack {
    let frames = 100.0 / (1.0 - DEVICE.min(line(bytes) * 0.9) / line(bytes));
    let implied_ns = frames / line(bytes) * 1e9;
    let lengths = BurstLengths { mean: frames, min: 100, max: 110, deviation: 1.0, values: vec![] };
    BackToBack {
        frame_bytes: bytes,
        throughput_frames_per_s: DEVICE,
        burst_frames_per_s: Some(line(bytes)),
        line_frames_per_s: Some(line(bytes)),
        frames: Some(lengths),
        firmness: Firmness::Firm,
        buffer: Some(BufferTime { implied_ns, corrected_ns: 100.0 / line(bytes) * 1e9, frames: 100.0 }),
        verdict: None,
        caveats: vec![],
    }
}

/// A device that forwards 200,000 frames/s at a gigabit line.
pub(crate) fn record() -> Record {
    let mut record = sample::record(&["tester"], "device", vec![]);
    record.plan = Plan::of(Goal::Device(plan()));
    let outcome = DeviceFound {
        throughput: SIZES.map(throughput).to_vec(),
        latency: SIZES.map(latency).to_vec(),
        loss: SIZES.map(loss).to_vec(),
        burst: SIZES.map(burst).to_vec(),
        ..DeviceFound::default()
    };
    record.outcome = Outcome::Device(Box::new(outcome));
    record
}

/// The same with a tester that is held up at 64 and 512 bytes: it sent 60 and 59 % of what was due. At 256 bytes the result is
/// as high as it can send.
pub(crate) fn not_firm() -> Record {
    let mut record = record();
    let Outcome::Device(found) = &mut record.outcome else { panic!("a device's") };
    found.throughput.retain(|cell| matches!(cell.frame_bytes, 64 | 256 | 512 | 1518));
    found.burst.clear();
    for cell in &mut found.throughput {
        let (offered, evidence) = match cell.frame_bytes {
            64 => {
                (Some(0.6), "at 202,364 frames/s the tester sent 121,418 of the 202,364 frames due, 60.0 % of the rate")
            }
            512 => (
                Some(0.59),
                "at 200,000 frames/s the tester sent 118,000 of the 200,000 frames due, 59.0 % of the rate",
            ),
            256 => (
                None,
                "200,000 frames/s are 99.0 % of the tester's limit of 202,000 frames/s: the device may carry more",
            ),
            _ => continue,
        };
        cell.firmness = Firmness::NotFirm { offered };
        cell.frames_per_s *= offered.unwrap_or(1.0);
        cell.bits_per_s *= offered.unwrap_or(1.0);
        cell.line_share = cell.line_share.map(|share| share * offered.unwrap_or(1.0));
        cell.lost_at_frames_per_s = None;
        if let Some(limit) = cell.tester_limit.as_mut().filter(|_| offered.is_none()) {
            (limit.frames_per_s, limit.share) = (202_000.0, 0.99);
        }
        cell.limit = Limit::Tester;
        cell.verdict = Verdict::new(Limit::Tester, Confidence::Medium, vec![Message::untranslated(evidence)]);
    }
    found.latency.truncate(2);
    found.latency[0].firmness = Firmness::NotFirm { offered: Some(0.9) };
    found.loss.truncate(1);
    found.loss[0].points[0].firmness = Firmness::NotFirm { offered: Some(0.7) };
    record
}

/// The labels of each chart's points, by the chart's title.
fn charts(page: &str) -> Vec<(String, Vec<String>)> {
    let between = |text: &str, from: &str, to: &str| {
        text.split_once(from)
            .and_then(|(_, rest)| rest.split_once(to))
            .map_or(String::new(), |(inside, _)| inside.into())
    };
    let chart = |figure: &str| {
        let labels = figure.split("data-label=\"").skip(1).map(|rest| between(&format!("<{rest}"), "<", "\""));
        (between(figure, "<h3>", "</h3>"), labels.collect())
    };
    let figures = page.split("<figure>").skip(1).map(|rest| rest.split("</figure>").next().unwrap_or_default());
    // The picture of the path is no chart of figures.
    figures.filter(|figure| !figure.contains("class=\"path-picture\"")).map(chart).collect()
}

#[test]
fn the_load_of_the_device_stands_in_every_table_at_80_columns() {
    let load = |cpu| Some(DeviceLoad { cpu: Some(cpu), ..DeviceLoad::default() });
    let mut record = record();
    let Outcome::Device(outcome) = &mut record.outcome else { panic!("a device's") };
    outcome.latency.iter_mut().for_each(|cell| cell.device_load = load(0.31));
    outcome.loss.iter_mut().flat_map(|curve| &mut curve.points).for_each(|point| point.device_load = load(0.83));
    let shown = linerate_report::text(&record, &Style { width: 80, ..Style::default() });
    assert_eq!(shown.matches("device CPU").count(), 3, "{shown}");
    for share in ["97.0 %", "31.0 %", "83.0 %"] {
        assert!(shown.contains(share), "{share}: {shown}");
    }
}

#[test]
fn a_record_without_a_line_or_a_load_has_what_is_left() {
    let mut record = record();
    record.plan = Plan::of(Goal::Device(DevicePlan { line: None, ..plan() }));
    let Outcome::Device(outcome) = &mut record.outcome else { panic!("a device's") };
    for cell in &mut outcome.throughput {
        (cell.device_load, cell.tester_limit, cell.line_share) = (None, None, None);
    }
    let drawn = charts(&wide(&html(Language::English, &record)));
    assert_eq!(drawn.iter().map(|(_, labels)| labels.len()).collect::<Vec<_>>(), [7, 42, 21, 7]);
    assert!(!markdown(Language::English, &record).contains("device CPU"));
}

/// One chart has the share of the line by size, with the tester's own limit and the rate at which frames were lost.
#[test]
fn throughput_is_one_chart_of_shares_of_the_line() {
    let page = html(Language::English, &record());
    let drawn = charts(&page);
    let shares: Vec<_> = drawn.iter().filter(|(title, _)| title.contains("26.1")).collect();
    assert_eq!(shares.len(), 1, "{drawn:?}");
    let (title, labels) = shares[0];
    assert!(title.starts_with("Throughput as a share of the line"), "{title}");
    for said in [
        "64-byte frames: 13.4 % of the line, 200,000 of 1,488,095 frames/s; limit: device",
        "64-byte frames: the tester reaches 900,000 without the device",
        "64-byte frames: frames were lost at 200,400 frames/s",
    ] {
        assert!(labels.iter().any(|label| label == said), "{said}: {labels:?}");
    }
    assert!(page.contains("Throughput from 13.4\u{a0}% of the line (64-byte frames) to 100.0\u{a0}%"), "the answer");
}

/// A line from one size to the next would show rates that nobody measured.
#[test]
fn nothing_is_drawn_between_sizes_but_what_is_calculated() {
    let mut unknown = record();
    unknown.plan = Plan::of(Goal::Device(DevicePlan { line: None, ..plan() }));
    // By frame size: throughput, latency, buffer and CPU.
    for (record, charts) in [(unknown, 4), (crate::sample::udp_sweep(), 1), (crate::nfs::rpc(), 1)] {
        let page = html(Language::English, &record);
        let is_by_size = |figure: &&str| {
            ["frame, bytes, FCS counted (log", "message, bytes (log", "unit of data, bytes (log"]
                .iter()
                .any(|axis| figure.contains(axis))
        };
        let by_size: Vec<&str> = page.split("<figure>").skip(1).filter(is_by_size).collect();
        assert_eq!(by_size.len(), charts, "{by_size:?}");
        for sizes in by_size {
            for class in ["s0", "s1", "s2", "tester"] {
                let drawn = sizes.split(&format!("<g class=\"{class}\">")).nth(1);
                assert!(
                    drawn.is_none_or(|drawn| drawn.starts_with("<polyline class=\"line\" points=\"\">")),
                    "{class}"
                );
            }
            assert!(sizes.contains("class=\"mark\""));
        }
    }
}

#[test]
fn csv_has_the_figures_of_the_charts() {
    let text = csv(&record());
    let mut lines = text.split_terminator("\r\n");
    let head: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    assert_eq!(rows.len(), 7 + 7 + 42 + 7);
    let figure = |row: usize, name: &str| {
        let at = head.iter().position(|known| *known == name).expect(name);
        rows[row][at].parse::<f64>().unwrap_or(f64::NAN)
    };
    for (row, name, value) in [
        (0, "line_frames_per_s", 1_488_095.0),
        (0, "tester_frames_per_s", 900_000.0),
        (0, "device_busiest_cpu", 0.97),
        (7, "latency_ns_p99", 41_280.0),
        (14, "frames_per_s", 1_488_095.0),
    ] {
        assert_eq!(figure(row, name), value, "row {row}: {name}");
    }
    assert!(figure(14, "device_cpu").is_nan(), "what was not asked is missing, not zero");
}

#[test]
fn csv_says_which_figures_are_firm() {
    let text = csv(&not_firm());
    let mut lines = text.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    let column = |name: &str| head.iter().position(|known| *known == name).expect(name);
    let (firm, offered) = (column("firm"), column("offered_share"));
    let told: Vec<(&str, &str)> = lines.map(|row| (row[firm], row[offered])).collect();
    // Throughput, latency, loss.
    let throughput = [("false", "0.6"), ("false", ""), ("false", "0.59"), ("true", "")];
    assert_eq!(told[..4], throughput);
    assert_eq!(told[4..8], [("false", "0.9"), ("true", ""), ("false", "0.7"), ("true", "")]);
}
