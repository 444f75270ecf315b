//! Results that come near what their medium can carry.

use super::data::Data;
use super::words::{either, share, with_semicolons};
use super::{bound, finding};
use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::CellLimit;
use linerate_model::{MeasureUnit, Transport};
use linerate_report::parts::values::{range, value};
use linerate_report::parts::wording::in_a_row;
use linerate_report::said;
use linerate_units::grouped;

/// From this share of the limit on a result is worth a sentence.
const NEAR: f64 = 0.95;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let best = |cells: &[usize]| {
        // A value that is stated as about a number is no share of anything to a tenth of a percent.
        let numbers = cells.iter().filter(|cell| data.stated(**cell, measure).is_none());
        let limits = numbers.filter_map(|cell| data.limit(*cell, measure));
        limits.filter(|limit| limit.share <= 1.0).max_by(|a, b| a.share.total_cmp(&b.share))
    };
    let mut nearest: Vec<(f64, Finding)> = Vec::new();
    for group in data.groups(data.gathered_by(), measure) {
        let Some(limit) = best(&group.cells).filter(|limit| limit.share >= NEAR) else { continue };
        // Results that are printed alike are one.
        let shown =
            |cell: usize| data.value(cell, measure).map(|reached| value(reached, data.study.measures[measure].unit));
        let limit_of = |cell: usize| data.limit(cell, measure).map(|limit| (limit.low, limit.high));
        let is_alike = |cell: &usize| shown(*cell) == shown(limit.cell) && limit_of(*cell) == limit_of(limit.cell);
        let as_good: Vec<usize> = group.cells.iter().copied().filter(is_alike).collect();
        nearest.extend(of_limit(data, measure, limit, &as_good).map(|finding| (limit.share, finding)));
    }
    nearest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    one_finding(nearest.into_iter().map(|(_, finding)| finding).collect()).into_iter().collect()
}

/// Joins the findings of several media, the nearest to its limit first.
fn one_finding(findings: Vec<Finding>) -> Option<Finding> {
    let texts: Vec<String> = findings.iter().map(|one| one.text.clone()).collect();
    let evidence: Vec<Evidence> = findings.into_iter().flat_map(|one| one.evidence).collect();
    (!texts.is_empty()).then(|| finding(FindingKind::LimitShare, in_a_row(&texts), evidence))
}

fn of_limit(data: &Data<'_>, measure: usize, limit: CellLimit, as_good: &[usize]) -> Option<Finding> {
    let named = &data.study.measures[measure];
    let path = data.path(limit.cell, measure);
    let medium = path.medium?;
    let reached = data.shown(limit.cell, measure)?;
    let most = range(data.lang, limit.low, limit.high, named.unit);
    let (of, sizes) = match named.unit {
        MeasureUnit::PerS => {
            let frames = path.frame_bytes;
            let sizes = frames.map(|frame| {
                said!(data.lang, "findings-limit-share-frames", ", frames of {bytes} bytes", bytes = frame.get())
            });
            (said!(data.lang, "findings-limit-share-at-line-rate", "at line rate"), sizes)
        }
        MeasureUnit::BitsPerS => {
            let counted = match named.counts {
                None => said!(data.lang, "findings-limit-share-from-payload", "from payload to frames with their FCS"),
                Some(layer) => {
                    said!(data.lang, "findings-limit-share-as", "as {layer}", layer = data.lang.text(layer.text()))
                }
            };
            let bytes: Vec<String> = path.message_bytes.iter().map(|bytes| grouped(*bytes)).collect();
            let messages = || {
                said!(
                    data.lang,
                    "findings-limit-share-messages",
                    ", messages of {bytes} bytes",
                    bytes = either(data.lang, &bytes)
                )
            };
            let sizes = (path.transport == Some(Transport::Udp)).then(messages);
            (counted, sizes)
        }
        // Latency and loss have no limit.
        MeasureUnit::Nanos | MeasureUnit::NanosHeld | MeasureUnit::Times | MeasureUnit::Share | MeasureUnit::Count => {
            return None;
        }
    };
    let mtu = path.mtu.unwrap_or(medium.mtu());
    let names = with_semicolons(data.lang, &as_good.iter().map(|cell| data.cell_name(*cell, &[])).collect::<Vec<_>>());
    let text = said!(
        data.lang,
        "findings-limit-share-is-of",
        "{reached} ({names}) is {share} of the {most} that {medium} can carry.",
        reached = reached,
        names = names,
        share = share(limit.share),
        most = most,
        medium = medium
    );
    let at_least = limit.low < limit.high;
    let against = if at_least {
        said!(data.lang, "findings-limit-share-of-the-higher-end", "; the share is that of the higher end")
    } else {
        String::new()
    };
    let mtu = if named.unit == MeasureUnit::BitsPerS {
        said!(data.lang, "findings-limit-share-mtu", ", MTU {mtu}", mtu = grouped(u64::from(mtu)))
    } else {
        String::new()
    };
    let evidence = bound(said!(
        data.lang,
        "findings-limit-share-carries",
        "{medium} carries {most} ({of}{sizes}{mtu}){against}.",
        medium = medium,
        most = most,
        of = of,
        sizes = sizes.unwrap_or_default(),
        mtu = mtu,
        against = against
    ));
    Some(finding(FindingKind::LimitShare, text, vec![evidence]))
}
