//! Tests of RFC 2889 other than those of address tables: tables, verdicts, caveats and rows of a CSV file.

use super::{cpu, csv_load, without_empty};
use crate::blocks::columns;
use crate::blocks::section::Entry;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, nanos, per_second, percent};
use crate::language::Language;
use crate::said;
use crate::wording::{firmness, sentence};
use linerate_model::{
    Caveat, Congestion, DeviceFound, DevicePlan, FaultOutcome, FaultResult, Firmness, ForwardPressure, Forwarding,
    FrameFault, PortPattern, Presence, Text, Verdict, text,
};
use std::collections::BTreeMap;

/// Columns that [`csv_rows`] adds to those of every device test.
pub(crate) const CSV_COLUMNS: [&str; 8] =
    ["port", "intended_frames_per_s", "flooded", "misforwarded", "head_of_line", "back_pressure", "fault", "outcome"];

/// Returns the tables of all tests that were made.
pub(crate) fn tables(lang: Language, plan: &DevicePlan, outcome: &DeviceFound) -> Vec<Table> {
    [
        forwarding(lang, plan, outcome),
        loads(lang, outcome),
        congestion(lang, outcome),
        groups(lang, outcome),
        forward_pressure(lang, outcome),
        faults(lang, outcome),
        broadcast(lang, outcome),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the section of RFC 2889 that a pattern belongs to.
fn section(pattern: PortPattern) -> &'static str {
    match pattern {
        PortPattern::FullMesh | PortPattern::Pairs => "5.1",
        PortPattern::OneToMany | PortPattern::ManyToOne => "5.2",
        PortPattern::Backbone => "5.3",
        PortPattern::Unidirectional => "5.4",
    }
}

fn forwarding(lang: Language, plan: &DevicePlan, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!(
            "column-forwarding-throughput",
            "throughput",
            "the highest load without loss, frames/s, all ports together"
        ),
        columns::FRMOL,
        columns::MOL.ranked(2),
        columns::MFR,
        column!("column-mfr-at", "MFR at", "offered load at the maximum forwarding rate, frames/s").ranked(1),
    ];
    let row = |found: &Forwarding| {
        let throughput = found.throughput_frames_per_s.and_then(per_second);
        vec![
            Some(found.frame_bytes.to_string()),
            throughput.map(|rate| firmness::shown(rate, throughput_firmness(outcome, found.frame_bytes))),
            found.at_maximum_load_frames_per_s.and_then(per_second),
            found.maximum_load_frames_per_s.and_then(per_second),
            per_second(found.maximum_frames_per_s).map(|rate| firmness::shown(rate, found.firmness)),
            per_second(found.maximum_at_frames_per_s),
        ]
    };
    let caption = said!(
        lang,
        "switching-caption-forwarding",
        "Forwarding rates, {pattern} (RFC 2889 section {section})",
        pattern = plan.pattern.name(),
        section = section(plan.pattern)
    );
    Table::filled(caption, columns, outcome.forwarding.iter().map(row).collect())
}

fn throughput_firmness(outcome: &DeviceFound, frame_bytes: u32) -> Firmness {
    let throughput = outcome.throughput.iter().find(|cell| cell.frame_bytes == frame_bytes);
    throughput.map_or(Firmness::Firm, |cell| cell.firmness)
}

fn loads(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!(
            "column-frame-iload",
            "frame, Iload",
            "bytes of a frame, and intended load in frames/s, all ports together"
        ),
        columns::OLOAD,
        columns::FORWARDING_RATE,
        column!("column-forwarding-lost", "lost", "share of the frames sent that did not arrive"),
        column!("column-flood-count", "flooded", "frames received at other ports than their own").ranked(1),
        column!("column-misforwarded", "misforwarded", "frames that can have arrived at a wrong port only, at most")
            .ranked(2),
        columns::DEVICE_CPU,
    ];
    let mut rows = Vec::new();
    for found in &outcome.forwarding {
        for point in &found.points {
            let intended = per_second(point.intended_frames_per_s).unwrap_or_default();
            let lost = point.sent.saturating_sub(point.received) as f64 / point.sent.max(1) as f64;
            rows.push(vec![
                Some(format!("{}, {intended}", found.frame_bytes)),
                per_second(point.offered_frames_per_s).map(|rate| firmness::shown(rate, point.firmness)),
                per_second(point.forwarded_frames_per_s),
                percent(lost),
                Some(grouped(point.flooded)),
                Some(grouped(point.misforwarded)),
                point.device_load.as_ref().and_then(cpu),
            ]);
        }
    }
    let table =
        Table::filled(said!(lang, "switching-caption-loads", "Forwarding rate by offered load"), columns, rows)?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

fn presence(lang: Language, presence: Presence) -> String {
    const PRESENT: &Text = text!("presence-present", "present");
    const ABSENT: &Text = text!("presence-absent", "absent");
    const OPEN: &Text = text!("presence-cannot-tell", "cannot tell");
    lang.text(match presence {
        Presence::Present => PRESENT,
        Presence::Absent => ABSENT,
        Presence::CannotTell => OPEN,
    })
}

fn congestion(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!("column-head-of-line", "head of line", "head-of-line blocking: loss at the uncongested port"),
        column!("column-back-pressure", "back pressure", "the device slows its senders down instead of losing frames"),
        columns::DEVICE_CPU,
    ];
    let row = |found: &Congestion| {
        vec![
            Some(found.frame_bytes.to_string()),
            Some(firmness::shown(presence(lang, found.head_of_line), found.firmness)),
            Some(firmness::shown(presence(lang, found.back_pressure), found.firmness)),
            found.device_load.as_ref().and_then(cpu),
        ]
    };
    let caption = said!(lang, "switching-caption-congestion", "Congestion control (RFC 2889 section 5.5)");
    let table = Table::filled(caption, columns, outcome.congestion.iter().map(row).collect())?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

fn groups(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!("column-frame-port", "frame, port", "bytes of a frame, and the receiving port"),
        columns::SENT,
        column!("column-switching-received", "received", "frames received"),
        column!("column-switching-lost", "lost", "share of the frames sent that did not arrive"),
        column!("column-switching-rate", "FR", "forwarding rate at the port, frames/s"),
        column!("column-paused", "paused", "share of the time for which PAUSE frames stopped a sender").ranked(1),
    ];
    let mut rows = Vec::new();
    for found in &outcome.congestion {
        for group in &found.groups {
            let uncongested = said!(lang, "switching-uncongested", "{port}, uncongested", port = group.uncongested);
            let congested = said!(lang, "switching-congested", "{port}, congested", port = group.congested);
            for (port, sent, received, rate) in [
                (uncongested, group.uncongested_sent, group.uncongested_received, group.uncongested_frames_per_s),
                (congested, group.congested_sent, group.congested_received, group.congested_frames_per_s),
            ] {
                rows.push(vec![
                    Some(format!("{}, {port}", found.frame_bytes)),
                    Some(grouped(sent)),
                    Some(grouped(received)),
                    percent(sent.saturating_sub(received) as f64 / sent.max(1) as f64),
                    per_second(rate),
                    percent(group.paused_share),
                ]);
            }
        }
    }
    Table::filled(said!(lang, "switching-caption-groups", "Ports of the congestion test"), columns, rows)
}

fn forward_pressure(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!(
            "column-forward-pressure",
            "forward pressure",
            "whether the device forwards more than the medium allows"
        ),
        column!("column-pressure-line", "line", "frames/s that the medium allows"),
        column!("column-pressure-offered", "offered", "frames/s that were offered, all senders together"),
        column!("column-pressure-forwarded", "forwarded", "frames/s that the device forwarded"),
        columns::DEVICE_CPU,
        column!("column-senders", "senders", "sending ports").ranked(1),
    ];
    let row = |found: &ForwardPressure| {
        vec![
            Some(found.frame_bytes.to_string()),
            Some(presence(lang, found.presence)),
            per_second(found.line_frames_per_s),
            per_second(found.offered_frames_per_s),
            per_second(found.forwarded_frames_per_s),
            found.device_load.as_ref().and_then(cpu),
            Some(found.senders.to_string()),
        ]
    };
    let caption = said!(lang, "switching-caption-pressure", "Forward pressure (RFC 2889 section 5.6)");
    let table = Table::filled(caption, columns, outcome.forward_pressure.iter().map(row).collect())?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

fn fault_name(lang: Language, fault: FrameFault) -> String {
    lang.text(match fault {
        FrameFault::Oversize => text!("fault-oversize", "oversize"),
        FrameFault::Undersize => text!("fault-undersize", "undersize"),
        FrameFault::Crc => text!("fault-crc", "CRC error"),
        FrameFault::Alignment => text!("fault-alignment", "alignment error"),
        FrameFault::DribbleBits => text!("fault-dribble-bits", "dribble bits"),
    })
}

fn outcome_name(outcome: &FaultOutcome) -> &'static str {
    match outcome {
        FaultOutcome::Pass => "pass",
        FaultOutcome::Fail => "fail",
        FaultOutcome::NotTestable { .. } => "not-testable",
    }
}

fn faults(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!("column-fault", "error", "kind of error of the frames"),
        column!("column-fault-outcome", "result", "pass: the device dropped the frames, as the RFC asks"),
        columns::SENT,
        column!("column-fault-forwarded", "forwarded", "frames that the device forwarded"),
        column!("column-fault-cable", "on cable", "share of such frames that arrived over a cable").ranked(1),
        column!("column-fault-why", "reason", "reason for no result").ranked(2),
    ];
    let row = |found: &FaultResult| {
        let result = match &found.outcome {
            FaultOutcome::Pass => said!(lang, "fault-pass", "pass"),
            FaultOutcome::Fail => said!(lang, "fault-fail", "fail"),
            FaultOutcome::NotTestable { .. } => said!(lang, "fault-not-testable", "not testable"),
        };
        let why = match &found.outcome {
            FaultOutcome::NotTestable { why } => Some(lang.message(why)),
            _ => None,
        };
        vec![
            Some(fault_name(lang, found.fault)),
            Some(result),
            Some(grouped(found.sent)),
            Some(grouped(found.received)),
            found.cable_share.and_then(percent),
            why,
        ]
    };
    let caption = said!(lang, "switching-caption-faults", "Errored frames (RFC 2889 section 5.9)");
    Table::filled(caption, columns, outcome.faults.iter().map(row).collect())
}

fn broadcast(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!("column-frame-receiver", "frame, port", "bytes of a frame, and the receiving port"),
        column!("column-broadcast-rate", "rate", "the highest rate at which every port received every frame, frames/s"),
        column!("column-broadcast-received", "received", "frames received in the trial that decided"),
        column!("column-broadcast-latency", "latency", "latency of a single frame"),
        columns::DEVICE_CPU,
    ];
    let mut rows = Vec::new();
    for found in &outcome.broadcast {
        for port in &found.ports {
            rows.push(vec![
                Some(format!("{}, {}", found.frame_bytes, port.port)),
                per_second(found.frames_per_s).map(|rate| firmness::shown(rate, found.firmness)),
                Some(grouped(port.received)),
                port.latency_ns.map(nanos),
                found.device_load.as_ref().and_then(cpu),
            ]);
        }
    }
    let caption = said!(lang, "switching-caption-broadcast", "Broadcasts (RFC 2889 section 5.10)");
    Some(without_empty(Table::filled(caption, columns, rows)?, &columns::DEVICE_CPU))
}

/// Returns the findings in words.
pub(crate) fn entries(lang: Language, outcome: &DeviceFound) -> Vec<Entry> {
    let mut all = Vec::new();
    for found in &outcome.congestion {
        all.push(finding(lang, found.frame_bytes, &found.verdict));
    }
    for found in &outcome.forward_pressure {
        all.push(finding(lang, found.frame_bytes, &found.verdict));
    }
    for found in &outcome.faults {
        if let FaultOutcome::NotTestable { why } = &found.outcome {
            all.push(Entry::new(fault_name(lang, found.fault), vec![sentence(&lang.message(why))]));
        }
    }
    all
}

fn finding(lang: Language, bytes: u32, verdict: &Verdict) -> Entry {
    let evidence = verdict.evidence.iter().chain(&verdict.next);
    let name = said!(lang, "overview-frames", "{bytes}-byte frames", bytes = bytes);
    Entry::new(name, evidence.map(|message| sentence(&lang.message(message))).collect())
}

/// Returns each verdict with the name of its result.
pub(crate) fn verdicts(lang: Language, outcome: &DeviceFound) -> Vec<(String, &Verdict)> {
    let mut all = Vec::new();
    for found in &outcome.forwarding {
        let name =
            said!(lang, "device-verdict-loss", "highest load, {frame_bytes} bytes", frame_bytes = found.frame_bytes);
        all.extend(found.verdict.as_ref().map(|verdict| (name, verdict)));
    }
    for found in &outcome.congestion {
        let bytes = found.frame_bytes;
        all.push((
            said!(lang, "switching-verdict-congestion", "congestion, {bytes} bytes", bytes = bytes),
            &found.verdict,
        ));
    }
    for found in &outcome.forward_pressure {
        let bytes = found.frame_bytes;
        all.push((
            said!(lang, "switching-verdict-pressure", "forward pressure, {bytes} bytes", bytes = bytes),
            &found.verdict,
        ));
    }
    all
}

/// Returns the caveats of every result.
pub(crate) fn caveats(outcome: &DeviceFound) -> impl Iterator<Item = &Caveat> {
    let forwarding = outcome.forwarding.iter().flat_map(|found| &found.caveats);
    let congestion = outcome.congestion.iter().flat_map(|found| &found.caveats);
    let pressure = outcome.forward_pressure.iter().flat_map(|found| &found.caveats);
    let broadcast = outcome.broadcast.iter().flat_map(|found| &found.caveats);
    forwarding.chain(congestion).chain(pressure).chain(broadcast)
}

/// Returns rows of a CSV file by column; those that are not named are empty.
pub(crate) fn csv_rows(outcome: &DeviceFound) -> Vec<BTreeMap<&'static str, String>> {
    let mut rows = Vec::new();
    for found in &outcome.forwarding {
        for point in &found.points {
            let mut row = BTreeMap::from([
                ("test", "forwarding".to_owned()),
                ("frame_bytes", found.frame_bytes.to_string()),
                ("intended_frames_per_s", point.intended_frames_per_s.to_string()),
                ("frames_per_s", point.forwarded_frames_per_s.to_string()),
                ("sent", point.sent.to_string()),
                ("received", point.received.to_string()),
                ("flooded", point.flooded.to_string()),
                ("misforwarded", point.misforwarded.to_string()),
            ]);
            row.extend(csv_load(point.device_load.as_ref()));
            row.extend(firmness::csv(point.firmness));
            rows.push(row);
        }
    }
    for found in &outcome.congestion {
        for group in &found.groups {
            for (port, sent, received) in [
                (&group.uncongested, group.uncongested_sent, group.uncongested_received),
                (&group.congested, group.congested_sent, group.congested_received),
            ] {
                let mut row = BTreeMap::from([
                    ("test", "congestion".to_owned()),
                    ("frame_bytes", found.frame_bytes.to_string()),
                    ("port", port.clone()),
                    ("sent", sent.to_string()),
                    ("received", received.to_string()),
                    ("head_of_line", presence_name(found.head_of_line).to_owned()),
                    ("back_pressure", presence_name(found.back_pressure).to_owned()),
                ]);
                row.extend(csv_load(found.device_load.as_ref()));
                row.extend(firmness::csv(found.firmness));
                rows.push(row);
            }
        }
    }
    for found in &outcome.forward_pressure {
        let mut row = BTreeMap::from([
            ("test", "forward-pressure".to_owned()),
            ("frame_bytes", found.frame_bytes.to_string()),
            ("intended_frames_per_s", found.offered_frames_per_s.to_string()),
            ("frames_per_s", found.forwarded_frames_per_s.to_string()),
            ("line_frames_per_s", found.line_frames_per_s.to_string()),
            ("outcome", presence_name(found.presence).to_owned()),
        ]);
        row.extend(csv_load(found.device_load.as_ref()));
        rows.push(row);
    }
    for found in &outcome.faults {
        rows.push(BTreeMap::from([
            ("test", "errors".to_owned()),
            ("fault", found.fault.name().to_owned()),
            ("sent", found.sent.to_string()),
            ("received", found.received.to_string()),
            ("outcome", outcome_name(&found.outcome).to_owned()),
        ]));
    }
    for found in &outcome.broadcast {
        for port in &found.ports {
            let mut row = BTreeMap::from([
                ("test", "broadcast".to_owned()),
                ("frame_bytes", found.frame_bytes.to_string()),
                ("frames_per_s", found.frames_per_s.to_string()),
                ("port", port.port.clone()),
                ("received", port.received.to_string()),
                ("latency_ns_p50", port.latency_ns.map(|latency| latency.to_string()).unwrap_or_default()),
            ]);
            row.extend(csv_load(found.device_load.as_ref()));
            row.extend(firmness::csv(found.firmness));
            rows.push(row);
        }
    }
    rows
}

fn presence_name(presence: Presence) -> &'static str {
    match presence {
        Presence::Present => "present",
        Presence::Absent => "absent",
        Presence::CannotTell => "cannot-tell",
    }
}
