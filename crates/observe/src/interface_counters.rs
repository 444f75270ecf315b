//! Counters of interfaces.

use crate::growth::growth;
use linerate_model::InterfaceCounters;
use linerate_sys::interface::Link;

/// The interfaces of `after` that had traffic or drops since `before`.
pub(crate) fn since(after: &[Link], before: &[Link]) -> Vec<InterfaceCounters> {
    let change = |now: &Link| {
        let then = before.iter().find(|then| then.index == now.index).map(|then| then.counters).unwrap_or_default();
        let now_counters = now.counters;
        InterfaceCounters {
            name: now.name.clone(),
            rx_packets: growth(then.rx_packets, now_counters.rx_packets),
            rx_bytes: growth(then.rx_bytes, now_counters.rx_bytes),
            rx_dropped: growth(then.rx_dropped, now_counters.rx_dropped),
            // linux/if_link.h: rx_errors holds the length, CRC, frame and FIFO errors, but not the frames missed.
            rx_errors: growth(then.rx_errors, now_counters.rx_errors)
                + growth(then.rx_missed_errors, now_counters.rx_missed_errors),
            rx_missed_errors: growth(then.rx_missed_errors, now_counters.rx_missed_errors),
            rx_fifo_errors: growth(then.rx_fifo_errors, now_counters.rx_fifo_errors)
                + growth(then.rx_over_errors, now_counters.rx_over_errors),
            rx_crc_errors: growth(then.rx_crc_errors, now_counters.rx_crc_errors)
                + growth(then.rx_frame_errors, now_counters.rx_frame_errors),
            rx_length_errors: growth(then.rx_length_errors, now_counters.rx_length_errors),
            tx_packets: growth(then.tx_packets, now_counters.tx_packets),
            tx_bytes: growth(then.tx_bytes, now_counters.tx_bytes),
            tx_dropped: growth(then.tx_dropped, now_counters.tx_dropped),
            // Holds all others of sending.
            tx_errors: growth(then.tx_errors, now_counters.tx_errors),
        }
    };
    let active = |change: &InterfaceCounters| {
        let InterfaceCounters { rx_packets, rx_dropped, rx_errors, tx_packets, tx_dropped, tx_errors, .. } = change;
        rx_packets + rx_dropped + rx_errors + tx_packets + tx_dropped + tx_errors > 0
    };
    after.iter().map(change).filter(active).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sys::interface::LinkCounters;

    fn link(index: u32, kind: &str) -> Link {
        Link { index, name: format!("if{index}"), kind: kind.into(), ..Link::default() }
    }

    #[test]
    fn counters_are_differences_and_idle_interfaces_are_left_out() {
        let counted = |link: &Link, rx_packets, rx_errors, rx_missed_errors| Link {
            counters: LinkCounters { rx_packets, rx_errors, rx_missed_errors, ..LinkCounters::default() },
            ..link.clone()
        };
        let (eth, idle, new) = (link(1, ""), link(2, ""), link(3, ""));
        let before = [counted(&eth, 10, 1, 2), counted(&idle, 99, 9, 9)];
        let after = [counted(&eth, 15, 2, 4), counted(&idle, 99, 9, 9), counted(&new, 7, 0, 0)];
        let changed = since(&after, &before);
        assert_eq!(changed.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["if1", "if3"]);
        assert_eq!((changed[0].rx_packets, changed[0].rx_errors, changed[1].rx_packets), (5, 3, 7));
    }
}
