//! Results as comma-separated values, a row for each. A column's name ends in its unit and does not change within a
//! record format.

use crate::figures::moment_iso;
use crate::records::Records;
use crate::subjects::{ALL, ladder};
use Cell::{Flows, Result};
use linerate_model::{
    CpuCost, CurvePoint, FlowFigures, LadderLayer, Latency, LoadedLatency, Measurement, NfsClass, OperationFigures,
    Record, Summary,
};
use serde::Serialize;
use serde_json::Value;

/// Function that takes a column's cell from a result.
enum Cell {
    /// Every result has it.
    Result(fn(&Record, &Measurement) -> Value),
    /// Results of streams, transactions, RPC and NFS have it; it is empty in others.
    Flows(fn(&Measurement, &FlowFigures) -> Value),
}

impl Cell {
    fn of(&self, record: &Record, result: &Measurement) -> Value {
        match self {
            Result(cell) => cell(record, result),
            Flows(cell) => result.flows().map_or(Value::Null, |flows| cell(result, flows)),
        }
    }
}

/// The columns: name, and cell of a result.
const COLUMNS: &[(&str, Cell)] = &[
    ("record", Result(|r, _| cell(&r.id))),
    ("started_utc", Result(|r, _| cell(moment_iso(r.started_unix_ns)))),
    ("name", Result(|_, m| cell(&m.name))),
    ("task", Result(|_, m| cell(m.task()))),
    ("quantity", Result(|_, m| cell(m.quantity))),
    ("main_median", Result(|_, m| cell(m.main.median))),
    ("main_low", Result(|_, m| cell(m.main.low))),
    ("main_high", Result(|_, m| cell(m.main.high))),
    ("transport", Flows(|_, f| cell(f.transport))),
    ("ip_version", Flows(|_, f| cell(f.ip))),
    ("direction", Result(|_, m| cell(m.stream().map(|stream| stream.direction)))),
    ("flows", Flows(|_, f| cell(f.flows))),
    ("message_bytes", Flows(|_, f| cell(f.message_bytes))),
    ("response_bytes", Result(|_, m| cell(m.transact().map(|t| t.response_bytes)))),
    ("received_payload_bps_median", Result(|_, m| cell(payload(m).map(|s| s.median)))),
    ("received_payload_bps_low", Result(|_, m| cell(payload(m).map(|s| s.low)))),
    ("received_payload_bps_high", Result(|_, m| cell(payload(m).map(|s| s.high)))),
    ("received_ip_bps_median", Result(|_, m| cell(m.received().and_then(|r| median(&r.ip_bps))))),
    ("received_wire_bps_median", Result(|_, m| cell(m.received().and_then(|r| median(&r.wire_bps))))),
    ("received_packets_per_s_median", Result(|_, m| cell(m.received().map(|r| r.packets_per_s.median)))),
    ("received_messages_per_s_median", Result(|_, m| cell(m.received().and_then(|r| median(&r.messages_per_s))))),
    ("received_io_method", Result(|_, m| cell(m.received().map(|r| &r.io_method)))),
    ("sent_payload_bps_median", Result(|_, m| cell(m.sent().map(|s| s.payload_bps.median)))),
    ("sent_io_method", Result(|_, m| cell(m.sent().map(|s| &s.io_method)))),
    (
        "transactions_per_s_median",
        Result(|_, m| cell(m.requests().map(|requests| &requests.transactions_per_s).map(|s| s.median))),
    ),
    (
        "transactions_per_s_low",
        Result(|_, m| cell(m.requests().map(|requests| &requests.transactions_per_s).map(|s| s.low))),
    ),
    (
        "transactions_per_s_high",
        Result(|_, m| cell(m.requests().map(|requests| &requests.transactions_per_s).map(|s| s.high))),
    ),
    ("transactions_failed", Result(|_, m| cell(m.requests().map(|requests| requests.failed)))),
    ("runs", Result(|_, m| cell(m.main.runs))),
    ("limit_line_bps", Result(|_, m| cell(m.limit().map(|l| l.line_bps)))),
    ("limit_mtu_bytes", Result(|_, m| cell(m.limit().map(|l| l.mtu)))),
    ("limit_payload_bps", Result(|_, m| cell(m.limit().map(|l| l.payload_bps)))),
    ("limit_share", Result(|_, m| cell(m.limit().map(|l| l.share)))),
    ("tester_limit_record", Flows(|m, _| cell(m.tester_limit.as_ref().map(|c| &c.record)))),
    ("tester_limit_bypass", Flows(|m, _| cell(m.tester_limit.as_ref().map(|c| c.bypass)))),
    ("tester_limit_age_s", Flows(|m, _| cell(m.tester_limit.as_ref().map(|c| c.age.get() / 1_000_000_000)))),
    ("tester_limit_reached_median", Flows(|m, _| cell(m.tester_limit.as_ref().map(|c| c.reached.median)))),
    ("tester_limit_share", Flows(|m, _| cell(m.tester_limit.as_ref().map(|c| c.share)))),
    ("lost_datagrams", Result(|_, m| cell(m.loss().map(|l| l.lost)))),
    ("offered_datagrams", Result(|_, m| cell(m.loss().map(|l| l.of)))),
    ("lost_not_sent_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.not_sent)))),
    ("lost_sender_filter_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.sender_filter)))),
    ("lost_sender_queue_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.sender_queue)))),
    ("lost_unaccounted_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.unaccounted)))),
    ("lost_corrupted_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.corrupted)))),
    ("lost_receiver_queue_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.receiver_queue)))),
    ("lost_receiver_filter_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.receiver_filter)))),
    ("lost_reassembly_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.reassembly)))),
    ("lost_socket_buffer_datagrams", Result(|_, m| cell(m.loss().map(|l| l.places.socket_buffer)))),
    ("duplicate_datagrams", Result(|_, m| cell(m.loss().map(|l| l.duplicates)))),
    ("reordered_datagrams", Result(|_, m| cell(m.loss().map(|l| l.reordered)))),
    ("jitter_ns_median", Result(|_, m| cell(m.stream().and_then(|s| median(&s.jitter_ns))))),
    ("latency_ns_min", Result(|_, m| cell(latency(m).map(|l| l.min)))),
    ("latency_ns_mean", Result(|_, m| cell(latency(m).map(|l| l.mean)))),
    ("latency_ns_p50", Result(|_, m| cell(latency(m).map(|l| l.p50)))),
    ("latency_ns_p90", Result(|_, m| cell(latency(m).map(|l| l.p90)))),
    ("latency_ns_p99", Result(|_, m| cell(latency(m).map(|l| l.p99)))),
    ("latency_ns_p999", Result(|_, m| cell(latency(m).map(|l| l.p999)))),
    ("latency_ns_max", Result(|_, m| cell(latency(m).map(|l| l.max)))),
    ("latency_count", Result(|_, m| cell(latency(m).map(|l| l.count)))),
    ("loaded_latency_transport", Result(|_, m| cell(probed(m).map(|l| l.transport)))),
    ("loaded_latency_idle_ns_p50", Result(|_, m| cell(probed(m).map(|l| l.idle_ns.p50)))),
    ("loaded_latency_idle_ns_p90", Result(|_, m| cell(probed(m).map(|l| l.idle_ns.p90)))),
    ("loaded_latency_idle_ns_p99", Result(|_, m| cell(probed(m).map(|l| l.idle_ns.p99)))),
    ("loaded_latency_loaded_ns_p50", Result(|_, m| cell(probed(m).map(|l| l.loaded_ns.p50)))),
    ("loaded_latency_loaded_ns_p90", Result(|_, m| cell(probed(m).map(|l| l.loaded_ns.p90)))),
    ("loaded_latency_loaded_ns_p99", Result(|_, m| cell(probed(m).map(|l| l.loaded_ns.p99)))),
    ("loaded_latency_added_ns_p50", Result(|_, m| cell(probed(m).map(|l| l.added_ns.p50)))),
    ("loaded_latency_added_ns_p90", Result(|_, m| cell(probed(m).map(|l| l.added_ns.p90)))),
    ("loaded_latency_added_ns_p99", Result(|_, m| cell(probed(m).map(|l| l.added_ns.p99)))),
    ("loaded_latency_idle_count", Result(|_, m| cell(probed(m).map(|l| l.idle_ns.count)))),
    ("loaded_latency_loaded_count", Result(|_, m| cell(probed(m).map(|l| l.loaded_ns.count)))),
    ("loaded_latency_idle_unanswered", Result(|_, m| cell(probed(m).map(|l| l.idle_unanswered)))),
    ("loaded_latency_loaded_unanswered", Result(|_, m| cell(probed(m).map(|l| l.loaded_unanswered)))),
    ("loaded_latency_idle_rpm", Result(|_, m| cell(probed(m).map(|l| l.rpm.idle)))),
    ("loaded_latency_loaded_rpm", Result(|_, m| cell(probed(m).map(|l| l.rpm.loaded)))),
    ("loaded_latency_buffer_delay_percent", Result(|_, m| cell(probed(m).map(|l| l.buffer_delay_percent)))),
    ("loaded_latency_grade", Result(|_, m| cell(probed(m).map(|l| l.grade)))),
    ("sender_busiest_core_share", Flows(|_, f| cell(watched(&f.cpu.sender, |cost| cost.busiest_core)))),
    ("sender_busiest_thread_share", Flows(|_, f| cell(watched(&f.cpu.sender, |cost| cost.busiest_thread)))),
    ("sender_ns_per_byte", Flows(|_, f| cell(f.cpu.sender.ns_per_byte))),
    ("sender_ns_per_packet", Flows(|_, f| cell(f.cpu.sender.ns_per_packet))),
    ("sender_steal_share", Flows(|_, f| cell(watched(&f.cpu.sender, |cost| cost.steal)))),
    ("receiver_busiest_core_share", Flows(|_, f| cell(watched(&f.cpu.receiver, |cost| cost.busiest_core)))),
    ("receiver_busiest_thread_share", Flows(|_, f| cell(watched(&f.cpu.receiver, |cost| cost.busiest_thread)))),
    ("receiver_ns_per_byte", Flows(|_, f| cell(f.cpu.receiver.ns_per_byte))),
    ("receiver_ns_per_packet", Flows(|_, f| cell(f.cpu.receiver.ns_per_packet))),
    ("receiver_steal_share", Flows(|_, f| cell(watched(&f.cpu.receiver, |cost| cost.steal)))),
    ("tcp_congestion", Result(|_, m| cell(m.tcp().map(|t| &t.congestion)))),
    ("tcp_retransmitted_segments", Result(|_, m| cell(m.tcp().map(|t| t.retransmits)))),
    ("tcp_sent_segments", Result(|_, m| cell(m.tcp().map(|t| t.segments)))),
    ("tcp_rtt_ns_median", Result(|_, m| cell(m.tcp().map(|t| t.rtt_ns)))),
    ("tcp_rtt_ns_min", Result(|_, m| cell(m.tcp().map(|t| t.min_rtt_ns)))),
    ("intended_operations_per_s", Result(|r, m| cell(point(r, m).map(|p| p.intended_ops)))),
    ("offered_operations_per_s", Result(|r, m| cell(point(r, m).map(|p| p.offered_ops)))),
    ("load_missed", Result(|r, m| cell(point(r, m).and_then(|p| p.missed)))),
    ("nfs_read_per_s", Result(|_, m| cell(class(m, NfsClass::Read).map(|c| c.ops_per_s)))),
    ("nfs_read_mean_ms", Result(|_, m| cell(class(m, NfsClass::Read).map(|c| c.mean_ms)))),
    ("nfs_read_p99_ms", Result(|_, m| cell(class(m, NfsClass::Read).map(|c| c.p99_ms)))),
    ("nfs_write_per_s", Result(|_, m| cell(class(m, NfsClass::Write).map(|c| c.ops_per_s)))),
    ("nfs_write_mean_ms", Result(|_, m| cell(class(m, NfsClass::Write).map(|c| c.mean_ms)))),
    ("nfs_write_p99_ms", Result(|_, m| cell(class(m, NfsClass::Write).map(|c| c.p99_ms)))),
    ("nfs_other_per_s", Result(|_, m| cell(class(m, NfsClass::Other).map(|c| c.ops_per_s)))),
    ("nfs_other_mean_ms", Result(|_, m| cell(class(m, NfsClass::Other).map(|c| c.mean_ms)))),
    ("nfs_other_p99_ms", Result(|_, m| cell(class(m, NfsClass::Other).map(|c| c.p99_ms)))),
    ("nfs_errors", Result(|_, m| cell(errors(m)))),
    ("service_ns_p50", Result(|_, m| cell(m.service().map(|l| l.p50)))),
    ("service_ns_p99", Result(|_, m| cell(m.service().map(|l| l.p99)))),
    ("caveats", Result(|_, m| cell(caveats(m)))),
    ("verdict_limit", Result(|_, m| cell(m.verdict.limit))),
    ("verdict_confidence", Result(|_, m| cell(m.verdict.confidence))),
    ("layer", Result(|r, m| cell(ladder::layer_of(r, &m.name).map(|layer| layer.name)))),
    (
        "layer_share_of_layer_below",
        Result(|r, m| cell(ladder::layer_of(r, &m.name).and_then(|layer| layer.share_of_layer_below))),
    ),
    ("layer_share_of_line", Result(|r, m| cell(ladder::layer_of(r, &m.name).and_then(|layer| layer.share_of_line)))),
    ("call", Result(|_, m| cell(m.rpc().map(|r| r.call)))),
    ("retransmitted_calls", Result(|_, m| cell(m.retransmitted()))),
];

/// The cell of a layer that is drawn from no result.
fn layer_cell(column: &str, record: &Record, layer: &LadderLayer) -> Value {
    let payload = layer.payload_bps.as_ref();
    match column {
        "record" => cell(&record.id),
        "started_utc" => cell(moment_iso(record.started_unix_ns)),
        "name" => cell(layer.name.to_string()),
        "received_payload_bps_median" => cell(payload.map(|s| s.median)),
        "received_payload_bps_low" => cell(payload.map(|s| s.low)),
        "received_payload_bps_high" => cell(payload.map(|s| s.high)),
        "runs" => cell(payload.map(|s| s.runs)),
        "limit_payload_bps" => cell(layer.limit_bps),
        "latency_ns_p50" => cell(layer.latency_ns.map(|l| l.p50)),
        "latency_ns_p99" => cell(layer.latency_ns.map(|l| l.p99)),
        "latency_count" => cell(layer.latency_ns.map(|l| l.count)),
        "verdict_limit" => cell(layer.verdict.as_ref().map(|v| v.limit)),
        "verdict_confidence" => cell(layer.verdict.as_ref().map(|v| v.confidence)),
        "layer" => cell(layer.name),
        "layer_share_of_layer_below" => cell(layer.share_of_layer_below),
        "layer_share_of_line" => cell(layer.share_of_line),
        _ => Value::Null,
    }
}

/// The results as comma-separated values (RFC 4180) with a header line. A missing figure is an empty field.
///
/// There is one row for each result; the layers of a ladder that are no results, as what the line carries, come after them. Copies, raw
/// frames and device tests have tables of their own, each behind an empty line; where there is nothing else, the table of
/// results is left out.
pub fn csv<'a>(records: impl Into<Records<'a>>) -> String {
    // Tables of several records differ in their columns: each has a head of its own, an empty line before it.
    records.into().0.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(record: &Record) -> String {
    let tables: Vec<Vec<Vec<String>>> = ALL.iter().map(|subject| subject.csv_rows(record)).collect();
    let tables: Vec<&Vec<Vec<String>>> = tables.iter().filter(|rows| !rows.is_empty()).collect();
    let mut text = String::new();
    if tables.is_empty() || record.flows().next().is_some() || record.ladder().is_some() {
        line(&mut text, COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
        for result in &record.results {
            line(&mut text, COLUMNS.iter().map(|(_, column)| field(&column.of(record, result))));
        }
        for layer in ladder::layers_apart(record) {
            line(&mut text, COLUMNS.iter().map(|(name, _)| field(&layer_cell(name, record, layer))));
        }
    }
    for rows in tables {
        if !text.is_empty() {
            line(&mut text, std::iter::empty());
        }
        rows.iter().for_each(|row| line(&mut text, row.iter().map(|text| quoted(text))));
    }
    text
}

pub fn line(text: &mut String, fields: impl Iterator<Item = String>) {
    text.push_str(&fields.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

/// A value as the record writes it; a number that is not finite becomes null.
fn cell(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text field. Names come from other machines: one that a spreadsheet would run as a formula gets an apostrophe.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    let text = format!("{guard}{text}");
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn payload(result: &Measurement) -> Option<&Summary> {
    result.received().map(|received| &received.payload_bps)
}

fn latency(result: &Measurement) -> Option<&Latency> {
    result.requests()?.latency_ns.as_ref()
}

fn probed(result: &Measurement) -> Option<&LoadedLatency> {
    result.loaded_latency()
}

fn class(result: &Measurement, class: NfsClass) -> Option<&OperationFigures> {
    result.nfs()?.classes.get(&class)
}

/// NFS operations that failed.
fn errors(result: &Measurement) -> Option<u64> {
    let of = |class: &OperationFigures| class.errors.values().sum::<u64>();
    let classes = &result.nfs()?.classes;
    (!classes.is_empty()).then(|| classes.values().map(of).sum())
}

/// The load of a curve that a result is of.
fn point<'a>(record: &'a Record, result: &Measurement) -> Option<&'a CurvePoint> {
    record.curve()?.1.curve.iter().find(|point| point.result == result.name)
}

/// The kinds of a result's doubts.
fn caveats(result: &Measurement) -> String {
    crate::sections::caveats::of_result(result).map(crate::wording::kind).collect::<Vec<_>>().join(" ")
}

fn median(summary: &Option<Summary>) -> Option<f64> {
    summary.as_ref().map(|summary| summary.median)
}

/// Returns a share of an end's CPU, `None` for an end that was not watched: no thread was seen to work there.
fn watched(cost: &CpuCost, share: fn(&CpuCost) -> f64) -> Option<f64> {
    (cost.busiest_thread > 0.0).then(|| share(cost))
}
