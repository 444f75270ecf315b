//! What the counters of one host say that it dropped, by the places of a loss.

use linerate_model::{DriverCounter, InterfaceCounters, Observation, QdiscCounters};
use std::collections::BTreeMap;

/// A host's counters, as far as they concern what crosses one of its interfaces. Nothing was counted where the host was not watched
/// or its interface is not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostDrops<'a> {
    seen: Option<&'a Observation>,
    interface: Option<&'a str>,
}

impl<'a> HostDrops<'a> {
    pub(super) fn new(seen: Option<&'a Observation>, interface: Option<&'a String>) -> Self {
        Self { seen, interface: interface.map(String::as_str) }
    }

    /// Packets that the host's queue and NIC dropped on the way out of the interface.
    pub(super) fn sender_queue(self) -> u64 {
        let queue: u64 = self.qdiscs().filter(|qdisc| qdisc.root).map(|qdisc| qdisc.drops).sum();
        let nic: u64 = self.interfaces().map(|interface| interface.tx_dropped + interface.tx_errors).sum();
        queue + nic.max(self.driver_drops(|name| name.contains("tx")))
    }

    /// Packets that the host's NIC and input queue dropped on receipt. A drop of the kernel's input queue (softnet) is counted at the
    /// interface too, and there it belongs to one network namespace, so the interface's counter is the one to use.
    pub(super) fn receiver_queue(self) -> u64 {
        let whole = |interface: &InterfaceCounters| {
            interface.rx_dropped + interface.rx_errors.saturating_sub(interface.rx_crc_errors)
        };
        let nic: u64 = self.interfaces().map(whole).sum();
        let discards = self.seen.map_or(0, |seen| seen.network.ip.receive_discards);
        nic.max(self.driver_drops(|name| name.contains("rx") && !name.contains("tx"))) + discards
    }

    /// Frames that the NIC found damaged.
    pub(super) fn damaged_frames(self) -> u64 {
        self.interfaces().map(|interface| interface.rx_crc_errors).sum()
    }

    /// Packets that filters at the interface dropped: of `clsact` those on the way in and out together, as it counts them.
    pub(super) fn clsact(self) -> u64 {
        self.qdiscs().filter(|qdisc| qdisc.kind == "clsact").map(|qdisc| qdisc.drops).sum()
    }

    /// Packets that other filters at the interface dropped on the way in: policers of `ingress`, and XDP programs.
    pub(super) fn ingress(self) -> u64 {
        let ingress: u64 = self.qdiscs().filter(|qdisc| qdisc.kind == "ingress").map(|qdisc| qdisc.drops).sum();
        let of_xdp = |counter: &&DriverCounter| counter.name.contains("xdp_drop");
        ingress + self.most(self.driver_counters().filter(of_xdp))
    }

    /// Packets that the drivers dropped, by the statistics whose names `of_way` takes. Of names that count the same, the one that
    /// counted most. Not told are programs' verdicts, limits at which packets may wait, and damaged frames.
    fn driver_drops(self, of_way: impl Fn(&str) -> bool) -> u64 {
        const OTHERS: [&str; 3] = ["xdp", "exceeded", "crc_err"];
        let drops = |counter: &&DriverCounter| {
            let name = counter.name.to_ascii_lowercase();
            of_way(&name) && !OTHERS.iter().any(|other| name.contains(other))
        };
        self.most(self.driver_counters().filter(drops))
    }

    /// The largest of the counters. Those of several queues, whose names differ by their numbers alone, add up.
    fn most(self, counters: impl Iterator<Item = &'a DriverCounter>) -> u64 {
        let mut by_name = BTreeMap::<String, u64>::new();
        for counter in counters {
            let name = counter.name.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            *by_name.entry(name).or_default() += counter.count;
        }
        by_name.into_values().max().unwrap_or_default()
    }

    fn interfaces(self) -> impl Iterator<Item = &'a InterfaceCounters> {
        let all = self.seen.map_or(&[][..], |seen| &seen.interfaces);
        all.iter().filter(move |interface| Some(interface.name.as_str()) == self.interface)
    }

    fn qdiscs(self) -> impl Iterator<Item = &'a QdiscCounters> {
        let all = self.seen.map_or(&[][..], |seen| &seen.qdiscs);
        all.iter().filter(move |qdisc| Some(qdisc.interface.as_str()) == self.interface)
    }

    fn driver_counters(self) -> impl Iterator<Item = &'a DriverCounter> {
        let all = self.seen.map_or(&[][..], |seen| &seen.driver_counters);
        all.iter().filter(move |counter| Some(counter.interface.as_str()) == self.interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(interface: &str, name: &str, count: u64) -> DriverCounter {
        DriverCounter { interface: interface.into(), name: name.into(), count }
    }

    fn seen(interface: InterfaceCounters, driver_counters: Vec<DriverCounter>) -> Observation {
        let interface = InterfaceCounters { name: "eth0".into(), ..interface };
        Observation { interfaces: vec![interface], driver_counters, ..Observation::default() }
    }

    fn of(seen: &Observation) -> HostDrops<'_> {
        HostDrops { seen: Some(seen), interface: Some("eth0") }
    }

    #[test]
    fn what_a_driver_counts_under_several_names_counts_once() {
        let counters = vec![
            counter("eth0", "rx_queue_0_drops", 30),
            counter("eth0", "rx_queue_1_drops", 20),
            counter("eth0", "rx_out_of_buffer", 50),
            counter("eth0", "tx_queue_0_dropped", 4),
            counter("eth1", "rx_queue_0_drops", 999),
        ];
        let nothing = seen(InterfaceCounters::default(), counters.clone());
        assert_eq!((of(&nothing).receiver_queue(), of(&nothing).sender_queue()), (50, 4));
        let same = seen(
            InterfaceCounters { rx_errors: 50, rx_missed_errors: 50, tx_dropped: 7, ..Default::default() },
            counters,
        );
        assert_eq!((of(&same).receiver_queue(), of(&same).sender_queue()), (50, 7));
    }

    #[test]
    fn damaged_frames_and_what_programs_drop_are_not_of_the_queue() {
        let counters = vec![
            counter("eth0", "rx_queue_0_xdp_drops", 40),
            counter("eth0", "rx_crc_errors", 9),
            counter("eth0", "bw_in_allowance_exceeded", 77),
        ];
        let seen = seen(InterfaceCounters { rx_errors: 12, rx_crc_errors: 9, ..Default::default() }, counters);
        assert_eq!((of(&seen).receiver_queue(), of(&seen).damaged_frames(), of(&seen).ingress()), (3, 9, 40));
    }

    #[test]
    fn a_host_that_was_not_watched_counted_nothing() {
        let unknown = HostDrops::new(None, Some(&"eth0".to_owned())).receiver_queue();
        let seen = seen(InterfaceCounters { rx_dropped: 5, ..Default::default() }, Vec::new());
        assert_eq!((unknown, HostDrops::new(Some(&seen), None).receiver_queue()), (0, 0));
    }
}
