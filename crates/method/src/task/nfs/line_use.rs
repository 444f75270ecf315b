//! How full the line was of NFS operations, which are of all sizes and go both ways: by the counters of the interfaces.

use crate::measure::PathFacts;
use crate::statistics::summary;
use crate::transfer::{Transfer, rate, transfers};
use linerate_model::{EndCounts, HostName, NfsTask, PathLimit, TrialResult};
use linerate_units::BitRate;

/// What a frame takes on an Ethernet wire beside the bytes that an interface counts: FCS 4, preamble 8, gap 12.
const UNCOUNTED: u64 = 24;

/// Returns the line with its capacity in transfers, and the share of it that the busiest interface used: the busier direction, on a
/// half-duplex line both together.
pub(super) fn limit(
    spec: &NfsTask,
    runs: &[&TrialResult],
    line_bps: BitRate,
    path: &PathFacts<'_>,
) -> Option<PathLimit> {
    let mtu = path.mtu;
    let half_duplex = path.half_duplex;
    let used = runs.iter().filter_map(|run| {
        let ends = transfers(run).into_iter().flat_map(|transfer| {
            let Transfer { from, to, sender, receiver, .. } = transfer;
            [wire_bps(run, from, sender, half_duplex), wire_bps(run, to, receiver, half_duplex)]
        });
        ends.flatten().max_by(f64::total_cmp)
    });
    let used = summary(used.collect())?.median;
    let payload_bps = path.payload_of(line_bps, spec.net.transport, spec.net.ip, spec.transfer_bytes.get(), mtu);
    Some(PathLimit { line_bps, mtu, payload_bps, share: used / line_bps.get().max(1) as f64, half_duplex })
}

/// What an end's interface carried in its busier direction, or in both.
fn wire_bps(run: &TrialResult, host: &HostName, end: &EndCounts, both: bool) -> Option<f64> {
    let seen = run.hosts.get(host)?;
    let interface = seen.carried.iter().find(|counted| Some(&counted.name) == end.interface.as_ref())?;
    let wire = |bytes: u64, packets: u64| rate((bytes + packets * UNCOUNTED) * 8, seen.window.get());
    let (out, back) = (wire(interface.tx_bytes, interface.tx_packets), wire(interface.rx_bytes, interface.rx_packets));
    Some(if both { out + back } else { out.max(back) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, trial};
    use linerate_model::{InterfaceCounters, NfsMix, Observation, Transport};
    use linerate_units::Nanos;

    #[test]
    fn the_busier_direction_of_the_busier_interface_counts_with_all_that_a_frame_takes() {
        let mix = NfsMix::named("read").expect("a mix");
        let spec = NfsTask::plain(Transport::Tcp, mix);
        let mut run = trial(0, 0);
        for (host, rx_packets) in [("a", 700), ("b", 100)] {
            let name = "eth0".to_owned();
            let rx_bytes = rx_packets * 1_514;
            let interface = InterfaceCounters {
                name,
                rx_packets,
                rx_bytes,
                tx_packets: 200,
                tx_bytes: 200 * 90,
                ..Default::default()
            };
            let seen = Observation { window: Nanos::from_secs(1), carried: vec![interface], ..Observation::default() };
            run.hosts.insert(host.into(), seen);
        }
        let ends = &mut paths_of(&mut run)[0];
        (ends.client.interface, ends.server.interface) = (Some("eth0".into()), Some("eth0".into()));
        let line = BitRate::per_second(10_000_000);
        let path = |half_duplex| PathFacts { half_duplex, ..PathFacts::of(&[], &[]) };
        let duplex_limit = |half_duplex| limit(&spec, &[&run], line, &path(half_duplex)).expect("is known");
        // 700 frames of 1,538 bytes on the wire.
        let full = duplex_limit(false);
        assert!((full.share - 700.0 * 1_538.0 * 8.0 / 1e7).abs() < 1e-9, "{full:?}");
        // And 200 of 114, which share a half-duplex line with them.
        let half = duplex_limit(true);
        assert!((half.share - (700.0 * 1_538.0 + 200.0 * 114.0) * 8.0 / 1e7).abs() < 1e-9, "{half:?}");
        let ends = &mut paths_of(&mut run)[0];
        (ends.client.interface, ends.server.interface) = (None, None);
        assert_eq!(super::limit(&spec, &[&run], line, &path(false)), None);
    }
}
