//! A trial from its beginning to its end, by XDP or by packet sockets.

use crate::answering::Answering;
use crate::attempt::{Attempt, Counts};
use crate::carrier::Carrier;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::{FrameError, learning, packet, xdp};
use linerate_engine::Conductor;
use linerate_model::{Caveat, CaveatKind, FrameEngine, FramesTask, message};
use linerate_sys::netlink::{Link, Route};
use linerate_sys::packet::PacketSocket;
use std::sync::Arc;

/// Runs this host's part of a trial and returns when it is over: attaches the receivers, lets the ports be learned, waits for the
/// start, sends, waits for the other hosts and for stragglers, reads, detaches.
///
/// # Errors
/// The trial cannot be run, a port lost its link, or the session was stopped.
pub(crate) fn run(plan: &Plan, task: &FramesTask, host: &dyn Conductor) -> Result<Counts, FrameError> {
    // Frames may go to addresses that are not the ports' own; the ports hear them while these sockets are open. To close a
    // socket takes the kernel 15 ms, so that all that a port has to say goes through the one.
    let mut ears = Vec::with_capacity(plan.ports.len());
    for port in &plan.ports {
        let socket = PacketSocket::open(port.link, None)?;
        socket.hear_all()?;
        ears.push(socket);
    }
    learning::send(plan, &ears)?;
    let _answering = Answering::begin(plan, &task.hosts)?;
    let carrier = Carrier::of(plan)?;
    let attempt = Attempt {
        plan,
        progress: Arc::new(Progress::of(plan.ports.iter().map(|port| port.interface.clone()))),
        host,
        carrier: &carrier,
        settle: task.settle.get(),
    };
    let unsigned = plan.streams.iter().any(|stream| stream.signature_at.is_none());
    let before = if unsigned { Route::open()?.links()? } else { Vec::new() };
    let counts = by_engine(task.engine, &attempt);
    if let Some(interface) = carrier.lost() {
        return Err(FrameError::WentDown { interface });
    }
    let mut counts = counts?;
    if unsigned {
        count_by_ports(plan, &before, &mut counts)?;
    }
    Ok(counts)
}

/// Runs it by the engine asked for.
fn by_engine(engine: FrameEngine, attempt: &Attempt<'_>) -> Result<Counts, FrameError> {
    match engine {
        FrameEngine::Xdp => xdp::run(attempt),
        FrameEngine::PacketSocket => packet::run(attempt),
        FrameEngine::Auto => match xdp::possible_for(attempt.plan).and_then(|()| xdp::run(attempt)) {
            Err(error) if falls_back(&error) => {
                let mut counts = packet::run(attempt)?;
                let text = message!(
                    "caveat-packet-sockets",
                    "packet sockets were used instead of XDP ({error}): they send and receive far fewer frames a \
                     second; compare with a trial port to port before blaming the device",
                    error = error.to_string()
                );
                counts.caveats.push(Caveat::new(CaveatKind::Fallback, text));
                Ok(counts)
            }
            counts => counts,
        },
    }
}

/// What arrived of frames without a signature: all that their port received since `before`. No other frames of the trial go
/// there.
fn count_by_ports(plan: &Plan, before: &[Link], counts: &mut Counts) -> Result<(), FrameError> {
    let after = Route::open()?.links()?;
    for (stream, part) in plan.streams.iter().zip(&mut counts.streams).filter(|(s, _)| s.signature_at.is_none()) {
        let (Some(to), Some(result)) = (stream.to, &mut part.arrived) else { continue };
        let port = &plan.ports[to];
        let of = |links: &[Link]| links.iter().find(|link| link.index == port.link).map(|link| link.counters);
        let (Some(now), Some(then)) = (of(&after), of(before)) else { continue };
        result.received = now.rx_packets.saturating_sub(then.rx_packets);
        // Some drivers count no Ethernet header in their bytes.
        result.bytes = stream.wish.bytes(result.received);
        result.by_port_counters = true;
        let text = message!(
            "caveat-port-counters-only",
            "the frames to port {port} carry no signature: what its own counter rose by is all that is known, \
             other traffic included; duplicates, order, flooding and latency are not known",
            port = &port.interface
        );
        counts.caveats.push(Caveat::new(CaveatKind::PortCountersOnly, text));
    }
    Ok(())
}

/// Packet sockets may do what XDP could not.
fn falls_back(error: &FrameError) -> bool {
    matches!(
        error,
        FrameError::NoXdp(_)
            | FrameError::TooLargeForXdp(_)
            | FrameError::FillingsDiffer
            | FrameError::PortTaken { .. }
            | FrameError::NotTaken(_)
    )
}
