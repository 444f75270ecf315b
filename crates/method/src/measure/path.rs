//! What is known of the links and machines that trials ran over.

use crate::transfer::transfers;
use linerate_model::{Host, HostName, IpVersion, Nic, PathLimit, Transport, TrialResult};
use linerate_units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

/// MTU taken when no interface tells: Ethernet's.
const USUAL_MTU: u32 = 1500;

/// What is known of the links and machines a cell's trials ran over.
pub(crate) struct PathFacts<'a> {
    /// Smallest MTU of the interfaces used.
    pub(crate) mtu: u32,
    /// What the slower side's links carry together; none if no speed is known.
    pub(crate) line: Option<BitRate>,
    /// Both directions share the line of an interface.
    pub(crate) half_duplex: bool,
    /// The interfaces used.
    pub(crate) nics: Vec<&'a Nic>,
    /// Two ends ran on one machine.
    pub(crate) shared_machine: bool,
}

impl<'a> PathFacts<'a> {
    pub(crate) fn of(hosts: &'a [Host], runs: &[&TrialResult]) -> Self {
        let nic = |host: &HostName, interface: &Option<String>| {
            let host = hosts.iter().find(|known| known.name == *host)?;
            host.nics.iter().find(|nic| Some(&nic.name) == interface.as_ref())
        };
        // Each interface once for each way it is used: two flows through one NIC share its line.
        let (mut senders, mut receivers, mut nics) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut pairs = BTreeSet::new();
        for transfer in runs.iter().flat_map(|run| transfers(run)) {
            pairs.insert((transfer.from, transfer.to));
            for (host, end, side) in
                [(transfer.from, transfer.sender, &mut senders), (transfer.to, transfer.receiver, &mut receivers)]
            {
                // What a host sends to itself goes through no interface, whatever address it has.
                let nic = nic(host, &end.interface).filter(|_| transfer.from != transfer.to);
                side.insert((host, &end.interface), nic.and_then(|nic| nic.speed));
                nics.extend(nic.map(|nic| ((host, &nic.name), nic)));
            }
        }
        let together = |side: BTreeMap<_, Option<BitRate>>| -> Option<u64> {
            side.into_values().map(|speed| speed.map(BitRate::get)).sum()
        };
        let nics: Vec<&Nic> = nics.into_values().collect();
        let line = [together(senders), together(receivers), both_ways(&nics)].into_iter().flatten().min();
        let boot = |name: &HostName| hosts.iter().find(|host| host.name == *name).map(|host| &host.boot_id);
        let shared_machine =
            pairs.iter().any(|(from, to)| boot(from).zip(boot(to)).is_some_and(|(from, to)| from == to));
        let mtu = nics.iter().map(|nic| nic.mtu).min().unwrap_or(USUAL_MTU);
        let half_duplex = nics.iter().any(|nic| nic.is_half_duplex());
        Self { mtu, line: line.map(BitRate::per_second), half_duplex, nics, shared_machine }
    }

    /// Returns the most payload that `line` carries in such messages.
    pub(crate) fn payload_of(
        &self,
        line: BitRate,
        transport: Transport,
        ip: IpVersion,
        message_bytes: u64,
        mtu: u32,
    ) -> BitRate {
        if self.half_duplex {
            PathLimit::half_duplex_payload_of(line, transport, ip, message_bytes, mtu)
        } else {
            PathLimit::payload_of(line, transport, ip, message_bytes, mtu)
        }
    }
}

/// Returns what interfaces carry between each other in both directions together, or `None` if one has no known speed.
/// What is sent by one is received by another, so each bit counts twice.
fn both_ways(nics: &[&Nic]) -> Option<u64> {
    let speeds = nics.iter().map(|nic| Some(nic.speed?.get() * if nic.is_half_duplex() { 1 } else { 2 }));
    speeds.sum::<Option<u64>>().filter(|_| !nics.is_empty()).map(|both| both / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::host;
    use crate::transfer::tests::{stream_of, trial};
    use linerate_model::{Direction, Duplex};

    #[test]
    fn both_directions_share_the_line_of_a_half_duplex_interface() {
        let mut hosts = [host("a", Some(10_000_000)), host("b", Some(10_000_000))];
        let one_way = trial(1_000, 0);
        let line = |hosts: &[Host], runs: &[&TrialResult]| {
            let facts = PathFacts::of(hosts, runs);
            (facts.line.map(BitRate::get), facts.half_duplex)
        };
        let mut back = trial(1_000, 0);
        stream_of(&mut back.trial).direction = Direction::Receive;
        assert_eq!(line(&hosts, &[&one_way, &back]), (Some(20_000_000), false));
        for host in &mut hosts {
            host.nics[0].duplex = Some(Duplex::Half);
        }
        assert_eq!(line(&hosts, &[&one_way]), (Some(10_000_000), true));
        assert_eq!(line(&hosts, &[&one_way, &back]), (Some(10_000_000), true));
        hosts[0].nics[0].speed = None;
        assert_eq!(line(&hosts, &[&one_way]), (Some(10_000_000), true), "the other side is known");
    }
}
