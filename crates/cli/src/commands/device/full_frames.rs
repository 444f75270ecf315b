//! Full frames from one host's port to another's, as many as the line takes: the raw-frame layer of a ladder.

use super::ports::Ports;
use super::{PortOptions, UDP};
use crate::commands::frames::Sending;
use crate::commands::ladder::FramesOptions;
use crate::exit::Failure;
use crate::hosts::ReachedAgents;
use crate::options::Family;
use linerate_model::{FrameEngine, FrameForm, FrameReceiver, Nic, Trial};
use linerate_units::{FrameSize, Nanos};

/// What Ethernet adds to an IP packet: 14 bytes of header and 4 of FCS (IEEE 802.3 clause 3.1.1).
const AROUND: u32 = 18;
/// Wait for stragglers: what still stands in the queues of a path.
const SETTLE: Nanos = Nanos::from_millis(300);

/// A port at one end of the path.
pub(crate) struct End<'a> {
    /// Its host, as given on the command line.
    pub(crate) host: &'a str,
    pub(crate) nic: &'a Nic,
}

/// The trial, if both hosts let it be run: from the first end to the second.
pub(crate) async fn full_frames(
    ends: [End<'_>; 2],
    asked: FramesOptions,
    agents: &ReachedAgents,
) -> Result<Trial, Failure> {
    let nics = || ends.iter().map(|end| end.nic);
    let mtu = nics().map(|nic| nic.mtu).min().unwrap_or_default();
    let size = FrameSize::with_fcs(mtu + AROUND).map_err(Failure::usage)?;
    let line = nics().filter_map(|nic| nic.speed).min();
    let between = PortOptions {
        ports: ends.iter().map(|end| format!("{}:{}", end.host, end.nic.name)).collect(),
        both: false,
        pattern: None,
        family: Family::of(asked.ip),
        vlan: Vec::new(),
        priority: 0,
        dscp: 0,
        gateway: Vec::new(),
        // A veth takes XDP's frames only where its other end is made ready for them; it always takes a socket's.
        engine: if nics().any(|nic| nic.driver == "veth") { FrameEngine::PacketSocket } else { FrameEngine::Auto },
        force: asked.force,
    };
    let frames = Sending {
        between: &between,
        rate: line.map(|line| size.line_rate(line)),
        count: None,
        form: FrameForm::default(),
        payload: UDP,
        size,
        time: asked.time,
        settle: SETTLE,
        receiver: FrameReceiver::Port,
        flows: 1,
    };
    frames.trial(&Ports::read_two(&between.ports)?, agents).await
}
