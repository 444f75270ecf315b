//! How full the bus of an interface's card was, where its slot is slower than its link.

use linerate_model::{Bus, Host, HostName, InterfaceCounters, Nic, Observation};

/// Bytes of a frame that an interface does not count: the FCS.
const FCS: u64 = 4;
/// What a frame takes on an Ethernet wire beside its bytes: preamble 8, gap 12.
const AROUND: u64 = 20;

/// A bus that carries less than the link of its card, and what of it was used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BusUse {
    /// The card's host.
    pub(crate) host: HostName,
    /// Its interface.
    pub(crate) interface: String,
    pub(crate) bus: Bus,
    /// What the card could use in a better slot.
    pub(crate) card: Option<Bus>,
    /// Mean bytes of a frame, with FCS.
    pub(crate) frame_bytes: u64,
    /// The frames counted, as a share of the most that the bus could carry of that size.
    pub(crate) share: f64,
}

impl BusUse {
    /// The fullest bus of `host` in a time of so many seconds, in the direction of the data; none if no slot is slower than its link.
    pub(crate) fn of(host: &Host, seen: &Observation, sends: bool, seconds: f64) -> Option<Self> {
        let each = host.nics.iter().filter_map(|nic| {
            let counted = seen.carried.iter().find(|counted| counted.name == nic.name)?;
            Self::of_nic(&host.name, nic, counted, sends, seconds)
        });
        each.max_by(|l, r| l.share.total_cmp(&r.share))
    }

    fn of_nic(host: &HostName, nic: &Nic, counted: &InterfaceCounters, sends: bool, seconds: f64) -> Option<Self> {
        let (slot, speed) = (nic.slot?, nic.speed?);
        let (sent, received) = ((counted.tx_packets, counted.tx_bytes), (counted.rx_packets, counted.rx_bytes));
        let (packets, bytes) = match (slot.bus.is_shared(), sends) {
            (true, _) => (sent.0 + received.0, sent.1 + received.1),
            (false, true) => sent,
            (false, false) => received,
        };
        let frame_bytes = bytes.checked_div(packets)? + FCS;
        let most = slot.bus.frames_per_s(frame_bytes);
        let of_link = speed.get() as f64 / ((frame_bytes + AROUND) * 8) as f64;
        (most < of_link && seconds > 0.0).then(|| Self {
            host: host.clone(),
            interface: nic.name.clone(),
            bus: slot.bus,
            card: slot.card.filter(|card| *card != slot.bus),
            frame_bytes,
            share: packets as f64 / seconds / most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Slot;
    use linerate_units::Nanos;

    fn used(speed: u64, bus: &str, sent: u64, received: u64) -> Option<BusUse> {
        let mut host = crate::measure::tests::host("a", Some(speed));
        let bus = bus.parse().expect("a bus");
        host.nics[0].slot = Some(Slot { bus, card: None, numa_node: None });
        let counted = InterfaceCounters {
            name: host.nics[0].name.clone(),
            tx_packets: sent,
            tx_bytes: sent * 1_514,
            rx_packets: received,
            rx_bytes: received * 1_514,
            ..InterfaceCounters::default()
        };
        let seen = Observation { window: Nanos::from_secs(1), carried: vec![counted], ..Observation::default() };
        BusUse::of(&host, &seen, true, 1.0)
    }

    #[test]
    fn only_a_slot_slower_than_its_link_counts() {
        let narrow = used(10_000_000_000, "pcie-1-x1", 140_000, 140_000).expect("2 Gbit/s under a link of 10");
        assert_eq!(narrow.frame_bytes, 1_518);
        assert!((narrow.share - 140_000.0 / (250e6 / 1_634.0)).abs() < 1e-9, "{narrow:?}");
        assert_eq!(used(1_000_000_000, "pcie-1-x1", 80_000, 0), None);
        assert_eq!(used(10_000_000_000, "pcie-1-x1", 0, 0), None, "nothing was carried");
    }

    /// Both directions take turns on PCI.
    #[test]
    fn both_directions_count_on_a_shared_bus() {
        let share = |received| used(10_000_000_000, "pci-32-33", 40_000, received).expect("slower than its link").share;
        assert!((share(40_000) / share(0) - 2.0).abs() < 1e-9);
    }
}
