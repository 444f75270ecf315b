//! What is known of the links and machines that trials ran over.

use crate::transfer::transfers;
use linerate_model::{Host, HostName, Nic, TrialResult};
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
        let line = [together(senders), together(receivers)].into_iter().flatten().min().map(BitRate::per_second);
        let boot = |name: &HostName| hosts.iter().find(|host| host.name == *name).map(|host| &host.boot_id);
        let shared_machine =
            pairs.iter().any(|(from, to)| boot(from).zip(boot(to)).is_some_and(|(from, to)| from == to));
        let nics: Vec<&Nic> = nics.into_values().collect();
        let mtu = nics.iter().map(|nic| nic.mtu).min().unwrap_or(USUAL_MTU);
        Self { mtu, line, nics, shared_machine }
    }
}
