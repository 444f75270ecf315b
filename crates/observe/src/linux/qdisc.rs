//! What queueing disciplines did during the window.

use crate::growth::{growth, growth_32};
use linerate_model::QdiscCounters;
use linerate_sys::interface::Qdisc;
use std::collections::BTreeMap;

/// The disciplines of `after` that had traffic or drops since `before`; `names` are the interfaces' by number.
pub(crate) fn since(after: &[Qdisc], before: &[Qdisc], names: &BTreeMap<u32, String>) -> Vec<QdiscCounters> {
    let seat = |qdisc: &Qdisc| (qdisc.link, qdisc.parent, qdisc.handle);
    let idle = Qdisc::default();
    let change = |now: &Qdisc| {
        let then = before.iter().find(|then| seat(then) == seat(now) && then.kind == now.kind).unwrap_or(&idle);
        Some(QdiscCounters {
            interface: names.get(&now.link)?.clone(),
            kind: now.kind.clone(),
            root: now.root(),
            packets: growth(then.packets, now.packets),
            bytes: growth(then.bytes, now.bytes),
            // struct gnet_stats_queue has 32 bits for these.
            drops: growth_32(then.drops, now.drops),
            overlimits: growth_32(then.overlimits, now.overlimits),
            backlog_packets: now.backlog_packets,
        })
    };
    let active = |change: &QdiscCounters| {
        change.packets + change.bytes + change.drops + change.overlimits + change.backlog_packets > 0
    };
    after.iter().filter_map(change).filter(active).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_only_what_was_active_and_a_new_one_from_zero() {
        let tbf = Qdisc { link: 2, handle: 1 << 16, parent: u32::MAX, kind: "tbf".into(), ..Qdisc::default() };
        let before = [
            Qdisc { packets: 10, bytes: 1000, drops: u64::from(u32::MAX), ..tbf.clone() },
            Qdisc { link: 3, packets: 9, ..tbf.clone() },
            Qdisc { link: 4, packets: 9, drops: 9, ..tbf.clone() },
        ];
        let after = [
            Qdisc { packets: 15, bytes: 1500, drops: 1, backlog_packets: 3, ..tbf.clone() },
            before[1].clone(),
            // Replaced meanwhile by another kind under the same number.
            Qdisc { link: 4, packets: 2, kind: "fq".into(), parent: 7, ..tbf.clone() },
            Qdisc { link: 5, packets: 2, ..tbf },
        ];
        let names = [(2, "eth0"), (3, "eth1"), (4, "eth2")].map(|(link, name)| (link, name.to_owned())).into();
        let counters = since(&after, &before, &names);
        let expected = [
            QdiscCounters {
                interface: "eth0".into(),
                kind: "tbf".into(),
                root: true,
                packets: 5,
                bytes: 500,
                drops: 2,
                overlimits: 0,
                backlog_packets: 3,
            },
            QdiscCounters { interface: "eth2".into(), kind: "fq".into(), packets: 2, ..QdiscCounters::default() },
        ];
        assert_eq!(counters, expected);
    }
}
