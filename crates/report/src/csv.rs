//! One row for each result. A column's name ends in its unit and does not change within a record format.

use crate::figures::moment_iso;
use crate::ladder;
use linerate_model::{
    CpuCost, CurvePoint, LoadedLatency, Measurement, NfsClass, OperationFigures, Record, Rung, Summary,
};
use serde::Serialize;
use serde_json::Value;

/// A column: its name, and its cell of a result.
type Column = (&'static str, fn(&Record, &Measurement) -> Value);

const COLUMNS: &[Column] = &[
    ("record", |r, _| cell(&r.id)),
    ("started_utc", |r, _| cell(moment_iso(r.started_unix_ns))),
    ("name", |_, m| cell(&m.name)),
    ("workload", |_, m| cell(m.workload)),
    ("transport", |_, m| cell(m.transport)),
    ("ip_version", |_, m| cell(m.ip)),
    ("direction", |_, m| cell(m.direction)),
    ("flows", |_, m| cell(m.flows)),
    ("message_bytes", |_, m| cell(m.message_bytes)),
    ("response_bytes", |_, m| cell(m.response_bytes)),
    ("received_payload_bps_median", |_, m| cell(payload(m).map(|s| s.median))),
    ("received_payload_bps_low", |_, m| cell(payload(m).map(|s| s.low))),
    ("received_payload_bps_high", |_, m| cell(payload(m).map(|s| s.high))),
    ("received_ip_bps_median", |_, m| cell(m.received.as_ref().and_then(|r| median(&r.ip_bps)))),
    ("received_wire_bps_median", |_, m| cell(m.received.as_ref().and_then(|r| median(&r.wire_bps)))),
    ("received_packets_per_s_median", |_, m| cell(m.received.as_ref().map(|r| r.packets_per_s.median))),
    ("received_messages_per_s_median", |_, m| cell(m.received.as_ref().and_then(|r| median(&r.messages_per_s)))),
    ("received_means", |_, m| cell(m.received.as_ref().map(|r| &r.means))),
    ("sent_payload_bps_median", |_, m| cell(m.sent.as_ref().map(|s| s.payload_bps.median))),
    ("sent_means", |_, m| cell(m.sent.as_ref().map(|s| &s.means))),
    ("transactions_per_s_median", |_, m| cell(m.transactions_per_s.as_ref().map(|s| s.median))),
    ("transactions_per_s_low", |_, m| cell(m.transactions_per_s.as_ref().map(|s| s.low))),
    ("transactions_per_s_high", |_, m| cell(m.transactions_per_s.as_ref().map(|s| s.high))),
    ("transactions_failed", |_, m| cell(m.failed)),
    ("runs", |_, m| cell(payload(m).or(m.transactions_per_s.as_ref()).map(|s| s.runs))),
    ("limit_line_bps", |_, m| cell(m.limit.as_ref().map(|l| l.line_bps))),
    ("limit_mtu_bytes", |_, m| cell(m.limit.as_ref().map(|l| l.mtu))),
    ("limit_payload_bps", |_, m| cell(m.limit.as_ref().map(|l| l.payload_bps))),
    ("limit_share", |_, m| cell(m.limit.as_ref().map(|l| l.share))),
    ("ceiling_record", |_, m| cell(m.ceiling.as_ref().map(|c| &c.record))),
    ("ceiling_reached_median", |_, m| cell(m.ceiling.as_ref().map(|c| c.reached.median))),
    ("ceiling_share", |_, m| cell(m.ceiling.as_ref().map(|c| c.share))),
    ("lost_datagrams", |_, m| cell(m.loss.map(|l| l.lost))),
    ("offered_datagrams", |_, m| cell(m.loss.map(|l| l.of))),
    ("lost_not_sent_datagrams", |_, m| cell(m.loss.map(|l| l.places.not_sent))),
    ("lost_sender_queue_datagrams", |_, m| cell(m.loss.map(|l| l.places.sender_queue))),
    ("lost_wire_datagrams", |_, m| cell(m.loss.map(|l| l.places.wire))),
    ("lost_receiver_queue_datagrams", |_, m| cell(m.loss.map(|l| l.places.receiver_queue))),
    ("lost_socket_buffer_datagrams", |_, m| cell(m.loss.map(|l| l.places.socket_buffer))),
    ("duplicate_datagrams", |_, m| cell(m.loss.map(|l| l.duplicates))),
    ("reordered_datagrams", |_, m| cell(m.loss.map(|l| l.reordered))),
    ("jitter_ns_median", |_, m| cell(median(&m.jitter_ns))),
    ("latency_ns_min", |_, m| cell(m.latency_ns.as_ref().map(|l| l.min))),
    ("latency_ns_mean", |_, m| cell(m.latency_ns.as_ref().map(|l| l.mean))),
    ("latency_ns_p50", |_, m| cell(m.latency_ns.as_ref().map(|l| l.p50))),
    ("latency_ns_p90", |_, m| cell(m.latency_ns.as_ref().map(|l| l.p90))),
    ("latency_ns_p99", |_, m| cell(m.latency_ns.as_ref().map(|l| l.p99))),
    ("latency_ns_p999", |_, m| cell(m.latency_ns.as_ref().map(|l| l.p999))),
    ("latency_ns_max", |_, m| cell(m.latency_ns.as_ref().map(|l| l.max))),
    ("latency_count", |_, m| cell(m.latency_ns.as_ref().map(|l| l.count))),
    ("loaded_latency_transport", |_, m| cell(probed(m).map(|l| l.transport))),
    ("loaded_latency_idle_ns_p50", |_, m| cell(probed(m).map(|l| l.idle_ns.p50))),
    ("loaded_latency_idle_ns_p90", |_, m| cell(probed(m).map(|l| l.idle_ns.p90))),
    ("loaded_latency_idle_ns_p99", |_, m| cell(probed(m).map(|l| l.idle_ns.p99))),
    ("loaded_latency_loaded_ns_p50", |_, m| cell(probed(m).map(|l| l.loaded_ns.p50))),
    ("loaded_latency_loaded_ns_p90", |_, m| cell(probed(m).map(|l| l.loaded_ns.p90))),
    ("loaded_latency_loaded_ns_p99", |_, m| cell(probed(m).map(|l| l.loaded_ns.p99))),
    ("loaded_latency_added_ns_p50", |_, m| cell(probed(m).map(|l| l.added_ns.p50))),
    ("loaded_latency_added_ns_p90", |_, m| cell(probed(m).map(|l| l.added_ns.p90))),
    ("loaded_latency_added_ns_p99", |_, m| cell(probed(m).map(|l| l.added_ns.p99))),
    ("loaded_latency_idle_count", |_, m| cell(probed(m).map(|l| l.idle_ns.count))),
    ("loaded_latency_loaded_count", |_, m| cell(probed(m).map(|l| l.loaded_ns.count))),
    ("loaded_latency_idle_unanswered", |_, m| cell(probed(m).map(|l| l.idle_unanswered))),
    ("loaded_latency_loaded_unanswered", |_, m| cell(probed(m).map(|l| l.loaded_unanswered))),
    ("loaded_latency_idle_rpm", |_, m| cell(probed(m).map(|l| l.rpm.idle))),
    ("loaded_latency_loaded_rpm", |_, m| cell(probed(m).map(|l| l.rpm.loaded))),
    ("loaded_latency_buffer_delay_percent", |_, m| cell(probed(m).map(|l| l.buffer_delay_percent))),
    ("loaded_latency_grade", |_, m| cell(probed(m).map(|l| l.grade))),
    ("sender_busiest_core_share", |_, m| cell(sender(m).busiest_core)),
    ("sender_busiest_thread_share", |_, m| cell(sender(m).busiest_thread)),
    ("sender_ns_per_byte", |_, m| cell(sender(m).ns_per_byte)),
    ("sender_ns_per_packet", |_, m| cell(sender(m).ns_per_packet)),
    ("sender_steal_share", |_, m| cell(sender(m).steal)),
    ("receiver_busiest_core_share", |_, m| cell(receiver(m).busiest_core)),
    ("receiver_busiest_thread_share", |_, m| cell(receiver(m).busiest_thread)),
    ("receiver_ns_per_byte", |_, m| cell(receiver(m).ns_per_byte)),
    ("receiver_ns_per_packet", |_, m| cell(receiver(m).ns_per_packet)),
    ("receiver_steal_share", |_, m| cell(receiver(m).steal)),
    ("tcp_congestion", |_, m| cell(m.tcp.as_ref().map(|t| &t.congestion))),
    ("tcp_retransmitted_segments", |_, m| cell(m.tcp.as_ref().map(|t| t.retransmits))),
    ("tcp_sent_segments", |_, m| cell(m.tcp.as_ref().map(|t| t.segments))),
    ("tcp_rtt_ns_median", |_, m| cell(m.tcp.as_ref().map(|t| t.rtt_ns))),
    ("tcp_rtt_ns_min", |_, m| cell(m.tcp.as_ref().map(|t| t.min_rtt_ns))),
    ("intended_operations_per_s", |r, m| cell(point(r, m).map(|p| p.intended_ops))),
    ("offered_operations_per_s", |r, m| cell(point(r, m).map(|p| p.offered_ops))),
    ("load_missed", |r, m| cell(point(r, m).and_then(|p| p.missed))),
    ("nfs_read_per_s", |_, m| cell(class(m, NfsClass::Read).map(|c| c.ops_per_s))),
    ("nfs_read_mean_ms", |_, m| cell(class(m, NfsClass::Read).map(|c| c.mean_ms))),
    ("nfs_read_p99_ms", |_, m| cell(class(m, NfsClass::Read).map(|c| c.p99_ms))),
    ("nfs_write_per_s", |_, m| cell(class(m, NfsClass::Write).map(|c| c.ops_per_s))),
    ("nfs_write_mean_ms", |_, m| cell(class(m, NfsClass::Write).map(|c| c.mean_ms))),
    ("nfs_write_p99_ms", |_, m| cell(class(m, NfsClass::Write).map(|c| c.p99_ms))),
    ("nfs_other_per_s", |_, m| cell(class(m, NfsClass::Other).map(|c| c.ops_per_s))),
    ("nfs_other_mean_ms", |_, m| cell(class(m, NfsClass::Other).map(|c| c.mean_ms))),
    ("nfs_other_p99_ms", |_, m| cell(class(m, NfsClass::Other).map(|c| c.p99_ms))),
    ("nfs_errors", |_, m| cell(errors(m))),
    ("service_ns_p50", |_, m| cell(m.service_ns.as_ref().map(|l| l.p50))),
    ("service_ns_p99", |_, m| cell(m.service_ns.as_ref().map(|l| l.p99))),
    ("caveats", |_, m| cell(m.caveats.iter().map(crate::sentences::kind).collect::<Vec<_>>().join(" "))),
    ("verdict_limit", |_, m| cell(m.verdict.limit)),
    ("verdict_confidence", |_, m| cell(m.verdict.confidence)),
    ("rung", |r, m| cell(ladder::rung_of(r, &m.name).map(|rung| rung.name))),
    ("rung_share_of_below", |r, m| cell(ladder::rung_of(r, &m.name).and_then(|rung| rung.share_of_below))),
    ("rung_share_of_line", |r, m| cell(ladder::rung_of(r, &m.name).and_then(|rung| rung.share_of_line))),
    ("call", |_, m| cell(m.call)),
    ("retransmitted_calls", |_, m| cell(m.retransmitted)),
    ("service_ns_p50", |_, m| cell(m.service_ns.as_ref().map(|l| l.p50))),
    ("service_ns_p99", |_, m| cell(m.service_ns.as_ref().map(|l| l.p99))),
];

/// The cell of a rung that is drawn from no result.
fn rung_cell(column: &str, record: &Record, rung: &Rung) -> Value {
    let payload = rung.payload_bps.as_ref();
    match column {
        "record" => cell(&record.id),
        "started_utc" => cell(moment_iso(record.started_unix_ns)),
        "name" => cell(rung.name.to_string()),
        "received_payload_bps_median" => cell(payload.map(|s| s.median)),
        "received_payload_bps_low" => cell(payload.map(|s| s.low)),
        "received_payload_bps_high" => cell(payload.map(|s| s.high)),
        "runs" => cell(payload.map(|s| s.runs)),
        "limit_payload_bps" => cell(rung.limit_bps),
        "latency_ns_p50" => cell(rung.latency_ns.map(|l| l.p50)),
        "latency_ns_p99" => cell(rung.latency_ns.map(|l| l.p99)),
        "latency_count" => cell(rung.latency_ns.map(|l| l.count)),
        "verdict_limit" => cell(rung.verdict.as_ref().map(|v| v.limit)),
        "verdict_confidence" => cell(rung.verdict.as_ref().map(|v| v.confidence)),
        "rung" => cell(rung.name),
        "rung_share_of_below" => cell(rung.share_of_below),
        "rung_share_of_line" => cell(rung.share_of_line),
        _ => Value::Null,
    }
}

/// The results as comma-separated values (RFC 4180) with a header line. A missing figure is an empty field. The rungs of a ladder
/// that are no results, as what the line carries, come after the results. A device test has columns of its own; in a record of
/// both, its lines follow after an empty one.
pub fn csv(record: &Record) -> String {
    let mut text = String::new();
    if record.copy().is_some() {
        for row in crate::copy::csv_rows(record) {
            line(&mut text, row.iter().map(|text| quoted(text)));
        }
        return text;
    }
    if record.device().is_none() || !record.results.is_empty() {
        line(&mut text, COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    }
    for result in &record.results {
        line(&mut text, COLUMNS.iter().map(|(_, column)| field(&column(record, result))));
    }
    for rung in ladder::rungs_apart(record) {
        line(&mut text, COLUMNS.iter().map(|(name, _)| field(&rung_cell(name, record, rung))));
    }
    if record.device().is_some() && !record.results.is_empty() {
        line(&mut text, std::iter::empty());
    }
    for row in crate::device::csv_rows(record) {
        line(&mut text, row.iter().map(|text| quoted(text)));
    }
    text
}

pub(crate) fn line(text: &mut String, fields: impl Iterator<Item = String>) {
    text.push_str(&fields.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

/// A value as the record writes it; a number that is not finite becomes null.
fn cell(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub(crate) fn field(value: &Value) -> String {
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
    result.received.as_ref().map(|received| &received.payload_bps)
}

fn probed(result: &Measurement) -> Option<&LoadedLatency> {
    result.loaded_latency.as_ref()
}

fn class(result: &Measurement, class: NfsClass) -> Option<&OperationFigures> {
    result.classes.get(&class)
}

/// NFS operations that failed.
fn errors(result: &Measurement) -> Option<u64> {
    let of = |class: &OperationFigures| class.errors.values().sum::<u64>();
    (!result.classes.is_empty()).then(|| result.classes.values().map(of).sum())
}

/// The load of a curve that a result is of.
fn point<'a>(record: &'a Record, result: &Measurement) -> Option<&'a CurvePoint> {
    record.nfs()?.curve.iter().find(|point| point.result == result.name)
}

fn median(summary: &Option<Summary>) -> Option<f64> {
    summary.as_ref().map(|summary| summary.median)
}

fn sender(result: &Measurement) -> &CpuCost {
    &result.cpu.sender
}

fn receiver(result: &Measurement) -> &CpuCost {
    &result.cpu.receiver
}
