//! Statistics of drivers that count drops (`ethtool -S`).

use crate::growth::growth;
use linerate_model::DriverCounter;
use linerate_sys::ethtool::Ethtool;
use linerate_sys::interface::Link;

/// Interfaces that are looked at. Each takes two calls, and NICs take a while to answer.
const INTERFACES: usize = 16;

/// The drivers' statistics that count drops, of the interfaces that were up when they were opened.
pub(crate) struct DriverStatistics {
    ethtool: Option<Ethtool>,
    interfaces: Vec<Statistics>,
}

/// Statistics of one interface to read: their number among all, and their names.
struct Statistics {
    interface: String,
    wanted: Vec<(usize, String)>,
}

/// The values of the statistics wanted, by interface; none of one that did not answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct DriverTotals(Vec<Option<Vec<u64>>>);

impl DriverStatistics {
    /// Finds the statistics of NICs, then those of virtual links.
    pub(crate) fn open(links: &[Link]) -> Self {
        let ethtool = Ethtool::open().ok();
        let of_kind =
            |kind: &'static str| links.iter().filter(move |link| link.kind == kind && link.up && !link.loopback);
        let statistics = |link: &Link| {
            let names = ethtool.as_ref()?.statistic_names(&link.name).ok()?;
            let wanted: Vec<_> = names.into_iter().enumerate().filter(|(_, name)| counts_drops(name)).collect();
            (!wanted.is_empty()).then(|| Statistics { interface: link.name.clone(), wanted })
        };
        let interfaces = of_kind("").chain(of_kind("veth")).take(INTERFACES).filter_map(statistics).collect();
        Self { ethtool, interfaces }
    }

    /// Reads the statistics.
    pub(crate) fn read(&self) -> DriverTotals {
        let values = |statistics: &Statistics| {
            let all = self.ethtool.as_ref()?.statistics(&statistics.interface).ok()?;
            statistics.wanted.iter().map(|(at, _)| all.get(*at).copied()).collect()
        };
        DriverTotals(self.interfaces.iter().map(values).collect())
    }

    /// Returns the statistics that grew between two readings.
    pub(crate) fn since(&self, after: &DriverTotals, before: &DriverTotals) -> Vec<DriverCounter> {
        let mut grown = Vec::new();
        for (statistics, (now, then)) in self.interfaces.iter().zip(after.0.iter().zip(&before.0)) {
            let (Some(now), Some(then)) = (now, then) else { continue };
            for ((_, name), (now, then)) in statistics.wanted.iter().zip(now.iter().zip(then)) {
                let count = growth(*then, *now);
                if count > 0 {
                    grown.push(DriverCounter { interface: statistics.interface.clone(), name: name.clone(), count });
                }
            }
        }
        grown
    }
}

/// Returns whether a statistic counts packets that were lost, or held back by a limit of the NIC (as clouds have), by
/// its name: each driver has its own.
fn counts_drops(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "drop",
        "discard",
        "miss",
        "no_buf",
        "nobuf",
        "out_of_buf",
        "fifo",
        "overrun",
        "overflow",
        "exceeded",
        "crc_err",
        "alloc_fail",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_that_count_drops_are_known_by_their_names() {
        for name in [
            "rx_queue_0_drops",
            "rx_xdp_drop",
            "rx_missed_errors",
            "rx_no_buffer_count",
            "rx_out_of_buffer",
            "port.rx_discards",
            "rx_fifo_errors",
            "bw_in_allowance_exceeded",
            "rx_crc_errors",
            "rx0_alloc_fail",
        ] {
            assert!(counts_drops(name), "{name}");
        }
        for name in ["rx_packets", "tx_queue_0_bytes", "peer_ifindex", "rx_queue_0_xdp_packets"] {
            assert!(!counts_drops(name), "{name}");
        }
    }

    #[test]
    fn only_what_grew_is_listed_and_an_interface_that_did_not_answer_is_left_out() {
        let of = |interface: &str| Statistics {
            interface: interface.into(),
            wanted: vec![(3, "rx_queue_0_drops".into()), (9, "rx_queue_1_drops".into())],
        };
        let statistics = DriverStatistics { ethtool: None, interfaces: vec![of("eth0"), of("eth1")] };
        let (before, after) = (vec![Some(vec![5, 7]), Some(vec![1, 1])], vec![Some(vec![5, 17]), None]);
        let grown = statistics.since(&DriverTotals(after), &DriverTotals(before));
        assert_eq!(grown, [DriverCounter { interface: "eth0".into(), name: "rx_queue_1_drops".into(), count: 10 }]);
    }
}
