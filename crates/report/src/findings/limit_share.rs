//! Results that come near what their medium can carry.

use super::data::Data;
use super::words::{range, share, value};
use super::{bound, finding};
use crate::figures::grouped;
use linerate_model::{CellLimit, Finding, FindingKind, MeasureUnit, Transport};

/// From this share of the limit on a result is worth a sentence.
const NEAR: f64 = 0.95;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let best = |cells: &[usize]| {
        let limits = cells.iter().filter_map(|cell| data.limit(*cell, measure));
        limits.filter(|limit| limit.share <= 1.0).max_by(|a, b| a.share.total_cmp(&b.share))
    };
    data.groups(data.gathered_by(), measure)
        .iter()
        .filter_map(|group| {
            let limit = best(&group.cells).filter(|limit| limit.share >= NEAR)?;
            // Results that are printed alike are one.
            let shown = |cell: usize| {
                data.value(cell, measure).map(|reached| value(reached, data.study.measures[measure].unit))
            };
            let as_good: Vec<usize> =
                group.cells.iter().copied().filter(|cell| shown(*cell) == shown(limit.cell)).collect();
            of_limit(data, measure, limit, &as_good)
        })
        .collect()
}

fn of_limit(data: &Data<'_>, measure: usize, limit: CellLimit, as_good: &[usize]) -> Option<Finding> {
    let named = &data.study.measures[measure];
    let path = data.path(limit.cell, measure);
    let medium = path.medium?;
    let reached = value(data.value(limit.cell, measure)?, named.unit);
    let most = range(limit.low, limit.high, named.unit);
    let (of, sizes) = match named.unit {
        MeasureUnit::PerS => {
            ("at line rate".to_owned(), path.frame_bytes.map(|frame| format!("frames of {} bytes", frame.get())))
        }
        MeasureUnit::BitsPerS => {
            let counted = named
                .counts
                .map_or_else(|| "from payload to frames with their FCS".to_owned(), |layer| format!("as {layer}"));
            let bytes: Vec<String> = path.message_bytes.iter().map(|bytes| grouped(*bytes)).collect();
            let sizes =
                (path.transport == Some(Transport::Udp)).then(|| format!("messages of {} bytes", bytes.join(" or ")));
            (counted, sizes)
        }
        // Latency and loss have no limit.
        MeasureUnit::Nanos | MeasureUnit::Share => return None,
    };
    let mtu = path.mtu.unwrap_or(medium.mtu());
    let text = format!(
        "{reached} ({}) is {} of the {most} that {medium} can carry.",
        as_good.iter().map(|cell| data.cell_name(*cell, &[])).collect::<Vec<_>>().join("; "),
        share(limit.share)
    );
    let sizes = sizes.map_or_else(String::new, |sizes| format!(", {sizes}"));
    let at_least = limit.share < data.value(limit.cell, measure)? / limit.low;
    let against = if at_least { "; the share is that of the higher end" } else { "" };
    let mtu =
        if named.unit == MeasureUnit::BitsPerS { format!(", MTU {}", grouped(u64::from(mtu))) } else { String::new() };
    let evidence = bound(format!("{medium} carries {most} ({of}{sizes}{mtu}){against}."));
    Some(finding(FindingKind::LimitShare, text, vec![evidence]))
}
