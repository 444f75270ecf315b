//! Plain generating and receiving of raw frames, the same for every form of report.

use crate::blocks::columns;
use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{counted_share, frames_per_s, grouped, nanos, per_second, plain, rate};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate};
use crate::subjects::parties::between;
use crate::wording::{firmness, runs};
use linerate_model::text;
use linerate_model::{
    FlowRate, FrameFlow, FrameHeaders, FramePayload, FrameReceiver, FramesTask, Measurement, Record, Task,
};
use linerate_units::{BitRate, Ratio};
use std::collections::BTreeMap;

/// Raw frames from port to port.
pub(crate) struct Frames;

/// Display of running trials of frames, device tests included.
pub(crate) const LIVE: Live = Live::new(
    LiveRate::Frames,
    text!("live-panel-frames", "Frames sent"),
    &[LiveColumn::Frames, LiveColumn::FrameRate, LiveColumn::SentRate, LiveColumn::ReceivedRate],
    &[FRAMES],
);

const FRAMES: LiveChart = live::operations(text!("over-time-frames", "frames"));

impl Subject for Frames {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        (sentences(lang, record, result), 2)
    }

    fn not_firm(&self, lang: Language, record: &Record) -> Vec<String> {
        not_firm(lang, record)
    }

    fn section(&self, lang: Language, record: &Record) -> Option<Section> {
        section(lang, record)
    }

    fn parties(&self, lang: Language, task: &Task) -> Option<String> {
        match task {
            Task::Frames(task) => Some(between(lang, &task.ports, &task.home)),
            _ => None,
        }
    }

    fn method(&self, lang: Language, record: &Record) -> Vec<String> {
        tasks::frames(record).flat_map(|task| method(lang, task)).collect()
    }

    fn csv_rows(&self, record: &Record) -> Vec<Vec<String>> {
        csv_rows(record)
    }
}

/// Returns the counts by frame size and way.
fn section(lang: Language, record: &Record) -> Option<Section> {
    let flows: Vec<&FrameFlow> = record.results.iter().flat_map(Measurement::frames).collect();
    let tables = [counts(lang, &flows), rates(lang, &flows), latency(lang, &flows)];
    let tables = tables.into_iter().flatten().map(Block::Table);
    Section::answer("frames", said!(lang, "frames-section", "Raw frames"), tables.collect())
}

/// Says which flows are not firm.
fn not_firm(lang: Language, record: &Record) -> Vec<String> {
    let flows = record.results.iter().flat_map(Measurement::frames);
    let figures: Vec<_> = flows.map(|flow| (named(lang, flow), flow.firmness)).collect();
    firmness::sentences(lang, &figures)
}

/// Returns how many frames arrived, and how many did not.
fn sentences(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let received = frames_per_s(result.main.median).map(|rate| {
        said!(
            lang,
            "frames-received",
            "{rate} received ({runs}).",
            rate = rate,
            runs = runs(lang, record, &result.main, frames_per_s)
        )
    });
    let (sent, lost) = result.frames().iter().fold((0, 0), |(sent, lost), flow| (sent + flow.sent, lost + flow.lost));
    let lost = counted_share(Ratio::new(lost, sent)).map(|share| match lost {
        0 => said!(lang, "frames-none-lost", "None of {sent} frames was lost.", sent = sent),
        _ => said!(
            lang,
            "frames-some-lost",
            "{lost} of {sent} frames lost ({share}).",
            lost = lost,
            sent = sent,
            share = share
        ),
    });
    received.into_iter().chain(lost).collect()
}

/// Returns the method: what the frames were, and for how long they were sent.
fn method(lang: Language, task: &FramesTask) -> Vec<String> {
    let headers = task.streams.first().map(|stream| {
        let both = task.streams.iter().any(|other| (other.from, other.to) == (stream.to, stream.from));
        frames_sent(lang, &stream.headers, None, both)
    });
    headers
        .into_iter()
        .chain((task.receiver == FrameReceiver::Socket).then(|| {
            said!(
                lang,
                "frames-method-socket",
                "Frames count as received when a program of the receiving host reads them from a UDP socket; latencies end there."
            )
        }))
        .chain([said!(
            lang,
            "frames-method-time",
            "Frames were sent for {time}; stragglers were waited for {settle} after that.",
            time = task.time,
            settle = task.settle
        )])
        .collect()
}

/// `64, p0 to p1`; of a mix all its sizes.
pub(crate) fn named(lang: Language, flow: &FrameFlow) -> String {
    let size = flow.mix.as_ref().map_or_else(|| flow.frame_bytes.to_string(), ToString::to_string);
    said!(lang, "frames-flow", "{size}, {from} to {to}", size = size, from = plain(&flow.from), to = plain(&flow.to))
}

const WAY: Column =
    column!("column-frames-frame-way", "frame, way", "bytes of a frame, FCS counted, and from which port to which");

/// Columns of frames that are counted at a socket.
const TO_SOCKET: [Column; 2] = [
    column!("column-frames-at-port", "at the port", "frames that arrived at the port, on the way to the socket"),
    column!("column-frames-dropped", "dropped by the socket", "datagrams for which the socket's buffer had no room"),
];

fn counts(lang: Language, flows: &[&FrameFlow]) -> Option<Table> {
    let mut columns = vec![
        WAY,
        column!("column-frames-sent", "sent", "frames given to the sending port"),
        column!("column-frames-received", "received", "frames that arrived, duplicates left out"),
        column!("column-frames-lost", "lost", "frames sent that did not arrive"),
        column!("column-duplicates", "duplicates", "further copies").ranked(2),
        columns::REORDERED.ranked(1),
        column!("column-flooded", "flooded", "copies that arrived at other ports").ranked(3),
    ];
    let has_sockets = flows.iter().any(|flow| flow.to_socket.is_some());
    if has_sockets {
        columns.splice(2..2, TO_SOCKET);
    }
    let row = |flow: &&FrameFlow| {
        // A port's counter knows no single frame.
        let count_of_frames = |count: u64| (!flow.by_port_counters).then(|| grouped(count));
        let mut row = vec![
            Some(named(lang, flow)),
            Some(grouped(flow.sent)),
            Some(grouped(flow.received)),
            Some(grouped(flow.lost)),
            count_of_frames(flow.duplicates),
            count_of_frames(flow.reordered),
            count_of_frames(flow.flooded),
        ];
        if has_sockets {
            let at_port = flow.to_socket.map(|to_socket| grouped(to_socket.at_port));
            let dropped = flow.to_socket.and_then(|to_socket| to_socket.dropped).map(grouped);
            row.splice(2..2, [at_port, dropped]);
        }
        row
    };
    Table::filled(said!(lang, "frames-caption-counts", "Frames"), columns, flows.iter().map(row).collect())
}

fn rates(lang: Language, flows: &[&FrameFlow]) -> Option<Table> {
    let columns = vec![
        WAY,
        column!("column-sent-s", "sent/s", "frames sent a second, from the first to the last"),
        column!("column-received-s", "received/s", "frames received a second, likewise"),
        column!("column-frames-bits-s", "bits/s", "received, in bits of frames: FCS counted, preamble and gap not")
            .ranked(1),
        column!("column-line-bits-s", "line bits/s", "received, in bits on the line: preamble and gap counted too"),
    ];
    let shown = |flow: &FrameFlow, figure| firmness::shown(figure, flow.firmness);
    let row = |flow: &&FrameFlow| {
        let bits =
            |layer: fn(&FlowRate) -> f64| flow.arrived.as_ref().and_then(|arrived| rate(layer(arrived), "bit/s"));
        vec![
            Some(named(lang, flow)),
            flow.offered.and_then(|offered| per_second(offered.frames_per_s)).map(|rate| shown(flow, rate)),
            flow.arrived.and_then(|arrived| per_second(arrived.frames_per_s)).map(|rate| shown(flow, rate)),
            bits(|arrived| arrived.frame_bits_per_s),
            bits(|arrived| arrived.wire_bits_per_s),
        ]
    };
    Table::filled(said!(lang, "frames-caption-rates", "Rates"), columns, flows.iter().map(row).collect())
}

fn latency(lang: Language, flows: &[&FrameFlow]) -> Option<Table> {
    let columns = vec![
        WAY,
        columns::DEVICE_SHORTEST.ranked(2),
        columns::FRAME_P50,
        column!("column-frame-p90", "p90", "90th percentile").ranked(3),
        columns::FRAME_P99,
        columns::FRAME_P999.ranked(1),
        columns::DEVICE_LONGEST,
    ];
    let rows = flows.iter().filter_map(|flow| {
        let took = flow.latency_ns.as_ref()?;
        let times = [took.min, took.p50, took.p90, took.p99, took.p999, took.max];
        Some([vec![Some(named(lang, flow))], times.map(|time| Some(nanos(time))).to_vec()].concat())
    });
    Table::filled(
        said!(lang, "frames-caption-latency", "Latency, from the sending to the receiving port"),
        columns,
        rows.collect(),
    )
}

/// Returns what the frames were.
pub(crate) fn frames_sent(lang: Language, headers: &FrameHeaders, line: Option<BitRate>, both_ways: bool) -> String {
    let ip = if headers.source.is_ipv4() { "IPv4" } else { "IPv6" };
    let payload = match headers.payload {
        FramePayload::Udp { destination_port, .. } => {
            said!(
                lang,
                "device-method-udp",
                "UDP to port {destination_port}",
                destination_port = destination_port.to_string()
            )
        }
        FramePayload::Tcp { destination_port, .. } => {
            said!(
                lang,
                "device-method-tcp",
                "TCP segments to port {destination_port}",
                destination_port = destination_port.to_string()
            )
        }
        FramePayload::Echo => said!(lang, "device-method-echo", "ICMP echo requests"),
    };
    let tags = match headers.vlans.len() {
        0 => said!(lang, "device-method-no-vlan", "without VLAN tags"),
        _ => headers
            .vlans
            .iter()
            .map(|vlan| said!(lang, "device-method-vlan", "in VLAN {vlan}", vlan = vlan.to_string()))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let ways = if both_ways {
        said!(lang, "device-method-both-ways", "both ways at once")
    } else {
        said!(lang, "device-method-one-way", "one way")
    };
    let line = line.map_or(said!(lang, "device-method-line-unknown", "a line of unknown rate"), |line| {
        said!(lang, "device-method-line", "a line of {line}", line = line)
    });
    said!(
        lang,
        "device-method-frames",
        "Ethernet frames over {line}, {tags}, holding {ip} with {payload}, sent {ways} in one stream.",
        line = line,
        tags = tags,
        ip = ip,
        payload = payload,
        ways = ways
    )
}

/// Columns of [`csv_rows`].
const CSV_COLUMNS: [&str; 22] = [
    "record",
    "result",
    "frame_bytes",
    "sizes",
    "from",
    "to",
    "frames_per_s",
    "bits_per_s",
    "wire_bits_per_s",
    "sent",
    "at_port",
    "socket_drops",
    "received",
    "loss_ratio",
    "duplicates",
    "reordered",
    "flooded",
    "latency_ns_p50",
    "latency_ns_p99",
    "latency_ns_max",
    "firm",
    "offered_share",
];

/// Returns the cell of a count. It is empty if the count is unknown.
fn whole(count: Option<u64>) -> String {
    count.map(|count| count.to_string()).unwrap_or_default()
}

/// Rows of a CSV file with their head: one for each frame size and way. None where no frames were sent.
fn csv_rows(record: &Record) -> Vec<Vec<String>> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let row = |(result, flow): (&Measurement, &FrameFlow)| {
        let timed = |figure: fn(&linerate_model::Latency) -> u64| {
            flow.latency_ns.as_ref().map(|took| figure(took).to_string()).unwrap_or_default()
        };
        let loss = if flow.sent == 0 { 0.0 } else { flow.lost as f64 / flow.sent as f64 };
        let mut row = BTreeMap::from([
            ("record", record.id.0.clone()),
            ("result", result.name.clone()),
            ("frame_bytes", flow.frame_bytes.to_string()),
            ("frames_per_s", number(flow.arrived.map(|arrived| arrived.frames_per_s))),
            ("bits_per_s", number(flow.arrived.map(|arrived| arrived.frame_bits_per_s))),
            ("latency_ns_p50", timed(|took| took.p50)),
            ("latency_ns_p99", timed(|took| took.p99)),
            ("latency_ns_max", timed(|took| took.max)),
            ("sent", flow.sent.to_string()),
            ("received", flow.received.to_string()),
            ("at_port", whole(flow.to_socket.map(|to_socket| to_socket.at_port))),
            ("socket_drops", whole(flow.to_socket.and_then(|to_socket| to_socket.dropped))),
            ("loss_ratio", loss.to_string()),
            ("from", flow.from.clone()),
            ("to", flow.to.clone()),
            ("sizes", flow.mix.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("duplicates", flow.duplicates.to_string()),
            ("reordered", flow.reordered.to_string()),
            ("flooded", flow.flooded.to_string()),
            ("wire_bits_per_s", number(flow.arrived.map(|arrived| arrived.wire_bits_per_s))),
        ]);
        row.extend(firmness::csv(flow.firmness));
        row
    };
    let flows = record.results.iter().flat_map(|result| result.frames().iter().map(move |flow| (result, flow)));
    let cells = |row: BTreeMap<&str, String>| -> Vec<String> {
        CSV_COLUMNS.iter().map(|name| row.get(name).cloned().unwrap_or_default()).collect()
    };
    let mut rows: Vec<Vec<String>> = flows.map(row).map(cells).collect();
    if !rows.is_empty() {
        rows.insert(0, CSV_COLUMNS.map(str::to_owned).to_vec());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Firmness, FrameEngine, Latency};
    use linerate_units::Nanos;

    fn flows() -> [FrameFlow; 2] {
        let rate = FlowRate {
            frames_per_s: 20_000.0,
            frame_bits_per_s: 57.9e6,
            wire_bits_per_s: 61.1e6,
            time: Nanos::from_secs(1),
        };
        let latency = Latency {
            p50: 3_000,
            p90: 4_000,
            p99: 5_000,
            p999: 6_000,
            max: 7_000,
            min: 1_000,
            mean: 3_100.0,
            count: 19_990,
            distribution: Vec::new(),
        };
        let flow = FrameFlow {
            verdict: None,
            from: "p0".into(),
            to: "=p1".into(),
            frame_bytes: 1518,
            mix: Some(linerate_model::FrameMix::imix()),
            engine: FrameEngine::Xdp,
            intended: 20_000,
            sent: 20_000,
            firmness: Firmness::Firm,
            received: 19_990,
            lost: 10,
            to_socket: None,
            duplicates: 0,
            reordered: 2,
            flooded: 0,
            offered: Some(rate),
            arrived: Some(rate),
            sent_bytes: 7_236_666,
            received_bytes: 7_230_000,
            latency_ns: Some(latency),
            by_port_counters: false,
            caveats: Vec::new(),
        };
        let unsigned = FrameFlow { by_port_counters: true, latency_ns: None, arrived: None, mix: None, ..flow.clone() };
        [flow, unsigned]
    }

    #[test]
    fn every_table_is_whole() {
        let flows = flows();
        let flows: Vec<&FrameFlow> = flows.iter().collect();
        let tables = [counts, rates, latency].map(|table| table(Language::English, &flows).expect("a table"));
        assert_eq!(tables.each_ref().map(|table| table.rows.len()), [2, 2, 1]);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
        }
        let cell = |table: usize, row: usize, column: usize| tables[table].rows[row][column].as_deref();
        assert_eq!(cell(0, 0, 0), Some("64:7,594:4,1518:1, p0 to =p1"));
        assert_eq!((cell(0, 0, 5), cell(0, 1, 5)), (Some("2"), None), "a port's counter knows no order");
        assert_eq!((cell(1, 0, 3), cell(1, 0, 4)), (Some("57.9 Mbit/s"), Some("61.1 Mbit/s")));
    }
}
